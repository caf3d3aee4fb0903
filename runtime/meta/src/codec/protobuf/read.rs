//! Converts messages to JSON, straight from one buffer to the other.
//!
//! Fields that come in order are written as they are read. For a message with fields out of order, an index of them is
//! made first. The memory for that, and the length of the JSON, are limited.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde::de::IgnoredAny;

use super::body::{InvalidText, ProtobufBody, ProtobufError};
use super::wire::{Wire, WireValue};
use crate::codec::encode::Encoder;
use crate::codec::limits::MAX_DEPTH;
use crate::kind::{ProtobufField, ProtobufMessage, ProtobufPresence, ProtobufType};
use crate::protobuf::Shape;
use crate::types::{Duration, MicroTime, Time};

/// See [`ProtobufBody::to_json`].
pub(super) fn json(
    body: &ProtobufBody<'_>,
    message: &ProtobufMessage,
    invalid_text: InvalidText,
    max_bytes: usize,
) -> Result<Read, ProtobufError> {
    let mut out = Vec::with_capacity(body.message.len().saturating_mul(2).min(max_bytes) + 64);
    out.extend_from_slice(b"{\"kind\":");
    Encoder::append_text(&body.kind, &mut out);
    out.extend_from_slice(b",\"apiVersion\":");
    Encoder::append_text(&body.api_version, &mut out);
    let mut reader = Reader {
        out,
        invalid_text,
        max_bytes,
        scratch_bytes: 0,
        unknown: None,
    };
    reader
        .fields(message, body.message, MAX_DEPTH)
        .map_err(|fault| match fault {
            Fault::TooLarge => ProtobufError::TooLarge(max_bytes),
            Fault::Malformed(why) => ProtobufError::Malformed(why),
        })?;
    reader.out.push(b'}');
    Ok(Read {
        json: reader.out,
        unknown: reader.unknown,
    })
}

/// A message that was read.
pub(super) struct Read {
    pub(super) json: Vec<u8>,
    /// The first field with a value that its message does not have.
    pub(super) unknown: Option<String>,
}

/// Why a message cannot be converted.
enum Fault {
    TooLarge,
    Malformed(String),
}

impl From<String> for Fault {
    fn from(why: String) -> Self {
        Self::Malformed(why)
    }
}

impl Fault {
    /// The fault with the field that contains it.
    fn within(self, message: &ProtobufMessage, field: &ProtobufField) -> Self {
        match self {
            Self::Malformed(why) => {
                Self::Malformed(format!("{}.{}: {why}", message.name, field.name))
            }
            Self::TooLarge => Self::TooLarge,
        }
    }
}

struct Reader {
    out: Vec<u8>,
    invalid_text: InvalidText,
    max_bytes: usize,
    /// Memory that was used for fields out of order, in bytes.
    scratch_bytes: usize,
    /// The first field with a value that its message does not have.
    unknown: Option<String>,
}

/// The known fields of a message, in the order of its description.
struct Cursor<'m, 'a> {
    message: &'m ProtobufMessage,
    body: &'a [u8],
    /// What follows the next field, if the fields are in order.
    rest: Wire<'a>,
    /// If they are not in order: position in the description and offset in the message of the following ones.
    sorted: Option<std::vec::IntoIter<u64>>,
    /// Position in the description and value of the next field.
    next: Option<(usize, WireValue<'a>)>,
}

/// Number of bits of an offset in a message.
const OFFSET_BITS: u32 = 40;

impl<'a> Cursor<'_, 'a> {
    /// Finds the next known field.
    fn advance(&mut self) -> Result<(), String> {
        let hint = self.next.map_or(0, |(place, _)| place);
        self.next = None;
        if let Some(sorted) = &mut self.sorted {
            if let Some(index) = sorted.next() {
                let offset = index & ((1 << OFFSET_BITS) - 1);
                let mut at = Wire(self.body.get(offset as usize..).unwrap_or_default());
                let field = at.next_field()?;
                self.next = field.map(|(_, value)| ((index >> OFFSET_BITS) as usize, value));
            }
            return Ok(());
        }
        while let Some((number, value)) = self.rest.next_field()? {
            if let Some(place) = place_of(self.message, number, hint) {
                self.next = Some((place, value));
                break;
            }
        }
        Ok(())
    }

