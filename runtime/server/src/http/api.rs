//! The API as a function from requests to responses: routing, and the parts that all responses share.

use std::sync::{Arc, OnceLock};

use apiloom_meta::kind::{SmolStr, Verb};
use apiloom_meta::{ApiError, StatusReason, interrupt};
use arc_swap::ArcSwap;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{Method, Response, StatusCode};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::documents::discovery::Discovery;
use super::documents::health::Health;
use super::documents::migration;
use super::documents::openapi::{OpenApi, RemoteOpenApi};
use super::observation::metrics::{Metrics, RequestKind, RequestLabels, verb_label};
use super::observation::observe::{Observation, resource_labels};
use super::observation::version::Version;
use super::request::cut_off::until;
use super::request::query::Query;
use super::request::request_info::{MIGRATION_PATH, RequestInfo};
use super::request::timeout::{MUTATING_TIMEOUT, interrupt_at, out_of_time};
use super::request::version_path::version_of;
use super::response::compress::compress;
use super::response::{Body, full, warning};
use super::shape::body::{self, RequestBody};
use super::shape::encode::Reply;
use super::shape::error::{page_not_found, respond_as};
use super::shape::format;
use super::shape::negotiate::{Answer, check_route};
use super::sources::aggregation::{
    Aggregation, ForwardedResponse, GROUP as SERVICES, Service, Table, asks_for_upgrade, merge,
};
use super::sources::definitions;
use super::sources::delegation::{served_by, serves};
use super::sources::paths::{Found, PathHandlers};
use super::streams::shutdown_signal::ShutdownSignal;
use super::streams::{extended_connect, websocket};
use super::verbs::call::{Arrival, Call, ResourceCall};
use super::verbs::route::{connects, is_out_of_scope, route, stream_of};
use super::verbs::{connect, create, delete, get, list, patch, subresource, update, watch};
use super::{Endpoints, ServerInfo};
use crate::auth::Authenticated;
use crate::registry::{
    Catalog, Endpoint, OffThread, Registry, RequestContext, check_wanted, handler_timeout,
};

/// The turn to build a document of OpenAPI.
static BUILDING: Semaphore = Semaphore::const_new(1);

/// The API as one function from a [`Call`] to its response. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    registry: Arc<Registry>,
    /// `None` if requests are never forwarded.
    aggregation: Option<Arc<Aggregation>>,
    /// The server that answers what this one does not serve.
    next: Option<Arc<Api>>,
    /// The API of the latest known catalog; replaced when the catalog changes.
    last: Arc<ArcSwap<Inner>>,
}

/// The API of one catalog. A request uses the same one from beginning to end.
#[derive(Clone, Debug)]
struct Inner {
    registry: Arc<Registry>,
    catalog: Arc<Catalog>,
    aggregation: Option<Arc<Aggregation>>,
    /// The versions that other servers serve.
    services: Arc<Table>,
    /// The same of the next server.
    next: Option<Arc<Inner>>,
    /// The handlers of the program.
    handlers: PathHandlers,
    endpoints: Endpoints,
    info: Arc<ServerInfo>,
    discovery: Arc<OnceLock<Discovery>>,
    openapi: Arc<OpenApi>,
    version: Arc<Version>,
    health: Health,
    metrics: Arc<Metrics>,
    stopping: ShutdownSignal,
}

/// The target of a request, by its path and method.
enum Destination<'a> {
    /// A resource, with the verb.
    Resource(&'a Arc<Endpoint>, Verb),
    /// A document of the server, if there is one for the path: discovery, OpenAPI, health, metrics.
    Document,
    /// A path of no group of this server.
    Unknown,
    /// This error response, because there is no such resource.
    Response(Response<Body>),
}

impl Api {
    /// The API of a registry, with these health checks. Documents are built when they are first requested, once for
    /// each catalog.
    pub(crate) fn new(registry: Arc<Registry>, info: &ServerInfo, health: Health) -> Self {
        let catalog = registry.catalog();
        let inner = Inner {
            registry: Arc::clone(&registry),
            metrics: Arc::new(Metrics::of_registry(info, Arc::clone(&registry))),
            discovery: Arc::default(),
            openapi: Arc::new(OpenApi::new(&catalog)),
            catalog,
            aggregation: None,
            services: Arc::default(),
            next: None,
            handlers: PathHandlers::default(),
            endpoints: Endpoints::default(),
            version: Arc::new(Version::new(info)),
            info: Arc::new(info.clone()),
            health,
            stopping: ShutdownSignal::default(),
        };
        Self {
            registry,
            aggregation: None,
            next: None,
            last: Arc::new(ArcSwap::from_pointee(inner)),
        }
    }

