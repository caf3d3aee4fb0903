//! The JSON and the schema of ObjectMeta.

use schemars::schema_for;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::*;
use crate::types::{Condition, LabelSelector, LabelSelectorRequirement};

const META: &str = r#"{"name":"a","generateName":"b","namespace":"c","selfLink":"d","uid":"e","resourceVersion":"f","generation":1,"creationTimestamp":"2026-11-21T09:28:46Z","deletionTimestamp":"2026-11-21T09:28:47Z","deletionGracePeriodSeconds":0,"labels":{"l":"1"},"annotations":{"a":"2"},"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"n","uid":"u","controller":true,"blockOwnerDeletion":true}],"finalizers":["a/b"],"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","time":"2026-11-21T09:28:46Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}},"subresource":"status"}]}"#;

/// Decodes a text with all fields, and checks that it is encoded unchanged, in the order of the schema.
#[track_caller]
fn check_order<T: Serialize + DeserializeOwned + JsonSchema>(json: &str) {
    let value: T = serde_json::from_str(json).unwrap();
    assert_eq!(serde_json::to_string(&value).unwrap(), json);

    let schema = serde_json::to_value(schema_for!(T)).unwrap();
    let mut order: Vec<&str> = schema["x-apiloom-order"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    let positions: Vec<_> = order
        .iter()
        .map(|name| json.find(&format!("\"{name}\":")).unwrap())
        .collect();
    assert!(positions.is_sorted(), "{order:?}");
    order.sort_unstable();
    assert!(
        schema["properties"].as_object().unwrap().keys().eq(order),
        "the order names every property once"
    );
}

#[test]
fn fields_print_in_the_order_that_the_schema_tells() {
    check_order::<ObjectMeta>(META);
    check_order::<OwnerReference>(
        r#"{"apiVersion":"v1","kind":"K","name":"n","uid":"u","controller":true,"blockOwnerDeletion":true}"#,
    );
    check_order::<ManagedFieldsEntry>(
        r#"{"manager":"m","operation":"Update","apiVersion":"v1","time":"2026-11-21T09:28:46Z","fieldsType":"FieldsV1","fieldsV1":{},"subresource":"s"}"#,
    );
    check_order::<ListMeta>(
        r#"{"selfLink":"s","resourceVersion":"1","continue":"c","remainingItemCount":2}"#,
    );
    check_order::<LabelSelector>(
        r#"{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"k","operator":"Exists"}]}"#,
    );
    check_order::<LabelSelectorRequirement>(r#"{"key":"k","operator":"In","values":["v"]}"#);
    check_order::<Condition>(
        r#"{"type":"T","status":"True","observedGeneration":1,"lastTransitionTime":"2026-11-21T09:28:46Z","reason":"R","message":"m"}"#,
    );
}

#[test]
fn empty_fields_are_left_out() {
    assert_eq!(serde_json::to_string(&ObjectMeta::default()).unwrap(), "{}");
    assert_eq!(serde_json::to_string(&ListMeta::default()).unwrap(), "{}");
}

#[test]
fn a_null_timestamp_is_an_absent_one() {
    let metadata: ObjectMeta =
        serde_json::from_value(json!({"name": "a", "creationTimestamp": null})).unwrap();
    assert_eq!(
        metadata,
        ObjectMeta {
            name: Some("a".to_owned()),
            ..ObjectMeta::default()
        }
    );
}

#[test]
fn the_schema_tells_the_topology_of_lists() {
    let schema = serde_json::to_value(schema_for!(ObjectMeta)).unwrap();
    let property = |name: &str, keyword: &str| schema["properties"][name][keyword].clone();
    assert_eq!(property("finalizers", "x-kubernetes-list-type"), "set");
    assert_eq!(
        property("managedFields", "x-kubernetes-list-type"),
        "atomic"
    );
    assert_eq!(property("ownerReferences", "x-kubernetes-list-type"), "map");
    assert_eq!(
        property("ownerReferences", "x-kubernetes-list-map-keys"),
        json!(["uid"])
    );
    assert_eq!(property("creationTimestamp", "format"), "date-time");
    let definitions = schema["$defs"].to_string();
    assert!(
        definitions.contains("x-kubernetes-preserve-unknown-fields"),
        "{definitions}"
    );
}

/// Writes the document with `UPDATE=1`; the next run compares it.
#[cfg(feature = "schema")]
#[test]
fn the_schema_crate_has_the_schema_of_the_type() {
    use crate::schema::Schema;

    let schema = Schema::source_of::<super::ObjectMeta>();
    if std::env::var_os("UPDATE").is_some() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../schema/src/engine/object_meta.json"
        );
        std::fs::write(path, format!("{schema:#}\n")).unwrap();
    } else {
        let document: serde_json::Value =
            serde_json::from_str(apiloom_schema::tree::OBJECT_META).unwrap();
        assert_eq!(document, schema);
    }
}
