//! The error of a text that is no pattern.

/// Why a text is no pattern, in the words of Go's package `regexp`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {kind}: `{part}`")]
pub struct PatternError {
    pub(super) kind: &'static str,
    pub(super) part: String,
}
