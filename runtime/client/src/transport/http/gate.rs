//! `Gate`: stops the bytes of a connection for a moment, or ends it with all its streams.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use parking_lot::Mutex;
use tokio::io::ReadBuf;

use crate::transport::StreamHook;

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
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.change(|state| state.stops -= 1);
    }
}

impl StreamHook for Gate {
    fn read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
        read: impl FnOnce(&mut Context<'_>, &mut ReadBuf<'_>) -> Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_open(cx, |state| &mut state.reader))?;
        read(cx, buffer)
    }

    fn write(
        &mut self,
        cx: &mut Context<'_>,
        _: usize,
        write: impl FnOnce(&mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_open(cx, |state| &mut state.writer))?;
        write(cx)
    }
}
