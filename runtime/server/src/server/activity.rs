//! Counters of a connection's requests and reads, by which [`super::connection`] decides when to close it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Counters and flags that the requests of a connection share with it.
#[derive(Default)]
pub(super) struct Activity {
    /// Total number of requests.
    pub(super) begun: AtomicUsize,
    /// Requests whose response is not sent yet, or whose body is not read yet.
    pub(super) in_progress: AtomicUsize,
    /// Whether the preface of HTTP/2 and the client's first frame have arrived, which is SETTINGS.
    pub(super) has_preface: AtomicBool,
    /// Total number of reads that returned bytes.
    pub(super) reads: AtomicUsize,
    /// Whether a response told the client to reconnect; never reset.
    pub(super) goes_away: AtomicBool,
    /// Wakes the connection, so that it reads `goes_away`.
    pub(super) waker: AtomicWaker,
}

/// Counts a request as in progress until it is dropped.
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

/// A stream that counts its reads.
pub(super) struct CountingStream<S> {
    stream: S,
    activity: Arc<Activity>,
    /// Bytes up to the end of the first frame of HTTP/2; `None` when they have arrived.
    preface: Option<Preface>,
}

impl<S> CountingStream<S> {
    pub(super) fn new(stream: S, activity: Arc<Activity>) -> Self {
        Self {
            stream,
            activity,
            preface: Some(Preface::default()),
        }
    }

    /// Counts one read.
    fn record(&mut self, bytes: &[u8]) {
        self.activity.reads.fetch_add(1, Ordering::Relaxed);
        if let Some(preface) = &mut self.preface
            && preface.ends_in(bytes)
        {
            self.preface = None;
            self.activity.has_preface.store(true, Ordering::Relaxed);
        }
    }
}

/// How much of the beginning of HTTP/2 has arrived: 24 fixed bytes, and a frame with the length of its payload in three bytes
/// before six others. hyper checks what they say.
#[derive(Default)]
struct Preface {
    received: usize,
    payload: usize,
}

impl Preface {
    const FIXED: usize = 24;
    const LENGTH: usize = 3;
    const FRAME_HEADER: usize = 9;

    /// Takes the next bytes. Whether all have arrived with them.
    fn ends_in(&mut self, bytes: &[u8]) -> bool {
        let of_length = Self::FIXED..Self::FIXED + Self::LENGTH;
        let head = of_length.end.saturating_sub(self.received);
        for (at, byte) in (self.received..).zip(bytes.iter().take(head)) {
            if of_length.contains(&at) {
                self.payload = self.payload << 8 | usize::from(*byte);
            }
        }
        self.received += bytes.len();
        self.received >= Self::FIXED + Self::FRAME_HEADER + self.payload
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CountingStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if let Some(bytes) = buffer.filled().get(before..)
            && !bytes.is_empty()
        {
            self.record(bytes);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CountingStream<S> {
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
