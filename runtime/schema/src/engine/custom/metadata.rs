//! Prunes defaults when a schema is built, in particular those of the metadata of embedded objects.

use serde_json::Value;

use super::super::default::{drops_null, prune};
use super::super::node::{Child, Node};

/// Drops the fields of a default that ObjectMeta does not have, as kube-apiserver does when it serves a definition, and
/// nulls that would be dropped from an object. Other unknown fields are refused in a definition; those of the metadata
/// of an embedded object are not known here.
pub(super) fn prune_default(node: &Node, default: &mut Value) {
    if node.dialect.is_typed {
        return prune(node, default);
    }
    match default {
        Value::Object(fields) => fields.retain(|name, value| match node.child(name) {
            Child::Node(below) if value.is_null() && drops_null(below) => false,
            Child::Node(below) => {
                prune_default(below, value);
                true
            }
            Child::Free | Child::Unknown => true,
        }),
        Value::Array(items) => {
            for item in items {
                if let Some(below) = &node.items {
                    prune_default(below, item);
                }
            }
        }
        _ => {}
    }
}

/// Drops the defaults inside of metadata that ObjectMeta does not have. `meta` is the node of ObjectMeta for `declared`.
pub(super) fn prune_declared(declared: &mut Node, meta: &Node) {
    if let Some(default) = &mut declared.default {
        prune(meta, default);
    }
    declared.properties.retain_mut(|property| {
        let Child::Node(meta) = meta.child(&property.name) else {
            // It would be dropped from every object.
            return property.node.default.is_none() && !property.node.has_defaults;
        };
        if property.node.has_defaults {
            prune_declared(property.node_mut(), meta);
        }
        true
    });
    if let (Some(items), Some(meta)) = (&mut declared.items, &meta.items) {
        prune_declared(items, meta);
    }
}