    /// The next value of the field at a position; `None` if another field follows.
    fn take(&mut self, place: usize) -> Result<Option<WireValue<'a>>, String> {
        match self.next {
            Some((next, value)) if next == place => {
                self.advance()?;
                Ok(Some(value))
            }
            _ => Ok(None),
        }
    }
}

/// Position of the field with a number in the description; `hint` is that of the field before it.
fn place_of(message: &ProtobufMessage, number: u32, hint: usize) -> Option<usize> {
    let has_number = |field: &ProtobufField| field.number == number;
    let near = [hint, hint + 1];
    let near = near.into_iter();
    let mut near = near.filter(|place| message.fields.get(*place).is_some_and(has_number));
    near.next()
        .or_else(|| message.fields.iter().position(has_number))
}

/// Whether a field that is sent again is merged, and does not replace the value before.
fn is_merged(value: ProtobufType) -> bool {
    match value {
        ProtobufType::Text
        | ProtobufType::Boolean
        | ProtobufType::Int32
        | ProtobufType::Int64
        | ProtobufType::Uint32
        | ProtobufType::Uint64
        | ProtobufType::Float
        | ProtobufType::Double
        | ProtobufType::Bytes => false,
        ProtobufType::Time
        | ProtobufType::MicroTime
        | ProtobufType::Duration
        | ProtobufType::Quantity
        | ProtobufType::IntOrString
        | ProtobufType::FieldsV1
        | ProtobufType::RawExtension
        | ProtobufType::Json
        | ProtobufType::Message(_)
        | ProtobufType::ByShape(_)
        | ProtobufType::List(_)
        | ProtobufType::Map(_) => true,
    }
}

/// Checks the wire type of a field, also of one that a later field replaces: decoders of Kubernetes refuse the message.
/// Numbers of a list may be packed.
fn check_sent(of: ProtobufType, sent: WireValue<'_>) -> Result<(), String> {
    match of {
        ProtobufType::Boolean
        | ProtobufType::Int32
        | ProtobufType::Int64
        | ProtobufType::Uint32
        | ProtobufType::Uint64 => sent.varint().map(|_| ()),
        ProtobufType::Float => sent.fixed32().map(|_| ()),
        ProtobufType::Double => sent.fixed64().map(|_| ()),
        ProtobufType::List(
            of @ (ProtobufType::Boolean
            | ProtobufType::Int32
            | ProtobufType::Int64
            | ProtobufType::Uint32
            | ProtobufType::Uint64
            | ProtobufType::Float
            | ProtobufType::Double),
        ) => match sent {
            WireValue::Bytes(_) => Ok(()),
            single => check_sent(*of, single),
        },
        ProtobufType::Text
        | ProtobufType::Bytes
        | ProtobufType::Time
        | ProtobufType::MicroTime
        | ProtobufType::Duration
        | ProtobufType::Quantity
        | ProtobufType::IntOrString
        | ProtobufType::FieldsV1
        | ProtobufType::RawExtension
        | ProtobufType::Json
        | ProtobufType::Message(_)
        | ProtobufType::ByShape(_)
        | ProtobufType::List(_)
        | ProtobufType::Map(_) => sent.bytes().map(|_| ()),
    }
}

impl Reader {
    /// Writes the members of an object.
    fn fields(
        &mut self,
        message: &ProtobufMessage,
        body: &[u8],
        depth: usize,
    ) -> Result<(), Fault> {
        let mut cursor = self.cursor(message, body)?;
        // Position of the first field that is not written yet.
        let mut unwritten = 0;
        while let Some((place, _)) = cursor.next {
            self.absent_fields(&message.fields[unwritten..place])?;
            unwritten = place + 1;
            let field = &message.fields[place];
            self.field(field, place, &mut cursor, depth)
                .map_err(|fault| fault.within(message, field))?;
        }
        self.absent_fields(&message.fields[unwritten..])
    }

