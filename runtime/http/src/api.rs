//! The API as one function from requests to responses, by the sources of a server.

use std::sync::{Arc, OnceLock};

use apiloom_meta::interrupt;
use apiloom_meta::kind::Verb;
use apiloom_registry::auth::Authenticated;
use apiloom_registry::{Catalog, Registry};
use arc_swap::ArcSwap;
use http::request::Parts;
use http::{Response, StatusCode};
use tokio::time::Instant;

use super::documents::health::Health;
use super::documents::openapi::OpenApi;
use super::observation::metrics::Metrics;
use super::observation::version::Version;
use super::request::cut_off::until;
use super::request::query::Query;
use super::request::request_info::RequestInfo;
use super::request::timeout::out_of_time;
use super::response::Body;
use super::shape::body::RequestBody;
use super::sources::definitions::EmptyDefinitions;
use super::sources::delegation::{Delegate, NextServer};
use super::sources::documents::ServerDocuments;
use super::sources::paths::{ExactPaths, OtherPaths, PathHandlers};
use super::sources::refusals::{PathsWithoutWebSocket, UnknownPaths};
use super::sources::resources::CatalogResources;
use super::sources::route_list::{KindParts, ListedRoute};
use super::sources::snapshot::Snapshot;
use super::sources::source::{AddedSource, Source};
use super::streams::shutdown_signal::ShutdownSignal;
use super::streams::websocket;
use super::verbs::call::{Arrival, Call, Serving};
use super::{Endpoints, ServerInfo};

/// The API as one function from a [`Call`] to its response. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Api {
    settings: Arc<Settings>,
    /// The latest known state; replaced when the catalog or a source changes.
    last: Arc<ArcSwap<Snapshot>>,
}

/// What a server serves with every catalog.
#[derive(Clone, Debug)]
struct Settings {
    registry: Arc<Registry>,
    /// The sources of parts of the server, which are asked before all others.
    added: Vec<AddedSource>,
    /// The server that answers what this one does not serve.
    next: Option<Arc<Api>>,
    /// The handlers of the program.
    handlers: Arc<PathHandlers>,
    /// The parts that brought the kinds.
    parts: Arc<KindParts>,
    endpoints: Endpoints,
    info: Arc<ServerInfo>,
    version: Arc<Version>,
    /// The checks of this server itself.
    health: Health,
    serving: Serving,
}

impl Api {
    /// The API of a registry, with these health checks. Documents are built when they are first requested, once for
    /// each catalog.
    pub fn new(registry: Arc<Registry>, info: &ServerInfo, health: Health) -> Self {
        let catalog = registry.catalog();
        let openapi = OpenApi::new(&catalog);
        let settings = Settings {
            serving: Serving {
                metrics: Arc::new(Metrics::of_registry(info, Arc::clone(&registry))),
                stopping: ShutdownSignal::default(),
            },
            registry,
            added: Vec::new(),
            next: None,
            handlers: Arc::default(),
            parts: Arc::default(),
            endpoints: Endpoints::default(),
            version: Arc::new(Version::new(info)),
            info: Arc::new(info.clone()),
            health,
        };
        Self::of(settings, catalog, openapi)
    }

    fn of(settings: Settings, catalog: Arc<Catalog>, openapi: OpenApi) -> Self {
        let snapshot = settings.snapshot(catalog, openapi);
        Self {
            settings: Arc::new(settings),
            last: Arc::new(ArcSwap::from_pointee(snapshot)),
        }
    }

    /// The same API with another setting.
    fn with(self, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::clone(&self.settings);
        change(&mut settings);
        let last = self.last.load();
        Self::of(settings, Arc::clone(&last.catalog), last.openapi.own())
    }

    /// What is served now.
    fn current(&self) -> Arc<Snapshot> {
        let last = self.last.load();
        let registry = &self.settings.registry;
        let has_catalog = last.catalog.generation() == registry.generation();
        if has_catalog && last.is_current() {
            return Arc::clone(&last);
        }
        let (catalog, openapi) = if has_catalog {
            (Arc::clone(&last.catalog), last.openapi.own())
        } else {
            let catalog = registry.catalog();
            let openapi = OpenApi::new(&catalog);
            (catalog, openapi)
        };
        let current = Arc::new(self.settings.snapshot(catalog, openapi));
        self.last.store(Arc::clone(&current));
        current
    }

