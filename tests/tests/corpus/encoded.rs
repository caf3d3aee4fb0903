//! Definitions in Protobuf against what Kubernetes' own code makes of them: `tests/corpus/protobuf` has a program of Go, the
//! sums that it printed, and a definition with every field as the bytes that it wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use apiloom::apis::apiextensions::v1::CustomResourceDefinition;
use apiloom_meta::codec::{
    Encoder, InvalidText, PROTOBUF_PREFIX, ProtobufBody, append_protobuf_body,
};
use apiloom_meta::kind::{
    ProtobufField, ProtobufMessage, ProtobufPresence, ProtobufType, Resource,
};
use apiloom_tests::repository;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{DEFINITIONS, sum_of};

const MAX_BYTES: usize = 16 << 20;

fn message() -> &'static ProtobufMessage {
    CustomResourceDefinition::definition().protobuf.unwrap()
}

/// The document of a body.
fn read(body: &[u8]) -> Value {
    let body = ProtobufBody::parse(body).unwrap();
    let json = body.to_json(message(), InvalidText::Refuse, MAX_BYTES);
    serde_json::from_slice(&json.unwrap()).unwrap()
}

fn written(document: &Value) -> Vec<u8> {
    let mut body = Vec::new();
    append_protobuf_body(&Encoder::json(document), message(), &mut body).unwrap();
    body
}

/// A document without members that are null, which a read of JSON drops.
fn without_null(document: &mut Value) {
    match document {
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(without_null);
        }
        Value::Array(items) => items.iter_mut().for_each(without_null),
        _ => {}
    }
}

#[test]
fn a_definition_with_every_field_is_read_from_bytes_of_go_and_written_again() {
    let file = repository().join("tests/corpus/protobuf/every-field.txt");
    let text = fs::read_to_string(file).unwrap();
    let (bytes, document) = text.trim_end().split_once('\n').unwrap();
    let mut document: Value = serde_json::from_str(document).unwrap();
    without_null(&mut document);
    // The envelope: the type, and the message.
    let of_type = json!({"apiVersion": document["apiVersion"], "kind": document["kind"]});
    let empty = written(&of_type);
    let begin = empty.len() - "\x12\0\x1a\0\x22\0".len();
    let mut body = empty[..begin].to_vec();
    field(2, &STANDARD.decode(bytes).unwrap(), &mut body);
    assert!(body.starts_with(PROTOBUF_PREFIX));
    assert_eq!(read(&body), document);
    assert_eq!(read(&written(&document)), document);
    // Every field of every message of definitions is in it.
    let mut messages = BTreeMap::new();
    collect(message(), &mut messages);
    let mut seen = BTreeSet::new();
    see(message(), &document, &mut seen);
    for (name, message) in messages {
        for field in message.fields {
            assert!(
                seen.contains(&(name, field.name)),
                "{name} has no {}",
                field.name
            );
        }
    }
}

/// The messages that a message may have, by name, without those of all kinds.
fn collect(
    message: &'static ProtobufMessage,
    found: &mut BTreeMap<&'static str, &'static ProtobufMessage>,
) {
    let is_of_all_kinds = message
        .package
        .is_some_and(|of| of.contains("apimachinery"));
    if is_of_all_kinds || found.insert(message.name, message).is_some() {
        return;
    }
    for field in message.fields {
        let mut of = field.value;
        while let ProtobufType::List(inner) | ProtobufType::Map(inner) = of {
            of = *inner;
        }
        if let ProtobufType::Message(inner) | ProtobufType::ByShape(inner) = of {
            collect(inner(), found);
        }
    }
}

/// Notes the fields that a document has, by the message and the field.
fn see(
    message: &'static ProtobufMessage,
    document: &Value,
    seen: &mut BTreeSet<(&'static str, &'static str)>,
) {
    for field in message.fields {
        if let Some(value) = document.get(field.name) {
            seen.insert((message.name, field.name));
            see_value(field.value, value, seen);
        }
    }
}

fn see_value(of: ProtobufType, value: &Value, seen: &mut BTreeSet<(&'static str, &'static str)>) {
    match (of, value) {
        (ProtobufType::Message(message), _) => see(message(), value, seen),
        (ProtobufType::ByShape(message), _) => {
            let field = shaped(message(), value);
            seen.insert((message().name, field.name));
            see_value(field.value, value, seen);
        }
        (ProtobufType::List(of), Value::Array(items)) => {
            items.iter().for_each(|item| see_value(*of, item, seen));
        }
        (ProtobufType::Map(of), Value::Object(members)) => {
            members.values().for_each(|item| see_value(*of, item, seen));
        }
        _ => {}
    }
}

