//! What a cache reads of an object, and the key of an object.

use std::fmt;

use apiloom_meta::Resource;
use apiloom_meta::kind::SmolStr;

/// The metadata that a store, its indexes and a reflector read. All kinds of `#[apiloom::resource]` have it; a type for
/// kinds that are not compiled implements it by itself.
pub trait CacheObject: Send + Sync + 'static {
    /// The namespace; empty for a cluster-scoped object.
    fn namespace(&self) -> &str;
    /// The name.
    fn name(&self) -> &str;
    /// The uid; empty if the server sets none.
    fn uid(&self) -> &str;
    /// The resourceVersion; empty if the server sets none.
    fn resource_version(&self) -> &str;
    /// The value of a label.
    fn label(&self, key: &str) -> Option<&str>;
    /// The uids of the owners, as `metadata.ownerReferences` lists them.
    fn owner_uids(&self) -> Vec<&str>;
}

impl<K: Resource> CacheObject for K {
    fn namespace(&self) -> &str {
        self.metadata().namespace.as_deref().unwrap_or_default()
    }
    fn name(&self) -> &str {
        self.metadata().name.as_deref().unwrap_or_default()
    }
    fn uid(&self) -> &str {
        self.metadata().uid.as_deref().unwrap_or_default()
    }
    fn resource_version(&self) -> &str {
        let version = &self.metadata().resource_version;
        version.as_deref().unwrap_or_default()
    }
    fn label(&self, key: &str) -> Option<&str> {
        self.metadata().labels.get(key).map(String::as_str)
    }
    fn owner_uids(&self) -> Vec<&str> {
        let owners = &self.metadata().owner_references;
        owners.iter().map(|owner| &*owner.uid).collect()
    }
}

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
