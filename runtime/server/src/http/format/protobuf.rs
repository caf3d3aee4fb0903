//! Decodes Protobuf bodies of kinds with a description of their messages. Some Go clients send built-in kinds only so.
//!
//! `kubectl create namespace` sends a Namespace in this format, and typed clients DeleteOptions. A body is converted to the
//! JSON that the same client would send; all other code reads only JSON.

use std::collections::BTreeMap;

use apiloom_meta::codec;
use apiloom_meta::kind::protobuf::DELETE_OPTIONS;
use apiloom_meta::kind::{ProtobufField, ProtobufMessage, ProtobufPresence, ProtobufType};
use apiloom_meta::{ApiError, Duration, MicroTime, Time};
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
    Boolean(bool),
    Int32(i32),
    Int64(i64),
    Uint32(u32),
    Uint64(u64),
    Float(f32),
    Double(f64),
    Bytes(Vec<u8>),
    /// A message with a JSON form of its own.
    Special(ProtobufType, WireFields),
    Message(&'static ProtobufMessage, WireFields),
    List(&'static ProtobufType, Vec<WireValue>),
    Map(&'static ProtobufType, BTreeMap<String, WireValue>),
    /// A list or a map in a list or a map: a message with it as its only field.
    Items(Box<WireValue>),
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
        let value = self.value_at(place, field);
        let merged = value.merge(wire_type, body, depth);
        merged.map_err(|mut error| {
            error.push(message.name, field.name);
            error
        })
    }

    fn value_at(&mut self, place: usize, field: &ProtobufField) -> &mut WireValue {
        let found = self.0.iter().position(|(other, _)| *other == place);
        let index = found.unwrap_or_else(|| {
            self.0.push((place, WireValue::empty(field.value)));
            self.0.len() - 1
        });
        &mut self.0[index].1
    }

    fn into_json(self, message: &ProtobufMessage) -> Map<String, Value> {
        let mut json = Map::new();
        for (place, value) in self.0 {
            let field = &message.fields[place];
            let value = value.into_json();
            let is_present = match field.presence {
                ProtobufPresence::Always => true,
                ProtobufPresence::Sent => !value.is_null(),
                ProtobufPresence::NotEmpty => !is_empty(&value),
            };
            if is_present {
                json.insert(field.name.to_owned(), value);
            }
        }
        for field in message.fields {
            if field.presence == ProtobufPresence::Always && !json.contains_key(field.name) {
                let value = WireValue::empty(field.value).into_json();
                json.insert(field.name.to_owned(), value);
            }
        }
        json
    }
}

/// Whether a value is omitted from JSON because it is empty. Go sends empty strings, numbers and lists in Protobuf that it
/// omits from JSON.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
    }
}

impl WireValue {
    fn empty(value: ProtobufType) -> Self {
        match value {
            ProtobufType::Text => Self::Text(String::new()),
            ProtobufType::Boolean => Self::Boolean(false),
            ProtobufType::Int32 => Self::Int32(0),
            ProtobufType::Int64 => Self::Int64(0),
            ProtobufType::Uint32 => Self::Uint32(0),
            ProtobufType::Uint64 => Self::Uint64(0),
            ProtobufType::Float => Self::Float(0.0),
            ProtobufType::Double => Self::Double(0.0),
            ProtobufType::Bytes => Self::Bytes(Vec::new()),
            ProtobufType::Message(message) => Self::Message(message(), WireFields::default()),
            ProtobufType::List(item) => Self::List(item, Vec::new()),
            ProtobufType::Map(value) => Self::Map(value, BTreeMap::new()),
            ProtobufType::Time
            | ProtobufType::MicroTime
            | ProtobufType::Duration
            | ProtobufType::Quantity
            | ProtobufType::IntOrString
            | ProtobufType::FieldsV1
            | ProtobufType::RawExtension => Self::Special(value, WireFields::default()),
        }
    }

    /// An empty item of a list, or value of a map.
    fn empty_item(value: ProtobufType) -> Self {
        let empty = Self::empty(value);
        match value {
            ProtobufType::List(_) | ProtobufType::Map(_) => Self::Items(Box::new(empty)),
            _ => empty,
        }
    }

