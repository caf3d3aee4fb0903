//! State of a validating walk over a document.

use crate::error::MAX_CAUSES;
use crate::field::FieldError;

/// The errors of a walk so far.
#[derive(Default)]
pub(crate) struct Walk {
    pub(super) errors: Vec<FieldError>,
    /// Number of errors; while probing they are only counted.
    pub(super) found: usize,
    /// Whether only the existence of an error matters, as for a branch of a choice.
    pub(super) probing: bool,
}

impl Walk {
    /// Records an error. Text and path are built only for as many errors as a response contains.
    pub(crate) fn fail(&mut self, error: impl FnOnce() -> FieldError) {
        self.found += 1;
        if !self.probing && self.errors.len() < MAX_CAUSES {
            self.errors.push(error());
        }
    }
}
