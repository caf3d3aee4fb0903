//! The formats of stored values: JSON, or Protobuf in the envelope of kube-apiserver.
//!
//! A value is read by its own prefix, not by the setting, so a store may have values of both formats. Protobuf is
//! converted to JSON when it is read: all other code knows stored objects as JSON.

use std::borrow::Cow;
use std::str::FromStr;

use apiloom_meta::codec::{Decoder, InvalidText, ProtobufBody, append_protobuf_body};
use apiloom_meta::kind::ProtobufMessage;
use apiloom_meta::schema::Schema;
use bytes::Bytes;

/// Format in which objects are stored (`--storage-media-type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StorageMediaType {
    /// `application/json`, the default.
    #[default]
    Json,
    /// `application/vnd.kubernetes.protobuf`, for kinds whose fields have numbers. Other kinds are stored as JSON, and so
    /// are objects with values that Protobuf cannot express, such as empty lists.
    Protobuf,
}

impl StorageMediaType {
    /// All formats.
    const ALL: [Self; 2] = [Self::Json, Self::Protobuf];

    /// The media type.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }
}

impl FromStr for StorageMediaType {
    type Err = String;

    /// # Errors
    /// For another media type; `application/yaml` too, which kube-apiserver stores.
    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|one| one.as_str() == text);
        known.ok_or_else(|| {
            let allowed = Self::ALL.map(Self::as_str).join(", ");
            format!("--storage-media-type {text:?} invalid, allowed values: {allowed}")
        })
    }
}

/// Size of JSON that every stored Protobuf value may become, in bytes.
const MIN_JSON_BYTES: usize = 64 * 1024 * 1024;

/// Maximum size of the JSON of a larger stored value, as a multiple of it.
const MAX_EXPANSION: usize = 16;

/// Maximum size of the JSON of a stored Protobuf value with this length.
fn max_json_bytes(len: usize) -> usize {
    len.saturating_mul(MAX_EXPANSION).max(MIN_JSON_BYTES)
}

/// The JSON of an object as the value to store: Protobuf, if the object is read from it unchanged, else the JSON itself.
/// `is_read_back` decides that where the JSON of the Protobuf differs, such as by a null that a read drops.
pub(super) fn encode(
    json: &Bytes,
    message: Option<&ProtobufMessage>,
    is_read_back: impl FnOnce(&[u8]) -> bool,
) -> Bytes {
    let Some(message) = message else {
        return json.clone();
    };
    // The message is usually shorter than the JSON.
    let mut stored = Vec::with_capacity(json.len());
    let Ok(is_exact) = append_protobuf_body(json, message, &mut stored) else {
        return json.clone();
    };
    if json.len() <= max_json_bytes(stored.len()) && (is_exact || is_read_back(&stored)) {
        stored.into()
    } else {
        json.clone()
    }
}

/// The JSON of a stored value. `message` finds the message of an `apiVersion` and kind of a value in Protobuf; fields that
/// it does not have are dropped, as kube-apiserver does.
///
/// # Errors
/// For malformed Protobuf, and for a kind without a message.
pub(super) fn json<'s>(
    stored: &'s [u8],
    message: impl FnOnce(&str, &str) -> Option<&'static ProtobufMessage>,
) -> Result<Cow<'s, [u8]>, String> {
    if !ProtobufBody::is_one(stored) {
        return Ok(Cow::Borrowed(stored));
    }
    let body = ProtobufBody::parse(stored).map_err(|error| error.to_string())?;
    let message = message_of(&body, message)?;
    body.to_json(message, InvalidText::Replace, max_json_bytes(stored.len()))
        .map(Cow::Owned)
        .map_err(|error| error.to_string())
}

/// The message of a body.
fn message_of(
    body: &ProtobufBody<'_>,
    message: impl FnOnce(&str, &str) -> Option<&'static ProtobufMessage>,
) -> Result<&'static ProtobufMessage, String> {
    message(&body.api_version, &body.kind).ok_or_else(|| {
        format!(
            "it is a {:?} of {:?} in Protobuf, which this server cannot read: it does not know the kind or the version, or \
             not the numbers of its fields; run the release that stored it with --storage-media-type=application/json, \
             and migrate the stored objects (apiloom store migrate)",
            body.kind, body.api_version
        )
    })
}

/// A field of a stored value that reads drop, because the kind does not have it, in words; `None` if there is none.
///
/// # Errors
/// If the value cannot be decoded.
pub(super) fn unknown_field(
    stored: &[u8],
    schema: &Schema,
    message: impl FnOnce(&str, &str) -> Option<&'static ProtobufMessage>,
) -> Result<Option<String>, String> {
    if !ProtobufBody::is_one(stored) {
        let decoded = Decoder::of(schema)
            .decode(stored)
            .map_err(|error| error.to_string())?;
        return Ok(decoded.strict.into_iter().next());
    }
    let body = ProtobufBody::parse(stored).map_err(|error| error.to_string())?;
    let message = message_of(&body, message)?;
    let unknown = body.unknown_field(message, max_json_bytes(stored.len()));
    let unknown = unknown.map_err(|error| error.to_string())?;
    Ok(unknown.map(|field| format!("unknown field {field}")))
}

