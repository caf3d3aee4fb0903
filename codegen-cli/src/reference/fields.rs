//! The fields of a schema, one row each: path, type, description, default and rules.

use serde::Serialize;
use serde_json::Value;

use super::links::{Links, text};
use super::markdown::{cell, code};

/// A row of the table of fields.
#[derive(Debug, Serialize)]
pub(crate) struct FieldView {
    /// The JSON path from the object as code, with `[]` after lists and `{}` after maps.
    path: String,
    #[serde(rename = "type")]
    field_type: String,
    description: String,
}

/// The nesting after which fields are no more listed: schemas are not recursive, so no document needs it.
const MAX_DEPTH: usize = 64;

/// The fields of a kind. `apiVersion` and `kind` of an object are no rows.
pub(super) fn of(schema: &Value, links: &Links<'_>) -> Vec<FieldView> {
    let mut rows = Vec::new();
    let is_object = schema.get("x-kubernetes-group-version-kind").is_some();
    below(schema, "", links, 0, &mut rows);
    rows.retain(|row| !is_object || !matches!(row.path.as_str(), "apiVersion" | "kind"));
    for row in &mut rows {
        row.path = code(&row.path);
    }
    rows
}

/// Adds the fields below a schema, which is at `path`.
fn below(schema: &Value, path: &str, links: &Links<'_>, depth: usize, rows: &mut Vec<FieldView>) {
    if depth > MAX_DEPTH {
        return;
    }
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|required| required == name));
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, field) in properties.into_iter().flatten() {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        rows.push(FieldView {
            path: path.clone(),
            field_type: type_of(field, links),
            description: description(field, is_required(name)),
        });
        below(field, &path, links, depth + 1, rows);
    }
    if let Some(items) = schema.get("items") {
        below(items, &format!("{path}[]"), links, depth + 1, rows);
    }
    if let Some(values) = schema.get("additionalProperties") {
        below(values, &format!("{path}{{}}"), links, depth + 1, rows);
    }
}

/// The schema that a field names: itself, or the only one of its `allOf`.
fn reference(field: &Value) -> Option<&str> {
    let target = field
        .get("$ref")
        .or_else(|| field.pointer("/allOf/0/$ref"))?;
    target.as_str()?.rsplit('/').next()
}

/// The type of a field as Markdown.
fn type_of(field: &Value, links: &Links<'_>) -> String {
    if let Some(name) = reference(field) {
        return links.link(name);
    }
    if field.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        return "integer or string".to_owned();
    }
    match text(field, "/type") {
        "array" => {
            let items = field.get("items").unwrap_or(&Value::Null);
            format!("list of {}", type_of(items, links))
        }
        "object" => match field.get("additionalProperties") {
            Some(values) if values.is_object() => format!("map of {}", type_of(values, links)),
            _ => "object".to_owned(),
        },
        "" => "any value".to_owned(),
        simple => match text(field, "/format") {
            "" => simple.to_owned(),
            format => format!("{simple} ({})", cell(format)),
        },
    }
}

/// The description of a field, and what its values may be, as a cell.
fn description(field: &Value, is_required: bool) -> String {
    let mut parts = Vec::new();
    if is_required {
        parts.push("Required.".to_owned());
    }
    let own = cell(text(field, "/description"));
    if !own.is_empty() {
        parts.push(own);
    }
    parts.extend(rules(field));
    for (key, what) in [
        ("items", "Each item"),
        ("additionalProperties", "Each value"),
    ] {
        let inner = field.get(key).map(rules).unwrap_or_default();
        if !inner.is_empty() {
            parts.push(format!("{what}: {}", inner.join(" ")));
        }
    }
    parts.join(" ")
}

/// The default and the rules of a schema, a sentence each.
fn rules(schema: &Value) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(value) = schema.get("default") {
        said.push(format!("Default: {}.", code(&value.to_string())));
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<String> = values
            .iter()
            .map(|value| code(&value.to_string()))
            .collect();
        said.push(format!("One of {}.", values.join(", ")));
    }
    let is_true = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    for (key, exclusive, sign) in [
        ("minimum", "exclusiveMinimum", [">=", ">"]),
        ("maximum", "exclusiveMaximum", ["<=", "<"]),
    ] {
        if let Some(bound) = schema.get(key) {
            let sign = if is_true(exclusive) { sign[1] } else { sign[0] };
            said.push(format!("Value `{sign} {bound}`."));
        }
    }
    for (key, what) in [
        ("multipleOf", "A multiple of"),
        ("minLength", "Minimum length:"),
        ("maxLength", "Maximum length:"),
        ("minItems", "Minimum number of items:"),
        ("maxItems", "Maximum number of items:"),
        ("minProperties", "Minimum number of entries:"),
        ("maxProperties", "Maximum number of entries:"),
    ] {
        if let Some(bound) = schema.get(key) {
            said.push(format!("{what} {bound}."));
        }
    }
    let pattern = text(schema, "/pattern");
    if !pattern.is_empty() {
        said.push(format!("Pattern: {}.", code(pattern)));
    }
    said.extend(topology(schema));
    if is_true("nullable") {
        said.push("May be null.".to_owned());
    }
    if is_true("x-kubernetes-preserve-unknown-fields") {
        said.push("Unknown fields are kept.".to_owned());
    }
    for (key, what) in [("oneOf", "Exactly one"), ("anyOf", "At least one")] {
        if let Some(forms) = schema.get(key).and_then(Value::as_array) {
            let names: Vec<String> = forms.iter().map(form).collect();
            said.push(format!("{what} of {}.", names.join(", ")));
        }
    }
    said
}

/// A form of a schema with several: the fields that it needs, or its type.
fn form(schema: &Value) -> String {
    let required = schema.get("required").and_then(Value::as_array);
    let names: Vec<String> = required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(code)
        .collect();
    match (names.is_empty(), text(schema, "/type")) {
        (false, _) => names.join(" with "),
        (true, "") => "another form".to_owned(),
        (true, of_type) => of_type.to_owned(),
    }
}

/// How the items of a list, or the entries of a map, belong together.
fn topology(schema: &Value) -> Option<String> {
    let keys = schema.get("x-kubernetes-list-map-keys");
    match text(schema, "/x-kubernetes-list-type") {
        "set" => Some("No two items are equal.".to_owned()),
        "map" => {
            let keys = keys.and_then(Value::as_array).into_iter().flatten();
            let keys: Vec<String> = keys.filter_map(Value::as_str).map(code).collect();
            Some(format!("Items have different {}.", keys.join(" and ")))
        }
        "atomic" => Some("An apply replaces the whole list.".to_owned()),
        _ if text(schema, "/x-kubernetes-map-type") == "atomic" => {
            Some("An apply replaces the whole value.".to_owned())
        }
        _ => None,
    }
}
