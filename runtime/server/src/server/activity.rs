//! What happens on a connection: its requests and its reads are counted, so that [`super::connection`] knows when to close it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What happens on a connection, as its requests tell it.
#[derive(Default)]
pub(super) struct Activity {
    /// Requests that were begun, ever.
    pub(super) begun: AtomicUsize,
    /// Requests that are not yet answered, or not yet read, to the end.
    pub(super) in_progress: AtomicUsize,
    /// Reads that gave bytes, ever.
    pub(super) reads: AtomicUsize,
    /// An answer said that the client is to connect anew. Stays true.
    pub(super) goes_away: AtomicBool,
    /// Of the connection, which is to look at `goes_away`.
    pub(super) waker: AtomicWaker,
}

/// A request in progress.
pub(super) struct InProgress(Arc<Activity>);

impl InProgress {
    pub(super) fn begin(activity: &Arc<Activity>) -> Self {
        activity.begun.fetch_add(1, Ordering::Relaxed);
        Self::more(activity)
    }

    fn more(activity: &Arc<Activity>) -> Self {
        activity.in_progress.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(activity))
    }

    pub(super) fn go_away(&self) {
        self.0.goes_away.store(true, Ordering::Relaxed);
        self.0.waker.wake();
    }
}

impl Clone for InProgress {
    fn clone(&self) -> Self {
        Self::more(&self.0)
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.in_progress.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A stream whose reads are counted.
pub(super) struct Counted<S> {
    pub(super) stream: S,
    pub(super) activity: Arc<Activity>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.activity.reads.fetch_add(1, Ordering::Relaxed);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
