//! The fields that differ between two documents.

use std::collections::BTreeMap;

use apiloom_schema::tree::Node;
use serde_json::{Map, Value};

use super::Ownership;
use super::SYSTEM_METADATA;
use super::field_set::FieldSet;
use super::path_element::{PathElement, is_same};
use super::shape::{ItemKeys, Shape, field, is_empty};
use crate::interrupt::is_interrupted;

/// The fields that differ between two documents. No field is in more than one of the sets, but an item of a list that
/// becomes or ceases to be one of several with the same keys: it is removed and added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldChanges {
    /// Fields that only the first document has.
    pub removed: FieldSet,
    /// Fields of both documents with different values.
    pub modified: FieldSet,
    /// Fields that only the second document has.
    pub added: FieldSet,
}

impl FieldChanges {
    /// Whether no field differs.
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    /// The fields with a new value.
    pub fn set(&self) -> FieldSet {
        self.modified.union(&self.added)
    }

    /// As [`FieldChanges::set`], without a copy when all fields are new.
    #[must_use]
    pub fn into_set(self) -> FieldSet {
        if self.modified.is_empty() {
            self.added
        } else {
            self.set()
        }
    }

    /// The changes under the fields of the object's root that are wanted.
    #[must_use]
    pub fn filter_root(self, is_wanted: impl Fn(&str) -> bool) -> Self {
        Self {
            removed: self.removed.filter_root(&is_wanted),
            modified: self.modified.filter_root(&is_wanted),
            added: self.added.filter_root(&is_wanted),
        }
    }
}

impl Ownership<'_> {
    /// The fields that differ between two documents of objects, but those that have no owner, see
    /// [`FieldSet::without_system_fields`].
    pub fn changed_fields(&self, before: &Value, after: &Value) -> FieldChanges {
        let (node, none) = (Some(self.root()), Map::new());
        let [before, after] = [before, after].map(|document| document.as_object().unwrap_or(&none));
        let mut changes = Changes::default();
        changes.compare_fields(before, after, node, &["apiVersion", "kind", "metadata"]);
        let metadata = [before, after].map(|fields| {
            let metadata = fields.get("metadata").and_then(Value::as_object);
            metadata.unwrap_or(&none)
        });
        let mut below = Changes::default();
        let node = field(node, "metadata").0;
        below.compare_fields(metadata[0], metadata[1], node, &SYSTEM_METADATA);
        changes.add_field("metadata", below);
        changes.below
    }
}

/// The changes of one value and below it.
#[derive(Default)]
struct Changes {
    own: Option<Change>,
    below: FieldChanges,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Removed,
    Modified,
    Added,
}

impl Changes {
    fn compare(&mut self, before: Option<&Value>, after: Option<&Value>, node: Option<&Node>) {
        if is_interrupted() {
            return;
        }
        if let (Some(before), Some(after)) = (before, after)
            && before == after
        {
            return;
        }
        self.compare_unequal(before, after, node);
    }

    fn compare_unequal(
        &mut self,
        before: Option<&Value>,
        after: Option<&Value>,
        node: Option<&Node>,
    ) {
        let is_value = |value: Option<&Value>| value.is_some_and(|value| !value.is_null());
        // An empty list or map is one value beside another, or beside none.
        let is_leaf = before.is_none_or(is_empty) && after.is_none_or(is_empty);
        if is_leaf {
            return self.compare_leaf(before, after);
        }
        let old = before.map(|value| Shape::of(value, node));
        let new = after.map(|value| Shape::of(value, node));
        match (old, new) {
            (Some(Shape::Fields(old)), Some(Shape::Fields(new))) => {
                self.compare_fields(old, new, node, &[]);
            }
            (Some(Shape::Items(old, keys)), Some(Shape::Items(new, _))) => {
                self.compare_items(keys, old, new);
            }
            (Some(Shape::Leaf) | None, Some(Shape::Leaf) | None) => {
                return self.compare_leaf(before, after);
            }
            (old, new) => {
                // One of them has fields or items of its own.
                for (shape, is_old) in [(old, true), (new, false)] {
                    match shape {
                        Some(Shape::Fields(fields)) => {
                            for (name, value) in fields {
                                let [old, new] = sides(value, is_old);
                                self.compare_field(name, old, new, node);
                            }
                        }
                        Some(Shape::Items(items, keys)) if is_old => {
                            self.compare_items(keys, items, &[]);
                        }
                        Some(Shape::Items(items, keys)) => self.compare_items(keys, &[], items),
                        _ => {}
                    }
                }
                if is_value(before) && is_value(after) {
                    return self.compare_leaf(before, after);
                }
            }
        }
        match (before, after) {
            (None, Some(_)) => self.own = Some(Change::Added),
            (Some(_), None) => self.own = Some(Change::Removed),
            _ => {}
        }
    }

