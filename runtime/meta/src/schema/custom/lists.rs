//! Checks that the items of sets and the keys of map lists are unique.

use std::collections::HashMap;

use serde_json::{Map, Number, Value};

use super::super::equality::ComparedValue;
use super::super::node::{Child, ListType, Node};
use super::super::path::Path;
use super::numbers;
use super::outcome::Outcome;
use crate::field::FieldError;
use crate::interrupt::is_interrupted;
use crate::number;

/// Checks a value and everything in it.
pub(super) fn check(node: &Node, value: &Value, path: &Path<'_>, out: &mut Outcome) {
    if node.dialect.is_typed || is_interrupted() {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Child::Node(below) = node.child(name) {
                    let at = path.step(node.property(name).is_none(), name);
                    check(below, value, &at, out);
                }
            }
        }
        Value::Array(items) => {
            list(node, items, path, out);
            for (index, item) in items.iter().enumerate() {
                if let Some(below) = &node.items {
                    check(below, item, &Path::Index(path, index), out);
                }
            }
        }
        _ => {}
    }
}

fn list(node: &Node, items: &[Value], path: &Path<'_>, out: &mut Outcome) {
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
                out.add(|| FieldError::invalid(&at, &items[index], detail));
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
            let shown = numbers::shown_value(&shown);
            out.add(|| FieldError::duplicate(&Path::Index(path, index).field(), shown));
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
