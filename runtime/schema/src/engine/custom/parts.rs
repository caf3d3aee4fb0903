//! Visits the values of a custom resource, for rules that are judged after all others; one of them is that embedded objects
//! have a type. Their metadata is validated by `apiloom-meta`.

use serde_json::Value;

use super::super::embedded_type::embedded_type_errors;
use super::super::error_list::ErrorList;
use super::super::node::{Child, Node};
use super::super::walk_path::Path;
use crate::interrupt::is_interrupted;

/// Calls `visit` for a value and everything in it that the definition describes.
pub(super) fn visit_all(
    node: &Node,
    value: &Value,
    path: &Path<'_>,
    visit: &mut dyn FnMut(&Node, &Value, &Path<'_>),
) {
    if node.dialect.is_typed || is_interrupted() {
        return;
    }
    visit(node, value, path);
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Child::Node(below) = node.child(name) {
                    let at = path.step(node.property(name).is_none(), name);
                    visit_all(below, value, &at, visit);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                if let Some(below) = &node.items {
                    visit_all(below, item, &Path::Index(path, index), visit);
                }
            }
        }
        _ => {}
    }
}

/// Checks that embedded objects have `apiVersion` and `kind`.
pub(super) fn check_embedded(node: &Node, value: &Value, errors: &mut ErrorList) {
    visit_all(node, value, &Path::Root, &mut |node, value, path| {
        if let Value::Object(fields) = value
            && node.embedded_resource
        {
            for error in embedded_type_errors(fields, path) {
                errors.add(|| error);
            }
        }
    });
}
