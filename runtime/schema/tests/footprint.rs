//! The estimated memory of schemas beside what they take. One test, alone in its process: the allocator counts what all threads have.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::alloc::System;

use apiloom_schema::Schema;
use apiloom_schema::structural::Footprint;
use bytes::Bytes;
use cap::Cap;
use serde_json::{Map, Value, json};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// A schema with as many properties.
fn properties(count: usize, of: impl Fn(usize) -> Value) -> Value {
    let properties: Map<_, _> = (0..count).map(|at| (format!("p{at}"), of(at))).collect();
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})
}

fn texts(count: usize, length: usize) -> Vec<String> {
    (0..count).map(|at| format!("{at:0>length$}")).collect()
}

/// Schemas whose parts are different, so that none is shared.
fn different() -> Vec<(&'static str, Value)> {
    let items: Vec<Value> = (0..20_000).map(|at| json!({"a": at})).collect();
    let object = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let list = json!({"type": "array", "items": object, "default": items});
    let numbers: Vec<i32> = (0..50_000).collect();
    let bounds =
        |at| json!({"type": "integer", "minimum": at, "maximum": 10_000, "format": "int32"});
    let branches = |at| json!({"type": "string", "anyOf": [{"minLength": at}, {"maxLength": 3}], "not": {"enum": ["x"]}});
    let rules = |at| json!({"type": "integer", "x-kubernetes-validations": [{"rule": format!("self > {at}"), "message": "too small"}]});
    let one = |schema: Value| properties(1, |_| schema.clone());
    vec![
        ("bounds", properties(5000, bounds)),
        ("branches", properties(1000, branches)),
        ("rules", properties(300, rules)),
        (
            "a long enum",
            one(json!({"type": "string", "enum": texts(50_000, 8)})),
        ),
        (
            "an enum of long texts",
            one(json!({"type": "string", "enum": texts(1000, 1000)})),
        ),
        (
            "an enum of numbers",
            one(json!({"type": "integer", "enum": numbers})),
        ),
        (
            "an enum of objects",
            one(json!({"type": "object", "enum": items})),
        ),
        ("a default", one(list)),
        (
            "names",
            one(json!({"type": "object", "required": texts(20_000, 8)})),
        ),
    ]
}

/// Schemas with equal parts, which are kept once and estimated each time.
fn equal() -> Vec<(&'static str, Value)> {
    let deep = (0..40).fold(
        json!({"type": "string"}),
        |inner, _| json!({"type": "object", "properties": {"a": inner}}),
    );
    let item =
        json!({"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}});
    let list = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item});
    vec![
        ("integers", properties(5000, |_| json!({"type": "integer"}))),
        (
            "descriptions",
            properties(
                5000,
                |at| json!({"type": "string", "description": "d".repeat(at % 300)}),
            ),
        ),
        (
            "enums",
            properties(1000, |_| json!({"type": "string", "enum": ["A", "B", "C"]})),
        ),
        ("lists", properties(2000, |_| list.clone())),
        (
            "maps",
            properties(
                2000,
                |_| json!({"type": "object", "additionalProperties": {"type": "string"}}),
            ),
        ),
        (
            "closed",
            properties(
                2000,
                |_| json!({"type": "object", "additionalProperties": false}),
            ),
        ),
        ("deep", properties(200, |_| deep.clone())),
        (
            "formats",
            properties(
                2000,
                |_| json!({"type": "string", "format": "date-time", "nullable": true}),
            ),
        ),
    ]
}

/// The estimate, and what the schema keeps after an object was validated, which makes the indexes of enums.
fn estimated_and_kept(schema: &Value) -> [usize; 2] {
    let json = Bytes::from(schema.to_string());
    let mut footprint = Footprint::default();
    footprint.count_json(&json);
    let fields: Map<_, _> = (0..5000)
        .map(|at| (format!("p{at}"), json!("none")))
        .collect();
    let document = json!({"spec": fields});
    let before = ALLOCATOR.allocated();
    let made = Schema::of_custom_resource_json(json).unwrap();
    drop(made.validate(&document));
    let kept = ALLOCATOR.allocated() - before;
    drop(made);
    [footprint.bytes(), kept]
}

// Objects in an enum or a default took five times the estimate, bounds twice.
#[test]
fn schemas_take_what_is_estimated() {
    // What the first schema makes stays.
    estimated_and_kept(&properties(1, |_| json!({"type": "integer"})));
    for (name, schema) in different() {
        let [estimated, kept] = estimated_and_kept(&schema);
        println!("{name}: {estimated} estimated, {kept} kept");
        assert!(
            kept <= estimated && estimated < 2 * kept,
            "{name}: {estimated} estimated, {kept} kept"
        );
    }
    for (name, schema) in equal() {
        let [estimated, kept] = estimated_and_kept(&schema);
        println!("{name}: {estimated} estimated, {kept} kept");
        assert!(
            kept <= estimated,
            "{name}: {estimated} estimated, {kept} kept"
        );
    }
}
