//! JSON and YAML in and out: strict decoding against a schema, and encoding as Kubernetes prints.

use bytes::Bytes;
use serde_json::Value;

use crate::object::Object;
use crate::schema::Schema;

/// The format of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// `application/json`.
    Json,
    /// `application/yaml`.
    Yaml,
}

/// A decoded document: typed as the schema says, pruned, and what had to be dropped for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The document: unknown fields dropped, of duplicate fields the last one kept, nulls as the schema says.
    pub value: Value,
    /// In document order: `unknown field "spec.bogus"`, `duplicate field "data.k"`.
    pub strict: Vec<String>,
}

/// Why a body could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Not JSON or YAML at all; the text names line and column.
    #[error("{0}")]
    Syntax(String),
    /// A value has another type than its field: `json: cannot unmarshal string into Go struct field ...`.
    #[error("{0}")]
    Type(String),
}

/// Decodes a body against a schema in one walk.
///
/// # Errors
/// [`DecodeError`]: no document, or a value of the wrong type.
pub fn decode(_body: &[u8], _format: Format, _schema: &Schema) -> Result<Decoded, DecodeError> {
    todo!()
}

/// Decodes a body without a schema (apiVersion and kind are looked up so before the schema is known).
///
/// # Errors
/// [`DecodeError::Syntax`].
pub fn decode_value(_body: &[u8], _format: Format) -> Result<Value, DecodeError> {
    todo!()
}

/// Encodes an object as compact JSON: `kind`, `apiVersion`, `metadata` first (metadata in the order of ObjectMeta), the
/// rest in the schema's order; `<`, `>`, `&`, U+2028 and U+2029 escaped. No trailing newline.
pub fn encode_object(_object: &Object, _schema: &Schema) -> Bytes {
    todo!()
}

/// Encodes any value as compact JSON with the same escapes, keys in the value's own order.
pub fn encode_json(_value: &impl serde::Serialize) -> Bytes {
    todo!()
}

/// Encodes JSON bytes as two-space-indented JSON.
pub fn indent_json(_json: &[u8]) -> Bytes {
    todo!()
}

/// Encodes a value as YAML, keys sorted.
pub fn encode_yaml(_value: &Value) -> Bytes {
    todo!()
}
