//! State of a validating walk over a document.

use super::error_list::ErrorList;
use super::validation_dialect::ValidationDialect;
use crate::field::FieldError;

/// The dialect of a walk, and what it has found so far.
pub(super) struct Walk {
    pub(super) dialect: &'static ValidationDialect,
    pub(super) errors: ErrorList,
    /// How many rules the values match, if the dialect asks.
    pub(super) matches: usize,
}

impl Walk {
    pub(super) fn new(dialect: &'static ValidationDialect, errors: ErrorList) -> Self {
        Self {
            dialect,
            errors,
            matches: 0,
        }
    }

    /// Records an error. Text and path are built only for as many errors as a response contains.
    pub(super) fn fail(&mut self, error: impl FnOnce() -> FieldError) {
        self.errors.add(error);
    }
}
