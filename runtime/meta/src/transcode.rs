//! Serializes the value of a JSON text, in the order of the text and without a tree in between.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, SerializeMap, SerializeSeq, Serializer};

/// Serializes the value of a JSON text.
///
/// # Errors
/// If the text is not JSON; those of the serializer.
pub(crate) fn serialize<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let serialized = deserializer.deserialize_any(Transcoder(serializer));
    serialized.map_err(S::Error::custom)
}

/// Serializes what is deserialized.
struct Transcoder<S>(S);

impl<'de, S: Serializer> Visitor<'de> for Transcoder<S> {
    type Value = S::Ok;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E: serde::de::Error>(self) -> Result<S::Ok, E> {
        self.0.serialize_unit().map_err(E::custom)
    }
    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<S::Ok, E> {
        self.0.serialize_bool(value).map_err(E::custom)
    }
    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<S::Ok, E> {
        self.0.serialize_i64(value).map_err(E::custom)
    }
    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<S::Ok, E> {
        self.0.serialize_u64(value).map_err(E::custom)
    }
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<S::Ok, E> {
        self.0.serialize_f64(value).map_err(E::custom)
    }
    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<S::Ok, E> {
        self.0.serialize_str(value).map_err(E::custom)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<S::Ok, A::Error> {
        let mut seq = self.0.serialize_seq(None).map_err(A::Error::custom)?;
        while access.next_element_seed(Element(&mut seq))?.is_some() {}
        seq.end().map_err(A::Error::custom)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<S::Ok, A::Error> {
        let mut map = self.0.serialize_map(None).map_err(A::Error::custom)?;
        while let Some(key) = access.next_key::<String>()? {
            map.serialize_key(&key).map_err(A::Error::custom)?;
            access.next_value_seed(Member(&mut map))?;
        }
        map.end().map_err(A::Error::custom)
    }
}

/// A value that is deserialized while it is serialized, once.
struct Once<D>(Cell<Option<D>>);

impl<'de, D: Deserializer<'de>> Serialize for Once<D> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let deserializer = self.0.take();
        let deserializer = deserializer.ok_or_else(|| S::Error::custom("serialized twice"))?;
        let serialized = deserializer.deserialize_any(Transcoder(serializer));
        serialized.map_err(S::Error::custom)
    }
}

struct Element<'a, S>(&'a mut S);

impl<'de, S: SerializeSeq> DeserializeSeed<'de> for Element<'_, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let element = Once(Cell::new(Some(deserializer)));
        self.0.serialize_element(&element).map_err(D::Error::custom)
    }
}

struct Member<'a, S>(&'a mut S);

impl<'de, S: SerializeMap> DeserializeSeed<'de> for Member<'_, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let value = Once(Cell::new(Some(deserializer)));
        self.0.serialize_value(&value).map_err(D::Error::custom)
    }
}
