//! Input and results of decoding: formats, documents, errors.

use serde_json::Value;

/// The format of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// `application/json`.
    Json,
    /// `application/yaml`; only with the feature `yaml`.
    #[cfg(feature = "yaml")]
    Yaml,
}

/// A decoded document, typed and pruned by the schema, with the fields that were dropped.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodedDocument {
    /// The document, without unknown fields, with the last of duplicate fields, and nulls as the schema allows.
    pub value: Value,
    /// Strict errors: `unknown field "spec.bogus"`, `duplicate field "data.k"`. They are in the order of the document; of a
    /// custom resource and of YAML duplicates come first, and unknown fields are sorted. JSON of a compiled kind has none in values of
    /// any type. At most a hundred, without repetitions.
    pub strict: Vec<String>,
}

/// Maximum size of a YAML body as JSON, in bytes, with its aliases expanded; equal to the limit for bodies.
pub const MAX_EXPANDED_BYTES: usize = 3 * 1024 * 1024;

/// Error of a body that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The body is not well-formed JSON or YAML; the text is that of Go.
    #[error("{0}")]
    Syntax(String),
    /// A value does not have the type of its field: `json: cannot unmarshal string into Go struct field ...`.
    #[error("{0}")]
    Type(String),
    /// The YAML expands to more than [`MAX_EXPANDED_BYTES`] of JSON.
    #[error("Request entity too large: limit is {MAX_EXPANDED_BYTES}")]
    TooLarge,
}
