//! JSON as Kubernetes prints it: Go's escapes and numbers, fields in declared order.

use std::io::{self, Write};

use bytes::Bytes;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;
use serde_json::ser::{CharEscape, Formatter};

use crate::object::Object;
use crate::schema::node::{Child, Node};

/// An object in the order of its schema.
pub(super) fn object(object: &Object, node: &Node) -> Bytes {
    json(&Fields {
        fields: object.fields(),
        node: Some(node),
    })
}

/// Any value, compact.
pub(super) fn json(value: &impl Serialize) -> Bytes {
    let mut out = Vec::with_capacity(512);
    append(value, &mut out);
    out.into()
}

/// Appends any value, compact.
pub(super) fn append(value: &impl Serialize, out: &mut Vec<u8>) {
    let start = out.len();
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, Go);
    // Writing to memory cannot fail; a value that refuses to be JSON (a map with keys that are no strings) becomes null.
    if value.serialize(&mut serializer).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}

/// Appends the key of a map, which JSON spells as a string whatever its type is.
pub(super) fn append_key(
    key: &(impl Serialize + ?Sized),
    out: &mut Vec<u8>,
) -> Result<(), serde_json::Error> {
    let start = out.len();
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, Go);
    let mut map = serializer.serialize_map(None)?;
    map.serialize_key(key)?;
    // The bracket that opened the map.
    out.remove(start);
    Ok(())
}

/// A value with the node that knows the order of its fields.
struct Ordered<'a> {
    value: &'a Value,
    node: Option<&'a Node>,
}

struct Fields<'a> {
    fields: &'a serde_json::Map<String, Value>,
    node: Option<&'a Node>,
}

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.value, self.node) {
            (Value::Object(fields), Some(_)) => Fields {
                fields,
                node: self.node,
            }
            .serialize(serializer),
            (Value::Array(elements), Some(node)) => {
                let mut list = serializer.serialize_seq(Some(elements.len()))?;
                for value in elements {
                    list.serialize_element(&Ordered {
                        value,
                        node: node.items.as_deref(),
                    })?;
                }
                list.end()
            }
            (value, _) => value.serialize(serializer),
        }
    }
}

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(node) = self.node else {
            return self.fields.serialize(serializer);
        };
        let mut map = serializer.serialize_map(Some(self.fields.len()))?;
        let mut written = 0;
        for property in &node.properties {
            if let Some(value) = self.fields.get(&property.name) {
                map.serialize_entry(
                    &property.name,
                    &Ordered {
                        value,
                        node: Some(&property.node),
                    },
                )?;
                written += 1;
            }
        }
        if written < self.fields.len() {
            for (name, value) in self
                .fields
                .iter()
                .filter(|(name, _)| node.property(name).is_none())
            {
                let node = match node.child(name) {
                    Child::Node(node) => Some(node),
                    Child::Free | Child::Unknown => None,
                };
                map.serialize_entry(name, &Ordered { value, node })?;
            }
        }
        map.end()
    }
}

/// Go's `encoding/json`: HTML and line separators escaped, floats in their shortest form without a fraction of zero.
struct Go;

impl Formatter for Go {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let bytes = fragment.as_bytes();
        let mut start = 0;
        for (at, byte) in bytes.iter().enumerate() {
            let (escape, len): (&[u8], usize) = match byte {
                b'<' => (br"\u003c", 1),
                b'>' => (br"\u003e", 1),
                b'&' => (br"\u0026", 1),
                0xe2 if bytes[at..].starts_with("\u{2028}".as_bytes()) => (br"\u2028", 3),
                0xe2 if bytes[at..].starts_with("\u{2029}".as_bytes()) => (br"\u2029", 3),
                _ => continue,
            };
            out.write_all(&bytes[start..at])?;
            out.write_all(escape)?;
            start = at + len;
        }
        out.write_all(&bytes[start..])
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        let text: &[u8] = match escape {
            CharEscape::Quote => br#"\""#,
            CharEscape::ReverseSolidus => br"\\",
            CharEscape::Solidus => b"/",
            CharEscape::Backspace => br"\b",
            CharEscape::FormFeed => br"\f",
            CharEscape::LineFeed => br"\n",
            CharEscape::CarriageReturn => br"\r",
            CharEscape::Tab => br"\t",
            CharEscape::AsciiControl(byte) => return write!(out, "\\u{byte:04x}"),
        };
        out.write_all(text)
    }

    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        let size = value.abs();
        if size != 0.0 && !(1e-6..1e21).contains(&size) {
            let text = format!("{value:e}");
            return match text.split_once('e') {
                Some((digits, exponent)) if !exponent.starts_with('-') => {
                    write!(out, "{digits}e+{exponent}")
                }
                _ => out.write_all(text.as_bytes()),
            };
        }
        write!(out, "{value}")
    }

    fn write_f32<W: ?Sized + Write>(&mut self, out: &mut W, value: f32) -> io::Result<()> {
        write!(out, "{value}")
    }
}

/// Two-space indentation as Go's `json.Indent`: `{}` and `[]` stay closed, strings are left alone. JSON may come in
/// pieces that end anywhere.
#[derive(Clone, Debug, Default)]
pub struct Indenter {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Set behind an opening bracket, until it is known whether something follows.
    opened: bool,
}

impl Indenter {
    /// Appends the next piece.
    pub fn append(&mut self, json: &[u8], out: &mut Vec<u8>) {
        for &byte in json {
            if self.in_string {
                out.push(byte);
                self.in_string = self.escaped || byte != b'"';
                self.escaped = !self.escaped && byte == b'\\';
                continue;
            }
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                self.token(byte, out);
            }
        }
    }

    /// A byte outside of strings.
    fn token(&mut self, byte: u8, out: &mut Vec<u8>) {
        let closes = matches!(byte, b'}' | b']');
        if self.opened && !closes {
            self.depth += 1;
            line(out, self.depth);
        }
        match byte {
            b'{' | b'[' => out.push(byte),
            b'}' | b']' => {
                if !self.opened {
                    self.depth = self.depth.saturating_sub(1);
                    line(out, self.depth);
                }
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                line(out, self.depth);
            }
            b':' => out.extend_from_slice(b": "),
            _ => {
                self.in_string = byte == b'"';
                out.push(byte);
            }
        }
        self.opened = matches!(byte, b'{' | b'[');
    }
}

pub(super) fn indent(json: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(json.len() * 2);
    Indenter::default().append(json, &mut out);
    out.into()
}

fn line(out: &mut Vec<u8>, depth: usize) {
    out.push(b'\n');
    out.extend(std::iter::repeat_n(b' ', depth * 2));
}
