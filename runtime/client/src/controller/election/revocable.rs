//! `Revocable`: a socket or stream that is closed when the permission to write ends.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use http_body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::JoinHandle;

use super::leadership::{NotLeader, WriteGuard};
use crate::transport::{Body, TransportError, UpgradedConnection, UpgradedStream};

/// What can end at once.
pub(super) trait Revoke: Sized + Send + 'static {
    /// Ends it; what waits to be sent is never sent.
    fn revoke(self) {}

    /// Ends it before the permission of the guard ends: what waits to be sent is sent until then.
    fn release(self, _guard: WriteGuard) {}
}

impl Revoke for Body {}

impl Revoke for UpgradedConnection {
    fn revoke(self) {
        self.cut();
    }
    fn release(self, guard: WriteGuard) {
        UpgradedConnection::release(self, async move { guard.closed().await }.boxed());
    }
}

/// A value that is revoked when the permission of a guard ends, also if nothing polls it then: a task waits for that. It is
/// not polled afterwards, also if that task has not run yet.
pub(super) struct Revocable<T: Revoke> {
    shared: Arc<Mutex<State<T>>>,
    guard: WriteGuard,
    task: JoinHandle<()>,
}

struct State<T> {
    /// `None` once it was revoked.
    value: Option<T>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// Takes the value, ends it so, and wakes the tasks that wait for it.
fn end<T>(shared: &Mutex<State<T>>, end: impl FnOnce(T)) {
    let (value, wakers) = {
        let mut state = shared.lock();
        (
            state.value.take(),
            [state.reader.take(), state.writer.take()],
        )
    };
    if let Some(value) = value {
        end(value);
    }
    for waker in wakers.into_iter().flatten() {
        waker.wake();
    }
}

impl<T: Revoke> Revocable<T> {
    /// Outside of a Tokio runtime it panics.
    pub(super) fn new(value: T, guard: WriteGuard) -> Self {
        let shared = Arc::new(Mutex::new(State {
            value: Some(value),
            reader: None,
            writer: None,
        }));
        let task = tokio::spawn({
            let (shared, guard) = (Arc::clone(&shared), guard.clone());
            async move {
                guard.closed().await;
                end(&shared, T::revoke);
            }
        });
        Self {
            shared,
            guard,
            task,
        }
    }

    fn poll<R>(
        &self,
        cx: &mut Context<'_>,
        waker: fn(&mut State<T>) -> &mut Option<Waker>,
        poll: impl FnOnce(&mut T, &mut Context<'_>) -> Poll<R>,
    ) -> Poll<Result<R, NotLeader>> {
        if let Err(error) = self.guard.check() {
            end(&self.shared, T::revoke);
            return Poll::Ready(Err(error));
        }
        let mut state = self.shared.lock();
        let Some(value) = &mut state.value else {
            return Poll::Ready(Err(NotLeader));
        };
        let polled = poll(value, cx);
        if polled.is_pending() {
            *waker(&mut state) = Some(cx.waker().clone());
        }
        polled.map(Ok)
    }

    fn poll_reader<R>(
        &self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut T, &mut Context<'_>) -> Poll<R>,
    ) -> Poll<Result<R, NotLeader>> {
        self.poll(cx, |state| &mut state.reader, poll)
    }

    fn poll_writer<R>(
        &self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut T, &mut Context<'_>) -> Poll<R>,
    ) -> Poll<Result<R, NotLeader>> {
        self.poll(cx, |state| &mut state.writer, poll)
    }
}

impl<T: Revoke> Drop for Revocable<T> {
    fn drop(&mut self) {
        self.task.abort();
        // The task has the value too until it has ended.
        end(&self.shared, |value| value.release(self.guard.clone()));
    }
}

impl UpgradedStream for Revocable<UpgradedConnection> {
    fn cut(self: Pin<Box<Self>>) {
        end(&self.shared, UpgradedConnection::cut);
    }
    fn release(self: Pin<Box<Self>>, until: BoxFuture<'static, ()>) {
        let guard = self.guard.clone();
        let until = async move {
            tokio::select! {
                () = guard.closed() => {}
                () = until => {}
            }
        };
        end(&self.shared, |value| {
            UpgradedConnection::release(value, until.boxed());
        });
    }
}

fn flat<R>(polled: Poll<Result<io::Result<R>, NotLeader>>) -> Poll<io::Result<R>> {
    polled.map(|result| result.unwrap_or_else(|error| Err(io::Error::other(error))))
}

impl AsyncRead for Revocable<UpgradedConnection> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        flat(self.poll_reader(cx, |socket, cx| Pin::new(socket).poll_read(cx, buffer)))
    }
}

impl AsyncWrite for Revocable<UpgradedConnection> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        flat(self.poll_writer(cx, |socket, cx| Pin::new(socket).poll_write(cx, bytes)))
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        flat(self.poll_writer(cx, |socket, cx| Pin::new(socket).poll_flush(cx)))
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        flat(self.poll_writer(cx, |socket, cx| Pin::new(socket).poll_shutdown(cx)))
    }
}

impl http_body::Body for Revocable<Body> {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        let frame = self.poll_reader(cx, |body, cx| Pin::new(body).poll_frame(cx));
        frame.map(|frame| frame.unwrap_or_else(|error| Some(Err(TransportError::new(error)))))
    }
    fn is_end_stream(&self) -> bool {
        let state = self.shared.lock();
        let body = state.value.as_ref();
        body.is_some_and(http_body::Body::is_end_stream)
    }
    fn size_hint(&self) -> SizeHint {
        let state = self.shared.lock();
        let body = state.value.as_ref();
        body.map(http_body::Body::size_hint).unwrap_or_default()
    }
}
