//! The registration of reviews. They are served where a part answers them, which also checks them: kube-apiserver's errors about them name
//! no kind.

use apiloom_registry::{RegistryBuilder, Strategy};

use super::v1::{
    LocalSubjectAccessReview, SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview,
};
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

reviews! { LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview }
