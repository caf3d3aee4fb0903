//! The OpenAPI 2.0 document as protobuf (`openapi.v2.Document` of gnostic), the only format in which client-go requests it.
//!
//! kubectl falls back to it to validate objects of kinds that cannot be patched. Only the fields in our documents are
//! supported: a table for each message, and functions for messages that wrap others.

pub(super) mod v3;

use serde_json::Value;

use super::v2;
use crate::shape::texts;

/// How a JSON value is encoded.
#[derive(Clone, Copy)]
enum Field {
    Text,
    Texts,
    Flag,
    Integer,
    Double,
    /// Any value, as YAML text; JSON is valid YAML.
    Any,
    Anys,
    /// One message.
    Message(fn(&Value) -> Vec<u8>),
    /// One message per item.
    Messages(fn(&Value) -> Vec<u8>),
}

/// JSON key, field number, encoding.
type Table = [(&'static str, u32, Field)];

use Field::{Any, Anys, Double, Flag, Integer, Message, Messages, Text, Texts};

/// Encodes a complete document.
pub(super) fn document(document: &v2::Document) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, 1, &Text, &document.swagger);
    write(&mut out, 2, &Message(info), &document.info);
    bytes(&mut out, 8, &named_texts(&document.paths, 2, path_item));
    bytes(&mut out, 9, &named_texts(&document.definitions, 1, schema));
    if let Some(security_of) = &document.security {
        write(&mut out, 12, &Messages(security), security_of);
    }
    if let Some(definitions) = &document.security_definitions {
        write(&mut out, 13, &Message(security_definitions), definitions);
    }
    out
}

fn info(value: &Value) -> Vec<u8> {
    message(value, &[("title", 1, Text), ("version", 2, Text)], 7)
}

fn schemas(value: &Value) -> Vec<u8> {
    named(value, 1, schema)
}

fn path_item(value: &Value) -> Vec<u8> {
    const TABLE: &Table = &[
        ("get", 2, Message(operation)),
        ("put", 3, Message(operation)),
        ("post", 4, Message(operation)),
        ("delete", 5, Message(operation)),
        ("patch", 8, Message(operation)),
        ("parameters", 9, Messages(parameter)),
    ];
    message(value, TABLE, 10)
}

fn operation(value: &Value) -> Vec<u8> {
    const TABLE: &Table = &[
        ("tags", 1, Texts),
        ("description", 3, Text),
        ("operationId", 5, Text),
        ("produces", 6, Texts),
        ("consumes", 7, Texts),
        ("parameters", 8, Messages(parameter)),
        ("responses", 9, Message(responses)),
        ("schemes", 10, Texts),
        ("deprecated", 11, Flag),
    ];
    message(value, TABLE, 13)
}

/// A parameter in its wrapper messages: item, parameter, and one more for parameters outside of the body.
fn parameter(value: &Value) -> Vec<u8> {
    const BODY: &Table = &[
        ("description", 1, Text),
        ("name", 2, Text),
        ("in", 3, Text),
        ("required", 4, Flag),
        ("schema", 5, Message(schema)),
    ];
    const QUERY: &Table = &[
        ("required", 1, Flag),
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("type", 6, Text),
        ("uniqueItems", 20, Flag),
    ];
    const PATH: &Table = &[
        ("required", 1, Flag),
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("type", 5, Text),
        ("uniqueItems", 19, Flag),
    ];
    let parameter = match value["in"].as_str() {
        Some("body") => wrap(1, &message(value, BODY, 6)),
        Some("path") => wrap(2, &wrap(4, &message(value, PATH, 22))),
        _ => wrap(2, &wrap(3, &message(value, QUERY, 23))),
    };
    wrap(1, &parameter)
}

fn responses(value: &Value) -> Vec<u8> {
    fn response(value: &Value) -> Vec<u8> {
        wrap(
            1,
            &message(
                value,
                &[("description", 1, Text), ("schema", 2, Message(item))],
                5,
            ),
        )
    }
    fn item(value: &Value) -> Vec<u8> {
        wrap(1, &schema(value))
    }
    named(value, 1, response)
}

