//! The API as a tower service: what each path leads to, and what every answer has in common.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use apiloom_meta::ApiError;
use apiloom_meta::kind::SmolStr;
use arc_swap::ArcSwap;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use tokio::time::Instant;

use super::body::{self, RequestBody};
use super::call::Call;
use super::compress::compress;
use super::cut_off::until;
use super::definitions;
use super::discovery::Discovery;
use super::error::{page_not_found, respond};
use super::health::Health;
use super::metrics::{Metrics, RequestLabels, verb_label};
use super::negotiate::check_route;
use super::observe::{Observed, resource_labels};
use super::openapi::OpenApi;
use super::query::Query;
use super::rendered::Rendered;
use super::route::{Operation, route};
use super::stopping::Stopping;
use super::timeout::{Deadline, MUTATING_TIMEOUT, handler_timeout, out_of_time, request_timeout};
use super::version::Version;
use super::{
    Body, RequestInfo, ServerInfo, create, delete, get, list, patch, update, warning, watch,
    websocket,
};
use crate::auth::BoxError;
use crate::registry::{Catalog, Endpoint, OffThread, Registry, RequestContext, UserInfo};

/// The API as one function from request to response. Cheap to clone.
///
/// It reads from a request's extensions what the filters before it found out: [`UserInfo`], [`RequestInfo`] and
/// [`Deadline`]. What is missing it finds out itself; without a user the request has none.
#[derive(Clone, Debug)]
pub struct Api {
    /// The API of the catalog that was served when it was last looked at.
    last: Arc<ArcSwap<Inner>>,
}

/// The API of one catalog. A request is answered by one of these, whole.

#[derive(Clone, Debug)]
struct Inner {
    registry: Arc<Registry>,
    catalog: Arc<Catalog>,
    info: Arc<ServerInfo>,
    discovery: Arc<OnceLock<Discovery>>,
    openapi: Arc<OpenApi>,
    version: Arc<Version>,
    health: Health,
    metrics: Arc<Metrics>,
    rendered: Arc<Rendered>,
    stopping: Stopping,
}

impl Api {
    /// The API of this registry, with these health checks. Documents are made when they are first asked for, once for each
    /// catalog.
    pub fn new(registry: Arc<Registry>, info: &ServerInfo, health: Health) -> Self {
        let catalog = registry.catalog();
        Self::of(Inner {
            metrics: Arc::new(Metrics::of_registry(info, Arc::clone(&registry))),
            registry,
            discovery: Arc::default(),
            openapi: Arc::new(OpenApi::new(&catalog)),
            catalog,
            version: Arc::new(Version::new(info)),
            info: Arc::new(info.clone()),
            health,
            rendered: Arc::default(),
            stopping: Stopping::default(),
        })
    }

    fn of(inner: Inner) -> Self {
        Self {
            last: Arc::new(ArcSwap::from_pointee(inner)),
        }
    }

    /// The API of the catalog that is served now.
    fn current(&self) -> Arc<Inner> {
        let last = self.last.load();
        if last.catalog.generation() == last.registry.generation() {
            return Arc::clone(&last);
        }
        let catalog = last.registry.catalog();
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
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.last.load().metrics)
    }

    /// Completes what is known of a request by its query, of which a long one holds up no other request.
    pub(crate) async fn read_query(&self, info: &mut RequestInfo, uri: &Uri) {
        let bytes = uri.query().map_or(0, str::len);
        let read = || info.read_query(uri);
        let registry = Arc::clone(&self.last.load().registry);
        registry.read_query(bytes, read).await;
    }

    /// Counts a request that was refused because too many are in flight.
    pub(crate) fn count_refused(&self, info: &RequestInfo, request: &Parts) {
        let inner = self.current();
        let labels = inner.labels(info, request);
        let code = StatusCode::TOO_MANY_REQUESTS.as_u16();
        inner.metrics.refused(&labels, code);
    }

    /// Counts a request whose time ran out before it was authorized.
    pub(crate) fn count_out_of_time(&self, info: &RequestInfo, request: &Parts) {
        self.current().count_out_of_time(info, request);
    }

    /// Ends watches, cleanly, when this becomes true.
    #[must_use]
    pub fn stopping(self, stopping: impl Into<Stopping>) -> Self {
        Self::of(Inner {
            stopping: stopping.into(),
            ..Inner::clone(&self.last.load())
        })
    }
}