    /// Sorts the known fields, unless they come in order, and each once if it is neither a list nor a map.
    fn cursor<'m, 'a>(
        &mut self,
        message: &'m ProtobufMessage,
        body: &'a [u8],
    ) -> Result<Cursor<'m, 'a>, Fault> {
        let mut wire = Wire(body);
        let mut last = None;
        let mut count = 0;
        let mut in_order = true;
        while let Some((number, sent)) = wire.next_field()? {
            let Some(place) = place_of(message, number, last.unwrap_or(0)) else {
                if self.unknown.is_none() && !sent.is_empty() {
                    self.unknown = Some(format!("number {number} of {}", message.name));
                }
                continue;
            };
            let value = message.fields[place].value;
            check_sent(value, sent)
                .map_err(|why| Fault::from(why).within(message, &message.fields[place]))?;
            let repeats = matches!(value, ProtobufType::List(_) | ProtobufType::Map(_));
            in_order &= last.is_none_or(|last| last < place || (repeats && last == place));
            last = Some(place);
            count += 1;
        }
        let sorted = if in_order {
            None
        } else {
            self.use_scratch(count * size_of::<u64>())?;
            let mut sorted = Vec::with_capacity(count);
            let mut wire = Wire(body);
            let mut hint = 0;
            loop {
                let offset = (body.len() - wire.0.len()) as u64;
                let Some((number, _)) = wire.next_field()? else {
                    break;
                };
                if let Some(place) = place_of(message, number, hint) {
                    sorted.push((place as u64) << OFFSET_BITS | offset);
                    hint = place;
                }
            }
            sorted.sort_unstable();
            Some(sorted.into_iter())
        };
        let mut cursor = Cursor {
            message,
            body,
            rest: Wire(body),
            sorted,
            next: None,
        };
        cursor.advance()?;
        Ok(cursor)
    }

    /// Counts memory beside the JSON; as much of it is allowed as JSON.
    fn use_scratch(&mut self, bytes: usize) -> Result<(), Fault> {
        self.scratch_bytes = self.scratch_bytes.saturating_add(bytes);
        if self.scratch_bytes > self.max_bytes {
            return Err(Fault::TooLarge);
        }
        Ok(())
    }

    fn check_len(&self) -> Result<(), Fault> {
        if self.out.len() > self.max_bytes {
            return Err(Fault::TooLarge);
        }
        Ok(())
    }

    fn literal(&mut self, literal: &str) {
        self.out.extend_from_slice(literal.as_bytes());
    }

    /// Writes a comma, unless the last byte opens an object or an array. No value ends so.
    fn separate(&mut self) {
        if !matches!(self.out.last(), Some(b'{' | b'[')) {
            self.out.push(b',');
        }
    }

    fn name(&mut self, name: &str) -> Result<(), Fault> {
        self.separate();
        Encoder::append_text(name, &mut self.out);
        self.out.push(b':');
        self.check_len()
    }

    /// Writes the fields that were not sent, and that JSON always has.
    fn absent_fields(&mut self, fields: &[ProtobufField]) -> Result<(), Fault> {
        for field in fields {
            if let Some(message) = field.flattened_message() {
                self.absent_fields(message.fields)?;
            } else if field.presence == ProtobufPresence::Always {
                self.name(field.name)?;
                self.empty(field.value)?;
            }
        }
        Ok(())
    }

    fn empty(&mut self, value: ProtobufType) -> Result<(), Fault> {
        match value {
            ProtobufType::Text | ProtobufType::Bytes => self.literal("\"\""),
            ProtobufType::Boolean => self.literal("false"),
            ProtobufType::Int32
            | ProtobufType::Int64
            | ProtobufType::Uint32
            | ProtobufType::Uint64
            | ProtobufType::Float
            | ProtobufType::Double
            | ProtobufType::IntOrString => self.literal("0"),
            ProtobufType::Time
            | ProtobufType::MicroTime
            | ProtobufType::FieldsV1
            | ProtobufType::RawExtension
            | ProtobufType::Json => {
                self.literal("null");
            }
            ProtobufType::Duration => self.literal("\"0s\""),
            ProtobufType::Quantity => self.literal("\"0\""),
            ProtobufType::List(_) => self.literal("[]"),
            ProtobufType::Map(_) => self.literal("{}"),
            ProtobufType::ByShape(message) => self.no_shape(message()),
            ProtobufType::Message(message) => {
                self.literal("{");
                self.absent_fields(message().fields)?;
                self.literal("}");
            }
        }
        Ok(())
    }

