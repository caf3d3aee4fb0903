//! OpenAPI: `/openapi/v3` with one document for each group and version, `/openapi/v2` with one for all.
//!
//! Documents are derived from definitions and schemas. They are built by the first request that needs them, and kept
//! compressed, since they are rarely requested and clients accept them compressed.

mod components;
mod content;
mod kind_source;
mod meta_types;
mod names;
mod operations;
mod parameters;
mod protobuf;
mod v2;
mod v3;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use apiloom_meta::kind::Publication;
use apiloom_registry::{Catalog, Endpoint};
use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, ETAG, EXPIRES, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
    LOCATION, VARY,
};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};

use crate::documents::served::served;
use crate::request::query::Query;
use crate::response::static_doc::{PackedDoc, is_fresh, quoted};
use crate::response::{Body, ok, status};
use crate::shape::texts::Texts;

pub(crate) use components::{describe_root, forget_required_metadata};
pub(crate) use kind_source::KindSource;
#[cfg(test)]
pub(crate) use kind_source::SchemaInCrd;

/// A group and version with its kinds, whose schemas are made when needed.
pub(crate) struct VersionSource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kinds: Vec<KindSource>,
    /// The kinds of the bodies of subresources, such as Scale, once each.
    pub(crate) bodies: Vec<KindSource>,
}

impl VersionSource {
    /// All groups and versions of a catalog.
    pub(crate) fn all(catalog: &Catalog) -> Vec<Self> {
        let kinds_of = |group: &str, version: &str| {
            let endpoints = catalog
                .endpoints()
                .iter()
                .filter(|e| e.def().group == group && e.def().version == version);
            let kind = |e: &Arc<Endpoint>| KindSource {
                is_own: e.is_own(),
                ..KindSource::new(e.shared_def(), e.version_schema(), e.deprecation_warning())
            };
            endpoints.map(kind).collect()
        };
        let versions = served(catalog).into_iter().flat_map(|group| {
            group
                .versions
                .into_iter()
                .map(move |v| (group.name, v.name))
        });
        let bodies_of = |group: &str, version: &str| {
            let endpoints = catalog.endpoints().iter();
            let endpoints =
                endpoints.filter(|e| e.def().group == group && e.def().version == version);
            let mut bodies: Vec<KindSource> = Vec::new();
            for body in endpoints.flat_map(|e| e.other_bodies()) {
                if bodies
                    .iter()
                    .all(|known| known.def.gvk() != body.def().gvk())
                {
                    bodies.push(KindSource::new(
                        body.shared_def(),
                        body.version_schema(),
                        None,
                    ));
                }
            }
            bodies
        };
        let source = |(group, version): (&str, &str)| Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kinds: kinds_of(group, version),
            bodies: bodies_of(group, version),
        };
        versions.map(source).collect()
    }

    /// The OpenAPI v3 document of this group and version.
    pub(crate) fn v3(&self) -> v3::Document {
        let versions: Vec<_> = self.discovered().into_iter().collect();
        v3::document(&versions, self.kinds_and_bodies())
    }

    /// The group and version, unless it has custom resources alone, whose discovery is not published.
    fn discovered(&self) -> Option<(&str, &str)> {
        let mut kinds = self.kinds.iter();
        let is_discovered = kinds.any(|kind| kind.def.dialect.openapi == Publication::Program);
        is_discovered.then_some((&*self.group, &*self.version))
    }

    /// The OpenAPI v2 document of all groups and versions.
    pub(crate) fn v2<'a>(all: impl Iterator<Item = &'a Self> + Clone) -> v2::Document {
        let versions: Vec<_> = all.clone().filter_map(Self::discovered).collect();
        v2::document(&versions, all.flat_map(Self::kinds_and_bodies))
    }

    /// Key in the index of v3 documents: `apis/GROUP/VERSION`.
    pub(crate) fn key(&self) -> String {
        v3::key(&self.group, &self.version)
    }

    fn kinds_and_bodies(&self) -> impl Iterator<Item = &KindSource> {
        self.kinds.iter().chain(&self.bodies)
    }
}

/// The documents about the versions that other servers serve.
pub(crate) trait RemoteOpenApi: Send + Sync {
    /// The documents of v3 by their keys in the index; `None` for a version without one.
    fn v3_documents(&self) -> Vec<(String, Option<&PackedDoc>)>;

    /// Replaces the paths of these versions in the document of v2, and adds their definitions.
    fn merge_v2(&self, paths: &mut Texts, definitions: &mut Texts);
}