impl<B> tower::Service<Request<B>> for Api
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let inner = self.current();
        let (parts, body) = request.into_parts();
        let body = body.map_err(Into::into).boxed_unsync();
        async move { Ok(inner.serve(parts, body).await) }.boxed()
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

    async fn serve(&self, mut request: Parts, body: RequestBody) -> Response<Body> {
        let info = match request.extensions.remove::<RequestInfo>() {
            Some(info) => info,
            None => match RequestInfo::parse(&request.method, &request.uri) {
                Ok(info) => info,
                Err(error) => return respond(&ApiError::from(&error), &request),
            },
        };
        let deadline = match request.extensions.get::<Deadline>() {
            Some(Deadline(at)) => Some(*at),
            None => match request_timeout(&info, &request.uri) {
                Ok(timeout) => timeout.map(|timeout| Instant::now() + timeout),
                Err(error) => return respond(&error, &request),
            },
        };
        let answer = self.answer(&info, &request, body);
        match deadline {
            Some(at) => match tokio::time::timeout_at(at, answer).await {
                Ok(response) => until(at, response),
                Err(_) => {
                    self.count_out_of_time(&info, &request);
                    out_of_time()
                }
            },
            None => answer.await,
        }
    }

    async fn answer(
        &self,
        info: &RequestInfo,
        request: &Parts,
        body: RequestBody,
    ) -> Response<Body> {
        let known_group = self
            .catalog
            .groups()
            .iter()
            .any(|group| group.name == info.api_group);
        if !known_group && let Some(answer) = definitions::none(info, request) {
            return answer;
        }
        if info.path.starts_with("//") || (info.is_resource_request && !known_group) {
            return page_not_found();
        }
        if !info.is_resource_request {
            return self.document(info, request).await;
        }
        self.resource(info, request, body).await
    }

    fn count_out_of_time(&self, info: &RequestInfo, request: &Parts) {
        let labels = self.labels(info, request);
        let code = StatusCode::GATEWAY_TIMEOUT.as_u16();
        self.metrics.terminated(&labels, code);
    }

    /// What a request is counted under that ends before it is answered. Holds nothing that a client made up.
    fn labels(&self, info: &RequestInfo, request: &Parts) -> RequestLabels {
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
            let operation = route(endpoint.def(), &request.method, info).ok()?;
            Some((endpoint.def(), operation))
        });
        match found {
            Some((def, operation)) => {
                let query = Query::of_parameter(&request.uri, "dryRun");
                resource_labels(def, operation, info, query.first("dryRun").is_some())
            }
            None => RequestLabels {
                verb: verb_label(request.method.as_str()),
                ..RequestLabels::default()
            },
        }
    }

    /// Everything that is not about a resource.
    async fn document(&self, info: &RequestInfo, request: &Parts) -> Response<Body> {
        let labels = RequestLabels {
            verb: verb_label(request.method.as_str()),
            subresource: SmolStr::new(&info.path),
            ..RequestLabels::default()
        };
        let observed = Observed::new(&self.metrics, labels, None, None);
        let Some(answer) = self.known_document(request).await else {
            observed.leads_nowhere();
            return if self.is_inside_a_group(&info.path) {
                respond(&ApiError::no_such_resource(), request)
            } else {
                page_not_found()
            };
        };
        let answer = answer.unwrap_or_else(|error| respond(&error, request));
        let answer = compress(&request.headers, answer);
        observed.answered(&answer);
        answer
    }

    /// Discovery, version, OpenAPI, metrics and health.
    async fn known_document(&self, request: &Parts) -> Option<Result<Response<Body>, ApiError>> {
        let discovery = self.discovery().respond(request);
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

    async fn resource(
        &self,
        info: &RequestInfo,
        request: &Parts,
        body: RequestBody,
    ) -> Response<Body> {
        match self.find(info, request) {
            Ok((endpoint, operation)) => {
                self.answer_resource(endpoint, operation, info, request, body)
                    .await
            }
            Err(error) => respond(&error, request),
        }
    }

    /// What the router does: the resource and its operation, or why there is none. In the router's order of refusals:
    /// path, method, what is given, what is asked for.
    fn find(
        &self,
        info: &RequestInfo,
        request: &Parts,
    ) -> Result<(&Arc<Endpoint>, Operation), ApiError> {
        let endpoint = self
            .catalog
            .endpoint(&info.api_group, &info.api_version, &info.resource)
            .ok_or_else(ApiError::no_such_resource)?;
        let operation = route(endpoint.def(), &request.method, info)?;
        if operation == Operation::Patch {
            body::patch_format(&request.headers)?;
        }
        check_route(&request.headers)?;
        Ok((endpoint, operation))
    }

    async fn answer_resource(
        &self,
        endpoint: &Arc<Endpoint>,
        operation: Operation,
        info: &RequestInfo,
        request: &Parts,
        body: RequestBody,
    ) -> Response<Body> {
        let user = request.extensions.get::<Arc<UserInfo>>().cloned();
        let ctx = RequestContext::new(user.unwrap_or_default());
        let bytes = request.uri.query().map_or(0, str::len);
        let query = || Query::of(&request.uri);
        let query = self.registry.read_query(bytes, query).await;
        let dry_run = query.first("dryRun").is_some();
        let labels = resource_labels(endpoint.def(), operation, info, dry_run);
        if let Some(text) = endpoint.deprecation_warning() {
            ctx.warn(text);
            let removed = endpoint.def().lifecycle.as_ref().and_then(|l| l.removed);
            let removed = removed.map(|release| release.to_string());
            self.metrics
                .requested_deprecated(&labels, &removed.unwrap_or_default());
        }
        let running = match operation.kind() {
            _ if labels.verb == "WATCH" => self.metrics.begin_long_running(&labels),
            kind => self.metrics.begin(kind),
        };
        let request_bytes = http_body::Body::size_hint(&body).exact().filter(|n| *n > 0);
        let observed = Observed::new(&self.metrics, labels, request_bytes, Some(running));
        let part = |index: usize| info.parts.get(index).map_or("", String::as_str);
        let call = Call {
            endpoint,
            ctx: &ctx,
            request,
            query,
            namespace: info.in_namespace.then_some(info.namespace.as_str()),
            name: part(1),
            subresource: part(2),
            body,
            stopping: self.stopping.clone(),
            metrics: &self.metrics,
            rendered: &self.rendered,
        };
        let answer = perform(operation, call).await;
        let mut response = answer.unwrap_or_else(|error| respond(&error, request));
        warning::add(response.headers_mut(), &ctx.take_warnings());
        websocket::upgrade(
            request,
            observed.answer(compress(&request.headers, response)),
        )
    }
}

/// All but the cheapest are boxed, so that a get does not carry around the room that the largest of them needs.
async fn perform(operation: Operation, call: Call<'_>) -> Result<Response<Body>, ApiError> {
    let ctx = call.ctx;
    match operation {
        Operation::Get => get::get(call).await,
        Operation::ListOrWatch if call.query.boolean("watch") == Some(true) => {
            Box::pin(watch::watch(call)).await
        }
        Operation::ListOrWatch => Box::pin(list::list(call)).await,
        Operation::Watch => Box::pin(watch::watch(call)).await,
        Operation::Create => in_time(ctx, Box::pin(create::create(call))).await,
        Operation::Update => in_time(ctx, Box::pin(update::update(call))).await,
        Operation::Patch => in_time(ctx, Box::pin(patch::patch(call))).await,
        Operation::Delete => in_time(ctx, Box::pin(delete::delete(call))).await,
        Operation::DeleteCollection => {
            in_time(ctx, Box::pin(delete::delete_collection(call))).await
        }
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
