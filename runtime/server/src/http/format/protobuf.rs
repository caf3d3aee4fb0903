//! Decodes Protobuf bodies of kinds with a description of their messages. Some Go clients send built-in kinds only so.
//!
//! `kubectl create namespace` sends a Namespace in this format, and typed clients DeleteOptions. A body is converted to the
//! JSON that the same client would send; all other code reads only JSON.

use std::collections::BTreeMap;

use apiloom_meta::codec;
use apiloom_meta::kind::protobuf::DELETE_OPTIONS;
use apiloom_meta::kind::{ProtobufField, ProtobufMessage, ProtobufPresence, ProtobufType};
use apiloom_meta::{ApiError, Time};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use prost::encoding::{self, DecodeContext, WireType};
use prost::{DecodeError, Message};
use serde_json::{Map, Value};

use super::write::{Format, Writer};
use crate::registry::Catalog;

/// Protobuf, for requests only.
pub(crate) struct Protobuf;

impl Format for Protobuf {
    fn media_type(&self) -> &'static str {
        "application/vnd.kubernetes.protobuf"
    }
    fn read(
        &self,
        body: Bytes,
        catalog: &Catalog,
    ) -> Result<Option<(Bytes, codec::Format)>, ApiError> {
        let json = to_json(&body, |api_version, kind| {
            catalog.protobuf(api_version, kind)
        })?;
        Ok(json.map(|json| (json, codec::Format::Json)))
    }
    fn writer(&self) -> Option<&'static dyn Writer> {
        None
    }
}

/// Prefix of every Protobuf body of the API.
const MAGIC: &[u8; 4] = b"k8s\0";
/// Maximum depth of nested messages; prost's limit.
const MAX_DEPTH: u32 = 100;

/// Converts a Protobuf body to JSON: DeleteOptions, or an object whose message `find_message` returns for its `apiVersion`
/// and kind. `None` for other kinds.
///
/// # Errors
/// BadRequest if the body cannot be decoded.
fn to_json(
    body: &[u8],
    find_message: impl FnOnce(&str, &str) -> Option<&'static ProtobufMessage>,
) -> Result<Option<Bytes>, ApiError> {
    let Some(envelope) = body.strip_prefix(MAGIC) else {
        let message = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
        return Err(ApiError::bad_request(message));
    };
    let unknown = Unknown::decode(envelope).map_err(malformed)?;
    let TypeMeta { api_version, kind } = unknown.type_meta.unwrap_or_default();
    let message = if kind == DELETE_OPTIONS.name {
        &DELETE_OPTIONS
    } else if let Some(message) = find_message(&api_version, &kind) {
        message
    } else {
        return Ok(None);
    };
    let mut fields = WireFields::default();
    let mut rest = &*unknown.raw;
    while !rest.is_empty() {
        fields
            .merge_next(message, &mut rest, MAX_DEPTH)
            .map_err(malformed)?;
    }
    let mut object = fields.into_json(message);
    object.insert("apiVersion".to_owned(), Value::from(api_version));
    object.insert("kind".to_owned(), Value::from(kind));
    Ok(Some(Value::Object(object).to_string().into()))
}

#[allow(clippy::needless_pass_by_value, reason = "an argument of map_err")]
fn malformed(error: DecodeError) -> ApiError {
    ApiError::bad_request(format!("the protobuf body cannot be decoded: {error}"))
}

#[derive(Clone, PartialEq, Message)]
struct Unknown {
    #[prost(message, optional, tag = "1")]
    type_meta: Option<TypeMeta>,
    #[prost(bytes = "bytes", tag = "2")]
    raw: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct TypeMeta {
    #[prost(string, tag = "1")]
    api_version: String,
    #[prost(string, tag = "2")]
    kind: String,
}

/// The fields of a message that were sent, with their indexes in its description. Absent fields take no memory, so that a
/// small body stays small.
#[derive(Default)]
struct WireFields(Vec<(usize, WireValue)>);

/// The value of a field. A field that is sent again is merged into a list, a map or a message, and replaces any other
/// value.
enum WireValue {
    Text(String),
    Integer(i64),
    Boolean(bool),
    Bytes(Vec<u8>),
    /// Seconds since 1970; zero if there is no time.
    Time(i64),
    /// A JSON document, as it was sent.
    Json(Vec<u8>),
    Map(BTreeMap<String, String>),
    Message(&'static ProtobufMessage, WireFields),
    List(Vec<WireValue>),
}

impl WireFields {
    /// Decodes the next field. Unknown fields are skipped.
    fn merge_next(
        &mut self,
        message: &'static ProtobufMessage,
        body: &mut &[u8],
        depth: u32,
    ) -> Result<(), DecodeError> {
        let (number, wire_type) = encoding::decode_key(body)?;
        let mut places = message.fields.iter();
        let Some(place) = places.position(|field| field.number == number) else {
            return encoding::skip_field(wire_type, number, body, DecodeContext::default());
        };
        let field = &message.fields[place];
        let merged = self
            .value_at(place, field)
            .merge(field, wire_type, body, depth);
        merged.map_err(|mut error| {
            error.push(message.name, field.name);
            error
        })
    }

    fn value_at(&mut self, place: usize, field: &ProtobufField) -> &mut WireValue {
        let found = self.0.iter().position(|(other, _)| *other == place);
        let index = found.unwrap_or_else(|| {
            self.0.push((place, WireValue::empty(field)));
            self.0.len() - 1
        });
        &mut self.0[index].1
    }