/// The OpenAPI documents of a server.
pub struct OpenApi {
    sources: Arc<Vec<VersionSource>>,
    since: SystemTime,
    /// `None` if other servers serve no versions.
    remote: Option<Arc<dyn RemoteOpenApi>>,
    /// The documents of the next server, for versions that this one does not have.
    next: Option<Arc<OpenApi>>,
    /// The own documents of v3.
    v3: Arc<OnceLock<V3>>,
    /// The documents of v3 of other servers; `None` of a version that has none.
    of_others: OnceLock<BTreeMap<String, Option<V3Document>>>,
    /// The index of v3 with those of other servers.
    index: OnceLock<Bytes>,
    v2: OnceLock<PackedDoc>,
    v2_protobuf: OnceLock<PackedDoc>,
}

impl fmt::Debug for OpenApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> = self.sources.iter().map(VersionSource::key).collect();
        f.debug_struct("OpenApi")
            .field("documents", &keys)
            .finish_non_exhaustive()
    }
}

struct V3 {
    index: Bytes,
    documents: BTreeMap<String, V3Document>,
}

/// A document of v3. Its hash is that of the JSON, in both formats.
struct V3Document {
    json: PackedDoc,
    protobuf: OnceLock<PackedDoc>,
}

impl V3Document {
    fn new(json: PackedDoc) -> Self {
        Self {
            json,
            protobuf: OnceLock::new(),
        }
    }

    fn hash(&self) -> &str {
        self.json.hash()
    }

    /// A 200 response in a media type.
    fn answer(&self, request: &Parts, chosen: &'static str) -> Response<Body> {
        if chosen == JSON {
            return self.json.answer(&request.headers, JSON);
        }
        let protobuf = self.protobuf.get_or_init(|| {
            // It was written here.
            let document = serde_json::from_slice(&self.json.unpacked());
            let document = document.map(|document| protobuf::v3::document(&document));
            PackedDoc::new(&document.unwrap_or_default())
        });
        protobuf.answer(&request.headers, V3_PROTOBUF)
    }
}

