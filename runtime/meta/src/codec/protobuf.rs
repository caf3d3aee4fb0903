//! Protobuf as the Kubernetes API uses it, by the descriptions of messages in [`crate::kind::protobuf`].
//!
//! All other code reads and writes JSON: a body is converted to JSON, and JSON to a response or a stored value. Both
//! conversions go through their input once, and make no document in memory in between. A body is an envelope, with
//! `apiVersion` and `kind`, around the message of an object, which has neither.

mod body;
mod read;
mod wire;
mod write;

pub use self::body::{InvalidText, MalformedJson, PROTOBUF_PREFIX, ProtobufBody, ProtobufError};
use self::wire::LengthPlace;
use crate::kind::ProtobufMessage;
use crate::kind::protobuf::PARTIAL_OBJECT_METADATA_LIST;

impl ProtobufBody<'_> {
    /// Converts the body to JSON, with `kind` and `apiVersion`. Fields are in the order of the descriptions; unknown ones
    /// are dropped, as in kube-apiserver.
    ///
    /// # Errors
    /// [`ProtobufError::TooLarge`] for more than `max_bytes` bytes of JSON; [`ProtobufError::Malformed`].
    pub fn to_json(
        &self,
        message: &ProtobufMessage,
        invalid_text: InvalidText,
        max_bytes: usize,
    ) -> Result<Vec<u8>, ProtobufError> {
        read::json(self, message, invalid_text, max_bytes).map(|read| read.json)
    }

    /// The first field that the message does not have, as `number 7 of FlunderSpec`; a conversion to JSON drops it. Values
    /// that are the same as absent ones, such as empty texts, do not count.
    ///
    /// # Errors
    /// As [`ProtobufBody::to_json`].
    pub fn unknown_field(
        &self,
        message: &ProtobufMessage,
        max_bytes: usize,
    ) -> Result<Option<String>, ProtobufError> {
        read::json(self, message, InvalidText::Replace, max_bytes).map(|read| read.unknown)
    }
}

/// Appends a JSON object as a message, without the `kind` and `apiVersion` of its root. Fields are written in the order of
/// their numbers, maps sorted by key, so equal objects are equal bytes. Fields that the message does not have, or that have
/// values of another type, are left out.
///
/// Returns whether the conversion back to JSON gives an equal document: false if something was left out, or is spelled in
/// another way, and for values that Protobuf does not distinguish from absent ones, such as empty lists.
///
/// ```
/// use apiloom_meta::codec::{InvalidText, ProtobufBody, append_protobuf};
/// use apiloom_meta::kind::protobuf::PARTIAL_OBJECT_METADATA;
/// let mut message = Vec::new();
/// let json = br#"{"metadata":{"name":"a"}}"#;
/// assert_eq!(append_protobuf(json, &PARTIAL_OBJECT_METADATA, &mut message), Ok(true));
/// assert_eq!(message, b"\x0a\x03\x0a\x01a");
/// let body = ProtobufBody { message: &message, ..ProtobufBody::default() };
/// let json = body.to_json(&PARTIAL_OBJECT_METADATA, InvalidText::Refuse, 1024)?;
/// assert_eq!(json, br#"{"kind":"","apiVersion":"","metadata":{"name":"a"}}"#);
/// # Ok::<(), apiloom_meta::codec::ProtobufError>(())
/// ```
///
/// # Errors
/// For malformed JSON; a part of the message may have been appended.
pub fn append_protobuf(
    json: &[u8],
    message: &ProtobufMessage,
    out: &mut Vec<u8>,
) -> Result<bool, MalformedJson> {
    write::append(json, message, out)
}

/// As [`append_protobuf`], with the envelope: a body with the `kind` and `apiVersion` of the JSON.
///
/// # Errors
/// As [`append_protobuf`].
pub fn append_protobuf_body(
    json: &[u8],
    message: &ProtobufMessage,
    out: &mut Vec<u8>,
) -> Result<bool, MalformedJson> {
    let (api_version, kind) = write::type_of(json)?;
    begin_protobuf_body(&api_version, &kind, out);
    out.push(RAW_KEY);
    let length = LengthPlace::begin(out);
    let is_exact = append_protobuf(json, message, out)?;
    length.end(out);
    end_protobuf_body(out);
    Ok(is_exact)
}

/// The key of the message in the envelope.
const RAW_KEY: u8 = 2 << 3 | wire::BYTES;

/// Appends the beginning of a body: everything before the field with the message.
fn begin_protobuf_body(api_version: &str, kind: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(PROTOBUF_PREFIX);
    out.push(1 << 3 | wire::BYTES);
    let length = LengthPlace::begin(out);
    wire::append_bytes(1, api_version.as_bytes(), out);
    wire::append_bytes(2, kind.as_bytes(), out);
    length.end(out);
}

/// Appends the end of a body: the content encoding and the content type, which are empty.
pub fn end_protobuf_body(out: &mut Vec<u8>) {
    wire::append_bytes(3, b"", out);
    wire::append_bytes(4, b"", out);
}

/// Appends the part of a list before its items: the envelope and the metadata. The items follow, each by
/// [`append_protobuf_item`], then [`end_protobuf_body`].
///
/// `json` is that of a list without items, of which `kind`, `apiVersion` and `metadata` are used. `items_bytes` is the sum of the
/// [`protobuf_item_bytes`] of all items.
///
/// # Errors
/// As [`append_protobuf`].
pub fn begin_protobuf_list(
    json: &[u8],
    items_bytes: u64,
    out: &mut Vec<u8>,
) -> Result<(), MalformedJson> {
    let (api_version, kind) = write::type_of(json)?;
    begin_protobuf_body(&api_version, &kind, out);
    let mut before = Vec::new();
    append_protobuf(json, &PARTIAL_OBJECT_METADATA_LIST, &mut before)?;
    out.push(RAW_KEY);
    wire::append_varint(before.len() as u64 + items_bytes, out);
    out.extend_from_slice(&before);
    Ok(())
}

/// The key of the items in the message of a list.
const ITEMS_KEY: u8 = 2 << 3 | wire::BYTES;

/// Appends an item of a list, whose message `append` appends.
pub fn append_protobuf_item(out: &mut Vec<u8>, append: impl FnOnce(&mut Vec<u8>)) {
    out.push(ITEMS_KEY);
    let length = LengthPlace::begin(out);
    append(out);
    length.end(out);
}

/// Size in a list of an item whose message has this length.
pub fn protobuf_item_bytes(bytes: u64) -> u64 {
    1 + wire::varint_bytes(bytes) as u64 + bytes
}

/// Appends a watch event, without the prefix: its type, and as its object the body that `append` appends.
///
/// # Errors
/// Those of `append`; the event is incomplete then.
pub fn append_protobuf_event<E>(
    event_type: &str,
    out: &mut Vec<u8>,
    append: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    wire::append_bytes(1, event_type.as_bytes(), out);
    out.push(2 << 3 | wire::BYTES);
    let object = LengthPlace::begin(out);
    out.push(1 << 3 | wire::BYTES);
    let raw = LengthPlace::begin(out);
    append(out)?;
    raw.end(out);
    object.end(out);
    Ok(())
}

#[cfg(test)]
mod tests;
