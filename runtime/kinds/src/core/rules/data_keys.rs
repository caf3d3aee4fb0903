//! The rules that the data of ConfigMaps and Secrets have in common.

use apiloom_meta::error::MAX_CAUSES;
use apiloom_meta::{FieldError, FieldPath, names};

/// The limit for all values of an object together, in bytes.
pub(super) const MAX_BYTES: usize = 1024 * 1024;

const IMMUTABLE: &str = "field is immutable when `immutable` is set";

/// The errors of keys.
pub(super) fn key_errors<'a>(
    path: &FieldPath,
    keys: impl Iterator<Item = &'a String>,
) -> Vec<FieldError> {
    let errors = keys.flat_map(|key| {
        let complaints = names::config_map_key(key).into_iter();
        complaints.map(move |complaint| FieldError::invalid(&path.key(key), key, &complaint))
    });
    errors.take(MAX_CAUSES).collect()
}

/// The errors of an update that changes an immutable object: the field `immutable`, and the fields that differ.
pub(super) fn immutable_errors(
    new: Option<bool>,
    old: Option<bool>,
    changed: &[(&str, bool)],
) -> Vec<FieldError> {
    if old != Some(true) {
        return Vec::new();
    }
    let all = [("immutable", new != Some(true))];
    let changed = all.iter().chain(changed).filter(|(_, differs)| *differs);
    changed
        .map(|(field, _)| FieldError::forbidden(&FieldPath::new(*field), IMMUTABLE))
        .collect()
}