const JSON: &str = "application/json";
/// Media type of v2 as protobuf. Clients accept it in two spellings, of which the one with `@` is not a valid media type.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const V2_TYPES: &[&str] = &[
    JSON,
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    PROTOBUF,
];
/// Media type of v3 as protobuf, which has two spellings too.
const V3_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
/// The media types in which v3 is offered, as clients spell them.
const V3_TYPES: &[&str] = &[
    JSON,
    "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
    V3_PROTOBUF,
];
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl OpenApi {
    /// The documents of a catalog, built when they are first requested.
    pub fn new(catalog: &Catalog) -> Self {
        Self::of(VersionSource::all(catalog))
    }

    pub(crate) fn of(sources: Vec<VersionSource>) -> Self {
        Self::sharing(Arc::new(sources), Arc::default())
    }

    /// The documents of these sources alone, of which those of v3 may be built.
    fn sharing(sources: Arc<Vec<VersionSource>>, v3: Arc<OnceLock<V3>>) -> Self {
        Self {
            sources,
            since: SystemTime::now(),
            remote: None,
            next: None,
            v3,
            of_others: OnceLock::new(),
            index: OnceLock::new(),
            v2: OnceLock::new(),
            v2_protobuf: OnceLock::new(),
        }
    }

    /// The own documents, without those of other servers.
    pub(crate) fn own(&self) -> Self {
        Self::sharing(Arc::clone(&self.sources), Arc::clone(&self.v3))
    }

    /// The same with the documents of versions that other servers serve.
    #[must_use]
    pub(crate) fn with_remote(self, remote: Arc<dyn RemoteOpenApi>) -> Self {
        Self {
            remote: Some(remote),
            ..self
        }
    }

    /// The same with the documents of the next server, for versions that this one does not have.
    #[must_use]
    pub(crate) fn with_next(self, next: Arc<Self>) -> Self {
        Self {
            next: Some(next),
            ..self
        }
    }

    /// Paths of the documents, for the list at `/`.
    pub fn paths(&self) -> impl Iterator<Item = String> + use<'_> {
        let documents = self
            .all_sources()
            .into_iter()
            .map(|source| format!("/openapi/v3/{}", source.key()));
        ["/openapi/v2".to_owned(), "/openapi/v3".to_owned()]
            .into_iter()
            .chain(documents)
    }

    /// The sources of this server, and those of the next for other versions.
    fn all_sources(&self) -> Vec<&VersionSource> {
        let mut all: Vec<&VersionSource> = self.sources.iter().collect();
        for source in self.next.iter().flat_map(|next| next.all_sources()) {
            let is_same =
                |own: &&VersionSource| own.group == source.group && own.version == source.version;
            if !all.iter().any(is_same) {
                all.push(source);
            }
        }
        all
    }

    /// The media types in which a document is offered, as clients spell them.
    pub(crate) fn media_types(path: &str) -> &'static [&'static str] {
        if path == "/openapi/v2" {
            V2_TYPES
        } else {
            V3_TYPES
        }
    }

    /// Whether a path is `/openapi/v2`, `/openapi/v3` or below.
    pub(crate) fn is_path(path: &str) -> bool {
        let document = path.strip_prefix("/openapi/");
        document.is_some_and(|of| matches!(of, "v2" | "v3") || of.starts_with("v3/"))
    }

    /// Responds to `/openapi/v2`, `/openapi/v3` and below, in the media type which was chosen among
    /// [`OpenApi::media_types`]; `None` for other paths.
    pub(crate) fn respond(
        &self,
        request: &Parts,
        chosen: Option<&'static str>,
    ) -> Option<Response<Body>> {
        match request.uri.path().strip_prefix("/openapi/")? {
            "v2" => Some(self.respond_v2(request, chosen)),
            "v3" | "v3/" => Some(ok(JSON, self.index().clone())),
            path => Some(self.respond_v3(request, chosen, path.strip_prefix("v3/")?)),
        }
    }

    /// Whether the document of a request is built already.
    pub(crate) fn has(&self, request: &Parts, chosen: Option<&'static str>) -> bool {
        let is_json = chosen == Some(JSON);
        match request.uri.path().strip_prefix("/openapi/") {
            Some("v2") if is_json => self.v2.get().is_some(),
            Some("v2") => self.v2_protobuf.get().is_some(),
            Some("v3" | "v3/") => self.index.get().is_some(),
            Some(path) if self.v3.get().is_some() && self.of_others.get().is_some() => {
                let document = path
                    .strip_prefix("v3/")
                    .and_then(|path| self.v3_document(path));
                document.is_none_or(|document| is_json || document.protobuf.get().is_some())
            }
            _ => false,
        }
    }

    fn respond_v2(&self, request: &Parts, chosen: Option<&'static str>) -> Response<Body> {
        let (document, content_type) = match chosen {
            None => return status(StatusCode::NOT_ACCEPTABLE),
            Some(JSON) => (self.v2_json(), JSON),
            Some(_) => (self.v2_protobuf(), PROTOBUF),
        };
        let fresh = is_fresh(&request.headers, document.hash()) || self.is_unmodified(request);
        let mut response = if fresh {
            status(StatusCode::NOT_MODIFIED)
        } else {
            document.answer(&request.headers, content_type)
        };
        let headers = response.headers_mut();
        headers.insert(ETAG, quoted(document.hash()));
        headers.insert(VARY, HeaderValue::from_static("Accept-Encoding, Accept"));
        insert(
            &mut response,
            LAST_MODIFIED,
            &httpdate::fmt_http_date(self.since),
        );
        response
    }

    fn v2_json(&self) -> &PackedDoc {
        self.v2.get_or_init(|| PackedDoc::json(&self.merged_v2()))
    }

    fn v2_protobuf(&self) -> &PackedDoc {
        let document = || protobuf::document(&self.merged_v2());
        self.v2_protobuf.get_or_init(|| PackedDoc::new(&document()))
    }

    /// The document of v2 with those of other servers.
    fn merged_v2(&self) -> v2::Document {
        let mut document = VersionSource::v2(self.all_sources().into_iter());
        if let Some(remote) = &self.remote {
            remote.merge_v2(&mut document.paths, &mut document.definitions);
        }
        document
    }

    /// The index of v3 with the documents of other servers.
    fn index(&self) -> &Bytes {
        self.index.get_or_init(|| {
            let own = &self.v3().index;
            let Ok(mut index) = serde_json::from_slice(own) else {
                return own.clone();
            };
            if self.remote.is_none() && self.next.is_none() {
                return own.clone();
            }
            if let Some(next) = &self.next {
                add_missing(&mut index, next.index());
            }
            if let Some(remote) = &self.remote {
                add_remote(&mut index, &**remote);
            }
            index.to_string().into()
        })
    }

    /// Evaluates `If-Modified-Since`, which is ignored if there is an `If-None-Match`.
    fn is_unmodified(&self, request: &Parts) -> bool {
        let header = request
            .headers
            .get(IF_MODIFIED_SINCE)
            .and_then(|value| value.to_str().ok());
        let seconds = |time: SystemTime| {
            time.duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, |since| since.as_secs())
        };
        let asked = header.and_then(|text| httpdate::parse_http_date(text).ok());
        !request.headers.contains_key(IF_NONE_MATCH)
            && asked.is_some_and(|asked| seconds(asked) >= seconds(self.since))
    }

    fn respond_v3(
        &self,
        request: &Parts,
        chosen: Option<&'static str>,
        path: &str,
    ) -> Response<Body> {
        let Some(document) = self.v3_document(path) else {
            return status(StatusCode::NOT_FOUND);
        };
        let Some(chosen) = chosen else {
            return status(StatusCode::NOT_ACCEPTABLE);
        };
        let query = Query::of(&request.uri);
        let mut response = match query.first("hash").filter(|hash| !hash.is_empty()) {
            Some(hash) if hash == document.hash() => {
                let mut response = document.answer(request, chosen);
                response
                    .headers_mut()
                    .insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
                insert(
                    &mut response,
                    EXPIRES,
                    &httpdate::fmt_http_date(SystemTime::now() + YEAR),
                );
                response
            }
            Some(_) => {
                let mut response = status(StatusCode::MOVED_PERMANENTLY);
                insert(&mut response, LOCATION, &location(path, document.hash()));
                return response;
            }
            None => {
                let fresh = is_fresh(&request.headers, document.hash());
                let mut response = if fresh {
                    status(StatusCode::NOT_MODIFIED)
                } else {
                    document.answer(request, chosen)
                };
                response
                    .headers_mut()
                    .insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
                response
            }
        };
        response.headers_mut().insert(ETAG, quoted(document.hash()));
        response
            .headers_mut()
            .insert(VARY, HeaderValue::from_static("Accept-Encoding, Accept"));
        response
    }

    fn v3_document(&self, path: &str) -> Option<&V3Document> {
        let of_others = self.of_others.get_or_init(|| {
            let documents = self.remote.iter().flat_map(|remote| remote.v3_documents());
            let packed = |json: &PackedDoc| V3Document::new(json.clone());
            documents
                .map(|(key, document)| (key, document.map(packed)))
                .collect()
        });
        match of_others.get(path) {
            Some(of_other) => of_other.as_ref(),
            None => self.v3().documents.get(path),
        }
    }

    fn v3(&self) -> &V3 {
        self.v3.get_or_init(|| {
            let packed = |source: &VersionSource| {
                let json = PackedDoc::json(&source.v3());
                (source.key(), V3Document::new(json))
            };
            let documents: BTreeMap<_, _> = self.sources.iter().map(packed).collect();
            let entry = |(path, document): (&String, &V3Document)| {
                (
                    path.clone(),
                    json!({ "serverRelativeURL": location(path, document.hash()) }),
                )
            };
            let paths: serde_json::Map<String, Value> = documents.iter().map(entry).collect();
            V3 {
                index: json!({ "paths": paths }).to_string().into(),
                documents,
            }
        })
    }
}

