//! Objects and lists on their way out: as they are, as a Table, as PartialObjectMetadata; as JSON, indented JSON or YAML.
//!
//! Lists are encoded item by item while the client reads, in every form and format, so that a long list is never held
//! twice.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use apiloom_meta::codec::{Format, Indenter, append_json, encode_json, encode_yaml, indent_json};
use apiloom_meta::{ApiError, ListMeta, Object, ResourceDef, Status, StatusDetails, StatusReason};
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, StreamBody};
use serde_json::Value;

use super::compress::THRESHOLD_BYTES;
use super::error::yaml;
use super::negotiate::{Accepted, MetaVersion, Target};
use super::params::IncludeObject;
use super::response::full;
use super::table::{Tables, write_partial};
use super::turns::take_turn;
use super::{Body, CutOff};
use crate::registry::{Document, Endpoint, Items, Json, Listed, Written};

/// A long answer goes out in pieces of this size: large enough for few system calls, small beside a connection's window,
/// and a multiple of the largest HTTP/2 frame and TLS record, so that none of them is sent half empty.
const PIECE_BYTES: usize = 64 * 1024;

/// An object from this size on goes out of the cache without being copied. Smaller ones are copied together: a frame for
/// each would cost more.
const LARGE_BYTES: usize = 16 * 1024;

/// No more bytes of objects are looked at for a piece: rows of large objects may be short.
const LOOKED_AT_BYTES: usize = 256 * 1024;

/// How this request's objects are answered.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) accepted: Accepted,
    pub(super) include: IncludeObject,
}

impl Reply {
    /// An answer that is one object.
    ///
    /// # Errors
    /// NotAcceptable when a list was asked for.
    pub(super) fn object(
        &self,
        code: StatusCode,
        object: &Object,
    ) -> Result<Response<Body>, ApiError> {
        self.json(code, &Json::of(object, self.endpoint.schema()))
    }

    /// An answer that is an object just written.
    ///
    /// # Errors
    /// NotAcceptable when a list was asked for.
    pub(super) fn written(
        &self,
        code: StatusCode,
        written: &Written,
    ) -> Result<Response<Body>, ApiError> {
        match &written.json {
            Some(json) => self.json(code, json),
            None => self.object(code, &written.object),
        }
    }

    /// An answer that is one object of the registry, which may be encoded already.
    ///
    /// # Errors
    /// NotAcceptable when a list was asked for.
    pub(super) fn document(
        &self,
        code: StatusCode,
        document: &Document,
    ) -> Result<Response<Body>, ApiError> {
        if let Document::Encoded(encoded) = document
            && encoded.len() >= LARGE_BYTES
            && self.accepted.target == Target::Object
            && self.accepted.format == Format::Json
            && !self.accepted.pretty
        {
            let body = Chunks([encoded.shared(), Bytes::from_static(b"\n")].into());
            return Ok(respond(code, "application/json", body.boxed_unsync()));
        }
        self.json(code, &document.json(self.endpoint.schema()))
    }

    fn json(&self, code: StatusCode, json: &Json<'_>) -> Result<Response<Body>, ApiError> {
        if let Target::PartialList(_) = self.accepted.target {
            let kind = &self.endpoint.def().kind;
            return Err(ApiError::new(
                StatusReason::NotAcceptable,
                format!(
                    "you requested PartialObjectMetadataList, but the requested object is not a list ({kind})"
                ),
            ));
        }
        // With room for the newline at the end.
        let mut out = Vec::with_capacity(json.whole().len() + 1);
        self.form().write(json, true, &mut out);
        Ok(self.whole(code, out))
    }

    /// What objects are turned into.
    pub(super) fn form(&self) -> Form {
        match self.accepted.target {
            Target::Object => Form::Object,
            Target::Partial(version) | Target::PartialList(version) => Form::Partial(version),
            Target::Table(version) => {
                Form::Table(Box::new(Tables::new(&self.endpoint, version, self.include)))
            }
        }
    }

