//! Checks the document of an apply request against the schema. Kubernetes has texts of their own for that, since it
//! checks such a document before any of it is decoded as a type.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use super::shape::Shape;
use crate::schema::Schema;
use crate::schema::node::{Child, Node, Types};

impl Schema {
    /// Why a document cannot be applied: unknown fields, values of the wrong type, and items that cannot be told apart.
    ///
    /// # Errors
    /// The text of all of them, each with its path.
    pub fn check_applied(&self, document: &Value) -> Result<(), String> {
        let mut errors = Vec::new();
        check(document, Some(self.root()), &mut String::new(), &mut errors);
        match &errors[..] {
            [] => Ok(()),
            [error] => Err(error.clone()),
            errors => Err(format!("errors:\n  {}", errors.join("\n  "))),
        }
    }
}

/// Checks a value. The path is that of the value, also afterwards.
fn check(value: &Value, node: Option<&Node>, path: &mut String, errors: &mut Vec<String>) {
    let Some(node) = node else { return };
    if value.is_null() {
        return;
    }
    let len = path.len();
    match value {
        Value::Object(fields) if node.types.takes(Types::OBJECT) && !node.int_or_string => {
            for (name, value) in fields {
                path.extend([".", name.as_str()]);
                match node.child(name) {
                    Child::Node(below) => check(value, Some(below), path, errors),
                    Child::Free => {}
                    Child::Unknown => errors.push(format!("{path}: field not declared in schema")),
                }
                path.truncate(len);
            }
        }
        Value::Array(items) if node.types.takes(Types::ARRAY) && !node.int_or_string => {
            check_items(value, items, node, path, errors);
        }
        value => {
            if let Some(why) = wrong_type(value, node) {
                let between = if path.is_empty() { "" } else { ": " };
                errors.push(format!("{path}{between}{why}"));
            }
        }
    }
}

fn check_items(
    value: &Value,
    items: &[Value],
    node: &Node,
    path: &mut String,
    errors: &mut Vec<String>,
) {
    let (below, len) = (node.items.as_deref(), path.len());
    let Shape::Items(_, keys) = Shape::of(value, Some(node)) else {
        for (index, item) in items.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = write!(path, "[{index}]");
            check(item, below, path, errors);
            path.truncate(len);
        }
        return;
    };
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        match keys.element(item) {
            Ok(element) => {
                if seen.contains(&element) {
                    errors.push(format!("{path}: duplicate entries for key {element}"));
                } else {
                    let _ = write!(path, "{element}");
                    check(item, below, path, errors);
                    path.truncate(len);
                    seen.insert(element);
                }
            }
            Err(why) => errors.push(format!("{path}: element {index}: {why}")),
        }
    }
}

/// Why a value does not have a type of the node.
fn wrong_type(value: &Value, node: &Node) -> Option<String> {
    let is_scalar = !matches!(value, Value::Object(_) | Value::Array(_));
    if node.int_or_string {
        return (!is_scalar).then(|| format!("expected any scalar, got {}", got(value)));
    }
    if node.types.is_any() || (is_scalar && node.types.accepts(value)) {
        return None;
    }
    // Kubernetes has one numeric type; the decoder refuses a fraction where an integer is expected.
    let is_numeric = node.types.shares(Types::NUMBER) || node.types.shares(Types::INTEGER);
    if is_numeric && value.is_number() {
        return None;
    }
    Some(if node.types.shares(Types::OBJECT) {
        format!("expected map, got {}", got(value))
    } else if node.types.shares(Types::ARRAY) {
        format!("expected list, got {}", got(value))
    } else if is_numeric {
        format!("expected numeric (int or float), got {}", go_type(value))
    } else if node.types.shares(Types::BOOLEAN) {
        format!("expected boolean, got {}", got(value))
    } else {
        // Go's form with types.
        let mut text = "expected string, got &value.valueUnstructured{Value:".to_owned();
        append_typed(value, &mut text);
        text + "}"
    })
}

/// The name of a value's type in Go.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as Go prints it behind a pointer.
fn got(value: &Value) -> String {
    let mut text = "&{".to_owned();
    append(value, &mut text);
    text + "}"
}

fn append(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("<nil>"),
        Value::String(string) => text.push_str(string),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index > 0 { " " } else { "" });
                append(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push_str("map[");
            for (index, (name, value)) in fields.iter().enumerate() {
                text.push_str(if index > 0 { " " } else { "" });
                text.push_str(name);
                text.push(':');
                append(value, text);
            }
            text.push(']');
        }
        // Writing to a string cannot fail.
        scalar => {
            let _ = write!(text, "{scalar}");
        }
    }
}

fn append_typed(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("interface {}(nil)"),
        Value::String(string) => {
            let _ = write!(text, "{string:?}");
        }
        Value::Array(items) => {
            text.push_str("[]interface {}{");
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                append_typed(item, text);
            }
            text.push('}');
        }
        Value::Object(fields) => {
            text.push_str("map[string]interface {}{");
            for (index, (name, value)) in fields.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                let _ = write!(text, "{name:?}:");
                append_typed(value, text);
            }
            text.push('}');
        }
        scalar => {
            let _ = write!(text, "{scalar}");
        }
    }
}
