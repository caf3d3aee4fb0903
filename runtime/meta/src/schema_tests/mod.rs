//! Schemas and the decoder: what the forms of types accept, and the documents of custom resources.

mod custom;
mod keywords;
mod properties;
mod shapes;
/// Random documents and schemas, as the tests of the schemas have them.
#[path = "../../../schema/src/engine/tests/strategies.rs"]
mod strategies;

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::SchemaGenerator;
use serde_json::Value;

use crate::codec::{DecodeError, DecodedDocument, Decoder};
use crate::kind::ApiType;
use crate::schema::{Metadata, Schema};

/// A type without hooks.
struct Plain<T>(PhantomData<T>);

impl<T: schemars::JsonSchema> schemars::JsonSchema for Plain<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }
    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> schemars::Schema {
        T::json_schema(generator)
    }
}

impl<T> ApiType for Plain<T> {}

/// The schema of a type without hooks.
fn schema_of<T: schemars::JsonSchema>() -> Result<Schema, Vec<String>> {
    Schema::for_type::<Plain<T>>().map_err(|errors| errors.0)
}

/// The schema of a kind's document with the private keywords of the macros.
fn schema(json: &Value) -> Schema {
    match Schema::of_root(json) {
        Ok(schema) => schema,
        Err(errors) => panic!("{json} is not structural: {errors}"),
    }
}

fn decoded(schema: &Schema, document: &Value) -> Result<DecodedDocument, DecodeError> {
    Decoder::of(schema).decode(document.to_string().as_bytes())
}

/// The errors of a document, one line each.
fn errors(schema: &Schema, document: &Value) -> Vec<String> {
    let errors = schema.validate(document);
    errors.iter().map(ToString::to_string).collect()
}

fn openapi(schema: &Schema) -> Value {
    schema.to_openapi(&Metadata::Open)
}
