//! Typed values of every shape are encoded like their documents.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::*;
use crate::kind::{ApiType, Hooks};
use crate::object::Object;
use crate::schema::Schema;

/// The expected encoding of a value: that of its document.
fn encoded(value: &impl Serialize, schema: &Schema, without: &[&str]) -> String {
    let Value::Object(mut fields) = serde_json::to_value(value).unwrap() else {
        panic!("no object");
    };
    fields.retain(|name, _| !without.contains(&name.as_str()));
    let object = Object::from_value(Value::Object(fields)).unwrap();
    String::from_utf8(Encoder::of(schema).object(&object).to_vec()).unwrap()
}

fn typed(value: &impl Serialize, schema: &Schema, without: &[&str]) -> String {
    let mut out = b"before".to_vec();
    Encoder::of(schema)
        .append_typed(value, without, &mut out)
        .unwrap();
    let text = String::from_utf8(out).unwrap();
    text.strip_prefix("before").unwrap().to_owned()
}

fn check(value: &impl Serialize, schema: &Schema) {
    for without in [&[][..], &["metadata"], &["b", "metadata", "z"]] {
        assert_eq!(
            typed(value, schema, without),
            encoded(value, schema, without)
        );
    }
}

/// A schema with some of the fields, in another order than the types.
fn reordered() -> Schema {
    let inner = json!({"type": "object", "properties": {
        "z": {"type": "string"}, "b": {"type": "string"}, "a": {"type": "string"},
    }, "x-apiloom-order": ["z", "b", "a"], "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {
        "z": inner, "map": {"type": "object", "additionalProperties": inner}, "list": {"type": "array", "items": inner},
        "b": {"type": "string"}, "a": {"type": "string"},
    }, "x-apiloom-order": ["z", "map", "list", "b", "a"], "x-kubernetes-preserve-unknown-fields": true});
    Schema::from_json(&schema, &Hooks::default()).expect("structural")
}

#[derive(Serialize)]
struct Inner {
    a: &'static str,
    b: &'static str,
    unknown: u8,
    z: &'static str,
}

const INNER: Inner = Inner {
    a: "1",
    b: "<&>\u{2028}\"\\\n",
    unknown: 4,
    z: "3",
};

#[test]
fn fields_come_in_the_order_of_the_schema_and_unknown_ones_sorted() {
    #[derive(Serialize)]
    struct Outer {
        y: Inner,
        a: u8,
        x: Inner,
        z: Inner,
        list: [Inner; 2],
        map: BTreeMap<&'static str, Inner>,
        b: &'static str,
    }
    let outer = Outer {
        y: INNER,
        a: 1,
        x: INNER,
        z: INNER,
        list: [INNER, INNER],
        map: BTreeMap::from([("k", INNER), ("j", INNER)]),
        b: "b",
    };
    check(&outer, &reordered());
}

#[test]
fn maps_are_sorted_whatever_their_type() {
    let strings: HashMap<String, Inner> = (0..50).map(|n| (n.to_string(), INNER)).collect();
    check(&strings, &reordered());
    let numbers: HashMap<i32, HashMap<bool, char>> = (-20..20)
        .map(|n| (n, HashMap::from([(n > 0, 'x'), (n <= 0, 'ü')])))
        .collect();
    check(&numbers, &reordered());
    check(&BTreeMap::from([("a\"<", 1), ("a!", 2)]), &reordered());
}

#[test]
fn numbers_and_scalars_are_those_of_documents() {
    #[derive(Serialize)]
    struct Scalars {
        small: f32,
        tenth: f32,
        float: Vec<f64>,
        ints: (i8, i16, i32, i64, u8, u16, u32, u64),
        unit: (),
        none: Option<u8>,
        some: Option<Option<u8>>,
        letter: char,
        truth: bool,
        nothing: f64,
        free: Value,
    }
    let scalars = Scalars {
        small: 1.5e-7,
        tenth: 0.1,
        float: vec![1.0, 0.1, 1e21, -1e-7, 1.5e300, 0.0, -0.0],
        ints: (-1, -2, i32::MIN, i64::MIN, 1, 2, 3, u64::MAX),
        unit: (),
        none: None,
        some: Some(Some(3)),
        letter: '<',
        truth: true,
        nothing: f64::NAN,
        free: json!({"b": [1.0, {"z": 1, "a": null}], "a": "x"}),
    };
    check(&scalars, &reordered());
}

