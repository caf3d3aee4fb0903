//! Writes the blocks of a YAML document while its values arrive, in any order of their keys.
//!
//! No tree of values is built. The lines of a field are moved to their place when its map ends; they have their final
//! indentation from the start.

use std::fmt;
use std::ops::Range;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Number, Value};

use super::super::encode::Encoder;
use super::super::limits::MAX_DEPTH;
use super::text::{is_block, pad, write_block, write_text};

/// Writes one value as a YAML document or as an item of a list, with sorted keys. The last of fields with the same
/// name is used.
///
/// A value is a scalar, or begins with [`begin_map`](Self::begin_map) or [`begin_list`](Self::begin_list); each value
/// of a map follows its [`key`](Self::key).
///
/// ```
/// use apiloom_meta::codec::YamlWriter;
/// let mut out = Vec::new();
/// let mut writer = YamlWriter::document(&mut out);
/// writer.begin_map();
/// writer.key("b");
/// writer.json(br#"{"y":["no"],"x":{}}"#);
/// writer.key("a");
/// writer.integer(1);
/// writer.end_map();
/// writer.finish()?;
/// assert_eq!(out, b"a: 1\nb:\n  x: {}\n  \"y\":\n  - \"no\"\n");
/// # Ok::<(), apiloom_meta::codec::YamlError>(())
/// ```
#[derive(Debug)]
pub struct YamlWriter<'o> {
    out: &'o mut Vec<u8>,
    /// Length of `out` at the start.
    start: usize,
    /// Whether the value is an item of a list without indentation.
    is_item: bool,
    /// The open maps and lists, the innermost last.
    open: Vec<Block>,
    /// Fields of all open maps.
    fields: Vec<Field>,
    /// Names of the fields, concatenated.
    names: String,
    /// Buffer for the lines of a map that is being sorted.
    unsorted: Vec<u8>,
    /// The field whose value is written separately; later the end of its line.
    gap: Option<Gap>,
    problem: Option<YamlError>,
}

/// Error: the document exceeds 127 levels of nesting, or part of it is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the document nests too deep, or is no JSON")]
pub struct YamlError;

#[derive(Debug)]
struct Block {
    is_map: bool,
    indent: usize,
    /// Start of its first line; `None` as long as it is empty.
    start: Option<usize>,
    /// Index of its first field, for a map.
    first_field: usize,
}

#[derive(Clone, Debug)]
struct Field {
    name: Range<usize>,
    /// Start of its lines.
    at: usize,
}

#[derive(Clone, Copy, Debug)]
enum Gap {
    Field(usize),
    At(usize),
}

/// Position of the next value. The number is the indentation of the map or list around it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Field(usize),
    Item(usize),
}

impl<'o> YamlWriter<'o> {
    /// Starts a document, which is appended to `out`.
    pub fn document(out: &'o mut Vec<u8>) -> Self {
        Self::new(out, false)
    }

    /// Starts an item of a list without indentation, which is appended to `out`.
    pub fn item(out: &'o mut Vec<u8>) -> Self {
        Self::new(out, true)
    }

    fn new(out: &'o mut Vec<u8>, is_item: bool) -> Self {
        Self {
            start: out.len(),
            out,
            is_item,
            open: Vec::new(),
            fields: Vec::new(),
            names: String::new(),
            unsorted: Vec::new(),
            gap: None,
            problem: None,
        }
    }

    /// Ends the document. Returns the position of the value that [`gap`](Self::gap) omitted.
    ///
    /// # Errors
    /// [`YamlError`]; then nothing is appended.
    pub fn finish(self) -> Result<Option<usize>, YamlError> {
        if let Some(problem) = self.problem {
            self.out.truncate(self.start);
            return Err(problem);
        }
        Ok(match self.gap {
            Some(Gap::At(at)) => Some(at),
            Some(Gap::Field(_)) | None => None,
        })
    }

    /// Begins a map.
    pub fn begin_map(&mut self) {
        self.begin(true);
    }

    /// Begins a list.
    pub fn begin_list(&mut self) {
        self.begin(false);
    }

    /// Writes the key of the next value of a map.
    pub fn key(&mut self, name: &str) {
        let Some(indent) = self.begin_line() else {
            return;
        };
        let start = self.names.len();
        self.names.push_str(name);
        self.fields.push(Field {
            name: start..self.names.len(),
            at: self.out.len(),
        });
        pad(self.out, indent);
        write_text(self.out, name);
        self.out.push(b':');
    }

    /// Ends a map.
    pub fn end_map(&mut self) {
        let Some(block) = self.open.pop() else {
            return;
        };
        if block.start.is_none() {
            return self.scalar(|out, _| out.extend_from_slice(b"{}"));
        }
        self.sort(block.first_field);
        self.end(&block);
    }

