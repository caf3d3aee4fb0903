//! The built-in kinds fit what the registry asks of kinds.

use super::*;

#[test]
fn every_declared_kind_is_registered_and_its_schema_passes_the_checks() {
    let mut builder = Registry::builder(Memory::new());
    builder.all_built_in();
    builder.check_lazy_kinds();
    let registry = builder.build().unwrap();
    let catalog = registry.catalog();
    let served = catalog.endpoints().iter().map(|e| e.def().gvk());
    let served: BTreeSet<String> = served.map(|gvk| format!("{gvk:?}")).collect();
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

#[cfg(feature = "apis-coordination")]
#[test]
fn kinds_that_would_share_keys_are_refused() {
    use apiloom_kinds::coordination::v1::Lease;
    /// A kind of the core group whose keys are those of leases.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    struct Tenancy {
        metadata: ObjectMeta,
    }
    impl ApiType for Tenancy {}
    resource!(Tenancy, "v1", "Tenancy", "tenancies", |def| ResourceDef {
        store_path: Some("leases".into()),
        ..def
    });
    let mut builder = Registry::builder(Memory::new());
    builder.built_in::<Lease>();
    builder.kind::<Tenancy>();
    assert_eq!(
        builder.build().unwrap_err(),
        [
            "Lease of coordination.k8s.io/v1 and Tenancy of test.example.com/v1 have the same keys in the store, /registry/leases/: change a `store_path`"
        ]
    );
}

#[cfg(feature = "apis-coordination")]
#[test]
fn a_users_kind_cannot_have_the_names_of_a_built_in_kind() {
    use apiloom_kinds::coordination::v1::Lease;
    use apiloom_meta::kind::Place;
    /// A kind with the resource name of leases.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    struct Tenancy {
        metadata: ObjectMeta,
    }
    impl ApiType for Tenancy {}
    resource!(Tenancy, "v1", "Tenancy", "leases", |def| ResourceDef {
        group: "coordination.k8s.io".into(),
        place: Some(Place {
            file: "src/v1.rs",
            line: 7,
        }),
        ..def
    });
    let expected = "src/v1.rs:7: Tenancy of coordination.k8s.io/v1: the server itself serves the kind Lease and the resource leases of group coordination.k8s.io; \
        choose another group or other names, or leave out the built-in kinds (the feature `apis` of the server's package)";
    // Before the built-in kind, and after it.
    let mut builder = Registry::builder(Memory::new());
    builder.kind::<Tenancy>();
    builder.built_in::<Lease>();
    assert_eq!(builder.build().unwrap_err(), [expected]);
    let mut builder = Registry::builder(Memory::new());
    builder.built_in::<Lease>();
    builder.kind::<Tenancy>();
    assert_eq!(builder.build().unwrap_err(), [expected]);
    // The same names in another group are another kind.
    let mut builder = Registry::builder(Memory::new());
    builder.built_in::<Lease>();
    builder.kind::<Leases>();
    assert!(builder.build().is_ok());
}

/// A kind with the resource name of leases, in a group of its own.
#[cfg(feature = "apis-coordination")]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Leases {
    metadata: ObjectMeta,
}
#[cfg(feature = "apis-coordination")]
impl ApiType for Leases {}
#[cfg(feature = "apis-coordination")]
resource!(Leases, "v1", "Lease", "leases", |def| def);
