//! The API as one function: what each path leads to, and what every answer has in common.

use std::sync::{Arc, OnceLock};

use apiloom_meta::ApiError;
use apiloom_meta::kind::{SmolStr, Verb};
use arc_swap::ArcSwap;
use http::request::Parts;
use http::{Response, StatusCode};

use super::body::{self, RequestBody};
use super::call::{Arrival, Call, ResourceCall};
use super::compress::compress;
use super::cut_off::until;
use super::definitions;
use super::discovery::Discovery;
use super::encode::Reply;
use super::error::page_not_found;
use super::health::Health;
use super::metrics::{Metrics, RequestKind, RequestLabels, verb_label};
use super::negotiate::{Answer, check_route};
use super::observe::{Observed, resource_labels};
use super::openapi::OpenApi;
use super::query::Query;
use super::route::route;
use super::stopping::Stopping;
use super::timeout::{MUTATING_TIMEOUT, handler_timeout, out_of_time};
use super::version::Version;
use super::{
    Body, RequestInfo, ServerInfo, create, delete, get, list, patch, update, warning, watch,
    websocket,
};
use crate::auth::Authenticated;
use crate::registry::{Catalog, Endpoint, OffThread, Registry, RequestContext};

/// The API as one function from a [`Call`] to its response. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    registry: Arc<Registry>,
    /// The API of the catalog that was served when it was last looked at.
    last: Arc<ArcSwap<Inner>>,
}

/// The API of one catalog. A request is answered by one of these, whole.
#[derive(Clone, Debug)]
struct Inner {
    catalog: Arc<Catalog>,
    info: Arc<ServerInfo>,
    discovery: Arc<OnceLock<Discovery>>,
    openapi: Arc<OpenApi>,
    version: Arc<Version>,
    health: Health,
    metrics: Arc<Metrics>,
    stopping: Stopping,
}

impl Api {
    /// The API of this registry, with these health checks. Documents are made when they are first asked for, once for each
    /// catalog.
    pub(crate) fn new(registry: Arc<Registry>, info: &ServerInfo, health: Health) -> Self {
        let catalog = registry.catalog();
        let inner = Inner {
            metrics: Arc::new(Metrics::of_registry(info, Arc::clone(&registry))),
            discovery: Arc::default(),
            openapi: Arc::new(OpenApi::new(&catalog)),
            catalog,
            version: Arc::new(Version::new(info)),
            info: Arc::new(info.clone()),
            health,
            stopping: Stopping::default(),
        };
        Self::of(registry, inner)
    }

    fn of(registry: Arc<Registry>, inner: Inner) -> Self {
        Self {
            registry,
            last: Arc::new(ArcSwap::from_pointee(inner)),
        }
    }

    /// The API of the catalog that is served now.
    fn current(&self) -> Arc<Inner> {
        let last = self.last.load();
        if last.catalog.generation() == self.registry.generation() {
            return Arc::clone(&last);
        }
        let catalog = self.registry.catalog();
        let current = Arc::new(Inner {
            discovery: Arc::default(),
            openapi: Arc::new(OpenApi::new(&catalog)),
            catalog,
            ..Inner::clone(&last)
        });
        self.last.store(Arc::clone(&current));
        current
    }

    /// What is counted; `/metrics` prints it.
    pub(crate) fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.last.load().metrics)
    }

    /// Completes what is known of a request by its query, of which a long one holds up no other request.
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
        Call::new(arrival, request, info, query, user)
    }

    /// Answers a request that is authorized, by its deadline.
    pub(crate) async fn answer(&self, call: &Call<'_>, body: RequestBody) -> Response<Body> {
        let current = self.current();
        let answer = current.answer(call, body);
        let Some(at) = call.deadline else {
            return answer.await;
        };
        match tokio::time::timeout_at(at, answer).await {
            Ok(response) => until(at, response),
            Err(_) => {
                current.count_out_of_time(call);
                out_of_time()
            }
        }
    }

    /// Counts a request that was refused because too many are in flight.
    pub(crate) fn count_refused(&self, call: &Call<'_>) {
        let inner = self.current();
        let labels = inner.labels(call);
        let code = StatusCode::TOO_MANY_REQUESTS.as_u16();
        inner.metrics.refused(&labels, code);
    }

    /// Counts a request whose time ran out before it was authorized.
    pub(crate) fn count_out_of_time(&self, call: &Call<'_>) {
        self.current().count_out_of_time(call);
    }

    /// Ends watches, cleanly, when this becomes true.
    #[must_use]
    pub(crate) fn stopping(self, stopping: impl Into<Stopping>) -> Self {
        let inner = Inner {
            stopping: stopping.into(),
            ..Inner::clone(&self.last.load())
        };
        Self::of(self.registry, inner)
    }
}

