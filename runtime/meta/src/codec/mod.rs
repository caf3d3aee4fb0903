//! JSON and YAML in and out: strict decoding against a schema, and encoding as Kubernetes prints.

mod decode;
mod decoded;
mod encode;
mod encoding;
mod limits;
mod peek;
mod syntax;
mod typed;
mod verbatim;
mod yaml;

use bytes::Bytes;
use serde_json::Value;

use crate::object::Object;
use crate::schema::Schema;
use crate::schema::node::Node;

pub use decoded::{DecodeError, Decoded, Format, MAX_EXPANDED_BYTES};
pub use encode::Indenter;
pub use peek::{Finder, value_end};
pub use verbatim::VersionPlace;
pub use yaml::{NotWritten, YamlWriter};

/// Decodes a body against a schema in one walk. Of several YAML documents the first one counts.
///
/// YAML is read as Kubernetes reads it (YAML 1.1 with some of 1.2: `yes` is true, `014` is 12, `12:30` is a string), but for
/// these: any case of a word counts (`yEs`), underscores stand between digits only, an explicit field wins over a merged
/// one wherever `<<` stands, integers of 64 bits keep all their digits, and directives and escaped surrogates are taken.
/// Documents nest 127 levels at most.
///
/// ```
/// use apiloom_meta::{codec::{Format, decode}, kind::Hooks, schema::Schema};
/// let schema = serde_json::json!({"type": "object", "properties": {"n": {"type": "integer"}}});
/// let schema = Schema::from_json(&schema, &Hooks::default())?;
/// let decoded = decode(b"{\"n\":1,\"n\":2,\"m\":3}", Format::Json, &schema)?;
/// assert_eq!(decoded.value, serde_json::json!({"n": 2}));
/// assert_eq!(decoded.strict, ["duplicate field \"n\"", "unknown field \"m\""]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`DecodeError`]: no document, or a value of the wrong type.
pub fn decode(body: &[u8], format: Format, schema: &Schema) -> Result<Decoded, DecodeError> {
    decode::decode(body, format, Some(schema.root()))
}

/// Decodes a body without a schema (apiVersion and kind are looked up so before the schema is known). Of duplicate keys
/// the last one wins. Unlike serde_json's own way to a [`Value`], it takes every key for a key.
///
/// # Errors
/// [`DecodeError::Syntax`], [`DecodeError::TooLarge`].
pub fn decode_value(body: &[u8], format: Format) -> Result<Value, DecodeError> {
    decode_freely(body, format).map(|decoded| decoded.value)
}

/// As [`decode_value`], with the duplicate fields.
pub(crate) fn decode_freely(body: &[u8], format: Format) -> Result<Decoded, DecodeError> {
    decode::decode(body, format, None)
}

/// As [`decode`], of JSON that is no object of a kind.
pub(crate) fn decode_under(body: &[u8], node: &Node) -> Result<Decoded, DecodeError> {
    decode::decode(body, Format::Json, Some(node))
}

/// Brings a document that is already in memory (a patched one) under a schema, as [`decode`] does with bytes.
///
/// # Errors
/// [`DecodeError::Type`].
pub fn decode_document(document: Value, schema: &Schema) -> Result<Decoded, DecodeError> {
    decode::document(document, schema.root())
}

/// Encodes an object as compact JSON: `kind`, `apiVersion`, `metadata` first (metadata in the order of ObjectMeta), the
/// rest in the schema's order; `<`, `>`, `&`, U+2028 and U+2029 escaped. No trailing newline.
pub fn encode_object(object: &Object, schema: &Schema) -> Bytes {
    encode::object(object, schema.root())
}

/// Looks whether a stored document without resourceVersion is what would come out if it were decoded, pruned, defaulted
/// and encoded again; says where the resourceVersion belongs in it then.
///
/// `None` if it is not, or if that cannot be told at a glance; decoding tells then. Neither the types of values nor the
/// rules of the schema are looked at: what is stored is served even if the schema would refuse it today.
pub fn verbatim(json: &[u8], schema: &Schema) -> Option<VersionPlace> {
    verbatim::verbatim(json, schema.root())
}

/// Whether decoding, pruning, defaulting and encoding give the same document, as far as that can be told at a glance; the
/// document may have a resourceVersion.
pub fn is_verbatim(json: &[u8], schema: &Schema) -> bool {
    verbatim::is_verbatim(json, schema.root())
}

/// Where the resourceVersion belongs in what [`encode_object`] made of an object without one; `None` if there is one, or
/// no metadata.
pub fn version_place(json: &[u8], schema: &Schema) -> Option<VersionPlace> {
    verbatim::version_place(json, schema.root())
}

/// Appends a typed document as [`encode_object`] would encode it, without some of its outermost fields; much faster than
/// by way of an [`Object`].
///
/// # Errors
/// For a value that has no such form, among them what a document could hold but not the encoder see here (numbers of 128
/// bits, raw JSON). Something may be appended then.
pub fn append_typed(
    value: &impl serde::Serialize,
    schema: &Schema,
    without: &[&str],
    out: &mut Vec<u8>,
) -> Result<(), serde_json::Error> {
    typed::append_without(value, schema.root(), without, out)
}

/// Encodes any value as compact JSON with the same escapes, keys in the value's own order.
pub fn encode_json(value: &impl serde::Serialize) -> Bytes {
    encode::json(value)
}

/// Appends what [`encode_json`] gives.
pub fn append_json(value: &impl serde::Serialize, out: &mut Vec<u8>) {
    encode::append(value, out);
}

/// Encodes JSON bytes as two-space-indented JSON. Bytes that are not JSON come out in some form, but whole.
pub fn indent_json(json: &[u8]) -> Bytes {
    encode::indent(json)
}

/// Encodes a value as YAML, keys sorted, with a newline at the end. Strings that a reader of YAML 1.1 or 1.2 would take
/// for something else are quoted. A value that nests deeper than a body may comes out as JSON, which is YAML too.
pub fn encode_yaml(value: &Value) -> Bytes {
    yaml::encode(value)
}

#[cfg(test)]
mod depth_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod typed_tests;
