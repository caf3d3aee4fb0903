//! Encodes responses in the negotiated form and format: single objects and lists; `watch` encodes streams.
//!
//! Lists are encoded item by item while the client reads, in all forms and formats, so that a long list is never in
//! memory twice.

use std::sync::Arc;

use apiloom_client::transport::PiecesBody;
use apiloom_meta::codec::Encoder;
use apiloom_meta::interrupt::is_interrupted;
use apiloom_meta::kind::ProtobufMessage;
use apiloom_meta::kind::protobuf::STATUS;
use apiloom_meta::{ApiError, ListMeta, Object, Status, StatusDetails, StatusReason};
use apiloom_registry::audit::{AuditRecord, AuditShare};
use apiloom_registry::{
    Document, Endpoint, Items, Json, ListResult, WrittenObject, check_wanted_after,
};
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};

use super::form::Form;
use super::form_writer::FormWriter;
use super::format::{self, ListWriter, Show, Writer as _};
use super::negotiate::Answer;
use crate::response::compress::THRESHOLD_BYTES;
use crate::response::turns::take_turn;
use crate::response::{Body, CutOff, full};

/// Size of the pieces of a long response: large enough for few system calls, small compared to a connection's window,
/// and a multiple of the maximum HTTP/2 frame and TLS record, so that none of them is sent partly filled.
const PIECE_BYTES: usize = 64 * 1024;

/// Minimum size of an object that is sent from the cache without a copy. Smaller objects are copied together, which
/// costs less than a frame for each.
const LARGE_BYTES: usize = 16 * 1024;

/// Maximum size of the objects encoded for a piece, since rows of large objects can be short.
const LOOKED_AT_BYTES: usize = 256 * 1024;

/// The negotiated response of a request, for its objects.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) answer: Answer,
    /// The Protobuf message of the objects; `None` for objects without one.
    pub(crate) message: Option<&'static ProtobufMessage>,
    /// What the audit of the request records.
    pub(crate) audit: Option<Arc<AuditRecord>>,
}

impl Reply {
    /// A response with one object.
    ///
    /// # Errors
    /// NotAcceptable if the client accepts only lists.
    pub(crate) fn object(
        &self,
        code: StatusCode,
        object: &Object,
    ) -> Result<Response<Body>, ApiError> {
        self.json(code, &Json::of(object, self.endpoint.schema()))
    }

    /// The response to a write, with the object.
    ///
    /// # Errors
    /// NotAcceptable if the client accepts only lists.
    pub(crate) fn written(
        &self,
        code: StatusCode,
        written: &WrittenObject,
    ) -> Result<Response<Body>, ApiError> {
        match &written.json {
            Some(json) => self.json(code, json),
            None => self.object(code, &written.object),
        }
    }

    /// A response with one object of the registry, encoded or not.
    ///
    /// # Errors
    /// NotAcceptable if the client accepts only lists.
    pub(crate) fn document(
        &self,
        code: StatusCode,
        document: &Document,
    ) -> Result<Response<Body>, ApiError> {
        if let Document::Encoded(encoded) = document
            && self.recorder().is_none()
            && encoded.len() >= LARGE_BYTES
            && self.answer.form == Form::Object
            && let Some(end) = self.answer.format.end_of_json()
        {
            let pieces = [encoded.shared(), Bytes::from_static(end)];
            let bytes = pieces.iter().map(Bytes::len).sum();
            let body = PiecesBody::new(bytes, pieces.into_iter().map(Ok::<_, CutOff>));
            return Ok(self.respond(code, body.boxed_unsync()));
        }
        self.json(code, &document.json(self.endpoint.schema()))
    }

    /// Whether the response is a table: each of its columns may look at the whole object.
    pub(crate) fn is_table(&self) -> bool {
        matches!(self.answer.form, Form::Table(..))
    }

    /// A response with one object, as JSON.
    ///
    /// # Errors
    /// NotAcceptable if the client accepts only lists.
    pub(crate) fn json(
        &self,
        code: StatusCode,
        json: &Json<'_>,
    ) -> Result<Response<Body>, ApiError> {
        if let Form::PartialList(_) = self.answer.form {
            let def = self.endpoint.def();
            let kind = if def.dialect.is_unstructured {
                "*unstructured.Unstructured"
            } else {
                def.kind.as_str()
            };
            return Err(ApiError::new(
                StatusReason::NotAcceptable,
                format!(
                    "you requested PartialObjectMetadataList, but the requested object is not a list ({kind})"
                ),
            ));
        }
        let form = self.form();
        let show: Show<'_> = &|out| form.write(json, true, out);
        if let Some(audit) = self.recorder() {
            let document = format::JSON.document(show, json.whole().len());
            audit.note_response(document.into(), self.endpoint.schema());
        }
        Ok(self.whole(code, json.whole().len(), show))
    }