    /// The metrics of the API, which `/metrics` prints.
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.settings.serving.metrics)
    }

    /// Parses the query of a request, a long one without delaying other requests.
    pub async fn read<'r>(
        &self,
        arrival: Arrival<'r>,
        request: &'r Parts,
        mut info: Box<RequestInfo>,
        user: Authenticated,
    ) -> Call<'r> {
        let bytes = request.uri.query().map_or(0, str::len);
        let read = || {
            let query = Query::of(&request.uri);
            info.read_query(&query);
            query
        };
        let query = self.settings.registry.read_query(bytes, read).await;
        let stream = self.current().stream(request, &info).unwrap_or_default();
        info.connects = stream.connects;
        info.second_verb =
            (stream.takes_input && websocket::is_requested(request)).then_some(Verb::Create);
        Call::new(arrival, request, info, query, user)
    }

    /// Responds to an authorized request, by its deadline.
    pub async fn answer(&self, call: &Call<'_>, body: RequestBody) -> Response<Body> {
        let current = self.current();
        let answer = current.answer(call, body);
        let Some(at) = call.deadline else {
            return answer.await;
        };
        match tokio::time::timeout_at(at, answer).await {
            Ok(response) if !interrupt::is_set() || Instant::now() < at => until(at, response),
            // Its work may have been interrupted before it was asked whether it is.
            Ok(_) | Err(_) => {
                self.count_out_of_time(call);
                out_of_time()
            }
        }
    }

    /// Counts a request that was rejected because of the limits for requests in flight.
    pub fn count_refused(&self, call: &Call<'_>) {
        let labels = self.current().labels(call);
        let code = StatusCode::TOO_MANY_REQUESTS.as_u16();
        self.settings.serving.metrics.refused(&labels, code);
    }

    /// Counts a request that timed out.
    pub fn count_out_of_time(&self, call: &Call<'_>) {
        let labels = self.current().labels(call);
        let code = StatusCode::GATEWAY_TIMEOUT.as_u16();
        self.settings.serving.metrics.terminated(&labels, code);
    }

    /// Asks this source before all others but those that were added earlier.
    #[must_use]
    pub fn adding(self, source: AddedSource) -> Self {
        self.with(|settings| settings.added.push(source))
    }

    /// Answers the paths of these handlers, and the documents that are on.
    #[must_use]
    pub fn handling(self, handlers: PathHandlers, endpoints: Endpoints) -> Self {
        let handlers = Arc::new(handlers);
        self.with(|settings| (settings.handlers, settings.endpoints) = (handlers, endpoints))
    }

    /// Lists kinds with these parts.
    #[must_use]
    pub fn of_parts(self, parts: KindParts) -> Self {
        self.with(|settings| settings.parts = Arc::new(parts))
    }

    /// The routes of what is served now, in the order in which a request is matched.
    pub fn routes(&self) -> Vec<ListedRoute> {
        self.current().routes()
    }

    /// Leaves what this server does not serve to another one, whose requests are counted here, and whose health checks become
    /// those of this one.
    #[must_use]
    pub fn delegating(self, next: Self) -> Self {
        let next = next.counted_in(&self.metrics());
        self.with(|settings| settings.next = Some(Arc::new(next)))
    }

    fn counted_in(self, metrics: &Arc<Metrics>) -> Self {
        self.with(|settings| {
            settings.serving.metrics = Arc::clone(metrics);
            let next = settings.next.as_ref().map(|next| Api::clone(next));
            settings.next = next.map(|next| Arc::new(next.counted_in(metrics)));
        })
    }

    /// Sets the signal that ends watches.
    #[must_use]
    pub fn stopping(self, stopping: impl Into<ShutdownSignal>) -> Self {
        self.with(|settings| settings.serving.stopping = stopping.into())
    }
}

impl Delegate for Api {
    fn snapshot(&self) -> Arc<Snapshot> {
        self.current()
    }
}

impl Settings {
    /// What is served by a catalog, whose own documents of OpenAPI are given.
    fn snapshot(&self, catalog: Arc<Catalog>, openapi: OpenApi) -> Snapshot {
        let (next, mut sources) = self.content(&catalog);
        let mut handlers = vec![Arc::clone(&self.handlers)];
        if let Some(next) = &next {
            handlers.extend_from_slice(&next.handlers);
        }
        let openapi = sources
            .iter()
            .fold(openapi, |openapi, source| source.add_openapi(openapi));
        let openapi = Arc::new(openapi);
        let health = sources.iter().fold(self.health.clone(), |health, source| {
            source.add_checks(health)
        });
        let paths: Arc<dyn Source> = Arc::new(OtherPaths {
            handlers: handlers.clone(),
            serving: self.serving.clone(),
        });
        let documents = ServerDocuments {
            registry: Arc::clone(&self.registry),
            endpoints: self.endpoints,
            info: Arc::clone(&self.info),
            version: Arc::clone(&self.version),
            health: health.clone(),
            openapi: Arc::clone(&openapi),
            serving: self.serving.clone(),
            sources: sources.iter().chain([&paths]).cloned().collect(),
            discovery: OnceLock::new(),
        };
        sources.push(Arc::new(documents));
        sources.push(paths);
        sources.push(Arc::new(UnknownPaths(Arc::clone(&catalog))));
        Snapshot {
            catalog,
            sources,
            openapi,
            health,
            handlers,
        }
    }

    /// The sources of which the documents are made, in their order, with what the next server serves.
    fn content(&self, catalog: &Arc<Catalog>) -> (Option<Arc<Snapshot>>, Vec<Arc<dyn Source>>) {
        let resources = CatalogResources::new(
            Arc::clone(&self.registry),
            Arc::clone(catalog),
            Arc::clone(&self.parts),
            self.serving.clone(),
        );
        let resources: Arc<dyn Source> = Arc::new(resources);
        let added = self.added.iter();
        let mut sources: Vec<Arc<dyn Source>> = added
            .map(|added| added.of_catalog(catalog, &self.serving))
            .collect();
        let mut of_next = None;
        if let Some(next) = &self.next {
            let first = sources.iter().chain([&resources]).cloned().collect();
            let next = NextServer::new(Arc::clone(next) as _, first);
            of_next = Some(Arc::clone(next.snapshot()));
            sources.push(Arc::new(next));
        }
        sources.push(Arc::new(ExactPaths {
            handlers: Arc::clone(&self.handlers),
            serving: self.serving.clone(),
        }));
        sources.push(Arc::new(PathsWithoutWebSocket));
        sources.push(Arc::new(EmptyDefinitions(Arc::clone(catalog))));
        sources.push(resources);
        (of_next, sources)
    }
}
