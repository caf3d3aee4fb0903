//! Connections of subresources with `connect` that a handler switches to another protocol: bytes in both directions, which
//! the server neither reads nor changes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::extended_connect::{self, UpgradeGuard};
use super::shutdown_signal::ShutdownSignal;
use super::websocket;
use crate::response::{Body, full};

/// A request whose connection can be switched to another protocol.
pub(crate) struct Switch {
    on_upgrade: OnUpgrade,
    /// Held over HTTP/2 until the stream ends.
    guard: Option<UpgradeGuard>,
    /// The protocols that the client asks for.
    protocols: HeaderValue,
    is_over_http2: bool,
}

impl Switch {
    /// The switch that a request asks for; `None` for another request.
    pub(crate) fn of(request: &Parts) -> Option<Self> {
        if !websocket::names(&request.headers, CONNECTION, "upgrade") {
            return None;
        }
        Some(Self {
            on_upgrade: request.extensions.get::<OnUpgrade>()?.clone(),
            guard: request.extensions.get::<UpgradeGuard>().cloned(),
            protocols: request.headers.get(UPGRADE)?.clone(),
            is_over_http2: extended_connect::is_converted(request),
        })
    }

    /// The protocols that the client asks for, as it sent them; empty if they are no text.
    pub(crate) fn protocols(&self) -> &str {
        self.protocols.to_str().unwrap_or_default()
    }

    /// The response, with further headers: 101, or 200 over HTTP/2.
    pub(crate) fn response(&self, protocol: HeaderValue, mut headers: HeaderMap) -> Response<Body> {
        let mut response = Response::new(full(Bytes::new()));
        if self.is_over_http2 {
            headers.remove(SEC_WEBSOCKET_ACCEPT);
        } else {
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
            headers.insert(UPGRADE, protocol);
        }
        *response.headers_mut() = headers;
        response
    }

    /// Waits until the connection is switched, and calls its handler, which is dropped when the server stops.
    pub(crate) async fn serve(self, stopping: ShutdownSignal, serve: ServeStream) {
        let connection = match self.on_upgrade.await {
            Ok(connection) => TokioIo::new(connection),
            Err(error) => {
                tracing::debug!(%error, "a connection could not be switched");
                return;
            }
        };
        // A task of its own, so that a panic ends nothing else; the panic hook logs it.
        let handler = tokio::spawn(async move {
            tokio::select! {
                biased;
                () = stopping.wait() => {}
                () = serve(ConnectStream(connection)) => {}
            }
        });
        let _ = handler.await;
        drop(self.guard);
    }
}

/// The code of a switched connection.
pub(crate) type ServeStream = Box<dyn FnOnce(ConnectStream) -> BoxFuture<'static, ()> + Send>;

/// A connection to a client that was switched to another protocol, by
/// [`ConnectRequest::switch`](crate::ConnectRequest::switch). It is closed when it is dropped.
///
/// The server has no time limits for it: a handler limits how long it waits for a client.
#[derive(Debug)]
pub struct ConnectStream(TokioIo<Upgraded>);

impl AsyncRead for ConnectStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for ConnectStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
