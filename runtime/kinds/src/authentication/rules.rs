//! The registration of reviews and of requests for tokens. They are served where a part answers them, which also checks them.

#[cfg(feature = "core")]
mod tokens;

use apiloom_registry::{RegistryBuilder, Strategy};

#[cfg(feature = "core")]
pub use self::tokens::{ServiceAccountTokens, TokenIssuer};

use super::v1::{SelfSubjectReview, TokenReview};
use crate::built_in::BuiltIn;

/// No rules but those of the schema.
struct ReviewRules;

macro_rules! reviews {
    ($($kind:ident)+) => {$(
        impl BuiltIn for $kind {
            fn register(registry: &mut RegistryBuilder) {
                registry.own_kind::<Self>(ReviewRules);
            }
        }

        impl Strategy<$kind> for ReviewRules {
            const HAS_DEFAULTS: bool = false;
        }
    )+};
}

reviews! { SelfSubjectReview TokenReview }
