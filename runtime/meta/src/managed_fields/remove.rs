//! Removes the fields of a set from a document.

use apiloom_schema::tree::Node;
use serde_json::Value;

use super::Ownership;
use super::field_set::FieldSet;
use super::path_element::PathElement;
use super::shape::{Shape, field};
use crate::interrupt::is_interrupted;

impl Ownership<'_> {
    /// The document without the fields of the set. A list or map that loses all its content becomes null, and one that is
    /// owned as one value keeps it.
    pub fn without_fields(&self, document: &Value, fields: &FieldSet) -> Value {
        without(document, fields, Some(self.root()))
    }
}

fn without(value: &Value, removed: &FieldSet, node: Option<&Node>) -> Value {
    match Shape::of(value, node) {
        Shape::Leaf => match value {
            // The content of an atomic list or map below a removed member goes with it.
            Value::Array(_) | Value::Object(_) => Value::Null,
            scalar => scalar.clone(),
        },
        Shape::Fields(fields) => {
            let kept = fields.iter().filter_map(|(name, value)| {
                let (below, _) = field(node, name);
                let value = keep(value, &PathElement::field(name), removed, below)?;
                Some((name.clone(), value))
            });
            let kept: serde_json::Map<String, Value> = kept.collect();
            if kept.is_empty() {
                Value::Null
            } else {
                Value::Object(kept)
            }
        }
        Shape::Items(items, keys) => {
            let kept = items.iter().filter_map(|item| match keys.element(item) {
                Ok(element) => keep(item, &element, removed, keys.node),
                Err(_) => Some(item.clone()),
            });
            let kept: Vec<Value> = kept.collect();
            if kept.is_empty() {
                Value::Null
            } else {
                Value::Array(kept)
            }
        }
    }
}

/// A field or item without the removed fields below it; `None` if it is removed itself.
fn keep(
    value: &Value,
    element: &PathElement,
    removed: &FieldSet,
    node: Option<&Node>,
) -> Option<Value> {
    match removed.node(element) {
        _ if is_interrupted() => None,
        None => Some(value.clone()),
        Some(member) if member.is_member => None,
        Some(member) => Some(without(value, &member.below, node)),
    }
}
