//! The response to a request for a resource: its observation, the form and format of the response, the verb, warnings, compression.

use std::sync::Arc;

use apiloom_meta::kind::Verb;
use apiloom_meta::{ApiError, StatusReason};
use apiloom_registry::{
    Catalog, Endpoint, OffThread, RequestContext, check_wanted, handler_timeout,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Method, Response};
use tokio::time::Instant;

use super::call::{Call, ResourceCall, Serving};
use super::route::connects;
use super::{connect, create, delete, get, list, patch, subresource, update, watch};
use crate::observation::metrics::RequestKind;
use crate::observation::observe::{Observation, resource_labels};
use crate::request::timeout::{MUTATING_TIMEOUT, interrupt_at};
use crate::response::compress::compress;
use crate::response::{Body, full, warning};
use crate::shape::body::RequestBody;
use crate::shape::encode::Reply;
use crate::shape::error::respond_as;
use crate::shape::format;
use crate::shape::negotiate::Answer;
use crate::streams::websocket;

/// The endpoint of a request for a resource, with the verb.
pub(crate) struct ResourceRoute<'a, 'r> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) endpoint: &'a Arc<Endpoint>,
    pub(crate) verb: Verb,
    pub(crate) call: &'a Call<'r>,
    pub(crate) serving: &'a Serving,
}

impl ResourceRoute<'_, '_> {
    /// Responds to the request.
    pub(crate) async fn answer(self, body: RequestBody) -> Response<Body> {
        let (call, request) = (self.call, self.call.request);
        let ctx = RequestContext::new(Arc::clone(call.user.user())).audited(call.audit.clone());
        if let Some(audit) = &call.audit {
            let input = self.endpoint.input(self.part(2));
            if self.endpoint.schema().has_sensitive() || input.schema().has_sensitive() {
                audit.conceal_errors();
            }
        }
        let observed = self.observe(&ctx, &body);
        let is_stream = connects(self.endpoint.def(), &call.info);
        let mut socket = None;
        let answer = match self.negotiate(is_stream) {
            Ok(answer) if is_stream => {
                let answer = connect::connect(self.resource_call(&ctx, answer, body)).await;
                answer.map(|(response, task)| {
                    socket = task;
                    response
                })
            }
            Ok(answer) => perform(self.verb, self.resource_call(&ctx, answer, body)).await,
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
            Some(socket) => {
                let hold = call.audit.as_ref().map(|audit| audit.hold());
                let held = async move {
                    socket.await;
                    drop(hold);
                };
                observed.upgrade(response, held)
            }
            None => websocket::upgrade(request, observed.answer(response)),
        }
    }

    /// Starts the observation of the request, and warns about a deprecated version.
    fn observe(&self, ctx: &RequestContext, body: &RequestBody) -> Observation {
        let (endpoint, call, metrics) = (self.endpoint, self.call, &self.serving.metrics);
        let dry_run = call.query.first("dryRun").is_some();
        let labels = resource_labels(endpoint.def(), self.verb, &call.info, dry_run);
        if let Some(text) = endpoint.deprecation_warning() {
            ctx.warn(text);
            let removed = endpoint.def().lifecycle.as_ref().and_then(|l| l.removed);
            let removed = removed.map(|release| release.to_string());
            metrics.requested_deprecated(&labels, &removed.unwrap_or_default());
        }
        let running = match self.verb {
            _ if connects(endpoint.def(), &call.info) => metrics.begin_long_running(&labels),
            Verb::Watch => metrics.begin_long_running(&labels),
            verb if verb.is_read() => metrics.begin(RequestKind::ReadOnly),
            _ => metrics.begin(RequestKind::Mutating),
        };
        let request_bytes = http_body::Body::size_hint(body).exact().filter(|n| *n > 0);
        Observation::new(metrics, labels, request_bytes, Some(running))
    }

    /// The form and format of the response; those of a stream are its handler's.
    fn negotiate(&self, is_stream: bool) -> Result<Answer, ApiError> {
        if is_stream {
            return Ok(Answer::default());
        }
        let has_tables = self.endpoint.resource().has_objects();
        let has_protobuf = self.output().def().protobuf.is_some();
        Answer::negotiate(
            &self.call.accepts,
            &self.call.query,
            has_tables,
            has_protobuf,
        )
    }

    fn output(&self) -> &Arc<Endpoint> {
        self.endpoint.output(self.part(2))
    }

    /// A part of the path: the resource, the name or the subresource.
    fn part(&self, index: usize) -> &str {
        let parts = &self.call.info.parts;
        parts.get(index).map_or("", String::as_str)
    }

    fn resource_call<'c>(
        &'c self,
        ctx: &'c RequestContext,
        answer: Answer,
        body: RequestBody,
    ) -> ResourceCall<'c> {
        let (call, output) = (self.call, self.output());
        ResourceCall {
            catalog: self.catalog,
            endpoint: self.endpoint,
            ctx,
            request: call.request,
            query: &call.query,
            reply: Reply {
                endpoint: Arc::clone(output),
                answer,
                message: output.def().protobuf,
                audit: call.audit.clone(),
            },
            namespace: call.info.in_namespace.then_some(&*call.info.namespace),
            name: self.part(1),
            subresource: self.part(2),
            body,
            peer: call.arrival.connection.peer.map(|peer| peer.ip()),
            stopping: self.serving.stopping.clone(),
            metrics: &self.serving.metrics,
        }
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
