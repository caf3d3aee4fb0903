//! JSON, compact or indented. Objects are sent as the bytes of the cache.

use apiloom_meta::ApiError;
use apiloom_meta::codec::{self, Encoder, Indenter};
use apiloom_meta::kind::ProtobufMessage;
use apiloom_registry::{Catalog, Json as Document};
use bytes::Bytes;
use serde_json::Value;

use super::write::{Format, ListWriter, Show, Sink, StreamWriter, Writer};

/// Compact JSON with a trailing newline.
pub(crate) static JSON: Json = Json { is_indented: false };

/// Indented JSON, for people.
pub(crate) static INDENTED: Json = Json { is_indented: true };

const MEDIA_TYPE: &str = "application/json";

/// Maximum size of an event without its document.
const ENVELOPE_BYTES: usize = 64;

/// The end of an event, after its document.
const EVENT_END: &[u8] = b"}\n";

/// JSON.
pub(crate) struct Json {
    is_indented: bool,
}

impl Format for Json {
    fn media_type(&self) -> &'static str {
        MEDIA_TYPE
    }
    fn read(
        &self,
        body: Bytes,
        _catalog: &Catalog,
        _own: Option<&'static ProtobufMessage>,
    ) -> Result<Option<(Bytes, codec::Format)>, ApiError> {
        Ok(Some((body, codec::Format::Json)))
    }
    fn writer(&self) -> Option<&'static dyn Writer> {
        Some(&JSON)
    }
}

impl Writer for Json {
    fn name(&self) -> &'static str {
        if self.is_indented {
            "indented json"
        } else {
            "json"
        }
    }

    fn media_type(&self) -> &'static str {
        MEDIA_TYPE
    }

    fn document(&self, show: Show<'_>, json_bytes: usize) -> Bytes {
        // One more for the trailing newline.
        let mut out = Vec::with_capacity(json_bytes + 1);
        show(&mut JsonSink::new(&mut out));
        if self.is_indented {
            return Indenter::indent(&out);
        }
        out.push(b'\n');
        out.into()
    }

    fn list(&self, _items_bytes: u64) -> Box<dyn ListWriter> {
        if self.is_indented {
            Box::new(IndentedList::default())
        } else {
            Box::new(List::default())
        }
    }

    fn stream(&self) -> Option<&'static dyn StreamWriter> {
        Some(&JSON)
    }

    fn indented(&self) -> &'static dyn Writer {
        &INDENTED
    }

    fn is_costly(&self) -> bool {
        self.is_indented
    }

    fn end_of_json(&self) -> Option<&'static [u8]> {
        (!self.is_indented).then_some(b"\n")
    }
}

impl StreamWriter for Json {
    fn media_type(&self) -> &'static str {
        MEDIA_TYPE
    }

    fn listed_type(&self) -> &'static str {
        "application/json;stream=watch"
    }

    fn event(&self, kind: &str, show: Show<'_>, json_bytes: usize, out: &mut Vec<u8>) {
        // In one step, with the capacity for all of it.
        if json_bytes > 0 {
            out.reserve(json_bytes + ENVELOPE_BYTES);
        }
        begin_event(kind, out);
        show(&mut JsonSink::new(out));
        out.extend_from_slice(EVENT_END);
    }

    fn sends_json(&self) -> bool {
        true
    }

    fn begin_json_event(&self, kind: &str, out: &mut Vec<u8>) -> Option<&'static [u8]> {
        begin_event(kind, out);
        Some(EVENT_END)
    }
}

fn begin_event(kind: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
}

/// Writer of a compact list.
#[derive(Default)]
struct List {
    has_items: bool,
    /// What follows the items.
    end: Vec<u8>,
}

impl List {
    fn separate(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.has_items, true) {
            out.push(b',');
        }
    }
}

impl ListWriter for List {
    fn begin(&mut self, show: Show<'_>, out: &mut Vec<u8>) {
        let mut sink = JsonSink::new(out);
        show(&mut sink);
        if let Some(gap) = sink.gap {
            self.end = out.split_off(gap);
        }
    }