fn schema(value: &Value) -> Vec<u8> {
    const TABLE: &Table = &[
        ("$ref", 1, Text),
        ("format", 2, Text),
        ("title", 3, Text),
        ("description", 4, Text),
        ("default", 5, Any),
        ("multipleOf", 6, Double),
        ("maximum", 7, Double),
        ("exclusiveMaximum", 8, Flag),
        ("minimum", 9, Double),
        ("exclusiveMinimum", 10, Flag),
        ("maxLength", 11, Integer),
        ("minLength", 12, Integer),
        ("pattern", 13, Text),
        ("maxItems", 14, Integer),
        ("minItems", 15, Integer),
        ("uniqueItems", 16, Flag),
        ("maxProperties", 17, Integer),
        ("minProperties", 18, Integer),
        ("required", 19, Texts),
        ("enum", 20, Anys),
        ("additionalProperties", 21, Message(additional_properties)),
        ("type", 22, Message(type_item)),
        ("items", 23, Message(items)),
        ("properties", 25, Message(schemas)),
        ("externalDocs", 29, Message(external_docs)),
        ("example", 30, Any),
    ];
    message(value, TABLE, 31)
}

fn external_docs(value: &Value) -> Vec<u8> {
    message(value, &[("description", 1, Text), ("url", 2, Text)], 3)
}

fn additional_properties(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    match value {
        Value::Bool(allowed) => integer(&mut out, 2, (*allowed).into()),
        _ => write(&mut out, 1, &Message(schema), value),
    }
    out
}

fn type_item(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, 1, &Text, value);
    out
}

fn items(value: &Value) -> Vec<u8> {
    wrap(1, &schema(value))
}

fn security(value: &Value) -> Vec<u8> {
    fn scopes(value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out, 1, &Texts, value);
        out
    }
    named(value, 1, scopes)
}

fn security_definitions(value: &Value) -> Vec<u8> {
    fn api_key(value: &Value) -> Vec<u8> {
        wrap(
            2,
            &message(
                value,
                &[
                    ("type", 1, Text),
                    ("name", 2, Text),
                    ("in", 3, Text),
                    ("description", 4, Text),
                ],
                5,
            ),
        )
    }
    named(value, 1, api_key)
}

/// Encodes the fields of a table, then `x-` keys as `NamedAny` in the field for extensions.
fn message(value: &Value, table: &Table, extensions: u32) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, number, field) in table {
        if let Some(value) = value.get(*key) {
            write(&mut out, *number, field, value);
        }
    }
    for (key, value) in value
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| key.starts_with("x-"))
    {
        bytes(&mut out, extensions, &name_and_value(key, &any(value)));
    }
    out
}

/// Encodes a map as pairs of name and value.
fn named(value: &Value, number: u32, encode: fn(&Value) -> Vec<u8>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        bytes(&mut out, number, &name_and_value(name, &encode(value)));
    }
    out
}

/// The same for texts, of which one is a value at a time.
fn named_texts(all: &texts::Texts, number: u32, encode: fn(&Value) -> Vec<u8>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, text) in all {
        let encoded = encode(&texts::value(text));
        bytes(&mut out, number, &name_and_value(name, &encoded));
    }
    out
}

fn name_and_value(name: &str, value: &[u8]) -> Vec<u8> {
    let mut pair = Vec::new();
    bytes(&mut pair, 1, name.as_bytes());
    bytes(&mut pair, 2, value);
    pair
}

fn any(value: &Value) -> Vec<u8> {
    wrap(2, value.to_string().as_bytes())
}

fn wrap(number: u32, inner: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    bytes(&mut out, number, inner);
    out
}

