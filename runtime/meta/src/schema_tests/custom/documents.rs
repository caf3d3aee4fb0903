//! Decoding, pruning, defaults and encoding.

use serde_json::{Value, json};

use super::{of, schema, stored};
use crate::codec;
use crate::object::Object;

#[test]
fn defaults_come_before_pruning_and_nulls_are_dropped() {
    let schema = schema(&json!({
        "a": {"type": "string", "default": "x"},
        "b": {"type": "string"},
        "c": {"type": "string", "nullable": true, "default": "y"},
        "o": {"type": "object", "default": {}, "properties": {"p": {"type": "integer", "default": 1}}},
        "l": {"type": "array", "items": {"type": "object", "properties": {"q": {"type": "boolean", "default": true}}}},
        "m": {"type": "object", "additionalProperties": {"type": "string"}},
    }));
    let (value, strict) = stored(
        &schema,
        &json!({"a": null, "b": null, "c": null, "bogus": 1, "l": [{}, {"q": false, "r": 1}], "m": {"k": null, "j": "v"}}),
    );
    assert_eq!(
        value,
        json!({"a": "x", "c": null, "o": {"p": 1}, "l": [{"q": true}, {"q": false}], "m": {"j": "v"}})
    );
    assert_eq!(
        strict,
        [r#"unknown field "bogus""#, r#"unknown field "l[1].r""#]
    );
}

#[test]
fn values_of_wrong_types_are_kept_for_validation() {
    let schema = schema(&json!({
        "s": {"type": "string"},
        "i": {"type": "integer", "format": "int32"},
        "t": {"type": "string", "format": "date-time"},
        "o": {"type": "object", "properties": {"a": {"type": "string"}}},
    }));
    let document = json!({"s": 1, "i": "x", "t": "never", "o": "text"});
    assert_eq!(stored(&schema, &document), (document, Vec::new()));
    // Fields that the type does not have are pruned from values of other types too.
    let (value, _) = stored(&schema, &json!({"s": {"a": 1}, "o": [{"a": 1}]}));
    assert_eq!(value, json!({"s": {}, "o": [{}]}));
}

#[test]
fn a_list_that_keeps_unknown_fields_passes_it_on_to_its_items() {
    let open = |items: Value| json!({"type": "array", "x-kubernetes-preserve-unknown-fields": true, "items": items});
    let closed = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let schema = schema(&json!({
        "list": open(json!({"type": "object"})),
        "fields": open(json!({"type": "object", "properties": {"o": closed}})),
        "maps": open(json!({"type": "object", "additionalProperties": closed})),
        "lists": open(json!({"type": "array", "items": closed})),
        "inner": {"type": "array", "items": open(closed.clone())},
        "field": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"l": {"type": "array", "items": closed}}},
        "again": {"type": "array", "items": closed},
    }));
    let other = || json!({"a": "", "b": {"c": [{}]}});
    let document = json!({
        "list": [other()],
        "fields": [{"o": other(), "p": 1}],
        "maps": [{"k": other()}],
        "lists": [[other()]],
        "inner": [[other()]],
        "field": {"l": [other()], "p": 1},
        "again": [other()],
    });
    let (value, strict) = stored(&schema, &document);
    assert_eq!(
        value,
        json!({
            "list": [other()],
            "fields": [{"o": {"a": ""}, "p": 1}],
            "maps": [{"k": {"a": ""}}],
            "lists": [[other()]],
            "inner": [[other()]],
            "field": {"l": [{"a": ""}], "p": 1},
            "again": [{"a": ""}],
        })
    );
    let mut strict: Vec<&str> = strict.iter().map(String::as_str).collect();
    strict.sort_unstable();
    assert_eq!(
        strict,
        [
            r#"unknown field "again[0].b""#,
            r#"unknown field "field.l[0].b""#,
            r#"unknown field "fields[0].o.b""#,
            r#"unknown field "maps[0].k.b""#,
        ]
    );
}

#[test]
fn unknown_fields_are_kept_where_the_schema_says_so() {
    let schema = schema(&json!({
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"closed": {"type": "object", "properties": {"a": {"type": "string"}}}}},
        "any": {"type": "object", "additionalProperties": true},
        "embedded": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}},
    }));
    let (value, strict) = stored(
        &schema,
        &json!({
            "open": {"x": {"y": [{"z": null}]}, "closed": {"a": "", "b": ""}},
            "any": {"k": 1, "o": {"p": 1}},
            "embedded": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "bogus": 1}, "spec": {"a": 1}, "status": 1},
        }),
    );
    assert_eq!(
        value,
        json!({
            "open": {"x": {"y": [{"z": null}]}, "closed": {"a": ""}},
            "any": {"k": 1, "o": {}},
            "embedded": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "spec": {}},
        })
    );
    assert_eq!(strict.len(), 5, "{strict:?}");
}

#[test]
fn metadata_of_embedded_objects_is_read_as_that_of_every_object() {
    let embedded = json!({"type": "object", "x-kubernetes-embedded-resource": true});
    let schema = schema(&json!({"m": {"type": "object", "additionalProperties": embedded}}));
    let metadata = json!({"name": "n", "annotations": {}, "finalizers": [], "bogus": 1});
    let object = |metadata: Value| json!({"m": {"k": {"apiVersion": "v1", "kind": "K", "metadata": metadata}}});
    let (value, strict) = stored(&schema, &object(metadata));
    assert_eq!(value, object(json!({"name": "n"})));
    assert_eq!(strict, ["unknown field \"m[k].metadata.bogus\""]);
}

