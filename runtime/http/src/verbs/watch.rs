//! Watches: a stream of events, one document each.
//!
//! The body is a stream that the connection polls: it is not polled while the client does not read. The registry
//! decides what then happens to the events, and when the watch ends.

use std::collections::VecDeque;

use apiloom_meta::ApiError;
use apiloom_meta::codec::Encoder;
use apiloom_meta::kind::Verb;
use apiloom_meta::kind::protobuf::STATUS;
use apiloom_meta::selector::FieldSelector;
use apiloom_meta::selector::field::FieldRequirement;
use apiloom_registry::{Document, ListOptions, WatchEvent, WatchEventKind, WatchEvents};
use bytes::Bytes;
use futures_util::{FutureExt, Stream};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};

use super::call::ResourceCall;
use crate::observation::metrics;
use crate::request::params::{ListUse, list_options};
use crate::response::{Body, CutOff, IsWatch};
use crate::shape::encode::Reply;
use crate::shape::error::status;
use crate::shape::event_key::EventKey;
use crate::shape::form::Form;
use crate::shape::form_writer::FormWriter;
use crate::shape::format::{Sink, StreamWriter};
use crate::streams::shutdown_signal::{AnySignal, ShutdownSignal};
use crate::streams::websocket;

/// Size in bytes up to which events that are ready together are sent in one piece.
const FRAME_BYTES: usize = 32 * 1024;

/// Maximum size of an object whose encoded events are kept for other watchers.
const SHARED_BYTES: usize = 16 * 1024;

/// Responds with 200 and a stream of events. `name` is set for the deprecated prefix `watch/` on an item.
pub(crate) async fn watch(call: ResourceCall<'_>) -> Result<Response<Body>, ApiError> {
    // Order of errors: no acceptable format, invalid options, unsupported combinations of a watch.
    let reply = call.reply;
    let read = || list_options(call.query, ListUse::Watch);
    let bytes = call.query.bytes();
    let mut options = call
        .endpoint
        .resource()
        .read_query(call.ctx, bytes, read)
        .await?;
    if !call.name.is_empty() {
        select_name(&mut options, call.name)?;
    }
    let def = call.endpoint.def();
    if !def.has_verb(Verb::Watch) {
        return Err(ApiError::method_not_supported(
            &def.group_resource(),
            "watch",
        ));
    }
    let stream = reply.answer.stream()?;
    let events = call
        .endpoint
        .reads()
        .watch(call.ctx, call.namespace, &options)
        .await?;
    let sent = call
        .metrics
        .watch_events(&def.group, &def.version, &def.plural);
    let writer = EventWriter {
        form: reply.form(),
        stream,
        sent,
        rendered: EventKey::new(reply.answer.form, stream),
        reply,
        sent_columns: false,
    };
    // A WebSocket message has one event.
    let frame_bytes = if websocket::is_requested(call.request) {
        0
    } else {
        FRAME_BYTES
    };
    let ended = ShutdownSignal::from(call.endpoint.ended());
    let stopping = AnySignal::of([call.stopping, ended]);
    let frames = frames(events, writer, stopping, frame_bytes);
    Ok(respond(stream, frames))
}

fn respond(
    stream: &dyn StreamWriter,
    frames: impl Stream<Item = Result<Frame<Bytes>, CutOff>> + Send + 'static,
) -> Response<Body> {
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(stream.media_type()));
    let has_lines = stream.has_lines();
    response.extensions_mut().insert(IsWatch { has_lines });
    response
}

/// Watches one object, by adding its name to the field selector.
fn select_name(options: &mut ListOptions, name: &str) -> Result<(), ApiError> {
    if options.field_selector.is_everything() {
        let named = FieldRequirement {
            field: "metadata.name".to_owned(),
            equals: true,
            value: name.to_owned(),
        };
        options.field_selector = FieldSelector::new(vec![named]);
        return Ok(());
    }
    if options.field_selector.requires("metadata.name") == Some(name) {
        return Ok(());
    }
    Err(ApiError::bad_request(
        "fieldSelector metadata.name doesn't match requested name",
    ))
}

/// Pieces of the body, of about `frame_bytes` and at least one event. The stream ends with an ERROR event, or when
/// `stopping` completes: the server shuts down, or the resource is no longer served.
fn frames(
    events: WatchEvents,
    writer: EventWriter,
    stopping: impl Future<Output = ()> + Send,
    frame_bytes: usize,
) -> impl Stream<Item = Result<Frame<Bytes>, CutOff>> {
    // In one box, because the stream moves its state for each item.
    let running = Box::new((events, writer, Box::pin(stopping)));
    let state = (VecDeque::new(), Some(running));
    futures_util::stream::unfold(state, move |(mut made, running)| async move {
        if let Some(bytes) = made.pop_front() {
            return Some((Ok(Frame::data(bytes)), (made, running)));
        }
        let mut running = running?;
        let (events, writer, stopping) = &mut *running;
        let first = tokio::select! {
            biased;
            () = stopping => None,
            first = events.next() => first,
        };
        let mut out = Pieces::default();
        let mut goes_on = writer.write(first?, &mut out);
        while goes_on && out.len() < frame_bytes && events.is_ready() {
            match events.next().now_or_never() {
                Some(next) => goes_on = next.is_some_and(|next| writer.write(next, &mut out)),
                None => break,
            }
        }
        let frame = Ok(Frame::data(out.into_first(&mut made)));
        Some((frame, (made, goes_on.then_some(running))))
    })
}

