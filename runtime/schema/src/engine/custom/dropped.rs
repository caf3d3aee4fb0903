//! What the decoder drops from a document that a client applies. kube-apiserver decodes the result of an apply only when it reads it
//! from its store: so fields that are pruned then count in its validation, and a null where none may be is an error.

use serde_json::{Map, Value};

use super::super::node::{Child, Node};

/// Whether the decoder may drop anything from the fields of an object, but from its metadata.
pub(super) fn may_drop(root: &Node, document: &Map<String, Value>) -> bool {
    of_schema(root, document).any(|(name, value)| is_dropped(root.child(name), value))
}

/// Puts back what the decoder dropped from the fields of an object, but from its metadata; returns whether that is anything.
pub(super) fn put_back(
    root: &Node,
    document: &Map<String, Value>,
    decoded: &mut Map<String, Value>,
) -> bool {
    let mut is_changed = false;
    for (name, value) in of_schema(root, document) {
        is_changed |= put_back_field(root.child(name), name, value, decoded);
    }
    is_changed
}

/// The fields that the definition describes: the others are those of every object.
fn of_schema<'a>(
    root: &'a Node,
    document: &'a Map<String, Value>,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let is_of_every_object =
        |name: &str| matches!(root.child(name), Child::Node(node) if node.dialect.is_typed);
    document
        .iter()
        .filter(move |(name, _)| !is_of_every_object(name))
}

fn is_dropped(child: Child<'_>, value: &Value) -> bool {
    let Child::Node(node) = child else {
        return matches!(child, Child::Unknown);
    };
    match value {
        // The metadata of an embedded object is decoded as ObjectMeta.
        _ if node.dialect.is_typed => !value.is_string(),
        Value::Null => true,
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| is_dropped(node.child(name), value)),
        Value::Array(items) => node.item().is_some_and(|below| {
            items
                .iter()
                .any(|item| !item.is_null() && is_dropped(Child::Node(below), item))
        }),
        _ => false,
    }
}

fn put_back_field(
    child: Child<'_>,
    name: &str,
    value: &Value,
    decoded: &mut Map<String, Value>,
) -> bool {
    match (child, decoded.get_mut(name)) {
        (Child::Node(node), Some(decoded)) if !node.dialect.is_typed => {
            put_back_value(node, value, decoded)
        }
        (Child::Node(_), Some(decoded)) => {
            let is_changed = decoded != value;
            decoded.clone_from(value);
            is_changed
        }
        (Child::Free | Child::Unknown, Some(_)) => false,
        (_, None) => {
            decoded.insert(name.to_owned(), value.clone());
            true
        }
    }
}

fn put_back_value(node: &Node, value: &Value, decoded: &mut Value) -> bool {
    let mut is_changed = false;
    match (value, decoded) {
        (Value::Object(fields), Value::Object(decoded)) => {
            for (name, value) in fields {
                is_changed |= put_back_field(node.child(name), name, value, decoded);
            }
        }
        (Value::Array(items), Value::Array(decoded)) if items.len() == decoded.len() => {
            let Some(below) = node.item() else {
                return false;
            };
            for (item, decoded) in items.iter().zip(decoded) {
                is_changed |= put_back_value(below, item, decoded);
            }
        }
        _ => {}
    }
    is_changed
}