    /// The answer to a deletion that left nothing: never converted.
    pub(super) fn deleted(&self, details: StatusDetails) -> Response<Body> {
        let status = Status {
            kind: "Status".to_owned(),
            api_version: "v1".to_owned(),
            metadata: ListMeta::default(),
            status: "Success".to_owned(),
            message: String::new(),
            reason: String::new(),
            details: Some(details),
            code: None,
        };
        self.whole(StatusCode::OK, encode_json(&status).into())
    }

    /// An answer that is a list.
    ///
    /// # Errors
    /// NotAcceptable when a single object was asked for.
    pub(super) async fn list(&self, listed: Listed) -> Result<Response<Body>, ApiError> {
        if let Target::Partial(_) = self.accepted.target {
            let kind = &self.endpoint.def().list_kind;
            return Err(ApiError::new(
                StatusReason::NotAcceptable,
                format!(
                    "you requested PartialObjectMetadata, but the requested object is a list ({kind})"
                ),
            ));
        }
        let pieces = ListPieces::new(self, listed);
        let is_yaml = self.accepted.format == Format::Yaml;
        // A piece takes about a millisecond to make then, during which no other task has the thread.
        let is_costly = is_yaml || self.accepted.pretty || matches!(pieces.form, Form::Table(_));
        let mut pieces: Box<dyn Iterator<Item = Result<Bytes, ApiError>> + Send> =
            match self.accepted.pretty {
                _ if is_yaml => Box::new(pieces),
                true => Box::new(indented(pieces)),
                false => Box::new(pieces.chain(std::iter::once(Ok(Bytes::from_static(b"\n"))))),
            };
        let content_type = match self.accepted.format {
            Format::Yaml => "application/yaml",
            Format::Json => "application/json",
        };
        // What fits into the threshold is sent in one go, with its length; it is never compressed.
        let mut begin = Vec::new();
        let mut len = 0;
        while len <= THRESHOLD_BYTES {
            let turn = if is_costly {
                Some(take_turn().await)
            } else {
                None
            };
            let piece = pieces.next().transpose()?;
            drop(turn);
            match piece {
                Some(piece) => {
                    len += piece.len();
                    begin.push(piece);
                }
                None => {
                    let whole = full(begin.concat().into());
                    return Ok(respond(StatusCode::OK, content_type, whole));
                }
            }
        }
        let pieces = pieces.map(|piece| match piece {
            Ok(bytes) => Ok(Frame::data(bytes)),
            // The client has read a part of the list already; it must not take it for the whole.
            Err(error) => {
                tracing::error!(error = error.message, "a list cannot be sent to its end");
                Err(CutOff::Unfinished)
            }
        });
        let begin = begin.into_iter().map(|bytes| Ok(Frame::data(bytes)));
        let body = if is_costly {
            let rest = futures_util::stream::unfold(pieces, async |mut pieces| {
                let _turn = take_turn().await;
                pieces.next().map(|piece| (piece, pieces))
            });
            StreamBody::new(futures_util::stream::iter(begin).chain(rest)).boxed_unsync()
        } else {
            StreamBody::new(futures_util::stream::iter(begin.chain(pieces))).boxed_unsync()
        };
        Ok(respond(StatusCode::OK, content_type, body))
    }

    /// An answer whose compact JSON is all here.
    fn whole(&self, code: StatusCode, mut json: Vec<u8>) -> Response<Body> {
        match self.accepted.format {
            Format::Yaml => respond(code, "application/yaml", full(yaml(&json))),
            Format::Json if self.accepted.pretty => {
                respond(code, "application/json", full(indent_json(&json)))
            }
            Format::Json => {
                json.push(b'\n');
                respond(code, "application/json", full(json.into()))
            }
        }
    }
}

/// A body of several buffers, which are all here.
struct Chunks(VecDeque<Bytes>);

