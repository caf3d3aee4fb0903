//! Digests of schemas.

use std::hash::{BuildHasher, RandomState};

use serde_json::Value;

/// Keywords that have no effect on values.
pub(super) const WITHOUT_EFFECT: [&str; 5] =
    ["$schema", "description", "example", "externalDocs", "title"];

/// Computes digests of 128 bits with random keys, so that two schemas with the same digest cannot be constructed.
#[derive(Debug, Default)]
pub struct Digests {
    keys: [RandomState; 2],
}

impl Digests {
    /// The digest of the JSON of a schema.
    pub fn of_json(&self, json: &[u8]) -> u128 {
        let [high, low] = [&self.keys[0], &self.keys[1]].map(|key| u128::from(key.hash_one(json)));
        (high << 64) | low
    }

    /// The digest of a schema without keywords that have no effect, equal for schemas with equal trees.
    pub(super) fn of_schema(&self, schema: &Value) -> u128 {
        let mut text = Vec::with_capacity(1024);
        write(schema, &mut text);
        self.of_json(&text)
    }
}

/// Writes a schema without keywords that have no effect. What is written for two schemas is equal only if they are.
fn write(schema: &Value, out: &mut Vec<u8>) {
    let Value::Object(keywords) = schema else {
        return value(schema, out);
    };
    out.push(b'{');
    for (name, keyword) in keywords {
        if WITHOUT_EFFECT.contains(&name.as_str()) {
            continue;
        }
        text(name, out);
        match (name.as_str(), keyword) {
            ("properties", Value::Object(fields)) => {
                out.push(b'{');
                for (name, field) in fields {
                    text(name, out);
                    write(field, out);
                }
                out.push(b'}');
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => {
                out.push(b'[');
                branches.iter().for_each(|branch| write(branch, out));
                out.push(b']');
            }
            ("items" | "additionalProperties" | "not", below) => write(below, out),
            (_, keyword) => value(keyword, out),
        }
    }
    out.push(b'}');
}

fn text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&text.len().to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn value(value: &Value, out: &mut Vec<u8>) {
    // Writing to memory cannot fail.
    let json = serde_json::to_string(value).unwrap_or_default();
    out.push(b'=');
    text(&json, out);
}
