//! The metadata of an object that clients and caches read.

use apiloom_meta::Resource;

/// An object with metadata. All kinds of `#[apiloom::resource]` have it; a type for kinds that are not compiled, or of
/// another crate, implements it by itself.
pub trait HasMetadata: Send + Sync + 'static {
    /// The namespace; empty for a cluster-scoped object.
    fn namespace(&self) -> &str;
    /// The name; empty before a server generates one.
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

/// The methods of [`HasMetadata`] for a type that has an `ObjectMeta`.
macro_rules! metadata_methods {
    ($this:ident => $metadata:expr) => {
        fn namespace(&$this) -> &str {
            $metadata.namespace.as_deref().unwrap_or_default()
        }
        fn name(&$this) -> &str {
            $metadata.name.as_deref().unwrap_or_default()
        }
        fn uid(&$this) -> &str {
            $metadata.uid.as_deref().unwrap_or_default()
        }
        fn resource_version(&$this) -> &str {
            $metadata.resource_version.as_deref().unwrap_or_default()
        }
        fn label(&$this, key: &str) -> Option<&str> {
            $metadata.labels.get(key).map(String::as_str)
        }
        fn owner_uids(&$this) -> Vec<&str> {
            let owners = $metadata.owner_references.iter();
            owners.map(|owner| &*owner.uid).collect()
        }
    };
}
pub(crate) use metadata_methods;

impl<K: Resource> HasMetadata for K {
    metadata_methods!(self => self.metadata());
}