impl Inner {
    fn discovery(&self) -> &Discovery {
        self.discovery.get_or_init(|| {
            let others = self
                .health
                .paths()
                .chain(self.openapi.paths())
                .chain(["/version".to_owned(), "/metrics".to_owned()]);
            Discovery::new(&self.catalog, &self.info).with_paths(others)
        })
    }

    async fn answer(&self, call: &Call<'_>, body: RequestBody) -> Response<Body> {
        let info = &call.info;
        let known_group = self
            .catalog
            .groups()
            .iter()
            .any(|group| group.name == info.api_group);
        if !known_group && let Some(answer) = definitions::none(info, call.request) {
            return answer;
        }
        if info.path.starts_with("//") || (info.is_resource_request && !known_group) {
            return page_not_found();
        }
        if !info.is_resource_request {
            return self.document(call).await;
        }
        match self.find(call) {
            Ok((endpoint, verb)) => self.answer_resource(endpoint, verb, call, body).await,
            Err(error) => call.respond(&error),
        }
    }

    fn count_out_of_time(&self, call: &Call<'_>) {
        let labels = self.labels(call);
        let code = StatusCode::GATEWAY_TIMEOUT.as_u16();
        self.metrics.terminated(&labels, code);
    }

    /// What a request is counted under that ends before it is answered. Holds nothing that a client made up.
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

