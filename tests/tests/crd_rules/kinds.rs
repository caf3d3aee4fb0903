//! Definitions with every rule that is generated as CEL, each for values of every possible type.

use apiloom::meta::kind::Hooks;
use apiloom::meta::schema::Schema;
use serde_json::{Map, Value, json};

use super::{compare, seed};

/// The types of fields for which there are rules.
fn types() -> Map<String, Value> {
    let text = || json!({ "type": "string", "maxLength": 5 });
    let types = json!({
        "text": text(),
        "bytes": { "type": "string", "format": "byte", "maxLength": 8, "x-apiloom-canonical": "bytes" },
        "time": { "type": "string", "format": "date-time", "x-apiloom-canonical": "seconds" },
        "duration": { "type": "string", "format": "duration", "x-apiloom-canonical": "duration" },
        "date": { "type": "string", "format": "date" },
        "integer": { "type": "integer", "format": "int32" },
        "number": { "type": "number" },
        "boolean": { "type": "boolean" },
        "port": { "x-kubernetes-int-or-string": true },
        "choice": { "type": "string", "enum": ["", "a", "b"] },
        "list": { "type": "array", "maxItems": 4, "items": { "type": "number" } },
        "set": { "type": "array", "maxItems": 4, "x-kubernetes-list-type": "set", "items": text() },
        "numbers": { "type": "array", "maxItems": 4, "x-kubernetes-list-type": "set", "items": { "type": "number" } },
        "listMap": { "type": "array", "maxItems": 4, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name", "in"],
            "items": { "type": "object", "required": ["name", "in"], "properties": {
                "name": text(), "in": { "type": "number" }, "weight": { "type": "number" } } } },
        "map": { "type": "object", "maxProperties": 4, "additionalProperties": { "type": "number" } },
        "lists": { "type": "object", "maxProperties": 4, "additionalProperties":
            { "type": "array", "maxItems": 4, "x-kubernetes-list-type": "set", "items": text() } },
        "object": { "type": "object", "properties": { "a-b": { "type": "number" }, "b": text() } },
    });
    types.as_object().unwrap().clone()
}

fn object(properties: Map<String, Value>) -> Value {
    json!({ "type": "object", "properties": properties })
}

/// An object with a field of each of these types, with these additional keywords.
fn of_each(types: Map<String, Value>, keywords: &Value) -> Value {
    let with = |mut schema: Value| {
        let keywords = keywords.as_object().unwrap().clone();
        schema.as_object_mut().unwrap().extend(keywords);
        schema
    };
    object(
        types
            .into_iter()
            .map(|(name, schema)| (name, with(schema)))
            .collect(),
    )
}

/// An object with a field for each type, whose schema is built from the type.
fn around_each(around: impl Fn(Value) -> Value) -> Value {
    object(
        types()
            .into_iter()
            .map(|(name, schema)| (name, around(schema)))
            .collect(),
    )
}

/// Checks that the server and the definition agree on documents of a schema, and that the definition lacks no rule.
#[track_caller]
fn check(schema: &Value) {
    let schema = Schema::from_json(schema, &Hooks::default()).unwrap();
    let crd = schema.to_crd();
    assert_eq!(crd.unsaid, [""; 0]);
    let definition = compare(&schema, &crd.schema);
    let one_sided = definition
        .counts()
        .into_iter()
        .filter(|(_, (kept, broken))| *kept == 0 || *broken == 0);
    assert_eq!(
        one_sided.collect::<Vec<_>>(),
        [],
        "APILOOM_CEL_SEED={}",
        seed()
    );
}

#[test]
fn immutable() {
    check(&of_each(
        types(),
        &json!({ "x-apiloom-update": ["Immutable"] }),
    ));
}

#[test]
fn set_once_and_kept() {
    check(&of_each(types(), &json!({ "x-apiloom-update": ["NoSet"] })));
    check(&of_each(
        types(),
        &json!({ "x-apiloom-update": ["NoUnset"] }),
    ));
    check(&of_each(
        types(),
        &json!({ "x-apiloom-update": ["NoModify"] }),
    ));
}

#[test]
fn items_that_stay() {
    let mut lists = types();
    lists.retain(|_, schema| {
        schema["type"] == "array" || schema.get("additionalProperties").is_some()
    });
    assert_eq!(lists.len(), 6);
    check(&of_each(
        lists.clone(),
        &json!({ "x-apiloom-update": ["NoAddItem"] }),
    ));
    check(&of_each(
        lists,
        &json!({ "x-apiloom-update": ["NoRemoveItem"] }),
    ));
}

