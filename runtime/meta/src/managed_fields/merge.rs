//! Merges the document of an apply request into the present one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::path_element::PathElement;
use super::shape::{ItemKeys, Shape, field, is_empty};
use crate::schema::Schema;
use crate::schema::node::Node;

impl Schema {
    /// Merges an applied document into the present one: values of the applied one win, and fields and items that only
    /// one of them has are kept. Items of the applied list are in its order; those that only the present list has keep
    /// their place between them.
    pub fn merge_applied(&self, present: &Value, applied: &Value) -> Value {
        merge(Some(present), Some(applied), Some(self.root())).unwrap_or(Value::Null)
    }
}

/// The merged value; `None` for a list or map that had no content to merge.
fn merge(present: Option<&Value>, applied: Option<&Value>, node: Option<&Node>) -> Option<Value> {
    let chosen = || applied.or(present).cloned();
    if present.is_none_or(is_empty) && applied.is_none_or(is_empty) {
        return chosen();
    }
    let shapes = [present, applied].map(|value| {
        let value = value.filter(|value| !value.is_null());
        value.map(|value| Shape::of(value, node))
    });
    match shapes {
        [Some(Shape::Fields(present)), Some(Shape::Fields(applied))] => {
            Some(merge_fields(present, applied, node))
        }
        [Some(Shape::Fields(fields)), None] => Some(merge_fields(fields, &Map::new(), node)),
        [None, Some(Shape::Fields(fields))] => Some(merge_fields(&Map::new(), fields, node)),
        [
            Some(Shape::Items(present, keys)),
            Some(Shape::Items(applied, _)),
        ] => Some(Value::Array(merge_items(keys, present, applied))),
        [Some(Shape::Items(items, keys)), None] => {
            Some(Value::Array(merge_items(keys, items, &[])))
        }
        [None, Some(Shape::Items(items, keys))] => {
            Some(Value::Array(merge_items(keys, &[], items)))
        }
        _ => chosen(),
    }
}

fn merge_fields(
    present: &Map<String, Value>,
    applied: &Map<String, Value>,
    node: Option<&Node>,
) -> Value {
    let names: BTreeSet<&String> = present.keys().chain(applied.keys()).collect();
    let merged = names.into_iter().filter_map(|name| {
        let (below, _) = field(node, name);
        let merged = merge(present.get(name), applied.get(name), below)?;
        Some((name.clone(), merged))
    });
    Value::Object(merged.collect())
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
    let merge_item = |element: &PathElement, item| {
        // One of several present items with the same keys is not merged: the applied one replaces them all.
        let present = old.get(element).map_or(&[][..], Vec::as_slice);
        let present = <[&Value; 1]>::try_from(present).ok().map(|[item]| item);
        merge(present, Some(item), keys.node)
    };
    let (mut at, mut next) = (0, 0);
    while at < present.len() || next < applied.len() {
        if let (Some((here, _)), Some((element, item))) = (present.get(at), applied.get(next)) {
            if here.as_ref() == Some(element) {
                merged.extend(merge_item(element, item));
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
            merged.extend(merge_item(element, item));
            placed.insert(element);
            if shared.peek() == Some(&element) {
                shared.next();
            }
            next += 1;
        }
    }
    merged
}
