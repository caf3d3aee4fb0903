//! What the metadata of an object says about its place, its owners and its deletion.

use apiloom_meta::kind::SmolStr;

use super::uid::Uid;

/// Group, kind, namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// API group; empty for the core group.
    pub group: SmolStr,
    /// Kind.
    pub kind: SmolStr,
    /// Empty for cluster-scoped kinds.
    pub namespace: SmolStr,
    /// Name of the object.
    pub name: SmolStr,
}

/// An owner reference of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Uid of the owner.
    pub uid: Uid,
    /// API group of the owner; empty for the core group.
    pub group: SmolStr,
    /// Kind of the owner.
    pub kind: SmolStr,
    /// Name of the owner.
    pub name: SmolStr,
    /// Whether a foreground deletion of the owner waits for the object.
    pub blocks: bool,
}

impl Reference {
    /// Whether it describes the object at a place, for a dependent in a namespace.
    pub fn describes(&self, place: &Place, namespace: &str) -> bool {
        self.group == place.group
            && self.kind == place.kind
            && self.name == place.name
            && (place.namespace.is_empty() || place.namespace == namespace)
    }
}

/// What the finalizers of an object ask of the garbage collector when it is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finalizer {
    /// `orphan`: its dependents lose the reference to it.
    Orphan,
    /// `foregroundDeletion`: its dependents are deleted before it.
    Foreground,
}

/// The state of an object, as its metadata says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedObject {
    /// Uid of the object.
    pub uid: Uid,
    /// Where the object is.
    pub place: Place,
    /// The owner references of the object.
    pub owners: Vec<Reference>,
    /// Whether it has a deletionTimestamp.
    pub is_deleting: bool,
    /// What its finalizers ask of the garbage collector.
    pub finalizer: Option<Finalizer>,
}