/// The events of one piece of the body: usually one, whose bytes are shared with other watchers.
#[derive(Default)]
struct Pieces {
    /// Frames that come first: large objects of the cache, with the bytes before them.
    large: Vec<Bytes>,
    /// The first event, shared, as long as it is the only one.
    shared: Bytes,
    own: Vec<u8>,
}

impl Pieces {
    fn len(&self) -> usize {
        let large: usize = self.large.iter().map(Bytes::len).sum();
        large + self.shared.len() + self.own.len()
    }

    fn push(&mut self, event: Bytes) {
        match self.len() {
            0 => self.shared = event,
            _ => self.own().extend_from_slice(&event),
        }
    }

    /// Adds an object without a copy, after the bytes written so far.
    fn push_large(&mut self, object: Bytes) {
        let before = std::mem::take(self.own());
        self.large.extend([before.into(), object]);
    }

    /// The buffer to append to, after the existing bytes.
    fn own(&mut self) -> &mut Vec<u8> {
        self.own
            .extend_from_slice(&std::mem::take(&mut self.shared));
        &mut self.own
    }

    /// Returns the first frame, and adds the following ones to `others`.
    fn into_first(self, others: &mut VecDeque<Bytes>) -> Bytes {
        let last = if self.own.is_empty() {
            self.shared
        } else {
            self.own.into()
        };
        if self.large.is_empty() {
            return last;
        }
        others.extend(self.large);
        others.push_back(last);
        others.pop_front().unwrap_or_default()
    }
}

/// Writes events in the negotiated form and format.
struct EventWriter {
    reply: Reply,
    form: FormWriter,
    stream: &'static dyn StreamWriter,
    sent: metrics::WatchEvents,
    rendered: EventKey,
    /// Whether the columns of a Table were sent; they are sent once per watch.
    sent_columns: bool,
}

impl EventWriter {
    /// Writes an event; returns whether others may follow.
    fn write(&mut self, event: Result<WatchEvent, ApiError>, out: &mut Pieces) -> bool {
        match &event {
            Ok(event) => self.write_event(event, out),
            Err(error) => self.write_error(error, out.own()),
        }
        event.is_ok()
    }

    fn write_event(&mut self, event: &WatchEvent, out: &mut Pieces) {
        self.sent.sent();
        let columns = !std::mem::replace(&mut self.sent_columns, true);
        let line = self.is_shared(event).then(|| {
            let number = self.rendered.number(event.kind, columns);
            let max_age = self.rendered.max_age();
            self.reply.endpoint.encoding(event, number, max_age, || {
                let mut line = Vec::new();
                self.write_document(event, columns, &mut line);
                line
            })
        });
        if let Some(line) = line.flatten() {
            return out.push(line);
        }
        // Large objects are not copied for each of many watchers, some of which may not read.
        if let Document::Encoded(encoded) = &event.object
            && self.reply.answer.form == Form::Object
            && encoded.len() > SHARED_BYTES
            && let Some(end) = self.stream.begin_json_event(name(event.kind), out.own())
        {
            out.push_large(encoded.shared());
            return out.own().extend_from_slice(end);
        }
        self.write_document(event, columns, out.own());
    }

    /// Whether the encoded event is kept for other watchers; large objects are sent from the cache instead.
    fn is_shared(&self, event: &WatchEvent) -> bool {
        match &event.object {
            Document::Encoded(encoded)
                if self.reply.answer.form == Form::Object && self.stream.sends_json() =>
            {
                encoded.len() <= SHARED_BYTES
            }
            _ => true,
        }
    }

    fn write_document(&self, event: &WatchEvent, columns: bool, out: &mut Vec<u8>) {
        let json = event.object.json(self.reply.endpoint.schema());
        // Other forms can be much smaller than their objects, so they are kept.
        let json_bytes = match self.form {
            FormWriter::Object(_) | FormWriter::Sorted => json.whole().len(),
            FormWriter::Table(_) | FormWriter::Partial(_) => 0,
        };
        let form = &self.form;
        let show = |out: &mut dyn Sink| form.write(&json, columns, out);
        self.stream.event(name(event.kind), &show, json_bytes, out);
    }

    fn write_error(&self, error: &ApiError, out: &mut Vec<u8>) {
        let json = Encoder::json(&status(error));
        let show = |out: &mut dyn Sink| {
            out.describe(&STATUS);
            out.json(&json);
        };
        self.stream.event("ERROR", &show, 0, out);
    }
}

fn name(kind: WatchEventKind) -> &'static str {
    match kind {
        WatchEventKind::Added => "ADDED",
        WatchEventKind::Modified => "MODIFIED",
        WatchEventKind::Deleted => "DELETED",
        WatchEventKind::Bookmark => "BOOKMARK",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(selector: &str) -> ListOptions {
        ListOptions {
            field_selector: FieldSelector::parse(selector).expect("parses"),
            ..ListOptions::default()
        }
    }

    #[test]
    fn watching_an_item_selects_its_name() {
        let mut options = options("");
        select_name(&mut options, "a,b").expect("fine");
        assert_eq!(
            options.field_selector.requires("metadata.name"),
            Some("a,b")
        );
    }

    #[test]
    fn watching_an_item_agrees_with_the_selector() {
        assert_eq!(select_name(&mut options("metadata.name=a"), "a"), Ok(()));
        for selector in ["metadata.name=b", "spec.x=a"] {
            let error = select_name(&mut options(selector), "a").expect_err(selector);
            assert_eq!(
                error.message,
                "fieldSelector metadata.name doesn't match requested name"
            );
        }
    }
}
