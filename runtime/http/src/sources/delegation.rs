//! A chain of servers behind one chain of filters: what the first does not serve is answered by the next. A version of a group
//! belongs to the first server that has it; so do its documents.
//!
//! # Inside
//!
//! - `http/sources/delegation.rs` decides by the version of the path, once, after the look for an APIService: a version of a group belongs to the first
//!   server that has it, with its documents. The order of all is thus: APIService, this server, the next ones, 404. A source has a snapshot of
//!   the next server, so a request sees one catalog of each server of the chain. Discovery, OpenAPI, the list at `/` and the APIServices of the first are those of all.
//! - The next server is started and stopped by the first (`server/running.rs`): it stops when the first has answered its requests, closes its
//!   own store, and runs its own controllers by its own loopback. Its health checks join those of the first; two of the same name are one.
//! - Handlers of a program (`http/sources/paths.rs`): one of an exact path comes before the documents of the server, one of a prefix after them
//!   and before the 404. Hooks (`server/hooks.rs`) run once the server serves.

use std::fmt;
use std::sync::Arc;

use http::request::Parts;

use super::route_list::ListedRoute;
use super::snapshot::Snapshot;
use super::source::{Route, Source, Stream};
use crate::documents::health::Health;
use crate::documents::openapi::OpenApi;
use crate::documents::served::{Group, add_missing};
use crate::request::request_info::RequestInfo;
use crate::request::version_path::version_of;
use crate::shape::error::page_not_found;
use crate::verbs::call::Call;

/// A server that another one leaves requests to.
pub(crate) trait Delegate: fmt::Debug + Send + Sync {
    /// What it serves now.
    fn snapshot(&self) -> Arc<Snapshot>;
}

/// The next server of a chain, as a source of the versions that no other source has.
#[derive(Debug)]
pub(crate) struct NextServer {
    server: Arc<dyn Delegate>,
    snapshot: Arc<Snapshot>,
    /// The sources whose versions are not left to it.
    first: Vec<Arc<dyn Source>>,
}

impl NextServer {
    /// The next server after these sources.
    pub(crate) fn new(server: Arc<dyn Delegate>, first: Vec<Arc<dyn Source>>) -> Self {
        Self {
            snapshot: server.snapshot(),
            server,
            first,
        }
    }

    /// Whether a path is that of a version which is left to the next server, or of its document of OpenAPI.
    fn has(&self, path: &str) -> bool {
        let path = path.strip_prefix("/openapi/v3").unwrap_or(path);
        let has_version = |source: &Arc<dyn Source>| source.has_version_of(path);
        version_of(path).is_some()
            && !self.first.iter().any(has_version)
            && self.has_version_of(path)
    }

    /// What the next server serves.
    pub(crate) fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }
}

impl Source for NextServer {
    fn name(&self) -> &'static str {
        "next-server"
    }

    fn find<'a, 'r>(&'a self, call: &'a Call<'r>) -> Option<Route<'a, 'r>> {
        if !self.has(&call.info.path) {
            return None;
        }
        let route = self
            .snapshot
            .delegated()
            .find_map(|source| source.find(call));
        // The version is its own, with all paths.
        route.or_else(|| Some(Route::to(page_not_found())))
    }

    /// The paths of versions that are left to it.
    fn routes(&self) -> Vec<ListedRoute> {
        let sources = self.snapshot.delegated();
        let all = sources.flat_map(|source| source.routes());
        let left = all.filter(|route| self.has(&route.path));
        left.map(|route| ListedRoute {
            source: self.name(),
            ..route
        })
        .collect()
    }

    fn is_current(&self) -> bool {
        Arc::ptr_eq(&self.snapshot, &self.server.snapshot())
    }

    fn has_version_of(&self, path: &str) -> bool {
        let mut sources = self.snapshot.delegated();
        sources.any(|source| source.has_version_of(path))
    }

    fn stream(&self, known: Option<Stream>, request: &Parts, info: &RequestInfo) -> Option<Stream> {
        known.or_else(|| {
            let sources = self.snapshot.delegated().rev();
            sources.fold(None, |known, source| source.stream(known, request, info))
        })
    }

    fn add_groups<'a>(&'a self, others: Vec<Group<'a>>) -> Vec<Group<'a>> {
        let sources = self.snapshot.delegated().rev();
        let groups = sources.fold(Vec::new(), |groups, source| source.add_groups(groups));
        add_missing(others, groups)
    }

    fn add_openapi(&self, documents: OpenApi) -> OpenApi {
        documents.with_next(Arc::clone(&self.snapshot.openapi))
    }

    fn add_checks(&self, health: Health) -> Health {
        health.with_checks_of(&self.snapshot.health)
    }
}
