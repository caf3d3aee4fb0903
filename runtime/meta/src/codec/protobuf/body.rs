//! The envelope of a Protobuf body, and the errors of both conversions.

use std::borrow::Cow;

use super::wire::Wire;

/// The prefix of every Protobuf body, in requests, responses and stores.
pub const PROTOBUF_PREFIX: &[u8; 4] = b"k8s\0";

/// Error of a Protobuf body that cannot be converted to JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// The body does not begin with [`PROTOBUF_PREFIX`]; with the text of kube-apiserver.
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    NoPrefix,
    /// The body is malformed: the messages and the field that contain the fault, and the fault.
    #[error("the protobuf body cannot be decoded: {0}")]
    Malformed(String),
    /// The JSON, or the memory for a body whose fields are out of order, would exceed this number of bytes.
    #[error("Request entity too large: limit is {0}")]
    TooLarge(usize),
}

/// What becomes of text that is not UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidText {
    /// It is an error.
    Refuse,
    /// It gets replacement characters, as in the JSON of kube-apiserver, which stores such text.
    Replace,
}

/// A Protobuf body: the type of its object, and the message of the object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProtobufBody<'a> {
    /// The `apiVersion`; may be empty.
    pub api_version: Cow<'a, str>,
    /// The `kind`; may be empty.
    pub kind: Cow<'a, str>,
    /// The message.
    pub message: &'a [u8],
}

impl<'a> ProtobufBody<'a> {
    /// Whether bytes are a Protobuf body, and not JSON or YAML.
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(PROTOBUF_PREFIX)
    }

    /// Reads the envelope of a body.
    ///
    /// # Errors
    /// [`ProtobufError::NoPrefix`], [`ProtobufError::Malformed`].
    pub fn parse(body: &'a [u8]) -> Result<Self, ProtobufError> {
        let envelope = body.strip_prefix(PROTOBUF_PREFIX);
        let mut envelope = Wire(envelope.ok_or(ProtobufError::NoPrefix)?);
        let mut parsed = Self::default();
        let within = |error: String| ProtobufError::Malformed(format!("Unknown: {error}"));
        while let Some((number, value)) = envelope.next_field().map_err(within)? {
            match number {
                1 => parsed
                    .read_type(value.bytes().map_err(within)?)
                    .map_err(within)?,
                2 => parsed.message = value.bytes().map_err(within)?,
                _ => {}
            }
        }
        Ok(parsed)
    }

    fn read_type(&mut self, type_meta: &'a [u8]) -> Result<(), String> {
        let mut type_meta = Wire(type_meta);
        while let Some((number, value)) = type_meta.next_field()? {
            let of = match number {
                1 => &mut self.api_version,
                2 => &mut self.kind,
                _ => continue,
            };
            *of = String::from_utf8_lossy(value.bytes()?);
        }
        Ok(())
    }
}

/// JSON that is not well-formed, so that it cannot be converted to Protobuf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not well-formed JSON")]
pub struct MalformedJson;
