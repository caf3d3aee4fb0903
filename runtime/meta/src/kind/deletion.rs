//! Rules for the deletion of objects.

use crate::path::JsonPath;

/// How objects of a kind are deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeletionRule {
    /// An object with `metadata.finalizers` is marked for deletion, as is one that is deleted gracefully. Others are
    /// removed.
    Object(ObjectDeletion),
    /// The object contains others, like a namespace: it is marked for deletion until its content is deleted, according
    /// to a separate list of finalizers. Propagation policies do not apply, and the response to a delete is the
    /// object.
    Container {
        /// Path of the list of finalizers, in addition to `metadata.finalizers`.
        finalizers: JsonPath,
        /// Path of the string that becomes `Terminating` when the object is marked.
        phase: JsonPath,
    },
}

/// The choices of a kind for the deletion of its objects. By default they are those of custom resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectDeletion {
    /// Grace period of a delete that asks for none, in seconds; `None` if objects are not deleted gracefully.
    ///
    /// With a grace period, a delete only sets `deletionTimestamp` to its end. The server never removes the object by
    /// itself: the client that runs it does, by a delete with a grace period of 0.
    pub grace_seconds: Option<u32>,
    /// What happens to the dependents if neither the request nor the object's finalizers say it.
    pub dependents: Dependents,
    /// Whether the response to the removal of an object is its last state instead of a Status.
    pub returns_object: bool,
}

/// What happens to the dependents of a deleted object by default (kube-apiserver's `GarbageCollectionPolicy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dependents {
    /// The garbage collector deletes them.
    #[default]
    Delete,
    /// They are orphaned: the object gets the finalizer `orphan`.
    Orphan,
    /// Objects have no dependents: propagation policies are ignored, and set no finalizer.
    Unsupported,
}

impl Default for DeletionRule {
    fn default() -> Self {
        Self::Object(ObjectDeletion::default())
    }
}

impl DeletionRule {
    /// Phase of a container that is marked for deletion.
    pub const TERMINATING: &str = "Terminating";

    /// Path of the list of finalizers, in addition to `metadata.finalizers`; `None` if there is none.
    pub fn own_finalizers(&self) -> Option<&JsonPath> {
        match self {
            Self::Object(_) => None,
            Self::Container { finalizers, .. } => Some(finalizers),
        }
    }
    /// Whether the response to the removal of an object is the object, not a Status.
    pub fn returns_object(&self) -> bool {
        match self {
            Self::Object(rule) => rule.returns_object,
            Self::Container { .. } => true,
        }
    }
}