    /// Everything that is not about a resource.
    async fn document(&self, call: &Call<'_>) -> Response<Body> {
        let (info, request) = (&call.info, call.request);
        let labels = RequestLabels {
            verb: verb_label(request.method.as_str()),
            subresource: SmolStr::new(&info.path),
            ..RequestLabels::default()
        };
        let observed = Observed::new(&self.metrics, labels, None, None);
        let Some(answer) = self.known_document(call).await else {
            observed.leads_nowhere();
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

    /// Discovery, version, OpenAPI, metrics and health.
    async fn known_document(&self, call: &Call<'_>) -> Option<Result<Response<Body>, ApiError>> {
        let request = call.request;
        let discovery = self
            .discovery()
            .respond(request, (&call.accepts, &call.query));
        let answer = discovery.or_else(|| self.version.respond(request));
        if answer.is_some() {
            return answer;
        }
        if request.uri.path().starts_with("/openapi/") {
            return self.openapi(request).await.transpose();
        }
        match self.metrics.respond(request) {
            Some(answer) => Some(Ok(answer)),
            None => self.health.respond(request).await.map(Ok),
        }
    }

    /// The first request builds the document, which for many kinds takes long enough to keep others waiting: so it is
    /// done off the async threads.
    async fn openapi(&self, request: &Parts) -> Result<Option<Response<Body>>, ApiError> {
        let (openapi, request) = (Arc::clone(&self.openapi), request.clone());
        tokio::task::spawn_blocking(move || openapi.respond(&request))
            .await
            .map_err(|error| ApiError::internal(error.to_string()))
    }

    /// Whether a path that leads nowhere begins as the paths of a served group do.
    fn is_inside_a_group(&self, path: &str) -> bool {
        let mut segments = path.trim_matches('/').split('/');
        let group = match segments.next() {
            Some("api") => Some(""),
            Some("apis") => segments.next().filter(|group| !group.is_empty()),
            _ => None,
        };
        group.is_some_and(|group| {
            self.catalog
                .groups()
                .iter()
                .any(|served| served.name == group)
        })
    }

    /// What the router does: the resource and the verb on it, or why there is none. In the router's order of refusals:
    /// path, method, what is given, what is asked for.
    fn find(&self, call: &Call<'_>) -> Result<(&Arc<Endpoint>, Verb), ApiError> {
        let (info, request) = (&call.info, call.request);
        let endpoint = self
            .catalog
            .endpoint(&info.api_group, &info.api_version, &info.resource)
            .ok_or_else(ApiError::no_such_resource)?;
        let verb = route(endpoint.def(), &request.method, info)?;
        endpoint.check_schema()?;
        if verb == Verb::Patch {
            body::patch_format(&request.headers)?;
        }
        check_route(&call.accepts)?;
        Ok((endpoint, verb))
    }

    async fn answer_resource(
        &self,
        endpoint: &Arc<Endpoint>,
        verb: Verb,
        call: &Call<'_>,
        body: RequestBody,
    ) -> Response<Body> {
        let (info, request) = (&call.info, call.request);
        let ctx = RequestContext::new(Arc::clone(call.user.user()));
        let dry_run = call.query.first("dryRun").is_some();
        let labels = resource_labels(endpoint.def(), verb, info, dry_run);
        if let Some(text) = endpoint.deprecation_warning() {
            ctx.warn(text);
            let removed = endpoint.def().lifecycle.as_ref().and_then(|l| l.removed);
            let removed = removed.map(|release| release.to_string());
            self.metrics
                .requested_deprecated(&labels, &removed.unwrap_or_default());
        }
        let running = match verb {
            Verb::Watch => self.metrics.begin_long_running(&labels),
            Verb::Get | Verb::List => self.metrics.begin(RequestKind::ReadOnly),
            Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection => {
                self.metrics.begin(RequestKind::Mutating)
            }
        };
        let request_bytes = http_body::Body::size_hint(&body).exact().filter(|n| *n > 0);
        let observed = Observed::new(&self.metrics, labels, request_bytes, Some(running));
        let part = |index: usize| info.parts.get(index).map_or("", String::as_str);
        let has_tables = endpoint.def().has_store;
        let negotiated = Answer::negotiate(&call.accepts, &call.query, has_tables);
        let resource_call = |answer| ResourceCall {
            endpoint,
            ctx: &ctx,
            request,
            query: &call.query,
            reply: Reply {
                endpoint: Arc::clone(endpoint),
                answer,
            },
            namespace: info.in_namespace.then_some(info.namespace.as_str()),
            name: part(1),
            subresource: part(2),
            body,
            stopping: self.stopping.clone(),
            metrics: &self.metrics,
        };
        let answer = match negotiated {
            Ok(answer) => perform(verb, resource_call(answer)).await,
            Err(error) => Err(error),
        };
        let mut response = answer.unwrap_or_else(|error| call.respond(&error));
        warning::add(response.headers_mut(), &ctx.take_warnings());
        websocket::upgrade(
            request,
            observed.answer(compress(&request.headers, response)),
        )
    }
}

/// All but the cheapest are boxed, so that a get does not carry around the room that the largest of them needs.
async fn perform(verb: Verb, call: ResourceCall<'_>) -> Result<Response<Body>, ApiError> {
    let ctx = call.ctx;
    match verb {
        Verb::Get => get::get(call).await,
        Verb::List => Box::pin(list::list(call)).await,
        Verb::Watch => Box::pin(watch::watch(call)).await,
        Verb::Create => in_time(ctx, Box::pin(create::create(call))).await,
        Verb::Update => in_time(ctx, Box::pin(update::update(call))).await,
        Verb::Patch => in_time(ctx, Box::pin(patch::patch(call))).await,
        Verb::Delete => in_time(ctx, Box::pin(delete::delete(call))).await,
        Verb::DeleteCollection => in_time(ctx, Box::pin(delete::delete_collection(call))).await,
    }
}

/// Ends a mutating handler that takes too long, and keeps one with a large document from holding up others.
async fn in_time(
    ctx: &RequestContext,
    handler: impl Future<Output = Result<Response<Body>, ApiError>> + Send + Unpin,
) -> Result<Response<Body>, ApiError> {
    tokio::time::timeout(MUTATING_TIMEOUT, OffThread::new(ctx, handler))
        .await
        .unwrap_or_else(|_| Err(handler_timeout()))
}
