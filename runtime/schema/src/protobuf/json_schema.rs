//! The messages of `JSONSchemaProps`, the schema in a CustomResourceDefinition, with their numbers.

use super::ProtobufType::{Boolean, ByShape, Bytes, Double, Int64, Json, List, Map, Message, Text};
use super::{ProtobufField as Field, ProtobufMessage, ProtobufType};

const TEXTS: ProtobufType = List(&Text);
const SCHEMA: ProtobufType = Message(|| &JSON_SCHEMA_PROPS);
const SCHEMAS: ProtobufType = List(&SCHEMA);
const SCHEMAS_BY_NAME: ProtobufType = Map(&SCHEMA);
const SCHEMA_OR_BOOL: ProtobufType = ByShape(|| &SCHEMA_OR_BOOL_MESSAGE);

/// `JSONSchemaProps`, an OpenAPI v3 schema.
pub static JSON_SCHEMA_PROPS: ProtobufMessage = ProtobufMessage::new("JSONSchemaProps").fields(&[
    Field::new(1, "id", Text),
    Field::new(2, "$schema", Text),
    Field::new(3, "$ref", Text).sent(),
    Field::new(4, "description", Text),
    Field::new(5, "type", Text),
    Field::new(6, "format", Text),
    Field::new(7, "title", Text),
    Field::new(8, "default", Json).sent(),
    Field::new(9, "maximum", Double).sent(),
    Field::new(10, "exclusiveMaximum", Boolean),
    Field::new(11, "minimum", Double).sent(),
    Field::new(12, "exclusiveMinimum", Boolean),
    Field::new(13, "maxLength", Int64).sent(),
    Field::new(14, "minLength", Int64).sent(),
    Field::new(15, "pattern", Text),
    Field::new(16, "maxItems", Int64).sent(),
    Field::new(17, "minItems", Int64).sent(),
    Field::new(18, "uniqueItems", Boolean),
    Field::new(19, "multipleOf", Double).sent(),
    Field::new(20, "enum", List(&Json)),
    Field::new(21, "maxProperties", Int64).sent(),
    Field::new(22, "minProperties", Int64).sent(),
    Field::new(23, "required", TEXTS),
    Field::new(24, "items", ByShape(|| &SCHEMA_OR_ARRAY)).sent(),
    Field::new(25, "allOf", SCHEMAS),
    Field::new(26, "oneOf", SCHEMAS),
    Field::new(27, "anyOf", SCHEMAS),
    Field::new(28, "not", SCHEMA).sent(),
    Field::new(29, "properties", SCHEMAS_BY_NAME),
    Field::new(30, "additionalProperties", SCHEMA_OR_BOOL).sent(),
    Field::new(31, "patternProperties", SCHEMAS_BY_NAME),
    Field::new(
        32,
        "dependencies",
        Map(&ByShape(|| &SCHEMA_OR_STRING_ARRAY)),
    ),
    Field::new(33, "additionalItems", SCHEMA_OR_BOOL).sent(),
    Field::new(34, "definitions", SCHEMAS_BY_NAME),
    Field::new(35, "externalDocs", Message(|| &EXTERNAL_DOCUMENTATION)).sent(),
    Field::new(36, "example", Json).sent(),
    Field::new(37, "nullable", Boolean),
    Field::new(38, "x-kubernetes-preserve-unknown-fields", Boolean).sent(),
    Field::new(39, "x-kubernetes-embedded-resource", Boolean),
    Field::new(40, "x-kubernetes-int-or-string", Boolean),
    Field::new(41, "x-kubernetes-list-map-keys", TEXTS),
    Field::new(42, "x-kubernetes-list-type", Text).sent(),
    Field::new(43, "x-kubernetes-map-type", Text).sent(),
    Field::new(
        44,
        "x-kubernetes-validations",
        List(&Message(|| &VALIDATION_RULE)),
    ),
]);

/// `JSON`, any document.
pub(super) static JSON: ProtobufMessage =
    ProtobufMessage::new("JSON").fields(&[Field::new(1, "raw", Bytes).sent()]);

static SCHEMA_OR_BOOL_MESSAGE: ProtobufMessage = ProtobufMessage::new("JSONSchemaPropsOrBool")
    .fields(&[
        Field::new(1, "allows", Boolean).sent(),
        Field::new(2, "schema", SCHEMA).sent(),
    ]);

static SCHEMA_OR_ARRAY: ProtobufMessage = ProtobufMessage::new("JSONSchemaPropsOrArray").fields(&[
    Field::new(1, "schema", SCHEMA).sent(),
    Field::new(2, "jSONSchemas", SCHEMAS),
]);

static SCHEMA_OR_STRING_ARRAY: ProtobufMessage =
    ProtobufMessage::new("JSONSchemaPropsOrStringArray").fields(&[
        Field::new(1, "schema", SCHEMA).sent(),
        Field::new(2, "property", TEXTS),
    ]);

static EXTERNAL_DOCUMENTATION: ProtobufMessage = ProtobufMessage::new("ExternalDocumentation")
    .fields(&[
        Field::new(1, "description", Text),
        Field::new(2, "url", Text),
    ]);

static VALIDATION_RULE: ProtobufMessage = ProtobufMessage::new("ValidationRule").fields(&[
    Field::new(1, "rule", Text).always(),
    Field::new(2, "message", Text),
    Field::new(3, "messageExpression", Text),
    Field::new(4, "reason", Text).sent(),
    Field::new(5, "fieldPath", Text),
    Field::new(6, "optionalOldSelf", Boolean).sent(),
]);
