//! The text of managedFields: as the encoder writes the tree, and read as the tree is.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::codec::{Decoder, Encoder, value_end};
use crate::managed_fields::ManagedFields;
use crate::object::Object;
use crate::schema::Schema;

fn schema() -> Schema {
    Schema::of_resource(&json!({"type": "object"})).unwrap()
}

/// An object as a client sends it, decoded.
fn object(entries: Vec<Value>) -> Object {
    let document = json!({"kind": "A", "apiVersion": "a/v1", "metadata": {"name": "a", "managedFields": entries}});
    Object::from_value(Decoder::of(&schema()).document(document).unwrap().value).unwrap()
}

fn entry() -> impl Strategy<Value = Value> {
    let text = "[a-z<\"\\\\é\u{2028}]{0,6}";
    let fields = prop::collection::btree_map(text, prop::bool::ANY, 1..4);
    let time = prop::option::of(Just("2026-01-02T03:04:05Z"));
    (text, prop::bool::ANY, time, fields, "(status)?").prop_map(
        |(manager, is_apply, time, fields, subresource)| {
            let below = |nested| {
                if nested {
                    json!({".": {}, "v:\"x\"": {}})
                } else {
                    json!({})
                }
            };
            let fields: serde_json::Map<String, Value> = fields
                .into_iter()
                .map(|(name, nested)| (format!("f:{name}"), below(nested)))
                .collect();
            let operation = if is_apply { "Apply" } else { "Update" };
            let mut entry = json!({"manager": manager, "operation": operation, "apiVersion": "a/v1",
                "fieldsType": "FieldsV1", "fieldsV1": fields, "subresource": subresource});
            if let Some(time) = time {
                entry["time"] = json!(time);
            }
            entry
        },
    )
}

fn shown(object: &Object) -> String {
    String::from_utf8_lossy(&Encoder::of(&schema()).object(object)).into_owned()
}

/// The document of encoded JSON.
fn decoded(json: &str) -> Object {
    let start = json.find("\"metadata\":").unwrap() + "\"metadata\":".len();
    let end = value_end(json.as_bytes(), start).unwrap();
    Object::from_value(Decoder::encoded(json.as_bytes(), (start, end)).unwrap()).unwrap()
}

proptest! {
    #[test]
    fn a_text_is_the_tree_in_another_form(entries in prop::collection::vec(entry(), 1..4)) {
        let tree = object(entries);
        let mut packed = tree.clone();
        Encoder::of(&schema()).pack_managed_fields(&mut packed);
        prop_assert!(ManagedFields::value(&packed).unwrap().is_string());
        prop_assert_eq!(shown(&packed), shown(&tree));
        prop_assert_eq!(packed.clone().into_tree(), tree.clone().into_tree());
        prop_assert_eq!(packed.metadata().unwrap(), tree.metadata().unwrap());
        prop_assert_eq!(serde_json::to_value(&packed).unwrap(), serde_json::to_value(&tree).unwrap());
        prop_assert_eq!(&decoded(&shown(&tree)), &packed);
        // Entries that are read and written are those of the tree.
        let [mut of_text, mut of_tree] = [packed, tree];
        ManagedFields::read(&of_text).unwrap().write(&mut of_text);
        ManagedFields::read(&of_tree).unwrap().write(&mut of_tree);
        prop_assert_eq!(&of_text, &of_tree);
        let again = object(match of_text.clone().into_tree()["metadata"].get("managedFields") {
            Some(Value::Array(entries)) => entries.clone(),
            _ => Vec::new(),
        });
        prop_assert_eq!(shown(&again), shown(&of_text));
    }
}

#[test]
fn malformed_texts_are_errors() {
    let mut packed = object(vec![
        json!({"manager": "a\"", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}}}),
        json!({"manager": "b", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:b": {}}}),
    ]);
    Encoder::of(&schema()).pack_managed_fields(&mut packed);
    let whole = ManagedFields::value(&packed)
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(ManagedFields::read(&packed).unwrap().entries().len(), 2);
    for end in 0..whole.len() {
        for text in [&whole[..end], &whole[end + 1..]] {
            packed.meta_mut()["managedFields"] = json!(text);
            assert!(ManagedFields::read(&packed).is_err(), "{text}");
        }
    }
}

#[test]
fn only_managed_fields_of_the_metadata_are_taken_out() {
    assert_eq!(
        schema()
            .root()
            .property("metadata")
            .unwrap()
            .node
            .properties
            .last()
            .unwrap()
            .name,
        "managedFields"
    );
    let document = json!({"kind": "A", "apiVersion": "a/v1", "metadata": {"name": "a",
        "annotations": {"managedFields": "x", "note": ",\"managedFields\":[{"},
        "managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"x:other": {"a": 1, "managedFields": [{"b": 2}]}}}]}});
    let tree =
        Object::from_value(Decoder::of(&schema()).document(document).unwrap().value).unwrap();
    let mut packed = tree.clone();
    Encoder::of(&schema()).pack_managed_fields(&mut packed);
    assert!(ManagedFields::value(&packed).unwrap().is_string());
    assert_eq!(decoded(&shown(&tree)), packed);
    let mut without = tree;
    without.meta_mut().remove("managedFields");
    assert_eq!(decoded(&shown(&without)), without);
}

#[test]
fn what_is_no_list_of_entries_is_no_text() {
    for (json, kept) in [
        ("[]", json!([])),
        ("null", Value::Null),
        ("{}", Value::Null),
        ("\"x\"", Value::Null),
    ] {
        let document = format!("{{\"metadata\":{{\"name\":\"a\",\"managedFields\":{json}}}}}");
        let stored = Decoder::stored().value(document.as_bytes()).unwrap();
        assert_eq!(stored["metadata"]["managedFields"], kept);
        assert_eq!(decoded(&document).into_value(), stored);
    }
}
