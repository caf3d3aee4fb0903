//! Twice the schema and twice the document are twice the work, for each keyword.

use serde_json::{Map, Value, json};

use super::{of, stored};
use crate::processor_time;

/// A schema and a document of a size.
type Make = fn(usize) -> (Value, Value);

/// The work that takes long enough to be measured, in nanoseconds of a processor.
const MEASURED: u64 = 5_000_000;

/// The time of reading a schema, and of decoding, defaulting and validating a document and a change of it; the least of some attempts.
fn work(make: Make, size: usize) -> u64 {
    let (schema, document) = make(size);
    let (schema, document) = (
        json!({"type": "object", "properties": {"v": schema}}),
        json!({"v": document}),
    );
    processor_time::least(|| {
        let schema = of(&schema);
        let (value, _) = stored(&schema, &document);
        let errors = schema.validate(&value);
        let tolerated = schema.validate_update(&value, &value);
        assert!(tolerated.len() <= errors.len());
        (value, errors)
    })
}

fn fields(size: usize, make: impl Fn(usize) -> Value) -> Value {
    let fields: Map<_, _> = (0..size).map(|at| (format!("f{at}"), make(at))).collect();
    Value::Object(fields)
}

fn items(size: usize, make: impl Fn(usize) -> Value) -> Value {
    (0..size).map(make).collect()
}

fn names(size: usize) -> Value {
    items(size, |at| json!(format!("f{at}")))
}

/// A list of `size` items of which each is checked by a keyword.
fn list(size: usize, schema: Value, item: impl Fn(usize) -> Value) -> (Value, Value) {
    (json!({"type": "array", "items": schema}), items(size, item))
}

