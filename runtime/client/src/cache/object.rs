//! The key of an object.

use std::fmt;

use apiloom_meta::kind::SmolStr;

/// The metadata that a store, its indexes and a reflector read.
pub use crate::object::HasMetadata as CacheObject;

/// Namespace and name of an object. Printed as `namespace/name`, or as the name alone of a cluster-scoped object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The namespace; empty for a cluster-scoped object.
    pub namespace: SmolStr,
    /// The name.
    pub name: SmolStr,
}

impl ObjectKey {
    /// A key of these two; the namespace of a cluster-scoped object is empty.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: SmolStr::new(namespace),
            name: SmolStr::new(name),
        }
    }
    /// The key of an object.
    pub fn of(object: &impl CacheObject) -> Self {
        Self::new(object.namespace(), object.name())
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            return f.write_str(&self.name);
        }
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