#[test]
fn monotonic() {
    let mut numbers = types();
    numbers.retain(|name, _| ["integer", "number"].contains(&name.as_str()));
    check(&of_each(
        numbers,
        &json!({ "x-apiloom-update": ["Monotonic"] }),
    ));
}

#[test]
fn required_and_forbidden() {
    check(&object(
        types()
            .into_iter()
            .map(|(name, mut schema)| {
                schema["x-apiloom-forbidden"] = json!(true);
                (name, schema)
            })
            .collect(),
    ));
    check(&around_each(|mut schema| {
        schema["x-apiloom-required"] = json!(true);
        json!({ "type": "object", "properties": { "given": schema } })
    }));
}

#[test]
fn siblings() {
    for keyword in ["x-apiloom-requires", "x-apiloom-conflicts"] {
        check(&around_each(|schema| {
            let mut first = schema.clone();
            first[keyword] = json!(["namespace"]);
            json!({ "type": "object", "properties": { "first": first, "namespace": schema } })
        }));
    }
}

/// Unions of four members each, with or without a tag, whose values may be listed.
fn unions_of(tag: Option<&str>, is_closed: bool, allow_none: bool) -> Value {
    let members: Vec<(String, Value)> = types()
        .into_iter()
        .filter(|(name, _)| name != "choice")
        .collect();
    let unions = members.chunks(4).enumerate().map(|(at, members)| {
        let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
        let selects: Map<String, Value> = names
            .iter()
            .map(|name| (name.to_string(), json!([name])))
            .collect();
        let mut union = object(members.iter().cloned().collect());
        if let Some(tag) = tag {
            union["properties"][tag] = json!({ "type": "string" });
            if is_closed {
                union["properties"][tag]["enum"] = json!([names, vec!["none"]].concat());
            }
        }
        union["x-apiloom-union"] =
            json!({ "discriminator": tag, "allowNone": allow_none, "members": selects });
        (format!("union{at}"), union)
    });
    object(unions.collect())
}

#[test]
fn unions() {
    for allow_none in [true, false] {
        check(&unions_of(None, false, allow_none));
        check(&unions_of(Some("type"), false, allow_none));
        check(&unions_of(Some("type"), true, allow_none));
    }
}

#[test]
fn values() {
    let unique = |items: Value| json!({ "type": "array", "maxItems": 4, "items": items, "x-apiloom-unique": true });
    check(&around_each(unique));
    check(&json!({ "type": "object", "properties": {
        "text": { "type": "string", "maxLength": 5, "x-apiloom-not-equal": "a" },
        "empty": { "type": "string", "x-apiloom-not-equal": "" },
        "integer": { "type": "integer", "x-apiloom-not-equal": 1 },
        "number": { "type": "number", "x-apiloom-not-equal": 1 },
        "fraction": { "type": "number", "x-apiloom-not-equal": 0.5 },
        "flag": { "type": "boolean", "x-apiloom-not-equal": true },
        "least": { "type": "string", "maxLength": 5, "x-apiloom-min-bytes": 2 },
        "most": { "type": "string", "maxLength": 5, "x-apiloom-max-bytes": 1 },
    } }));
}

/// Rules below lists and maps, where only some values have an old value.
#[test]
fn places() {
    let rules = || {
        json!({ "type": "object", "required": ["key"], "properties": {
            "key": { "type": "string", "maxLength": 5 },
            "class": { "type": "number", "x-apiloom-update": ["Immutable"] },
            "a.b/c-d": { "type": "integer", "x-apiloom-update": ["NoSet"], "x-apiloom-conflicts": ["__e"] },
            "__e": { "type": "string", "maxLength": 5 } } })
    };
    let list_map = |items: Value| {
        json!({ "type": "array", "maxItems": 4, "items": items,
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["key"] })
    };
    let map = |values: Value| json!({ "type": "object", "maxProperties": 4, "additionalProperties": values });
    let nested = json!({ "type": "object", "required": ["key"], "properties": {
        "key": { "type": "string", "maxLength": 5 }, "map": map(rules()) } });
    check(&json!({ "type": "object", "properties": {
        "map": map(rules()), "list": list_map(rules()) } }));
    check(&json!({ "type": "object", "properties": { "nested": list_map(nested) } }));
}
