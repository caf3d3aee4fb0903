//! Changes sets of fields that were owned under another schema.

use apiloom_schema::tree::{ListType, Node};

use super::Ownership;
use super::field_set::{FieldSet, SetNode};
use super::path_element::PathElement;
use super::shape::field;
use crate::interrupt::is_interrupted;

impl Ownership<'_> {
    /// The set of an earlier schema in this one: who owned fields or items of a list or map that is atomic now owns the
    /// list or map. `None` if the set stays as it is. As in Kubernetes, who owns a list or map that is no longer atomic
    /// owns none of its fields and items.
    pub fn reconciled_fields(&self, set: &FieldSet) -> Option<FieldSet> {
        reconcile(set, Some(self.root()))
    }
}

fn reconcile(set: &FieldSet, node: Option<&Node>) -> Option<FieldSet> {
    let mut changed = Vec::new();
    for (index, member) in set.nodes().iter().enumerate() {
        if member.below.is_empty() || is_interrupted() {
            continue;
        }
        let below = match &member.element {
            PathElement::Field(name) => field(node, name).0,
            _ => node.and_then(|node| node.items.as_deref()),
        };
        // Fields without a schema are not changed.
        let Some(below) = below else { continue };
        if is_atomic(below, &member.below) {
            changed.push((index, true, FieldSet::default()));
        } else if let Some(set) = reconcile(&member.below, Some(below)) {
            changed.push((index, member.is_member, set));
        }
    }
    let changes = (!changed.is_empty()).then_some(changed)?;
    let mut set = set.clone();
    for (index, is_member, below) in changes {
        set.replace(index, is_member, below);
    }
    Some(set)
}

/// Whether a value whose fields or items were owned is one value now.
fn is_atomic(node: &Node, owned: &FieldSet) -> bool {
    let has_fields = |node: &SetNode| matches!(node.element, PathElement::Field(_));
    if owned.nodes().iter().any(has_fields) {
        return node.atomic_map == Some(true);
    }
    // Lists are atomic unless they say otherwise.
    let is_list = node.items.is_some();
    is_list && matches!(node.list_type, Some(ListType::Atomic) | None)
}
