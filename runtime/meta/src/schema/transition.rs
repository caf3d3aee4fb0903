//! Rules for updates of values, and the correlation of old and new list items.

use std::collections::HashMap;

use serde_json::Value;

use super::equality::{Identity, identity, same};
use super::node::{ListType, Node};
use super::path::Path;
use super::walk::Walk;
use crate::field::FieldError;
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

/// Checks the update rules of a node whose parent existed before.
pub(crate) fn check(
    walk: &mut Walk,
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
            walk.fail(|| FieldError::invalid(&path.field(), Value::Null, detail));
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
        walk.fail(|| FieldError::invalid(&path.field(), new, "field is immutable"));
    }
    if let (true, Some(Value::Number(old)), Some(Value::Number(new))) = (rules.monotonic, old, new)
        && number::compare(new, old).is_lt()
    {
        walk.fail(|| {
            FieldError::invalid(
                &path.field(),
                new,
                &format!("may not be decreased from {old}"),
            )
        });
    }
    if rules.no_add_item || rules.no_remove_item {
        items(walk, node, new, old, path);
    }
}

fn items(walk: &mut Walk, node: &Node, new: Option<&Value>, old: Option<&Value>, path: &Path<'_>) {
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
                walk.fail(|| FieldError::forbidden(&Path::Index(path, index).field(), ADDED));
            }
            for _ in old.iter().filter(|item| {
                rules.no_remove_item && find(node, list_type, &by_new, item).is_none()
            }) {
                walk.fail(|| FieldError::forbidden(&path.field(), REMOVED));
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
                walk.fail(|| FieldError::forbidden(&Path::Key(path, key).field(), ADDED));
            }
            for key in keys(old)
                .iter()
                .filter(|key| rules.no_remove_item && !has(new, key))
            {
                walk.fail(|| FieldError::forbidden(&Path::Key(path, key).field(), REMOVED));
            }
        }
        _ => {}
    }
}

fn elements(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
