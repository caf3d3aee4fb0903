//! Traits of formats: parsing of bodies, and writing of documents in each framing.
//!
//! Formats are independent of the forms. A document is written as the events of a [`Sink`]; for most documents that is
//! one event, the JSON of an object from the cache.

use std::fmt;

use apiloom_meta::codec;
use apiloom_meta::kind::ProtobufMessage;
use apiloom_meta::{ApiError, ListMeta};
use bytes::Bytes;
use serde_json::Value;

use apiloom_registry::{Catalog, FieldValidation, Json};

/// A format for bodies.
pub(crate) trait Format: Sync {
    /// The media type without parameters: `application/json`.
    fn media_type(&self) -> &'static str;

    /// Converts a body to a format from which every kind can be decoded; `None` for a kind without a form in this
    /// format. The catalog has the known kinds; `own` is the Protobuf message of the kind that the request is for.
    ///
    /// # Errors
    /// BadRequest for a malformed body, RequestEntityTooLarge for one that is too large when it is converted.
    fn read(
        &self,
        body: Bytes,
        catalog: &Catalog,
        own: Option<&'static ProtobufMessage>,
    ) -> Result<Option<(Bytes, codec::Format)>, ApiError>;

    /// What becomes of unknown fields, if the client asks for this: a format may drop them before.
    fn validation(&self, asked: FieldValidation) -> FieldValidation {
        asked
    }

    /// The writer of documents; `None` for a format of requests only.
    fn writer(&self) -> Option<&'static dyn Writer>;
}

/// A function that writes a document to a sink. It may be called several times.
pub(crate) type Show<'a> = &'a dyn Fn(&mut dyn Sink);

/// Writes documents in a format.
pub(crate) trait Writer: Send + Sync {
    /// Name of the writer; unique among the writers.
    fn name(&self) -> &'static str;

    /// The `Content-Type` of documents and lists.
    fn media_type(&self) -> &'static str;

    /// Writes one document, with a trailing newline if the format has one. `json_bytes` is the approximate length of
    /// its JSON.
    fn document(&self, show: Show<'_>, json_bytes: usize) -> Bytes;

    /// Starts a list that is written in pieces. `items_bytes` is the sum of [`Writer::item_bytes`] of its items, 0 in a
    /// format that does not need it.
    fn list(&self, items_bytes: u64) -> Box<dyn ListWriter>;

    /// The size of an item of a list; `None` in a format whose lists do not begin with the size of their items.
    fn item_bytes(&self, _show: Show<'_>) -> Option<u64> {
        None
    }

    /// The writer of watch events; `None` for a format without streams.
    fn stream(&self) -> Option<&'static dyn StreamWriter>;

    /// The writer for people, if the format has a separate one, else this writer.
    fn indented(&self) -> &'static dyn Writer;

    /// Whether writing 64 KiB takes about a millisecond, so that it needs a turn.
    fn is_costly(&self) -> bool;

    /// Whether Tables can be written.
    fn has_tables(&self) -> bool {
        true
    }

    /// Whether only documents with a Protobuf message can be written, see [`Sink::describe`].
    fn needs_message(&self) -> bool {
        false
    }

    /// The bytes that follow a document which is sent as JSON from the cache; `None` if the format cannot send it so.
    fn end_of_json(&self) -> Option<&'static [u8]> {
        None
    }
}

/// Writer of one list.
pub(crate) trait ListWriter: Send {
    /// Writes the part before the items. The events of `show` behind [`Sink::items`] are written after the items.
    fn begin(&mut self, show: Show<'_>, out: &mut Vec<u8>);

    /// Writes an item.
    fn item(&mut self, show: Show<'_>, out: &mut Vec<u8>);

    /// Writes the part before an item which is sent as the [`Json::item`] of the cache; false if the format cannot
    /// send it so.
    fn begin_json_item(&mut self, _out: &mut Vec<u8>) -> bool {
        false
    }

    /// Writes the part after the items.
    fn end(&mut self, out: &mut Vec<u8>);
}

/// Writes watch events in a format.
pub(crate) trait StreamWriter: Send + Sync {
    /// The `Content-Type`.
    fn media_type(&self) -> &'static str;

    /// The media type as it is listed in messages.
    fn listed_type(&self) -> &'static str;

    /// Writes an event with its type, such as `ADDED`. `json_bytes` is the approximate length of the document's JSON,
    /// or 0 if unknown.
    fn event(&self, kind: &str, show: Show<'_>, json_bytes: usize, out: &mut Vec<u8>);

    /// Whether events are sent as JSON from the cache, by [`StreamWriter::begin_json_event`].
    fn sends_json(&self) -> bool {
        false
    }

    /// Whether an event ends with a line. Otherwise it begins with its length, in four bytes.
    fn has_lines(&self) -> bool {
        true
    }

    /// Writes the part before a document which is sent as JSON from the cache, and returns the part after it; `None`
    /// if the format cannot send it so.
    fn begin_json_event(&self, _kind: &str, _out: &mut Vec<u8>) -> Option<&'static [u8]> {
        None
    }
}

/// Receives a document as events, in the order of its JSON.
pub(crate) trait Sink {
    /// The Protobuf message of the document that follows, for formats that need it.
    fn describe(&mut self, _message: &'static ProtobufMessage) {}
    /// Begins a map.
    fn begin_map(&mut self);
    /// The key of the next value of a map.
    fn key(&mut self, name: &'static str);
    /// Ends a map.
    fn end_map(&mut self);
    /// Begins a list.
    fn begin_list(&mut self);
    /// Ends a list.
    fn end_list(&mut self);
    /// A text.
    fn text(&mut self, text: &str);
    /// An integer.
    fn integer(&mut self, value: i64);
    /// A JSON value in memory.
    fn value(&mut self, value: &Value);
    /// A value as compact JSON text.
    fn json(&mut self, json: &[u8]);
    /// An object as an item of a list, without `kind` and `apiVersion`, which the list has.
    fn item(&mut self, object: &Json<'_>);
    /// The key of the items of a list, which follow separately. Fields may come after it.
    fn items(&mut self, name: &'static str);
    /// Ends what is told of a list beside its items. It is the last event; the end of the map follows separately.
    fn end_list_head(&mut self) {}
}

impl dyn Sink + '_ {
    /// A field with a string.
    pub(crate) fn text_field(&mut self, name: &'static str, text: &str) {
        self.key(name);
        self.text(text);
    }

    /// The field `metadata` of a list.
    pub(crate) fn list_meta(&mut self, meta: &ListMeta) {
        self.key("metadata");
        self.begin_map();
        let texts = [
            ("selfLink", &meta.self_link),
            ("resourceVersion", &meta.resource_version),
            ("continue", &meta.continue_token),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                self.text_field(name, text);
            }
        }
        if let Some(count) = meta.remaining_item_count {
            self.key("remainingItemCount");
            self.integer(count);
        }
        self.end_map();
    }
}

impl fmt::Debug for dyn Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for dyn Writer {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn Writer {}
