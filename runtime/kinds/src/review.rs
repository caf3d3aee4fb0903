//! Reviews: kinds that are created and answered, and not stored.

use apiloom_meta::Resource;
use apiloom_registry::Strategy;

/// No rules but those of the schema.
pub(crate) struct ReviewRules;

impl<K: Resource> Strategy<K> for ReviewRules {
    const HAS_DEFAULTS: bool = false;
}

/// Makes built-in kinds of these reviews.
macro_rules! reviews {
    ($($kind:ident)+) => {$(
        impl $crate::built_in::BuiltIn for $kind {
            fn register(registry: &mut apiloom_registry::RegistryBuilder) {
                registry.own_kind::<Self>($crate::review::ReviewRules);
            }
        }
    )+};
}

pub(crate) use reviews;
