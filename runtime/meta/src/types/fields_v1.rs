//! `fieldsV1` of managedFields, as the text of its JSON.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::transcode;

/// FieldsV1 is a set of fields as a trie of `f:`, `k:` and `v:` keys. It holds the text of its JSON, since a tree of maps
/// would need a multiple of the memory; it is serialized as the JSON object.
#[derive(Clone, PartialEq, Eq)]
pub struct FieldsV1(Box<str>);

impl FieldsV1 {
    /// The name under which it is deserialized: a deserializer that has the text of its JSON may give that.
    pub(crate) const NAME: &'static str = "$apiloom::FieldsV1";

    /// The JSON, compact.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// From the JSON of an object.
    pub(crate) fn new(json: String) -> Self {
        Self(json.into())
    }
}

/// The JSON.
impl fmt::Debug for FieldsV1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for FieldsV1 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        transcode::serialize(&self.0, serializer)
    }
}

/// From an object, or from the text of one, as the documents of [`Object`](crate::Object) have it.
impl<'de> Deserialize<'de> for FieldsV1 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(FieldsV1::NAME, FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = FieldsV1;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<FieldsV1, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_str<E: de::Error>(self, json: &str) -> Result<FieldsV1, E> {
        let Members = serde_json::from_str(json).map_err(E::custom)?;
        Ok(FieldsV1(json.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<FieldsV1, A::Error> {
        let members: Map<String, Value> = Map::deserialize(MapAccessDeserializer::new(access))?;
        let json = serde_json::to_string(&members).map_err(A::Error::custom)?;
        Ok(FieldsV1(json.into()))
    }
}

/// Any JSON object.
struct Members;

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Self)
    }
}

impl<'de> Visitor<'de> for Members {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self, A::Error> {
        while access.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(self)
    }
}
