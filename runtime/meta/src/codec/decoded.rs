//! What decoding takes and gives: formats, documents, errors.

use serde_json::Value;

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
    /// In document order: `unknown field "spec.bogus"`, `duplicate field "data.k"`. At most a hundred, each once.
    pub strict: Vec<String>,
}

/// The most bytes of JSON that a YAML body may become: its aliases repeat what they stand for. It is the limit of a body.
pub const MAX_EXPANDED_BYTES: usize = 3 * 1024 * 1024;

/// Why a body could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Not JSON or YAML at all; the text says what is wrong, as Go would.
    #[error("{0}")]
    Syntax(String),
    /// A value has another type than its field: `json: cannot unmarshal string into Go struct field ...`.
    #[error("{0}")]
    Type(String),
    /// YAML that is more than [`MAX_EXPANDED_BYTES`] of JSON.
    #[error("Request entity too large: limit is {MAX_EXPANDED_BYTES}")]
    TooLarge,
}