    /// The record of the audit, if it has the documents of responses.
    fn recorder(&self) -> Option<&Arc<AuditRecord>> {
        self.audit
            .as_ref()
            .filter(|audit| audit.records_responses())
    }

    /// The writer of the negotiated form.
    pub(crate) fn form(&self) -> FormWriter {
        FormWriter::new(self.answer.form, &self.endpoint, self.message)
    }

    /// The Status response to a deletion that removed the object; always a Status, in any form.
    pub(crate) fn deleted(&self, details: StatusDetails) -> Response<Body> {
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
        self.status_document(StatusCode::OK, &status)
    }

    /// A Status with its code, which is this one if it has none; always a Status, in any form.
    pub(crate) fn status(&self, code: StatusCode, mut status: Status) -> Response<Body> {
        let own = status.code.and_then(|own| StatusCode::from_u16(own).ok());
        let code = own.unwrap_or(code);
        status.code = Some(code.as_u16());
        self.status_document(code, &status)
    }

    fn status_document(&self, code: StatusCode, status: &Status) -> Response<Body> {
        if let Some(audit) = &self.audit {
            audit.note_status(status);
        }
        let json = Encoder::json(status);
        self.whole(code, json.len(), &|out| {
            out.describe(&STATUS);
            out.json(&json);
        })
    }

