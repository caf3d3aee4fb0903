//! Random documents and schemas. The tests of the decoder in `apiloom-meta` have this file too.

use proptest::prelude::*;
use serde_json::{Value, json};

/// A schema with the private keywords of the macros.
pub(super) fn sample_schema() -> Value {
    json!({"type":"object","title":"Sample","properties":{
        "a":{"type":"string","x-apiloom-default":"x"},
        "n":{"type":"integer","format":"int32"},
        "f":{"type":"number"},
        "b":{"type":"boolean"},
        "nil":{"type":"string","x-apiloom-nullable":true,"x-apiloom-default":"d"},
        "in":{"type":"object","properties":{"y":{"type":"integer","x-apiloom-default":7}}},
        "made":{"type":"object","x-apiloom-default":{},"properties":{"y":{"type":"integer","x-apiloom-default":8}}},
        "list":{"type":"array","items":{"type":"object","properties":{"p":{"type":"string","x-apiloom-default":"TCP"}}}},
        "map":{"type":"object","additionalProperties":{"type":"object","properties":{"p":{"type":"string","x-apiloom-default":"TCP"}}}},
        "free":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}})
}

/// Any JSON, with keys that often are those of the sample.
pub(super) fn any_json() -> impl Strategy<Value = Value> {
    let key = || prop_oneof![6 => "(a|n|f|b|nil|in|made|list|map|free|y|p)", 1 => "[a-z]{1,3}", 1 => ".{0,4}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i16>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        "(yes|no|1e3|0644|null|~|- a|a: b|#x| x|x |0x1f|1_000|\\.5|\\+1|12:30:45|2026-11-21|=|<<|!t|\\*a|&a|a\nb|a\n\n b\n|\n)".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A value that resembles a schema, and often is not one.
pub(super) fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => prop::sample::select(vec!["object", "array", "string", "integer", "number", "boolean", "null"]).prop_map(|t| json!({ "type": t })),
        1 => Just(json!({})),
        1 => any_json(),
    ];
    let keyword = prop::sample::select(vec![
        "minimum",
        "maxLength",
        "enum",
        "default",
        "required",
        "pattern",
        "format",
        "nullable",
        "x-kubernetes-list-type",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-int-or-string",
        "x-apiloom-union",
        "x-apiloom-update",
        "multipleOf",
    ]);
    leaf.prop_recursive(3, 16, 3, move |inner| {
        (
            prop::collection::btree_map("(a|n|list|map|p)", inner.clone(), 0..4),
            prop::collection::vec(inner.clone(), 0..3),
            prop::sample::select(vec!["oneOf", "anyOf", "allOf"]),
            prop::option::of(inner),
            prop::collection::btree_map(keyword.clone(), any_json(), 0..2),
        )
            .prop_map(|(properties, branches, junctor, items, keywords)| {
                let mut schema = json!({"type": "object", "properties": properties});
                if let Some(items) = items {
                    schema = json!({"type": "array", "items": items});
                }
                if !branches.is_empty() {
                    schema[junctor] = json!(branches);
                }
                for (name, value) in keywords {
                    schema[name] = value;
                }
                schema
            })
    })
}