    fn into_json(self, message: &ProtobufMessage) -> Map<String, Value> {
        let mut json = Map::new();
        for (place, value) in self.0 {
            let field = &message.fields[place];
            let value = value.into_json();
            if field.presence == ProtobufPresence::Always || !is_empty(&value, field.presence) {
                json.insert(field.json.to_owned(), value);
            }
        }
        for field in message.fields {
            if field.presence == ProtobufPresence::Always && !json.contains_key(field.json) {
                let value = WireValue::empty(field).into_json();
                json.insert(field.json.to_owned(), value);
            }
        }
        json
    }
}

/// Whether a value is omitted from JSON because it is empty. Go sends empty strings, numbers and lists in Protobuf that it
/// omits from JSON.
fn is_empty(value: &Value, presence: ProtobufPresence) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(value) => presence == ProtobufPresence::NotEmpty && !value,
        Value::Number(number) => {
            presence == ProtobufPresence::NotEmpty && number.as_i64() == Some(0)
        }
    }
}

impl WireValue {
    fn empty(field: &ProtobufField) -> Self {
        if field.is_list {
            Self::List(Vec::new())
        } else {
            Self::empty_of(field.value)
        }
    }

    fn empty_of(value: ProtobufType) -> Self {
        match value {
            ProtobufType::Text => Self::Text(String::new()),
            ProtobufType::Integer => Self::Integer(0),
            ProtobufType::Boolean => Self::Boolean(false),
            ProtobufType::Bytes => Self::Bytes(Vec::new()),
            ProtobufType::Time => Self::Time(0),
            ProtobufType::Json => Self::Json(Vec::new()),
            ProtobufType::Map => Self::Map(BTreeMap::new()),
            ProtobufType::Message(message) => Self::Message(message, WireFields::default()),
        }
    }

    fn merge(
        &mut self,
        field: &ProtobufField,
        wire_type: WireType,
        body: &mut &[u8],
        depth: u32,
    ) -> Result<(), DecodeError> {
        let context = DecodeContext::default();
        match self {
            Self::Text(text) => encoding::string::merge(wire_type, text, body, context),
            Self::Integer(number) => encoding::int64::merge(wire_type, number, body, context),
            Self::Boolean(value) => encoding::bool::merge(wire_type, value, body, context),
            Self::Bytes(bytes) => encoding::bytes::merge(wire_type, bytes, body, context),
            Self::Time(seconds) => {
                let names = ("Timestamp", "seconds");
                merge_first_field(wire_type, seconds, body, names, encoding::int64::merge)
            }
            Self::Json(raw) => {
                let names = ("FieldsV1", "raw");
                merge_first_field(wire_type, raw, body, names, encoding::bytes::merge)
            }
            Self::Map(map) => {
                encoding::check_wire_type(WireType::LengthDelimited, wire_type)?;
                let text = encoding::string::merge;
                encoding::btree_map::merge(text, text, map, body, context)
            }
            Self::Message(message, fields) => {
                encoding::check_wire_type(WireType::LengthDelimited, wire_type)?;
                let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
                encoding::merge_loop(fields, body, context, |fields, body, _| {
                    fields.merge_next(message, body, depth)
                })
            }
            Self::List(items) => match field.value {
                // Numbers may be packed: several in one field.
                ProtobufType::Integer => {
                    let mut numbers = Vec::new();
                    encoding::int64::merge_repeated(wire_type, &mut numbers, body, context)?;
                    items.extend(numbers.into_iter().map(Self::Integer));
                    Ok(())
                }
                ProtobufType::Boolean => {
                    let mut values = Vec::new();
                    encoding::bool::merge_repeated(wire_type, &mut values, body, context)?;
                    items.extend(values.into_iter().map(Self::Boolean));
                    Ok(())
                }
                of => {
                    let mut item = Self::empty_of(of);
                    item.merge(field, wire_type, body, depth)?;
                    items.push(item);
                    Ok(())
                }
            },
        }
    }

    /// The value as JSON; null if there is none.
    fn into_json(self) -> Value {
        match self {
            Self::Text(text) => text.into(),
            Self::Integer(number) => number.into(),
            Self::Boolean(value) => value.into(),
            Self::Bytes(bytes) => STANDARD.encode(bytes).into(),
            // Go encodes the zero time as an empty message.
            Self::Time(0) => Value::Null,
            Self::Time(seconds) => Time::from_unix_seconds(seconds).to_string().into(),
            Self::Json(raw) => serde_json::from_slice(&raw).unwrap_or_default(),
            Self::Map(map) => map.into_iter().map(|(k, v)| (k, Value::from(v))).collect(),
            Self::Message(message, fields) => fields.into_json(message).into(),
            Self::List(items) => items.into_iter().map(Self::into_json).collect(),
        }
    }
}

/// Decodes a message with only one known field, of number 1, by `merge`. `names` are those of the message and of the field,
/// for errors.
fn merge_first_field<'a, T>(
    wire_type: WireType,
    value: &mut T,
    body: &mut &'a [u8],
    names: (&'static str, &'static str),
    merge: impl Fn(WireType, &mut T, &mut &'a [u8], DecodeContext) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    encoding::check_wire_type(WireType::LengthDelimited, wire_type)?;
    let context = DecodeContext::default();
    encoding::merge_loop(value, body, context, |value, body, context| {
        let (number, wire_type) = encoding::decode_key(body)?;
        if number != 1 {
            return encoding::skip_field(wire_type, number, body, context);
        }
        merge(wire_type, value, body, context).map_err(|mut error| {
            error.push(names.0, names.1);
            error
        })
    })
}

#[expect(deprecated, reason = "prost has no other way to make an error")]
fn too_deep() -> DecodeError {
    DecodeError::new("recursion limit reached")
}

#[cfg(test)]
mod tests;
