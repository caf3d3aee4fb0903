//! Schemas of custom resources.

mod documents;
mod growth;
mod properties;

use serde_json::{Value, json};

use crate::codec::Decoder;
use crate::schema::Schema;

/// The schema of a custom resource with these fields besides those of every object.
fn schema(properties: &Value) -> Schema {
    of(&json!({"type": "object", "properties": properties}))
}

fn of(document: &Value) -> Schema {
    match Schema::of_custom_resource(document) {
        Ok(schema) => schema,
        Err(errors) => panic!("{document} is not structural: {errors}"),
    }
}

/// The document as a request stores it, and the strict errors of decoding it.
fn stored(schema: &Schema, document: &Value) -> (Value, Vec<String>) {
    let decoded = Decoder::of(schema)
        .decode(document.to_string().as_bytes())
        .unwrap();
    let mut value = decoded.value;
    schema.default(&mut value);
    (value, decoded.strict)
}
