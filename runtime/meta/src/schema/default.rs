//! Putting in defaults and taking out what the schema does not know.

use serde_json::{Map, Value};

use super::node::{Child, Node};

/// Puts the defaults of absent fields into a value, recursively. A null where null means absent is taken for absent.
pub(crate) fn default(node: &Node, value: &mut Value) {
    if !node.has_defaults {
        return;
    }
    match value {
        Value::Object(fields) => default_fields(node, fields),
        Value::Array(elements) => {
            if let Some(items) = &node.items {
                elements
                    .iter_mut()
                    .for_each(|element| default(items, element));
            }
        }
        _ => {}
    }
    // Computed defaults see the declared ones of their siblings.
    for (name, compute) in &node.computed {
        let absent = value
            .as_object()
            .is_some_and(|fields| fields.get(*name).is_none_or(Value::is_null));
        if !absent {
            continue;
        }
        let Some(mut computed) = compute(value) else {
            continue;
        };
        if let Some(property) = node.property(name) {
            default(&property.node, &mut computed);
        }
        if let Value::Object(fields) = value {
            fields.insert((*name).to_owned(), computed);
        }
    }
}

fn default_fields(node: &Node, fields: &mut Map<String, Value>) {
    for property in node
        .properties
        .iter()
        .filter(|property| property.node.has_defaults)
    {
        let below = &property.node;
        match (fields.get_mut(&property.name), &below.default) {
            (Some(Value::Null), Some(_)) if below.nullable => {}
            (None | Some(Value::Null), Some(put)) => {
                let mut put = put.clone();
                default(below, &mut put);
                fields.insert(property.name.clone(), put);
            }
            (Some(present), _) => default(below, present),
            (None, None) => {}
        }
    }
    if let Some(additional) = node
        .additional
        .as_deref()
        .filter(|additional| additional.has_defaults)
    {
        for (_, value) in fields
            .iter_mut()
            .filter(|(name, _)| node.property(name).is_none())
        {
            default(additional, value);
        }
    }
}

/// Drops unknown fields, and nulls where null means absent.
pub(crate) fn prune(node: &Node, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, field| match node.child(name) {
                Child::Unknown => false,
                Child::Free => true,
                Child::Node(below) if field.is_null() => !drops_null(below),
                Child::Node(below) => {
                    prune(below, field);
                    true
                }
            });
        }
        Value::Array(elements) => {
            if let Some(items) = &node.items {
                elements
                    .iter_mut()
                    .for_each(|element| prune(items, element));
            }
        }
        _ => {}
    }
}

/// Whether a null under this node means that the field is absent.
pub(crate) fn drops_null(node: &Node) -> bool {
    !(node.nullable || node.types.is_any() && node.is_open())
}
