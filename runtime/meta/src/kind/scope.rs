//! Scope of a kind's objects as traits: a client of the other scope does not compile.

/// A kind whose objects are in namespaces: `#[apiloom::resource]` implements it for the key `namespaced`.
///
/// A kind whose `Resource` is written by hand says its scope by `impl NamespacedKind for Flunder {}`.
#[diagnostic::on_unimplemented(
    message = "the objects of `{Self}` are in no namespace",
    label = "this kind",
    note = "use `cluster` in place of `namespaced` or `all_namespaces`, and `cluster_informer` in place of `informer`; a kind has the scope that its `#[apiloom::resource]` names"
)]
pub trait NamespacedKind {}

/// A kind whose objects are in no namespace: `#[apiloom::resource]` implements it for the key `cluster`.
///
/// A kind whose `Resource` is written by hand says its scope by `impl ClusterKind for Fischer {}`.
#[diagnostic::on_unimplemented(
    message = "the objects of `{Self}` are in namespaces",
    label = "this kind",
    note = "use `namespaced` or `all_namespaces` in place of `cluster`, and `informer` in place of `cluster_informer`; a kind has the scope that its `#[apiloom::resource]` names"
)]
pub trait ClusterKind {}
