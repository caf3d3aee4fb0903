//! The part of a document that a set of fields names: what a manager has applied, to change it and apply it again.

use apiloom_schema::tree::{Node, Types};
use serde_json::{Map, Value};

use super::Ownership;
use super::field_set::{FieldSet, SetNode};
use super::path_element::PathElement;
use super::shape::{ItemKeys, Shape, field};

/// Fields of a set that the document does not have. The type by which it was decoded may not know them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the object does not have {}", .paths.join(", "))]
pub struct MissingFields {
    /// Their paths: `.spec.replicas`.
    pub paths: Vec<String>,
}

impl Ownership<'_> {
    /// The part of a document that has the fields of a set, and no others. Applied by their manager, it owns the same
    /// set again: a struct, a map or a list that is a member without any fields below it becomes empty, and one that is
    /// owned as one value is whole. Items are in the order of the document, and have their keys, except for those that
    /// follow from the schema's defaults.
    ///
    /// # Errors
    /// If the document does not have a field, so that applying the rest would remove it. An absent list or map counts as
    /// an empty one.
    pub fn extract(&self, document: &Value, fields: &FieldSet) -> Result<Value, MissingFields> {
        let mut missing = Vec::new();
        let part = extract(document, Some(self.root()), fields, "", &mut missing);
        if missing.is_empty() {
            Ok(part)
        } else {
            Err(MissingFields { paths: missing })
        }
    }
}

fn extract(
    value: &Value,
    node: Option<&Node>,
    set: &FieldSet,
    path: &str,
    missing: &mut Vec<String>,
) -> Value {
    match Shape::of(value, node) {
        Shape::Leaf => value.clone(),
        Shape::Fields(fields) => {
            let mut part = Map::new();
            for member in set.nodes() {
                let path = format!("{path}{}", member.element);
                let PathElement::Field(name) = &member.element else {
                    missing.push(path);
                    continue;
                };
                let (below, _) = field(node, name);
                let extracted = match fields.get(&**name) {
                    Some(value) => Some(extract(value, below, &member.below, &path, missing)),
                    None => empty_container(member, below),
                };
                match extracted {
                    Some(value) => drop(part.insert(name.to_string(), value)),
                    None => missing.push(path),
                }
            }
            Value::Object(part)
        }
        Shape::Items(items, keys) => Value::Array(extract_items(items, keys, set, path, missing)),
    }
}

fn extract_items(
    items: &[Value],
    keys: ItemKeys<'_>,
    set: &FieldSet,
    path: &str,
    missing: &mut Vec<String>,
) -> Vec<Value> {
    let mut found = vec![false; set.nodes().len()];
    let mut parts = Vec::with_capacity(found.len());
    for item in items {
        let Ok(element) = keys.element(item) else {
            continue;
        };
        let Some(index) = set.index(&element) else {
            continue;
        };
        // A stored list may have the same item twice; an applied one may not.
        if std::mem::replace(&mut found[index], true) {
            continue;
        }
        let below = &set.nodes()[index].below;
        let mut part = extract(item, keys.node, below, &format!("{path}{element}"), missing);
        if let (Some(fields), PathElement::Key(key)) = (part.as_object_mut(), &element) {
            for (name, value) in key {
                if !fields.contains_key(&**name) && keys.default(name) != Some(value) {
                    fields.insert(name.to_string(), value.clone());
                }
            }
        }
        parts.push(part);
    }
    let absent = set.nodes().iter().zip(found).filter(|(_, found)| !found);
    missing.extend(absent.map(|(member, _)| format!("{path}{}", member.element)));
    parts
}

/// The value of an absent field that was applied as an empty list or map: types leave those out.
fn empty_container(member: &SetNode, node: Option<&Node>) -> Option<Value> {
    let types = node?.types;
    if !member.below.is_empty() || types.is_any() {
        return None;
    }
    if types.shares(Types::ARRAY) {
        Some(Value::Array(Vec::new()))
    } else {
        types
            .shares(Types::OBJECT)
            .then(|| Value::Object(Map::new()))
    }
}
