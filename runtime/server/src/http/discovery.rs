//! Discovery: which groups, versions and resources there are. `/api`, `/apis` and below (legacy, one document per
//! group and version), the aggregated lists at `/api` and `/apis`, and the list of paths at `/`.
//!
//! Every document is made once for a catalog; equal catalogs give equal bytes.

mod documents;

use std::collections::BTreeMap;

use apiloom_meta::{ApiError, StatusReason, codec};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, VARY};
use http::request::Parts;
use http::{HeaderValue, Response};

use super::accept::{Clause, accepted};
use super::error::only_get;
use super::negotiate::{MEDIA_TYPES, wants_pretty};
use super::query::Query;
use super::response::ok;
use super::served::{Group, served};
use super::static_doc::{StaticDoc, conditional};
use super::{Body, ServerInfo};
use crate::registry::Catalog;

/// The discovery documents of a server.
#[derive(Debug)]
pub struct Discovery {
    /// Legacy documents by path, without a trailing slash.
    legacy: BTreeMap<String, Bytes>,
    /// Aggregated documents; only `/api` and `/apis` have one.
    aggregated: BTreeMap<&'static str, StaticDoc>,
    /// What `/` lists beside the paths of `legacy`.
    other_paths: Vec<String>,
}

/// The two media types of discovery, in order of registration, and their aggregated forms.
const FORMATS: [(&str, &str, codec::Format); 2] = [
    (
        "application/json",
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        codec::Format::Json,
    ),
    (
        "application/yaml",
        "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        codec::Format::Yaml,
    ),
];

/// What a request for discovery asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wanted {
    aggregated: bool,
    /// The `Content-Type` of the answer.
    content_type: &'static str,
    format: codec::Format,
    pretty: bool,
}

impl Discovery {
    /// The documents of what this catalog serves.
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
        }
    }

    /// Adds paths that others serve to the list at `/`.
    #[must_use]
    pub fn with_paths<S: Into<String>>(mut self, paths: impl IntoIterator<Item = S>) -> Self {
        self.other_paths.extend(paths.into_iter().map(Into::into));
        self
    }

    /// Answers a request for a discovery document or the list of paths; `None` for a path that is neither.
    ///
    /// # Errors
    /// MethodNotAllowed for anything but GET, NotAcceptable for an `Accept` that names neither JSON nor YAML.
    pub fn respond(&self, request: &Parts) -> Option<Result<Response<Body>, ApiError>> {
        let path = request.uri.path();
        if path == "/" {
            return Some(only_get(request).map(|()| ok("application/json", self.paths())));
        }
        // One trailing slash is accepted; a second one makes another, unknown path.
        let path = path.strip_suffix('/').unwrap_or(path);
        let legacy = self.legacy.get(path)?;
        Some(self.document(request, legacy, self.aggregated.get(path)))
    }

    fn document(
        &self,
        request: &Parts,
        legacy: &Bytes,
        aggregated: Option<&StaticDoc>,
    ) -> Result<Response<Body>, ApiError> {
        only_get(request)?;
        let wanted = negotiate(request, aggregated.is_some())?;
        Ok(match aggregated {
            Some(doc) if wanted.aggregated => conditional(
                &request.headers,
                doc.hash(),
                wanted.content_type,
                "public",
                || encode(doc.bytes(), wanted),
            ),
            // The same path has two kinds of answer, so caches must look at Accept.
            Some(_) => varying(ok(wanted.content_type, encode(legacy, wanted))),
            None => ok(wanted.content_type, encode(legacy, wanted)),
        })
    }

    /// Whether a path is in the list at `/`.
    pub(super) fn lists(&self, path: &str) -> bool {
        self.legacy.contains_key(path) || self.other_paths.iter().any(|other| other == path)
    }

    fn paths(&self) -> Bytes {
        let mut paths: Vec<&str> = self
            .legacy
            .keys()
            .chain(&self.other_paths)
            .map(String::as_str)
            .collect();
        paths.sort_unstable();
        paths.dedup();
        codec::indent_json(serde_json::json!({ "paths": paths }).to_string().as_bytes())
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

/// The first clause and format that go together; clauses that ask for another conversion are passed over.
fn negotiate(request: &Parts, has_aggregated: bool) -> Result<Wanted, ApiError> {
    let query = Query::of(&request.uri);
    for clause in accepted(&request.headers) {
        let Some(aggregated) = asks_for_aggregated(&clause, has_aggregated) else {
            continue;
        };
        for (media_type, aggregated_type, format) in FORMATS {
            if clause.matches(media_type) {
                let content_type = if aggregated {
                    aggregated_type
                } else {
                    media_type
                };
                return Ok(Wanted {
                    aggregated,
                    content_type,
                    format,
                    pretty: clause.param("pretty") == Some("1")
                        || wants_pretty(&request.headers, &query),
                });
            }
        }
    }
    let text = format!("only the following media types are accepted: {MEDIA_TYPES}");
    Err(ApiError::new(StatusReason::NotAcceptable, text))
}

/// Whether a clause asks for the aggregated list (`Some(true)`) or the legacy document; `None` for what is not served.
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

/// The document as asked for; documents are kept as compact JSON with its newline.
fn encode(json: &Bytes, wanted: Wanted) -> Bytes {
    match wanted.format {
        codec::Format::Yaml => {
            codec::encode_yaml(&serde_json::from_slice(json).unwrap_or_default())
        }
        codec::Format::Json if wanted.pretty => codec::indent_json(json.trim_ascii_end()),
        codec::Format::Json => json.clone(),
    }
}

#[cfg(test)]
mod tests;
