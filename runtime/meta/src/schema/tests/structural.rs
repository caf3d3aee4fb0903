//! What is printed for a CRD is what kube-apiserver's structural schema check accepts.

use proptest::prelude::*;
use serde_json::{Map, json};

use super::properties::any_schema;
use super::*;

/// Breaches of the rules for structural schemas, by path.
fn breaches(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if schema["type"] != "object" {
        found.push("must be object at the root".to_owned());
    }
    node(schema, "", &mut found);
    found
}

fn node(schema: &Value, path: &str, found: &mut Vec<String>) {
    let keywords = schema.as_object().expect("an object");
    let has = |name: &str| keywords.contains_key(name);
    let is = |name: &str| keywords.get(name) == Some(&json!(true));
    let ty = keywords.get("type").and_then(Value::as_str);
    let mut expect = |holds: bool, what: &str| {
        if !holds {
            found.push(format!("{path}: {what}"));
        }
    };
    let open = is("x-kubernetes-preserve-unknown-fields");
    let int_or_string = is("x-kubernetes-int-or-string");
    expect(ty.is_some() || open || int_or_string, "has no type");
    expect(!(int_or_string && ty.is_some()), "int-or-string has a type");
    expect(
        !open || ty.is_none_or(|ty| ty == "object"),
        "open but no object",
    );
    expect(
        !(has("properties") && has("additionalProperties")),
        "properties and additionalProperties",
    );
    expect(
        ty != Some("array") || has("items"),
        "an array without items",
    );
    expect(
        !is("x-kubernetes-embedded-resource") || ty == Some("object"),
        "an embedded resource that is no object",
    );
    for unknown in [
        "$ref",
        "uniqueItems",
        "patternProperties",
        "propertyNames",
        "deprecated",
        "const",
    ] {
        expect(!has(unknown), unknown);
    }
    list(keywords, &mut expect);
    for junctor in ["allOf", "anyOf", "oneOf"] {
        let branches = keywords.get(junctor).and_then(Value::as_array);
        for branch in branches.into_iter().flatten() {
            judging(branch, keywords, &format!("{path}.{junctor}"), found);
        }
    }
    if let Some(not) = keywords.get("not") {
        judging(not, keywords, &format!("{path}.not"), found);
    }
    for (name, below) in fields(keywords) {
        node(below, &format!("{path}.{name}"), found);
    }
    for name in ["items", "additionalProperties"] {
        if let Some(below) = keywords.get(name) {
            node(below, &format!("{path}.{name}"), found);
        }
    }
}

fn fields(keywords: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let fields = keywords.get("properties").and_then(Value::as_object);
    fields.into_iter().flatten()
}

fn list(keywords: &Map<String, Value>, expect: &mut impl FnMut(bool, &str)) {
    let items = keywords.get("items").unwrap_or(&Value::Null);
    let list_type = keywords
        .get("x-kubernetes-list-type")
        .and_then(Value::as_str);
    expect(
        list_type.is_none() || keywords.get("type") == Some(&json!("array")),
        "a list type on no list",
    );
    match list_type {
        Some("set") => {
            expect(items["nullable"] != true, "a set of nullable items");
            let atomic = match items["type"].as_str() {
                Some("object") => items["x-kubernetes-map-type"] == "atomic",
                Some("array") => matches!(
                    items["x-kubernetes-list-type"].as_str(),
                    None | Some("atomic")
                ),
                _ => true,
            };
            expect(atomic, "a set of items that are not atomic");
        }
        Some("map") => {
            expect(items["type"] == "object", "a list map of no objects");
            expect(items["nullable"] != true, "a list map of nullable items");
            let keys = keywords["x-kubernetes-list-map-keys"].as_array();
            for key in keys.into_iter().flatten().filter_map(Value::as_str) {
                let field = &items["properties"][key];
                let required = items["required"]
                    .as_array()
                    .is_some_and(|r| r.contains(&json!(key)));
                expect(
                    required || !field["default"].is_null(),
                    "a list map key that may be absent",
                );
                expect(field["nullable"] != true, "a nullable list map key");
                let scalar = !matches!(field["type"].as_str(), Some("object" | "array"));
                expect(
                    scalar && !field.is_null(),
                    "a list map key that is no scalar",
                );
            }
        }
        _ => {}
    }
}

/// A schema that only judges what `structure` describes.
fn judging(schema: &Value, structure: &Map<String, Value>, path: &str, found: &mut Vec<String>) {
    let keywords = schema.as_object().expect("an object");
    for name in keywords.keys() {
        let refused = [
            "type",
            "description",
            "default",
            "nullable",
            "additionalProperties",
            "title",
        ];
        if refused.contains(&name.as_str()) || name.starts_with("x-kubernetes-") {
            found.push(format!("{path}: {name} must not be set here"));
        }
    }
    for (name, below) in fields(keywords) {
        let known = structure.get("properties").and_then(|p| p.get(name));
        match (known, structure.get("additionalProperties")) {
            (Some(Value::Object(known)), _) | (None, Some(Value::Object(known))) => {
                judging(below, known, &format!("{path}.{name}"), found);
            }
            _ => found.push(format!("{path}.{name}: is no field of the structure")),
        }
    }
    if let (Some(below), Some(Value::Object(known))) =
        (keywords.get("items"), structure.get("items"))
    {
        judging(below, known, &format!("{path}.items"), found);
    }
    for junctor in ["allOf", "anyOf", "oneOf"] {
        let branches = keywords.get(junctor).and_then(Value::as_array);
        for branch in branches.into_iter().flatten() {
            judging(branch, structure, &format!("{path}.{junctor}"), found);
        }
    }
    if let Some(not) = keywords.get("not") {
        judging(not, structure, &format!("{path}.not"), found);
    }
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
        Schema::build(&json, super::super::Source::Types, &Hooks::default(), false)
            .expect_err("refused")
            .0
    };
    let item =
        json!({"type": "object", "properties": {"inner": {"type": "object", "properties": {}}}});
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
        if let Ok(schema) = Schema::build(&json, super::super::Source::Types, &Hooks::default(), false) {
            let printed = openapi(&schema);
            prop_assert_eq!(breaches(&printed), Vec::<String>::new(), "{:#}", printed);
        }
    }
}
