//! Types that can be part of an object.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value;

use crate::hooks::Hooks;

/// A type that can be part of an object; gives the hooks that its schema cannot express.
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
    ($($plain:ty),* $(,)?) => { $(impl ApiType for $plain {})* };
}

plain!(
    bool, char, String, str, i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, f32, f64, Value
);
plain!(serde_json::Map<String, Value>, serde_json::Number);
plain!(
    crate::types::ObjectMeta,
    crate::types::ListMeta,
    crate::types::OwnerReference,
    crate::types::ManagedFieldsEntry
);
plain!(
    crate::types::Quantity,
    crate::types::IntOrString,
    crate::types::Time,
    crate::types::MicroTime,
    crate::types::Duration
);
plain!(
    crate::types::Condition,
    crate::types::ConditionStatus,
    crate::types::Status
);
plain!(
    crate::types::LabelSelector,
    crate::types::LabelSelectorRequirement,
    crate::types::LabelSelectorOperator
);

macro_rules! transparent {
    ($($pointer:ident),*) => {
        $(impl<T: ApiType + ?Sized> ApiType for $pointer<T> {
            fn hooks() -> Hooks {
                T::hooks()
            }
        })*
    };
}

transparent!(Box, Arc, Rc);

impl<T: ApiType> ApiType for Option<T> {
    fn hooks() -> Hooks {
        T::hooks()
    }
}

macro_rules! lists {
    ($($list:ident),*) => {
        $(impl<T: ApiType> ApiType for $list<T> {
            fn hooks() -> Hooks {
                hooks_of_items::<T>()
            }
        })*
    };
}

lists!(Vec, VecDeque, BTreeSet);

impl<T: ApiType, S> ApiType for HashSet<T, S> {
    fn hooks() -> Hooks {
        hooks_of_items::<T>()
    }
}

impl<K, V: ApiType> ApiType for BTreeMap<K, V> {
    fn hooks() -> Hooks {
        hooks_of_items::<V>()
    }
}

impl<K, V: ApiType, S> ApiType for HashMap<K, V, S> {
    fn hooks() -> Hooks {
        hooks_of_items::<V>()
    }
}
