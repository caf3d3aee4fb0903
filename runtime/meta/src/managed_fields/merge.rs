//! Merges the document of an apply request into the present one.

use std::collections::{BTreeMap, BTreeSet};

use apiloom_schema::tree::Node;
use serde_json::{Map, Value};

use super::Ownership;
use super::path_element::PathElement;
use super::shape::{ItemKeys, Shape, field, is_empty};
use crate::interrupt::is_interrupted;

impl Ownership<'_> {
    /// Merges the fields of an applied document into those of the present one: values of the applied one win, and fields and
    /// items that only one of them has are kept. Items of the applied list are in its order; those that only the present
    /// list has keep their place between them. Returns whether that changes the present document.
    pub fn merge_applied(
        &self,
        present: &mut Map<String, Value>,
        applied: &Map<String, Value>,
    ) -> bool {
        if self.root().atomic_map == Some(true) {
            return replace(present, applied);
        }
        merge_fields(present, applied, Some(self.root()))
    }
}

/// Merges an applied value into the present one; returns whether that changes it.
fn merge(present: &mut Value, applied: &Value, node: Option<&Node>) -> bool {
    if is_interrupted() {
        return false;
    }
    let are_empty = is_empty(present) && is_empty(applied);
    match (Shape::of(present, node), Shape::of(applied, node)) {
        _ if are_empty => {}
        (Shape::Fields(_), Shape::Fields(applied)) => {
            let present = present.as_object_mut();
            return present.is_some_and(|present| merge_fields(present, applied, node));
        }
        (Shape::Items(items, keys), Shape::Items(applied, _)) => {
            let merged = merge_items(keys, items, applied);
            let is_changed = items != merged;
            if is_changed {
                *present = Value::Array(merged);
            }
            return is_changed;
        }
        // A null leaves fields and items as they are.
        (Shape::Fields(_) | Shape::Items(..), Shape::Leaf) if applied.is_null() => return false,
        _ => {}
    }
    replace(present, applied)
}

/// Replaces a present value by an applied one; returns whether that changes it.
fn replace<T: Clone + PartialEq>(present: &mut T, applied: &T) -> bool {
    let is_changed = present != applied;
    if is_changed {
        present.clone_from(applied);
    }
    is_changed
}

fn merge_fields(
    present: &mut Map<String, Value>,
    applied: &Map<String, Value>,
    node: Option<&Node>,
) -> bool {
    let mut is_changed = false;
    for (name, applied) in applied {
        match present.get_mut(name) {
            Some(present) => is_changed |= merge(present, applied, field(node, name).0),
            None => {
                present.insert(name.clone(), applied.clone());
                is_changed = true;
            }
        }
    }
    is_changed
}

/// The items of both lists: those of the applied list in its order, the others where they were, relative to the items
/// that both lists have.
fn merge_items(keys: ItemKeys<'_>, present: &[Value], applied: &[Value]) -> Vec<Value> {
    // Items without an element cannot be matched; those of the present list stay, and the applied list has none.
    let element = |item| keys.element(item).ok();
    let present: Vec<(Option<PathElement>, &Value)> =
        present.iter().map(|item| (element(item), item)).collect();
    let applied: Vec<(PathElement, &Value)> = applied
        .iter()
        .filter_map(|item| Some((element(item)?, item)))
        .collect();
    let mut old: BTreeMap<&PathElement, Vec<&Value>> = BTreeMap::new();
    for (element, item) in &present {
        if let Some(element) = element {
            old.entry(element).or_default().push(item);
        }
    }
    let new: BTreeSet<&PathElement> = applied.iter().map(|(element, _)| element).collect();
    let is_applied = |element: &Option<PathElement>| {
        element
            .as_ref()
            .is_some_and(|element| new.contains(element))
    };
    // The applied items that the present list has too, in the order in which they are placed.
    let mut shared = applied
        .iter()
        .map(|(element, _)| element)
        .filter(|element| old.contains_key(element))
        .peekable();
    let mut merged = Vec::with_capacity(present.len().max(applied.len()));
    let mut placed: BTreeSet<&PathElement> = BTreeSet::new();
    let merge_item = |element: &PathElement, item: &Value| {
        // One of several present items with the same keys is not merged: the applied one replaces them all.
        let present = old.get(element).map_or(&[][..], Vec::as_slice);
        let [present] = present else {
            return item.clone();
        };
        let mut merged = Value::clone(present);
        merge(&mut merged, item, keys.node);
        merged
    };
    let (mut at, mut next) = (0, 0);
    while at < present.len() || next < applied.len() {
        if let (Some((here, _)), Some((element, item))) = (present.get(at), applied.get(next)) {
            if here.as_ref() == Some(element) {
                merged.push(merge_item(element, item));
                placed.insert(element);
                at += 1;
                next += 1;
                shared.next();
                continue;
            }
            if is_applied(here)
                && shared
                    .peek()
                    .is_some_and(|shared| here.as_ref() != Some(*shared))
            {
                // Its place is where the applied list has it.
                at += 1;
                continue;
            }
        }
        if let Some((here, item)) = present.get(at) {
            if !is_applied(here) {
                merged.push((*item).clone());
                at += 1;
                continue;
            }
            if here.as_ref().is_some_and(|here| placed.contains(here)) {
                at += 1;
            }
        }
        if let Some((element, item)) = applied.get(next) {
            merged.push(merge_item(element, item));
            placed.insert(element);
            if shared.peek() == Some(&element) {
                shared.next();
            }
            next += 1;
        }
    }
    merged
}
