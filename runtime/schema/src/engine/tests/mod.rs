//! Tests of the engine: all keywords. What the forms of types accept is compared with the decoder in `apiloom-meta`.

mod keywords;
mod printing;
mod properties;
mod strategies;
mod structural;
mod update;

use serde_json::Value;

use super::{Metadata, Schema};
use crate::hooks::Hooks;

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
