//! JSON patch (RFC 6902) and JSON merge patch (RFC 7386) over an erased object.

use serde_json::Value;

/// A parsed patch.
#[derive(Clone, Debug)]
pub enum Patch {
    /// RFC 6902.
    Json(json_patch::Patch),
    /// RFC 7386.
    Merge(Value),
}

/// Why a patch was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch document itself is malformed.
    #[error("error decoding patch: {0}")]
    Malformed(String),
    /// More operations than [`MAX_OPERATIONS`].
    #[error("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {0}")]
    TooManyOperations(usize),
    /// An operation could not be applied: `test` failed, a path is missing.
    #[error("{0}")]
    NotApplicable(String),
}

/// The most operations a JSON patch may hold, as kube-apiserver has it.
pub const MAX_OPERATIONS: usize = 10_000;

impl Patch {
    /// Reads a JSON patch.
    ///
    /// # Errors
    /// [`PatchError::Malformed`], [`PatchError::TooManyOperations`].
    pub fn parse_json(_body: &[u8]) -> Result<Self, PatchError> {
        todo!()
    }
    /// Reads a merge patch; it must be a JSON object.
    ///
    /// # Errors
    /// [`PatchError::Malformed`].
    pub fn parse_merge(_body: &[u8]) -> Result<Self, PatchError> {
        todo!()
    }
    /// Applies the patch; the target is unchanged when it fails.
    ///
    /// # Errors
    /// [`PatchError::NotApplicable`].
    pub fn apply(&self, _target: &mut Value) -> Result<(), PatchError> {
        todo!()
    }
}
