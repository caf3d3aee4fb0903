//! Discovery of the groups, versions and resources: `/api`, `/apis` and below (legacy, one document per group and
//! version), the aggregated lists at `/api` and `/apis`, and the list of paths at `/`.
//!
//! All documents are built once per catalog; equal catalogs give equal bytes.

mod documents;
mod messages;

use std::borrow::Cow;
use std::collections::BTreeMap;

use apiloom_meta::kind::ProtobufMessage;
use apiloom_meta::{ApiError, codec};
use apiloom_registry::Catalog;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, VARY};
use http::request::Parts;
use http::{HeaderValue, Response};

use crate::ServerInfo;
use crate::documents::served::{Group, served};
use crate::request::accept::{Accepts, Clause};
use crate::request::query::Query;
use crate::response::static_doc::{StaticDoc, conditional};
use crate::response::{Body, ok, ok_as};
use crate::shape::error::only_get;
use crate::shape::format::{Sink, Writer};
use crate::shape::negotiate::{choose, not_acceptable};

use documents::Document;
use messages::{GROUP_DISCOVERY_LIST, json_of_message};

/// The discovery documents of a server.
#[derive(Debug)]
pub struct Discovery {
    /// Legacy documents by path, without trailing slash.
    legacy: BTreeMap<String, Document>,
    /// Aggregated documents; only for `/api` and `/apis`.
    aggregated: BTreeMap<&'static str, StaticDoc>,
    /// Paths in the list at `/` in addition to those of `legacy`.
    other_paths: Vec<String>,
    lists_itself: bool,
}

/// Media type parameters of an aggregated document.
const AGGREGATED: &str = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The negotiated document of a discovery request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DocumentRequest {
    aggregated: bool,
    format: &'static dyn Writer,
}

impl DocumentRequest {
    /// The `Content-Type` of the response.
    fn content_type(self) -> HeaderValue {
        let media_type = self.format.media_type();
        if !self.aggregated {
            return HeaderValue::from_static(media_type);
        }
        let text = format!("{media_type}{AGGREGATED}");
        HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(media_type))
    }
}

impl Discovery {
    /// The discovery documents of a catalog.
    pub fn new(catalog: &Catalog, info: &ServerInfo) -> Self {
        Self::of(&served(catalog), &info.address)
    }

    pub(crate) fn of(groups: &[Group<'_>], server_address: &str) -> Self {
        let aggregated = documents::aggregated(groups)
            .into_iter()
            .map(|(path, bytes)| (path, StaticDoc::new(bytes)));
        Self {
            legacy: documents::legacy(groups, server_address),
            aggregated: aggregated.collect(),
            other_paths: Vec::new(),
            lists_itself: true,
        }
    }

    /// Whether its own documents are in the list at `/`.
    #[must_use]
    pub(crate) fn listing_itself(self, lists_itself: bool) -> Self {
        Self {
            lists_itself,
            ..self
        }
    }

    /// Adds paths of other handlers to the list at `/`.
    #[must_use]
    pub fn with_paths<S: Into<String>>(mut self, paths: impl IntoIterator<Item = S>) -> Self {
        self.other_paths.extend(paths.into_iter().map(Into::into));
        self
    }

    /// Responds to a request for a discovery document or the list of paths; `None` for other paths.
    ///
    /// # Errors
    /// MethodNotAllowed for other methods than GET; NotAcceptable if `Accept` contains no format.
    pub(crate) fn respond(
        &self,
        request: &Parts,
        (accepts, query): (&Accepts<'_>, &Query),
    ) -> Option<Result<Response<Body>, ApiError>> {
        let path = request.uri.path();
        if path == "/" {
            return Some(only_get(request).map(|()| ok("application/json", self.paths())));
        }
        // One trailing slash is ignored; a path with two is unknown.
        let path = path.strip_suffix('/').unwrap_or(path);
        let legacy = self.legacy.get(path)?;
        let aggregated = self.aggregated.get(path);
        let wanted = || negotiate(accepts, query, aggregated.is_some());
        let wanted = only_get(request).and_then(|()| wanted());
        Some(wanted.map(|wanted| document(request, wanted, legacy, aggregated)))
    }

    /// Whether it responds to a path.
    pub(crate) fn has(&self, path: &str) -> bool {
        // As in `respond`.
        path == "/"
            || self
                .legacy
                .contains_key(path.strip_suffix('/').unwrap_or(path))
    }

    /// The paths of its documents below `/`.
    pub(crate) fn own_paths(&self) -> impl Iterator<Item = String> + use<'_> {
        self.legacy.keys().cloned()
    }

    /// Whether a path is in the list at `/`.
    pub(crate) fn lists(&self, path: &str) -> bool {
        self.legacy.contains_key(path) || self.other_paths.iter().any(|other| other == path)
    }

    fn paths(&self) -> Bytes {
        let mut paths: Vec<&str> = self
            .legacy
            .keys()
            .filter(|_| self.lists_itself)
            .chain(&self.other_paths)
            .map(String::as_str)
            .collect();
        paths.sort_unstable();
        paths.dedup();
        codec::Indenter::indent(serde_json::json!({ "paths": paths }).to_string().as_bytes())
    }
}

fn varying(mut response: Response<Body>) -> Response<Body> {
    response
        .headers_mut()
        .insert(VARY, HeaderValue::from_static("Accept"));
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

fn document(
    request: &Parts,
    wanted: DocumentRequest,
    legacy: &Document,
    aggregated: Option<&StaticDoc>,
) -> Response<Body> {
    let content_type = wanted.content_type();
    let legacy = || encode(&legacy.json, legacy.message, wanted.format);
    match aggregated {
        Some(doc) if wanted.aggregated => {
            let body = || encode(doc.bytes(), &GROUP_DISCOVERY_LIST, wanted.format);
            conditional(&request.headers, doc.hash(), content_type, "public", body)
        }
        // The path has two documents, so caches must distinguish by Accept.
        Some(_) => varying(ok_as(content_type, legacy())),
        None => ok_as(content_type, legacy()),
    }
}

/// Negotiates the document; clauses for other conversions are skipped.
fn negotiate(
    accepts: &Accepts<'_>,
    query: &Query,
    has_aggregated: bool,
) -> Result<DocumentRequest, ApiError> {
    let fits = |clause: &Clause<'_>, _: &dyn Writer| asks_for_aggregated(clause, has_aggregated);
    let (format, aggregated) = choose(accepts, query, fits).ok_or_else(not_acceptable)?;
    Ok(DocumentRequest { aggregated, format })
}

/// Whether a clause selects the aggregated list (`Some(true)`) or the legacy document; `None` if it matches neither.
fn asks_for_aggregated(clause: &Clause<'_>, has_aggregated: bool) -> Option<bool> {
    match clause.param("as") {
        None => Some(false),
        Some("APIGroupDiscoveryList") => {
            let ours =
                clause.param("g") == Some("apidiscovery.k8s.io") && clause.param("v") == Some("v2");
            (has_aggregated && ours).then_some(true)
        }
        Some(_) => None,
    }
}

/// Encodes a document, which is kept as compact JSON with a newline.
fn encode(json: &Bytes, message: &'static ProtobufMessage, format: &dyn Writer) -> Bytes {
    if format.end_of_json().is_some() {
        return json.clone();
    }
    let mut text = Cow::Borrowed(json.trim_ascii_end());
    if format.needs_message() {
        text = json_of_message(json.trim_ascii_end(), message);
    }
    let show = |out: &mut dyn Sink| {
        out.describe(message);
        out.json(&text);
    };
    format.document(&show, json.len())
}

#[cfg(test)]
mod tests;
