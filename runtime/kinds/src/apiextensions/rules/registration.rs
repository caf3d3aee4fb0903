//! The registration of CustomResourceDefinition.

use apiloom_registry::RegistryBuilder;

use super::quota::DefinitionQuota;
use super::strategy::DefinitionStrategy;
use crate::apiextensions::v1::CustomResourceDefinition;
use crate::built_in::BuiltIn;

impl BuiltIn for CustomResourceDefinition {
    fn register(registry: &mut RegistryBuilder) {
        if registry.own_kind_with::<Self>(Box::new(DefinitionStrategy::new())) {
            let room = registry.definition_room();
            registry.admission(|_| Box::new(DefinitionQuota(room)));
        }
    }
}
