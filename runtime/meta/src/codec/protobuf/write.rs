//! Converts JSON to messages, straight from one buffer to the other.
//!
//! A value is written when it is read. What has to stand before it is written back: lengths, whose places are reserved, and
//! fields and keys of maps that come in another order, which are sorted when their message is complete.

use std::borrow::Cow;
use std::cmp::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::{memchr, memchr2};

use super::body::MalformedJson;
use super::wire::{
    self, BYTES, FIXED32, FIXED64, LengthPlace, VARINT, Wire, WireValue, append_key, append_varint,
};
use crate::bytes;
use crate::codec::encode::Encoder;
use crate::codec::limits::MAX_DEPTH;
use crate::codec::peek::{members, value_end};
use crate::kind::{ProtobufField, ProtobufMessage, ProtobufPresence, ProtobufType};
use crate::protobuf::Shape;
use crate::types::{Duration, MicroTime, Time};

/// See [`super::append_protobuf`].
pub(super) fn append(
    json: &[u8],
    message: &ProtobufMessage,
    out: &mut Vec<u8>,
) -> Result<bool, MalformedJson> {
    let mut writer = Writer {
        json,
        at: 0,
        out,
        parts: Vec::new(),
        sorted: Vec::new(),
        is_exact: true,
    };
    writer.space();
    writer.object(message, Members::OfRoot, 0)?;
    writer.space();
    if writer.at < json.len() {
        return Err(MalformedJson);
    }
    Ok(writer.is_exact)
}

/// The `apiVersion` and the `kind` of a JSON object; empty if they are missing.
pub(super) fn type_of(json: &[u8]) -> Result<(Cow<'_, str>, Cow<'_, str>), MalformedJson> {
    let (mut api_version, mut kind) = (None, None);
    for member in members(json, 0) {
        let of = match &*member.name {
            "apiVersion" => &mut api_version,
            "kind" => &mut kind,
            _ => continue,
        };
        let end = value_end(json, member.value).ok_or(MalformedJson)?;
        *of = Some(&json[member.value..end]);
        if api_version.is_some() && kind.is_some() {
            break;
        }
    }
    Ok((text_of(api_version)?, text_of(kind)?))
}

/// The text of a JSON string with its quotes; empty for none.
fn text_of(quoted: Option<&[u8]>) -> Result<Cow<'_, str>, MalformedJson> {
    let Some(quoted) = quoted else {
        return Ok(Cow::Borrowed(""));
    };
    let plain = quoted
        .strip_prefix(b"\"")
        .and_then(|text| text.strip_suffix(b"\""));
    match plain {
        Some(plain) if memchr(b'\\', plain).is_none() => std::str::from_utf8(plain)
            .map(Cow::Borrowed)
            .map_err(|_| MalformedJson),
        _ => serde_json::from_slice(quoted)
            .map(Cow::Owned)
            .map_err(|_| MalformedJson),
    }
}

/// A part of the output that may have to be moved: a field, by its number, or an entry of a map.
#[derive(Clone, Copy)]
struct Part {
    start: usize,
    number: u32,
}

struct Writer<'j, 'o> {
    json: &'j [u8],
    at: usize,
    out: &'o mut Vec<u8>,
    /// The parts of the messages and maps that are being written, from the outermost.
    parts: Vec<Part>,
    /// A buffer for parts that are sorted.
    sorted: Vec<u8>,
    is_exact: bool,
}

/// Which members of an object belong to a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Members {
    All,
    /// All but its type.
    OfRoot,
    /// Some, as the message is flattened.
    OfSome,
}

impl Members {
    /// Whether a member belongs elsewhere.
    fn has_others(self, name: &[u8]) -> bool {
        match self {
            Self::All => false,
            Self::OfRoot => matches!(name, b"kind" | b"apiVersion"),
            Self::OfSome => true,
        }
    }
}

/// The text between the quotes of a JSON string.
#[derive(Clone, Copy)]
struct JsonString<'j> {
    text: &'j [u8],
    has_escapes: bool,
}

