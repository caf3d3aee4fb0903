//! `Strip`: fields of metadata that are not decoded, because caches rarely need them and they are large.
//!
//! They are skipped while an object is decoded, which costs less than decoding and dropping them.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::BitOr;

use apiloom_meta::kind::verbs;
use serde::de::value::{BorrowedStrDeserializer, StringDeserializer};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde::{Serialize, Serializer};

use crate::client::ApiObject;
use crate::object::HasMetadata;

/// Fields that are left out of cached objects.
///
/// A cached object without managedFields may be sent back as an update: the server keeps them. One without the annotation of
/// [`Strip::LAST_APPLIED`] must not, since the update would remove the annotation; patches and applies do not.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Strip(u8);

impl Strip {
    /// Nothing is left out.
    pub const NOTHING: Self = Self(0);
    /// `metadata.managedFields`. The default of informers.
    pub const MANAGED_FIELDS: Self = Self(MANAGED_FIELDS);
    /// The annotation `kubectl.kubernetes.io/last-applied-configuration`.
    pub const LAST_APPLIED: Self = Self(LAST_APPLIED);

    pub(super) fn bits(self) -> u8 {
        self.0
    }
}

/// The bits of [`Strip`], for types that are made for one of its values.
pub(super) const MANAGED_FIELDS: u8 = 1;
pub(super) const LAST_APPLIED: u8 = 2;

const LAST_APPLIED_ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl Default for Strip {
    /// [`Strip::MANAGED_FIELDS`].
    fn default() -> Self {
        Self::MANAGED_FIELDS
    }
}

/// Leaves out the fields of both.
impl BitOr for Strip {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for Strip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (MANAGED_FIELDS, "MANAGED_FIELDS"),
            (LAST_APPLIED, "LAST_APPLIED"),
        ];
        let names = names.iter().filter(|(bit, _)| self.0 & bit != 0);
        f.debug_set().entries(names.map(|(_, name)| name)).finish()
    }
}

/// An object that is decoded without the fields of a [`Strip`], whose bits are `STRIP`.
pub(super) struct StrippedObject<K, const STRIP: u8>(pub(super) K);

impl<K: HasMetadata, const STRIP: u8> HasMetadata for StrippedObject<K, STRIP> {
    fn namespace(&self) -> &str {
        self.0.namespace()
    }
    fn name(&self) -> &str {
        self.0.name()
    }
    fn uid(&self) -> &str {
        self.0.uid()
    }
    fn resource_version(&self) -> &str {
        self.0.resource_version()
    }
    fn label(&self, key: &str) -> Option<&str> {
        self.0.label(key)
    }
    fn owner_uids(&self) -> Vec<&str> {
        self.0.owner_uids()
    }
}

/// [`ResourceSource`](super::ResourceSource) is only made for kinds that have these verbs.
impl<K, const STRIP: u8> verbs::List for StrippedObject<K, STRIP> {}
impl<K, const STRIP: u8> verbs::Watch for StrippedObject<K, STRIP> {}

impl<K: ApiObject, const STRIP: u8> ApiObject for StrippedObject<K, STRIP> {
    const HAS_TYPE_FIELDS: bool = K::HAS_TYPE_FIELDS;
}

impl<K: Serialize, const STRIP: u8> Serialize for StrippedObject<K, STRIP> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, K: Deserialize<'de>, const STRIP: u8> Deserialize<'de> for StrippedObject<K, STRIP> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let filter = Filter {
            inner: deserializer,
            map: Map::Object,
            strip: STRIP,
        };
        K::deserialize(filter).map(Self)
    }
}

/// A map on the way to the fields.
#[derive(Clone, Copy, Debug)]
enum Map {
    Object,
    Metadata,
    Annotations,
}

impl Map {
    /// Whether a field of this map is left out.
    fn skips(self, key: &str, strip: u8) -> bool {
        let has = |bit| strip & bit != 0;
        match self {
            Self::Object => false,
            Self::Metadata => key == "managedFields" && has(MANAGED_FIELDS),
            Self::Annotations => key == LAST_APPLIED_ANNOTATION && has(LAST_APPLIED),
        }
    }
    /// The map below a field, if it is on the way.
    fn below(self, key: &str) -> Option<Self> {
        match (self, key) {
            (Self::Object, "metadata") => Some(Self::Metadata),
            (Self::Metadata, "annotations") => Some(Self::Annotations),
            _ => None,
        }
    }
}

/// Deserializes a value, its visitor, its map or a value below, without the fields that are left out.
struct Filter<I> {
    inner: I,
    map: Map,
    strip: u8,
}

impl<I> Filter<I> {
    fn around<J>(&self, inner: J) -> Filter<J> {
        Filter {
            inner,
            map: self.map,
            strip: self.strip,
        }
    }
}

/// The methods of a deserializer whose values are passed on as they are.
macro_rules! pass_on {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$method(visitor)
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Filter<D> {
    type Error = D::Error;

    pass_on! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64 deserialize_char deserialize_str deserialize_string
        deserialize_bytes deserialize_byte_buf deserialize_unit deserialize_seq
        deserialize_identifier deserialize_ignored_any
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.around(visitor);
        self.inner.deserialize_any(visitor)
    }
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.around(visitor);
        self.inner.deserialize_option(visitor)
    }
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.around(visitor);
        self.inner.deserialize_map(visitor)
    }
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = self.around(visitor);
        self.inner.deserialize_struct(name, fields, visitor)
    }
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = self.around(visitor);
        self.inner.deserialize_newtype_struct(name, visitor)
    }
    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_unit_struct(name, visitor)
    }
    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_tuple(len, visitor)
    }
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_tuple_struct(name, len, visitor)
    }
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_enum(name, variants, visitor)
    }
    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

