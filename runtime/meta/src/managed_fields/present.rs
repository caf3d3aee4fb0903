//! The set of all fields that a document has.

use apiloom_schema::tree::Node;
use serde_json::Value;

use super::Ownership;
use super::field_set::FieldSet;
use super::path_element::PathElement;
use super::shape::{Shape, field};
use crate::interrupt::is_interrupted;

impl Ownership<'_> {
    /// The fields that a document has, as the manager who applies it owns them.
    pub fn present_fields(&self, document: &Value) -> FieldSet {
        present(document, Some(self.root())).1
    }
}

impl Ownership<'_> {
    /// The fields that a document has, with those of structs on the way to them.
    pub fn present_named_fields(&self, document: &Value) -> FieldSet {
        self.with_named_fields(&self.present_fields(document))
    }
}

/// Whether the value is a member itself, and the members below it.
fn present(value: &Value, node: Option<&Node>) -> (bool, FieldSet) {
    let mut below = FieldSet::default();
    if is_interrupted() {
        return (true, below);
    }
    match Shape::of(value, node) {
        Shape::Leaf => return (true, below),
        Shape::Fields(fields) => {
            for (name, value) in fields {
                let (child, is_named) = field(node, name);
                let (is_member, members) = present(value, child);
                let is_empty = value.as_object().is_some_and(serde_json::Map::is_empty);
                let is_member = is_member || is_empty || !is_named;
                below.add(PathElement::field(name), is_member, members);
            }
        }
        Shape::Items(items, keys) => {
            for (element, items) in keys.group(items) {
                // The fields of one of several items with the same keys have no owner.
                let members = match items[..] {
                    [item] => present(item, keys.node).1,
                    _ => FieldSet::default(),
                };
                below.add(element, true, members);
            }
        }
    }
    (false, below)
}

impl Ownership<'_> {
    /// Adds to a set the fields of structs on the way to its members. Maps and items are not added: they may be there
    /// without their content.
    pub fn with_named_fields(&self, set: &FieldSet) -> FieldSet {
        with_named(set, Some(self.root()))
    }
}

fn with_named(set: &FieldSet, node: Option<&Node>) -> FieldSet {
    let mut named = FieldSet::default();
    for member in set.nodes() {
        if is_interrupted() {
            break;
        }
        let (below, is_named) = match &member.element {
            PathElement::Field(name) => field(node, name),
            _ => (node.and_then(|node| node.items.as_deref()), false),
        };
        let is_member = member.is_member || (is_named && !member.below.is_empty());
        named.add(
            member.element.clone(),
            is_member,
            with_named(&member.below, below),
        );
    }
    named
}
