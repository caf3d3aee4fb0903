//! The JSON of `fieldsV1`: read into a set, and written from one, without a tree in between.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::field_set::{FieldSet, SetNode};
use super::path_element::{PathElement, PathElementError};
use crate::codec;
use crate::types::FieldsV1;

impl FieldSet {
    /// Reads the JSON of `fieldsV1`. Elements of a type that is not known are left out; the last of several equal ones
    /// counts.
    ///
    /// # Errors
    /// If it is no JSON object, or one of its keys is malformed.
    pub fn from_json(json: &str) -> Result<Self, FieldsError> {
        Self::read(&mut serde_json::Deserializer::from_str(json))
    }

    /// As [`FieldSet::from_json`], from a tree.
    ///
    /// # Errors
    /// As [`FieldSet::from_json`].
    pub fn from_value(fields: &Value) -> Result<Self, FieldsError> {
        Self::read(fields)
    }

    fn read<'de, D>(deserializer: D) -> Result<Self, FieldsError>
    where
        D: Deserializer<'de, Error = serde_json::Error>,
    {
        let mut malformed = None;
        let reader = Reader {
            malformed: &mut malformed,
        };
        match (reader.deserialize(deserializer), malformed) {
            (Ok(fields), _) => Ok(fields.below),
            (Err(_), Some(key)) => Err(FieldsError::Key(key)),
            (Err(error), None) => Err(FieldsError::Json(error.to_string())),
        }
    }

    /// The JSON of `fieldsV1`, compact.
    pub fn to_json(&self) -> String {
        let mut out = Vec::with_capacity(256);
        self.append(false, &mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    fn append(&self, is_member: bool, out: &mut Vec<u8>) {
        out.push(b'{');
        if is_member {
            out.extend_from_slice(b"\".\":{}");
        }
        for (index, node) in self.nodes().iter().enumerate() {
            if is_member || index > 0 {
                out.push(b',');
            }
            match &node.element {
                // The most frequent one, without a text in between.
                PathElement::Field(name) => {
                    let start = out.len();
                    codec::Encoder::append_text(name, out);
                    out.splice(start..=start, *b"\"f:");
                }
                element => codec::Encoder::append_text(&element.to_key(), out),
            }
            out.push(b':');
            node.below
                .append(node.is_member && !node.below.is_empty(), out);
        }
        out.push(b'}');
    }
}

impl FieldsV1 {
    /// The set of fields.
    ///
    /// # Errors
    /// If the JSON is not that of a set.
    pub fn to_set(&self) -> Result<FieldSet, FieldsError> {
        FieldSet::from_json(self.as_json())
    }
}

impl From<&FieldSet> for FieldsV1 {
    fn from(set: &FieldSet) -> Self {
        Self::new(set.to_json())
    }
}

/// Why `fieldsV1` is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    /// A key is malformed.
    #[error(transparent)]
    Key(PathElementError),
    /// It is not JSON of this form.
    #[error("fieldsV1 must consist of JSON objects: {0}")]
    Json(String),
}

/// Reads the fields below one.
struct Reader<'a> {
    /// The malformed key after an error.
    malformed: &'a mut Option<PathElementError>,
}

/// The fields below one, and whether it is a member itself.
#[derive(Default)]
struct Fields {
    is_member: bool,
    below: FieldSet,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Fields;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Fields, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<Fields, E> {
        Ok(Fields::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Fields, A::Error> {
        let mut fields = Fields::default();
        let mut nodes = Vec::new();
        let malformed = self.malformed;
        while let Some(key) = access.next_key_seed(KeyReader { malformed })? {
            match key {
                Key::Element(element) => {
                    let own = access.next_value_seed(Reader { malformed })?;
                    nodes.push(SetNode {
                        element,
                        // A field without any below it is a member; one with others says so by a dot.
                        is_member: own.is_member || own.below.is_empty(),
                        below: own.below,
                    });
                }
                Key::Dot => {
                    fields.is_member = true;
                    access.next_value::<IgnoredAny>()?;
                }
                Key::Unknown => drop(access.next_value::<IgnoredAny>()?),
            }
        }
        fields.below = FieldSet::of_nodes(nodes);
        Ok(fields)
    }
}

/// A key of `fieldsV1`.
enum Key {
    /// The field itself.
    Dot,
    Element(PathElement),
    /// An element of a type that is not known.
    Unknown,
}

struct KeyReader<'a> {
    malformed: &'a mut Option<PathElementError>,
}

impl<'de> DeserializeSeed<'de> for KeyReader<'_> {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyReader<'_> {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<Key, E> {
        if key == "." {
            return Ok(Key::Dot);
        }
        match PathElement::parse(key) {
            Ok(element) => Ok(element.map_or(Key::Unknown, Key::Element)),
            Err(error) => {
                *self.malformed = Some(error);
                Err(E::custom("a malformed key"))
            }
        }
    }
}