    /// A response with a list.
    ///
    /// # Errors
    /// NotAcceptable if the client accepts only single objects.
    pub(crate) async fn list(&self, listed: ListResult) -> Result<Response<Body>, ApiError> {
        if let Form::Partial(_) = self.answer.form {
            // Kubernetes names the type in Go.
            let def = self.endpoint.def();
            let kind = if def.dialect.is_unstructured {
                "*unstructured.UnstructuredList"
            } else {
                def.list_kind.as_str()
            };
            return Err(ApiError::new(
                StatusReason::NotAcceptable,
                format!(
                    "you requested PartialObjectMetadata, but the requested object is a list ({kind})"
                ),
            ));
        }
        let items_bytes = self.items_bytes(&listed.items).await?;
        let mut pieces = ListPieces::new(self, listed, items_bytes);
        // Encoding a piece then takes about a millisecond without a yield.
        let is_costly = self.is_table() || self.answer.format.is_costly();
        // A list below the threshold is sent at once, with its length; it is never compressed.
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
            // The client has a part of the list already; the response must be aborted, so that the part is not taken
            // for the whole.
            Err(error) => {
                if !is_interrupted() {
                    tracing::error!(
                        error = error.message,
                        "unable to encode the rest of a list, so its response is aborted"
                    );
                }
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

    /// The size of the items of a list, if the format begins a list with it. An item is encoded once for that, and an object
    /// of the cache only for the first list that has it. Yields to other requests.
    async fn items_bytes(&self, items: &Items) -> Result<u64, ApiError> {
        let form = self.form();
        let (mut sum, mut looked_at, mut bytes_before) = (0, 0, 0);
        for item in items.iter() {
            check_wanted_after(bytes_before)?;
            let item = item?;
            bytes_before = 0;
            let mut measure = || {
                let json = item.json(self.endpoint.schema());
                let show: Show<'_> = &|out| form.write_item(&json, out);
                bytes_before = json.whole().len();
                looked_at += bytes_before;
                self.answer.format.item_bytes(show)
            };
            let bytes = match (&form, &*item) {
                (FormWriter::Object(_), Document::Encoded(encoded)) => encoded.item_bytes(measure),
                _ => measure(),
            };
            let Some(bytes) = bytes else {
                return Ok(0);
            };
            sum += bytes;
            looked_at += size_of::<u64>();
            if looked_at >= LOOKED_AT_BYTES {
                looked_at = 0;
                tokio::task::yield_now().await;
            }
        }
        Ok(sum)
    }

    /// A response with one document; `json_bytes` is the approximate length of its JSON.
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

/// The encoded pieces of a list: at most [`PIECE_BYTES`] each, or one object. An error is the last item.
struct ListPieces {
    endpoint: Arc<Endpoint>,
    form: FormWriter,
    list: Box<dyn ListWriter>,
    items: Items,
    meta: ListMeta,
    stage: Stage,
    /// Bytes that exceed the last piece.
    rest: Vec<u8>,
    /// A large object from the cache, which follows the bytes before it.
    large: Option<Bytes>,
    /// The list as the audit records it.
    recorded: Option<RecordedList>,
}

/// A list as the audit records it: as JSON, in any format of the response.
struct RecordedList {
    audit: Arc<AuditRecord>,
    list: Box<dyn ListWriter>,
    json: Vec<u8>,
    share: AuditShare,
}

impl RecordedList {
    fn new(audit: &Arc<AuditRecord>) -> Self {
        Self {
            audit: Arc::clone(audit),
            list: format::JSON.list(0),
            json: Vec::new(),
            share: AuditShare::default(),
        }
    }
}

/// Writes a part of a list for the audit too, while there is room for it.
fn record(
    recorded: &mut Option<RecordedList>,
    write: impl FnOnce(&mut Box<dyn ListWriter>, &mut Vec<u8>),
) {
    let Some(one) = recorded else {
        return;
    };
    write(&mut one.list, &mut one.json);
    if !one.audit.grow(&mut one.share, one.json.len()) {
        one.audit.truncate();
        *recorded = None;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Head,
    Items,
    Ended,
}

impl ListPieces {
    fn new(reply: &Reply, listed: ListResult, items_bytes: u64) -> Self {
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
            list: reply.answer.format.list(items_bytes),
            items: listed.items,
            meta,
            stage: Stage::Head,
            rest: Vec::new(),
            large: None,
            recorded: reply.recorder().map(RecordedList::new),
        }
    }

    /// Writes until the piece is full, a large object is next, or the list ends.
    fn write(&mut self, out: &mut Vec<u8>) -> Result<(), ApiError> {
        if self.stage == Stage::Head {
            let (def, meta) = (self.endpoint.def(), &self.meta);
            let show: Show<'_> = &|out| self.form.write_list(def, meta, out);
            self.list.begin(show, out);
            record(&mut self.recorded, |list, json| list.begin(show, json));
            self.stage = Stage::Items;
        }
        let (mut looked_at, mut bytes_before) = (0, 0);
        while out.len() < PIECE_BYTES
            && looked_at < LOOKED_AT_BYTES
            && self.large.is_none()
            && self.stage != Stage::Ended
        {
            check_wanted_after(bytes_before)?;
            match self.items.next().transpose()? {
                Some(item) => {
                    bytes_before = self.write_item(&item, out);
                    looked_at += bytes_before;
                }
                None => {
                    self.list.end(out);
                    record(&mut self.recorded, |list, json| list.end(json));
                    if let Some(RecordedList { audit, json, .. }) = self.recorded.take() {
                        audit.note_response(json, self.endpoint.schema());
                    }
                    self.stage = Stage::Ended;
                }
            }
        }
        Ok(())
    }

    /// Writes an item; returns the size of its object.
    fn write_item(&mut self, item: &Document, out: &mut Vec<u8>) -> usize {
        let json = item.json(self.endpoint.schema());
        let show: Show<'_> = &|out| self.form.write_item(&json, out);
        record(&mut self.recorded, |list, out| list.item(show, out));
        match (&self.form, item) {
            (FormWriter::Object(_), Document::Encoded(encoded))
                if json.item().len() >= LARGE_BYTES && self.list.begin_json_item(out) =>
            {
                let whole = encoded.shared();
                self.large = Some(whole.slice(whole.len() - json.item().len()..));
            }
            _ => self.list.item(show, out),
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
        // A piece usually ends within an object.
        let mut out = Vec::with_capacity(PIECE_BYTES + LARGE_BYTES);
        out.append(&mut self.rest);
        if let Err(error) = self.write(&mut out) {
            self.stage = Stage::Ended;
            return Some(Err(error));
        }
        // Bytes before a large object stay in one piece, to keep the order.
        if out.len() > PIECE_BYTES && self.large.is_none() {
            self.rest = out.split_off(PIECE_BYTES);
        }
        Some(Ok(out.into()))
    }
}
