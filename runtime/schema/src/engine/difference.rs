//! Applies to a document the changes between two states of a view of it, so that fields outside of the view are kept:
//! those that a type does not have, or that another version cannot express.
//!
//! The state before shows how the document appears in the view. Fields that the change does not touch stay unchanged
//! in the document, even if the view shows them differently (rounded, with another enum name, or not at all).

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value};

use super::Schema;
use super::node::{ListType, Node, child, is_set};
use crate::interrupt::is_interrupted;

/// Fields by which the items of a list without keys are matched when other fields change.
const NAMES: [&str; 5] = ["name", "key", "type", "id", "uid"];

type Fields = Map<String, Value>;

/// Applies the changes between `before` and `after` to `document`. The schema, if there is one, is that of all three:
/// it has the keys of lists, and the fields that exclude each other.
pub fn merge_difference(
    schema: Option<&Schema>,
    document: &mut Fields,
    before: &Fields,
    after: Fields,
) {
    merge_fields(schema.map(Schema::root), document, before, after);
}

impl Schema {
    /// Removes from `defaulted`, which is `old` with defaults, the defaults of fields that `sent` sets itself. The
    /// remaining differences from `old` are defaults that `sent` gets too.
    pub fn remove_sent_defaults(&self, defaulted: &mut Fields, old: &Fields, sent: &Fields) {
        remove_sent_fields(Some(&self.root), defaulted, old, sent);
    }
}

fn merge_fields(node: Option<&Node>, document: &mut Fields, before: &Fields, after: Fields) {
    if let Some(node) = node {
        drop_unselected(node, document, before, &after);
    }
    for (name, old) in before.iter().filter(|(name, _)| !after.contains_key(*name)) {
        match document.get_mut(name) {
            // Removes all entries of the view, but keeps those outside of it.
            Some(target) if is_collection(child(node, name)) => {
                merge_value(child(node, name), target, old, emptied(old));
                if is_emptied(target) {
                    document.remove(name);
                }
            }
            _ => drop(document.remove(name)),
        }
    }
    for (name, value) in after {
        if is_interrupted() {
            return;
        }
        let below = child(node, &name);
        match (before.get(&name), document.get_mut(&name)) {
            (Some(old), _) if *old == value => {}
            (Some(old), Some(target)) => merge_value(below, target, old, value),
            (None, Some(target)) if is_collection(below) => {
                merge_value(below, target, &emptied(&value), value);
            }
            _ => drop(document.insert(name, value)),
        }
    }
}

/// Whether a value consists of entries with keys, some of which may be outside of the view.
fn is_collection(node: Option<&Node>) -> bool {
    node.is_some_and(|node| node.is_map() || is_keyed(node.list_type.as_ref()))
}

/// Whether a list or a map is empty.
fn is_emptied(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => true,
    }
}

/// An empty value of the same type.
fn emptied(value: &Value) -> Value {
    match value {
        Value::Array(_) => Value::Array(Vec::new()),
        _ => Value::Object(Fields::new()),
    }
}

fn merge_value(node: Option<&Node>, target: &mut Value, before: &Value, after: Value) {
    match (target, before, after) {
        (Value::Object(target), Value::Object(before), Value::Object(after)) => {
            merge_fields(node, target, before, after);
        }
        (Value::Array(target), Value::Array(before), Value::Array(after)) => {
            merge_items(node, target, before, after);
        }
        (target, _, after) => *target = after,
    }
}

/// Removes the old choice if a change selects another member of a union, or another variant of an enum, even if the
/// view does not show the old one.
fn drop_unselected(node: &Node, document: &mut Fields, before: &Fields, after: &Fields) {
    if let Some(union) = &node.rules.union {
        let tag = union.discriminator.as_deref();
        let members = || union.members.iter().map(|(name, _)| name.as_str());
        let selects_otherwise = tag.is_some_and(|tag| before.get(tag) != after.get(tag))
            || members().any(|name| is_set(node, before, name) != is_set(node, after, name));
        if selects_otherwise {
            for name in members()
                .chain(tag)
                .filter(|name| !after.contains_key(*name))
            {
                document.remove(name);
            }
        }
    }
    for choice in node.choices.iter().filter(|choice| choice.exactly_one) {
        let branches = &choice.branches;
        if branches
            .iter()
            .any(|branch| fits(branch, before) != fits(branch, after))
        {
            let fields = branches.iter().flat_map(|branch| &branch.properties);
            for field in fields.filter(|field| !after.contains_key(&field.name)) {
                document.remove(&field.name);
            }
        }
    }
}

/// Whether an object matches a variant of an enum: its required fields, and the values of its tags.
fn fits(branch: &Node, fields: &Fields) -> bool {
    let mut required = branch.properties.iter().filter(|field| field.required);
    required.all(|field| {
        let tags = &field.node.rules.values;
        let is_tag = |value: &Value| tags.is_empty() || tags.contains(value);
        fields.get(&field.name).is_some_and(is_tag)
    })
}

