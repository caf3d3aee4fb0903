//! Schemas printed for CRDs pass kube-apiserver's check of structural schemas.

use proptest::prelude::*;
use serde_json::json;

use super::super::structural;
use super::strategies::any_schema;
use super::*;
use crate::field::FieldPath;

/// The violated rules of structural schemas. Formats are not checked here: CRDs replace those that kube-apiserver does
/// not know.
fn breaches(schema: &Value) -> Vec<String> {
    let found = structural::problems(schema, &FieldPath::new("schema"));
    let lines = found.iter().map(ToString::to_string);
    lines
        .filter(|line| !line.contains("kube-apiserver ignores"))
        .collect()
}

#[track_caller]
fn check(property: &Value) {
    let schema = schema(&json!({"type": "object", "properties": {"p": property}}));
    let printed = openapi(&schema);
    assert_eq!(breaches(&printed), [""; 0], "{printed:#}");
}

#[test]
fn lists_are_printed_as_a_definition_may_have_them() {
    check(&json!({"type": "array"}));
    check(&json!({"type": "array", "items": true}));
    check(
        &json!({"type": "array", "items": {"type": "array"}, "oneOf": [
            {"type": "array", "items": {"type": "object"}}, {"type": "array", "items": {}},
        ]}),
    );
    check(
        &json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "uniqueItems": true}),
    );
    let item = json!({"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer", "x-apiloom-default": 80}}});
    check(
        &json!({"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "port"]}),
    );
}

#[test]
fn a_set_holds_scalars_and_a_list_map_has_scalar_keys() {
    let errors = |property: Value| {
        let json = json!({"type": "object", "properties": {"p": property}});
        Schema::build(
            &json,
            super::super::build::SchemaOrigin::Types,
            &Hooks::default(),
            false,
        )
        .expect_err("refused")
        .0
    };
    let item =
        json!({"type": "object", "properties": {"inner": {"type": "object", "properties": {}}}});
    // The error names a field that can be the key.
    let text = json!({"type": "string"});
    for (fields, keys, told) in [
        (
            json!({"a": text, "type": text, "name": text}),
            json!([]),
            Some("name"),
        ),
        (
            json!({"a": text, "name": item, "type": text}),
            json!([]),
            Some("type"),
        ),
        (
            json!({"b": text, "port": {"type": "integer"}}),
            json!(["port"]),
            Some("port"),
        ),
        (json!({"inner": item}), json!([]), None),
    ] {
        let merged = json!({"type": "array", "items": {"type": "object", "properties": fields},
            "x-kubernetes-patch-strategy": "merge,retainKeys",
            "x-kubernetes-list-type": if keys == json!([]) { "atomic" } else { "map" }, "x-kubernetes-list-map-keys": keys});
        let rest = match told {
            Some(key) => {
                format!(": write `patch(merge, key = ..)` with the field that is {key:?} in JSON")
            }
            None => {
                ", and these have no field that could be one: leave `patch(merge)` out".to_owned()
            }
        };
        assert_eq!(
            errors(merged),
            [format!(
                "p: a merged list of objects needs the key of its items{rest}"
            )]
        );
    }
    assert_eq!(
        errors(json!({"type": "array", "items": item, "x-kubernetes-list-type": "set"})),
        [
            "p: a set holds strings, numbers or booleans; tell items that are objects apart by `list = map(key)`"
        ]
    );
    assert_eq!(
        errors(
            json!({"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["inner"]})
        ),
        ["p: list map key `inner` is no string, number or boolean"]
    );
}

proptest! {
    #[test]
    fn every_schema_is_printed_in_structural_form(property in any_schema()) {
        let json = json!({"type": "object", "properties": {"p": property}});
        if let Ok(schema) = Schema::build(&json, super::super::build::SchemaOrigin::Types, &Hooks::default(), false) {
            let printed = openapi(&schema);
            prop_assert_eq!(breaches(&printed), Vec::<String>::new(), "{:#}", printed);
        }
    }
}
