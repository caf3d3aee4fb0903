//! Checks that the defaults in a schema fit it.

use serde_json::{Value, json};

use super::super::custom::{default_errors, has_unknown_fields, metadata_errors};
use super::reading::{EMBEDDED, has, is_true, members, part};
use crate::field::{FieldError, FieldPath};

/// The defaults that do not validate, or that would be pruned.
pub(super) fn check(schema: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut found = Vec::new();
    walk(schema, path, None, true, &mut found);
    found
}

/// Checks a schema. `inside` is the path in an embedded object, below `apiVersion`, `kind` or `metadata`; the values of
/// maps have no defaults.
fn walk(
    schema: &Value,
    path: &FieldPath,
    inside: Option<&[String]>,
    is_root: bool,
    found: &mut Vec<FieldError>,
) {
    let is_object = is_root || is_true(schema, EMBEDDED);
    if has(schema, "default") {
        let default = &schema["default"];
        let of_object = (is_root && !is_true(schema, EMBEDDED)).then(|| as_embedded(schema));
        let schema = of_object.as_ref().unwrap_or(schema);
        let at = path.child("default");
        let before = found.len();
        if let Some(inside) = inside {
            let problems = metadata_errors(&around(inside, default));
            if !problems.is_empty() {
                let detail = format!(
                    "must result in valid metadata: {}",
                    crate::field::aggregate(&problems)
                );
                found.push(FieldError::invalid(&at, default, &detail));
            }
        } else if has_unknown_fields(schema, default) {
            found.push(FieldError::invalid(
                &at,
                default,
                "must not have unknown fields",
            ));
        }
        if inside.is_none() || found.len() == before {
            found.extend(default_errors(schema, default, &at));
        }
    }
    if let Some(items) = part(schema, "items") {
        let inside = inside.map(|inside| below(inside, "0"));
        walk(items, &path.child("items"), inside.as_deref(), false, found);
    }
    for (name, field) in members(schema, "properties") {
        let is_common = matches!(name.as_str(), "apiVersion" | "kind" | "metadata");
        let inside = if is_object {
            is_common.then(|| vec![name.clone()])
        } else {
            inside.map(|inside| below(inside, name))
        };
        let at = path.child("properties").key(name);
        walk(field, &at, inside.as_deref(), false, found);
    }
}

/// The schema of a root as that of an embedded object, so that its default is checked as one.
fn as_embedded(root: &Value) -> Value {
    let mut root = root.clone();
    root[EMBEDDED] = Value::Bool(true);
    root
}

fn below(inside: &[String], name: &str) -> Vec<String> {
    inside.iter().cloned().chain([name.to_owned()]).collect()
}

/// An object with a value at a path.
fn around(inside: &[String], value: &Value) -> Value {
    let mut value = value.clone();
    for name in inside.iter().skip(1).rev() {
        value = if name == "0" {
            json!([value])
        } else {
            json!({ name.as_str(): value })
        };
    }
    let mut object = json!({"apiVersion": "validation/v1", "kind": "Validation"});
    if let Some(first) = inside.first() {
        object[first] = value;
    }
    object
}
