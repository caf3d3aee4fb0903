//! The transport of a client: something that answers HTTP requests. A network, a server in the same process, or a test.

mod body;
mod error;
mod hooked;
mod http;
mod permission;
mod pieces;
mod upgrade;

use std::future::poll_fn;

use ::http::{Request, Response};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use tower_service::Service;

#[cfg(feature = "tls")]
pub(crate) use self::http::without_userinfo;
pub use self::http::{HttpTransport, HttpTransportBuilder, HttpTransportError};
#[cfg(feature = "tls")]
pub use self::http::{TlsError, TlsOptions};
pub use body::{Body, CollectError};
pub use error::{BoxError, TransportError};
#[doc(hidden)]
pub use hooked::{HookedStream, StreamHook};
pub(crate) use permission::SendPermission;
#[doc(hidden)]
pub use pieces::PiecesBody;
pub(crate) use upgrade::{PendingUpgrade, UpgradedStream};
pub use upgrade::{UpgradedConnection, upgraded};

/// Sends one request and returns its response. Called by [`Client`](crate::Client) for every attempt, also concurrently.
///
/// The URI of a request has a path and a query, and no host: a transport knows its server. The future ends when the headers
/// of the response are received; the body follows. Dropping the future or the body aborts the request.
///
/// Every tower service that is `Clone` is a transport, such as a server's `Loopback`. Other types implement the trait
/// directly, for instance to wrap another transport.
///
/// ```
/// use apiloom_client::{Body, Client};
/// use ::http::{Request, Response};
///
/// # #[derive(Clone)] struct Teapot;
/// impl tower_service::Service<Request<Body>> for Teapot {
///     type Response = Response<Body>;
///     type Error = std::convert::Infallible;
///     type Future = std::future::Ready<Result<Response<Body>, Self::Error>>;
/// #   fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Self::Error>> {
/// #       std::task::Poll::Ready(Ok(()))
/// #   }
///     // ..
///     fn call(&mut self, _: Request<Body>) -> Self::Future {
///         let response = Response::builder().status(418).body(Body::empty());
///         std::future::ready(Ok(response.unwrap()))
///     }
/// }
///
/// let client = Client::new(Teapot);
/// ```
pub trait Transport: Send + Sync + 'static {
    /// Sends a request.
    ///
    /// # Errors
    /// If there is no response. [`TransportError::is_unsent`] says whether the server cannot have seen the request.
    fn call(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<Body>, TransportError>>;
}

impl<S, B> Transport for S
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    fn call(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<Body>, TransportError>> {
        let mut service = self.clone();
        Box::pin(async move {
            let ready = poll_fn(|cx| service.poll_ready(cx)).await;
            ready.map_err(|error| TransportError::from_boxed(error.into()))?;
            let response = Service::call(&mut service, request).await;
            let response = response.map_err(|error| TransportError::from_boxed(error.into()))?;
            Ok(response.map(Body::new))
        })
    }
}
