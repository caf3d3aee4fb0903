//! The document of an object as others see it. In memory `metadata.managedFields`, or the value of each `fieldsV1` in it, is
//! a string with its JSON, because a tree of maps needs a multiple of the memory and of the time.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Map, Value};

use super::Object;
use crate::transcode;

impl Object {
    /// The document with `metadata.managedFields` as an array and the values of `fieldsV1` as objects, as JSON has them.
    pub fn into_tree(mut self) -> Value {
        if has_texts(self.fields()) {
            if let Some(entries @ Value::String(_)) = self.meta_mut().get_mut("managedFields") {
                *entries = tree(entries);
            }
            for entry in self.managed_entries() {
                if let Some(fields @ Value::String(_)) = entry.get_mut("fieldsV1") {
                    *fields = tree(fields);
                }
            }
        }
        self.into_value()
    }

    fn managed_entries(&mut self) -> &mut [Value] {
        match self.meta_mut().get_mut("managedFields") {
            Some(Value::Array(entries)) => entries,
            _ => &mut [],
        }
    }
}

/// The value of a text with JSON.
fn tree(text: &Value) -> Value {
    let json = text.as_str().unwrap_or_default();
    transcode::serialize(json, serde_json::value::Serializer).unwrap_or_default()
}

/// Whether the document of an object has managedFields or a `fieldsV1` as text.
fn has_texts(fields: &Map<String, Value>) -> bool {
    let metadata = fields.get("metadata");
    let entries = metadata.and_then(|metadata| metadata.get("managedFields"));
    if entries.is_some_and(Value::is_string) {
        return true;
    }
    let mut entries = entries.and_then(Value::as_array).into_iter().flatten();
    entries.any(|entry| entry.get("fieldsV1").is_some_and(Value::is_string))
}

/// As JSON has it.
impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let place = if has_texts(self.fields()) {
            Place::Object
        } else {
            Place::Free
        };
        let value = self.as_value();
        Part { value, place }.serialize(serializer)
    }
}

/// A part of a document.
struct Part<'a> {
    value: &'a Value,
    place: Place,
}

/// Where a part is in its document.
#[derive(Clone, Copy)]
enum Place {
    Object,
    Metadata,
    ManagedFields,
    Entry,
    FieldsV1,
    /// Without a `fieldsV1` below.
    Free,
}

impl Place {
    fn field(self, name: &str) -> Self {
        match (self, name) {
            (Self::Object, "metadata") => Self::Metadata,
            (Self::Metadata, "managedFields") => Self::ManagedFields,
            (Self::Entry, "fieldsV1") => Self::FieldsV1,
            _ => Self::Free,
        }
    }
}

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.value, self.place) {
            (Value::String(json), Place::FieldsV1 | Place::ManagedFields) => {
                transcode::serialize(json, serializer)
            }
            (Value::Array(items), Place::ManagedFields) => {
                let mut seq = serializer.serialize_seq(Some(items.len()))?;
                for value in items {
                    let place = Place::Entry;
                    seq.serialize_element(&Part { value, place })?;
                }
                seq.end()
            }
            (Value::Object(fields), Place::Object | Place::Metadata | Place::Entry) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (name, value) in fields {
                    let place = self.place.field(name);
                    map.serialize_entry(name, &Part { value, place })?;
                }
                map.end()
            }
            (value, _) => value.serialize(serializer),
        }
    }
}
