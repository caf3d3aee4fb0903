//! The schema in a CustomResourceDefinition.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// JSONSchemaProps is the JSON of an OpenAPI v3 schema in a CustomResourceDefinition. Keywords that Kubernetes does not know are
/// unknown fields when it is decoded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JsonSchemaProps(pub Value);

impl JsonSchema for JsonSchemaProps {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "JSONSchemaProps".into()
    }
    fn schema_id() -> Cow<'static, str> {
        concat!(module_path!(), "::JsonSchemaProps").into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
            "x-apiloom-json-schema": true,
        })
    }
}