/// The methods of a visitor whose values are passed on as they are.
macro_rules! visit {
    ($($method:ident $type:ty,)*) => {
        $(fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Filter<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    visit! {
        visit_bool bool, visit_i64 i64, visit_i128 i128, visit_u64 u64, visit_u128 u128, visit_f64 f64,
        visit_str &str, visit_borrowed_str &'de str, visit_string String,
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }
    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let deserializer = self.around(deserializer);
        self.inner.visit_some(deserializer)
    }
    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<V::Value, D::Error> {
        let deserializer = self.around(deserializer);
        self.inner.visit_newtype_struct(deserializer)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<V::Value, A::Error> {
        self.inner.visit_seq(seq)
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        let map = FilteredMap {
            filter: self.around(map),
            below: None,
        };
        self.inner.visit_map(map)
    }
}

/// A map without the entries that are left out.
struct FilteredMap<A> {
    filter: Filter<A>,
    /// For the value that is next, the map that it is.
    below: Option<Map>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for FilteredMap<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        loop {
            let Some(Text(key)) = self.filter.inner.next_key()? else {
                return Ok(None);
            };
            if self.filter.map.skips(&key, self.filter.strip) {
                self.filter.inner.next_value::<IgnoredAny>()?;
                continue;
            }
            self.below = self.filter.map.below(&key);
            let key = match key {
                Cow::Borrowed(key) => seed.deserialize(BorrowedStrDeserializer::new(key)),
                Cow::Owned(key) => seed.deserialize(StringDeserializer::new(key)),
            };
            return key.map(Some);
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        match self.below.take() {
            Some(map) => self.filter.inner.next_value_seed(Filter {
                inner: seed,
                map,
                strip: self.filter.strip,
            }),
            None => self.filter.inner.next_value_seed(seed),
        }
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Filter<S> {
    type Value = S::Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        let deserializer = self.around(deserializer);
        self.inner.deserialize(deserializer)
    }
}

/// A key, borrowed from the input where it has no escapes.
struct Text<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor<'de>(PhantomData<&'de str>);
        impl<'de> Visitor<'de> for TextVisitor<'de> {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a field")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
            fn visit_string<E: Error>(self, text: String) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text)))
            }
        }
        deserializer.deserialize_str(TextVisitor(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use apiloom_meta::ObjectMeta;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Typed {
        metadata: Option<ObjectMeta>,
        spec: Value,
    }

    fn document() -> Value {
        json!({
            "kind": "Pod",
            "metadata": {
                "name": "a",
                "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "own": "1"},
                "labels": {"managedFields": "kept"},
            },
            "spec": {"metadata": {"managedFields": ["kept"]}, "managedFields": 7, "text": "\u{e9}\n"},
        })
    }

    /// The document without what is left out.
    #[track_caller]
    fn check<const STRIP: u8>(managed_fields: bool, last_applied: bool) {
        let text = document().to_string();
        let stripped: StrippedObject<Value, STRIP> = serde_json::from_str(&text).expect("valid");
        let mut expected = document();
        let metadata = expected["metadata"].as_object_mut().expect("metadata");
        if !managed_fields {
            metadata.remove("managedFields");
        }
        if !last_applied {
            let annotations = metadata["annotations"]
                .as_object_mut()
                .expect("annotations");
            annotations.remove(LAST_APPLIED_ANNOTATION);
        }
        assert_eq!(stripped.0, expected);
        let typed: StrippedObject<Typed, STRIP> = serde_json::from_str(&text).expect("valid");
        let expected: Typed = serde_json::from_value(expected).expect("valid");
        assert_eq!(typed.0, expected);
    }

    #[test]
    fn trap_30_fields_are_left_out_while_decoding() {
        check::<0>(true, true);
        check::<1>(false, true);
        check::<2>(true, false);
        check::<3>(false, false);
        assert_eq!(
            format!("{:?}", Strip::MANAGED_FIELDS | Strip::LAST_APPLIED),
            "{\"MANAGED_FIELDS\", \"LAST_APPLIED\"}"
        );
    }

    #[test]
    fn what_is_left_out_must_still_be_json_and_the_rest_of_its_type() {
        for (text, is_valid) in [
            (r#"{"metadata":{"managedFields":7},"spec":1}"#, true),
            (r#"{"metadata":null,"spec":1}"#, true),
            (r#"{"metadata":{"managedFields":[}},"spec":1}"#, false),
            (r#"{"metadata":{"name":7},"spec":1}"#, false),
            (r#"{"metadata":{"\u006danagedFields":7},"spec":1}"#, true),
            (r#"{"metadata":"a","spec":1}"#, false),
            ("7", false),
        ] {
            let result = serde_json::from_str::<StrippedObject<Typed, 1>>(text);
            assert_eq!(result.is_ok(), is_valid, "{text}: {:?}", result.err());
        }
    }
}
