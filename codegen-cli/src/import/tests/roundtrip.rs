//! Schemas made at random come back whole: what a definition says of a value, and of what is below it, the types say too.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{definition, definition_differences, import};

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// A value without parts.
fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({ "type": "string" })),
        Just(json!({ "type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a" })),
        Just(json!({ "type": "string", "enum": ["Red", "green-1"] })),
        Just(json!({ "type": "string", "format": "date-time" })),
        Just(json!({ "type": "string", "format": "byte" })),
        Just(json!({ "type": "string", "default": "a\"b" })),
        Just(json!({ "type": "integer", "format": "int32", "minimum": -3, "maximum": 7 })),
        Just(json!({ "type": "integer", "default": 3 })),
        Just(json!({ "type": "number", "multipleOf": 0.5 })),
        Just(json!({ "type": "boolean" })),
        Just(json!({ "x-kubernetes-int-or-string": true })),
        Just(json!({ PRESERVE: true })),
        Just(json!({ "type": "object", PRESERVE: true })),
        Just(json!({ "type": "object", PRESERVE: true, "x-kubernetes-embedded-resource": true })),
    ]
}

/// A schema with these keywords, of which each is there or not.
fn with_some(schema: Value, some: Vec<(&'static str, Value)>) -> impl Strategy<Value = Value> {
    let count = some.len();
    prop::collection::vec(any::<bool>(), count).prop_map(move |chosen| {
        let mut schema = schema.clone();
        for ((name, value), _) in some.iter().zip(&chosen).filter(|(_, chosen)| **chosen) {
            schema[*name] = value.clone();
        }
        schema
    })
}

fn schema() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 24, 3, |inner| {
        let list = inner.clone().prop_flat_map(|items| {
            let some = vec![
                (PRESERVE, json!(true)),
                ("nullable", json!(true)),
                ("minItems", json!(1)),
                ("x-kubernetes-list-type", json!("atomic")),
            ];
            with_some(json!({ "type": "array", "items": items }), some)
        });
        let map = inner.clone().prop_flat_map(|values| {
            let some = vec![
                ("nullable", json!(true)),
                ("maxProperties", json!(4)),
                ("x-kubernetes-map-type", json!("atomic")),
                (PRESERVE, json!(true)),
            ];
            with_some(
                json!({ "type": "object", "additionalProperties": values }),
                some,
            )
        });
        let object = prop::collection::vec(inner, 1..3).prop_flat_map(|fields| {
            let names = ["alpha", "betaIP", "type"];
            let properties: Map<String, Value> = names
                .iter()
                .zip(fields)
                .map(|(name, field)| ((*name).to_owned(), field))
                .collect();
            let some = vec![
                (PRESERVE, json!(true)),
                ("nullable", json!(true)),
                ("required", json!(["alpha"])),
                ("default", json!({})),
            ];
            with_some(json!({ "type": "object", "properties": properties }), some)
        });
        prop_oneof![list, map, object]
    })
}

/// Whether a default is one that Kubernetes takes: it has what its schema requires.
fn is_sound(schema: &Value) -> bool {
    let is_own =
        schema["default"] != json!({}) || schema["required"].as_array().is_none_or(Vec::is_empty);
    let fields = schema["properties"]
        .as_object()
        .into_iter()
        .flat_map(Map::values);
    let below = fields.chain([&schema["items"], &schema["additionalProperties"]]);
    is_own && below.filter(|below| below.is_object()).all(is_sound)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn schemas_come_back_whole(schema in schema()) {
        prop_assume!(is_sound(&schema));
        let imported = import(&definition(json!({ "value": schema })));
        prop_assert_eq!(imported.lost, Vec::<String>::new(), "{}\n{}", schema, imported.modules[0].1);
    }
}

#[test]
fn the_comparison_sees_what_is_passed_on_to_items() {
    let closed =
        json!({ "type": "array", "items": { "type": "array", "items": { "type": "object" } } });
    let mut open = closed.clone();
    open[PRESERVE] = true.into();
    let differences = definition_differences(
        &definition(json!({ "value": open })),
        &definition(json!({ "value": closed })),
    );
    let expected = format!("v1: spec.value: {PRESERVE} true is left out");
    assert_eq!(differences, Ok(vec![expected]));
}
