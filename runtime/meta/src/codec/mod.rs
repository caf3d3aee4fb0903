//! JSON and YAML: strict decoding against a schema, and encoding as Kubernetes does.

mod canonical;
mod compact;
mod decode;
mod decoded;
mod encode;
mod encoding;
mod json_text;
mod keys;
pub(crate) mod limits;
mod peek;
mod protobuf;
mod syntax;
mod typed;
mod value_bytes;
mod verbatim;
mod yaml;
#[cfg(feature = "yaml")]
mod yaml_parser;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::object::Object;
use crate::schema::Schema;
#[cfg(feature = "patch")]
use crate::schema::node::Node;

pub use decoded::{DecodeError, DecodedDocument, Format, MAX_EXPANDED_BYTES};
pub use encode::Indenter;
pub use peek::{Finder, value_end};
pub(crate) use peek::{member, string_end};
pub use protobuf::{
    InvalidText, MalformedJson, PROTOBUF_PREFIX, ProtobufBody, ProtobufError, append_protobuf,
    append_protobuf_body, append_protobuf_event, append_protobuf_item, begin_protobuf_list,
    end_protobuf_body, protobuf_item_bytes,
};
pub use verbatim::VersionPlace;
pub use yaml::{YamlError, YamlWriter};

/// The size up to which a body may grow when it is decoded, for estimates of the work before it is done: a few hundred bytes
/// of YAML with anchors and aliases may be a document of [`MAX_EXPANDED_BYTES`]. Any other body is its own size.
///
/// ```
/// use apiloom_meta::codec::{Format, MAX_EXPANDED_BYTES, expanded_bytes};
///
/// assert_eq!(expanded_bytes(b"a: &a [x, x]\nb: [*a, *a]", Format::Yaml), MAX_EXPANDED_BYTES);
/// assert_eq!(expanded_bytes(b"a: [x, x]", Format::Yaml), 9);
/// assert_eq!(expanded_bytes(br#"{"a": "&a *a"}"#, Format::Json), 14);
/// ```
pub fn expanded_bytes(body: &[u8], format: Format) -> usize {
    decode::expanded_bytes(body, format)
}

/// Decodes a body against a schema in one walk. Of several YAML documents only the first is decoded.
///
/// YAML has the syntax of Kubernetes' parser (YAML 1.1 with parts of 1.2: `yes` is true, `014` is 12, `12:30` is a
/// string), with these differences: words are recognized in any case (`yEs`), underscores are allowed only between
/// digits, an explicit field takes precedence over a merged one wherever `<<` is, integers of 64 bits keep all digits,
/// and directives and escaped surrogates are accepted. The maximum nesting is 127 levels.
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
/// [`DecodeError`] for a malformed body, or a value of the wrong type.
pub fn decode(
    body: &[u8],
    format: Format,
    schema: &Schema,
) -> Result<DecodedDocument, DecodeError> {
    decode_in(body, format, schema, "")
}

/// As [`decode`], for a kind of this version: errors name it as the package of its types, as Go does.
///
/// # Errors
/// As [`decode`].
pub fn decode_in(
    body: &[u8],
    format: Format,
    schema: &Schema,
    version: &str,
) -> Result<DecodedDocument, DecodeError> {
    decode::decode(body, format, Some(schema.root()), version)
}

/// Decodes the JSON of a stored object as a type, without a document in between, which costs a third. `None` when that could
/// give another value than by way of a document, or the JSON does not have the type's shape.
pub(crate) fn decode_typed<T: DeserializeOwned>(json: &[u8], schema: &Schema) -> Option<T> {
    if schema.has_singles() || decode::has_wrapped(json) {
        return None;
    }
    let json = std::str::from_utf8(json).ok()?;
    compact::decode(json).or_else(|| serde_json::from_str(json).ok())
}

/// Appends bytes of a typed value: values with equal bytes have equal JSON. They cost a fraction of the JSON, and have no
/// other use than to be compared.
///
/// # Errors
/// Those of the serialization.
pub(crate) fn append_value_bytes<T: Serialize>(
    value: &T,
    out: &mut Vec<u8>,
) -> Result<(), serde_json::Error> {
    value_bytes::append(value, out)
}

/// Decodes a body without a schema, for instance to read apiVersion and kind. The last of duplicate keys is used. In
/// contrast to serde_json's [`Value`], no key has a special meaning.
///
/// # Errors
/// [`DecodeError::Syntax`], [`DecodeError::TooLarge`].
pub fn decode_value(body: &[u8], format: Format) -> Result<Value, DecodeError> {
    decode_freely(body, format).map(|decoded| decoded.value)
}

/// As [`decode_value`], with the duplicate fields.
///
/// # Errors
/// As [`decode_value`].
pub fn decode_freely(body: &[u8], format: Format) -> Result<DecodedDocument, DecodeError> {
    decode::decode(body, format, None, "")
}