    /// Writes a field with all its values, unless it is empty and thus absent from JSON.
    fn field(
        &mut self,
        field: &ProtobufField,
        place: usize,
        cursor: &mut Cursor<'_, '_>,
        depth: usize,
    ) -> Result<(), Fault> {
        if let Some(message) = field.flattened_message() {
            let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
            let mut merged = Vec::new();
            let body = self.single(field.value, place, cursor, &mut merged)?;
            return self.fields(message, body.bytes()?, depth);
        }
        let before = self.out.len();
        self.name(field.name)?;
        let start = self.out.len();
        let is_empty = self.values(field, place, cursor, depth)?;
        let is_absent = is_empty
            && match field.presence {
                ProtobufPresence::Always | ProtobufPresence::Flattened => false,
                ProtobufPresence::NotEmpty => true,
                // Lists are sent by their items alone, and null is absence.
                ProtobufPresence::Sent => matches!(self.out.get(start), Some(b'[' | b'n')),
            };
        if is_absent {
            self.out.truncate(before);
        }
        Ok(())
    }

    /// Writes all values of a field; returns whether they are empty.
    fn values(
        &mut self,
        field: &ProtobufField,
        place: usize,
        cursor: &mut Cursor<'_, '_>,
        depth: usize,
    ) -> Result<bool, Fault> {
        let start = self.out.len();
        Ok(match field.value {
            ProtobufType::List(of) => {
                let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
                self.literal("[");
                while let Some(value) = cursor.take(place)? {
                    self.items(*of, value, depth)?;
                }
                self.literal("]");
                self.out.len() == start + 2
            }
            ProtobufType::Map(of) => {
                let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
                self.literal("{");
                while let Some(value) = cursor.take(place)? {
                    self.entry(*of, value, depth)?;
                }
                self.literal("}");
                self.out.len() == start + 2
            }
            single => {
                let mut merged = Vec::new();
                let value = self.single(single, place, cursor, &mut merged)?;
                self.value(single, value, depth)?
            }
        })
    }

