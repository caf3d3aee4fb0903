//! Kinds with the metadata and the traits of kube-rs, for the programs that use it. This crate does not depend on kube-rs:
//! the expansion names the crate `kube` of the package in which it is used.

use std::fmt;

use serde::de::value::MapDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess,
    Visitor,
};
use serde::ser::{Error as _, SerializeMap as _, Serializer};
use serde::{Deserialize, Serialize};

use crate::gvk::GroupVersion;
use crate::kind::Resource;

/// The field with the metadata.
const METADATA: &str = "metadata";

/// Declares a type with the fields of a kind, and with the metadata of kube-rs in place of its own.
#[doc(hidden)]
#[macro_export]
macro_rules! __kube_view {
    ($name:ident, $kind:ty, $scope:ident) => {
        #[doc = ::core::concat!("An object of the kind `", ::core::stringify!($name), "`, with the metadata of kube-rs.")]
        ///
        /// The other fields are those of the kind, which it dereferences to.
        #[derive(Clone, Debug)]
        pub struct $name {
            /// The metadata.
            pub metadata: ::kube::core::ObjectMeta,
            object: $kind,
        }
        impl $name {
            /// An object with this name, and with the fields of another one except for its metadata.
            pub fn new(name: impl ::core::convert::Into<::std::string::String>, object: $kind) -> Self {
                let name = ::core::option::Option::Some(name.into());
                let metadata = ::kube::core::ObjectMeta { name, ..::core::default::Default::default() };
                Self { metadata, object }
            }
        }
        impl ::core::ops::Deref for $name {
            type Target = $kind;
            fn deref(&self) -> &$kind {
                &self.object
            }
        }
        impl ::core::ops::DerefMut for $name {
            fn deref_mut(&mut self) -> &mut $kind {
                &mut self.object
            }
        }
        impl $crate::codegen::serde::Serialize for $name {
            fn serialize<S: $crate::codegen::serde::Serializer>(&self, serializer: S) -> ::core::result::Result<S::Ok, S::Error> {
                $crate::codegen::serialize_with_metadata(&self.object, &self.metadata, serializer)
            }
        }
        impl<'de> $crate::codegen::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::codegen::serde::Deserializer<'de>>(deserializer: D) -> ::core::result::Result<Self, D::Error> {
                let (metadata, object) = $crate::codegen::deserialize_with_metadata(deserializer)?;
                ::core::result::Result::Ok(Self { metadata, object })
            }
        }
        impl ::kube::Resource for $name {
            type DynamicType = ();
            type Scope = ::kube::core::$scope;
            fn kind(_: &()) -> ::std::borrow::Cow<'_, str> {
                <$kind as $crate::codegen::Resource>::KIND.into()
            }
            fn group(_: &()) -> ::std::borrow::Cow<'_, str> {
                <$kind as $crate::codegen::Resource>::GROUP.into()
            }
            fn version(_: &()) -> ::std::borrow::Cow<'_, str> {
                <$kind as $crate::codegen::Resource>::VERSION.into()
            }
            fn plural(_: &()) -> ::std::borrow::Cow<'_, str> {
                <$kind as $crate::codegen::Resource>::PLURAL.into()
            }
            fn meta(&self) -> &::kube::core::ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut ::kube::core::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

/// Serializes an object with `apiVersion`, `kind` and other metadata than its own.
///
/// # Errors
/// Those of the serializer.
pub fn serialize_with_metadata<K: Resource, M: Serialize, S: Serializer>(
    object: &K,
    metadata: &M,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let fields = serde_json::to_value(object).map_err(S::Error::custom)?;
    let fields = fields.as_object().into_iter().flatten();
    let mut map = serializer.serialize_map(None)?;
    let api_version = GroupVersion::new(K::GROUP, K::VERSION).to_string();
    map.serialize_entry("apiVersion", &api_version)?;
    map.serialize_entry("kind", K::KIND)?;
    map.serialize_entry(METADATA, metadata)?;
    for (name, value) in fields.filter(|(name, _)| *name != METADATA) {
        map.serialize_entry(name, value)?;
    }
    map.end()
}

/// Deserializes an object and, apart from it, its metadata in another form; that of the object is empty.
///
/// # Errors
/// Those of the deserializer and of the fields.
pub fn deserialize_with_metadata<'de, M, K, D>(deserializer: D) -> Result<(M, K), D::Error>
where
    M: DeserializeOwned + Default,
    K: DeserializeOwned,
    D: Deserializer<'de>,
{
    let mut metadata = None;
    let object = K::deserialize(Apart {
        inner: deserializer,
        metadata: &mut metadata,
    })?;
    Ok((metadata.unwrap_or_default(), object))
}

/// A deserializer, visitor or map that keeps the metadata apart.
struct Apart<'a, T, M> {
    inner: T,
    metadata: &'a mut Option<M>,
}

impl<'de, D: Deserializer<'de>, M: Deserialize<'de>> Deserializer<'de> for Apart<'_, D, M> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_map(Apart {
            inner: visitor,
            metadata: self.metadata,
        })
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>, M: Deserialize<'de>> Visitor<'de> for Apart<'_, V, M> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(Fields {
            map: Apart {
                inner: map,
                metadata: self.metadata,
            },
            state: State::Fields,
        })
    }
}

/// The fields of an object, whose metadata is empty and comes last.
struct Fields<'a, A, M> {
    map: Apart<'a, A, M>,
    state: State,
}

enum State {
    Fields,
    /// The empty metadata is next.
    Metadata,
    End,
}

impl<'de, A: MapAccess<'de>, M: Deserialize<'de>> MapAccess<'de> for Fields<'_, A, M> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        while matches!(self.state, State::Fields) {
            let Some(name) = self.map.inner.next_key::<String>()? else {
                self.state = State::Metadata;
                break;
            };
            if name != METADATA {
                return seed.deserialize(name.into_deserializer()).map(Some);
            }
            let metadata = self.map.inner.next_value()?;
            if self.map.metadata.replace(metadata).is_some() {
                return Err(A::Error::duplicate_field(METADATA));
            }
        }
        match self.state {
            State::Metadata => seed.deserialize(METADATA.into_deserializer()).map(Some),
            _ => Ok(None),
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        if matches!(self.state, State::Fields) {
            return self.map.inner.next_value_seed(seed);
        }
        self.state = State::End;
        let empty = std::iter::empty::<(&str, &str)>();
        seed.deserialize(MapDeserializer::new(empty))
    }
}
