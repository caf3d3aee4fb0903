//! The built-in kinds fit what the registry asks of kinds, and kinds of programs stand beside them.

use std::collections::BTreeSet;

use apiloom_kinds::authentication::v1::{SelfSubjectReview, TokenRequest, TokenReview};
use apiloom_kinds::authorization::v1::{
    LocalSubjectAccessReview, SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview,
};
use apiloom_kinds::coordination::v1::Lease;
use apiloom_kinds::core::v1::ServiceAccount;
use apiloom_kinds::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use apiloom_meta::Resource;
use apiloom_registry::Handler;
use async_trait::async_trait;

use super::*;

/// Answers a review with itself, as a part would with its answer.
struct Echo;

#[async_trait]
impl<K: Resource> Handler<K> for Echo {
    async fn create(
        &self,
        _: &RequestContext,
        review: K,
        _: &CreateOptions,
    ) -> Result<K, ApiError> {
        Ok(review)
    }
}

/// Registers the kinds that are served by parts.
fn register_those_of_parts(builder: &mut RegistryBuilder) {
    Role::register(builder);
    ClusterRole::register(builder);
    RoleBinding::register(builder);
    ClusterRoleBinding::register(builder);
    fn register<K: BuiltIn>(builder: &mut RegistryBuilder) {
        K::register(builder);
        builder.handler::<K>(Echo);
    }
    register::<SelfSubjectReview>(builder);
    register::<TokenReview>(builder);
    TokenRequest::register(builder);
    register::<SubjectAccessReview>(builder);
    register::<LocalSubjectAccessReview>(builder);
    register::<SelfSubjectAccessReview>(builder);
    register::<SelfSubjectRulesReview>(builder);
}

#[test]
fn every_declared_kind_is_registered_and_its_schema_passes_the_checks() {
    let mut builder = apiloom_kinds::registry(Memory::new());
    register_all(&mut builder);
    register_those_of_parts(&mut builder);
    builder.check_lazy_kinds();
    let registry = builder.build().unwrap();
    let catalog = registry.catalog();
    let served = catalog.endpoints().iter().map(|e| e.def().gvk());
    let mut served: BTreeSet<String> = served.map(|gvk| format!("{gvk:?}")).collect();
    // The body of a subresource.
    let accounts = catalog
        .endpoints()
        .iter()
        .find(|e| e.def().kind == ServiceAccount::KIND)
        .unwrap();
    let token = &accounts.def().subresources[0];
    served.insert(format!("{:?}", token.input.as_ref().unwrap()));
    let declared = apiloom_kinds::generated::definitions().into_iter();
    let declared: BTreeSet<String> = declared.map(|def| format!("{:?}", def.gvk())).collect();
    assert_eq!(served, declared);
}

#[test]
fn every_declared_kind_has_a_form_in_protobuf() {
    let declared = apiloom_kinds::generated::definitions();
    assert!(!declared.is_empty());
    let without = declared.iter().filter(|def| def.protobuf.is_none());
    let without: Vec<_> = without.map(|def| def.gvk()).collect();
    assert!(without.is_empty(), "clients of Go send them: {without:?}");
    let def = apiloom_kinds::autoscaling::v1::Scale::definition();
    assert!(def.protobuf.is_some(), "it is the body of a subresource");
}

#[test]
fn kinds_that_would_share_keys_are_refused() {
    /// A kind whose keys are those of leases.
    #[apiloom_macros::resource(group = "test.example.com", version = "v1", namespaced, plural = "tenancies", store_path = "leases", crate = apiloom_meta)]
    #[derive(Default)]
    struct Tenancy {
        metadata: ObjectMeta,
    }
    let mut builder = apiloom_kinds::registry(Memory::new());
    Lease::register(&mut builder);
    builder.kind::<Tenancy>();
    let place = Tenancy::definition().place.unwrap();
    let expected = format!(
        "{place}: Lease of coordination.k8s.io/v1 and Tenancy of test.example.com/v1 have the same keys in the store, \
        /registry/leases/: change a `store_path`"
    );
    assert_eq!(builder.build().unwrap_err(), [expected]);
}

#[test]
fn a_users_kind_cannot_have_the_names_of_a_built_in_kind() {
    /// A kind with the group and the resource name of leases.
    #[apiloom_macros::resource(group = "coordination.k8s.io", version = "v1", namespaced, plural = "leases", crate = apiloom_meta)]
    #[derive(Default)]
    struct Tenancy {
        metadata: ObjectMeta,
    }
    let place = Tenancy::definition().place.unwrap();
    let expected = format!(
        "{place}: Tenancy of coordination.k8s.io/v1: the server itself serves the kind Lease and the resource leases of group coordination.k8s.io; \
        choose another group or other names, or leave out the built-in kinds (the feature `apis` of the server's package)"
    );
    // Before the built-in kind, and after it.
    let mut builder = apiloom_kinds::registry(Memory::new());
    builder.kind::<Tenancy>();
    Lease::register(&mut builder);
    assert_eq!(builder.build().unwrap_err(), [expected.as_str()]);
    let mut builder = apiloom_kinds::registry(Memory::new());
    Lease::register(&mut builder);
    builder.kind::<Tenancy>();
    assert_eq!(builder.build().unwrap_err(), [expected.as_str()]);
    // The same names in another group are another kind.
    let mut builder = apiloom_kinds::registry(Memory::new());
    Lease::register(&mut builder);
    builder.kind::<others::Lease>();
    assert!(builder.build().is_ok());
}

mod others {
    use super::ObjectMeta;

    /// A kind with the names of leases, in a group of its own.
    #[apiloom_macros::resource(group = "test.example.com", version = "v1", namespaced, crate = apiloom_meta)]
    #[derive(Default)]
    pub(super) struct Lease {
        pub(super) metadata: ObjectMeta,
    }
}