#[test]
fn nulls_of_items_are_replaced_by_defaults() {
    let schema = schema(&json!({
        "l": {"type": "array", "items": {"type": "string", "default": "d"}},
        "n": {"type": "array", "items": {"type": "string"}},
        "m": {"type": "object", "additionalProperties": {"type": "string", "default": "d"}},
    }));
    let (value, _) = stored(
        &schema,
        &json!({"l": [null, "a"], "n": [null], "m": {"k": null}}),
    );
    assert_eq!(
        value,
        json!({"l": ["d", "a"], "n": [null], "m": {"k": "d"}})
    );
}

#[test]
fn metadata_of_embedded_objects_has_defaults() {
    let schema = schema(
        &json!({"e": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {
        "kind": {"type": "string", "default": "Pod"},
        "metadata": {"type": "object", "properties": {"namespace": {"type": "string", "default": "here"}}}}}}),
    );
    let (value, _) = stored(&schema, &json!({"e": {"metadata": {"name": "n"}}}));
    assert_eq!(
        value,
        json!({"e": {"kind": "Pod", "metadata": {"name": "n", "namespace": "here"}}})
    );
}

#[test]
fn defaults_have_no_nulls_that_would_be_dropped() {
    let schema = schema(
        &json!({"a": {"type": "object", "default": {"m": {"k": null}}, "properties": {
        "m": {"type": "object", "additionalProperties": {"x-kubernetes-preserve-unknown-fields": true}}}}}),
    );
    let (value, _) = stored(&schema, &json!({}));
    assert_eq!(value, json!({"a": {"m": {}}}));
}

#[test]
fn defaults_have_no_unknown_metadata() {
    let whole = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "n", "unknown": 1}});
    let embedded = |rest: Value| {
        let mut schema = json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
        for (name, value) in rest.as_object().unwrap() {
            schema[name] = value.clone();
        }
        schema
    };
    let schema = schema(&json!({
        "whole": embedded(json!({"default": whole})),
        "part": embedded(json!({"properties": {"metadata": {"type": "object",
            "default": {"name": "n", "unknown": 1}, "properties": {"other": {"type": "string", "default": "x"}}}}})),
    }));
    let (value, _) = stored(&schema, &json!({"part": {}}));
    assert_eq!(
        value,
        json!({
            "whole": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "n"}},
            "part": {"metadata": {"name": "n"}},
        })
    );
}

#[test]
fn sorted_metadata_is_read_again() {
    let entries = r#"[{"manager":"m","operation":"Update","fieldsV1":{"f:a":{}}}]"#;
    let json = format!(
        r#"{{"apiVersion":"g/v1","data":{{"metadata":{{"name":"x"}}}},"kind":"K","metadata":{{"annotations":{{"resourceVersion":"5"}},"managedFields":{entries},"name":"n","uid":"u"}}}}"#
    );
    let metadata = json.rfind(r#"{"annotations""#).unwrap();
    let decoded = codec::Decoder::encoded(json.as_bytes(), (metadata, json.len() - 1)).unwrap();
    assert_eq!(decoded["metadata"]["managedFields"], entries);
    assert_eq!(decoded["metadata"]["name"], "n");
    assert_eq!(decoded["metadata"]["annotations"]["resourceVersion"], "5");
}

#[test]
fn all_fields_are_sorted() {
    let schema = of(
        &json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "spec": {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "string"}}}}}),
    );
    let document = json!({"kind": "K", "apiVersion": "g/v1", "metadata": {"name": "n", "annotations": {"x": "y"}, "creationTimestamp": null},
        "free": 1, "zero": 2, "spec": {"b": "", "a": ""}});
    let (value, _) = stored(&schema, &document);
    let object = Object::from_value(value).unwrap();
    let json = codec::Encoder::of(&schema).object(&object);
    assert_eq!(
        std::str::from_utf8(&json).unwrap(),
        r#"{"apiVersion":"g/v1","free":1,"kind":"K","metadata":{"annotations":{"x":"y"},"name":"n"},"spec":{"a":"","b":""},"zero":2}"#
    );
    assert!(codec::Encoder::of(&schema).is_verbatim(&json));
    let unsorted = br#"{"kind":"K","apiVersion":"g/v1"}"#;
    assert!(!codec::Encoder::of(&schema).is_verbatim(unsorted));
}

#[test]
fn the_recognizer_sees_missing_defaults() {
    let schema = schema(&json!({
        "a": {"type": "string", "default": "x"},
        "l": {"type": "array", "items": {"type": "string", "default": "d"}},
    }));
    let is_verbatim =
        |document: Value| codec::Encoder::of(&schema).is_verbatim(document.to_string().as_bytes());
    assert!(is_verbatim(json!({"a": "y", "l": ["e"]})));
    assert!(!is_verbatim(json!({"l": ["e"]})));
    assert!(!is_verbatim(json!({"a": null})));
    assert!(!is_verbatim(json!({"a": "y", "l": [null]})));
    assert!(!is_verbatim(json!({"a": "y", "b": 1})));
    assert!(!is_verbatim(json!({"a": {"b": 1}})));
}

#[test]
fn documents_that_are_no_schemas_are_refused() {
    let errors = |document: Value| {
        crate::schema::Schema::of_custom_resource(&document)
            .unwrap_err()
            .0
    };
    assert_eq!(errors(json!(1)), ["a schema must be an object"]);
    assert_eq!(
        errors(json!({"type": "object", "properties": {"a": {"type": "text", "nullable": 1, "maximum": "x", "pattern": "("}}})).len(),
        4
    );
}