#[test]
fn enums_have_every_representation_of_serde() {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    enum Outside {
        Unit,
        Newtype(Inner),
        Tuple(u8, Inner),
        Struct { z: u8, a: u8 },
    }
    #[derive(Serialize)]
    #[serde(tag = "t")]
    enum Inside {
        Unit,
        Newtype(Inner),
        Struct { z: u8, a: u8 },
    }
    #[derive(Serialize)]
    #[serde(tag = "t", content = "c")]
    enum Beside {
        Tuple(u8, u8),
    }
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Untagged {
        Text(&'static str),
        Inner(Inner),
    }
    #[derive(Serialize)]
    struct Unit;
    #[derive(Serialize)]
    struct Newtype(Inner);
    #[derive(Serialize)]
    struct Pair(u8, Inner);
    #[derive(Serialize)]
    struct All {
        outside: [Outside; 4],
        inside: [Inside; 3],
        beside: Beside,
        untagged: [Untagged; 2],
        unit: Unit,
        z: Newtype,
        pair: Pair,
    }
    let all = All {
        outside: [
            Outside::Unit,
            Outside::Newtype(INNER),
            Outside::Tuple(1, INNER),
            Outside::Struct { z: 1, a: 2 },
        ],
        inside: [
            Inside::Unit,
            Inside::Newtype(INNER),
            Inside::Struct { z: 1, a: 2 },
        ],
        beside: Beside::Tuple(1, 2),
        untagged: [Untagged::Text("t"), Untagged::Inner(INNER)],
        unit: Unit,
        z: Newtype(INNER),
        pair: Pair(1, INNER),
    };
    check(&all, &reordered());
}

#[test]
fn of_flattened_fields_with_one_name_the_last_counts() {
    #[derive(Serialize)]
    struct Flat {
        z: u8,
        #[serde(flatten)]
        inner: Inner,
        #[serde(flatten)]
        rest: BTreeMap<&'static str, u8>,
    }
    let flat = Flat {
        z: 1,
        inner: INNER,
        rest: BTreeMap::from([("metadata", 1), ("b", 2), ("zz", 3)]),
    };
    check(&flat, &reordered());
}

#[test]
fn the_kubernetes_types_come_out_in_their_order() {
    #[derive(Serialize, JsonSchema)]
    struct Kind {
        metadata: crate::ObjectMeta,
        when: crate::types::Time,
        size: crate::types::Quantity,
        either: crate::types::IntOrString,
    }
    impl ApiType for Kind {}
    let schema = Schema::for_resource::<Kind>().expect("structural");
    let metadata = json!({
        "name": "a", "namespace": "b", "labels": {"z": "1", "a": "2"}, "finalizers": ["x/y"], "generation": 3,
        "creationTimestamp": "2023-11-14T22:08:20Z",
        "ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u", "controller": true}],
    });
    let kind = Kind {
        metadata: serde_json::from_value(metadata).unwrap(),
        when: serde_json::from_value(json!("2023-11-14T22:08:20Z")).unwrap(),
        size: serde_json::from_value(json!("1500m")).unwrap(),
        either: serde_json::from_value(json!("80%")).unwrap(),
    };
    check(&kind, &schema);
}

#[test]
fn what_has_no_form_is_refused() {
    #[derive(Serialize)]
    struct Big {
        big: u128,
    }
    struct Fails;
    impl Serialize for Fails {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("no"))
        }
    }
    let refused = |value: &dyn Fn(&mut Vec<u8>) -> Result<(), serde_json::Error>| {
        value(&mut Vec::new()).unwrap_err();
    };
    let schema = reordered();
    refused(&|out| Encoder::of(&schema).append_typed(&Big { big: 1 }, &[], out));
    refused(&|out| Encoder::of(&schema).append_typed(&BTreeMap::from([("a", Fails)]), &[], out));
    refused(&|out| Encoder::of(&schema).append_typed(&BTreeMap::from([([1], 1)]), &[], out));
    let raw = serde_json::value::RawValue::from_string("1".to_owned()).unwrap();
    refused(&|out| {
        Encoder::of(&schema).append_typed(&BTreeMap::from([("a", raw.clone())]), &[], out)
    });
}
