//! `MeteredConnection`: the connection of a WebSocket, with a count of the bytes received, and a limit for the bytes that wait to be sent.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::transport::UpgradedConnection;

/// The most bytes of control frames, mostly answers to pings, that wait for a server which does not read.
const MAX_CONTROL: usize = 64 << 10;

/// What went over a connection.
#[derive(Default)]
pub(super) struct Traffic {
    received: AtomicU64,
    longest_message: AtomicUsize,
}

impl Traffic {
    /// The number of bytes that arrived so far: of parts of frames, too.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Makes room for a message of this length. At most one waits at a time, together with control frames.
    pub(super) fn expect_message(&self, length: usize) {
        self.longest_message.fetch_max(length, Ordering::Relaxed);
    }
}

/// A connection whose traffic is counted.
pub(super) struct MeteredConnection {
    pub(super) connection: UpgradedConnection,
    pub(super) traffic: Arc<Traffic>,
}

impl AsyncRead for MeteredConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.connection).poll_read(cx, buffer);
        let length = buffer.filled().len().saturating_sub(before) as u64;
        self.traffic.received.fetch_add(length, Ordering::Relaxed);
        polled
    }
}

impl AsyncWrite for MeteredConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        // These are all bytes that wait.
        let longest_message = self.traffic.longest_message.load(Ordering::Relaxed);
        if bytes.len() > longest_message.saturating_add(MAX_CONTROL) {
            let problem = "the server sends pings without end, and does not read the answers";
            return Poll::Ready(Err(io::Error::other(problem)));
        }
        Pin::new(&mut self.connection).poll_write(cx, bytes)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(cx)
    }
}
