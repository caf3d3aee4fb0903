//! Connections that a response switched to another protocol, such as that of WebSockets.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::{BoxFuture, FutureExt as _};
use http::Response;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::error::TransportError;

/// The bytes of a connection, or of a stream of HTTP/2.
pub(crate) trait UpgradedStream: AsyncRead + AsyncWrite + Send {
    /// Ends it at once: what waits to be sent is never sent. By default that of dropping it.
    fn cut(self: Pin<Box<Self>>) {}

    /// Ends it; what waits to be sent is sent until that time. By default that of dropping it.
    fn release(self: Pin<Box<Self>>, _until: BoxFuture<'static, ()>) {}
}

/// A connection of HTTP/1.1, which closes when it is dropped.
impl UpgradedStream for TokioIo<hyper::upgrade::Upgraded> {}

#[cfg(test)]
impl UpgradedStream for tokio::io::DuplexStream {}

/// A connection that a response switched to another protocol. Dropping it closes the connection.
pub struct UpgradedConnection(Pin<Box<dyn UpgradedStream>>);

impl UpgradedConnection {
    pub(crate) fn new(stream: impl UpgradedStream + 'static) -> Self {
        Self(Box::pin(stream))
    }

    /// Closes the connection; what waits to be sent is never sent.
    pub(crate) fn cut(self) {
        self.0.cut();
    }

    /// Closes the connection; what waits to be sent is sent until that time.
    pub(crate) fn release(self, until: BoxFuture<'static, ()>) {
        self.0.release(until);
    }
}

/// The connection behind a response that switches protocols: the answer 101 of HTTP/1.1 to a request with `Upgrade`, and 200
/// to a CONNECT of HTTP/2.
///
/// Use this instead of the HTTP library's own function: wrapped transports, such as that of
/// [`Client::guarded`](crate::Client::guarded), wrap the connection too, and then the response has no other one.
///
/// # Errors
/// If the response does not switch protocols, its connection was taken already, or it breaks before.
pub async fn upgraded<B>(response: &mut Response<B>) -> Result<UpgradedConnection, TransportError> {
    match PendingUpgrade::take(response) {
        Some(connection) => connection.await,
        None => Err(TransportError::new(
            "the response does not switch protocols, or its connection was taken already",
        )),
    }
}

/// A connection that is not there yet.
type Pending = BoxFuture<'static, Result<UpgradedConnection, TransportError>>;

/// The connection of a response whose transport was wrapped, as an extension of the response.
#[derive(Clone)]
pub(crate) struct PendingUpgrade(Arc<Mutex<Option<Pending>>>);

impl PendingUpgrade {
    /// Whether a response switches protocols.
    #[cfg(feature = "websocket")]
    pub(crate) fn is_in<B>(response: &Response<B>) -> bool {
        let extensions = response.extensions();
        extensions.get::<Self>().is_some() || extensions.get::<OnUpgrade>().is_some()
    }

    /// Takes the connection out of a response; `None` if it does not switch protocols.
    pub(crate) fn take<B>(response: &mut Response<B>) -> Option<Pending> {
        let extensions = response.extensions_mut();
        if let Some(Self(pending)) = extensions.remove() {
            return pending.lock().take();
        }
        let library = extensions.remove::<OnUpgrade>()?;
        let connection = library.map(|connection| {
            let connection = connection.map_err(TransportError::new)?;
            Ok(UpgradedConnection::new(TokioIo::new(connection)))
        });
        Some(connection.boxed())
    }

    /// Gives a response another connection.
    pub(crate) fn put<B>(response: &mut Response<B>, connection: Pending) {
        let pending = Self(Arc::new(Mutex::new(Some(connection))));
        response.extensions_mut().insert(pending);
    }
}

impl AsyncRead for UpgradedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_read(cx, buffer)
    }
}

impl AsyncWrite for UpgradedConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.as_mut().poll_write(cx, bytes)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_shutdown(cx)
    }
}

impl fmt::Debug for UpgradedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UpgradedConnection")
    }
}
