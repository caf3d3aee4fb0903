//! Protobuf, for the kinds with a description of their messages, and for the metadata of all.
//!
//! Bodies become the JSON that the same client would send, and documents are converted from JSON when they are written
//! (`apiloom_meta::codec`): all other code reads and writes JSON only.

use std::convert::Infallible;

use apiloom_meta::ApiError;
use apiloom_meta::codec::{
    self, InvalidText, ProtobufBody, ProtobufError, append_protobuf, append_protobuf_body,
    append_protobuf_event, append_protobuf_item, begin_protobuf_list, end_protobuf_body,
    protobuf_item_bytes,
};
use apiloom_meta::kind::ProtobufMessage;
use apiloom_meta::kind::protobuf::DELETE_OPTIONS;
use apiloom_registry::{Catalog, FieldValidation, Json};
use bytes::Bytes;
use serde_json::Value;

use super::json::JsonSink;
use super::write::{Format, ListWriter, Show, Sink, StreamWriter, Writer};

const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

const STREAM_TYPE: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// Maximum size of the JSON of a body, as a multiple of the body: that of a text of which every character is escaped.
const MAX_EXPANSION: usize = 6;

/// Size of JSON that every body may have.
const MIN_JSON_BYTES: usize = 256 * 1024;

/// Maximum size of the JSON of a body: twice that of the largest body.
const MAX_JSON_BYTES: usize = 6 * 1024 * 1024;

/// Protobuf.
pub(crate) struct Protobuf;

impl Format for Protobuf {
    fn media_type(&self) -> &'static str {
        MEDIA_TYPE
    }

    fn read(
        &self,
        body: Bytes,
        catalog: &Catalog,
        own: Option<&'static ProtobufMessage>,
    ) -> Result<Option<(Bytes, codec::Format)>, ApiError> {
        let find = |api_version: &str, kind: &str| catalog.protobuf(api_version, kind);
        let json = to_json(&body, find, own)?;
        Ok(json.map(|json| (json.into(), codec::Format::Json)))
    }

    fn validation(&self, _asked: FieldValidation) -> FieldValidation {
        // As in kube-apiserver: unknown fields have numbers, but no names.
        FieldValidation::Ignore
    }

    fn writer(&self) -> Option<&'static dyn Writer> {
        Some(&Protobuf)
    }
}

/// Converts a body to JSON: DeleteOptions, or an object whose message `find_message` returns for its `apiVersion` and
/// kind. A body without a type is of the kind that the request is for, whose message is `own`. `None` for other kinds.
///
/// # Errors
/// BadRequest if the body cannot be decoded, RequestEntityTooLarge if its JSON would be too large.
fn to_json(
    body: &[u8],
    find_message: impl FnOnce(&str, &str) -> Option<&'static ProtobufMessage>,
    own: Option<&'static ProtobufMessage>,
) -> Result<Option<Vec<u8>>, ApiError> {
    static NOTHING: ProtobufMessage = ProtobufMessage::new("Unknown");
    let max_bytes = body.len().saturating_mul(MAX_EXPANSION);
    let max_bytes = max_bytes.clamp(MIN_JSON_BYTES, MAX_JSON_BYTES);
    let error = |error: ProtobufError| match error {
        ProtobufError::TooLarge(max_bytes) => ApiError::too_large(max_bytes),
        error => ApiError::bad_request(error.to_string()),
    };
    let body = ProtobufBody::parse(body).map_err(error)?;
    let message = match (&*body.api_version, &*body.kind) {
        (_, "") => own,
        (_, "DeleteOptions") => Some(&DELETE_OPTIONS),
        (api_version, kind) => find_message(api_version, kind)
            // Of an unknown kind the type is enough: it is refused by it.
            .or(own.map(|_| &NOTHING)),
    };
    let Some(message) = message else {
        return Ok(None);
    };
    let json = body.to_json(message, InvalidText::Refuse, max_bytes);
    json.map(Some).map_err(error)
}

impl Writer for Protobuf {
    fn name(&self) -> &'static str {
        "protobuf"
    }

    fn media_type(&self) -> &'static str {
        MEDIA_TYPE
    }

    fn document(&self, show: Show<'_>, json_bytes: usize) -> Bytes {
        // The message is usually shorter than the JSON.
        let mut out = Vec::with_capacity(json_bytes);
        ProtobufSink::show(Part::Body, show, &mut out);
        out.into()
    }

    fn list(&self, items_bytes: u64) -> Box<dyn ListWriter> {
        Box::new(List { items_bytes })
    }

    fn item_bytes(&self, show: Show<'_>) -> Option<u64> {
        let mut message = Vec::new();
        ProtobufSink::show(Part::Message, show, &mut message);
        Some(protobuf_item_bytes(message.len() as u64))
    }

    fn stream(&self) -> Option<&'static dyn StreamWriter> {
        Some(&Protobuf)
    }

    fn indented(&self) -> &'static dyn Writer {
        &Protobuf
    }

    fn is_costly(&self) -> bool {
        false
    }

    fn has_tables(&self) -> bool {
        false
    }

    fn needs_message(&self) -> bool {
        true
    }
}

