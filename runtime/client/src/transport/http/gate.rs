//! `Gate`: stops the bytes of a connection for a moment, or ends it with all its streams.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What is held to stop or to close a connection. Clones are of the same one.
#[derive(Clone, Default)]
pub(super) struct Gate(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The number of those who stop it.
    stops: usize,
    is_closed: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// Stops a connection until it is dropped.
pub(super) struct Stop(Gate);

impl Gate {
    /// Nothing is read or written as long as the result is held.
    pub(super) fn stop(&self) -> Stop {
        self.0.lock().stops += 1;
        Stop(self.clone())
    }

    /// Ends the connection with an error for all its streams.
    pub(super) fn close(&self) {
        self.change(|state| state.is_closed = true);
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let wakers = {
            let mut state = self.0.lock();
            change(&mut state);
            [state.reader.take(), state.writer.take()]
        };
        wakers.into_iter().flatten().for_each(Waker::wake);
    }

    fn poll_open(
        &self,
        cx: &mut Context<'_>,
        waker: fn(&mut State) -> &mut Option<Waker>,
    ) -> Poll<io::Result<()>> {
        let mut state = self.0.lock();
        if state.is_closed {
            let problem = "the connection was closed, since a stream of it had to end at once";
            let error = io::Error::new(io::ErrorKind::ConnectionAborted, problem);
            return Poll::Ready(Err(error));
        }
        // Also of a task that waits for the peer: the end of the connection wakes it.
        let waker = waker(&mut state);
        if !waker.as_ref().is_some_and(|old| old.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        if state.stops > 0 {
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_open(cx, |state| &mut state.writer)
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.change(|state| state.stops -= 1);
    }
}

/// A connection with a gate.
pub(super) struct GatedStream<S> {
    pub(super) stream: S,
    pub(super) gate: Gate,
}

impl<S: AsyncRead + Unpin> AsyncRead for GatedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.gate.poll_open(cx, |state| &mut state.reader))?;
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for GatedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.gate.poll_write(cx))?;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.gate.poll_write(cx))?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.gate.poll_write(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.gate.poll_write(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
