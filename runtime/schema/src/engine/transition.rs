//! Rules for updates of values, and the correlation of old and new list items.

use std::collections::HashMap;

use serde_json::Value;

use super::equality::{Identity, identity, same};
use super::error_list::ErrorList;
use super::node::{ListType, Node, child};
use super::walk_path::Path;
use crate::field::FieldError;
use crate::interrupt::is_interrupted;
use crate::number;

/// Old items of a list, by identity.
pub(crate) type OldItems<'a> = HashMap<Identity<'a>, &'a Value>;

/// The old items of a list; none for an atomic list, which is a single value.
pub(crate) fn correlate<'a>(
    list: &'a Node,
    list_type: &ListType,
    items: &'a [Value],
) -> OldItems<'a> {
    match list_type {
        ListType::Atomic => OldItems::new(),
        _ => items
            .iter()
            .map(|item| (identity(list, list_type, item), item))
            .collect(),
    }
}

/// The old item with the identity of `item`.
pub(crate) fn find<'a>(
    list: &'a Node,
    list_type: &ListType,
    old: &OldItems<'a>,
    item: &'a Value,
) -> Option<&'a Value> {
    if old.is_empty() {
        None
    } else {
        old.get(&identity(list, list_type, item)).copied()
    }
}

/// Whether a value is equal to the old one, as kube-apiserver compares custom resources: the order of the items of a list of
/// type map is ignored, and an object with a field that has no schema is never equal.
pub(super) fn is_unchanged(node: &Node, new: &Value, old: &Value) -> bool {
    if is_interrupted() {
        return false;
    }
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            new.len() == old.len()
                && new.iter().all(|(name, new)| {
                    let below = compared_by(node, name).zip(old.get(name));
                    below.is_some_and(|(node, old)| is_unchanged(node, new, old))
                })
        }
        (Value::Array(new), Value::Array(old)) => {
            let list_type = node.list_type.as_ref();
            let (Some(list_type @ ListType::Map(_)), Some(items)) = (list_type, &node.items) else {
                return new == old;
            };
            let old_items = correlate(node, list_type, old);
            new.len() == old.len()
                && new.iter().all(|item| {
                    find(node, list_type, &old_items, item)
                        .is_some_and(|old| is_unchanged(items, item, old))
                })
        }
        _ => new == old,
    }
}

/// The schema of a field; `None` for one that the definition does not describe, such as the metadata of most.
fn compared_by<'a>(node: &'a Node, name: &str) -> Option<&'a Node> {
    let mut declared = node.custom.iter().flat_map(|custom| &custom.declared);
    if let Some(declared) = declared.find(|property| property.name == name) {
        return Some(&declared.node);
    }
    let found = child(Some(node), name)?;
    (!found.dialect.is_typed && !found.is_closed()).then_some(found)
}

/// Checks the update rules of a node whose parent existed before.
pub(crate) fn check(
    errors: &mut ErrorList,
    node: &Node,
    new: Option<&Value>,
    old: Option<&Value>,
    path: &Path<'_>,
) {
    let is_same = match (new, old) {
        (Some(new), Some(old)) => same(Some(node), new, old),
        _ => new == old,
    };
    if is_same {
        return;
    }
    let rules = node.update;
    let is_set = |value: Option<&Value>| value.is_some_and(|value| !node.is_unset(value));
    let (was_set, now_set) = (is_set(old), is_set(new));
    let mut refuse = |refused: bool, detail: &str| {
        if refused {
            errors.add(|| FieldError::invalid(&path.field(), Value::Null, detail));
        }
    };
    refuse(
        rules.no_set && !was_set && now_set,
        "field cannot be set once created",
    );
    refuse(
        rules.no_unset && was_set && !now_set,
        "field cannot be cleared once set",
    );
    refuse(
        rules.no_modify && was_set && now_set,
        "field cannot be modified once set",
    );
    if rules.immutable && (was_set || now_set) {
        errors.add(|| FieldError::invalid(&path.field(), new, "field is immutable"));
    }
    if let (true, Some(Value::Number(old)), Some(Value::Number(new))) = (rules.monotonic, old, new)
        && number::compare(new, old).is_lt()
    {
        errors.add(|| {
            FieldError::invalid(
                &path.field(),
                new,
                &format!("may not be decreased from {old}"),
            )
        });
    }
    if rules.no_add_item || rules.no_remove_item {
        items(errors, node, new, old, path);
    }
}

fn items(
    errors: &mut ErrorList,
    node: &Node,
    new: Option<&Value>,
    old: Option<&Value>,
    path: &Path<'_>,
) {
    const ADDED: &str = "item may not be added";
    const REMOVED: &str = "item may not be removed";
    let rules = node.update;
    match new.or(old) {
        Some(Value::Array(_)) => {
            // Items without a declared identity are identified by their value.
            let list_type = node
                .list_type
                .as_ref()
                .filter(|t| **t != ListType::Atomic)
                .unwrap_or(&ListType::Set);
            let (new, old) = (elements(new), elements(old));
            let (by_new, by_old) = (
                correlate(node, list_type, new),
                correlate(node, list_type, old),
            );
            for (index, _) in new.iter().enumerate().filter(|(_, item)| {
                rules.no_add_item && find(node, list_type, &by_old, item).is_none()
            }) {
                errors.add(|| FieldError::forbidden(&Path::Index(path, index).field(), ADDED));
            }
            for _ in old.iter().filter(|item| {
                rules.no_remove_item && find(node, list_type, &by_new, item).is_none()
            }) {
                errors.add(|| FieldError::forbidden(&path.field(), REMOVED));
            }
        }
        Some(Value::Object(_)) => {
            let has = |value: Option<&Value>, key: &str| {
                value.is_some_and(|value| value.get(key).is_some())
            };
            let keys = |value: Option<&Value>| {
                value
                    .and_then(Value::as_object)
                    .into_iter()
                    .flat_map(|fields| fields.keys().cloned())
                    .collect::<Vec<_>>()
            };
            for key in keys(new)
                .iter()
                .filter(|key| rules.no_add_item && !has(old, key))
            {
                errors.add(|| FieldError::forbidden(&Path::Key(path, key).field(), ADDED));
            }
            for key in keys(old)
                .iter()
                .filter(|key| rules.no_remove_item && !has(new, key))
            {
                errors.add(|| FieldError::forbidden(&Path::Key(path, key).field(), REMOVED));
            }
        }
        _ => {}
    }
}

fn elements(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