    /// The same API with another part.
    fn with(self, change: impl FnOnce(&mut Inner)) -> Self {
        let mut inner = Inner::clone(&self.last.load());
        inner.discovery = Arc::default();
        change(&mut inner);
        Self {
            last: Arc::new(ArcSwap::from_pointee(inner)),
            ..self
        }
    }

    /// The API of the current catalog.
    fn current(&self) -> Arc<Inner> {
        let last = self.last.load();
        let aggregation = self.aggregation.as_ref();
        let of_services = aggregation.map_or(0, |aggregation| aggregation.generation());
        let has_catalog = last.catalog.generation() == self.registry.generation();
        let next = self.next.as_ref().map(|next| next.current());
        let has_next = match (&last.next, &next) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (before, now) => before.is_none() && now.is_none(),
        };
        if has_catalog && has_next && last.services.generation() == of_services {
            return Arc::clone(&last);
        }
        let services = aggregation.map(|aggregation| aggregation.table());
        let services = services.unwrap_or_default();
        let (catalog, mut openapi) = if has_catalog {
            (Arc::clone(&last.catalog), last.openapi.own())
        } else {
            let catalog = self.registry.catalog();
            let openapi = OpenApi::new(&catalog);
            (catalog, openapi)
        };
        if !services.services().is_empty() {
            openapi = openapi.with_remote(Arc::clone(&services) as Arc<dyn RemoteOpenApi>);
        }
        if let Some(next) = &next {
            openapi = openapi.with_next(Arc::clone(&next.openapi));
        }
        let current = Arc::new(Inner {
            discovery: Arc::default(),
            openapi: Arc::new(openapi),
            catalog,
            services,
            next,
            ..Inner::clone(&last)
        });
        self.last.store(Arc::clone(&current));
        current
    }

    /// The metrics of the API, which `/metrics` prints.
    pub(crate) fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.last.load().metrics)
    }

    /// Parses the query of a request, a long one without delaying other requests.
    pub(crate) async fn read<'r>(
        &self,
        arrival: Arrival<'r>,
        request: &'r Parts,
        mut info: RequestInfo,
        user: Authenticated,
    ) -> Call<'r> {
        let bytes = request.uri.query().map_or(0, str::len);
        let read = || {
            let query = Query::of(&request.uri);
            info.read_query(&query);
            query
        };
        let query = self.registry.read_query(bytes, read).await;
        let stream = self.takes_input(&info);
        let is_forwarded_stream = || {
            let aggregation = self.aggregation.as_ref();
            let table = aggregation.map(|aggregation| aggregation.table());
            asks_for_upgrade(request)
                && table.is_some_and(|table| table.service_of(&info.path).is_some())
        };
        info.connects = stream.is_some() || is_forwarded_stream();
        info.second_verb =
            (stream == Some(true) && websocket::is_requested(request)).then_some(Verb::Create);
        Call::new(arrival, request, info, query, user)
    }

    /// Whether a stream takes input, if the request is for one.
    fn takes_input(&self, info: &RequestInfo) -> Option<bool> {
        let catalog = self.registry.catalog();
        match catalog.endpoint(&info.api_group, &info.api_version, &info.resource) {
            Some(endpoint) => {
                let stream = stream_of(endpoint.def(), info)?;
                Some(stream.verbs.contains(&Verb::Create))
            }
            None => self.next.as_ref()?.takes_input(info),
        }
    }

    /// Responds to an authorized request, by its deadline.
    pub(crate) async fn answer(&self, call: &Call<'_>, body: RequestBody) -> Response<Body> {
        let current = self.current();
        let answer = current.answer(call, body);
        let Some(at) = call.deadline else {
            return answer.await;
        };
        match tokio::time::timeout_at(at, answer).await {
            Ok(response) if !interrupt::is_set() || Instant::now() < at => until(at, response),
            // Its work may have been interrupted before it was asked whether it is.
            Ok(_) | Err(_) => {
                current.count_out_of_time(call);
                out_of_time()
            }
        }
    }

    /// Counts a request that was rejected because of the limits for requests in flight.
    pub(crate) fn count_refused(&self, call: &Call<'_>) {
        let inner = self.current();
        let labels = inner.labels(call);
        let code = StatusCode::TOO_MANY_REQUESTS.as_u16();
        inner.metrics.refused(&labels, code);
    }

    /// Counts a request that timed out before it was authorized.
    pub(crate) fn count_out_of_time(&self, call: &Call<'_>) {
        self.current().count_out_of_time(call);
    }

    /// Forwards requests for versions that other servers serve.
    #[must_use]
    pub(crate) fn aggregating(self, aggregation: Arc<Aggregation>) -> Self {
        let of_requests = Some(Arc::clone(&aggregation));
        Self {
            aggregation: of_requests,
            ..self.with(|inner| inner.aggregation = Some(aggregation))
        }
    }

    /// Answers the paths of these handlers, and the documents that are on.
    #[must_use]
    pub(crate) fn handling(self, handlers: PathHandlers, endpoints: Endpoints) -> Self {
        self.with(|inner| (inner.handlers, inner.endpoints) = (handlers, endpoints))
    }

    /// Leaves what this server does not serve to another one, whose requests are counted here, and whose health checks become
    /// those of this one.
    #[must_use]
    pub(crate) fn delegating(self, next: Self) -> Self {
        let next = next.counted_in(&self.metrics());
        let present = next.current();
        Self {
            next: Some(Arc::new(next)),
            ..self.with(|inner| {
                inner.health = inner.health.clone().with_checks_of(&present.health);
                // The present state is taken with the first request.
                inner.next = None;
            })
        }
    }

    fn counted_in(self, metrics: &Arc<Metrics>) -> Self {
        let next = self.next.as_ref().map(|next| Api::clone(next));
        let next = next.map(|next| Arc::new(next.counted_in(metrics)));
        Self {
            next,
            ..self.with(|inner| inner.metrics = Arc::clone(metrics))
        }
    }

    /// Sets the signal that ends watches.
    #[must_use]
    pub(crate) fn stopping(self, stopping: impl Into<ShutdownSignal>) -> Self {
        self.with(|inner| inner.stopping = stopping.into())
    }
}

