//! What a validating walk over a document has found so far.

use crate::error::MAX_CAUSES;
use crate::field::FieldError;

/// The state of a walk: what was found so far.
#[derive(Default)]
pub(crate) struct Walk {
    pub(super) errors: Vec<FieldError>,
    /// Number of errors found; while probing they are only counted.
    pub(super) found: usize,
    /// Only whether there is an error counts: the walk over a branch of a choice.
    pub(super) probing: bool,
}

impl Walk {
    /// Records an error. Its text and path are made only for as many errors as an answer tells.
    pub(crate) fn fail(&mut self, error: impl FnOnce() -> FieldError) {
        self.found += 1;
        if !self.probing && self.errors.len() < MAX_CAUSES {
            self.errors.push(error());
        }
    }
}