    /// The value of a field that is neither a list nor a map: the last one, or all of them in `merged`.
    fn single<'a: 'v, 'v>(
        &mut self,
        of: ProtobufType,
        place: usize,
        cursor: &mut Cursor<'_, 'a>,
        merged: &'v mut Vec<u8>,
    ) -> Result<WireValue<'v>, Fault> {
        let mut value = cursor.take(place)?.unwrap_or(WireValue::Group);
        while let Some(next) = cursor.take(place)? {
            if is_merged(of) {
                if merged.is_empty() {
                    merged.extend_from_slice(value.bytes()?);
                }
                merged.extend_from_slice(next.bytes()?);
                self.use_scratch(next.bytes()?.len())?;
            }
            value = next;
        }
        Ok(if merged.is_empty() {
            value
        } else {
            WireValue::Bytes(merged)
        })
    }

    /// Writes the items in one field of a list: one, or numbers that are packed.
    fn items(&mut self, of: ProtobufType, value: WireValue<'_>, depth: usize) -> Result<(), Fault> {
        let WireValue::Bytes(packed) = value else {
            return self.item(of, value, depth);
        };
        let mut packed = Wire(packed);
        while !packed.0.is_empty() {
            let value = match of {
                ProtobufType::Boolean
                | ProtobufType::Int32
                | ProtobufType::Int64
                | ProtobufType::Uint32
                | ProtobufType::Uint64 => WireValue::Varint(packed.varint()?),
                ProtobufType::Float => WireValue::Fixed32(packed.array()?),
                ProtobufType::Double => WireValue::Fixed64(packed.array()?),
                _ => break,
            };
            self.item(of, value, depth)?;
        }
        match of {
            ProtobufType::Boolean
            | ProtobufType::Int32
            | ProtobufType::Int64
            | ProtobufType::Uint32
            | ProtobufType::Uint64
            | ProtobufType::Float
            | ProtobufType::Double => Ok(()),
            _ => self.item(of, value, depth),
        }
    }

    fn item(&mut self, of: ProtobufType, value: WireValue<'_>, depth: usize) -> Result<(), Fault> {
        self.separate();
        self.value(of, value, depth)?;
        self.check_len()
    }

    /// Writes an entry of a map: a message with the key and the value.
    fn entry(&mut self, of: ProtobufType, entry: WireValue<'_>, depth: usize) -> Result<(), Fault> {
        let mut wire = Wire(entry.bytes()?);
        let (mut key, mut value) = (&b""[..], None);
        while let Some((number, sent)) = wire.next_field()? {
            match number {
                1 => key = sent.bytes()?,
                2 => {
                    check_sent(of, sent)?;
                    value = Some(sent);
                }
                _ => {}
            }
        }
        self.separate();
        self.text(key)?;
        self.literal(":");
        self.check_len()?;
        match value {
            Some(value) => self.value(of, value, depth).map(|_| ()),
            None => self.empty(of),
        }
    }

    /// Writes a value; returns whether it is empty.
    fn value(
        &mut self,
        of: ProtobufType,
        value: WireValue<'_>,
        depth: usize,
    ) -> Result<bool, Fault> {
        let start = self.out.len();
        match of {
            ProtobufType::Text => {
                let text = value.bytes()?;
                self.text(text)?;
                return Ok(text.is_empty());
            }
            ProtobufType::Bytes => {
                let bytes = value.bytes()?;
                self.base64(bytes);
                return Ok(bytes.is_empty());
            }
            ProtobufType::Boolean => {
                let value = value.varint()? != 0;
                self.literal(if value { "true" } else { "false" });
                return Ok(!value);
            }
            // Go takes the low bits too.
            ProtobufType::Int32 => return Ok(self.number(i64::from(value.varint()? as i32))),
            ProtobufType::Int64 => return Ok(self.number(value.varint()? as i64)),
            ProtobufType::Uint32 => return Ok(self.number(value.varint()? as u32)),
            ProtobufType::Uint64 => return Ok(self.number(value.varint()?)),
            ProtobufType::Float => {
                let value = f32::from_le_bytes(value.fixed32()?);
                Encoder::append_json(&value, &mut self.out);
                return Ok(value == 0.0);
            }
            ProtobufType::Double => {
                let value = f64::from_le_bytes(value.fixed64()?);
                Encoder::append_json(&value, &mut self.out);
                return Ok(value == 0.0);
            }
            ProtobufType::Time | ProtobufType::MicroTime => {
                return self.time(of, value.bytes()?);
            }
            ProtobufType::Duration => {
                let [nanos] = varints(value.bytes()?, [1])?;
                let nanos = nanos.unwrap_or(0) as i64;
                Encoder::append_json(&Duration::from_nanos(nanos), &mut self.out);
                return Ok(nanos == 0);
            }
            ProtobufType::Quantity => {
                let text = last_bytes(value.bytes()?, 1)?.unwrap_or_default();
                let is_empty = text.is_empty();
                self.text(if is_empty { b"0" } else { text })?;
                return Ok(is_empty);
            }
            ProtobufType::IntOrString => return self.int_or_string(value.bytes()?),
            ProtobufType::FieldsV1 | ProtobufType::RawExtension | ProtobufType::Json => {
                let json = last_bytes(value.bytes()?, 1)?.unwrap_or_default();
                let text = std::str::from_utf8(json).unwrap_or_default();
                let is_json = serde_json::from_str::<IgnoredAny>(text).is_ok();
                self.literal(if is_json { text.trim_ascii() } else { "null" });
                return Ok(self.out.ends_with(b"null"));
            }
            ProtobufType::Message(message) => {
                self.literal("{");
                let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
                self.fields(message(), value.bytes()?, depth)?;
                self.literal("}");
            }
            ProtobufType::ByShape(message) => {
                self.by_shape(message(), value.bytes()?, depth)?;
                return Ok(self.out.ends_with(b"null"));
            }
            ProtobufType::List(of) => {
                self.literal("[");
                let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
                let mut wire = Wire(value.bytes()?);
                while let Some((number, item)) = wire.next_field()? {
                    if number == 1 {
                        self.items(*of, item, depth)?;
                    }
                }
                self.literal("]");
            }
            ProtobufType::Map(of) => {
                self.literal("{");
                let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
                let mut wire = Wire(value.bytes()?);
                while let Some((number, entry)) = wire.next_field()? {
                    if number == 1 {
                        self.entry(*of, entry, depth)?;
                    }
                }
                self.literal("}");
            }
        }
        Ok(self.out.len() == start + 2)
    }

    /// Writes the value that a message stands for: the list if it has items, else the object, else the boolean.
    fn by_shape(
        &mut self,
        message: &ProtobufMessage,
        body: &[u8],
        depth: usize,
    ) -> Result<(), Fault> {
        let mut cursor = self.cursor(message, body)?;
        let start = self.out.len();
        let mut found = None;
        while let Some((place, _)) = cursor.next {
            let field = &message.fields[place];
            let shape = Shape::of_type(field.value);
            let before = self.out.len();
            self.values(field, place, &mut cursor, depth)
                .map_err(|fault| fault.within(message, field))?;
            if shape > found {
                self.out.drain(start..before);
                found = shape;
            } else {
                self.out.truncate(before);
            }
        }
        if found.is_none() {
            self.no_shape(message);
        }
        Ok(())
    }

    /// Writes what a message without a field stands for.
    fn no_shape(&mut self, message: &ProtobufMessage) {
        let has_boolean = message.field_of(Shape::Boolean).is_some();
        self.literal(if has_boolean { "false" } else { "null" });
    }

    fn text(&mut self, text: &[u8]) -> Result<(), Fault> {
        match (std::str::from_utf8(text), self.invalid_text) {
            (Ok(text), _) => Encoder::append_text(text, &mut self.out),
            (Err(_), InvalidText::Replace) => {
                Encoder::append_text(&String::from_utf8_lossy(text), &mut self.out);
            }
            (Err(_), InvalidText::Refuse) => {
                return Err(Fault::Malformed("the text is not UTF-8".to_owned()));
            }
        }
        Ok(())
    }

    /// Writes a number; returns whether it is zero.
    fn number(&mut self, value: impl Serialize) -> bool {
        let start = self.out.len();
        Encoder::append_json(&value, &mut self.out);
        self.out[start..] == *b"0"
    }

    fn base64(&mut self, bytes: &[u8]) {
        self.literal("\"");
        let start = self.out.len();
        // The length is that of the encoded text, so that encoding cannot fail.
        self.out.resize(start + bytes.len().div_ceil(3) * 4, b'=');
        let _ = STANDARD.encode_slice(bytes, &mut self.out[start..]);
        self.literal("\"");
    }

    /// Go sends the zero time as a message without fields.
    fn time(&mut self, of: ProtobufType, message: &[u8]) -> Result<bool, Fault> {
        if message.is_empty() {
            self.literal("null");
            return Ok(true);
        }
        let [seconds, nanos] = varints(message, [1, 2])?.map(|value| value.unwrap_or(0) as i64);
        match of {
            ProtobufType::MicroTime => {
                let micros = seconds.saturating_mul(1_000_000);
                let micros = micros.saturating_add(nanos / 1_000);
                Encoder::append_json(&MicroTime::from_unix_micros(micros), &mut self.out);
            }
            _ => Encoder::append_json(&Time::from_unix_seconds(seconds), &mut self.out),
        }
        Ok(false)
    }

    fn int_or_string(&mut self, message: &[u8]) -> Result<bool, Fault> {
        let [kind, number] = varints(message, [1, 2])?.map(|value| value.unwrap_or(0));
        let text = last_bytes(message, 3)?.unwrap_or_default();
        if kind == 0 {
            return Ok(self.number(number as i32));
        }
        self.text(text)?;
        Ok(text.is_empty())
    }
}

fn too_deep() -> Fault {
    Fault::Malformed("the messages are nested too deeply".to_owned())
}

/// The last values of integer fields with these numbers.
fn varints<const N: usize>(message: &[u8], numbers: [u32; N]) -> Result<[Option<u64>; N], String> {
    let mut found = [None; N];
    let mut wire = Wire(message);
    while let Some((number, value)) = wire.next_field()? {
        if let Some(place) = numbers.iter().position(|wanted| *wanted == number) {
            found[place] = Some(value.varint()?);
        }
    }
    Ok(found)
}

/// The last value of a field with bytes.
fn last_bytes(message: &[u8], wanted: u32) -> Result<Option<&[u8]>, String> {
    let mut found = None;
    let mut wire = Wire(message);
    while let Some((number, value)) = wire.next_field()? {
        if number == wanted {
            found = Some(value.bytes()?);
        }
    }
    Ok(found)
}
