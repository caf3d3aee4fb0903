//! The result of the validation of a value.

use std::collections::HashSet;

use serde_json::Value;

use crate::error::MAX_CAUSES;
use crate::field::{FieldError, FieldPath};

/// The errors of a value, and how much of its schema it matches: of several alternatives that do not fit, the errors of
/// the best one are reported.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    errors: Vec<FieldError>,
    /// Errors that were not kept, since a response would not contain them.
    dropped: usize,
    pub(super) matches: usize,
}

impl Outcome {
    /// Of a valid value that matches this much.
    pub(super) fn matching(matches: usize) -> Self {
        Self {
            matches,
            ..Self::default()
        }
    }

    pub(super) fn has_errors(&self) -> bool {
        !self.errors.is_empty() || self.dropped > 0
    }

    /// Adds an error, unless there are as many as a response contains.
    pub(super) fn add(&mut self, error: impl FnOnce() -> FieldError) {
        if self.errors.len() < MAX_CAUSES {
            self.errors.push(error());
        } else {
            self.dropped += 1;
        }
    }

    /// The errors, those with equal texts once.
    pub(super) fn into_errors(self) -> Vec<FieldError> {
        let mut seen = HashSet::new();
        let mut errors = self.errors;
        errors.retain(|error| seen.insert((error.path.clone(), error.body.clone())));
        errors
    }

    /// Adds the errors of a part of the value, or of an alternative.
    pub(super) fn merge(&mut self, other: Self) {
        self.matches += other.matches;
        self.dropped += other.dropped;
        for error in other.errors {
            self.add(|| error);
        }
    }
}

/// An error whose detail begins with the name of the field.
pub(super) fn invalid_name(at: &FieldPath, value: Value, name: &str, detail: &str) -> FieldError {
    FieldError::invalid(at, value, &format!("{name} in body {detail}"))
}

/// An error without a path, as kube-openapi has for alternatives.
pub(super) fn unplaced(detail: &str) -> FieldError {
    FieldError::invalid(&FieldPath::root(), "", detail)
}
