//! Tests of schemas of custom resources.

mod memory;
mod publication;
mod validation;

use serde_json::{Value, json};

use super::super::Schema;

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

fn lines(errors: Vec<crate::field::FieldError>) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}