impl http_body::Body for Chunks {
    type Data = Bytes;
    type Error = CutOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        Poll::Ready(self.0.pop_front().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|bytes| bytes.len() as u64).sum())
    }
}

/// The same JSON, indented for people.
fn indented(
    pieces: impl Iterator<Item = Result<Bytes, ApiError>> + Send,
) -> impl Iterator<Item = Result<Bytes, ApiError>> + Send {
    let mut indenter = Indenter::default();
    pieces.map(move |piece| {
        let piece = piece?;
        let mut out = Vec::with_capacity(piece.len() * 2);
        indenter.append(&piece, &mut out);
        Ok(out.into())
    })
}

fn respond(code: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// What objects are turned into on their way out.
pub(super) enum Form {
    Object,
    Table(Box<Tables>),
    Partial(MetaVersion),
}

impl Form {
    /// Appends one object, which is no item of a list.
    pub(super) fn write(&self, json: &Json<'_>, with_columns: bool, out: &mut Vec<u8>) {
        match self {
            Self::Object => out.extend_from_slice(json.whole()),
            Self::Table(tables) => tables.write_single(json, with_columns, out),
            Self::Partial(version) => write_partial(json, *version, out),
        }
    }

    fn write_item(&self, json: &Json<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Object => {
                out.push(b'{');
                out.extend_from_slice(json.item());
            }
            Self::Table(tables) => tables.write_row(json, out),
            Self::Partial(version) => write_partial(json, *version, out),
        }
    }

    /// What the items of a list stand behind in YAML. Nothing before them can hold this: text of several lines is indented.
    fn items_in_yaml(&self) -> &'static [u8] {
        match self {
            Self::Table(_) => b"\nrows:",
            Self::Object | Self::Partial(_) => b"\nitems:",
        }
    }

    fn write_list_head(&self, def: &ResourceDef, meta: &ListMeta, out: &mut Vec<u8>) {
        let (kind, api_version) = match self {
            Self::Table(tables) => return tables.write_head(meta, true, out),
            Self::Partial(version) => (
                "PartialObjectMetadataList",
                version.api_version().to_owned(),
            ),
            Self::Object => (def.list_kind.as_str(), def.api_version()),
        };
        out.extend_from_slice(b"{\"kind\":");
        append_json(&kind, out);
        out.extend_from_slice(b",\"apiVersion\":");
        append_json(&api_version, out);
        out.extend_from_slice(b",\"metadata\":");
        append_json(meta, out);
        out.extend_from_slice(b",\"items\":[");
    }
}

/// A list in pieces of at most [`PIECE_BYTES`] or one object; JSON without a final newline. Nothing follows an error.
struct ListPieces {
    endpoint: Arc<Endpoint>,
    form: Form,
    format: Format,
    items: Items,
    meta: ListMeta,
    stage: Stage,
    /// What follows the items.
    tail: Bytes,
    /// What did not fit into the last piece.
    rest: Vec<u8>,
    /// An object that goes out as it lies in the cache, behind what was written before it.
    large: Option<Bytes>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Head,
    FirstItem,
    MoreItems,
    Ended,
}

impl ListPieces {
    fn new(reply: &Reply, listed: Listed) -> Self {
        let text = |text: String| Some(text).filter(|text| !text.is_empty());
        let meta = ListMeta {
            self_link: None,
            resource_version: text(listed.resource_version),
            continue_token: text(listed.continue_token),
            remaining_item_count: listed.remaining_item_count,
        };
        Self {
            endpoint: Arc::clone(&reply.endpoint),
            form: reply.form(),
            format: reply.accepted.format,
            items: listed.items,
            meta,
            stage: Stage::Head,
            tail: Bytes::new(),
            rest: Vec::new(),
            large: None,
        }
    }