    fn item(&mut self, show: Show<'_>, out: &mut Vec<u8>) {
        self.separate(out);
        show(&mut JsonSink::new(out));
    }

    fn begin_json_item(&mut self, out: &mut Vec<u8>) -> bool {
        self.separate(out);
        out.push(b'{');
        true
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        out.push(b']');
        out.append(&mut self.end);
        out.extend_from_slice(b"}\n");
    }
}

/// Writer of an indented list.
#[derive(Default)]
struct IndentedList {
    list: List,
    indenter: Indenter,
    /// The compact JSON of the current part, before it is indented.
    compact: Vec<u8>,
}

impl IndentedList {
    fn indent(&mut self, out: &mut Vec<u8>) {
        self.indenter.append(&self.compact, out);
        self.compact.clear();
    }
}

impl ListWriter for IndentedList {
    fn begin(&mut self, show: Show<'_>, out: &mut Vec<u8>) {
        self.list.begin(show, &mut self.compact);
        self.indent(out);
    }

    fn item(&mut self, show: Show<'_>, out: &mut Vec<u8>) {
        self.list.item(show, &mut self.compact);
        self.indent(out);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.list.end(&mut self.compact);
        self.indent(out);
    }
}

/// A sink that appends compact JSON.
pub(super) struct JsonSink<'o> {
    out: &'o mut Vec<u8>,
    /// Whether the next value or key needs a comma before it.
    needs_comma: bool,
    /// Where the items of a list belong.
    gap: Option<usize>,
}

impl<'o> JsonSink<'o> {
    fn new(out: &'o mut Vec<u8>) -> Self {
        Self::after(false, out)
    }

    /// A sink that appends to a part of a document.
    pub(super) fn after(needs_comma: bool, out: &'o mut Vec<u8>) -> Self {
        Self {
            out,
            needs_comma,
            gap: None,
        }
    }

    /// Whether the next value or key needs a comma before it.
    pub(super) fn needs_comma(&self) -> bool {
        self.needs_comma
    }

    /// The buffer, after the comma if one is needed.
    fn value_out(&mut self) -> &mut Vec<u8> {
        if std::mem::replace(&mut self.needs_comma, true) {
            self.out.push(b',');
        }
        self.out
    }

    fn begin(&mut self, bracket: u8) {
        self.value_out().push(bracket);
        self.needs_comma = false;
    }

    fn end(&mut self, bracket: u8) {
        self.out.push(bracket);
        self.needs_comma = true;
    }
}

impl Sink for JsonSink<'_> {
    fn begin_map(&mut self) {
        self.begin(b'{');
    }
    fn key(&mut self, name: &'static str) {
        let out = self.value_out();
        out.push(b'"');
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        self.needs_comma = false;
    }
    fn end_map(&mut self) {
        self.end(b'}');
    }
    fn begin_list(&mut self) {
        self.begin(b'[');
    }
    fn end_list(&mut self) {
        self.end(b']');
    }
    fn text(&mut self, text: &str) {
        Encoder::append_text(text, self.value_out());
    }
    fn integer(&mut self, value: i64) {
        Encoder::append_json(&value, self.value_out());
    }
    fn value(&mut self, value: &Value) {
        let out = self.value_out();
        match value {
            Value::String(text) => Encoder::append_text(text, out),
            value => Encoder::append_json(value, out),
        }
    }
    fn json(&mut self, json: &[u8]) {
        self.value_out().extend_from_slice(json);
    }
    fn item(&mut self, object: &Document<'_>) {
        let out = self.value_out();
        out.push(b'{');
        out.extend_from_slice(object.item());
    }
    fn items(&mut self, name: &'static str) {
        self.key(name);
        self.out.push(b'[');
        self.gap = Some(self.out.len());
        self.needs_comma = true;
    }
}
