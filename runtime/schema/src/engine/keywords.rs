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
    let size = keywords.get(name)?.as_u64()?;
    Some(usize::try_from(size).unwrap_or(usize::MAX))
}

/// The names of a map of schemas: those of `x-apiloom-order` first and in its order, then the others.
pub(super) fn ordered<'a>(
    names: &'a Map<String, Value>,
    keywords: &'a Map<String, Value>,
) -> Vec<&'a str> {
    let order: Vec<&str> = list(keywords, "x-apiloom-order")
        .filter_map(Value::as_str)
        .filter(|name| names.contains_key(*name))
        .collect();
    let rest = names
        .keys()
        .map(String::as_str)
        .filter(|name| !order.contains(name));
    order.iter().copied().chain(rest).collect()
}

/// Whether a schema takes null alone.
pub(super) fn is_null(schema: &Value) -> bool {
    let only_null = |values: &Value| {
        values
            .as_array()
            .is_some_and(|v| !v.is_empty() && v.iter().all(Value::is_null))
    };
    schema.get("type").is_some_and(|t| t == "null")
        || schema.get("enum").is_some_and(only_null)
        || schema.get("const").is_some_and(Value::is_null)
}

/// Whether a schema takes every value.
pub(super) fn is_anything(schema: &Value) -> bool {
    match schema {
        Value::Bool(any) => *any,
        Value::Object(keywords) => keywords.is_empty(),
        _ => false,
    }
}
