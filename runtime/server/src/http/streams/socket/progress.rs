//! When a connection last received bytes: a large frame takes time, and nothing else can arrive before its end.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// When bytes last arrived. Clones are of the same connection.
#[derive(Clone)]
pub(super) struct LastArrival(Arc<Mutex<Instant>>);

impl LastArrival {
    pub(super) fn get(&self) -> Instant {
        *self.0.lock()
    }
}

/// A connection that notes when bytes arrive.
pub(super) struct ObservedConnection<S> {
    connection: S,
    last: LastArrival,
}

impl<S> ObservedConnection<S> {
    pub(super) fn new(connection: S) -> (Self, LastArrival) {
        let last = LastArrival(Arc::new(Mutex::new(Instant::now())));
        let observed = Self {
            connection,
            last: last.clone(),
        };
        (observed, last)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ObservedConnection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.connection).poll_read(cx, buffer))?;
        if buffer.filled().len() > before {
            *self.last.0.lock() = Instant::now();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ObservedConnection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write(cx, bytes)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(cx)
    }
}