impl<'j> Writer<'j, '_> {
    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.json.get(self.at) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.json.get(self.at).copied()
    }

    /// Skips a byte and the space after it; false if another one follows.
    fn skip(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        if is_next {
            self.at += 1;
            self.space();
        }
        is_next
    }

    fn expect(&mut self, byte: u8) -> Result<(), MalformedJson> {
        if self.skip(byte) {
            Ok(())
        } else {
            Err(MalformedJson)
        }
    }

    /// Reads the content of a string, without its escapes replaced.
    fn quoted(&mut self) -> Result<JsonString<'j>, MalformedJson> {
        if self.peek() != Some(b'"') {
            return Err(MalformedJson);
        }
        let start = self.at + 1;
        let mut end = start;
        let mut has_escapes = false;
        loop {
            let rest = self.json.get(end..).ok_or(MalformedJson)?;
            end += memchr2(b'"', b'\\', rest).ok_or(MalformedJson)?;
            if self.json[end] == b'"' {
                break;
            }
            has_escapes = true;
            end += 2;
        }
        self.at = end + 1;
        self.space();
        Ok(JsonString {
            text: &self.json[start..end],
            has_escapes,
        })
    }

    /// Skips a value, and returns its JSON.
    fn any(&mut self) -> Result<&'j [u8], MalformedJson> {
        let start = self.at;
        let end = value_end(self.json, start).filter(|end| *end > start);
        self.at = end.ok_or(MalformedJson)?;
        let json = self.json[start..self.at].trim_ascii_end();
        self.space();
        Ok(json)
    }

    /// Skips a value that is left out.
    fn leave_out(&mut self) -> Result<(), MalformedJson> {
        self.is_exact = false;
        self.any().map(|_| ())
    }

    /// Writes an object as the fields of a message.
    fn object(
        &mut self,
        message: &ProtobufMessage,
        members: Members,
        depth: usize,
    ) -> Result<(), MalformedJson> {
        let fields = message.fields;
        let begin = self.at;
        let first_part = self.parts.len();
        let mut in_order = true;
        let mut last = None;
        let mut next = 0;
        // The positions of the fields that were written, as bits.
        let mut written = 0u128;
        self.expect(b'{')?;
        while self.peek() != Some(b'}') {
            let name = unescaped(self.quoted()?);
            self.expect(b':')?;
            let near = fields.get(next).filter(|field| {
                field.presence != ProtobufPresence::Flattened && field.name.as_bytes() == &*name
            });
            match near.map_or_else(|| message.member(&name), |_| Some((next, false))) {
                // It is written once all others are.
                Some((_, true)) => {
                    self.any()?;
                }
                Some((place, false)) => {
                    next = place + 1;
                    let field = &fields[place];
                    let start = self.out.len();
                    self.field(field, depth)?;
                    if self.out.len() > start {
                        let number = field.number;
                        in_order &= last.is_none_or(|last| last < number);
                        last = Some(number);
                        self.parts.push(Part { start, number });
                        written |= bit(place);
                    }
                }
                None if members.has_others(&name) => {
                    self.any()?;
                }
                None => self.leave_out()?,
            }
            if !self.skip(b',') {
                break;
            }
        }
        self.expect(b'}')?;
        let end = self.at;
        for (place, field) in fields.iter().enumerate() {
            let Some(message) = field.flattened_message() else {
                continue;
            };
            let (start, number) = (self.out.len(), field.number);
            append_key(number, BYTES, self.out);
            let length = LengthPlace::begin(self.out);
            self.at = begin;
            self.object(message, Members::OfSome, depth)?;
            length.end(self.out);
            in_order &= last.is_none_or(|last| last < number);
            last = Some(number);
            self.parts.push(Part { start, number });
            written |= bit(place);
        }
        self.at = end;
        if !in_order {
            self.sort(first_part, |_, a, b| a.number.cmp(&b.number));
        }
        self.parts.truncate(first_part);
        let mut fields = fields.iter().enumerate();
        self.is_exact &= fields.all(|(place, field)| {
            field.presence != ProtobufPresence::Always || bit(place) & written != 0
        });
        Ok(())
    }

    /// Sorts the parts from the `first` one. Of equal ones only the last one stays: in JSON it replaces those before.
    fn sort(&mut self, first: usize, order: fn(&[u8], &Part, &Part) -> Ordering) {
        let parts = &self.parts[first..];
        let Some(start) = parts.first().map(|part| part.start) else {
            return;
        };
        let out = &*self.out;
        let ends = parts.iter().skip(1).map(|part| part.start);
        let ends = ends.chain([out.len()]);
        let mut parts: Vec<(Part, usize)> = parts.iter().copied().zip(ends).collect();
        // The sort is stable.
        parts.sort_by(|(a, _), (b, _)| order(out, a, b));
        self.sorted.clear();
        for (index, (part, end)) in parts.iter().enumerate() {
            let is_replaced = parts
                .get(index + 1)
                .is_some_and(|(next, _)| order(out, part, next) == Ordering::Equal);
            if !is_replaced {
                self.sorted.extend_from_slice(&out[part.start..*end]);
            }
        }
        self.out.truncate(start);
        self.out.extend_from_slice(&self.sorted);
    }

    /// Writes a field with all its values; nothing if there are none.
    fn field(&mut self, field: &ProtobufField, depth: usize) -> Result<(), MalformedJson> {
        match (field.value, self.peek()) {
            (_, Some(b'n')) => self.leave_out(),
            (ProtobufType::List(of), Some(b'[')) => {
                let start = self.out.len();
                self.items(field.number, *of, depth)?;
                self.is_exact &= self.out.len() > start;
                Ok(())
            }
            (ProtobufType::Map(of), Some(b'{')) => {
                let start = self.out.len();
                self.entries(field.number, *of, depth)?;
                self.is_exact &= self.out.len() > start;
                Ok(())
            }
            (ProtobufType::List(_) | ProtobufType::Map(_), _) => self.leave_out(),
            (single, _) => {
                let is_empty = self.value(field.number, single, depth)?;
                self.is_exact &= !is_empty || field.presence != ProtobufPresence::NotEmpty;
                Ok(())
            }
        }
    }

    /// Writes the items of a list, each as a field with this number.
    fn items(&mut self, number: u32, of: ProtobufType, depth: usize) -> Result<(), MalformedJson> {
        self.expect(b'[')?;
        while self.peek() != Some(b']') {
            self.value(number, of, depth)?;
            if !self.skip(b',') {
                break;
            }
        }
        self.expect(b']')
    }

    /// Writes the entries of a map, each as a message with this number, sorted by key.
    fn entries(
        &mut self,
        number: u32,
        of: ProtobufType,
        depth: usize,
    ) -> Result<(), MalformedJson> {
        let first_part = self.parts.len();
        let mut last: Option<Cow<'_, [u8]>> = None;
        let mut in_order = true;
        self.expect(b'{')?;
        while self.peek() != Some(b'}') {
            let key = unescaped(self.quoted()?);
            self.expect(b':')?;
            let start = self.out.len();
            append_key(number, BYTES, self.out);
            let length = LengthPlace::begin(self.out);
            wire::append_bytes(1, &key, self.out);
            let before = self.out.len();
            self.value(2, of, depth)?;
            if self.out.len() > before {
                length.end(self.out);
                self.parts.push(Part { start, number });
                in_order &= last.is_none_or(|last| last < key);
                last = Some(key);
            } else {
                self.out.truncate(start);
            }
            if !self.skip(b',') {
                break;
            }
        }
        self.expect(b'}')?;
        if !in_order {
            self.sort(first_part, |out, a, b| {
                entry_key(out, a.start).cmp(entry_key(out, b.start))
            });
        }
        self.parts.truncate(first_part);
        Ok(())
    }

    /// Writes a value as a field with this number; nothing if it is of another type. Returns whether it is empty.
    fn value(
        &mut self,
        number: u32,
        of: ProtobufType,
        depth: usize,
    ) -> Result<bool, MalformedJson> {
        let is_empty = match (of, self.peek().ok_or(MalformedJson)?) {
            (ProtobufType::Text, b'"') => {
                let quoted = self.quoted()?;
                append_text(number, quoted, self.out);
                Some(quoted.text.is_empty())
            }
            (ProtobufType::Bytes, b'"') => {
                let text = unescaped(self.quoted()?);
                self.bytes(number, &text)
            }
            (ProtobufType::Boolean, b't' | b'f') => {
                let value = self.any()? == b"true";
                append_key(number, VARINT, self.out);
                self.out.push(u8::from(value));
                Some(!value)
            }
            (
                ProtobufType::Int32
                | ProtobufType::Int64
                | ProtobufType::Uint32
                | ProtobufType::Uint64,
                b'-' | b'0'..=b'9',
            ) => {
                let digits = self.any()?;
                self.integer(of, digits).map(|value| {
                    append_key(number, VARINT, self.out);
                    append_varint(value, self.out);
                    value == 0
                })
            }
            (ProtobufType::Float | ProtobufType::Double, b'-' | b'0'..=b'9') => {
                let digits = self.any()?;
                self.float(number, of, digits)
            }
            (ProtobufType::Time | ProtobufType::MicroTime, b'"') => {
                let text = unescaped(self.quoted()?);
                self.time(number, of, &text)
            }
            (ProtobufType::Duration, b'"') => {
                let text = unescaped(self.quoted()?);
                self.duration(number, &text)
            }
            (ProtobufType::Quantity, b'"') => {
                let quoted = self.quoted()?;
                append_key(number, BYTES, self.out);
                let length = LengthPlace::begin(self.out);
                append_text(1, quoted, self.out);
                length.end(self.out);
                // Back it is zero.
                self.is_exact &= !quoted.text.is_empty();
                Some(quoted.text.is_empty())
            }
            (ProtobufType::IntOrString, b'"') => {
                let quoted = self.quoted()?;
                append_key(number, BYTES, self.out);
                let length = LengthPlace::begin(self.out);
                self.out.extend_from_slice(&[1 << 3, 1, 2 << 3, 0]);
                append_text(3, quoted, self.out);
                length.end(self.out);
                Some(quoted.text.is_empty())
            }
            (ProtobufType::IntOrString, b'-' | b'0'..=b'9') => {
                let digits = self.any()?;
                self.integer(ProtobufType::Int32, digits).map(|value| {
                    append_key(number, BYTES, self.out);
                    let length = LengthPlace::begin(self.out);
                    self.out.extend_from_slice(&[1 << 3, 0, 2 << 3]);
                    append_varint(value, self.out);
                    wire::append_bytes(3, b"", self.out);
                    length.end(self.out);
                    value == 0
                })
            }
            (ProtobufType::Json, b'n') => {
                self.any()?;
                wire::append_bytes(number, b"", self.out);
                Some(false)
            }
            (ProtobufType::FieldsV1 | ProtobufType::RawExtension | ProtobufType::Json, first)
                if first != b'n' =>
            {
                let json = self.any()?;
                append_key(number, BYTES, self.out);
                let field = 1 + wire::varint_bytes(json.len() as u64) + json.len();
                append_varint(field as u64, self.out);
                wire::append_bytes(1, json, self.out);
                Some(false)
            }
            (ProtobufType::Message(message), b'{') if depth < MAX_DEPTH => {
                append_key(number, BYTES, self.out);
                let length = LengthPlace::begin(self.out);
                let start = self.out.len();
                self.object(message(), Members::All, depth + 1)?;
                let is_empty = self.out.len() == start;
                length.end(self.out);
                Some(is_empty)
            }
            (ProtobufType::ByShape(message), first) if depth < MAX_DEPTH => {
                self.by_shape(number, message(), first, depth)?
            }
            (ProtobufType::List(of), b'[') if depth < MAX_DEPTH => {
                append_key(number, BYTES, self.out);
                let length = LengthPlace::begin(self.out);
                self.items(1, *of, depth + 1)?;
                length.end(self.out);
                Some(false)
            }
            (ProtobufType::Map(of), b'{') if depth < MAX_DEPTH => {
                append_key(number, BYTES, self.out);
                let length = LengthPlace::begin(self.out);
                self.entries(1, *of, depth + 1)?;
                length.end(self.out);
                Some(false)
            }
            _ => {
                self.any()?;
                None
            }
        };
        self.is_exact &= is_empty.is_some();
        Ok(is_empty.unwrap_or(false))
    }

    /// Writes a value as the field of a message that has its shape; nothing if there is none.
    fn by_shape(
        &mut self,
        number: u32,
        message: &ProtobufMessage,
        first: u8,
        depth: usize,
    ) -> Result<Option<bool>, MalformedJson> {
        let shape = Shape::of_json(first);
        let Some(field) = shape.and_then(|shape| message.field_of(shape)) else {
            self.any()?;
            return Ok(None);
        };
        append_key(number, BYTES, self.out);
        let length = LengthPlace::begin(self.out);
        if shape == Some(Shape::Object)
            && let Some(flag) = message.field_of(Shape::Boolean)
        {
            append_key(flag.number, VARINT, self.out);
            self.out.push(1);
        }
        self.field(field, depth)?;
        length.end(self.out);
        Ok(Some(false))
    }

    fn bytes(&mut self, number: u32, text: &[u8]) -> Option<bool> {
        let start = self.out.len();
        append_key(number, BYTES, self.out);
        let length = LengthPlace::begin(self.out);
        if STANDARD.decode_vec(text, self.out).is_err() {
            // With line breaks, or bits after the last byte.
            let decoded = std::str::from_utf8(text).ok();
            let decoded = decoded.and_then(|text| bytes::decode(text).ok());
            let Some(decoded) = decoded else {
                self.out.truncate(start);
                return None;
            };
            self.is_exact = false;
            self.out.truncate(start);
            wire::append_bytes(number, &decoded, self.out);
            return Some(decoded.is_empty());
        }
        length.end(self.out);
        Some(text.is_empty())
    }

    /// The value of an integer, as it is encoded; `None` if it is not one of this type.
    fn integer(&mut self, of: ProtobufType, digits: &[u8]) -> Option<u64> {
        let text = std::str::from_utf8(digits).ok()?;
        let value: i128 = match text.parse() {
            Ok(value) => value,
            // Such as `1e3` and `2.0`, which would come back as `1000` and `2`.
            Err(_) => {
                self.is_exact = false;
                let value: f64 = text.parse().ok()?;
                Some(value as i128).filter(|whole| *whole as f64 == value)?
            }
        };
        self.is_exact &= text != "-0";
        match of {
            ProtobufType::Int32 => i32::try_from(value)
                .ok()
                .map(|value| i64::from(value) as u64),
            ProtobufType::Uint32 => u32::try_from(value).ok().map(u64::from),
            ProtobufType::Uint64 => u64::try_from(value).ok(),
            _ => i64::try_from(value).ok().map(|value| value as u64),
        }
    }

    fn float(&mut self, number: u32, of: ProtobufType, digits: &[u8]) -> Option<bool> {
        let text = std::str::from_utf8(digits).ok()?;
        let mut back = Vec::new();
        let is_zero = if let ProtobufType::Float = of {
            let value: f32 = text.parse().ok()?;
            Encoder::append_json(&value, &mut back);
            append_key(number, FIXED32, self.out);
            self.out.extend_from_slice(&value.to_le_bytes());
            value == 0.0
        } else {
            let value: f64 = text.parse().ok()?;
            Encoder::append_json(&value, &mut back);
            append_key(number, FIXED64, self.out);
            self.out.extend_from_slice(&value.to_le_bytes());
            value == 0.0
        };
        self.is_exact &= back == digits;
        Some(is_zero)
    }

    fn time(&mut self, number: u32, of: ProtobufType, text: &[u8]) -> Option<bool> {
        let text = std::str::from_utf8(text).ok()?;
        let (seconds, nanos, len) = if let ProtobufType::MicroTime = of {
            let micros = text.parse::<MicroTime>().ok()?.unix_micros();
            let nanos = micros.rem_euclid(1_000_000) * 1_000;
            (
                micros.div_euclid(1_000_000),
                nanos,
                "2006-01-02T15:04:05.000000Z".len(),
            )
        } else {
            let seconds = text.parse::<Time>().ok()?.unix_seconds();
            (seconds, 0, "2006-01-02T15:04:05Z".len())
        };
        // Another spelling of a time is longer or shorter, or does not end so; only a comma before the fraction is neither.
        self.is_exact &= text.len() == len && text.ends_with('Z') && !text.contains(',');
        append_key(number, BYTES, self.out);
        let length = LengthPlace::begin(self.out);
        append_key(1, VARINT, self.out);
        append_varint(seconds as u64, self.out);
        append_key(2, VARINT, self.out);
        append_varint(nanos as u64, self.out);
        length.end(self.out);
        Some(false)
    }

    fn duration(&mut self, number: u32, text: &[u8]) -> Option<bool> {
        let text = std::str::from_utf8(text).ok()?;
        let duration: Duration = text.parse().ok()?;
        self.is_exact &= duration.to_string() == text;
        append_key(number, BYTES, self.out);
        let length = LengthPlace::begin(self.out);
        append_key(1, VARINT, self.out);
        append_varint(duration.as_nanos() as u64, self.out);
        length.end(self.out);
        Some(duration == Duration::ZERO)
    }
}

