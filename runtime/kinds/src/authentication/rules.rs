//! The registration of reviews. They are served where a part answers them.

use apiloom_registry::{RegistryBuilder, Strategy};

use super::v1::SelfSubjectReview;
use crate::built_in::BuiltIn;

impl BuiltIn for SelfSubjectReview {
    fn register(registry: &mut RegistryBuilder) {
        registry.own_kind::<Self>(ReviewRules);
    }
}

/// No rules but those of the schema.
struct ReviewRules;

impl Strategy<SelfSubjectReview> for ReviewRules {
    const HAS_DEFAULTS: bool = false;
}
