//! The memory of schemas.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::super::super::node::{CustomRules, Node, Property, Rules};
use super::of;

/// What a schema allocates, as far as it is not shared with others, in bytes.
fn allocated(node: &Node, seen: &mut HashSet<*const Node>) -> usize {
    let mut bytes = size_of_val(&*node.sorted) + properties(&node.properties, seen);
    for below in [&node.items, &node.additional].into_iter().flatten() {
        bytes += size_of::<Node>() + allocated(below, seen);
    }
    bytes += node.default.as_ref().map_or(0, value);
    bytes += node.format.as_ref().map_or(0, String::capacity);
    bytes += node
        .extensions
        .iter()
        .map(|(name, extension)| size_of::<(String, Value)>() + name.capacity() + value(extension))
        .sum::<usize>();
    if !node.rules.is_empty() {
        bytes += size_of::<Rules>() + node.rules.values.iter().map(value).sum::<usize>();
    }
    if let Some(custom) = &node.custom {
        bytes += size_of::<CustomRules>() + properties(&custom.declared, seen);
        let branches = [&custom.all_of, &custom.any_of, &custom.one_of];
        for branch in branches.into_iter().flatten().chain(&custom.not) {
            bytes += size_of::<Node>() + allocated(branch, seen);
        }
    }
    bytes
}

fn properties(properties: &[Property], seen: &mut HashSet<*const Node>) -> usize {
    let mut bytes = size_of_val(properties);
    for property in properties {
        bytes += property.name.capacity();
        if seen.insert(Arc::as_ptr(&property.node)) {
            // The node has two counters.
            bytes += 16 + size_of::<Node>() + allocated(&property.node, seen);
        }
    }
    bytes
}

fn value(value: &Value) -> usize {
    let inner = match value {
        Value::String(text) => text.capacity(),
        Value::Array(items) => items.iter().map(self::value).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| 32 + name.capacity() + self::value(field))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + inner
}

/// A schema as of a controller that makes pods: fields with descriptions, one in five with rules, and large parts that
/// occur three times.
fn large() -> Value {
    let description = "What this field is for, in a sentence or two, as authors of definitions write it for their users.";
    let field = |number: usize| {
        let mut field = json!({"type": "string", "description": description});
        if number.is_multiple_of(5) {
            field["maxLength"] = json!(number + 1);
        }
        field
    };
    let object = |first: usize| {
        let fields: Map<_, _> = (first..first + 25)
            .map(|number| (format!("field{number}"), field(number)))
            .collect();
        json!({"type": "object", "description": description, "properties": fields})
    };
    let list = || json!({"type": "array", "items": {"type": "object", "properties": {"one": object(0), "two": object(25)}}});
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "containers": list(), "initContainers": list(), "ephemeralContainers": list(), "other": object(50), "more": object(75)}}}})
}

#[test]
fn a_large_schema_needs_less_than_its_document() {
    let document = large();
    let json = document.to_string().len();
    assert!(json > 30_000, "{json}");
    // What all schemas share is not counted.
    let mut seen = HashSet::new();
    allocated(of(&json!({"type": "object"})).root(), &mut seen);
    let bytes = allocated(of(&document).root(), &mut seen);
    assert!(bytes < json, "{bytes} bytes for {json} bytes of JSON");
}

#[test]
fn equal_parts_are_shared_and_others_are_not() {
    let schema = of(&json!({"type": "object", "properties": {
        "a": {"type": "string", "maxLength": 1, "description": "One."},
        "b": {"type": "string", "maxLength": 1, "description": "Another."},
        "c": {"type": "string", "maxLength": 2},
        "d": {"type": "string", "default": {"description": "x"}},
        "e": {"type": "string", "default": {"description": "y"}},
        "f": {"type": "object", "properties": {"description": {"type": "string"}}},
        "g": {"type": "object", "properties": {"title": {"type": "string"}}},
    }}));
    let node = |name: &str| Arc::as_ptr(&schema.root().property(name).unwrap().node);
    assert_eq!(node("a"), node("b"));
    for (one, other) in [("a", "c"), ("d", "e"), ("f", "g")] {
        assert_ne!(node(one), node(other));
    }
}
