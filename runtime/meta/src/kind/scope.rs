//! Scope of a kind's objects.

/// Whether objects are in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Objects are in a namespace.
    Namespaced,
    /// Objects are not in namespaces.
    Cluster,
}
