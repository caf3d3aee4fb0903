//! The segments of a key of the store.

use apiloom_meta::ApiError;
use apiloom_meta::field::go_quote;

/// What the key of an object ends in: its namespace, if its kind has namespaces, and its name.
pub(crate) fn namespace_and_name(key: &str) -> (&str, &str) {
    let mut segments = key.rsplit('/');
    let name = segments.next().unwrap_or_default();
    (segments.next().unwrap_or_default(), name)
}

/// Checks that a name can stand as one segment of a key. Reads need it too: keys are made from what the client sent.
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
