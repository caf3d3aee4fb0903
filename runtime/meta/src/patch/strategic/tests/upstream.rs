//! Random patches, nested and with empty maps, and what Kubernetes' own library makes of them (`upstream.jsonl`, made with
//! `strategicpatch` of 1.36 and a struct of the fields of this schema). A line is a document, a patch, and the result or the error.
//! The documents were copied first, as kube-apiserver copies an object of its cache. Of a list with duplicates the library gives another
//! order if Go's slice happens to have room behind its items: it then writes over the order that it goes by.

use serde_json::{Value, json};

use super::super::super::Patch;
use crate::schema::Schema;

const LINES: &str = include_str!("upstream.jsonl");

fn schema() -> Schema {
    let text = || json!({"type": "string"});
    let tags = || json!({"type": "array", "items": text(), "x-kubernetes-patch-strategy": "merge"});
    let map = || json!({"type": "object", "additionalProperties": text()});
    let keyed = |key: &str, properties: Value| {
        json!({"type": "array", "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": key,
            "items": {"type": "object", "properties": properties}})
    };
    let pair = |strategy: &str| json!({"type": "object", "x-kubernetes-patch-strategy": strategy, "properties": {"a": text(), "b": text()}});
    let mut inner = json!({"type": "object", "properties": {"a": text(), "b": text(), "tags": tags(), "map": map()}});
    for _ in 0..3 {
        let below = inner.clone();
        inner["properties"]["in"] = below;
    }
    let ports = keyed("port", json!({"port": text(), "protocol": text()}));
    let pod =
        json!({"name": text(), "image": text(), "tags": tags(), "ports": ports, "inner": inner});
    let schema = json!({"type": "object", "properties": {
        "text": text(), "map": map(), "inner": inner, "whole": pair("replace"), "retained": pair("retainKeys"),
        "atomic": {"type": "array", "items": text()}, "tags": tags(), "pods": keyed("name", pod),
    }});
    Schema::of_resource(&schema).unwrap()
}

/// As the struct of the kind has it: without nulls, and without directives that were left.
fn decoded(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields
                .iter()
                .filter(|(name, value)| !value.is_null() && !name.starts_with('$'));
            kept.map(|(name, value)| (name.clone(), decoded(value)))
                .collect()
        }
        Value::Array(items) => items.iter().map(decoded).collect(),
        scalar => scalar.clone(),
    }
}

#[test]
fn results_are_those_of_kubernetes() {
    let schema = schema();
    let mut unequal = Vec::new();
    assert!(LINES.lines().count() >= 1500);
    for line in LINES.lines() {
        let (document, patch, expected): (Value, Value, Value) =
            serde_json::from_str(line).unwrap();
        let parsed = Patch::parse_strategic(patch.to_string().as_bytes()).unwrap();
        let mut result = document.clone();
        match (parsed.apply(&schema, &mut result), &expected) {
            (Err(_), Value::String(_)) => {}
            (Ok(()), expected @ Value::Object(_)) if decoded(&result) == decoded(expected) => {}
            (found, _) => unequal.push(format!(
                "{document}\n  {patch}\n  theirs {expected}\n  ours {found:?} {result}"
            )),
        }
    }
    assert!(
        unequal.is_empty(),
        "{} differ:\n{}",
        unequal.len(),
        unequal.join("\n")
    );
}