/// Writes one field; a value of the wrong type is omitted, like an absent one. So are an empty text, zero and false, which readers
/// take an absent one for.
fn write(out: &mut Vec<u8>, number: u32, field: &Field, value: &Value) {
    let each = || value.as_array().into_iter().flatten();
    match field {
        Text => value
            .as_str()
            .into_iter()
            .filter(|text| !text.is_empty())
            .for_each(|text| bytes(out, number, text.as_bytes())),
        Texts => each()
            .filter_map(Value::as_str)
            .for_each(|text| bytes(out, number, text.as_bytes())),
        Flag => value
            .as_bool()
            .into_iter()
            .filter(|flag| *flag)
            .for_each(|flag| integer(out, number, flag.into())),
        // Negative numbers are sign-extended to 64 bits, which is what the cast does.
        Integer => value
            .as_i64()
            .into_iter()
            .filter(|n| *n != 0)
            .for_each(|n| integer(out, number, n as u64)),
        Double => value
            .as_f64()
            .into_iter()
            .filter(|n| *n != 0.0)
            .for_each(|n| double(out, number, n)),
        Any => bytes(out, number, &any(value)),
        Anys => each().for_each(|value| bytes(out, number, &any(value))),
        Message(encode) => bytes(out, number, &encode(value)),
        Messages(encode) => each().for_each(|value| bytes(out, number, &encode(value))),
    }
}

fn integer(out: &mut Vec<u8>, number: u32, value: u64) {
    varint(out, u64::from(number) << 3);
    varint(out, value);
}

fn double(out: &mut Vec<u8>, number: u32, value: f64) {
    varint(out, u64::from(number) << 3 | 1);
    out.extend(value.to_le_bytes());
}

fn bytes(out: &mut Vec<u8>, number: u32, value: &[u8]) {
    varint(out, u64::from(number) << 3 | 2);
    varint(out, value.len() as u64);
    out.extend(value);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        // Seven bits, with the flag for more bytes.
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_and_texts_have_the_encoding_of_protobuf() {
        let check = |field: Field, value: Value, expected: &[u8]| {
            let mut out = Vec::new();
            write(&mut out, 1, &field, &value);
            assert_eq!(out, expected, "{value}");
        };
        check(Integer, json!(300), &[0x08, 0xac, 0x02]);
        check(
            Integer,
            json!(-1),
            &[
                0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
            ],
        );
        check(Flag, json!(true), &[0x08, 0x01]);
        check(Text, json!("ab"), &[0x0a, 0x02, b'a', b'b']);
        check(
            Texts,
            json!(["a", "b"]),
            &[0x0a, 0x01, b'a', 0x0a, 0x01, b'b'],
        );
        check(Double, json!(1.0), &[0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
        check(Any, json!({ "a": 1 }), b"\x0a\x09\x12\x07{\"a\":1}");
        check(Text, json!(1), &[]);
    }

    #[test]
    fn a_schema_has_its_type_its_properties_and_its_extensions() {
        let got = schema(
            &json!({ "type": "object", "properties": { "a": { "type": "string" } }, "x-b": [1] }),
        );
        let mut expected = b"\xb2\x01\x08\x0a\x06object".to_vec();
        expected.extend(b"\xca\x01\x12\x0a\x10\x0a\x01a\x12\x0b\xb2\x01\x08\x0a\x06string");
        expected.extend(b"\xfa\x01\x0c\x0a\x03x-b\x12\x05\x12\x03[1]");
        assert_eq!(got, expected);
    }

    #[test]
    fn parameters_are_wrapped_by_their_place() {
        let check = |place: &str, expected: &[u8]| {
            let got = parameter(&json!({ "in": place, "name": "n" }));
            assert_eq!(&got[..expected.len()], expected, "{place}");
        };
        check("body", b"\x0a\x0b\x0a\x09\x12\x01n\x1a\x04body");
        check("query", b"\x0a\x0e\x12\x0c\x1a\x0a\x12\x05query\x22\x01n");
        check("path", b"\x0a\x0d\x12\x0b\x22\x09\x12\x04path\x22\x01n");
    }
}
