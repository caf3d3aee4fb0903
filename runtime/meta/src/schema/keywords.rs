//! The values of keywords of a JSON Schema, by their names: `None`, or nothing, if a keyword has a value of another type.

use serde_json::{Map, Number, Value};

/// The elements of a list; none if it is absent or of another type.
pub(super) fn list<'a>(
    keywords: &'a Map<String, Value>,
    name: &str,
) -> std::slice::Iter<'a, Value> {
    keywords
        .get(name)
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice)
        .iter()
}

/// The strings in a list.
pub(super) fn strings(keywords: &Map<String, Value>, name: &str) -> Vec<String> {
    list(keywords, name)
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// A string.
pub(super) fn text(keywords: &Map<String, Value>, name: &str) -> Option<String> {
    keywords
        .get(name)
        .and_then(Value::as_str)
        .map(str::to_owned)
}

/// Whether it is `true`.
pub(super) fn flag(keywords: &Map<String, Value>, name: &str) -> bool {
    keywords.get(name).and_then(Value::as_bool).unwrap_or(false)
}

/// A number.
pub(super) fn number(keywords: &Map<String, Value>, name: &str) -> Option<Number> {
    match keywords.get(name) {
        Some(Value::Number(number)) => Some(number.clone()),
        _ => None,
    }
}

/// A number of elements, characters or bytes.
pub(super) fn size(keywords: &Map<String, Value>, name: &str) -> Option<usize> {
    keywords
        .get(name)
        .and_then(Value::as_u64)
        .and_then(|n| usize::try_from(n).ok())
}
