//! Types that can be part of an object.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value;

use crate::hooks::Hooks;
use crate::protobuf::ProtobufType;
use crate::types;

/// A type that can be part of an object; gives the hooks that its schema cannot express, and its form in Protobuf.
///
/// Implemented by `#[apiloom::api]`. A type without checks uses the default.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand inside a Kubernetes object",
    note = "put `#[apiloom::api]` on the type"
)]
pub trait ApiType {
    /// The hooks of the type and of its fields.
    fn hooks() -> Hooks {
        Hooks::default()
    }

    /// The type of its fields in Protobuf; `None` if it has none, such as a struct whose fields have no numbers.
    const PROTOBUF: Option<ProtobufType> = None;

    /// The type of a `Vec` of it in Protobuf: `bytes` of `u8`, and a list of all others.
    #[doc(hidden)]
    const PROTOBUF_OF_VEC: Option<ProtobufType> = list_of(&Self::PROTOBUF);
}

const fn list_of(items: &'static Option<ProtobufType>) -> Option<ProtobufType> {
    match items {
        Some(items) => Some(ProtobufType::List(items)),
        None => None,
    }
}

const fn map_of(values: &'static Option<ProtobufType>) -> Option<ProtobufType> {
    match values {
        Some(values) => Some(ProtobufType::Map(values)),
        None => None,
    }
}

/// Hooks for the elements of a list or the values of a map.
fn hooks_of_items<T: ApiType + ?Sized>() -> Hooks {
    let items = T::hooks();
    Hooks {
        items: (!items.is_empty()).then(|| Box::new(items)),
        ..Hooks::default()
    }
}

macro_rules! plain {
    ($($protobuf:expr => $($plain:ty),+;)*) => { $($(
        impl ApiType for $plain {
            const PROTOBUF: Option<ProtobufType> = Some($protobuf);
        }
    )+)* };
}

plain! {
    ProtobufType::Boolean => bool;
    ProtobufType::Text => char, String, str;
    ProtobufType::Int32 => i8, i16, i32, u16;
    ProtobufType::Int64 => i64, isize;
    ProtobufType::Uint32 => u32;
    ProtobufType::Uint64 => u64, usize;
    ProtobufType::Float => f32;
    ProtobufType::Double => f64;
    ProtobufType::RawExtension => Value, serde_json::Map<String, Value>, serde_json::Number;
    ProtobufType::Quantity => types::Quantity;
    ProtobufType::Time => types::Time;
    ProtobufType::MicroTime => types::MicroTime;
    ProtobufType::Duration => types::Duration;
}

impl ApiType for u8 {
    const PROTOBUF: Option<ProtobufType> = Some(ProtobufType::Int32);
    const PROTOBUF_OF_VEC: Option<ProtobufType> = Some(ProtobufType::Bytes);
}

macro_rules! transparent {
    ($($pointer:ident),*) => {
        $(impl<T: ApiType + ?Sized> ApiType for $pointer<T> {
            fn hooks() -> Hooks {
                T::hooks()
            }
            const PROTOBUF: Option<ProtobufType> = T::PROTOBUF;
        })*
    };
}

transparent!(Box, Arc, Rc);

impl<T: ApiType> ApiType for Option<T> {
    fn hooks() -> Hooks {
        T::hooks()
    }
    const PROTOBUF: Option<ProtobufType> = T::PROTOBUF;
}

macro_rules! lists {
    ($($list:ident),*) => {
        $(impl<T: ApiType> ApiType for $list<T> {
            fn hooks() -> Hooks {
                hooks_of_items::<T>()
            }
            const PROTOBUF: Option<ProtobufType> = list_of(&T::PROTOBUF);
        })*
    };
}

lists!(VecDeque, BTreeSet);

impl<T: ApiType> ApiType for Vec<T> {
    fn hooks() -> Hooks {
        hooks_of_items::<T>()
    }
    const PROTOBUF: Option<ProtobufType> = T::PROTOBUF_OF_VEC;
}

impl<T: ApiType, S> ApiType for HashSet<T, S> {
    fn hooks() -> Hooks {
        hooks_of_items::<T>()
    }
    const PROTOBUF: Option<ProtobufType> = list_of(&T::PROTOBUF);
}

impl<K, V: ApiType> ApiType for BTreeMap<K, V> {
    fn hooks() -> Hooks {
        hooks_of_items::<V>()
    }
    const PROTOBUF: Option<ProtobufType> = map_of(&V::PROTOBUF);
}

impl<K, V: ApiType, S> ApiType for HashMap<K, V, S> {
    fn hooks() -> Hooks {
        hooks_of_items::<V>()
    }
    const PROTOBUF: Option<ProtobufType> = map_of(&V::PROTOBUF);
}
