//! Endpoints, which only their schema judges.

use apiloom_registry::{RegistryBuilder, Strategy};

use crate::built_in::BuiltIn;
use crate::core::v1::Endpoints;

impl BuiltIn for Endpoints {
    fn register(registry: &mut RegistryBuilder) {
        registry.own_kind::<Self>(EndpointsRules);
    }
}

/// The strategy of endpoints.
struct EndpointsRules;

impl Strategy<Endpoints> for EndpointsRules {
    const HAS_DEFAULTS: bool = false;
}
