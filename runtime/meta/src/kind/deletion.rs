//! The rule by which objects of a kind are deleted.

use crate::path::JsonPath;

/// How objects of a kind are deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeletionRule {
    /// An object with `metadata.finalizers` is marked, any other is removed. A delete of the last state answers a Status.
    #[default]
    Object,
    /// The object contains others, such as a namespace: it is marked until its content is gone, which its own list of
    /// finalizers says. Propagation policies do not apply to it, and a delete answers the object.
    Container {
        /// The list of finalizers besides `metadata.finalizers`.
        finalizers: JsonPath,
        /// The text field that is `Terminating` in a marked object.
        phase: JsonPath,
    },
}

impl DeletionRule {
    /// The phase of a marked container.
    pub const TERMINATING: &str = "Terminating";

    /// The list of finalizers besides `metadata.finalizers`.
    pub fn own_finalizers(&self) -> Option<&JsonPath> {
        match self {
            Self::Object => None,
            Self::Container { finalizers, .. } => Some(finalizers),
        }
    }
}
