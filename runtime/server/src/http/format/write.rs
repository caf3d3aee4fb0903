//! What a format does for the rest of `http`: it reads bodies, and writes documents in each framing.
//!
//! A format never learns what a document shows. Documents come in as the events of a [`Sink`], most of them one event:
//! the JSON of an object as the cache holds it.

use std::fmt;

use apiloom_meta::codec;
use apiloom_meta::{ApiError, ListMeta};
use bytes::Bytes;
use serde_json::Value;

use crate::registry::Json;

/// A format of bodies.
pub(crate) trait Format: Sync {
    /// `application/json`, without parameters.
    fn media_type(&self) -> &'static str;

    /// The document in a body, in a format that every kind can be decoded from; `None` for a kind that has no such form.
    ///
    /// # Errors
    /// BadRequest for a body in another format.
    fn read(&self, body: Bytes) -> Result<Option<(Bytes, codec::Format)>, ApiError>;

    /// How documents are written; `None` for a format of requests only.
    fn writer(&self) -> Option<&'static dyn Writer>;
}

/// Tells a document to a sink. It may be asked to do so several times.
pub(crate) type Show<'a> = &'a dyn Fn(&mut dyn Sink);

/// How documents are written.
pub(crate) trait Writer: Send + Sync {
    /// Tells this writer from the others.
    fn name(&self) -> &'static str;

    /// The `Content-Type` of documents and lists.
    fn media_type(&self) -> &'static str;

    /// Writes one document, with a newline at its end where the format has one. `json_bytes` is about how long its JSON is.
    fn document(&self, show: Show<'_>, json_bytes: usize) -> Bytes;

    /// Begins a list that is written in pieces.
    fn list(&self) -> Box<dyn ListWriter>;

    /// How a watch is written; `None` for a format without streams.
    fn stream(&self) -> Option<&'static dyn StreamWriter>;

    /// The same format for people, if it has another form for them.
    fn indented(&self) -> &'static dyn Writer;

    /// Whether 64 KiB take about a millisecond to write.
    fn is_costly(&self) -> bool;

    /// What follows a document that is sent as the JSON it already is; `None` if it cannot be.
    fn end_of_json(&self) -> Option<&'static [u8]> {
        None
    }
}

/// One list on its way out.
pub(crate) trait ListWriter: Send {
    /// Writes what precedes the items. The last event of `show` is [`Sink::items`].
    fn begin(&mut self, show: Show<'_>, out: &mut Vec<u8>);

    /// Writes an item.
    fn item(&mut self, show: Show<'_>, out: &mut Vec<u8>);

    /// Writes what precedes the [`Json::item`] of an object that is sent as it is; false if it cannot be.
    fn begin_json_item(&mut self, _out: &mut Vec<u8>) -> bool {
        false
    }

    /// Writes what follows the items.
    fn end(&mut self, out: &mut Vec<u8>);
}

/// Watches in a format.
pub(crate) trait StreamWriter: Send + Sync {
    /// The `Content-Type`.
    fn media_type(&self) -> &'static str;

    /// The media type as clients are told of it.
    fn listed_type(&self) -> &'static str;

    /// Writes an event, `ADDED` for example. `json_bytes` is about how long its document is as JSON, or 0.
    fn event(&self, kind: &str, show: Show<'_>, json_bytes: usize, out: &mut Vec<u8>);

    /// Writes what precedes a document that is sent as the JSON it already is, and gives what follows it; `None` if it
    /// cannot be.
    fn begin_json_event(&self, _kind: &str, _out: &mut Vec<u8>) -> Option<&'static [u8]> {
        None
    }
}

/// Is told a document, in the order of its JSON.
pub(crate) trait Sink {
    /// Begins a map.
    fn begin_map(&mut self);
    /// The name of the next value of a map.
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
    /// A value in memory.
    fn value(&mut self, value: &Value);
    /// A value as compact JSON.
    fn json(&mut self, json: &[u8]);
    /// An object as an item of a list, which says once what its items are.
    fn item(&mut self, object: &Json<'_>);
    /// The field of a list that holds its items, which follow by themselves. It is the last field, and ends the map.
    fn items(&mut self, name: &'static str);
}

impl dyn Sink + '_ {
    /// A field that is a text.
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
