//! Checks that the items of sets and the keys of map lists are unique.

use std::collections::HashMap;

use serde_json::{Map, Number, Value};

use super::super::equality::ComparedValue;
use super::super::error_list::ErrorList;
use super::super::go_numbers;
use super::super::node::{ListType, Node};
use super::super::walk_path::Path;
use super::parts::visit_all;
use crate::field::FieldError;
use crate::interrupt::is_interrupted;
use crate::number;

/// Checks a value and everything in it.
pub(super) fn check(node: &Node, value: &Value, errors: &mut ErrorList) {
    visit_all(node, value, &Path::Root, &mut |node, value, path| {
        if let Value::Array(items) = value {
            list(node, items, path, errors);
        }
    });
}

fn list(node: &Node, items: &[Value], path: &Path<'_>, errors: &mut ErrorList) {
    let Some(list_type) = &node.list_type else {
        return;
    };
    let keys = match list_type {
        ListType::Atomic => return,
        ListType::Set => None,
        ListType::Map(keys) => {
            let is_object = |item: &Value| item.is_null() || item.is_object();
            if let Some(index) = items.iter().position(|item| !is_object(item)) {
                let at = Path::Index(path, index).field();
                let detail = "must be an object for an array of list-type map";
                errors.add(|| FieldError::invalid(&at, &items[index], detail));
                return;
            }
            Some(keys)
        }
    };
    // The second item with an identity is reported, others after it are not.
    let mut seen: HashMap<Identity<'_>, usize> = HashMap::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        if is_interrupted() {
            return;
        }
        let identity = Identity::of(keys.map_or(&[], Vec::as_slice), item);
        let count = seen.entry(identity).or_default();
        *count += 1;
        if *count == 2 {
            let mut shown = match (keys, item) {
                (Some(keys), Value::Object(fields)) => of_keys(keys, fields),
                (Some(_), _) => Value::Object(Map::new()),
                (None, item) => item.clone(),
            };
            number::settle(&mut shown);
            errors.add(|| {
                let at = Path::Index(path, index).field();
                FieldError::duplicate(&at, go_numbers::shown_value(&shown))
            });
        }
    }
}

/// What identifies an item among others, as kube-apiserver compares them: the order of lists in it counts, and a number that is
/// the whole identity is not equal to one that is written in another form, as 1 and 1.0.
#[derive(PartialEq, Eq, Hash)]
struct Identity<'a> {
    parts: Vec<Option<ComparedValue<'a>>>,
    is_float: bool,
}

impl<'a> Identity<'a> {
    /// By the keys of a map list; of a set, which has none, by the item itself.
    fn of(keys: &[String], item: &'a Value) -> Self {
        let parts: Vec<Option<&Value>> = if keys.is_empty() {
            vec![Some(item)]
        } else {
            keys.iter().map(|key| item.get(key)).collect()
        };
        let is_float = |value: &Value| value.as_number().is_some_and(Number::is_f64);
        Self {
            is_float: matches!(parts[..], [Some(only)] if is_float(only)),
            parts: parts
                .into_iter()
                .map(|part| part.map(ComparedValue::plain))
                .collect(),
        }
    }
}

/// The keys of an item.
fn of_keys(keys: &[String], fields: &Map<String, Value>) -> Value {
    let keys = keys
        .iter()
        .filter_map(|key| Some((key.clone(), fields.get(key)?.clone())));
    Value::Object(keys.collect())
}
