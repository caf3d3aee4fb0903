//! `fieldsV1` in documents: captured, kept, encoded, and told apart from what users may write there.

use serde_json::{Value, json};

use crate::codec::{DecodeError, Decoder, Encoder, Format};
use crate::managed_fields::{FieldSet, ManagedFields};
use crate::object::Object;
use crate::schema::Schema;
use crate::types::{FieldsV1, ManagedFieldsEntry};

fn schema() -> Schema {
    let spec = json!({"type": "object", "properties": {
        "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    Schema::of_resource(&spec).unwrap()
}

/// The JSON of an object with this `fieldsV1`.
fn object(fields: &str) -> String {
    format!(
        r#"{{"kind":"A","apiVersion":"a/v1","metadata":{{"name":"a","managedFields":[{{"manager":"m","operation":"Update","apiVersion":"a/v1","fieldsType":"FieldsV1","fieldsV1":{fields}}}]}}}}"#
    )
}

/// The `fieldsV1` of a document.
fn fields(document: &Value) -> &Value {
    &document["metadata"]["managedFields"][0]["fieldsV1"]
}

/// Checks how a `fieldsV1` is kept, by all ways in and out.
#[track_caller]
fn check(sent: &str, kept: &str) {
    let schema = schema();
    for format in [Format::Json, Format::Yaml] {
        let decoded = Decoder::new(format)
            .schema(&schema)
            .decode(object(sent).as_bytes())
            .unwrap();
        assert_eq!(fields(&decoded.value), kept, "{format:?}");
    }
    let stored = Decoder::stored().value(object(sent).as_bytes()).unwrap();
    assert_eq!(fields(&stored), kept);
    assert!(schema.validate(&stored).is_empty());
    let object_of = || Object::from_value(stored.clone()).unwrap();
    let encoded = Encoder::of(&schema).object(&object_of());
    assert_eq!(String::from_utf8_lossy(&encoded), object(kept));
    assert!(Encoder::of(&schema).verbatim(&encoded).is_some(), "{kept}");
    // Through a tree, with sorted keys, and back.
    let tree = object_of().into_tree();
    assert_eq!(*fields(&tree), serde_json::from_str::<Value>(kept).unwrap());
    let back = Decoder::of(&schema).document(tree).unwrap().value;
    assert_eq!(
        serde_json::from_str::<Value>(fields(&back).as_str().unwrap()).unwrap(),
        serde_json::from_str::<Value>(kept).unwrap()
    );
    // As a type, and as other serializers write it.
    let metadata = object_of().metadata().unwrap();
    let typed: Option<&FieldsV1> = metadata.managed_fields[0].fields_v1.as_ref();
    assert_eq!(typed.map(FieldsV1::as_json), Some(kept));
    let json = String::from_utf8_lossy(&Encoder::json(&object_of())).into_owned();
    assert!(json.contains(&format!("\"fieldsV1\":{kept}")), "{json}");
}

#[test]
fn fields_are_kept_as_compact_text_in_their_order() {
    check("{}", "{}");
    check(
        r#"{ "f:spec" : {".": {}, "f:b":{}, "f:a" : { } } }"#,
        r#"{"f:spec":{".":{},"f:b":{},"f:a":{}}}"#,
    );
    // Keys with escapes, and numbers that sort differently as text.
    check(
        r#"{"k:{\"port\":80}":{},"k:{\"port\":443}":{},"v:\"a<\u00e9\"":{}}"#,
        r#"{"k:{\"port\":80}":{},"k:{\"port\":443}":{},"v:\"a\u003cé\"":{}}"#,
    );
    check(
        r#"{"x:other":[1, 2.50, -3, "\u0041", null, true, []]}"#,
        r#"{"x:other":[1,2.5,-3,"A",null,true,[]]}"#,
    );
}

#[test]
fn what_is_no_object_is_refused_or_dropped() {
    let schema = schema();
    for sent in [r#""{\"f:a\":{}}""#, "1", "[]", "true"] {
        let refused = Decoder::of(&schema).decode(object(sent).as_bytes());
        assert!(matches!(refused, Err(DecodeError::Type(_))), "{sent}");
        let tree: Value = serde_json::from_str(&object(sent)).unwrap();
        let refused = Decoder::of(&schema).document(tree);
        assert!(matches!(refused, Err(DecodeError::Type(_))), "{sent}");
        // Another program may have stored it; a string of it does not become the text of fields.
        let stored = Decoder::stored().value(object(sent).as_bytes()).unwrap();
        assert_eq!(*fields(&stored), Value::Null, "{sent}");
        assert!(
            !Encoder::of(&schema).is_verbatim(object(sent).as_bytes()),
            "{sent}"
        );
    }
    let nothing = Decoder::of(&schema)
        .decode(object("null").as_bytes())
        .unwrap();
    assert_eq!(*fields(&nothing.value), Value::Null);
}

#[test]
fn other_fields_of_that_name_are_values_like_any() {
    let json = r#"{"kind":"A","apiVersion":"a/v1","metadata":{"name":"a","annotations":{"fieldsV1":"{}"}},"spec":{"managedFields":[{"fieldsV1":{"f:a":{}}}],"metadata":{"fieldsV1":"x"}}}"#;
    let schema = schema();
    let decoded = Decoder::of(&schema).decode(json.as_bytes()).unwrap();
    let tree: Value = serde_json::from_str(json).unwrap();
    assert_eq!(decoded.value, tree);
    assert_eq!(Decoder::stored().value(json.as_bytes()).unwrap(), tree);
    let object = Object::from_value(tree.clone()).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&Encoder::of(&schema).object(&object)),
        json
    );
    assert_eq!(object.into_tree(), tree);
}

#[test]
fn deep_and_large_fields_have_the_limits_of_documents() {
    let schema = schema();
    let deep =
        |levels: usize| format!("{}{}", r#"{"f:a":"#.repeat(levels), "{}") + &"}".repeat(levels);
    let decode = |fields: &str, format| {
        Decoder::new(format)
            .schema(&schema)
            .decode(object(fields).as_bytes())
    };
    assert!(decode(&deep(100), Format::Json).is_ok());
    for format in [Format::Json, Format::Yaml] {
        let error = decode(&deep(200), format).unwrap_err();
        assert!(matches!(error, DecodeError::Syntax(_)), "{error:?}");
    }
    // Aliases repeat a long text.
    let mut yaml = format!("a: &a {}\n", "x".repeat(100_000));
    yaml.push_str("metadata:\n  managedFields:\n  - fieldsV1:\n");
    (0..100).for_each(|at| yaml.push_str(&format!("      f:{at}: *a\n")));
    let bomb = super::super::Decoder::new(Format::Yaml)
        .schema(&schema)
        .decode(yaml.as_bytes());
    assert_eq!(bomb.unwrap_err(), DecodeError::TooLarge);
}

#[test]
fn typed_fields_are_read_from_objects_and_from_the_text_of_documents() {
    let from = |value: Value| serde_json::from_value::<ManagedFieldsEntry>(value);
    let object = from(json!({"fieldsV1": {"f:a": {}}})).unwrap();
    let text = from(json!({"fieldsV1": "{\"f:a\":{}}"})).unwrap();
    assert_eq!(object, text);
    assert_eq!(
        serde_json::to_value(&text).unwrap(),
        json!({"fieldsV1": {"f:a": {}}})
    );
    for bad in [
        json!("x"),
        json!("\"{}\""),
        json!("{} {}"),
        json!(1),
        json!([]),
    ] {
        assert!(from(json!({ "fieldsV1": bad })).is_err());
    }
    let set = text.fields_v1.unwrap().to_set().unwrap();
    assert_eq!(set, FieldSet::from_json(r#"{"f:a":{}}"#).unwrap());
    assert_eq!(FieldsV1::from(&set).as_json(), r#"{"f:a":{}}"#);
}

#[test]
fn entries_that_are_only_read_and_written_keep_their_text() {
    // Not as a set would be written.
    let odd = r#"{"v:2":{},"v:1":{},"x:other":{}}"#;
    let stored = Decoder::stored().value(object(odd).as_bytes()).unwrap();
    let mut kept = Object::from_value(stored).unwrap();
    ManagedFields::read(&kept).unwrap().write(&mut kept);
    let text_of = |object: &Object| {
        let managed = ManagedFields::read(object).unwrap();
        managed.entries()[0].fields_json().into_owned()
    };
    assert_eq!(text_of(&kept), odd);
    // What a client sends is written anew, unless it is known.
    let known = ManagedFields::read(&kept).unwrap();
    let mut same = kept.clone();
    let sent = ManagedFields::read_sent(&same, &known).unwrap();
    sent.write(&mut same);
    assert_eq!(text_of(&same), odd);
    let sent = ManagedFields::read_sent(&same, &ManagedFields::default()).unwrap();
    sent.write(&mut same);
    assert_eq!(text_of(&same), r#"{"v:1":{},"v:2":{}}"#);
}