/// Decodes the JSON of a stored object without a schema, as [`decode_value`] does. As in all documents of objects, the
/// values of `fieldsV1` are strings with their JSON; one that is no object becomes null.
///
/// # Errors
/// As [`decode_value`].
pub fn decode_stored(json: &[u8]) -> Result<Value, DecodeError> {
    decode::stored(json).map(|decoded| decoded.value)
}

/// Replaces `metadata.managedFields` of an object by a string with their JSON, as [`decode_encoded`] reads them.
pub fn pack_managed_fields(object: &mut Object, schema: &Schema) {
    encode::managed_fields(object, schema.root());
}

/// Decodes the result of [`encode_object`], whose metadata has this start and end, without a schema. In contrast to
/// [`decode_stored`], `metadata.managedFields` is a string with its JSON.
///
/// # Errors
/// As [`decode_value`].
pub fn decode_encoded(json: &[u8], metadata: (usize, usize)) -> Result<Value, DecodeError> {
    decode::encoded(json, metadata)
}

/// Decodes the document of a patch, by a node if it has one; in contrast to [`decode`], floats stay floats: 1.0 is not 1.
#[cfg(feature = "patch")]
pub(crate) fn decode_patch(
    body: &[u8],
    node: Option<&Node>,
) -> Result<DecodedDocument, DecodeError> {
    decode::patch(body, node)
}

/// As [`decode`], for a document in memory.
///
/// # Errors
/// [`DecodeError::Type`].
pub fn decode_document(document: Value, schema: &Schema) -> Result<DecodedDocument, DecodeError> {
    decode_document_in(document, schema, "")
}

/// As [`decode_in`], for a document in memory, such as a patched one.
///
/// # Errors
/// [`DecodeError::Type`].
pub fn decode_document_in(
    document: Value,
    schema: &Schema,
    version: &str,
) -> Result<DecodedDocument, DecodeError> {
    decode::document(document, schema.root(), version)
}

/// Encodes an object as compact JSON: first `kind`, `apiVersion` and `metadata` (metadata in the order of ObjectMeta),
/// then the other fields in the schema's order; `<`, `>`, `&`, U+2028 and U+2029 are escaped. Without trailing
/// newline.
pub fn encode_object(object: &Object, schema: &Schema) -> Bytes {
    encode::object(object, schema.root())
}

/// Checks whether a stored document without resourceVersion would not change if it were decoded, pruned, defaulted and
/// encoded again; returns the place of the resourceVersion in it.
///
/// `None` if it would change, or if that cannot be decided without decoding. Values are not validated: stored objects
/// are served even if the schema would refuse them today.
pub fn verbatim(json: &[u8], schema: &Schema) -> Option<VersionPlace> {
    verbatim::verbatim(json, schema.root())
}

/// As [`verbatim`], for a document that may have a resourceVersion; false if it would change, or if that cannot be
/// decided without decoding.
pub fn is_verbatim(json: &[u8], schema: &Schema) -> bool {
    verbatim::is_verbatim(json, schema.root())
}

/// The place of the resourceVersion in the result of [`encode_object`] for an object without one; `None` if it has
/// one, or no metadata.
///
/// `entries` is the text of managedFields that the object has, whose end is not searched then; it may be empty.
pub fn version_place(json: &[u8], schema: &Schema, entries: &str) -> Option<VersionPlace> {
    verbatim::version_place(json, schema.root(), entries)
}

/// Appends a typed value as [`encode_object`] would encode it, without some of its outermost fields; much faster than
/// with an [`Object`] in between.
///
/// # Errors
/// For a value that cannot be encoded, such as numbers of 128 bits and raw JSON, which only a decoded document
/// supports. Part of the output may have been appended.
pub fn append_typed(
    value: &impl serde::Serialize,
    schema: &Schema,
    without: &[&str],
    out: &mut Vec<u8>,
) -> Result<(), serde_json::Error> {
    typed::append_without(value, schema.root(), without, out)
}

/// Encodes any value as compact JSON with the same escapes, with keys in the value's own order.
pub fn encode_json(value: &impl serde::Serialize) -> Bytes {
    encode::json(value)
}

/// As [`encode_json`], appended to a buffer.
pub fn append_json(value: &impl serde::Serialize, out: &mut Vec<u8>) {
    encode::append(value, out);
}

/// As [`append_json`], for a text: without a serializer.
pub fn append_text(text: &str, out: &mut Vec<u8>) {
    encode::append_string(text, out);
}

/// Indents JSON with two spaces. Malformed JSON gives some output with all its bytes.
pub fn indent_json(json: &[u8]) -> Bytes {
    encode::indent(json)
}

/// Encodes a value as YAML, with sorted keys and a trailing newline. Strings that a parser of YAML 1.1 or 1.2 would
/// read as another type are quoted. A value that exceeds the maximum nesting is encoded as JSON, which is valid YAML.
pub fn encode_yaml(value: &Value) -> Bytes {
    yaml::encode(value)
}

#[cfg(test)]
mod depth_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod typed_tests;