    /// Writes until the piece is full, a large object is to go out by itself, or nothing is left.
    fn write(&mut self, out: &mut Vec<u8>) -> Result<(), ApiError> {
        if self.stage == Stage::Head {
            self.write_head(out);
            self.stage = Stage::FirstItem;
        }
        let mut looked_at = 0;
        while out.len() < PIECE_BYTES
            && looked_at < LOOKED_AT_BYTES
            && self.large.is_none()
            && self.stage != Stage::Ended
        {
            let Some(item) = self.items.next().transpose()? else {
                if self.format == Format::Yaml && self.stage == Stage::FirstItem {
                    out.extend_from_slice(b" []\n");
                }
                out.extend_from_slice(&self.tail);
                self.stage = Stage::Ended;
                return Ok(());
            };
            match (self.format, self.stage) {
                (Format::Json, Stage::MoreItems) => out.push(b','),
                (Format::Yaml, Stage::FirstItem) => out.push(b'\n'),
                _ => {}
            }
            self.stage = Stage::MoreItems;
            looked_at += match self.format {
                Format::Json => self.write_item(&item, out),
                Format::Yaml => self.write_yaml_item(&item, out),
            };
        }
        Ok(())
    }

    /// Writes what stands before the items, and keeps what stands behind them.
    fn write_head(&mut self, out: &mut Vec<u8>) {
        const END: &[u8] = b"]}";
        let def = self.endpoint.def();
        if self.format == Format::Json {
            self.form.write_list_head(def, &self.meta, out);
            self.tail = Bytes::from_static(END);
            return;
        }
        // YAML, whose keys are sorted, has keys behind the items too: those of a list that has none.
        let mut empty = Vec::new();
        self.form.write_list_head(def, &self.meta, &mut empty);
        empty.extend_from_slice(END);
        let mut head = yaml(&empty);
        let items = self.form.items_in_yaml();
        let found = head.windows(items.len()).position(|window| window == items);
        let at = found.map_or(head.len(), |at| at + items.len());
        let tail = head.split_off(at);
        out.extend_from_slice(&head);
        self.tail = tail.slice(tail.len().min(b" []\n".len())..);
    }

    /// Writes an item as it stands in the YAML of the whole list; gives how many bytes were looked at.
    fn write_yaml_item(&self, item: &Document, out: &mut Vec<u8>) -> usize {
        let item = item.json(self.endpoint.schema());
        let mut json = Vec::new();
        self.form.write_item(&item, &mut json);
        match serde_json::from_slice(&json) {
            Ok(value) => out.extend_from_slice(&encode_yaml(&Value::Array(vec![value]))),
            // It nests deeper than the parser goes. JSON is YAML too.
            Err(_) => {
                out.extend_from_slice(b"- ");
                out.extend_from_slice(&json);
                out.push(b'\n');
            }
        }
        item.whole().len()
    }

    /// Writes an item as JSON; gives how many bytes were looked at.
    fn write_item(&mut self, item: &Document, out: &mut Vec<u8>) -> usize {
        let json = item.json(self.endpoint.schema());
        match (&self.form, item) {
            (Form::Object, Document::Encoded(encoded)) if json.item().len() >= LARGE_BYTES => {
                out.push(b'{');
                let whole = encoded.shared();
                self.large = Some(whole.slice(whole.len() - json.item().len()..));
            }
            (form, _) => form.write_item(&json, out),
        }
        json.whole().len()
    }
}

impl Iterator for ListPieces {
    type Item = Result<Bytes, ApiError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(large) = self.large.take() {
            return Some(Ok(large));
        }
        if self.stage == Stage::Ended && self.rest.is_empty() {
            return None;
        }
        // An object rarely ends where a piece does.
        let mut out = Vec::with_capacity(PIECE_BYTES + LARGE_BYTES);
        out.append(&mut self.rest);
        if let Err(error) = self.write(&mut out) {
            self.stage = Stage::Ended;
            return Some(Err(error));
        }
        // What stands before a large object goes out whole, or the two would be interchanged.
        if out.len() > PIECE_BYTES && self.large.is_none() {
            self.rest = out.split_off(PIECE_BYTES);
        }
        Some(Ok(out.into()))
    }
}