/// The bit of a position; none for positions of 128 and more.
fn bit(place: usize) -> u128 {
    u32::try_from(place)
        .ok()
        .and_then(|place| 1u128.checked_shl(place))
        .unwrap_or(0)
}

/// The key of an entry of a map that begins at `start`.
fn entry_key(out: &[u8], start: usize) -> &[u8] {
    let bytes_of = |message| match Wire(message).next_field() {
        Ok(Some((_, WireValue::Bytes(bytes)))) => bytes,
        _ => &[],
    };
    bytes_of(bytes_of(&out[start..]))
}

/// Appends a field with the text of a JSON string.
fn append_text(number: u32, quoted: JsonString<'_>, out: &mut Vec<u8>) {
    if !quoted.has_escapes {
        return wire::append_bytes(number, quoted.text, out);
    }
    append_key(number, BYTES, out);
    let length = LengthPlace::begin(out);
    unescape(quoted.text, out);
    length.end(out);
}

/// The text of a JSON string.
fn unescaped(quoted: JsonString<'_>) -> Cow<'_, [u8]> {
    if !quoted.has_escapes {
        return Cow::Borrowed(quoted.text);
    }
    let mut text = Vec::with_capacity(quoted.text.len());
    unescape(quoted.text, &mut text);
    Cow::Owned(text)
}

/// Appends a text without its escapes. Halves of surrogate pairs become replacement characters, as in Go.
fn unescape(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some(plain) = memchr(b'\\', text) {
        out.extend_from_slice(&text[..plain]);
        let escape = text.get(plain + 1).copied().unwrap_or_default();
        text = text.get(plain + 2..).unwrap_or_default();
        match escape {
            b'b' => out.push(0x08),
            b'f' => out.push(0x0c),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'u' => {
                let first = hexadecimal(text);
                text = text.get(4..).unwrap_or_default();
                let second = text.strip_prefix(b"\\u").map(hexadecimal);
                let pair = second.and_then(|second| {
                    char::decode_utf16([first, second])
                        .next()?
                        .ok()
                        .filter(|c| c.len_utf16() == 2)
                });
                if pair.is_some() {
                    text = text.get(6..).unwrap_or_default();
                }
                let single = || char::from_u32(u32::from(first));
                let character = pair.or_else(single).unwrap_or(char::REPLACEMENT_CHARACTER);
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            // A quote, a backslash, a slash.
            other => out.push(other),
        }
    }
    out.extend_from_slice(text);
}

/// The number of the first four digits; half of a surrogate pair if they are none.
fn hexadecimal(text: &[u8]) -> u16 {
    let digits = text
        .get(..4)
        .and_then(|digits| std::str::from_utf8(digits).ok());
    digits
        .and_then(|digits| u16::from_str_radix(digits, 16).ok())
        .unwrap_or(0xd800)
}
