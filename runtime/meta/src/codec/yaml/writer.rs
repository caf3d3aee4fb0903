//! The blocks of a YAML document, written while its values come in, in any order of their keys.
//!
//! No tree of values is built. The lines of a field are put in their place when its map ends: every line has its final
//! indentation from the start, so lines are only moved.

use std::fmt;
use std::ops::Range;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Number, Value};

use super::super::encode::append;
use super::super::limits::MAX_DEPTH;
use super::text::{is_block, pad, write_block, write_text};

/// Writes one value as a YAML document or as an item of a list, with sorted keys. Of fields of the same name the last one
/// counts.
///
/// A value begins by [`begin_map`](Self::begin_map), [`begin_list`](Self::begin_list) or is a scalar; each value of a map
/// follows its [`key`](Self::key).
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
/// # Ok::<(), apiloom_meta::codec::NotWritten>(())
/// ```
#[derive(Debug)]
pub struct YamlWriter<'o> {
    out: &'o mut Vec<u8>,
    /// How long `out` was before.
    start: usize,
    /// Whether the value is an item of a list that stands at the margin.
    is_item: bool,
    /// The maps and lists around the next value, the innermost last.
    open: Vec<Block>,
    /// The fields of all open maps.
    fields: Vec<Field>,
    /// Their names, one after the other.
    names: String,
    /// The lines of a map while they are sorted.
    unsorted: Vec<u8>,
    /// The number of the field whose value is written elsewhere, then where its line ends.
    gap: Option<Gap>,
    problem: Option<NotWritten>,
}

/// The document nests deeper than 127 levels, or a part of it was no JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the document nests too deep, or is no JSON")]
pub struct NotWritten;

#[derive(Debug)]
struct Block {
    is_map: bool,
    indent: usize,
    /// Where its first line begins; `None` as long as it is empty.
    start: Option<usize>,
    /// The number of its first field, for a map.
    first_field: usize,
}

#[derive(Clone, Debug)]
struct Field {
    name: Range<usize>,
    /// Where its lines begin.
    at: usize,
}

#[derive(Clone, Copy, Debug)]
enum Gap {
    Field(usize),
    At(usize),
}

/// Where the next value stands. The number is the indentation of the map or list around it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Field(usize),
    Item(usize),
}

impl<'o> YamlWriter<'o> {
    /// Appends a document.
    pub fn document(out: &'o mut Vec<u8>) -> Self {
        Self::new(out, false)
    }

    /// Appends an item of a list that stands at the margin.
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

    /// Ends the document. Gives where the value stands that [`gap`](Self::gap) left out.
    ///
    /// # Errors
    /// [`NotWritten`]; nothing was appended then.
    pub fn finish(self) -> Result<Option<usize>, NotWritten> {
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

    /// The name of the next value of a map.
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

    /// Null.
    pub fn null(&mut self) {
        self.scalar(|out, _| out.extend_from_slice(b"null"));
    }

    /// A boolean.
    pub fn boolean(&mut self, value: bool) {
        let text: &[u8] = if value { b"true" } else { b"false" };
        self.scalar(|out, _| out.extend_from_slice(text));
    }

    /// An integer.
    pub fn integer(&mut self, value: i64) {
        self.scalar(|out, _| append(&value, out));
    }

    fn unsigned(&mut self, value: u64) {
        self.scalar(|out, _| append(&value, out));
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

    /// A text.
    pub fn text(&mut self, text: &str) {
        self.scalar(|out, indent| {
            if is_block(text) {
                write_block(out, text, indent);
            } else {
                write_text(out, text);
            }
        });
    }

    /// Leaves out a value of the outermost map: it is put there afterwards, where [`finish`](Self::finish) says.
    pub fn gap(&mut self) {
        if self.open.len() == 1 {
            self.gap = self.fields.len().checked_sub(1).map(Gap::Field);
        }
    }

    /// A value in memory.
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

    /// A value of which there is the JSON.
    pub fn json(&mut self, json: &[u8]) {
        self.json_without(json, &[]);
    }

    /// The same without some of the outermost fields.
    pub fn json_without(&mut self, json: &[u8], without: &[&str]) {
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let transcode = Transcode {
            writer: self,
            without,
        };
        let copied = transcode.deserialize(&mut deserializer);
        if copied.and_then(|()| deserializer.end()).is_err() {
            self.problem = Some(NotWritten);
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
            self.problem = Some(NotWritten);
        }
        let indent = match place {
            Place::Root => 0,
            Place::Field(indent) if is_map => indent + 2,
            // Lists stand at the indentation of their key, as Kubernetes prints them.
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

    /// Makes sure that the innermost map or list has begun: its first line ends that of its key. Gives its indentation.
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

    /// Writes a value without lines of its own; the number is the indentation of what stands below it.
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

    /// Marks an ended map or list as an item if it is one: its first line has room for that.
    fn end(&mut self, block: &Block) {
        if let (Place::Item(indent), Some(start)) = (self.place(), block.start) {
            // It is there, unless the document could not be written.
            if let Some(first) = self.out.get_mut(start + indent) {
                *first = b'-';
            }
        }
    }

    /// Brings the fields of the innermost map, from this number on, in the order of their names.
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

/// Copies a value from a deserializer to a writer.
struct Transcode<'w, 'o, 'f> {
    writer: &'w mut YamlWriter<'o>,
    /// The fields of the outermost map that are left out.
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
            return Err(A::Error::custom(NotWritten));
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
            return Err(A::Error::custom(NotWritten));
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

/// Copies a key unless it is left out; says whether it was.
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

/// A number that is no integer.
fn write_float(out: &mut Vec<u8>, value: f64) {
    // The integer -0 is 0 in YAML.
    if value == 0.0 && value.is_sign_negative() {
        out.extend_from_slice(b"-0.0");
    } else {
        append(&value, out);
    }
}
