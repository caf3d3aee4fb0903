//! The errors of patches.

/// Maximum number of operations in a JSON patch, as in kube-apiserver.
pub const MAX_OPERATIONS: usize = 10_000;

/// Error of a patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The document of a JSON patch or a merge patch is malformed.
    #[error("error decoding patch: {0}")]
    Malformed(String),
    /// There are more operations than [`MAX_OPERATIONS`].
    #[error("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {0}")]
    TooManyOperations(usize),
    /// An operation of a JSON patch cannot be applied: a `test` failed, or a path is missing.
    #[error("{0}")]
    NotApplicable(String),
    /// The document of a strategic merge patch is malformed, or a value in it has not the type of its place.
    #[error("{0}")]
    BadFormat(String),
    /// A strategic merge patch cannot be merged into the document: an item has no merge key, its list is not in the
    /// order that it declares, or a list of lists would be merged.
    #[error("{0}")]
    Unmergeable(String),
    /// The value of `$patch` in a strategic merge patch is unknown: for kube-apiserver an error of the server.
    #[error("{0}")]
    UnknownDirective(String),
}
