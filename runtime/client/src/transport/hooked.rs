//! Streams that do something at each read and write, beside passing the bytes on.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a [`HookedStream`] does at its reads and writes; by default nothing.
pub trait StreamHook: Unpin {
    /// Reads by `read`, unless the stream is held back.
    fn read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
        read: impl FnOnce(&mut Context<'_>, &mut ReadBuf<'_>) -> Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        read(cx, buffer)
    }

    /// Writes this number of bytes by `write`, which returns how many the stream took, unless it is held back. Both are 0 for a
    /// flush and a shutdown.
    fn write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: usize,
        write: impl FnOnce(&mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let _ = bytes;
        write(cx)
    }
}

/// A stream with a hook.
pub struct HookedStream<S, H> {
    stream: S,
    hook: H,
}

impl<S, H> HookedStream<S, H> {
    /// The stream, with this hook at its reads and writes.
    pub fn new(stream: S, hook: H) -> Self {
        Self { stream, hook }
    }
}

impl<S: AsyncRead + Unpin, H: StreamHook> AsyncRead for HookedStream<S, H> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, hook } = self.get_mut();
        hook.read(cx, buffer, |cx, buffer| {
            Pin::new(stream).poll_read(cx, buffer)
        })
    }
}

impl<S: AsyncWrite + Unpin, H: StreamHook> AsyncWrite for HookedStream<S, H> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, hook } = self.get_mut();
        hook.write(cx, bytes.len(), |cx| Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Self { stream, hook } = self.get_mut();
        let bytes = slices.iter().map(|slice| slice.len()).sum();
        hook.write(cx, bytes, |cx| {
            Pin::new(stream).poll_write_vectored(cx, slices)
        })
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, hook } = self.get_mut();
        let flush = |cx: &mut Context<'_>| Pin::new(stream).poll_flush(cx).map_ok(|()| 0);
        hook.write(cx, 0, flush).map_ok(drop)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, hook } = self.get_mut();
        let shut = |cx: &mut Context<'_>| Pin::new(stream).poll_shutdown(cx).map_ok(|()| 0);
        hook.write(cx, 0, shut).map_ok(drop)
    }
}