impl Inner {
    /// This server and those after it.
    fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |server| server.next.as_deref())
    }

    /// The first server of the chain that has the version of a path; this one, if none has.
    fn server_of(&self, path: &str) -> &Self {
        if self.next.is_none() {
            return self;
        }
        let path = path.strip_prefix("/openapi/v3").unwrap_or(path);
        let Some((group, version)) = version_of(path) else {
            return self;
        };
        if self.services.service_of(path).is_some() {
            return self;
        }
        let mut servers = self.chain();
        let found = servers.find(|server| serves(&server.catalog, group, version));
        found.unwrap_or(self)
    }

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
                .chain(self.chain().flat_map(|server| server.handlers.listed()));
            let groups = served_by(self.chain().map(|server| &*server.catalog));
            let has_services = self
                .catalog
                .groups()
                .iter()
                .any(|group| group.name == SERVICES);
            let groups = if has_services {
                merge(groups, &self.services)
            } else {
                groups
            };
            let discovery = Discovery::of(&groups, &self.info.address).with_paths(others);
            discovery.listing_itself(on.discovery)
        })
    }

    /// Responds to a request as the server of the chain that has its version, or forwards it.
    async fn answer(&self, call: &Call<'_>, body: RequestBody) -> Response<Body> {
        let (info, request) = (&call.info, call.request);
        if let Some(service) = self.services.service_of(&info.path) {
            return self.forward(service, call, body).await;
        }
        let server = self.server_of(&info.path);
        if let Some(found) = server.handlers.exact(&info.path) {
            return server.handle(&found, call, body).await;
        }
        if extended_connect::is_converted(request) && !info.connects {
            return call.respond(&extended_connect::no_websocket());
        }
        let (endpoint, verb) = match server.destination(call) {
            Destination::Resource(endpoint, verb) => (endpoint, verb),
            Destination::Document => return server.document(call, body).await,
            Destination::Unknown => {
                let answer = server.by_handler(call, body).await;
                return answer.unwrap_or_else(page_not_found);
            }
            Destination::Response(response) => return response,
        };
        let ctx = RequestContext::new(Arc::clone(call.user.user()));
        let observed = server.observe((endpoint, verb), call, &ctx, &body);
        let part = |index: usize| info.parts.get(index).map_or("", String::as_str);
        let has_tables = endpoint.def().has_store;
        let output = endpoint.output(part(2));
        let message = output.def().protobuf;
        let resource_call = |answer| ResourceCall {
            catalog: &server.catalog,
            endpoint,
            ctx: &ctx,
            request,
            query: &call.query,
            reply: Reply {
                endpoint: Arc::clone(output),
                answer,
                message,
            },
            namespace: info.in_namespace.then_some(info.namespace.as_str()),
            name: part(1),
            subresource: part(2),
            body,
            peer: call.arrival.connection.peer.map(|peer| peer.ip()),
            stopping: server.stopping.clone(),
            metrics: &server.metrics,
        };
        let is_stream = connects(endpoint.def(), info);
        // A stream has the form that its handler gives it.
        let answered = if is_stream {
            Ok(Answer::default())
        } else {
            Answer::negotiate(&call.accepts, &call.query, has_tables, message.is_some())
        };
        let mut socket = None;
        let answer = match answered {
            Ok(answer) if is_stream => {
                let answer = connect::connect(resource_call(answer)).await;
                answer.map(|(response, task)| {
                    socket = task;
                    response
                })
            }
            Ok(answer) => perform(verb, resource_call(answer)).await,
            // Protobuf is accepted for errors of every kind, but not if it is the reason of this one.
            Err(error) if error.reason == Some(StatusReason::NotAcceptable) => {
                Ok(respond_as(&error, &format::INDENTED))
            }
            Err(error) => Err(error),
        };
        let mut response = answer.unwrap_or_else(|error| call.respond(&error));
        warning::add(response.headers_mut(), &ctx.take_warnings());
        if !is_stream {
            response = compress(&request.headers, response);
        }
        if request.method == Method::HEAD {
            response = response.map(|_| full(Bytes::new()));
        }
        match socket {
            Some(socket) => observed.upgrade(response, socket),
            None => websocket::upgrade(request, observed.answer(response)),
        }
    }

    /// Forwards a request to the server of its version. Admission is left to that.
    async fn forward(
        &self,
        service: &Service,
        call: &Call<'_>,
        body: RequestBody,
    ) -> Response<Body> {
        let Some(aggregation) = &self.aggregation else {
            return page_not_found();
        };
        let labels = RequestLabels {
            verb: verb_label(call.info.verb.as_str()),
            group: SmolStr::new(&service.group),
            version: SmolStr::new(&service.version),
            ..RequestLabels::default()
        };
        let running = match call.info.verb.as_str() {
            _ if call.deadline.is_none() => self.metrics.begin_long_running(&labels),
            "get" | "list" => self.metrics.begin(RequestKind::ReadOnly),
            _ => self.metrics.begin(RequestKind::Mutating),
        };
        let observed = Observation::new(&self.metrics, labels, None, Some(running));
        let stopping = self.stopping.clone();
        let ForwardedResponse { response, tunnel } =
            aggregation.forward(service, call, body, stopping).await;
        match tunnel {
            Some(tunnel) => observed.upgrade(response, tunnel.run()),
            None => observed.answer(response),
        }
    }

    /// Finds the target of a request.
    fn destination(&self, call: &Call<'_>) -> Destination<'_> {
        let info = &call.info;
        let known_group = self
            .catalog
            .groups()
            .iter()
            .any(|group| group.name == info.api_group);
        if !known_group && let Some(answer) = definitions::none(info, call.request) {
            return Destination::Response(answer);
        }
        if info.path.starts_with("//") || (info.is_resource_request && !known_group) {
            return Destination::Unknown;
        }
        if !info.is_resource_request {
            return Destination::Document;
        }
        match self.find(call) {
            Ok((endpoint, verb)) => Destination::Resource(endpoint, verb),
            Err(error) => Destination::Response(self.refuse(call, &error)),
        }
    }

    /// The response to a request for which there is no endpoint, or whose path or method the endpoint does not have. Those of
    /// custom resources are others, as in kube-apiserver.
    fn refuse(&self, call: &Call<'_>, error: &ApiError) -> Response<Body> {
        let info = &call.info;
        let group = &info.api_group;
        let endpoint = self
            .catalog
            .endpoint(group, &info.api_version, &info.resource);
        let Some(endpoint) = endpoint else {
            return if self.has_compiled(group) {
                call.respond(error)
            } else {
                page_not_found()
            };
        };
        let def = endpoint.def();
        if def.custom.is_some() {
            if is_out_of_scope(def, info) {
                return page_not_found();
            }
            if let [_, name, _, ..] = &info.parts[..]
                && *error == ApiError::no_such_resource()
            {
                return call.respond(&ApiError::not_found(&def.group_resource(), name));
            }
        }
        call.respond(error)
    }

    /// Starts the observation of a request for a resource, and warns about a deprecated version.
    fn observe(
        &self,
        (endpoint, verb): (&Endpoint, Verb),
        call: &Call<'_>,
        ctx: &RequestContext,
        body: &RequestBody,
    ) -> Observation {
        let dry_run = call.query.first("dryRun").is_some();
        let labels = resource_labels(endpoint.def(), verb, &call.info, dry_run);
        if let Some(text) = endpoint.deprecation_warning() {
            ctx.warn(text);
            let removed = endpoint.def().lifecycle.as_ref().and_then(|l| l.removed);
            let removed = removed.map(|release| release.to_string());
            self.metrics
                .requested_deprecated(&labels, &removed.unwrap_or_default());
        }
        let running = match verb {
            _ if connects(endpoint.def(), &call.info) => self.metrics.begin_long_running(&labels),
            Verb::Watch => self.metrics.begin_long_running(&labels),
            Verb::Get | Verb::List => self.metrics.begin(RequestKind::ReadOnly),
            Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection => {
                self.metrics.begin(RequestKind::Mutating)
            }
        };
        let request_bytes = http_body::Body::size_hint(body).exact().filter(|n| *n > 0);
        Observation::new(&self.metrics, labels, request_bytes, Some(running))
    }

    fn count_out_of_time(&self, call: &Call<'_>) {
        let labels = self.labels(call);
        let code = StatusCode::GATEWAY_TIMEOUT.as_u16();
        self.metrics.terminated(&labels, code);
    }

    /// Labels of a request that ends before its response. They contain no text made up by the client.
    fn labels(&self, call: &Call<'_>) -> RequestLabels {
        let (info, request) = (&call.info, call.request);
        if !info.is_resource_request {
            let is_known = self.discovery().lists(&info.path);
            return RequestLabels {
                verb: verb_label(request.method.as_str()),
                subresource: if is_known {
                    SmolStr::new(&info.path)
                } else {
                    SmolStr::default()
                },
                ..RequestLabels::default()
            };
        }
        let endpoint = self
            .catalog
            .endpoint(&info.api_group, &info.api_version, &info.resource);
        let found = endpoint.and_then(|endpoint| {
            let verb = route(endpoint.def(), &request.method, info).ok()?;
            Some((endpoint.def(), verb))
        });
        match found {
            Some((def, verb)) => {
                resource_labels(def, verb, info, call.query.first("dryRun").is_some())
            }
            None => RequestLabels {
                verb: verb_label(request.method.as_str()),
                ..RequestLabels::default()
            },
        }
    }

    /// Responds by a handler of the program, or of that of the next servers, if there is one for the path.
    async fn by_handler(&self, call: &Call<'_>, body: RequestBody) -> Option<Response<Body>> {
        let path = &call.info.path;
        let found = self.chain().find_map(|server| {
            let exact = server.handlers.exact(path);
            exact.or_else(|| server.handlers.below(path))
        })?;
        Some(self.handle(&found, call, body).await)
    }

    async fn handle(
        &self,
        found: &Found<'_>,
        call: &Call<'_>,
        body: RequestBody,
    ) -> Response<Body> {
        let labels = RequestLabels {
            verb: verb_label(call.request.method.as_str()),
            subresource: SmolStr::new(found.path),
            ..RequestLabels::default()
        };
        let observed = Observation::new(&self.metrics, labels, None, None);
        observed.answer(found.answer(call, body, self.stopping.clone()).await)
    }

    /// Responds to a request that is not for a resource.
    async fn document(&self, call: &Call<'_>, body: RequestBody) -> Response<Body> {
        let (info, request) = (&call.info, call.request);
        let labels = RequestLabels {
            verb: verb_label(request.method.as_str()),
            subresource: SmolStr::new(&info.path),
            ..RequestLabels::default()
        };
        let observed = Observation::new(&self.metrics, labels, None, None);
        let Some(answer) = self.known_document(call).await else {
            observed.leads_nowhere();
            if let Some(answer) = self.by_handler(call, body).await {
                return answer;
            }
            return if self.is_inside_a_group(&info.path) {
                call.respond(&ApiError::no_such_resource())
            } else {
                page_not_found()
            };
        };
        let answer = answer.unwrap_or_else(|error| call.respond(&error));
        let answer = compress(&request.headers, answer);
        observed.answered(&answer);
        answer
    }

    /// Responds to discovery, version, migration, OpenAPI, metrics and health; `None` for other paths.
    async fn known_document(&self, call: &Call<'_>) -> Option<Result<Response<Body>, ApiError>> {
        let (request, on) = (call.request, self.endpoints);
        let is_on = if request.uri.path() == "/" {
            on.index
        } else {
            on.discovery
        };
        let discovery = self.discovery();
        let discovery = is_on.then(|| discovery.respond(request, (&call.accepts, &call.query)));
        let answer = discovery
            .flatten()
            .or_else(|| self.version.respond(request));
        let answer = answer.or_else(|| {
            let stopping = self.stopping.clone();
            migration::respond(request, &call.query, &self.registry, stopping)
        });
        if answer.is_some() {
            return answer;
        }
        if on.openapi && request.uri.path().starts_with("/openapi/") {
            return self.openapi(call).await.transpose();
        }
        let metrics = on
            .metrics
            .then(|| self.metrics.respond(request, &call.accepts));
        match metrics.flatten() {
            Some(answer) => Some(Ok(answer)),
            None => self.health.respond(request).await.map(Ok),
        }
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
        tokio::task::spawn_blocking(respond)
            .await
            .map_err(|error| ApiError::internal(error.to_string()))
    }

    /// Whether a group has kinds that are no custom resources. Only in such a group is an unknown path told of as a resource.
    fn has_compiled(&self, group: &str) -> bool {
        let mut kinds = self.catalog.endpoints().iter().map(|one| one.def());
        kinds.any(|def| def.group == group && def.custom.is_none())
    }

    /// Whether an unknown path begins like the paths of a served group that has kinds which are no custom resources.
    fn is_inside_a_group(&self, path: &str) -> bool {
        let mut segments = path.trim_matches('/').split('/');
        let group = match segments.next() {
            Some("api") => Some(""),
            Some("apis") => segments.next().filter(|group| !group.is_empty()),
            _ => None,
        };
        group.is_some_and(|group| self.has_compiled(group))
    }

    /// Finds the endpoint and the verb of a request for a resource. Errors are in the order of kube-apiserver's
    /// router: path, method, content type, accepted types. That of custom resources checks the path alone.
    fn find(&self, call: &Call<'_>) -> Result<(&Arc<Endpoint>, Verb), ApiError> {
        let (info, request) = (&call.info, call.request);
        let endpoint = self
            .catalog
            .endpoint(&info.api_group, &info.api_version, &info.resource)
            .ok_or_else(ApiError::no_such_resource)?;
        let verb = route(endpoint.def(), &request.method, info)?;
        endpoint.check_schema()?;
        let is_checked = !connects(endpoint.def(), info) && endpoint.def().custom.is_none();
        if verb == Verb::Patch && is_checked {
            body::patch_format(&request.headers, endpoint.patch_formats(&info.subresource))?;
        }
        if is_checked {
            let is_stream = matches!(verb, Verb::List | Verb::Watch);
            let streams = is_stream.then(format::stream_types);
            check_route(&call.accepts, streams.into_iter().flatten())?;
        }
        Ok((endpoint, verb))
    }
}

