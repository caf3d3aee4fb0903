//! Where the objects of a client are: in a namespace, in all of them, or in none.

use std::fmt;

mod sealed {
    pub trait Sealed {}
}

/// Where the objects of a [`ResourceClient`](super::ResourceClient) are.
pub trait Scope: sealed::Sealed + Clone + fmt::Debug + Send + Sync + 'static {
    /// The namespace of the paths, if they have one.
    fn namespace(&self) -> Option<&str>;
}

/// A scope in which a name stands for one object.
#[diagnostic::on_unimplemented(
    message = "objects in all namespaces can only be listed and watched",
    label = "needs one namespace",
    note = "use `Client::namespaced` with the namespace of the object"
)]
pub trait ObjectScope: Scope {}

/// A scope of objects that are in namespaces.
#[diagnostic::on_unimplemented(
    message = "objects of the cluster are in no namespace",
    label = "needs a client of a namespaced kind"
)]
pub trait NamespaceScope: Scope {}

/// One namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Namespaced {
    namespace: String,
}

impl Namespaced {
    /// The namespace with this name. An empty one is refused by requests: [`AllNamespaces`] is a scope of its own.
    pub fn new(namespace: impl Into<String>) -> Self {
        let namespace = namespace.into();
        Self { namespace }
    }
}

/// All namespaces, for lists and watches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AllNamespaces;

/// No namespace: objects of the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cluster;

impl sealed::Sealed for Namespaced {}
impl sealed::Sealed for AllNamespaces {}
impl sealed::Sealed for Cluster {}

impl Scope for Namespaced {
    fn namespace(&self) -> Option<&str> {
        Some(&self.namespace)
    }
}

impl Scope for AllNamespaces {
    fn namespace(&self) -> Option<&str> {
        None
    }
}

impl Scope for Cluster {
    fn namespace(&self) -> Option<&str> {
        None
    }
}

impl NamespaceScope for Namespaced {}
impl NamespaceScope for AllNamespaces {}

impl ObjectScope for Namespaced {}
impl ObjectScope for Cluster {}
