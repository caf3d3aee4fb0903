//! The documents of the server itself: discovery, OpenAPI, its version, metrics, health, and migration of stored objects.

use std::sync::{Arc, OnceLock};

use apiloom_meta::ApiError;
use apiloom_registry::Registry;
use futures_util::FutureExt as _;
use http::Response;
use tokio::sync::Semaphore;

use super::route_list::ListedRoute;
use super::source::{Route, Source};
use crate::background;
use crate::documents::discovery::Discovery;
use crate::documents::health::Health;
use crate::documents::migration;
use crate::documents::openapi::OpenApi;
use crate::observation::metrics::RequestLabels;
use crate::observation::observe::{Observation, path_labels};
use crate::observation::version::Version;
use crate::request::request_info::MIGRATION_PATH;
use crate::response::Body;
use crate::response::compress::compress;
use crate::shape::body::RequestBody;
use crate::shape::error::page_not_found;
use crate::verbs::call::{Call, Serving};
use crate::{Endpoints, ServerInfo};

/// The turn to build a document of OpenAPI.
static BUILDING: Semaphore = Semaphore::const_new(1);

/// The documents of a server, of what its sources have.
#[derive(Debug)]
pub(crate) struct ServerDocuments {
    pub(crate) registry: Arc<Registry>,
    pub(crate) endpoints: Endpoints,
    pub(crate) info: Arc<ServerInfo>,
    pub(crate) version: Arc<Version>,
    pub(crate) health: Health,
    pub(crate) openapi: Arc<OpenApi>,
    pub(crate) serving: Serving,
    /// The other sources, in their order.
    pub(crate) sources: Vec<Arc<dyn Source>>,
    /// Built when it is first requested.
    pub(crate) discovery: OnceLock<Discovery>,
}

/// A document of a path.
#[derive(Clone, Copy, Debug)]
enum DocumentKind {
    Discovery,
    Health,
    Metrics,
    Migration,
    OpenApi,
    Version,
}

impl ServerDocuments {
    fn discovery(&self) -> &Discovery {
        self.discovery.get_or_init(|| {
            let on = self.endpoints;
            let openapi = self.openapi.paths().filter(|_| on.openapi);
            let metrics = on.metrics.then(|| "/metrics".to_owned());
            let others = self
                .health
                .paths()
                .chain(openapi)
                .chain(["/version", MIGRATION_PATH].map(str::to_owned))
                .chain(metrics)
                .chain(self.sources.iter().flat_map(|source| source.listed_paths()));
            let sources = self.sources.iter().rev();
            let groups = sources.fold(Vec::new(), |groups, source| source.add_groups(groups));
            let discovery = Discovery::of(&groups, &self.info.address).with_paths(others);
            discovery.listing_itself(on.discovery)
        })
    }

    /// The document of a path; `None` if there is none, or if it is off.
    fn document_at(&self, path: &str) -> Option<DocumentKind> {
        let on = self.endpoints;
        let has_discovery = if path == "/" { on.index } else { on.discovery };
        match path {
            _ if has_discovery && self.discovery().has(path) => Some(DocumentKind::Discovery),
            "/version" | "/version/" => Some(DocumentKind::Version),
            MIGRATION_PATH => Some(DocumentKind::Migration),
            "/metrics" if on.metrics => Some(DocumentKind::Metrics),
            _ if on.openapi && OpenApi::is_path(path) => Some(DocumentKind::OpenApi),
            _ if self.health.has(path) => Some(DocumentKind::Health),
            _ => None,
        }
    }

    /// Responds with a document of the request's path.
    async fn answer(&self, document: DocumentKind, call: &Call<'_>) -> Response<Body> {
        let request = call.request;
        let labels = path_labels(&request.method, &call.info.path);
        let observed = Observation::new(&self.serving.metrics, labels, None, None);
        let answer = match document {
            DocumentKind::Discovery => {
                let discovery = self.discovery();
                discovery.respond(request, (&call.accepts, &call.query))
            }
            DocumentKind::Version => self.version.respond(request),
            DocumentKind::Migration => {
                let stopping = self.serving.stopping.clone();
                let migrated = migration::respond(request, &call.query, &self.registry, stopping);
                Some(migrated)
            }
            DocumentKind::OpenApi => self.openapi(call).await.transpose(),
            DocumentKind::Metrics => {
                let metrics = &self.serving.metrics;
                metrics.respond(request, &call.accepts).map(Ok)
            }
            DocumentKind::Health => self.health.respond(request).await.map(Ok),
        };
        // There is one, since the path was looked for.
        let answer = answer.unwrap_or_else(|| Ok(page_not_found()));
        let answer = answer.unwrap_or_else(|error| call.respond(&error));
        let answer = compress(&request.headers, answer);
        observed.answered(&answer);
        answer
    }

    /// The first request builds the document, which is slow for many kinds, so it runs in a blocking thread. Documents of many states of the
    /// catalog would take much memory together, so one is built at a time.
    async fn openapi(&self, call: &Call<'_>) -> Result<Option<Response<Body>>, ApiError> {
        let chosen = call
            .accepts
            .choose(OpenApi::media_types(call.request.uri.path()));
        if self.openapi.has(call.request, chosen) {
            return Ok(self.openapi.respond(call.request, chosen));
        }
        // It is never closed.
        let turn = BUILDING.acquire().await;
        let (openapi, request) = (Arc::clone(&self.openapi), call.request.clone());
        let respond = move || {
            let _turn = turn;
            openapi.respond(&request, chosen)
        };
        background::spawn_blocking(respond)
            .await
            .map_err(|error| ApiError::internal(error.to_string()))
    }
}

impl Source for ServerDocuments {
    fn name(&self) -> &'static str {
        "documents"
    }

    fn find<'a, 'r>(&'a self, call: &'a Call<'r>) -> Option<Route<'a, 'r>> {
        if !call.is_for_document() {
            return None;
        }
        let document = self.document_at(call.request.uri.path())?;
        let respond = move |_: RequestBody| self.answer(document, call).boxed();
        Some(Route::Other(Box::new(respond)))
    }

    fn routes(&self) -> Vec<ListedRoute> {
        let (on, name) = (self.endpoints, self.name());
        let document = |path: String| ListedRoute::new(name, path, ["get"]);
        let index = on.index.then(|| "/".to_owned());
        let discovery = on.discovery.then(|| self.discovery().own_paths());
        let metrics = on.metrics.then(|| "/metrics".to_owned());
        let openapi = on.openapi.then(|| self.openapi.paths());
        let mut routes: Vec<ListedRoute> = index
            .into_iter()
            .chain(discovery.into_iter().flatten())
            .chain(["/version".to_owned()])
            .map(document)
            .collect();
        routes.push(ListedRoute::new(name, MIGRATION_PATH, ["post"]));
        let others = metrics.into_iter().chain(openapi.into_iter().flatten());
        routes.extend(others.map(document));
        let checks = self.health.listed();
        routes.extend(checks.map(|(path, part)| document(path).of_part(part)));
        routes
    }

    fn labels(&self, call: &Call<'_>) -> Option<RequestLabels> {
        let info = &call.info;
        (!info.is_resource_request).then(|| {
            let is_known = self.discovery().lists(&info.path);
            let path = if is_known { &*info.path } else { "" };
            path_labels(&call.request.method, path)
        })
    }
}
