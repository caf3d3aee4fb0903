//! Laws of random structural schemas and random documents.

use std::collections::HashSet;

use apiloom_schema::number;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::FieldPath;
use crate::codec::{self, Decoder};
use crate::field::{FieldError, FieldErrorKind};
use crate::object::Object;
use crate::schema::{Schema, structural};

/// Few names, so that documents have the fields of schemas.
fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "metadata", "kind", "x-y"]).prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        Just(json!(2.5)),
        Just(json!(u64::MAX)),
        Just(json!(-0.5)),
        prop::sample::select(vec!["", "a", "ab", "10.0.0.1", "<é>", "2026-11-23"])
            .prop_map(Value::from),
    ]
}

/// Any document.
fn document() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Keywords that only judge values.
fn judging() -> impl Strategy<Value = Value> {
    let one = prop_oneof![
        Just(json!({})),
        Just(json!({"minimum": 1})),
        Just(json!({"maximum": 2, "exclusiveMaximum": true})),
        Just(json!({"multipleOf": 0.5})),
        Just(json!({"minLength": 1, "maxLength": 1})),
        Just(json!({"pattern": "^a"})),
        Just(json!({"maxItems": 1})),
        Just(json!({"minProperties": 1})),
        Just(json!({"required": ["a"]})),
        Just(json!({"enum": [1, "a", {"a": 1}]})),
        Just(json!({"format": "ipv4"})),
    ];
    one.prop_recursive(2, 6, 2, |inner| {
        let branches = prop::collection::vec(inner.clone(), 1..3);
        let junctor = prop::sample::select(vec!["allOf", "anyOf", "oneOf"]);
        prop_oneof![
            (junctor, branches).prop_map(|(name, branches)| json!({ name: branches })),
            inner.clone().prop_map(|not| json!({ "not": not })),
            inner.prop_map(|field| json!({"properties": {"a": field}})),
        ]
    })
}

/// Merges the keywords of two schemas.
fn with(schema: Value, others: Value) -> Value {
    match (schema, others) {
        (Value::Object(mut schema), Value::Object(others)) => {
            for (name, value) in others {
                schema.entry(name).or_insert(value);
            }
            Value::Object(schema)
        }
        (schema, _) => schema,
    }
}

/// The schema of a value; its defaults need not fit.
fn field() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        prop::sample::select(vec!["string", "integer", "number", "boolean"])
            .prop_map(|json_type| json!({ "type": json_type })),
        Just(json!({"type": "integer", "format": "int32"})),
        Just(json!({"type": "string", "format": "date"})),
        Just(json!({"x-kubernetes-int-or-string": true})),
        Just(json!({"x-kubernetes-preserve-unknown-fields": true})),
        Just(json!({"type": "object"})),
    ];
    let shape = leaf.prop_recursive(4, 30, 4, |inner| {
        let fields = prop::collection::btree_map(name(), inner.clone(), 0..4)
            .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>()));
        let flag = prop::sample::select(vec![
            json!({}),
            json!({"x-kubernetes-preserve-unknown-fields": true}),
            json!({"x-kubernetes-embedded-resource": true}),
            json!({"required": ["a", "z"]}),
            json!({"additionalProperties": true}),
        ]);
        let list_type = prop::sample::select(vec![
            json!({}),
            json!({"x-kubernetes-list-type": "set"}),
            json!({"x-kubernetes-list-type": "atomic"}),
            json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}),
        ]);
        prop_oneof![
            (fields, flag).prop_map(|(fields, flag)| {
                with(json!({"type": "object", "properties": fields}), flag)
            }),
            inner
                .clone()
                .prop_map(|values| json!({"type": "object", "additionalProperties": values})),
            (inner, list_type).prop_map(|(items, list_type)| with(
                json!({"type": "array", "items": items}),
                list_type
            )),
        ]
    });
    let default = prop::option::weighted(0.3, document());
    (
        shape,
        prop::option::weighted(0.3, judging()),
        default,
        any::<bool>(),
    )
        .prop_map(|(shape, judging, default, is_nullable)| {
            let mut schema = with(shape, judging.unwrap_or_default());
            if let Some(default) = default {
                schema["default"] = default;
            }
            if is_nullable {
                schema["nullable"] = json!(true);
            }
            schema
        })
}

fn schema() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(name(), field(), 0..5).prop_map(|fields| {
        let fields: Map<_, _> = fields.into_iter().collect();
        json!({"type": "object", "properties": fields})
    })
}

/// A document with metadata that can be decoded.
fn object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(name(), document(), 0..5).prop_map(|fields| {
        let mut fields: Map<_, _> = fields.into_iter().collect();
        fields.insert("apiVersion".to_owned(), json!("g/v1"));
        fields.insert("kind".to_owned(), json!("K"));
        fields.insert("metadata".to_owned(), json!({"name": "n"}));
        Value::Object(fields)
    })
}

/// Decodes and defaults as for a store; `None` if embedded metadata has wrong types.
fn stored(schema: &Schema, json: &[u8]) -> Option<Value> {
    let mut value = Decoder::of(schema).decode(json).ok()?.value;
    schema.default(&mut value);
    Some(value)
}

fn encoded(schema: &Schema, value: &Value) -> Vec<u8> {
    let object = Object::from_value(value.clone()).expect("it is an object");
    codec::Encoder::of(schema).object(&object).to_vec()
}

