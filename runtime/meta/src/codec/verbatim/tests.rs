//! Recognized documents are not changed by decoding and encoding; documents that would change are not recognized.

use std::collections::BTreeMap;

use proptest::prelude::*;
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::*;
use crate::codec::{Decoder, Encoder, Format};
use crate::kind::{ApiType, Hooks};
use crate::object::Object;
use crate::schema::Schema;
use crate::types::ObjectMeta;

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only the schema counts")]
#[schemars(extend("x-apiloom-order" = ["metadata", "spec", "free", "data", "after"]))]
struct Kind {
    metadata: ObjectMeta,
    spec: Option<Spec>,
    free: Option<Map<String, Value>>,
    data: Option<Map<String, Value>>,
    #[schemars(extend("x-apiloom-default" = "later"))]
    after: Option<String>,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only the schema counts")]
#[schemars(extend("x-apiloom-order" = ["b", "first", "computed", "again", "nil", "list", "map", "lists", "nils", "open", "a"]))]
struct Spec {
    b: Option<i64>,
    #[schemars(extend("x-apiloom-default" = 7))]
    first: Option<i64>,
    computed: Option<String>,
    again: Option<String>,
    #[schemars(extend("x-apiloom-default" = "d", "x-apiloom-nullable" = true))]
    nil: Option<String>,
    list: Option<Vec<Port>>,
    map: Option<BTreeMap<String, Port>>,
    lists: Option<Vec<Vec<Port>>>,
    nils: Option<BTreeMap<String, Nil>>,
    open: Option<Open>,
    a: Option<f64>,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only the schema counts")]
struct Port {
    #[schemars(extend("x-apiloom-default" = "TCP"))]
    a: Option<String>,
    b: Option<u16>,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only the schema counts")]
#[schemars(extend("x-apiloom-nullable" = true))]
struct Nil {
    a: Option<String>,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only the schema counts")]
#[schemars(extend("x-apiloom-order" = ["b", "a"], "x-kubernetes-preserve-unknown-fields" = true))]
struct Open {
    b: Option<i64>,
    #[schemars(extend("x-apiloom-default" = "open"))]
    a: Option<String>,
}

impl ApiType for Kind {
    fn hooks() -> Hooks {
        let spec = Hooks {
            defaults: vec![
                // Only for objects with a `b`.
                ("computed", |spec| {
                    spec.get("b").map(|b| json!(format!("of {b}")))
                }),
                ("again", |spec| spec.get("computed").cloned()),
            ],
            ..Hooks::default()
        };
        Hooks {
            fields: vec![("spec", spec)],
            ..Hooks::default()
        }
    }
}

fn schema() -> Schema {
    Schema::for_resource::<Kind>().expect("structural")
}

/// The result of decoding and encoding a stored document.
fn read(json: &[u8], revision: &str) -> Option<Vec<u8>> {
    let schema = schema();
    let mut value = Decoder::new(Format::Json).value(json).ok()?;
    schema.prune(&mut value);
    schema.default(&mut value);
    let mut object = Object::from_value(value)?;
    object.set_meta_str("resourceVersion", revision);
    Some(Encoder::of(&schema).object(&object).to_vec())
}

/// A document with its resourceVersion inserted.
fn put_in(json: &[u8], place: &VersionPlace, revision: &str) -> Vec<u8> {
    let (before, behind) = json.split_at(place.at);
    let comma = |there: bool| if there { "," } else { "" };
    let member = format!(
        "{}\"resourceVersion\":\"{revision}\"{}",
        comma(place.follows),
        comma(place.precedes)
    );
    [before, member.as_bytes(), behind].concat()
}

/// Whether a document is recognized; checks that a recognized document is not changed by decoding and encoding.
fn is_recognized(json: &[u8]) -> bool {
    let Some(found) = Encoder::of(&schema()).verbatim(json) else {
        return false;
    };
    let text = String::from_utf8_lossy(json);
    let whole = put_in(json, &found, "42");
    assert_eq!(
        read(json, "42").map(|json| String::from_utf8_lossy(&json).into_owned()),
        Some(String::from_utf8_lossy(&whole).into_owned()),
        "of {text}"
    );
    let value = |json: &[u8]| Decoder::new(Format::Json).value(json).expect("JSON");
    let metadata = value(&json[found.metadata.0..found.metadata.1]);
    let document = value(json);
    assert_eq!(metadata, document["metadata"], "of {text}");
    true
}

#[track_caller]
fn recognized(json: &str) {
    assert!(is_recognized(json.as_bytes()), "{json}");
}

#[track_caller]
fn left_to_decoding(json: &str) {
    assert!(!is_recognized(json.as_bytes()), "{json}");
}

#[test]
fn documents_that_come_out_as_they_are_need_no_decoding() {
    recognized(r#"{"metadata":{},"after":""}"#);
    recognized(r#"{"metadata":{"name":"a"},"after":"x"}"#);
    recognized(r#"{"metadata":{"name":"a","uid":"u","labels":{"a":"1","b":"2"}},"after":"x"}"#);
    recognized(r#"{"metadata":{"labels":{}},"after":"x"}"#);
    recognized(
        r#"{"kind":"Kind","apiVersion":"v1","metadata":{"name":"a"},"spec":{"b":-3,"first":0,"computed":"of","again":"of","nil":null,"list":[{"a":"x"},{"a":"","b":1}],"map":{"a":{"a":"x"},"b":{"a":"y"}},"a":1.5},"free":{"a":null,"z":[1,{"b":{},"c":[]}]},"after":"x"}"#,
    );
    // Without a `b` there is no computed default.
    recognized(r#"{"metadata":{"name":"a"},"spec":{"first":1,"nil":"x"},"after":"x"}"#);
    recognized(r#"{"metadata":{"name":"\u003cü\u2028\"\\\n\u001f€"},"after":"x"}"#);
    recognized(
        r#"{"metadata":{"name":"a"},"free":{"a":1e+21,"b":1e-7,"c":9223372036854775807},"after":"x"}"#,
    );
}

#[test]
fn a_default_that_is_missing_is_put_in_by_decoding() {
    left_to_decoding(r#"{"metadata":{"name":"a"}}"#);
    left_to_decoding(r#"{"metadata":{"name":"a"},"spec":{"nil":"x"},"after":"x"}"#);
    left_to_decoding(r#"{"metadata":{"name":"a"},"spec":{"first":1},"after":"x"}"#);
    left_to_decoding(r#"{"metadata":{"name":"a"},"spec":{"b":1,"first":1,"nil":"x"},"after":"x"}"#);
    left_to_decoding(
        r#"{"metadata":{"name":"a"},"spec":{"first":1,"nil":"x","list":[{}]},"after":"x"}"#,
    );
    left_to_decoding(
        r#"{"metadata":{"name":"a"},"spec":{"first":1,"nil":"x","map":{"k":{"b":1}}},"after":"x"}"#,
    );
}

#[test]
fn what_the_encoder_would_write_otherwise_is_left_to_decoding() {
    for json in [
        // Another order, duplicate, unknown, without a value.
        r#"{"after":"x","metadata":{"name":"a"}}"#,
        r#"{"metadata":{"uid":"u","name":"a"},"after":"x"}"#,
        r#"{"metadata":{"name":"a","name":"a"},"after":"x"}"#,
        r#"{"metadata":{"labels":{"b":"1","a":"2"}},"after":"x"}"#,
        r#"{"metadata":{"labels":{"a":"1","a":"2"}},"after":"x"}"#,
        r#"{"metadata":{"name":"a","bogus":1},"after":"x"}"#,
        r#"{"metadata":{"name":null},"after":"x"}"#,
        r#"{"metadata":{"name":"a"},"after":null}"#,
        // Other representations.
        r#"{"metadata": {"name":"a"},"after":"x"}"#,
        r#"{"metadata":{"name":"\u0041"},"after":"x"}"#,
        r#"{"metadata":{"name":"\u000a"},"after":"x"}"#,
        r#"{"metadata":{"name":"\u001F"},"after":"x"}"#,
        r#"{"metadata":{"name":"\/"},"after":"x"}"#,
        r#"{"metadata":{"name":"<"},"after":"x"}"#,
        "{\"metadata\":{\"name\":\"\u{2028}\"},\"after\":\"x\"}",
        "{\"metadata\":{\"name\":\"\n\"},\"after\":\"x\"}",
        r#"{"metadata":{"name":"a"},"free":{"a":1.0},"after":"x"}"#,
        r#"{"metadata":{"name":"a"},"free":{"a":1e3},"after":"x"}"#,
        r#"{"metadata":{"name":"a"},"free":{"a":18446744073709551616},"after":"x"}"#,
        // Custom resources have other numbers then.
        r#"{"metadata":{"name":"a"},"free":{"a":18446744073709551615},"after":"x"}"#,
        r#"{"metadata":{"name":"a"},"free":{"a":-0},"after":"x"}"#,
        // It has a resourceVersion already, or no place for it.
        r#"{"metadata":{"name":"a","resourceVersion":"7"},"after":"x"}"#,
        r#"{"metadata":[],"after":"x"}"#,
        r#"{"metadata":null,"after":"x"}"#,
        r#"{"after":"x"}"#,
        // Malformed JSON.
        "",
        "{",
        r#"{"metadata":{"name":"a"},"after":"x"}}"#,
        r#"{"metadata":{"name":"a"},"after":"x""#,
        r#"{"metadata":{"name":"a",},"after":"x"}"#,
        r#"{"metadata":{"name":"a"}"after":"x"}"#,
        r#"{"metadata":{"name":"a"},"free":{"a":[1,]},"after":"x"}"#,
        r#"{"metadata":{"name":"a"},"free":{"a":01},"after":"x"}"#,
        r#"{"metadata":{"name":"a"},"free":{"a":tru},"after":"x"}"#,
        r#"{"metadata":{"name":"a"},"free":{"a":},"after":"x"}"#,
    ] {
        left_to_decoding(json);
    }
    let bytes = b"{\"metadata\":{\"name\":\"\xff\"},\"after\":\"x\"}";
    assert!(!is_recognized(bytes));
    let deep = ["[".repeat(200), "]".repeat(200)].concat();
    left_to_decoding(&format!(
        r#"{{"metadata":{{}},"free":{{"a":{deep}}},"after":"x"}}"#
    ));
}

/// Documents with the fields of the schema, in every shape.
fn documents() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "metadata",
        "name",
        "uid",
        "labels",
        "resourceVersion",
        "spec",
        "free",
        "data",
        "after",
        "b",
        "first",
        "computed",
        "nil",
        "list",
        "map",
        "a",
        "z",
        "é",
        "a<b",
        "again",
        "lists",
        "nils",
        "open",
        "$serde_json::private::RawValue",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-3i64..3).prop_map(Value::from),
        "\\PC{0,3}|[<>&\"\\\\\u{2028}\u{0}-\u{20}]{0,3}|[a-z]{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        let names = names.clone().prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names, inner, 0..7)
                .prop_map(|fields| Value::from(Map::from_iter(fields))),
        ]
    })
}

/// A document with the kind's outline around any values.
fn objects() -> impl Strategy<Value = Value> {
    let fields = ["metadata", "spec", "free", "data", "after"];
    let values = prop::collection::vec(prop::option::of(documents()), fields.len());
    values.prop_map(move |values| {
        let fields = fields.map(str::to_owned).into_iter().zip(values);
        let mut object: Map<String, Value> = fields
            .filter_map(|(name, value)| Some((name, value?)))
            .collect();
        object
            .entry("metadata")
            .or_insert_with(|| json!({"name": "a"}));
        Value::from(object)
    })
}

/// Whether a name in the document needs an escape.
fn has_escaped_names(value: &Value) -> bool {
    match value {
        Value::Array(elements) => elements.iter().any(has_escaped_names),
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| name.contains('<') || has_escaped_names(value)),
        _ => false,
    }
}

/// Whether a float is printed as an integer of more than 63 bits, which is read as a float again.
fn has_long_integers(value: &Value) -> bool {
    match value {
        Value::Array(elements) => elements.iter().any(has_long_integers),
        Value::Object(fields) => fields.values().any(has_long_integers),
        Value::Number(number) => {
            let float = number.as_f64().filter(|_| number.is_f64());
            float.is_some_and(|float| (9.2e18..1e21).contains(&float.abs()))
        }
        _ => false,
    }
}

proptest! {
    #[test]
    fn what_reading_made_once_is_recognized(document in objects()) {
        prop_assume!(!has_long_integers(&document));
        let schema = schema();
        let mut value = document;
        schema.prune(&mut value);
        schema.default(&mut value);
        let mut object = Object::from_value(value).expect("an object");
        object.set_meta_str("resourceVersion", "");
        let stored = Encoder::of(&schema).object(&object);
        // A custom resource would have it without its sign.
        prop_assume!(!String::from_utf8_lossy(&stored).contains("-0"));
        prop_assert!(
            is_recognized(&stored) || has_escaped_names(&object.into_value()),
            "{}", String::from_utf8_lossy(&stored)
        );
    }

    #[test]
    fn whatever_is_recognized_comes_out_as_it_is(document in objects(), is_settled: bool, edits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..3usize), 0..3)) {
        let schema = schema();
        let mut value = document;
        if is_settled {
            schema.prune(&mut value);
            schema.default(&mut value);
        }
        let object = Object::from_value(value).expect("an object");
        let mut json = Encoder::of(&schema).object(&object).to_vec();
        // Bytes with a meaning at their position.
        let bytes = b"{}[],:\"\\ueb0123456789.-+ <tfnabz";
        for (at, byte, edit) in edits {
            let at = at.index(json.len());
            match edit {
                0 => drop(json.remove(at)),
                1 => json.insert(at, bytes[byte.index(bytes.len())]),
                _ => json[at] = bytes[byte.index(bytes.len())],
            }
        }
        is_recognized(&json);
    }
}
