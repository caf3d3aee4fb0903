//! Encodes JSON as Kubernetes does: Go's escapes and numbers, fields in declared order.

use std::io::{self, Write};

use apiloom_schema::tree::{Child, Node};
use bytes::Bytes;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::ser::{CharEscape, Formatter};
use serde_json::{Map, Value};

use crate::field::TextPrefix;
use crate::object::Object;
use crate::schema::Schema;

/// Encodes objects as compact JSON with the fields in the order of a schema, and values without one. `<`, `>`, `&`, U+2028 and
/// U+2029 are escaped in all JSON.
#[derive(Clone, Copy, Debug)]
pub struct Encoder<'a>(pub(super) &'a Node);

impl<'a> Encoder<'a> {
    /// Encodes objects in the order of this schema.
    pub fn of(schema: &'a Schema) -> Self {
        Self(schema.root())
    }

    /// Encodes an object: first `kind`, `apiVersion` and `metadata` (metadata in the order of ObjectMeta), then the other
    /// fields in the schema's order. Without trailing newline.
    pub fn object(self, object: &Object) -> Bytes {
        let mut out = Vec::with_capacity(2048);
        fields(object.fields(), Some(self.0), &mut out);
        // Without spare capacity, since stores and histories keep it and count its size.
        out.into_boxed_slice().into()
    }

    /// Replaces `metadata.managedFields` of an object by a string with their JSON, as
    /// [`Decoder::encoded`](super::Decoder::encoded) reads them.
    pub fn pack_managed_fields(self, object: &mut Object) {
        let entries = object.meta().and_then(|meta| meta.get("managedFields"));
        if !matches!(entries, Some(Value::Array(entries)) if !entries.is_empty()) {
            return;
        }
        let metadata = self.0.property("metadata");
        let node = metadata.and_then(|metadata| metadata.node.property("managedFields"));
        if let Some(entries) = object.meta_mut().get_mut("managedFields") {
            let mut out = Vec::with_capacity(1024);
            value(entries, node.map(|property| &*property.node), &mut out);
            *entries = String::from_utf8(out).unwrap_or_default().into();
        }
    }

    /// Encodes any value as compact JSON, with keys in the value's own order.
    pub fn json(value: &impl Serialize) -> Bytes {
        let mut out = Vec::with_capacity(512);
        Encoder::append_json(value, &mut out);
        out.into()
    }

    /// The text of [`Encoder::json`], or of a longer one only its beginning of at least `min_bytes`: what is behind it is not encoded.
    ///
    /// ```
    /// use apiloom_meta::codec::Encoder;
    ///
    /// assert_eq!(Encoder::json_prefix(&["a", "<"], 100), r#"["a","\u003c"]"#);
    /// assert!(Encoder::json_prefix(&vec!["a"; 1_000_000], 100).len() < 110);
    /// ```
    pub fn json_prefix(value: &impl Serialize, min_bytes: usize) -> String {
        let write = |prefix: &mut TextPrefix| {
            value.serialize(&mut serde_json::Serializer::with_formatter(prefix, Go))
        };
        TextPrefix::of(min_bytes, write).unwrap_or_else(|| "null".to_owned())
    }

    /// As [`Encoder::json`], appended to a buffer.
    pub fn append_json(value: &impl Serialize, out: &mut Vec<u8>) {
        let start = out.len();
        let mut serializer = serde_json::Serializer::with_formatter(&mut *out, Go);
        // Writing to memory cannot fail; a value that has no JSON form (a map with keys that are not strings) becomes
        // null.
        if value.serialize(&mut serializer).is_err() {
            out.truncate(start);
            out.extend_from_slice(b"null");
        }
    }

    /// As [`Encoder::append_json`], for a text: without a serializer.
    pub fn append_text(text: &str, out: &mut Vec<u8>) {
        out.reserve(text.len() + 2);
        out.push(b'"');
        // Writing to memory cannot fail.
        let _ = escaped(text.as_bytes(), out);
        out.push(b'"');
    }
}

/// Appends the key of a map, which is a string in JSON for every type of key.
pub(super) fn append_key(
    key: &(impl Serialize + ?Sized),
    out: &mut Vec<u8>,
) -> Result<(), serde_json::Error> {
    let start = out.len();
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, Go);
    let mut map = serializer.serialize_map(None)?;
    map.serialize_key(key)?;
    // Removes the brace of the map that wraps the key.
    out.remove(start);
    Ok(())
}

/// Appends a value; the node has the order of its fields.
fn value(value: &Value, node: Option<&Node>, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => Encoder::append_json(number, out),
        Value::String(text) if node.is_some_and(Node::may_be_text) => {
            out.extend_from_slice(text.as_bytes());
        }
        Value::String(text) => Encoder::append_text(text, out),
        Value::Array(elements) => {
            let node = node.and_then(|node| node.items.as_deref());
            out.push(b'[');
            for (at, element) in elements.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                self::value(element, node, out);
            }
            out.push(b']');
        }
        Value::Object(members) => fields(members, node, out),
    }
}

