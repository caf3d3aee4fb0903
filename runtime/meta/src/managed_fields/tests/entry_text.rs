//! The text of managedFields: as the encoder writes the tree, and read as the tree is.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::codec::{decode_document, decode_encoded, encode_object, pack_managed_fields};
use crate::managed_fields::ManagedFields;
use crate::object::Object;
use crate::schema::Schema;

fn schema() -> Schema {
    Schema::of_resource(&json!({"type": "object"})).unwrap()
}

/// An object as a client sends it, decoded.
fn object(entries: Vec<Value>) -> Object {
    let document = json!({"kind": "A", "apiVersion": "a/v1", "metadata": {"name": "a", "managedFields": entries}});
    Object::from_value(decode_document(document, &schema()).unwrap().value).unwrap()
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
    String::from_utf8_lossy(&encode_object(object, &schema())).into_owned()
}

proptest! {
    #[test]
    fn a_text_is_the_tree_in_another_form(entries in prop::collection::vec(entry(), 1..4)) {
        let tree = object(entries);
        let mut packed = tree.clone();
        pack_managed_fields(&mut packed, &schema());
        prop_assert!(ManagedFields::value(&packed).unwrap().is_string());
        prop_assert_eq!(shown(&packed), shown(&tree));
        prop_assert_eq!(packed.clone().into_tree(), tree.clone().into_tree());
        prop_assert_eq!(packed.metadata().unwrap(), tree.metadata().unwrap());
        prop_assert_eq!(serde_json::to_value(&packed).unwrap(), serde_json::to_value(&tree).unwrap());
        let encoded = Object::from_value(decode_encoded(shown(&tree).as_bytes()).unwrap()).unwrap();
        prop_assert_eq!(ManagedFields::value(&encoded), ManagedFields::value(&packed));
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
    pack_managed_fields(&mut packed, &schema());
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
fn what_is_no_list_of_entries_is_no_text() {
    for (json, kept) in [
        ("[]", json!([])),
        ("null", Value::Null),
        ("{}", Value::Null),
        ("\"x\"", Value::Null),
    ] {
        let document = format!("{{\"metadata\":{{\"managedFields\":{json}}}}}");
        let decoded = decode_encoded(document.as_bytes()).unwrap();
        assert_eq!(decoded["metadata"]["managedFields"], kept);
        let stored = crate::codec::decode_stored(document.as_bytes()).unwrap();
        assert_eq!(stored["metadata"]["managedFields"], kept);
    }
}