/// The field of a message by shape for a value.
fn shaped(message: &'static ProtobufMessage, value: &Value) -> &'static ProtobufField {
    let is_of = |field: &&ProtobufField| match field.value {
        ProtobufType::Message(_) => value.is_object(),
        ProtobufType::List(_) => value.is_array(),
        _ => value.is_boolean(),
    };
    message.fields.iter().find(is_of).unwrap()
}

#[test]
fn the_corpus_has_the_bytes_that_go_writes() {
    let sums = fs::read_to_string(repository().join("tests/corpus/protobuf/sums.txt")).unwrap();
    let spec = message().fields.iter().find(|field| field.name == "spec");
    let ProtobufType::Message(spec) = spec.unwrap().value else {
        panic!("the spec is a message");
    };
    let mut compared = 0;
    for line in sums.lines() {
        let [file, sum, encoded] = *line.split(' ').collect::<Vec<_>>() else {
            panic!("{line}");
        };
        let mut definitions = DEFINITIONS.iter();
        let Some(definition) = definitions.find(|one| one.file == file && one.sum == sum) else {
            continue;
        };
        let mut bytes = Vec::new();
        as_go(spec(), &definition.document["spec"], &mut bytes);
        assert_eq!(sum_of(&bytes), encoded, "{file}");
        compared += 1;
    }
    assert!(compared >= 200, "{compared} of the corpus were compared");
}

#[test]
fn the_corpus_comes_back_from_protobuf() {
    for definition in DEFINITIONS.iter() {
        let mut message_of_go = Vec::new();
        as_go(message(), &definition.document, &mut message_of_go);
        let mut document = definition.document.clone();
        without_null(&mut document);
        let body = written(&document);
        let back = read(&body);
        // What Go writes and what this server writes is read alike, except for what Go always writes.
        let body = ProtobufBody {
            message: &message_of_go,
            ..ProtobufBody::parse(&body).unwrap()
        };
        let json = body.to_json(message(), InvalidText::Refuse, MAX_BYTES);
        let json = json.unwrap();
        let of_go: Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(of_go["spec"], back["spec"], "{}", definition.file);
        // A second round changes nothing.
        assert_eq!(read(&written(&back)), back, "{}", definition.file);
        kept(message(), &document, &back, &definition.file);
    }
}

/// Checks that what a document says is in what came back; all else is empty.
fn kept(message: &'static ProtobufMessage, document: &Value, back: &Value, file: &str) {
    for field in message.fields.iter().filter(|field| field.name != "status") {
        let value = document.get(field.name).unwrap_or(&Value::Null);
        let found = back.get(field.name).unwrap_or(&Value::Null);
        match field.value {
            ProtobufType::Message(inner) if value.is_object() => kept(inner(), value, found, file),
            ProtobufType::List(ProtobufType::Message(inner)) if value.is_array() => {
                let (values, found) = (value.as_array().unwrap(), found.as_array());
                for (at, value) in values.iter().enumerate() {
                    kept(inner(), value, &found.unwrap()[at], file);
                }
            }
            ProtobufType::Map(ProtobufType::Message(inner)) if value.is_object() => {
                for (name, value) in value.as_object().unwrap() {
                    kept(inner(), value, &found[name], file);
                }
            }
            _ if is_empty(value) => assert!(is_empty(found), "{file}: {} {found}", field.name),
            _ => assert_eq!(
                Encoder::json(value),
                Encoder::json(found),
                "{file}: {}",
                field.name
            ),
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(true) => false,
    }
}

/// Appends what Go writes of a document: also empty fields that are neither lists, maps, bytes nor pointers.
fn as_go(message: &ProtobufMessage, document: &Value, out: &mut Vec<u8>) {
    let mut fields: Vec<_> = message.fields.iter().collect();
    fields.sort_by_key(|field| field.number);
    for field in fields {
        let value = document.get(field.name).filter(|value| !value.is_null());
        let is_pointer = field.presence == ProtobufPresence::Sent;
        match (value, field.value) {
            (None, _) if is_pointer => {}
            (None, ProtobufType::List(_) | ProtobufType::Map(_) | ProtobufType::Bytes) => {}
            (Some(Value::Array(items)), ProtobufType::List(of)) => {
                for item in items {
                    value_as_go(field.number, *of, item, out);
                }
            }
            (Some(Value::Object(members)), ProtobufType::Map(of)) => {
                let sorted: BTreeMap<_, _> = members.iter().collect();
                for (name, value) in sorted {
                    let mut entry = Vec::new();
                    self::field(1, name.as_bytes(), &mut entry);
                    value_as_go(2, *of, value, &mut entry);
                    self::field(field.number, &entry, out);
                }
            }
            (value, of) => value_as_go(field.number, of, value.unwrap_or(&Value::Null), out),
        }
    }
}

/// Types of fields on the wire.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn key(number: u32, wire_type: u32, out: &mut Vec<u8>) {
    varint(u64::from(number << 3 | wire_type), out);
}

fn field(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    key(number, BYTES, out);
    varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn value_as_go(number: u32, of: ProtobufType, value: &Value, out: &mut Vec<u8>) {
    let mut inner = Vec::new();
    match of {
        ProtobufType::Boolean => {
            key(number, VARINT, out);
            return varint(u64::from(value == true), out);
        }
        ProtobufType::Int32 | ProtobufType::Int64 => {
            key(number, VARINT, out);
            return varint(value.as_i64().unwrap_or(0) as u64, out);
        }
        ProtobufType::Double => {
            key(number, FIXED64, out);
            return out.extend_from_slice(&value.as_f64().unwrap_or(0.0).to_le_bytes());
        }
        ProtobufType::Text => inner.extend_from_slice(value.as_str().unwrap_or("").as_bytes()),
        ProtobufType::Bytes => inner = STANDARD.decode(value.as_str().unwrap()).unwrap(),
        ProtobufType::Json if value.is_null() => {}
        ProtobufType::Json => self::field(1, &Encoder::json(value), &mut inner),
        ProtobufType::Message(message) => as_go(message(), value, &mut inner),
        ProtobufType::ByShape(message) => {
            let field = shaped(message(), value);
            let flag = message().fields.iter().find(|one| one.name == "allows");
            if let Some(flag) = flag.filter(|_| value.is_object()) {
                value_as_go(flag.number, ProtobufType::Boolean, &json!(true), &mut inner);
            }
            as_go(
                &ProtobufMessage::new("").fields(std::slice::from_ref(field)),
                &json!({field.name: value}),
                &mut inner,
            );
        }
        // Times are in metadata and status alone, which are not compared.
        _ => return,
    }
    self::field(number, &inner, out);
}