/// Appends an object: the properties of its node in their order, then the other fields sorted. All are
/// sorted if the dialect says so.
fn fields(members: &Map<String, Value>, node: Option<&Node>, out: &mut Vec<u8>) {
    out.push(b'{');
    let mut separator: &[u8] = b"";
    let mut member = |name: &str, value: &Value, node: Option<&Node>| {
        out.extend_from_slice(std::mem::replace(&mut separator, b","));
        Encoder::append_text(name, out);
        out.push(b':');
        self::value(value, node, out);
    };
    let mut left = members.len();
    let ordered = node.filter(|node| !node.dialect.sorts_fields);
    for property in ordered.iter().flat_map(|node| &node.properties) {
        if left == 0 {
            break;
        }
        if let Some(value) = members.get(&property.name) {
            member(&property.name, value, Some(&property.node));
            left -= 1;
        }
    }
    if left > 0 {
        for (name, value) in members {
            match ordered {
                Some(node) if node.property(name).is_some() => {}
                _ => member(name, value, node.and_then(|node| child(node, name))),
            }
        }
    }
    out.push(b'}');
}

/// The node of a field that is not a property.
pub(super) fn child<'a>(node: &'a Node, name: &str) -> Option<&'a Node> {
    match node.child(name) {
        Child::Node(node) => Some(node),
        Child::Free | Child::Unknown => None,
    }
}

/// Number of leading bytes that need no escape in a string. Stops at a byte that may need one: line separators begin
/// with 0xe2.
pub(super) fn plain_len(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks();
    for (at, word) in words.iter().enumerate() {
        let found = special(*word);
        if found < WORD {
            return at * WORD + found;
        }
    }
    let mut last = [b' '; WORD];
    last[..rest.len()].copy_from_slice(rest);
    words.len() * WORD + special(last).min(rest.len())
}

/// Number of bytes examined at a time.
const WORD: usize = size_of::<u64>();

/// Index of the first byte that may need an escape; the word's length if there is none.
fn special(word: [u8; WORD]) -> usize {
    const fn all(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; WORD])
    }
    // Sets the highest bit of each byte below a bound, which is at most 0x80. A borrow may set it in later bytes too,
    // so only the first one is reliable.
    const fn below(word: u64, bound: u8) -> u64 {
        word.wrapping_sub(all(bound)) & !word & all(0x80)
    }
    // The same for bytes that are equal to `byte`, ignoring the bits in `either`.
    const fn equal(word: u64, byte: u8, either: u8) -> u64 {
        below((word ^ all(byte)) & !all(either), 1)
    }
    let word = u64::from_le_bytes(word);
    let marks = below(word, b' ')
        | equal(word, b'"', b'"' ^ b'&')
        | equal(word, b'<', b'<' ^ b'>')
        | equal(word, b'\\', 0)
        | equal(word, 0xe2, 0);
    (marks.trailing_zeros() / u8::BITS) as usize
}

/// Writes the content of a string with the escapes of Go's `encoding/json`.
fn escaped<W: ?Sized + Write>(mut bytes: &[u8], out: &mut W) -> io::Result<()> {
    loop {
        let (plain, rest) = bytes.split_at(plain_len(bytes));
        out.write_all(plain)?;
        let Some(&byte) = rest.first() else {
            return Ok(());
        };
        let mut len = 1;
        match byte {
            b'"' => out.write_all(br#"\""#)?,
            b'\\' => out.write_all(br"\\")?,
            0x08 => out.write_all(br"\b")?,
            0x0c => out.write_all(br"\f")?,
            b'\n' => out.write_all(br"\n")?,
            b'\r' => out.write_all(br"\r")?,
            b'\t' => out.write_all(br"\t")?,
            0xe2 => {
                len = 3.min(rest.len());
                match &rest[..len] {
                    b"\xe2\x80\xa8" => out.write_all(br"\u2028")?,
                    b"\xe2\x80\xa9" => out.write_all(br"\u2029")?,
                    other => out.write_all(other)?,
                }
            }
            _ => write!(out, "\\u{byte:04x}")?,
        }
        bytes = &rest[len..];
    }
}

/// The style of Go's `encoding/json`: HTML and line separators escaped, floats in their shortest form, without a zero
/// fraction.
struct Go;

impl Formatter for Go {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        escaped(fragment.as_bytes(), out)
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        let byte = match escape {
            CharEscape::Quote => b'"',
            CharEscape::ReverseSolidus => b'\\',
            CharEscape::Solidus => b'/',
            CharEscape::Backspace => 0x08,
            CharEscape::FormFeed => 0x0c,
            CharEscape::LineFeed => b'\n',
            CharEscape::CarriageReturn => b'\r',
            CharEscape::Tab => b'\t',
            CharEscape::AsciiControl(byte) => byte,
        };
        escaped(&[byte], out)
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

/// Indents JSON with two spaces, like Go's `json.Indent`: `{}` and `[]` stay on one line, strings are unchanged. The
/// JSON may be split into pieces at any byte.
#[derive(Clone, Debug, Default)]
pub struct Indenter {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Whether the last token was an opening bracket, which may be followed by its closing one.
    opened: bool,
}

impl Indenter {
    /// Indents a whole document. Malformed JSON gives some output with all its bytes.
    pub fn indent(json: &[u8]) -> Bytes {
        let mut out = Vec::with_capacity(json.len() * 2);
        Self::default().append(json, &mut out);
        out.into()
    }

    /// Indents and appends the next piece.
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

    /// Handles a byte outside of strings.
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

fn line(out: &mut Vec<u8>, depth: usize) {
    out.push(b'\n');
    out.extend(std::iter::repeat_n(b' ', depth * 2));
}
