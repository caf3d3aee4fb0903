//! OpenAPI 3.0 documents as protobuf (`openapi.v3.Document` of gnostic).
//!
//! Only the fields in our documents are supported, as for 2.0, whose functions are used.

use serde_json::Value;

use super::super::v3::{Components, Document};
use super::{
    Any, Anys, Double, Field, Flag, Integer, Message, Messages, Table, Text, Texts, bytes, double,
    external_docs, integer, message, named, named_texts, security, wrap, write,
};

/// Encodes a complete document.
pub(in crate::documents::openapi) fn document(document: &Document) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, 1, &Text, &document.openapi);
    write(&mut out, 2, &Message(info), &document.info);
    bytes(&mut out, 4, &named_texts(&document.paths, 1, path_item));
    bytes(&mut out, 5, &components(&document.components));
    if let Some(security_of) = &document.security {
        write(&mut out, 6, &Messages(security), security_of);
    }
    out
}

fn info(value: &Value) -> Vec<u8> {
    message(value, &[("title", 1, Text), ("version", 6, Text)], 7)
}

fn path_item(value: &Value) -> Vec<u8> {
    const TABLE: &Table = &[
        ("get", 4, Message(operation)),
        ("put", 5, Message(operation)),
        ("post", 6, Message(operation)),
        ("delete", 7, Message(operation)),
        ("patch", 10, Message(operation)),
        ("parameters", 13, Messages(parameter)),
    ];
    message(value, TABLE, 14)
}

fn operation(value: &Value) -> Vec<u8> {
    const TABLE: &Table = &[
        ("tags", 1, Texts),
        ("description", 3, Text),
        ("operationId", 5, Text),
        ("parameters", 6, Messages(parameter)),
        ("requestBody", 7, Message(request_body)),
        ("responses", 8, Message(responses)),
        ("deprecated", 10, Flag),
    ];
    message(value, TABLE, 13)
}

fn parameter(value: &Value) -> Vec<u8> {
    const TABLE: &Table = &[
        ("name", 1, Text),
        ("in", 2, Text),
        ("description", 3, Text),
        ("required", 4, Flag),
        ("schema", 10, Message(schema_or_reference)),
    ];
    wrap(1, &message(value, TABLE, 14))
}

fn request_body(value: &Value) -> Vec<u8> {
    const TABLE: &Table = &[
        ("description", 1, Text),
        ("content", 2, Message(media_types)),
        ("required", 3, Flag),
    ];
    wrap(1, &message(value, TABLE, 4))
}

fn responses(value: &Value) -> Vec<u8> {
    fn response(value: &Value) -> Vec<u8> {
        const TABLE: &Table = &[
            ("description", 1, Text),
            ("content", 3, Message(media_types)),
        ];
        wrap(1, &message(value, TABLE, 5))
    }
    named(value, 2, response)
}

fn media_types(value: &Value) -> Vec<u8> {
    fn media_type(value: &Value) -> Vec<u8> {
        message(value, &[("schema", 1, Message(schema_or_reference))], 5)
    }
    named(value, 1, media_type)
}

fn components(components: &Components) -> Vec<u8> {
    let schemas = named_texts(&components.schemas, 1, schema_or_reference);
    let mut out = wrap(1, &schemas);
    if let Some(schemes) = &components.security_schemes {
        write(&mut out, 7, &Message(security_schemes), schemes);
    }
    out
}

fn security_schemes(value: &Value) -> Vec<u8> {
    fn scheme(value: &Value) -> Vec<u8> {
        const TABLE: &Table = &[
            ("type", 1, Text),
            ("description", 2, Text),
            ("name", 3, Text),
            ("in", 4, Text),
        ];
        wrap(1, &message(value, TABLE, 9))
    }
    named(value, 1, scheme)
}

fn schemas(value: &Value) -> Vec<u8> {
    named(value, 1, schema_or_reference)
}

fn schema_or_reference(value: &Value) -> Vec<u8> {
    if value.get("$ref").is_some() {
        const TABLE: &Table = &[("$ref", 1, Text), ("description", 3, Text)];
        wrap(2, &message(value, TABLE, 0))
    } else {
        wrap(1, &schema(value))
    }
}