/// Runs the handler of a verb. Mutating handlers have a timeout, and one with a large document does not delay other
/// requests. Large handlers are boxed, so that they do not enlarge the future of a get.
async fn perform(verb: Verb, call: ResourceCall<'_>) -> Result<Response<Body>, ApiError> {
    let ctx = call.ctx;
    let write: BoxFuture<'_, _> = match verb {
        _ if call.endpoint.has_handler(call.subresource) => {
            Box::pin(subresource::subresource(verb, call))
        }
        Verb::Get => return get::get(call).await,
        Verb::List => return Box::pin(list::list(call)).await,
        Verb::Watch => return Box::pin(watch::watch(call)).await,
        Verb::Create => Box::pin(create::create(call)),
        Verb::Update => Box::pin(update::update(call)),
        Verb::Patch => Box::pin(patch::patch(call)),
        Verb::Delete => Box::pin(delete::delete(call)),
        Verb::DeleteCollection => Box::pin(delete::delete_collection(call)),
    };
    let deadline = Instant::now() + MUTATING_TIMEOUT;
    interrupt_at(deadline);
    match tokio::time::timeout_at(deadline, OffThread::new(ctx, write)).await {
        Ok(answer) => check_wanted().and(answer),
        Err(_) => Err(handler_timeout()),
    }
}
