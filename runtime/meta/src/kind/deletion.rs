//! Rules for the deletion of objects.

use apiloom_vocabulary::ObjectDeletion;

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
