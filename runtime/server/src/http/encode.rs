//! Objects and lists on their way out: as they are, as a Table, as PartialObjectMetadata; as JSON, indented JSON or YAML.
//!
//! Lists are encoded item by item while the client reads, so that a long list is never held twice.

use std::sync::Arc;

use apiloom_meta::codec::{Format, encode_json, encode_object, indent_json};
use apiloom_meta::schema::Schema;
use apiloom_meta::{ApiError, ListMeta, Object, Status, StatusDetails, StatusReason};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody};

use super::Body;
use super::compress::THRESHOLD_BYTES;
use super::error::yaml;
use super::negotiate::{Accepted, MetaVersion, Target};
use super::params::IncludeObject;
use super::static_doc::full;
use super::table::Tables;
use crate::registry::{Document, Endpoint, Listed};

/// A long answer goes out in pieces of about this size: large enough for few system calls, small beside a connection's window.
const PIECE_BYTES: usize = 32 * 1024;

/// Forms that need the whole list at once (YAML, indented JSON) are made off the async threads beyond so many items, so
/// that nobody else waits for them.
const MANY_ITEMS: usize = 500;

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
        let mut json = Vec::new();
        match self.accepted.target {
            Target::Object => write_object(object, self.endpoint.schema(), &mut json),
            Target::Table(version) => self.tables(version).write_single(object, true, &mut json),
            Target::Partial(version) => {
                json = encode_partial(object, version, self.endpoint.schema()).into();
            }
            Target::PartialList(_) => {
                let kind = self.endpoint.def().kind;
                return Err(ApiError::new(
                    StatusReason::NotAcceptable,
                    format!(
                        "you requested PartialObjectMetadataList, but the requested object is not a list ({kind})"
                    ),
                ));
            }
        }
        Ok(self.whole(code, json))
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
        match (document, self.accepted.target) {
            (Document::Encoded(encoded), Target::Object) => {
                let mut json = Vec::new();
                encoded.write(&mut json);
                Ok(self.whole(code, json))
            }
            _ => self.object(code, &*document.object()?),
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
        let many = listed.items.len() > MANY_ITEMS;
        let mut pieces = ListPieces::new(self.clone(), listed);
        if self.accepted.format == Format::Yaml || self.accepted.pretty {
            let reply = self.clone();
            let whole = move || {
                let mut json = Vec::new();
                pieces.for_each(|piece| json.extend_from_slice(&piece));
                reply.whole(StatusCode::OK, json)
            };
            if !many {
                return Ok(whole());
            }
            let done = tokio::task::spawn_blocking(whole).await;
            return done.map_err(|error| ApiError::internal(error.to_string()));
        }
        // What fits into the threshold is sent in one go, with its length; it is never compressed.
        let mut begin = Vec::new();
        while begin.len() <= THRESHOLD_BYTES {
            match pieces.next() {
                Some(piece) => begin.extend_from_slice(&piece),
                None => return Ok(self.whole(StatusCode::OK, begin)),
            }
        }
        let newline = std::iter::once(Bytes::from_static(b"\n"));
        let frames = std::iter::once(Bytes::from(begin))
            .chain(pieces)
            .chain(newline);
        let frames =
            futures_util::stream::iter(frames.map(|bytes| Ok(http_body::Frame::data(bytes))));
        Ok(respond(
            StatusCode::OK,
            "application/json",
            StreamBody::new(frames).boxed_unsync(),
        ))
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

    pub(super) fn tables(&self, version: MetaVersion) -> Tables {
        Tables {
            endpoint: Arc::clone(&self.endpoint),
            version,
            include: self.include,
        }
    }
}

fn respond(code: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Appends an object as compact JSON.
pub(super) fn write_object(object: &Object, schema: &Schema, out: &mut Vec<u8>) {
    out.extend_from_slice(&encode_object(object, schema));
}

/// An object's metadata as `PartialObjectMetadata`.
pub(super) fn encode_partial(object: &Object, version: MetaVersion, schema: &Schema) -> Bytes {
    let mut partial = Object::default();
    partial.set_type(version.api_version(), "PartialObjectMetadata");
    *partial.meta_mut() = object.meta().cloned().unwrap_or_default();
    encode_object(&partial, schema)
}

/// The JSON of a list in pieces of about [`PIECE_BYTES`], without a final newline.
struct ListPieces {
    reply: Reply,
    items: std::vec::IntoIter<Document>,
    meta: ListMeta,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Head,
    FirstItem,
    MoreItems,
    Ended,
}

impl ListPieces {
    fn new(reply: Reply, listed: Listed) -> Self {
        let text = |text: String| Some(text).filter(|text| !text.is_empty());
        let meta = ListMeta {
            self_link: None,
            resource_version: text(listed.resource_version),
            continue_token: text(listed.continue_token),
            remaining_item_count: listed.remaining_item_count,
        };
        Self {
            reply,
            items: listed.items.into_iter(),
            meta,
            stage: Stage::Head,
        }
    }

    fn write_head(&self, out: &mut Vec<u8>) {
        let def = self.reply.endpoint.def();
        let (kind, api_version) = match self.reply.accepted.target {
            Target::Table(version) => {
                return self.reply.tables(version).write_head(&self.meta, true, out);
            }
            Target::PartialList(version) | Target::Partial(version) => (
                "PartialObjectMetadataList",
                version.api_version().to_owned(),
            ),
            Target::Object => (def.list_kind.as_str(), def.api_version()),
        };
        out.extend_from_slice(b"{\"kind\":");
        out.extend_from_slice(&encode_json(&kind));
        out.extend_from_slice(b",\"apiVersion\":");
        out.extend_from_slice(&encode_json(&api_version));
        out.extend_from_slice(b",\"metadata\":");
        out.extend_from_slice(&encode_json(&self.meta));
        out.extend_from_slice(b",\"items\":[");
    }

    fn write_item(&self, item: &Document, out: &mut Vec<u8>) {
        let schema = self.reply.endpoint.schema();
        if let (Document::Encoded(encoded), Target::Object) = (item, self.reply.accepted.target) {
            return encoded.write_item(out);
        }
        // What the cache holds was JSON when it was put there.
        let Ok(item) = item.object() else {
            return;
        };
        match self.reply.accepted.target {
            Target::Table(version) => self.reply.tables(version).write_row(&item, out),
            Target::PartialList(version) | Target::Partial(version) => {
                out.extend_from_slice(&encode_partial(&item, version, schema));
            }
            Target::Object => {
                // The list says once what its items are.
                let mut item = Arc::unwrap_or_clone(item);
                item.fields_mut().remove("apiVersion");
                item.fields_mut().remove("kind");
                write_object(&item, schema, out);
            }
        }
    }
}

impl Iterator for ListPieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.stage == Stage::Ended {
            return None;
        }
        let mut out = Vec::new();
        if self.stage == Stage::Head {
            self.write_head(&mut out);
            self.stage = Stage::FirstItem;
        }
        while out.len() < PIECE_BYTES {
            let Some(item) = self.items.next() else {
                out.extend_from_slice(b"]}");
                self.stage = Stage::Ended;
                break;
            };
            if self.stage == Stage::MoreItems {
                out.push(b',');
            }
            self.stage = Stage::MoreItems;
            self.write_item(&item, &mut out);
        }
        Some(out.into())
    }
}