    /// Ends a list.
    pub fn end_list(&mut self) {
        match self.open.pop() {
            Some(block) if block.start.is_some() => self.end(&block),
            Some(_) => self.scalar(|out, _| out.extend_from_slice(b"[]")),
            None => {}
        }
    }

    /// Writes null.
    pub fn null(&mut self) {
        self.scalar(|out, _| out.extend_from_slice(b"null"));
    }

    /// Writes a boolean.
    pub fn boolean(&mut self, value: bool) {
        let text: &[u8] = if value { b"true" } else { b"false" };
        self.scalar(|out, _| out.extend_from_slice(text));
    }

    /// Writes an integer.
    pub fn integer(&mut self, value: i64) {
        self.scalar(|out, _| Encoder::append_json(&value, out));
    }

    fn unsigned(&mut self, value: u64) {
        self.scalar(|out, _| Encoder::append_json(&value, out));
    }

    fn float(&mut self, value: f64) {
        self.scalar(|out, _| write_float(out, value));
    }

    fn number(&mut self, number: &Number) {
        match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => self.integer(value),
            (None, Some(value)) => self.unsigned(value),
            (None, None) => self.float(number.as_f64().unwrap_or_default()),
        }
    }

    /// Writes a string.
    pub fn text(&mut self, text: &str) {
        self.scalar(|out, indent| {
            if is_block(text) {
                write_block(out, text, indent);
            } else {
                write_text(out, text);
            }
        });
    }

    /// Omits a value of the outermost map, which is inserted later at the position that [`finish`](Self::finish)
    /// returns.
    pub fn gap(&mut self) {
        if self.open.len() == 1 {
            self.gap = self.fields.len().checked_sub(1).map(Gap::Field);
        }
    }

    /// Writes a JSON value in memory.
    pub fn value(&mut self, value: &Value) {
        if self.problem.is_some() {
            return;
        }
        match value {
            Value::Null => self.null(),
            Value::Bool(value) => self.boolean(*value),
            Value::Number(number) => self.number(number),
            Value::String(text) => self.text(text),
            Value::Array(items) => {
                self.begin_list();
                items.iter().for_each(|item| self.value(item));
                self.end_list();
            }
            Value::Object(fields) => {
                self.begin_map();
                for (name, value) in fields {
                    self.key(name);
                    self.value(value);
                }
                self.end_map();
            }
        }
    }

    /// Writes a value from its JSON.
    pub fn json(&mut self, json: &[u8]) {
        self.json_without(json, &[]);
    }

    /// Writes an object from its JSON, without some of the outermost fields.
    pub fn json_without(&mut self, json: &[u8], without: &[&str]) {
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let transcode = Transcode {
            writer: self,
            without,
        };
        let copied = transcode.deserialize(&mut deserializer);
        if copied.and_then(|()| deserializer.end()).is_err() {
            self.problem = Some(YamlError);
        }
    }

    fn place(&self) -> Place {
        match self.open.last() {
            Some(block) if block.is_map => Place::Field(block.indent),
            Some(block) => Place::Item(block.indent),
            None if self.is_item => Place::Item(0),
            None => Place::Root,
        }
    }

    fn begin(&mut self, is_map: bool) {
        let place = self.place();
        if matches!(place, Place::Item(_)) {
            self.begin_line();
        }
        if self.open.len() == MAX_DEPTH {
            self.problem = Some(YamlError);
        }
        let indent = match place {
            Place::Root => 0,
            Place::Field(indent) if is_map => indent + 2,
            // Lists have the indentation of their key, as in Kubernetes.
            Place::Field(indent) => indent,
            Place::Item(indent) => indent + 2,
        };
        self.open.push(Block {
            is_map,
            indent,
            start: None,
            first_field: self.fields.len(),
        });
    }

    /// Begins the innermost map or list if it has not begun: its first line follows that of its key. Returns its
    /// indentation.
    fn begin_line(&mut self) -> Option<usize> {
        let depth = self.open.len();
        let is_field = depth > 1 && self.open[depth - 2].is_map;
        let block = self.open.last_mut()?;
        if block.start.is_none() {
            if is_field {
                self.out.push(b'\n');
            }
            block.start = Some(self.out.len());
        }
        Some(block.indent)
    }

    /// Writes a scalar on the current line; `write` gets the indentation of lines below it.
    fn scalar(&mut self, write: impl FnOnce(&mut Vec<u8>, usize)) {
        let indent = match self.place() {
            Place::Root => 0,
            Place::Field(indent) => {
                self.out.push(b' ');
                indent + 2
            }
            Place::Item(indent) => {
                self.begin_line();
                pad(self.out, indent);
                self.out.extend_from_slice(b"- ");
                indent + 2
            }
        };
        write(self.out, indent);
        self.out.push(b'\n');
    }

    /// Marks the first line of an ended map or list as an item, if it is one; the line has space for the mark.
    fn end(&mut self, block: &Block) {
        if let (Place::Item(indent), Some(start)) = (self.place(), block.start) {
            // Present, unless the document could not be written.
            if let Some(first) = self.out.get_mut(start + indent) {
                *first = b'-';
            }
        }
    }

    /// Sorts the fields of the innermost map, from this index on, by name.
    fn sort(&mut self, first: usize) {
        let fields = &self.fields[first..];
        let name = |field: &Field| &self.names[field.name.clone()];
        let is_sorted = fields.is_sorted_by(|a, b| name(a) < name(b));
        let begin = fields.first().map_or(self.out.len(), |field| field.at);
        let end_of = |number: usize| {
            fields
                .get(number + 1)
                .map_or(self.out.len(), |next| next.at)
        };
        let gap = match self.gap {
            Some(Gap::Field(number)) if self.open.is_empty() => number.checked_sub(first),
            _ => None,
        };
        let mut gap_at = gap.map(end_of);
        if !is_sorted {
            let mut order: Vec<usize> = (0..fields.len()).collect();
            order.sort_by(|a, b| name(&fields[*a]).cmp(name(&fields[*b])));
            self.unsorted.clear();
            for (at, number) in order.iter().enumerate() {
                let next = order.get(at + 1);
                if next.is_some_and(|next| name(&fields[*next]) == name(&fields[*number])) {
                    continue;
                }
                let lines = fields[*number].at..end_of(*number);
                self.unsorted.extend_from_slice(&self.out[lines]);
                if gap == Some(*number) {
                    gap_at = Some(begin + self.unsorted.len());
                }
            }
            self.out.truncate(begin);
            self.out.extend_from_slice(&self.unsorted);
        }
        if let Some(at) = gap_at {
            self.gap = Some(Gap::At(at));
        }
        if let Some(field) = self.fields.get(first) {
            self.names.truncate(field.name.start);
        }
        self.fields.truncate(first);
    }
}

