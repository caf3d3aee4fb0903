//! Segments of storage keys.

use apiloom_meta::ApiError;
use apiloom_meta::field::go_quote;

/// The last two segments of an object's key: its namespace, which is only meaningful for a namespaced kind, and its
/// name.
pub(crate) fn namespace_and_name(key: &str) -> (&str, &str) {
    let mut segments = key.rsplit('/');
    let name = segments.next().unwrap_or_default();
    (segments.next().unwrap_or_default(), name)
}

/// Checks that a name can be one segment of a key. Reads need this check too: their keys are built from what the
/// client sent.
pub(crate) fn check_segment(what: &str, segment: &str) -> Result<(), ApiError> {
    if segment.is_empty() {
        return Err(ApiError::bad_request(format!("{what} parameter required.")));
    }
    let mut problems = Vec::new();
    if segment == "." || segment == ".." {
        problems.push(format!("may not be '{segment}'"));
    }
    problems.extend(
        ['/', '%']
            .into_iter()
            .filter(|c| segment.contains(*c))
            .map(|c| format!("may not contain '{c}'")),
    );
    if problems.is_empty() {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "{what} parameter invalid: {}: {}",
        go_quote(segment),
        problems.join(";")
    )))
}