const KEYWORDS: &[(&str, Make)] = &[
    ("properties", |size| {
        (
            json!({"type": "object", "properties": fields(size, |_| json!({"type": "string"}))}),
            fields(size, |at| json!(at.to_string())),
        )
    }),
    ("properties of other types", |size| {
        (
            json!({"type": "object", "properties": fields(size, |_| json!({"type": "string"}))}),
            fields(size, |at| json!(at)),
        )
    }),
    ("unknown fields", |size| {
        (
            json!({"type": "object", "properties": fields(size, |_| json!({"type": "string"}))}),
            fields(2 * size, |_| json!("x")),
        )
    }),
    ("required", |size| {
        (
            json!({"type": "object", "required": names(size), "properties": fields(size, |_| json!({"type": "string"}))}),
            fields(size / 2, |_| json!("x")),
        )
    }),
    ("additionalProperties", |size| {
        (
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            fields(size, |at| json!(at)),
        )
    }),
    ("maxProperties", |size| {
        (
            json!({"type": "object", "maxProperties": 1, "minProperties": size, "additionalProperties": {"type": "integer"}}),
            fields(size, |at| json!(at)),
        )
    }),
    ("x-kubernetes-preserve-unknown-fields", |size| {
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            fields(size, |at| json!({"a": [at]})),
        )
    }),
    ("x-kubernetes-embedded-resource", |size| {
        let item = json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
        list(
            size,
            item,
            |at| json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": format!("n{at}"), "labels": {"a": "b"}}}),
        )
    }),
    ("enum of strings", |size| {
        list(size, json!({"type": "string", "enum": names(size)}), |at| {
            json!(format!("f{at}"))
        })
    }),
    ("enum without the values", |size| {
        list(
            size / 4,
            json!({"type": "string", "enum": names(size)}),
            |at| json!(format!("g{at}")),
        )
    }),
    ("enum of integers", |size| {
        list(
            size / 4,
            json!({"type": "integer", "enum": items(size, |at| json!(at))}),
            |at| json!(5 * at),
        )
    }),
    ("enum of numbers near 2^64", |size| {
        let near = |at: usize| json!(u64::MAX - u64::try_from(at).unwrap());
        list(
            size,
            json!({"type": "number", "enum": items(size, near)}),
            near,
        )
    }),
    ("enum of lists near 2^64", |size| {
        let near = |at: usize| {
            json!([
                u64::MAX - u64::try_from(at / 1000).unwrap(),
                u64::MAX - u64::try_from(at % 1000).unwrap()
            ])
        };
        list(
            size,
            json!({"type": "array", "items": {"type": "number"}, "enum": items(size, near)}),
            near,
        )
    }),
    ("enum of objects", |size| {
        let object = |at: usize| json!({"a": at, "b": {"c": at}});
        list(
            size,
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "enum": items(size, object)}),
            object,
        )
    }),
    ("default", |size| {
        (
            json!({"type": "object", "properties": fields(size, |at| json!({"type": "integer", "default": at}))}),
            json!({}),
        )
    }),
    ("default of items", |size| {
        list(
            size,
            json!({"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}),
            |_| json!({}),
        )
    }),
    ("nullable", |size| {
        list(size, json!({"type": "string", "nullable": true}), |_| {
            json!(null)
        })
    }),
    ("pattern", |size| {
        list(
            size,
            json!({"type": "string", "pattern": "^[a-z]+$"}),
            |at| json!(format!("a{at}")),
        )
    }),
    ("pattern of a long text", |size| {
        (
            json!({"type": "string", "pattern": "^[a-z]+[0-9]$"}),
            json!("a".repeat(20 * size)),
        )
    }),
    ("maxLength", |size| {
        (
            json!({"type": "string", "maxLength": size, "minLength": 30 * size}),
            json!("ä".repeat(20 * size)),
        )
    }),
    ("format", |size| {
        list(
            size,
            json!({"type": "string", "format": "date-time"}),
            |at| json!(format!("2020-01-01T00:00:00.{at}Z")),
        )
    }),
    ("maximum", |size| {
        list(
            size,
            json!({"type": "number", "maximum": 10, "minimum": 1, "multipleOf": 0.5}),
            |at| json!(at),
        )
    }),
    ("x-kubernetes-int-or-string", |size| {
        list(size, json!({"x-kubernetes-int-or-string": true}), |at| {
            json!(at)
        })
    }),
    ("maxItems", |size| {
        (
            json!({"type": "array", "maxItems": 1, "minItems": size, "items": {"type": "string"}}),
            names(size),
        )
    }),
    ("x-kubernetes-list-type set", |size| {
        (
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
            names(size),
        )
    }),
    ("set with duplicates", |size| {
        (
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
            items(size, |at| json!(format!("f{}", at / 2))),
        )
    }),
    ("set near 2^64", |size| {
        let near = |at: usize| json!(u64::MAX - u64::try_from(at).unwrap());
        (
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "number"}}),
            items(size, near),
        )
    }),
    ("x-kubernetes-list-type map", |size| {
        let item = json!({"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "string"}}});
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item}),
            items(size, |at| json!({"k": format!("k{at}"), "v": "x"})),
        )
    }),
    // Each value against each alternative is what such a schema means, so here the alternatives grow alone.
    ("allOf", |size| {
        (
            json!({"type": "string", "allOf": items(size, |at| json!({"maxLength": at + 1}))}),
            json!("xxxxx"),
        )
    }),
    ("anyOf", |size| {
        (
            json!({"type": "string", "anyOf": items(size, |at| json!({"minLength": 10 + at}))}),
            json!("xxxxx"),
        )
    }),
    ("oneOf", |size| {
        (
            json!({"type": "string", "oneOf": items(size, |at| json!({"enum": [format!("f{at}")]}))}),
            json!("xxxxx"),
        )
    }),
    ("not", |size| {
        list(
            size,
            json!({"type": "string", "not": {"enum": names(size)}}),
            |at| json!(format!("f{at}")),
        )
    }),
    ("items of items", |size| {
        (
            json!({"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}),
            items(size, |at| json!([at])),
        )
    }),
];

#[test]
fn twice_the_schema_and_the_document_are_twice_the_work() {
    let mut failures = Vec::new();
    for (keyword, make) in KEYWORDS {
        // Below this errors have the whole text of their schema, whose length is bounded.
        let mut size = 4_000;
        let mut once = work(*make, size);
        while once < MEASURED {
            size *= 2;
            once = work(*make, size);
        }
        let twice = work(*make, 2 * size);
        println!("{keyword}: {size} take {once} ns, twice as much takes {twice} ns");
        // Quadratic work is four times as much, and twice in a row: others disturb a measurement now and then.
        if twice > 3 * once {
            let again = work(*make, 4 * size);
            if again > 3 * twice {
                failures.push(format!("{keyword}: {size}, twice and four times as much take {once}, {twice} and {again} ns"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
