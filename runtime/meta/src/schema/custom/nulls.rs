//! Nulls in a document that a client applies. The decoder drops those of fields that cannot be null, as kube-apiserver does for
//! the bodies of requests; the result of an apply is not decoded there, so that such a null is an error.

use serde_json::Value;

use super::super::default::drops_null;
use super::super::node::{Child, Node};

/// Puts nulls back that the decoder dropped from a document.
pub(super) fn put_back(node: &Node, document: &Value, decoded: &mut Value) {
    if !node.is_custom {
        return;
    }
    match (document, decoded) {
        (Value::Object(fields), Value::Object(decoded)) => {
            for (name, value) in fields {
                let Child::Node(below) = node.child(name) else {
                    continue;
                };
                if !value.is_null() {
                    if let Some(decoded) = decoded.get_mut(name) {
                        put_back(below, value, decoded);
                    }
                } else if drops_null(below) {
                    decoded.entry(name.as_str()).or_insert(Value::Null);
                }
            }
        }
        (Value::Array(items), Value::Array(decoded)) if items.len() == decoded.len() => {
            let Some(below) = &node.items else { return };
            for (item, decoded) in items.iter().zip(decoded) {
                put_back(below, item, decoded);
            }
        }
        _ => {}
    }
}