/// Writes a value from a deserializer.
struct Transcode<'w, 'o, 'f> {
    writer: &'w mut YamlWriter<'o>,
    /// Outermost fields that are omitted.
    without: &'f [&'f str],
}

impl<'de> DeserializeSeed<'de> for Transcode<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Transcode<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        self.writer.null();
        Ok(())
    }
    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.writer.boolean(value);
        Ok(())
    }
    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.writer.integer(value);
        Ok(())
    }
    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.writer.unsigned(value);
        Ok(())
    }
    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.writer.float(value);
        Ok(())
    }
    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.writer.text(text);
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        self.writer.begin_list();
        if self.writer.problem.is_some() {
            return Err(A::Error::custom(YamlError));
        }
        while access
            .next_element_seed(Transcode::of(self.writer))?
            .is_some()
        {}
        self.writer.end_list();
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        self.writer.begin_map();
        if self.writer.problem.is_some() {
            return Err(A::Error::custom(YamlError));
        }
        loop {
            let key = Key {
                writer: self.writer,
                without: self.without,
            };
            match access.next_key_seed(key)? {
                Some(true) => access.next_value_seed(Transcode::of(self.writer))?,
                Some(false) => drop(access.next_value::<IgnoredAny>()?),
                None => break,
            }
        }
        self.writer.end_map();
        Ok(())
    }
}

impl<'w, 'o> Transcode<'w, 'o, '_> {
    fn of(writer: &'w mut YamlWriter<'o>) -> Self {
        Self {
            writer,
            without: &[],
        }
    }
}

/// Writes a key unless it is omitted; returns whether it was.
struct Key<'w, 'o, 'f> {
    writer: &'w mut YamlWriter<'o>,
    without: &'f [&'f str],
}

impl<'de> DeserializeSeed<'de> for Key<'_, '_, '_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_, '_, '_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }
    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        let is_copied = !self.without.contains(&name);
        if is_copied {
            self.writer.key(name);
        }
        Ok(is_copied)
    }
}

/// Writes a float.
fn write_float(out: &mut Vec<u8>, value: f64) {
    // The integer -0 would be read as 0 in YAML.
    if value == 0.0 && value.is_sign_negative() {
        out.extend_from_slice(b"-0.0");
    } else {
        Encoder::append_json(&value, out);
    }
}