    fn merge(
        &mut self,
        wire_type: WireType,
        body: &mut &[u8],
        depth: u32,
    ) -> Result<(), DecodeError> {
        let context = DecodeContext::default();
        match self {
            Self::Text(text) => encoding::string::merge(wire_type, text, body, context),
            Self::Boolean(value) => encoding::bool::merge(wire_type, value, body, context),
            Self::Int32(number) => encoding::int32::merge(wire_type, number, body, context),
            Self::Int64(number) => encoding::int64::merge(wire_type, number, body, context),
            Self::Uint32(number) => encoding::uint32::merge(wire_type, number, body, context),
            Self::Uint64(number) => encoding::uint64::merge(wire_type, number, body, context),
            Self::Float(number) => encoding::float::merge(wire_type, number, body, context),
            Self::Double(number) => encoding::double::merge(wire_type, number, body, context),
            Self::Bytes(bytes) => encoding::bytes::merge(wire_type, bytes, body, context),
            Self::Message(message, fields) => {
                encoding::check_wire_type(WireType::LengthDelimited, wire_type)?;
                let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
                encoding::merge_loop(fields, body, context, |fields, body, _| {
                    fields.merge_next(message, body, depth)
                })
            }
            Self::Special(of, fields) => {
                encoding::check_wire_type(WireType::LengthDelimited, wire_type)?;
                let Some(message) = of.special() else {
                    return Ok(());
                };
                encoding::merge_loop(fields, body, context, |fields, body, _| {
                    fields.merge_next(message, body, depth)
                })
            }
            Self::Items(items) => {
                encoding::check_wire_type(WireType::LengthDelimited, wire_type)?;
                let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
                encoding::merge_loop(&mut **items, body, context, |items, body, context| {
                    let (number, wire_type) = encoding::decode_key(body)?;
                    match number {
                        1 => items.merge(wire_type, body, depth),
                        _ => encoding::skip_field(wire_type, number, body, context),
                    }
                })
            }
            Self::Map(of, map) => {
                encoding::check_wire_type(WireType::LengthDelimited, wire_type)?;
                let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
                let mut entry = (String::new(), Self::empty_item(**of));
                encoding::merge_loop(&mut entry, body, context, |(key, value), body, context| {
                    let (number, wire_type) = encoding::decode_key(body)?;
                    match number {
                        1 => encoding::string::merge(wire_type, key, body, context),
                        2 => value.merge(wire_type, body, depth),
                        _ => encoding::skip_field(wire_type, number, body, context),
                    }
                })?;
                map.insert(entry.0, entry.1);
                Ok(())
            }
            Self::List(of, items) => {
                let is_packed = wire_type == WireType::LengthDelimited;
                match packed(**of).filter(|_| is_packed) {
                    Some(item_type) => {
                        encoding::merge_loop(items, body, context, |items, body, _| {
                            let mut item = Self::empty(**of);
                            item.merge(item_type, body, depth)?;
                            items.push(item);
                            Ok(())
                        })
                    }
                    None => {
                        let mut item = Self::empty_item(**of);
                        item.merge(wire_type, body, depth)?;
                        items.push(item);
                        Ok(())
                    }
                }
            }
        }
    }

    /// The value as JSON; null if there is none.
    fn into_json(self) -> Value {
        match self {
            Self::Text(text) => text.into(),
            Self::Boolean(value) => value.into(),
            Self::Int32(number) => number.into(),
            Self::Int64(number) => number.into(),
            Self::Uint32(number) => number.into(),
            Self::Uint64(number) => number.into(),
            Self::Float(number) => number.into(),
            Self::Double(number) => number.into(),
            Self::Bytes(bytes) => STANDARD.encode(bytes).into(),
            Self::Special(of, fields) => special_json(of, fields),
            Self::Items(items) => items.into_json(),
            Self::Message(message, fields) => fields.into_json(message).into(),
            Self::List(_, items) => items.into_iter().map(Self::into_json).collect(),
            Self::Map(_, map) => {
                let entries = map.into_iter();
                entries
                    .map(|(key, value)| (key, value.into_json()))
                    .collect()
            }
        }
    }
}

/// The wire type of the items of a packed list; `None` for types that are not packed.
fn packed(of: ProtobufType) -> Option<WireType> {
    use ProtobufType::{Boolean, Double, Float, Int32, Int64, Uint32, Uint64};
    match of {
        Boolean | Int32 | Int64 | Uint32 | Uint64 => Some(WireType::Varint),
        Float => Some(WireType::ThirtyTwoBit),
        Double => Some(WireType::SixtyFourBit),
        _ => None,
    }
}

/// The JSON of a message that has one of its own.
fn special_json(of: ProtobufType, fields: WireFields) -> Value {
    let Some(message) = of.special() else {
        return Value::Null;
    };
    let mut fields = fields.into_json(message);
    let integer = |name| fields.get(name).and_then(Value::as_i64).unwrap_or_default();
    match of {
        // Go encodes the zero time as an empty message.
        ProtobufType::Time | ProtobufType::MicroTime if fields.is_empty() => Value::Null,
        ProtobufType::Time => Time::from_unix_seconds(integer("seconds"))
            .to_string()
            .into(),
        ProtobufType::MicroTime => {
            let micros = integer("seconds").saturating_mul(1_000_000);
            let micros = micros.saturating_add(integer("nanos") / 1000);
            MicroTime::from_unix_micros(micros).to_string().into()
        }
        ProtobufType::Duration => Duration::from_nanos(integer("duration")).to_string().into(),
        ProtobufType::IntOrString if integer("type") == 0 => integer("intVal").into(),
        ProtobufType::IntOrString => fields.remove("strVal").unwrap_or_else(|| "".into()),
        ProtobufType::Quantity => fields.remove("string").unwrap_or_else(|| "".into()),
        _ => {
            let raw = fields.remove("Raw").or_else(|| fields.remove("raw"));
            let raw = raw.as_ref().and_then(Value::as_str).unwrap_or_default();
            let json = STANDARD.decode(raw).unwrap_or_default();
            serde_json::from_slice(&json).unwrap_or_default()
        }
    }
}

#[expect(deprecated, reason = "prost has no other way to make an error")]
fn too_deep() -> DecodeError {
    DecodeError::new("recursion limit reached")
}

#[cfg(test)]
mod tests;