    fn compare_leaf(&mut self, before: Option<&Value>, after: Option<&Value>) {
        self.own = match (before, after) {
            (None, None) => None,
            (None, Some(_)) => Some(Change::Added),
            (Some(_), None) => Some(Change::Removed),
            (Some(before), Some(after)) => (!is_same(before, after)).then_some(Change::Modified),
        };
    }

    /// Compares the fields of two structs or maps, but those with the names of `skipped`.
    fn compare_fields(
        &mut self,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        node: Option<&Node>,
        skipped: &[&str],
    ) {
        let is_compared = |name: &&String| !skipped.contains(&name.as_str());
        let differs =
            |(name, value): &(&String, &Value)| is_compared(name) && new.get(*name) != Some(*value);
        let is_new = |name: &&String| is_compared(name) && !old.contains_key(*name);
        let changed = old.iter().filter(differs).map(|(name, _)| name);
        let mut names: Vec<&String> = changed.chain(new.keys().filter(is_new)).collect();
        // In order, so that changes are appended: each of many in the middle of a set would move all behind it.
        names.sort();
        for name in names {
            let mut changes = Self::default();
            let node = field(node, name).0;
            changes.compare_unequal(old.get(name), new.get(name), node);
            self.add_field(name, changes);
        }
    }

    fn compare_field(
        &mut self,
        name: &str,
        before: Option<&Value>,
        after: Option<&Value>,
        node: Option<&Node>,
    ) {
        let mut changes = Self::default();
        changes.compare(before, after, field(node, name).0);
        self.add_field(name, changes);
    }

    fn compare_items(&mut self, keys: ItemKeys<'_>, before: &[Value], after: &[Value]) {
        if before.is_empty() {
            // A new list may be long.
            for (element, items) in keys.group(after) {
                let mut changes = Self::default();
                match items[..] {
                    [item] => changes.compare(None, Some(item), keys.node),
                    _ => changes.own = Some(Change::Added),
                }
                self.add(element, changes);
            }
            return;
        }
        let mut pairs: BTreeMap<PathElement, [Vec<&Value>; 2]> = BTreeMap::new();
        for (side, items) in [before, after].into_iter().enumerate() {
            for item in items {
                if is_interrupted() {
                    return;
                }
                if let Ok(element) = keys.element(item) {
                    pairs.entry(element).or_default()[side].push(item);
                }
            }
        }
        for (element, [old, new]) in pairs {
            let mut changes = Self::default();
            match (&old[..], &new[..]) {
                ([] | [_], [] | [_]) => {
                    changes.compare(old.first().copied(), new.first().copied(), keys.node);
                }
                // Several items with the same keys are one value.
                ([_, _, ..], [_, _, ..]) => {
                    let is_equal = old.len() == new.len()
                        && old.iter().zip(&new).all(|(old, new)| is_same(old, new));
                    changes.own = (!is_equal).then_some(Change::Modified);
                }
                ([_, _, ..], _) => {
                    if let Some(new) = new.first() {
                        changes.compare(None, Some(new), keys.node);
                    }
                    self.below
                        .removed
                        .add(element.clone(), true, FieldSet::default());
                }
                (_, _) => {
                    if let Some(old) = old.first() {
                        changes.compare(Some(old), None, keys.node);
                    }
                    self.below
                        .added
                        .add(element.clone(), true, FieldSet::default());
                }
            }
            self.add(element, changes);
        }
    }

    fn add_field(&mut self, name: &str, changes: Self) {
        if changes.own.is_some() || !changes.below.is_empty() {
            self.add(PathElement::field(name), changes);
        }
    }

    /// Adds the changes of a field or an item.
    fn add(&mut self, element: PathElement, changes: Self) {
        let Self { own, below } = changes;
        let sets = [
            (&mut self.below.removed, below.removed, Change::Removed),
            (&mut self.below.modified, below.modified, Change::Modified),
            (&mut self.below.added, below.added, Change::Added),
        ];
        for (set, below, change) in sets {
            let is_member = own == Some(change);
            if is_member || !below.is_empty() {
                set.add(element.clone(), is_member, below);
            }
        }
    }
}

fn sides(value: &Value, is_old: bool) -> [Option<&Value>; 2] {
    if is_old {
        [Some(value), None]
    } else {
        [None, Some(value)]
    }
}
