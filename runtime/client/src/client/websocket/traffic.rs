//! `MeteredConnection`: the connection of a WebSocket, with a count of the bytes received, and a limit for the bytes that wait to be sent.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::ReadBuf;

use crate::transport::{HookedStream, StreamHook, UpgradedConnection};

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
pub(super) type MeteredConnection = HookedStream<UpgradedConnection, Arc<Traffic>>;

impl StreamHook for Arc<Traffic> {
    fn read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
        read: impl FnOnce(&mut Context<'_>, &mut ReadBuf<'_>) -> Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = read(cx, buffer);
        let length = buffer.filled().len().saturating_sub(before) as u64;
        self.received.fetch_add(length, Ordering::Relaxed);
        polled
    }

    fn write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: usize,
        write: impl FnOnce(&mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        // These are all bytes that wait.
        let longest_message = self.longest_message.load(Ordering::Relaxed);
        if bytes > longest_message.saturating_add(MAX_CONTROL) {
            let problem = "the server sends pings without end, and does not read the answers";
            return Poll::Ready(Err(io::Error::other(problem)));
        }
        write(cx)
    }
}
