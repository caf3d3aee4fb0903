//! `Vec<u8>` as base64 text in JSON, at any depth of a field's type.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, Hash};

use crate::bytes;
use crate::types::SortedMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

/// A value whose bytes are serialized as text. Expansions use it in `serde(with = ..)`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Base64<T>(pub T);

/// A reference to a value, serialized in the same way.
struct Text<'a, T>(&'a T);

/// Implemented by bytes and containers of them.
pub trait Bytes: Sized {
    /// Writes the value.
    ///
    /// # Errors
    /// The serializer's errors.
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;
    /// Reads a value.
    ///
    /// # Errors
    /// The deserializer's errors, and an error for text that is not base64.
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
    /// The schema of the text.
    fn schema(generator: &mut SchemaGenerator) -> Schema;
}

impl<T: Bytes> Base64<T> {
    /// Writes a value.
    ///
    /// # Errors
    /// The serializer's errors.
    pub fn serialize<S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        value.write(serializer)
    }
    /// Reads a value.
    ///
    /// # Errors
    /// The deserializer's errors, and an error for text that is not base64.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        T::read(deserializer)
    }
}

impl<T: Bytes> Serialize for Base64<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write(serializer)
    }
}

impl<T: Bytes> Serialize for Text<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write(serializer)
    }
}

impl<'de, T: Bytes> Deserialize<'de> for Base64<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::read(deserializer).map(Self)
    }
}

impl<T: Bytes> JsonSchema for Base64<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Base64".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::schema(generator)
    }
}

impl Bytes for Vec<u8> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&bytes::encode(self))
    }
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl Visitor<'_> for TextVisitor {
            type Value = Vec<u8>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("base64 text")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Vec<u8>, E> {
                bytes::decode(text).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "byte", "x-apiloom-canonical": "bytes" })
    }
}

impl<T: Bytes> Bytes for Option<T> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_ref().map(Text).serialize(serializer)
    }
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Option::<Base64<T>>::deserialize(deserializer)?;
        Ok(read.map(|value| value.0))
    }
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        Option::<Base64<T>>::json_schema(generator)
    }
}

impl<T: Bytes> Bytes for Box<T> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        T::write(self, serializer)
    }
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::read(deserializer).map(Box::new)
    }
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        T::schema(generator)
    }
}

macro_rules! lists {
    ($($list:ty: $($bound:path)|*),+ $(,)?) => { $(
        impl<T: Bytes $(+ $bound)*> Bytes for $list {
            fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_seq(self.iter().map(Text))
            }
            fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let read = Vec::<Base64<T>>::deserialize(deserializer)?;
                Ok(read.into_iter().map(|element| element.0).collect())
            }
            fn schema(generator: &mut SchemaGenerator) -> Schema {
                Vec::<Base64<T>>::json_schema(generator)
            }
        }
    )+ };
}

lists!(Vec<T>:, VecDeque<T>:, BTreeSet<T>: Ord, HashSet<T>: Eq | Hash);

fn write_map<'a, K: Serialize + 'a, T: Bytes + 'a, S: Serializer>(
    entries: impl IntoIterator<Item = (&'a K, &'a T)>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(entries.into_iter().map(|(key, value)| (key, Text(value))))
}

impl<K, T> Bytes for BTreeMap<K, T>
where
    K: Ord + Serialize + for<'de> Deserialize<'de> + JsonSchema,
    T: Bytes,
{
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write_map(self, serializer)
    }
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = BTreeMap::<K, Base64<T>>::deserialize(deserializer)?;
        Ok(read
            .into_iter()
            .map(|(key, value)| (key, value.0))
            .collect())
    }
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<K, Base64<T>>::json_schema(generator)
    }
}

impl<K, T> Bytes for SortedMap<K, T>
where
    K: Ord + Serialize + for<'de> Deserialize<'de> + JsonSchema,
    T: Bytes,
{
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write_map(self, serializer)
    }
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = SortedMap::<K, Base64<T>>::deserialize(deserializer)?;
        Ok(read
            .into_iter()
            .map(|(key, value)| (key, value.0))
            .collect())
    }
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        SortedMap::<K, Base64<T>>::json_schema(generator)
    }
}

impl<K, T, H> Bytes for HashMap<K, T, H>
where
    K: Eq + Hash + Serialize + for<'de> Deserialize<'de> + JsonSchema,
    T: Bytes,
    H: BuildHasher + Default,
{
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write_map(self, serializer)
    }
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = HashMap::<K, Base64<T>>::deserialize(deserializer)?;
        Ok(read
            .into_iter()
            .map(|(key, value)| (key, value.0))
            .collect())
    }
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        HashMap::<K, Base64<T>>::json_schema(generator)
    }
}
