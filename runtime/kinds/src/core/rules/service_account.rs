//! The strategy of core/v1 ServiceAccount.

use apiloom_registry::{RegistryBuilder, RequestContext, Strategy};

use crate::built_in::BuiltIn;
use crate::core::v1::{ObjectReference, ServiceAccount};

impl BuiltIn for ServiceAccount {
    fn register(registry: &mut RegistryBuilder) {
        registry.own_kind::<Self>(ServiceAccountRules);
    }
}

/// The strategy of service accounts.
struct ServiceAccountRules;

impl Strategy<ServiceAccount> for ServiceAccountRules {
    const HAS_DEFAULTS: bool = false;

    fn prepare_for_create(&self, _ctx: &RequestContext, object: &mut ServiceAccount) {
        keep_names(object);
    }
    fn prepare_for_update(
        &self,
        _ctx: &RequestContext,
        new: &mut ServiceAccount,
        _old: &ServiceAccount,
    ) {
        keep_names(new);
    }
}

/// Secrets are of the account's own namespace: only the names of references are kept.
fn keep_names(object: &mut ServiceAccount) {
    for secret in &mut object.secrets {
        *secret = ObjectReference {
            name: secret.name.take(),
            ..ObjectReference::default()
        };
    }
}
