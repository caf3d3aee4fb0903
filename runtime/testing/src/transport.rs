//! The transport of a test server's clients: records requests, and lets them fail as the test wants.

use std::sync::Arc;
use std::task::{Context, Poll};

use apiloom_client::transport::BoxError;
use apiloom_client::{Body, TransportError};
use apiloom_meta::ApiError;
use apiloom_meta::kind::Verb;
use apiloom_server::Loopback;
use apiloom_server::http::shape::error;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Request, Response};
use http_body::Body as _;

use super::action::Action;
use super::fault::Effect;
use super::running::Running;
use super::shared::SharedState;

/// Longest body that is recorded; the server takes at most a fifth of it.
const MAX_RECORDED_BYTES: usize = 16 << 20;

/// Sends the requests of a client to a [`TestServer`](super::TestServer). A tower service, for clients of all kinds.
#[derive(Clone)]
pub struct TestTransport {
    shared: Arc<SharedState>,
    loopback: Loopback,
    /// Keeps the server running for its clients.
    _running: Option<Arc<Running>>,
}

impl TestTransport {
    pub(crate) fn new(
        shared: Arc<SharedState>,
        loopback: Loopback,
        running: Option<Arc<Running>>,
    ) -> Self {
        Self {
            shared,
            loopback,
            _running: running,
        }
    }

    async fn answer(self, request: Request<Body>) -> Result<Response<Body>, TransportError> {
        if self.shared.is_stopped() {
            return Err(TransportError::closed("the test server is stopped"));
        }
        let (parts, body) = request.into_parts();
        let (body, recorded) = record(body).await?;
        let action = Action::new(&parts, recorded);
        let is_watch = action.verb == Some(Verb::Watch);
        let (failure, latency) = {
            let mut requests = self.shared.requests.lock();
            (requests.begin(action), requests.latency)
        };
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        match &failure {
            Some((Effect::Refused(error), action)) => return Ok(refusal(&error(action))),
            Some((Effect::LostBefore, _)) => return Err(lost()),
            Some((Effect::LostAfter, _)) | None => {}
        }
        let response = self.loopback.send(Request::from_parts(parts, body)).await;
        if failure.is_some() {
            return Err(lost());
        }
        let response = response.map(Body::new);
        if is_watch && response.status().is_success() {
            return Ok(response.map(|body| self.shared.watches.add(body)));
        }
        Ok(response)
    }
}

/// The body again, and its bytes if it has a length and is not too long.
async fn record(body: Body) -> Result<(Body, Bytes), TransportError> {
    let length = body.size_hint().upper();
    if length.is_none_or(|length| length > MAX_RECORDED_BYTES as u64) {
        return Ok((body, Bytes::new()));
    }
    let bytes = body.collect(MAX_RECORDED_BYTES).await;
    let bytes = bytes.map_err(TransportError::new)?;
    Ok((Body::from(bytes.clone()), bytes))
}

fn lost() -> TransportError {
    TransportError::new("connection reset by the test")
}

/// The response with an error, as the server makes it.
fn refusal(failure: &ApiError) -> Response<Body> {
    let status = error::status(failure);
    // A Status is text and numbers.
    let json = serde_json::to_vec(&status).unwrap_or_default();
    let mut response = Response::new(Body::from(Bytes::from(json)));
    *response.status_mut() = error::code_of(failure);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let seconds = status
        .details
        .map_or(0, |details| details.retry_after_seconds);
    if seconds > 0 {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

impl<B> tower_service::Service<Request<B>> for TestTransport
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = TransportError;
    type Future = BoxFuture<'static, Result<Response<Body>, TransportError>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(self.clone().answer(request.map(Body::new)))
    }
}
