//! Validation of labels, in metadata and in selectors.

use crate::field::{FieldError, FieldPath};
use crate::names;

/// Maximum number of errors per field, so that the response to a body with many bad labels is not many times its size.
pub(crate) const MAX_ERRORS: usize = 100;

/// Validates labels: keys as label keys, values as label values. Returns at most the first hundred errors.
pub fn label_errors<'a>(
    labels: impl Iterator<Item = (&'a str, &'a str)>,
    path: &FieldPath,
) -> Vec<FieldError> {
    let errors = labels.flat_map(|(key, value)| {
        let keys = complaints(path, key, &names::label_key(key));
        keys.into_iter()
            .chain(complaints(path, value, &names::label_value(value)))
    });
    errors.take(MAX_ERRORS).collect()
}

/// Converts problems of a value to errors of a field.
pub(crate) fn complaints(path: &FieldPath, value: &str, complaints: &[String]) -> Vec<FieldError> {
    complaints
        .iter()
        .map(|complaint| FieldError::invalid(path, value, complaint))
        .collect()
}
