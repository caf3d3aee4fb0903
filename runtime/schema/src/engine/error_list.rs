//! The errors of a value and of everything in it.

use crate::field::FieldError;
use crate::field::MAX_CAUSES;

/// Errors in the order in which they were found, as many as a response contains.
#[derive(Debug, Default)]
pub(crate) struct ErrorList {
    kept: Vec<FieldError>,
    /// Number of errors, with those that are not kept.
    found: usize,
    /// Whether only the existence of an error matters, as for a branch of a choice.
    counts_only: bool,
}

/// How many errors there were.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    kept: usize,
    found: usize,
}

impl ErrorList {
    /// A list that counts errors, and keeps none.
    pub(super) fn counting() -> Self {
        Self {
            counts_only: true,
            ..Self::default()
        }
    }

    /// Adds an error. Text and path are built only for those that are kept.
    pub(crate) fn add(&mut self, error: impl FnOnce() -> FieldError) {
        self.found += 1;
        if self.keeps_more() {
            self.kept.push(error());
        }
    }

    /// Adds an error that is not kept.
    pub(super) fn count(&mut self) {
        self.found += 1;
    }

    /// Adds the errors of a part of the value, or of an alternative.
    pub(super) fn append(&mut self, other: Self) {
        self.found += other.found - other.kept.len();
        for error in other.kept {
            self.add(|| error);
        }
    }

    /// Number of errors.
    pub(super) fn found(&self) -> usize {
        self.found
    }

    /// Whether further errors are kept.
    pub(super) fn keeps_more(&self) -> bool {
        !self.counts_only && self.kept.len() < MAX_CAUSES
    }

    /// Whether only the existence of an error matters.
    pub(super) fn counts_only(&self) -> bool {
        self.counts_only
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            kept: self.kept.len(),
            found: self.found,
        }
    }

    /// Whether errors were added.
    pub(super) fn has_since(&self, mark: Mark) -> bool {
        self.found > mark.found
    }

    /// Removes the errors that were added.
    pub(super) fn rewind(&mut self, mark: Mark) {
        self.kept.truncate(mark.kept);
        self.found = mark.found;
    }

    /// The kept errors.
    pub(super) fn into_errors(self) -> Vec<FieldError> {
        self.kept
    }
}