/// Drops the defaults that kube-apiserver refuses, and those in schemas that it refuses.
fn without_bad_defaults(schema: &mut Value) {
    let is_bad = |schema: &Value| {
        let around = json!({"type": "object", "properties": {"p": schema}});
        !structural::refusals(&around, &FieldPath::root(), false).is_empty()
    };
    if schema.get("default").is_some()
        && is_bad(schema)
        && let Value::Object(keywords) = schema
    {
        keywords.remove("default");
    }
    for name in ["items", "additionalProperties"] {
        if let Some(below) = schema.get_mut(name).filter(|below| below.is_object()) {
            without_bad_defaults(below);
        }
    }
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    for field in fields.into_iter().flat_map(Map::values_mut) {
        without_bad_defaults(field);
    }
}

/// Whether a value has an item that no key tells from others, in a list of items with keys: Kubernetes finds no item to compare it with.
fn has_items_without_keys(schema: &Value, value: &Value) -> bool {
    match value {
        Value::Array(items) => {
            let mut keys = HashSet::new();
            let mut has_own_key = |item: &Value| {
                let key = item.get("a").filter(|key| !key.is_null());
                key.is_some_and(|key| keys.insert(key.to_string()))
            };
            let is_map = schema["x-kubernetes-list-type"] == "map";
            is_map && !items.iter().all(&mut has_own_key)
                || items
                    .iter()
                    .any(|item| has_items_without_keys(&schema["items"], item))
        }
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            let field = schema["properties"].get(name);
            has_items_without_keys(field.unwrap_or(&schema["additionalProperties"]), value)
        }),
        _ => false,
    }
}

proptest! {
    #[test]
    fn documents_are_stored_once(mut document in schema(), object in object()) {
        let _ = structural::problems(&document, &FieldPath::root());
        without_bad_defaults(&mut document);
        let Ok(schema) = Schema::of_custom_resource(&document) else {
            return Err(TestCaseError::fail("it is structural"));
        };
        let raw = serde_json::to_vec(&object).unwrap();
        let Some(mut value) = stored(&schema, &raw) else { return Ok(()) };
        number::settle(&mut value);

        // What is stored is not changed again.
        let json = encoded(&schema, &value);
        let again = Decoder::of(&schema).decode(&json).unwrap();
        prop_assert_eq!(&again.strict, &Vec::<String>::new());
        prop_assert_eq!(stored(&schema, &json), Some(value.clone()));

        // A document in memory becomes the same.
        let mut pruned = object;
        number::settle(&mut pruned);
        schema.default(&mut pruned);
        schema.prune(&mut pruned);
        schema.default(&mut pruned);
        let mut from_memory = pruned.clone();
        schema.prune(&mut from_memory);
        schema.default(&mut from_memory);
        prop_assert_eq!(&from_memory, &pruned);
        prop_assert_eq!(&pruned, &value);

        // The recognizer of the cache never accepts what would change.
        for json in [&json, &raw] {
            if codec::Encoder::of(&schema).is_verbatim(json) {
                let value = stored(&schema, json).unwrap();
                prop_assert_eq!(&encoded(&schema, &value), json);
            }
        }
    }
}

proptest! {
    // One in twenty of these schemas may be that of a definition.
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn updates_without_changes_are_valid(document in schema(), mut new in object(), old in object()) {
        let Ok(schema) = Schema::of_custom_resource(&document) else {
            return Err(TestCaseError::fail("it is structural"));
        };
        let errors = schema.validate(&new);
        prop_assert_eq!(&schema.validate(&new), &errors);
        // An update has no other errors than a create, and none in what is equal, besides embedded objects.
        let of_update = schema.validate_update(&new, &old);
        prop_assert!(of_update.iter().all(|error| errors.contains(error)) || errors.len() >= 100);
        schema.prune(&mut new);
        let text = document.to_string();
        // An object with fields that have no schema is never equal.
        let is_described = !["embedded-resource", "preserve-unknown", "\"additionalProperties\":true", ":{}"]
            .iter()
            .any(|keyword| text.contains(keyword));
        let of_every_object = ["apiVersion", "kind", "metadata"];
        let is_plain = of_every_object.iter().all(|name| document["properties"].get(name).is_none())
            && ["allOf", "anyOf", "oneOf", "not"].iter().all(|name| document.get(name).is_none());
        // What a definition may not have is compared by no rule.
        let is_accepted = structural::refusals(&document, &FieldPath::root(), false).is_empty();
        let is_comparable = is_described && is_plain && is_accepted;
        if is_comparable && !has_items_without_keys(&document, &new) {
            // Nor is the object itself, with its metadata.
            let is_of_root = |error: &FieldError| {
                let path = error.path.as_str();
                path.is_empty() || error.kind == FieldErrorKind::Required && !path.contains(['.', '['])
            };
            let errors = schema.validate_update(&new, &new);
            prop_assert!(errors.iter().all(is_of_root), "{:?}", errors);
        }
    }

    #[test]
    fn what_is_published_has_the_fields_of_every_object(document in schema()) {
        let Ok(schema) = Schema::of_custom_resource(&document) else {
            return Err(TestCaseError::fail("it is structural"));
        };
        for published in [
            schema.to_openapi(&crate::schema::Metadata::Ref("#/m")),
            schema.to_openapi_v2(&crate::schema::Metadata::Ref("#/m")),
        ] {
            prop_assert!(published["properties"].get("metadata").is_some());
        }
        prop_assert_eq!(schema.to_crd().schema, document);
    }
}