fn location(path: &str, hash: &str) -> String {
    format!("/openapi/v3/{path}?hash={hash}")
}

/// Adds the documents of other servers to the index of v3.
fn add_remote(index: &mut Value, remote: &dyn RemoteOpenApi) {
    let Some(paths) = index.get_mut("paths").and_then(Value::as_object_mut) else {
        return;
    };
    for (key, document) in remote.v3_documents() {
        match document {
            Some(document) => {
                let url = location(&key, document.hash());
                paths.insert(key, json!({ "serverRelativeURL": url }));
            }
            // This server's own, of a kind that is not served now.
            None => drop(paths.remove(&key)),
        }
    }
}

/// Adds the entries of another index for documents that this one does not have.
fn add_missing(index: &mut Value, other: &Bytes) {
    let Ok(mut other) = serde_json::from_slice::<Value>(other) else {
        return;
    };
    let (Some(paths), Some(others)) = (
        index.get_mut("paths").and_then(Value::as_object_mut),
        other.get_mut("paths").and_then(Value::as_object_mut),
    ) else {
        return;
    };
    for (path, entry) in std::mem::take(others) {
        paths.entry(path).or_insert(entry);
    }
}

/// Inserts a header whose value is a path or date of the server, which is always valid.
fn insert(response: &mut Response<Body>, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::try_from(text) {
        response.headers_mut().insert(name, value);
    }
}

#[cfg(test)]
mod tests;
