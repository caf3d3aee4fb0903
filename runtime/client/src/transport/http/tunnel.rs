//! `Tunnel`: a stream of HTTP/2 that a response switched to another protocol, and its end.
//!
//! The HTTP library goes on to send what was written after the stream is dropped, however long the server lets it wait. So
//! little is written at a time, the stream counts as one in use until all is sent, and one that must end at once takes its
//! connection with it if something waits.

use std::future::{pending, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::Handle;

use super::gate::{Gate, Stop};
use crate::transport::UpgradedStream;

/// The most bytes of a write. Up to three writes wait in the HTTP library.
const MAX_WRITE: usize = 64 << 10;

/// How long a stream may take to end by itself while its connection stands still. It needs no answer of the server for that
/// unless something waits.
const CUT_LIMIT: Duration = Duration::from_secs(1);

/// A stream of HTTP/2 that was switched.
pub(super) struct Tunnel {
    /// `None` once it ends.
    parts: Option<Parts>,
    gate: Gate,
    runtime: Handle,
}

struct Parts {
    stream: TokioIo<Upgraded>,
    /// Without a write, nothing waits to be sent.
    is_written: bool,
    /// Dropped when all is sent.
    _end: Box<dyn Send>,
}

impl Tunnel {
    pub(super) fn new(
        stream: Upgraded,
        end: impl Send + 'static,
        gate: Gate,
        runtime: Handle,
    ) -> Self {
        let parts = Parts {
            stream: TokioIo::new(stream),
            is_written: false,
            _end: Box::new(end),
        };
        Self {
            parts: Some(parts),
            gate,
            runtime,
        }
    }

    fn stream(&mut self) -> io::Result<Pin<&mut TokioIo<Upgraded>>> {
        let parts = self.parts.as_mut();
        let parts = parts.ok_or(io::ErrorKind::NotConnected)?;
        Ok(Pin::new(&mut parts.stream))
    }

    /// Sends what was written, until a time at which the stream ends at once.
    fn finish(&mut self, until: BoxFuture<'static, ()>) {
        let gate = self.gate.clone();
        let Some(mut parts) = self.parts.take().filter(|parts| parts.is_written) else {
            return;
        };
        self.runtime.spawn(async move {
            tokio::select! {
                () = parts.finish() => {}
                () = until => {
                    let stop = gate.stop();
                    parts.cut(gate, stop).await;
                }
            }
        });
    }
}

impl Parts {
    /// Waits until the HTTP library has sent all, or could not.
    async fn finish(&mut self) {
        // How it ended does not matter.
        let _ = poll_fn(|cx| Pin::new(&mut self.stream).poll_shutdown(cx)).await;
    }

    /// Ends the stream while the connection stands still: by a reset, if the HTTP library has nothing that waits for the
    /// server, else by the end of the connection.
    async fn cut(mut self, gate: Gate, stop: Stop) {
        let ended = tokio::time::timeout(CUT_LIMIT, self.finish()).await;
        // Drops what HTTP/2 itself has not sent.
        drop(self);
        if ended.is_err() {
            tracing::debug!(
                "a connection of HTTP/2 is closed with a stream that must not send any more"
            );
            gate.close();
        }
        drop(stop);
    }
}

impl UpgradedStream for Tunnel {
    fn cut(mut self: Pin<Box<Self>>) {
        if let Some(parts) = self.parts.take().filter(|parts| parts.is_written) {
            let gate = self.gate.clone();
            let stop = gate.stop();
            self.runtime.spawn(parts.cut(gate, stop));
        }
    }

    fn release(mut self: Pin<Box<Self>>, until: BoxFuture<'static, ()>) {
        self.finish(until);
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.finish(pending().boxed());
    }
}

impl AsyncRead for Tunnel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream()?.poll_read(cx, buffer)
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let some = &bytes[..bytes.len().min(MAX_WRITE)];
        if let Some(parts) = &mut self.parts {
            parts.is_written = true;
        }
        self.stream()?.poll_write(cx, some)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(cx)
    }
}