fn schema(value: &Value) -> Vec<u8> {
    const TABLE: &Table = &[
        ("nullable", 1, Flag),
        ("externalDocs", 6, Message(external_docs)),
        ("example", 7, Any),
        ("deprecated", 8, Flag),
        ("title", 9, Text),
        ("multipleOf", 10, Double),
        ("maximum", 11, Double),
        ("exclusiveMaximum", 12, Flag),
        ("minimum", 13, Double),
        ("exclusiveMinimum", 14, Flag),
        ("maxLength", 15, Integer),
        ("minLength", 16, Integer),
        ("pattern", 17, Text),
        ("maxItems", 18, Integer),
        ("minItems", 19, Integer),
        ("uniqueItems", 20, Flag),
        ("maxProperties", 21, Integer),
        ("minProperties", 22, Integer),
        ("required", 23, Texts),
        ("enum", 24, Anys),
        ("type", 25, Text),
        ("allOf", 26, Messages(schema_or_reference)),
        ("oneOf", 27, Messages(schema_or_reference)),
        ("anyOf", 28, Messages(schema_or_reference)),
        ("not", 29, Message(schema)),
        ("items", 30, Message(items)),
        ("properties", 31, Message(schemas)),
        ("additionalProperties", 32, Message(additional_properties)),
        ("default", 33, Message(default)),
        ("description", 34, Text),
        ("format", 35, Text),
    ];
    message(value, TABLE, 36)
}

fn items(value: &Value) -> Vec<u8> {
    wrap(1, &schema_or_reference(value))
}

fn additional_properties(value: &Value) -> Vec<u8> {
    alternative(value, &[(2, Flag), (1, Message(schema_or_reference))])
}

/// A default, of which the message has only numbers, booleans and texts.
fn default(value: &Value) -> Vec<u8> {
    alternative(value, &[(1, Double), (2, Flag), (3, Text)])
}

/// Encodes a value as the first field whose type it has. Which field it is tells the type, so empty values are written too.
fn alternative(value: &Value, fields: &[(u32, Field)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, field) in fields {
        match (field, value) {
            (Text, Value::String(text)) => bytes(&mut out, *number, text.as_bytes()),
            (Flag, Value::Bool(flag)) => integer(&mut out, *number, (*flag).into()),
            (Double, Value::Number(value)) => {
                double(&mut out, *number, value.as_f64().unwrap_or_default());
            }
            _ => write(&mut out, *number, field, value),
        }
        if !out.is_empty() {
            break;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_or_a_reference_says_which_it_is() {
        let check = |value: Value, expected: &[u8]| {
            assert_eq!(schema_or_reference(&value), expected, "{value}");
        };
        check(json!({"$ref": "#/a"}), b"\x12\x05\x0a\x03#/a");
        check(json!({"type": "string"}), b"\x0a\x09\xca\x01\x06string");
        check(
            json!({"items": {"$ref": "#/a"}}),
            b"\x0a\x0c\xf2\x01\x09\x0a\x07\x12\x05\x0a\x03#/a",
        );
        check(
            json!({"allOf": [{"$ref": "#/a"}], "x-b": [1]}),
            b"\x0a\x19\xd2\x01\x07\x12\x05\x0a\x03#/a\xa2\x02\x0c\x0a\x03x-b\x12\x05\x12\x03[1]",
        );
    }

    #[test]
    fn defaults_and_additional_properties_have_several_types() {
        assert_eq!(default(&json!("a")), b"\x1a\x01a");
        assert_eq!(default(&json!(true)), b"\x10\x01");
        assert_eq!(default(&json!(1)), b"\x09\0\0\0\0\0\0\xf0\x3f");
        assert_eq!(default(&json!("")), b"\x1a\0");
        assert_eq!(default(&json!(false)), b"\x10\0");
        assert_eq!(default(&json!(0)), b"\x09\0\0\0\0\0\0\0\0");
        assert_eq!(default(&json!({})), b"");
        assert_eq!(additional_properties(&json!(true)), b"\x10\x01");
        assert_eq!(
            additional_properties(&json!({"type": "a"})),
            b"\x0a\x06\x0a\x04\xca\x01\x01a"
        );
    }
}
