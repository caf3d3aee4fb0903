//! Checks of embedded objects: they must have `apiVersion` and `kind`.
//!
//! Their metadata is validated by [`crate::validation::embedded_errors`].

use serde_json::Value;

use super::super::node::{Child, Node};
use super::super::path::Path;
use super::super::validate::embedded_type_errors;
use super::outcome::Outcome;
use crate::field::FieldError;
use crate::interrupt::is_interrupted;

/// The errors of a value and everything in it.
pub(super) fn errors(node: &Node, value: &Value) -> Vec<FieldError> {
    let mut out = Outcome::default();
    check(node, value, &Path::Root, &mut out);
    out.into_errors()
}

/// Checks a value and everything in it.
pub(super) fn check(node: &Node, value: &Value, path: &Path<'_>, out: &mut Outcome) {
    if node.dialect.is_typed || is_interrupted() {
        return;
    }
    match value {
        Value::Object(fields) => {
            if node.embedded_resource {
                for error in embedded_type_errors(fields, path) {
                    out.add(|| error);
                }
            }
            for (name, value) in fields {
                if let Child::Node(below) = node.child(name) {
                    let at = path.step(node.property(name).is_none(), name);
                    check(below, value, &at, out);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                if let Some(below) = &node.items {
                    check(below, item, &Path::Index(path, index), out);
                }
            }
        }
        _ => {}
    }
}
