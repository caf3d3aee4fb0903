//! Registers built-in kinds with their strategies, each by one call of a builder.

use apiloom_meta::kind::Resource;

use super::builder::RegistryBuilder;

/// A built-in kind, which a server serves after `Builder::built_in`. Each group has a cargo feature: `apis-core` and so on.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a built-in kind",
    note = "register your own kinds with `Builder::kind`; built-in kinds need the cargo feature of their group"
)]
pub trait BuiltIn: Resource {
    /// Registers the kind with its rules.
    #[doc(hidden)]
    fn register(registry: &mut RegistryBuilder);
}

impl RegistryBuilder {
    /// Registers a built-in kind with its rules, as a lazy kind. Doing so twice is the same as once.
    pub fn built_in<K: BuiltIn>(&mut self) {
        K::register(self);
    }
    /// Registers the built-in kinds of all enabled cargo features.
    pub fn all_built_in(&mut self) {
        register_all(self);
    }
}

/// Registers all built-in kinds of the enabled cargo features.
#[allow(unused_variables, reason = "without features there are none")]
pub(super) fn register_all(registry: &mut RegistryBuilder) {
    #[cfg(feature = "apis-core")]
    core::register_all(registry);
    #[cfg(feature = "apis-apiextensions")]
    registry.built_in::<apiloom_kinds::apiextensions::v1::CustomResourceDefinition>();
    #[cfg(feature = "apis-apiregistration")]
    registry.built_in::<apiloom_kinds::apiregistration::v1::APIService>();
    #[cfg(feature = "apis-coordination")]
    registry.built_in::<apiloom_kinds::coordination::v1::Lease>();
    #[cfg(feature = "apis-events")]
    registry.built_in::<apiloom_kinds::events::v1::Event>();
}

#[cfg(feature = "apis-core")]
mod core {
    use apiloom_kinds::core::v1::{ConfigMap, Event, Secret, ServiceAccount};

    use super::{BuiltIn, RegistryBuilder};
    use crate::rules::built_in::config_map::ConfigMapRules;
    use crate::rules::built_in::event::EventRules;
    use crate::rules::built_in::secret::SecretRules;
    use crate::rules::built_in::service_account::ServiceAccountRules;

    pub(super) fn register_all(registry: &mut RegistryBuilder) {
        registry.built_in::<ConfigMap>();
        registry.built_in::<Event>();
        registry.built_in::<Secret>();
        registry.built_in::<ServiceAccount>();
    }

    impl BuiltIn for ConfigMap {
        fn register(registry: &mut RegistryBuilder) {
            registry.own_kind::<Self>(ConfigMapRules);
        }
    }

    impl BuiltIn for Event {
        fn register(registry: &mut RegistryBuilder) {
            let ttl = registry.event_lifetime();
            registry.own_kind::<Self>(EventRules { ttl });
        }
    }

    impl BuiltIn for Secret {
        fn register(registry: &mut RegistryBuilder) {
            registry.own_kind::<Self>(SecretRules);
        }
    }

    impl BuiltIn for ServiceAccount {
        fn register(registry: &mut RegistryBuilder) {
            registry.own_kind::<Self>(ServiceAccountRules);
        }
    }
}

#[cfg(feature = "apis-apiextensions")]
impl BuiltIn for apiloom_kinds::apiextensions::v1::CustomResourceDefinition {
    fn register(registry: &mut RegistryBuilder) {
        use crate::rules::built_in::custom_resource_definition::{
            DefinitionQuota, DefinitionStrategy,
        };
        if registry.own_kind_with::<Self>(Box::new(DefinitionStrategy::new())) {
            let room = registry.definition_room();
            registry.admission(|_| Box::new(DefinitionQuota(room)));
        }
    }
}

#[cfg(feature = "apis-apiregistration")]
impl BuiltIn for apiloom_kinds::apiregistration::v1::APIService {
    fn register(registry: &mut RegistryBuilder) {
        use crate::rules::built_in::api_service::{APIServiceQuota, APIServiceRules};
        if registry.own_kind::<Self>(APIServiceRules) {
            registry.admission(|context| Box::new(APIServiceQuota(context.lister())));
        }
    }
}

#[cfg(feature = "apis-coordination")]
impl BuiltIn for apiloom_kinds::coordination::v1::Lease {
    fn register(registry: &mut RegistryBuilder) {
        use crate::rules::built_in::lease::LeaseRules;
        registry.own_kind::<Self>(LeaseRules);
    }
}

/// Its objects are the events of the core group, which are served too.
#[cfg(feature = "apis-events")]
impl BuiltIn for apiloom_kinds::events::v1::Event {
    fn register(registry: &mut RegistryBuilder) {
        use crate::rules::built_in::event::strict::StrictEventRules;
        registry.built_in::<apiloom_kinds::core::v1::Event>();
        let ttl = registry.event_lifetime();
        registry.own_kind::<Self>(StrictEventRules { ttl });
    }
}