#[cfg(test)]
mod tests {
    use apiloom_meta::kind::protobuf::PARTIAL_OBJECT_METADATA;

    use super::*;

    const NAMED: &[u8] =
        br#"{"kind":"Flunder","apiVersion":"wardle.example.com/v1","metadata":{"name":"a"}}"#;

    fn read(stored: &[u8]) -> Result<Cow<'_, [u8]>, String> {
        json(stored, |api_version, kind| {
            ((api_version, kind) == ("wardle.example.com/v1", "Flunder"))
                .then_some(&PARTIAL_OBJECT_METADATA)
        })
    }

    #[test]
    fn an_object_is_stored_as_protobuf_and_read_as_the_same_json() {
        let stored = encode(
            &Bytes::from_static(NAMED),
            Some(&PARTIAL_OBJECT_METADATA),
            |_| false,
        );
        assert!(stored.starts_with(b"k8s\0"), "{stored:?}");
        assert_eq!(read(&stored).as_deref(), Ok(NAMED));
    }

    #[test]
    fn json_is_stored_for_kinds_without_a_message_and_for_what_protobuf_cannot_express() {
        let named = Bytes::from_static(NAMED);
        assert_eq!(encode(&named, None, |_| true), named);
        let texts = [
            r#"{"kind":"Flunder","apiVersion":"wardle.example.com/v1","metadata":{"labels":{}}}"#,
            r#"{"kind":"Flunder","apiVersion":"wardle.example.com/v1","metadata":{},"spec":1}"#,
        ];
        for text in texts {
            let inexact = Bytes::from_static(text.as_bytes());
            let stored = encode(&inexact, Some(&PARTIAL_OBJECT_METADATA), |_| false);
            assert_eq!(stored, inexact);
            let stored = encode(&inexact, Some(&PARTIAL_OBJECT_METADATA), |_| true);
            assert!(stored.starts_with(b"k8s\0"), "{stored:?}");
            let stored = encode(&inexact, None, |_| true);
            assert_eq!(read(&stored).as_deref(), Ok(text.as_bytes()));
        }
    }

    #[test]
    fn protobuf_of_an_unknown_kind_and_malformed_protobuf_are_errors() {
        let other = br#"{"kind":"Fischer","apiVersion":"v1","metadata":{"name":"a"}}"#;
        let stored = encode(
            &Bytes::from_static(other),
            Some(&PARTIAL_OBJECT_METADATA),
            |_| false,
        );
        let error = read(&stored).unwrap_err();
        let text = r#"it is a "Fischer" of "v1" in Protobuf, which this server cannot read: "#;
        assert!(error.starts_with(text), "{error}");
        let error = read(b"k8s\0\x0a\x7f").unwrap_err();
        assert_eq!(
            error,
            "the protobuf body cannot be decoded: Unknown: the message ends within a field"
        );
    }

    #[test]
    fn fields_that_reads_drop_are_found() {
        let schema =
            serde_json::json!({"type": "object", "properties": {"metadata": {"type": "object"}}});
        let schema = Schema::from_json(&schema, &apiloom_meta::kind::Hooks::default()).unwrap();
        let unknown = |stored: &[u8]| {
            unknown_field(stored, &schema, |_, _| Some(&PARTIAL_OBJECT_METADATA)).unwrap()
        };
        let found = |field: &str| Some(format!("unknown field {field}"));
        assert_eq!(unknown(br#"{"metadata":{}}"#), None);
        assert_eq!(
            unknown(br#"{"metadata":{},"spec":{"a":1}}"#),
            found("\"spec\"")
        );
        let prefix = b"k8s\0\x0a\x07\x0a\x02v1\x12\x01A";
        assert_eq!(
            unknown(&[&prefix[..], b"\x12\x05\x0a\x03\x0a\x01a"].concat()),
            None
        );
        assert_eq!(
            unknown(&[&prefix[..], b"\x12\x08\x0a\x03\x0a\x01a\x12\x01b"].concat()),
            found("number 2 of PartialObjectMetadata")
        );
    }

    #[test]
    fn other_media_types_are_refused() {
        for one in StorageMediaType::ALL {
            assert_eq!(one.as_str().parse(), Ok(one));
        }
        assert_eq!(
            "application/yaml".parse::<StorageMediaType>(),
            Err("--storage-media-type \"application/yaml\" invalid, allowed values: application/json, application/vnd.kubernetes.protobuf".to_owned())
        );
    }
}