impl StreamWriter for Protobuf {
    fn media_type(&self) -> &'static str {
        STREAM_TYPE
    }

    fn listed_type(&self) -> &'static str {
        STREAM_TYPE
    }

    fn has_lines(&self) -> bool {
        false
    }

    fn event(&self, kind: &str, show: Show<'_>, json_bytes: usize, out: &mut Vec<u8>) {
        out.reserve(json_bytes);
        let start = out.len();
        out.extend_from_slice(&[0; size_of::<u32>()]);
        let Ok(()) = append_protobuf_event(kind, out, |out| {
            ProtobufSink::show(Part::Body, show, out);
            Ok::<(), Infallible>(())
        });
        // An event is much smaller than 4 GiB.
        let len = u32::try_from(out.len() - start - size_of::<u32>()).unwrap_or(u32::MAX);
        out[start..start + size_of::<u32>()].copy_from_slice(&len.to_be_bytes());
    }
}

/// Writer of a list: its message begins with the size of all items.
struct List {
    items_bytes: u64,
}

impl ListWriter for List {
    fn begin(&mut self, show: Show<'_>, out: &mut Vec<u8>) {
        ProtobufSink::show(Part::Head(self.items_bytes), show, out);
    }

    fn item(&mut self, show: Show<'_>, out: &mut Vec<u8>) {
        append_protobuf_item(out, |out| ProtobufSink::show(Part::Message, show, out));
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        end_protobuf_body(out);
    }
}

/// The part of a body that a document is written as.
#[derive(Clone, Copy)]
enum Part {
    /// A whole body.
    Body,
    /// The message alone.
    Message,
    /// The part of a list before its items, which have this size.
    Head(u64),
}

/// A sink that converts a document when its JSON is complete. That of an object from the cache is one event, and is
/// converted from there.
struct ProtobufSink<'o> {
    part: Part,
    message: Option<&'static ProtobufMessage>,
    /// The JSON of a document that has several events.
    json: Vec<u8>,
    needs_comma: bool,
    /// Number of the maps and lists that have begun and not ended.
    depth: usize,
    out: &'o mut Vec<u8>,
}

impl<'o> ProtobufSink<'o> {
    fn show(part: Part, show: Show<'_>, out: &'o mut Vec<u8>) {
        show(&mut Self {
            part,
            message: None,
            json: Vec::new(),
            needs_comma: false,
            depth: 0,
            out,
        });
    }

    /// Writes an event of a document as JSON, and converts the document if it is complete.
    fn write(&mut self, write: impl FnOnce(&mut dyn Sink)) {
        let mut sink = JsonSink::after(self.needs_comma, &mut self.json);
        write(&mut sink);
        self.needs_comma = sink.needs_comma();
        if self.depth == 0 {
            let json = std::mem::take(&mut self.json);
            self.convert(&json);
        }
    }

    fn convert(&mut self, json: &[u8]) {
        static NOTHING: ProtobufMessage = ProtobufMessage::new("Unknown");
        // Negotiation offers this format only for documents with a message.
        let message = self.message.unwrap_or(&NOTHING);
        let converted = match self.part {
            Part::Body => append_protobuf_body(json, message, self.out).map(|_| ()),
            Part::Message => append_protobuf(json, message, self.out).map(|_| ()),
            Part::Head(items_bytes) => begin_protobuf_list(json, items_bytes, self.out),
        };
        if let Err(error) = converted {
            tracing::error!(%error, "a document cannot be sent in Protobuf");
        }
    }
}

impl Sink for ProtobufSink<'_> {
    fn describe(&mut self, message: &'static ProtobufMessage) {
        self.message = Some(message);
    }
    fn begin_map(&mut self) {
        self.depth += 1;
        self.write(|sink| sink.begin_map());
    }
    fn key(&mut self, name: &'static str) {
        self.write(|sink| sink.key(name));
    }
    fn end_map(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.write(|sink| sink.end_map());
    }
    fn begin_list(&mut self) {
        self.depth += 1;
        self.write(|sink| sink.begin_list());
    }
    fn end_list(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.write(|sink| sink.end_list());
    }
    fn text(&mut self, text: &str) {
        self.write(|sink| sink.text(text));
    }
    fn integer(&mut self, value: i64) {
        self.write(|sink| sink.integer(value));
    }
    fn value(&mut self, value: &Value) {
        self.write(|sink| sink.value(value));
    }
    fn json(&mut self, json: &[u8]) {
        if self.depth == 0 {
            self.convert(json);
        } else {
            self.write(|sink| sink.json(json));
        }
    }
    fn item(&mut self, object: &Json<'_>) {
        // The message has no type anyway.
        self.json(object.whole());
    }
    fn items(&mut self, name: &'static str) {
        self.depth = 0;
        self.write(|sink| {
            sink.items(name);
            sink.end_list();
            sink.end_map();
        });
    }
}

#[cfg(test)]
mod tests;
