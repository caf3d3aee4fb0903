//! Tests of the engine: shapes of types, and all keywords.

mod keywords;
mod printing;
mod properties;
mod shapes;
mod structural;
mod update;

use serde_json::Value;

use super::{Metadata, Schema};
use crate::codec::{DecodeError, DecodedDocument, Decoder, Format};
use crate::kind::Hooks;

/// The schema of a type without hooks.
pub(super) fn schema_of<T: schemars::JsonSchema>() -> Result<Schema, Vec<String>> {
    let schema = super::root::schema_of::<T>();
    Schema::build(
        &schema,
        super::build::SchemaOrigin::Types,
        &Hooks::default(),
        false,
    )
    .map_err(|errors| errors.0)
}

/// The schema of a document with the private keywords of the macros.
pub(super) fn schema(json: &Value) -> Schema {
    match Schema::build(
        json,
        super::build::SchemaOrigin::Types,
        &Hooks::default(),
        false,
    ) {
        Ok(schema) => schema,
        Err(errors) => panic!("{json} is not structural: {errors}"),
    }
}

pub(super) fn decoded(schema: &Schema, document: &Value) -> Result<DecodedDocument, DecodeError> {
    Decoder::of(schema).decode(document.to_string().as_bytes())
}

/// The errors of a document, one line each.
pub(super) fn errors(schema: &Schema, document: &Value) -> Vec<String> {
    schema
        .validate(document)
        .iter()
        .map(ToString::to_string)
        .collect()
}

pub(super) fn openapi(schema: &Schema) -> Value {
    schema.to_openapi(&Metadata::Open)
}
