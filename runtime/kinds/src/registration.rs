//! Registers built-in kinds with a registry: those of every server, and all others.

use std::sync::Arc;

use apiloom_registry::RegistryBuilder;
use apiloom_storage::Storage;

use crate::autoscaling::v1::Scale;
use crate::built_in::BuiltIn as _;
use crate::core::v1::Namespace;

/// A builder of a registry over a store, with the kinds of every server: [`Namespace`], and [`Scale`] as the body of the
/// subresource `scale`.
pub fn registry(store: Arc<dyn Storage>) -> RegistryBuilder {
    let mut registry = RegistryBuilder::new(store);
    Namespace::register(&mut registry);
    registry.scale_kind::<Scale>();
    registry
}

/// Registers the built-in kinds of all enabled cargo features, but those that a part serves: reviews, roles and bindings.
#[allow(unused_variables, reason = "without features there are none")]
pub fn register_all(registry: &mut RegistryBuilder) {
    #[cfg(feature = "core")]
    {
        use crate::core::v1::{ConfigMap, Event, Secret, ServiceAccount};
        ConfigMap::register(registry);
        Event::register(registry);
        Secret::register(registry);
        ServiceAccount::register(registry);
    }
    #[cfg(feature = "admissionregistration")]
    {
        use crate::admissionregistration::v1::{
            MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
        };
        MutatingWebhookConfiguration::register(registry);
        ValidatingWebhookConfiguration::register(registry);
    }
    #[cfg(feature = "apiextensions")]
    crate::apiextensions::v1::CustomResourceDefinition::register(registry);
    #[cfg(feature = "apiregistration")]
    crate::apiregistration::v1::APIService::register(registry);
    #[cfg(feature = "coordination")]
    crate::coordination::v1::Lease::register(registry);
    #[cfg(feature = "events")]
    crate::events::v1::Event::register(registry);
}
