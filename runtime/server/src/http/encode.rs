//! Answers in the form and format agreed on, in the framings of one object and of a list; `watch` has that of a stream.
//!
//! Lists are encoded item by item while the client reads, in every form and format, so that a long list is never held
//! twice.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use apiloom_meta::codec::encode_json;
use apiloom_meta::{ApiError, ListMeta, Object, Status, StatusDetails, StatusReason};
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, StreamBody};

use super::compress::THRESHOLD_BYTES;
use super::form::Form;
use super::form_writer::FormWriter;
use super::format::{ListWriter, Show};
use super::negotiate::Answer;
use super::response::full;
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
    pub(super) answer: Answer,
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
            && self.answer.form == Form::Object
            && let Some(end) = self.answer.format.end_of_json()
        {
            let body = Chunks([encoded.shared(), Bytes::from_static(end)].into());
            return Ok(self.respond(code, body.boxed_unsync()));
        }
        self.json(code, &document.json(self.endpoint.schema()))
    }

    fn json(&self, code: StatusCode, json: &Json<'_>) -> Result<Response<Body>, ApiError> {
        if let Form::PartialList(_) = self.answer.form {
            let kind = &self.endpoint.def().kind;
            return Err(ApiError::new(
                StatusReason::NotAcceptable,
                format!(
                    "you requested PartialObjectMetadataList, but the requested object is not a list ({kind})"
                ),
            ));
        }
        let form = self.form();
        Ok(self.whole(code, json.whole().len(), &|out| form.write(json, true, out)))
    }

    /// What tells objects to the format.
    pub(super) fn form(&self) -> FormWriter {
        FormWriter::new(self.answer.form, &self.endpoint)
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
        let json = encode_json(&status);
        self.whole(StatusCode::OK, json.len(), &|out| out.json(&json))
    }

    /// An answer that is a list.
    ///
    /// # Errors
    /// NotAcceptable when a single object was asked for.
    pub(super) async fn list(&self, listed: Listed) -> Result<Response<Body>, ApiError> {
        if let Form::Partial(_) = self.answer.form {
            let kind = &self.endpoint.def().list_kind;
            return Err(ApiError::new(
                StatusReason::NotAcceptable,
                format!(
                    "you requested PartialObjectMetadata, but the requested object is a list ({kind})"
                ),
            ));
        }
        let mut pieces = ListPieces::new(self, listed);
        // A piece takes about a millisecond to make then, during which no other task has the thread.
        let is_table = matches!(pieces.form, FormWriter::Table(_));
        let is_costly = is_table || self.answer.format.is_costly();
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
                    let whole = match begin.len() {
                        1 => begin.remove(0),
                        _ => begin.concat().into(),
                    };
                    return Ok(self.respond(StatusCode::OK, full(whole)));
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
        Ok(self.respond(StatusCode::OK, body))
    }

    /// An answer that is one document, whose JSON is about so long.
    fn whole(&self, code: StatusCode, json_bytes: usize, show: Show<'_>) -> Response<Body> {
        let document = self.answer.format.document(show, json_bytes);
        self.respond(code, full(document))
    }

    fn respond(&self, code: StatusCode, body: Body) -> Response<Body> {
        let mut response = Response::new(body);
        *response.status_mut() = code;
        let content_type = HeaderValue::from_static(self.answer.format.media_type());
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        response
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

/// A list in pieces of at most [`PIECE_BYTES`] or one object. Nothing follows an error.
struct ListPieces {
    endpoint: Arc<Endpoint>,
    form: FormWriter,
    list: Box<dyn ListWriter>,
    items: Items,
    meta: ListMeta,
    stage: Stage,
    /// What did not fit into the last piece.
    rest: Vec<u8>,
    /// An object that goes out as it lies in the cache, behind what was written before it.
    large: Option<Bytes>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Head,
    Items,
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
            list: reply.answer.format.list(),
            items: listed.items,
            meta,
            stage: Stage::Head,
            rest: Vec::new(),
            large: None,
        }
    }

    /// Writes until the piece is full, a large object is to go out by itself, or nothing is left.
    fn write(&mut self, out: &mut Vec<u8>) -> Result<(), ApiError> {
        if self.stage == Stage::Head {
            let (def, meta) = (self.endpoint.def(), &self.meta);
            let show: Show<'_> = &|out| self.form.write_list(def, meta, out);
            self.list.begin(show, out);
            self.stage = Stage::Items;
        }
        let mut looked_at = 0;
        while out.len() < PIECE_BYTES
            && looked_at < LOOKED_AT_BYTES
            && self.large.is_none()
            && self.stage != Stage::Ended
        {
            match self.items.next().transpose()? {
                Some(item) => looked_at += self.write_item(&item, out),
                None => {
                    self.list.end(out);
                    self.stage = Stage::Ended;
                }
            }
        }
        Ok(())
    }

    /// Writes an item; gives how many bytes were looked at.
    fn write_item(&mut self, item: &Document, out: &mut Vec<u8>) -> usize {
        let json = item.json(self.endpoint.schema());
        match (&self.form, item) {
            (FormWriter::Object, Document::Encoded(encoded))
                if json.item().len() >= LARGE_BYTES && self.list.begin_json_item(out) =>
            {
                let whole = encoded.shared();
                self.large = Some(whole.slice(whole.len() - json.item().len()..));
            }
            (form, _) => self.list.item(&|out| form.write_item(&json, out), out),
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
