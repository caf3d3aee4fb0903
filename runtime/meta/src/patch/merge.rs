//! JSON merge patches as Kubernetes applies them. Beyond RFC 7386, which takes fields of null out of objects only, a value that is
//! new has none of them at any depth, those of objects in lists included.

use std::mem;

use serde_json::{Map, Value};

use crate::interrupt::is_interrupted;

/// Merges a patch into a document, which is an object. A list takes its place.
pub(super) fn merge(document: &mut Value, patch: &Value) {
    match (&mut *document, patch) {
        (Value::Object(fields), Value::Object(patch)) => merge_fields(fields, patch),
        (_, patch) => *document = without_nulls(patch),
    }
}

fn merge_fields(fields: &mut Map<String, Value>, patch: &Map<String, Value>) {
    let mut added = Vec::new();
    for (name, new) in patch {
        if is_interrupted() {
            return;
        }
        if new.is_null() {
            fields.remove(name);
            continue;
        }
        match (fields.get_mut(name), new) {
            (Some(Value::Object(present)), Value::Object(patch)) => merge_fields(present, patch),
            // The exception: what takes the place of an object keeps its nulls.
            (Some(present @ Value::Object(_)), new) => *present = new.clone(),
            (Some(present), new) => *present = without_nulls(new),
            (None, new) => added.push((name.clone(), without_nulls(new))),
        }
    }
    insert_sorted(fields, added);
}

/// Inserts fields that are new and sorted. Where they are the larger part, the object is built again from both: inserted one by one, each
/// of them is searched for in the object that grows with them, which takes several times as long.
pub(super) fn insert_sorted(fields: &mut Map<String, Value>, new: Vec<(String, Value)>) {
    if new.len() > fields.len() {
        *fields = mem::take(fields).into_iter().chain(new).collect();
    } else {
        fields.extend(new);
    }
}

/// The same without fields of null; items of null stay.
fn without_nulls(value: &Value) -> Value {
    match value {
        _ if is_interrupted() => Value::Null,
        Value::Object(fields) => {
            let set = fields.iter().filter(|(_, value)| !value.is_null());
            set.map(|(name, value)| (name.clone(), without_nulls(value)))
                .collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        scalar => scalar.clone(),
    }
}