/// Merges lists. A new item that continues an old one keeps the fields of the document's item; a new item that
/// continues none is added unchanged. Fields are never moved from one item to another.
fn merge_items(node: Option<&Node>, target: &mut Vec<Value>, before: &[Value], after: Vec<Value>) {
    let list_type = node.and_then(|node| node.list_type.as_ref());
    let Some(places) = places(list_type, target, before) else {
        *target = after;
        return;
    };
    let item_node = node.and_then(|node| node.items.as_deref());
    let origins = origins(list_type, before, &after);
    let mut held: Vec<Option<Value>> = std::mem::take(target).into_iter().map(Some).collect();
    for (item, origin) in after.into_iter().zip(origins) {
        let kept = origin.and_then(|origin| Some((origin, held[places[origin]].take()?)));
        target.push(match kept {
            Some((origin, kept)) if before[origin] == item => kept,
            Some((origin, mut kept)) => {
                merge_value(item_node, &mut kept, &before[origin], item);
                kept
            }
            None => item,
        });
    }
    // Items outside of the view stay, after those in it.
    for place in places {
        held[place] = None;
    }
    target.extend(held.into_iter().flatten());
}

/// Positions in the document of the view's items. `None` if they cannot be matched; then the list is one value.
fn places(list_type: Option<&ListType>, document: &[Value], view: &[Value]) -> Option<Vec<usize>> {
    let mut by_key: HashMap<Identity<'_>, VecDeque<usize>> = HashMap::new();
    for (place, item) in document.iter().enumerate() {
        by_key
            .entry(identity(list_type, item))
            .or_default()
            .push_back(place);
    }
    let mut found = |item| {
        let identity = identity(list_type, item);
        let is_named = identity.iter().any(Option::is_some);
        by_key.get_mut(&identity)?.pop_front().filter(|_| is_named)
    };
    let places: Option<Vec<usize>> = view.iter().map(&mut found).collect();
    let same_length = document.len() == view.len();
    if places.is_some() && (same_length || is_keyed(list_type)) {
        places
    } else if same_length {
        Some((0..view.len()).collect())
    } else {
        None
    }
}

/// Identity of a list item: its keys, the item itself in a set, else its names.
type Identity<'a> = Vec<Option<&'a Value>>;

fn identity<'a>(list_type: Option<&ListType>, item: &'a Value) -> Identity<'a> {
    match list_type {
        Some(ListType::Map(keys)) => keys.iter().map(|key| item.get(key)).collect(),
        Some(ListType::Set) => vec![Some(item)],
        Some(ListType::Atomic) | None => NAMES.iter().map(|name| item.get(name)).collect(),
    }
}

fn is_keyed(list_type: Option<&ListType>) -> bool {
    matches!(list_type, Some(ListType::Set | ListType::Map(_)))
}

/// The old item that each new one continues: in a list with keys, the one with the same key. Otherwise an equal one,
/// one with the same name, or, if neither has a name and the length is the same, the one at the same position.
fn origins(list_type: Option<&ListType>, before: &[Value], after: &[Value]) -> Vec<Option<usize>> {
    let mut free = vec![true; before.len()];
    let mut origins = vec![None; after.len()];
    if !is_keyed(list_type) {
        let mut equal: HashMap<&Value, VecDeque<usize>> = HashMap::with_capacity(before.len());
        for (index, item) in before.iter().enumerate() {
            equal.entry(item).or_default().push_back(index);
        }
        for (origin, item) in origins.iter_mut().zip(after) {
            *origin = equal.get_mut(item).and_then(VecDeque::pop_front);
            if let Some(index) = *origin {
                free[index] = false;
            }
        }
    }
    let mut by_identity: HashMap<Identity<'_>, VecDeque<usize>> = HashMap::new();
    for (index, item) in before.iter().enumerate().filter(|(index, _)| free[*index]) {
        let identity = identity(list_type, item);
        by_identity.entry(identity).or_default().push_back(index);
    }
    let same_length = before.len() == after.len();
    for (place, item) in after.iter().enumerate() {
        if origins[place].is_some() {
            continue;
        }
        let identity = identity(list_type, item);
        origins[place] = if identity.iter().any(Option::is_some) {
            by_identity.get_mut(&identity).and_then(VecDeque::pop_front)
        } else {
            Some(place).filter(|place| {
                same_length
                    && free[*place]
                    && self::identity(list_type, &before[*place]) == identity
            })
        };
    }
    origins
}

fn remove_sent_fields(node: Option<&Node>, defaulted: &mut Fields, old: &Fields, sent: &Fields) {
    let is_sent = |name: &str| sent.get(name).is_some_and(|value| !value.is_null());
    defaulted.retain(|name, _| old.contains_key(name) || !is_sent(name));
    for (name, value) in defaulted {
        if let (Some(old), Some(sent)) = (old.get(name), sent.get(name)) {
            remove_sent(child(node, name), value, old, sent);
        }
    }
}

fn remove_sent(node: Option<&Node>, defaulted: &mut Value, old: &Value, sent: &Value) {
    match (defaulted, old, sent) {
        (Value::Object(defaulted), Value::Object(old), Value::Object(sent)) => {
            remove_sent_fields(node, defaulted, old, sent);
        }
        (Value::Array(defaulted), Value::Array(old), Value::Array(sent))
            if defaulted.len() == old.len() =>
        {
            let list_type = node.and_then(|node| node.list_type.as_ref());
            let items = node.and_then(|node| node.items.as_deref());
            for (sent, origin) in sent.iter().zip(origins(list_type, old, sent)) {
                if let Some(origin) = origin {
                    remove_sent(items, &mut defaulted[origin], &old[origin], sent);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
