//! Requests in process: they pass the same filters as those of the network, without a socket.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use apiloom_http::{Body, RequestBody};
use apiloom_registry::auth::{BoxError, Connection, StaticToken};
use bytes::{Buf, Bytes};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use tokio::sync::watch;

use super::ServerError;
use super::attended::AttendedRequest;
use super::filters::Filters;
use super::guarded_body::GuardedBody;
use super::kubeconfig::random_token;

/// A client in the same process. Requests pass the same filters, authentication and limits as those of the network,
/// without a socket, certificates or files. Cheap to clone.
///
/// Credentials are as for any client: requests without them are anonymous. [`Loopback::privileged`] sends requests as
/// the server itself, which may do everything.
///
/// Implements [`tower_service::Service`], as clients like kube's require it; [`Loopback::send`] is the same without tower.
/// Responses have the bytes of the wire, without HTTP's framing. A watch ends when the server stops.
#[derive(Clone)]
pub struct Loopback {
    inner: Arc<Inner>,
    is_privileged: bool,
}

struct Inner {
    filters: Arc<Filters>,
    connection: Connection,
    /// `Bearer` with the token of the server itself.
    authorization: HeaderValue,
    /// Every request holds a receiver until its response is sent.
    in_flight: watch::Sender<()>,
}

/// The token of the server itself, for its [`Loopback`]; the authenticator has its digest.
pub(super) struct LoopbackToken(HeaderValue);

impl LoopbackToken {
    /// Generates a random token, and the authenticator that accepts it.
    pub(super) fn make() -> Result<(Self, StaticToken), ServerError> {
        let token = random_token()?;
        let mut value =
            HeaderValue::try_from(format!("Bearer {token}")).expect("base64 makes a header value");
        value.set_sensitive(true);
        Ok((Self(value), StaticToken::of_loopback(&token)))
    }
}

impl Loopback {
    pub(super) fn new(filters: Arc<Filters>, token: LoopbackToken) -> Self {
        let inner = Inner {
            filters,
            connection: Connection::in_process(),
            authorization: token.0,
            in_flight: watch::channel(()).0,
        };
        Self {
            inner: Arc::new(inner),
            is_privileged: false,
        }
    }

    /// A client whose requests without a header `Authorization` are the server's own: by the user `system:apiserver`
    /// in the group `system:masters`, like the loopback client of kube-apiserver. Its token is random, and not
    /// accepted from the network.
    #[must_use]
    pub fn privileged(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            is_privileged: true,
        }
    }

    /// Sends a request. The response is returned with its headers; its body may follow later.
    pub fn send<B>(
        &self,
        request: Request<B>,
    ) -> impl Future<Output = Response<Body>> + Send + use<B>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        let request = request.map(|body| {
            let body = body.map_frame(|frame| frame.map_data(|mut data| bytes_of(&mut data)));
            body.map_err(Into::into).boxed_unsync()
        });
        AttendedRequest::new(self.clone().send_boxed(request))
    }

    async fn send_boxed(self, mut request: Request<RequestBody>) -> Response<Body> {
        let inner = self.inner;
        let in_flight = inner.in_flight.subscribe();
        if self.is_privileged && !request.headers().contains_key(AUTHORIZATION) {
            let authorization = inner.authorization.clone();
            request.headers_mut().insert(AUTHORIZATION, authorization);
        }
        let response = inner.filters.serve(&inner.connection, request).await;
        // A complete body does not depend on the server any more.
        if response.body().size_hint().exact().is_some() {
            return response;
        }
        response.map(|body| GuardedBody::new(body, in_flight).boxed_unsync())
    }

    /// Waits until all responses are sent, for at most `most`.
    pub(super) async fn drain(&self, most: Duration) {
        let closed = tokio::time::timeout(most, self.inner.in_flight.closed());
        if closed.await.is_err() {
            tracing::warn!("requests still in flight in process after {most:?} are cut off");
        }
    }
}

/// The bytes of a buffer; not copied if it is `Bytes`.
fn bytes_of(data: &mut impl Buf) -> Bytes {
    data.copy_to_bytes(data.remaining())
}

impl<B> tower_service::Service<Request<B>> for Loopback
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.send(request).map(Ok).boxed()
    }
}

#[cfg(test)]
mod tests;
