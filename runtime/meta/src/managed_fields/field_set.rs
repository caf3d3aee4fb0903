//! A set of fields: which paths of a document a manager owns.

use std::cmp::Ordering;

use super::path_element::PathElement;
use crate::interrupt::is_interrupted;

/// A set of fields, as a tree of sorted lists. A field and the fields below it are members independently.
///
/// ```
/// use apiloom_meta::managed_fields::FieldSet;
/// let a = FieldSet::from_json(r#"{"f:spec":{"f:color":{},"f:size":{}}}"#)?;
/// let b = FieldSet::from_json(r#"{"f:spec":{"f:size":{}}}"#)?;
/// assert_eq!(a.difference(&b).to_json(), r#"{"f:spec":{"f:color":{}}}"#);
/// # Ok::<(), apiloom_meta::managed_fields::FieldsError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Sorted by element, each once. Each is a member or has members below it.
    nodes: Vec<SetNode>,
}

/// A field of a set, or the way to fields below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SetNode {
    pub(super) element: PathElement,
    pub(super) is_member: bool,
    pub(super) below: FieldSet,
}

impl SetNode {
    fn is_empty(&self) -> bool {
        !self.is_member && self.below.is_empty()
    }
}

impl FieldSet {
    /// A set without members.
    pub(super) const fn empty() -> Self {
        Self { nodes: Vec::new() }
    }

    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        let count = |node: &SetNode| usize::from(node.is_member) + node.below.len();
        self.nodes.iter().map(count).sum()
    }

    /// The depth of its JSON.
    pub(super) fn depth(&self) -> usize {
        let deepest = self.nodes.iter().map(|node| node.below.depth()).max();
        1 + deepest.unwrap_or_default()
    }

    /// A set of these nodes, none of which is empty; the last one of several with the same element counts.
    pub(super) fn of_nodes(mut nodes: Vec<SetNode>) -> Self {
        // In the order of their texts elements are sorted but for numbers.
        let is_sorted = |pair: &[SetNode]| pair[0].element < pair[1].element;
        if !nodes.windows(2).all(is_sorted) {
            nodes.reverse();
            nodes.sort_by(|a, b| a.element.cmp(&b.element));
            nodes.dedup_by(|later, kept| later.element == kept.element);
        }
        Self { nodes }
    }

    /// Replaces a node by one of the same element, which is not empty.
    pub(super) fn replace(&mut self, index: usize, is_member: bool, below: Self) {
        let node = &mut self.nodes[index];
        (node.is_member, node.below) = (is_member, below);
    }

    pub(super) fn nodes(&self) -> &[SetNode] {
        &self.nodes
    }

    /// The place of an element's node.
    pub(super) fn index(&self, element: &PathElement) -> Option<usize> {
        let found = self
            .nodes
            .binary_search_by(|node| node.element.cmp(element));
        found.ok()
    }

    /// The node of an element.
    pub(super) fn node(&self, element: &PathElement) -> Option<&SetNode> {
        Some(&self.nodes[self.index(element)?])
    }

    /// The place of a field.
    fn find(&self, name: &str) -> Result<usize, usize> {
        // Fields come before all other elements.
        self.nodes.binary_search_by(|node| match &node.element {
            PathElement::Field(other) => (**other).cmp(name),
            _ => Ordering::Greater,
        })
    }

    /// The node of a field.
    pub(super) fn field(&self, name: &str) -> Option<&SetNode> {
        Some(&self.nodes[self.find(name).ok()?])
    }

    /// Adds a member, or members below an element. Elements that are added in order are appended.
    pub(super) fn add(&mut self, element: PathElement, is_member: bool, below: FieldSet) {
        let node = SetNode {
            element,
            is_member,
            below,
        };
        if node.is_empty() {
            return;
        }
        match self.nodes.last() {
            Some(last) if last.element >= node.element => {}
            _ => return self.nodes.push(node),
        }
        match self
            .nodes
            .binary_search_by(|other| other.element.cmp(&node.element))
        {
            Ok(found) => {
                let present = &mut self.nodes[found];
                present.is_member |= node.is_member;
                present.below = present.below.union(&node.below);
            }
            Err(place) => self.nodes.insert(place, node),
        }
    }

    /// Members of either set.
    pub fn union(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        self.zip(other, |a, b| match (a, b) {
            (Some(a), Some(b)) => Some(SetNode {
                element: a.element.clone(),
                is_member: a.is_member || b.is_member,
                below: a.below.union(&b.below),
            }),
            (one, other) => one.or(other).cloned(),
        })
    }

    /// Whether all members are members of the other set.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.nodes.iter().all(|node| {
            let found = other.node(&node.element);
            found.is_some_and(|other| {
                (other.is_member || !node.is_member) && node.below.is_subset(&other.below)
            })
        })
    }

    /// Members of both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        self.zip(other, |a, b| {
            let (a, b) = (a?, b?);
            Some(SetNode {
                element: a.element.clone(),
                is_member: a.is_member && b.is_member,
                below: a.below.intersection(&b.below),
            })
        })
    }

    /// Members that are not members of the other set.
    pub fn difference(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        self.zip(other, |a, b| {
            let a = a?;
            let Some(b) = b else {
                return Some(a.clone());
            };
            Some(SetNode {
                element: a.element.clone(),
                is_member: a.is_member && !b.is_member,
                below: a.below.difference(&b.below),
            })
        })
    }

    /// The members under the fields of the object's root that are wanted.
    #[must_use]
    pub fn filter_root(mut self, is_wanted: impl Fn(&str) -> bool) -> Self {
        self.nodes.retain(|node| match &node.element {
            PathElement::Field(name) => is_wanted(name),
            _ => true,
        });
        self
    }

    /// Removes members, and changes the members below a field, without a copy of the set.
    pub(super) fn remove(&mut self, name: &str, change: impl FnOnce(&mut Self)) {
        if let Ok(found) = self.find(name) {
            let node = &mut self.nodes[found];
            node.is_member = false;
            change(&mut node.below);
            if node.is_empty() {
                self.nodes.remove(found);
            }
        }
    }

    /// Combines the nodes of both sets in order, and leaves out those without members.
    fn zip(
        &self,
        other: &Self,
        combine: impl Fn(Option<&SetNode>, Option<&SetNode>) -> Option<SetNode>,
    ) -> Self {
        let (mut a, mut b) = (self.nodes.iter().peekable(), other.nodes.iter().peekable());
        let mut nodes = Vec::new();
        loop {
            let order = match (a.peek(), b.peek()) {
                (None, None) => return Self { nodes },
                _ if is_interrupted() => return Self { nodes },
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(a), Some(b)) => a.element.cmp(&b.element),
            };
            let combined = match order {
                Ordering::Less => combine(a.next(), None),
                Ordering::Greater => combine(None, b.next()),
                Ordering::Equal => combine(a.next(), b.next()),
            };
            nodes.extend(combined.filter(|node| !node.is_empty()));
        }
    }

    /// The paths of all members, parents before the fields below them.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::with_capacity(self.len());
        self.append_paths("", &mut paths);
        paths
    }

    fn append_paths(&self, prefix: &str, paths: &mut Vec<String>) {
        // As in Kubernetes, the members of a level come before those below any of them.
        let path = |node: &SetNode| format!("{prefix}{}", node.element);
        paths.extend(self.nodes.iter().filter(|node| node.is_member).map(path));
        for node in self.nodes.iter().filter(|node| !node.below.is_empty()) {
            node.below.append_paths(&path(node), paths);
        }
    }
}
