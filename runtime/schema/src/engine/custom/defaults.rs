//! Checks defaults in the document of a schema.

use serde_json::Value;

use super::super::build::object_meta;
use super::super::embedded_type::embedded_type_errors;
use super::super::node::{Child, Node};
use super::super::validate::validate;
use super::super::walk_path::Path;
use super::{build, validate as custom};
use crate::field::{FieldError, FieldPath};
use crate::names;

/// The errors of a default, with the paths of kube-apiserver; `at` is the path of the default itself. None for a schema
/// that cannot be built, which is reported elsewhere.
pub(in super::super) fn default_errors(
    schema: &Value,
    default: &Value,
    at: &FieldPath,
) -> Vec<FieldError> {
    let Ok(node) = build::value(schema) else {
        return Vec::new();
    };
    let below = |error: FieldError| FieldError {
        path: custom::below(at, &error.path),
        ..error
    };
    let errors = custom::default_errors(&node, default);
    errors.into_iter().map(below).collect()
}

/// Whether pruning would change a value. Unknown fields of metadata do not count: they are pruned when a schema is built.
pub(in super::super) fn has_unknown_fields(schema: &Value, value: &Value) -> bool {
    build::value(schema).is_ok_and(|node| has_unknown(&node, value))
}

fn has_unknown(node: &Node, value: &Value) -> bool {
    if node.dialect.is_typed {
        return false;
    }
    match value {
        Value::Object(fields) => fields.iter().any(|(name, value)| match node.child(name) {
            Child::Unknown => true,
            Child::Free => false,
            Child::Node(below) => has_unknown(below, value),
        }),
        Value::Array(items) => node
            .item()
            .is_some_and(|node| items.iter().any(|item| has_unknown(node, item))),
        _ => false,
    }
}

/// The errors of the type and the metadata of an object. Of its values, those of labels are checked; others are when an
/// object has them.
pub(in super::super) fn metadata_errors(object: &Value) -> Vec<FieldError> {
    let Value::Object(fields) = object else {
        return Vec::new();
    };
    let mut errors = embedded_type_errors(fields, &Path::Root);
    for name in ["apiVersion", "kind"] {
        if let Some(value) = fields.get(name).filter(|value| !value.is_string()) {
            let at = FieldPath::new(name);
            errors.push(FieldError::invalid(&at, value, "must be a string"));
        }
    }
    let Some(metadata) = fields.get("metadata") else {
        return errors;
    };
    let at = FieldPath::new("metadata");
    let below = |error: FieldError| FieldError {
        path: at.child(error.path.as_str()),
        ..error
    };
    errors.extend(
        validate(&object_meta(), metadata, None)
            .into_iter()
            .map(below),
    );
    let labels = metadata.get("labels").and_then(Value::as_object);
    for (key, value) in labels.into_iter().flatten() {
        let mut problems = names::label_key(key);
        let shown = if problems.is_empty() {
            let value = value.as_str().unwrap_or_default();
            problems = names::label_value(value);
            value
        } else {
            key
        };
        for problem in problems {
            errors.push(FieldError::invalid(&at.child("labels"), shown, &problem));
        }
    }
    errors
}
