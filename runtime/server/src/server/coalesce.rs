//! Coalesces small writes of a connection. HTTP/2 flushes after every DATA frame: eight small responses, or an event
//! for each of fifty watchers, would be as many TLS records and system calls. Here a flush is delayed until the
//! connection, and all tasks that are ready to write to it, have nothing more to do.
//!
//! Invariant: when [`CoalescedConnection`] returns pending, all bytes that the peer can take have been written.
//!
//! After an upgrade (WebSocket) the HTTP connection ends, and the upgraded stream flushes immediately. [`CoalescedConnection`]
//! ends with that stream, so that the connection is counted until then.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Capacity of the buffer: one TLS record.
const COLLECTED_BYTES: usize = 16 * 1024;

/// Writes of this size or more are not copied to the buffer.
const LARGE_BYTES: usize = 4 * 1024;

/// A buffered stream for a connection in a [`CoalescedConnection`], which performs its flushes.
pub(super) struct CoalescedStream<S>(Arc<Mutex<WriteBuffer<S>>>);

struct WriteBuffer<S> {
    stream: S,
    /// Bytes that are not written yet. Without capacity while it is empty, since most connections are idle.
    collected: Vec<u8>,
    /// How many of its bytes are written.
    passed: usize,
    /// Whether the connection has ended while the stream is still in use: it was upgraded. Flushes are not delayed
    /// then.
    is_upgraded: bool,
    /// Waker of the task that writes to an upgraded connection.
    writer: Option<Waker>,
    /// Whether the stream was dropped.
    is_dropped: bool,
    /// Waker of the task that waits for the drop.
    owner: Option<Waker>,
}

/// A connection over a [`CoalescedStream`] stream; flushes the stream when the connection is pending.
pub(super) struct CoalescedConnection<S, F: Future> {
    /// `None` once it has ended.
    connection: Option<Pin<Box<F>>>,
    stream: Arc<Mutex<WriteBuffer<S>>>,
    ended: Option<F::Output>,
    /// Whether other tasks ran since bytes were buffered.
    has_waited: bool,
}

/// Runs a connection over a stream whose small writes are coalesced; `connect` makes the connection.
pub(super) fn coalesce<S, F: Future>(
    stream: S,
    connect: impl FnOnce(CoalescedStream<S>) -> F,
) -> CoalescedConnection<S, F> {
    let stream = Arc::new(Mutex::new(WriteBuffer {
        stream,
        collected: Vec::new(),
        passed: 0,
        is_upgraded: false,
        writer: None,
        is_dropped: false,
        owner: None,
    }));
    CoalescedConnection {
        connection: Some(Box::pin(connect(CoalescedStream(Arc::clone(&stream))))),
        stream,
        ended: None,
        has_waited: false,
    }
}

impl<S: AsyncWrite + Unpin> WriteBuffer<S> {
    /// Writes the buffer to the stream.
    fn poll_pass(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.passed < self.collected.len() {
            let rest = &self.collected[self.passed..];
            match ready!(Pin::new(&mut self.stream).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                taken => self.passed += taken,
            }
        }
        self.collected = Vec::new();
        self.passed = 0;
        Poll::Ready(Ok(()))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_pass(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let bytes = slices.iter().map(|slice| slice.len()).sum();
        if !ready!(self.poll_room(cx, bytes))? {
            return Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        }
        for slice in slices {
            self.collected.extend_from_slice(slice);
        }
        Poll::Ready(Ok(bytes))
    }

    /// Waits until an upgraded stream is dropped, and writes what was buffered before the upgrade.
    fn poll_upgraded(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_dropped {
            return Poll::Ready(Ok(()));
        }
        self.is_upgraded = true;
        self.owner = Some(cx.waker().clone());
        // A task that waits to write flushes first; only one task can wait.
        if self.writer.is_none()
            && let Poll::Ready(Err(error)) = self.poll_flush(cx)
        {
            return Poll::Ready(Err(error));
        }
        Poll::Pending
    }

    /// Makes room for a write of `bytes`; returns whether it goes to the buffer, or else directly to the stream.
    fn poll_room(&mut self, cx: &mut Context<'_>, bytes: usize) -> Poll<io::Result<bool>> {
        let collect = bytes < LARGE_BYTES && !self.is_upgraded;
        if !collect || self.collected.len() + bytes > COLLECTED_BYTES {
            ready!(self.poll_pass(cx))?;
        }
        if collect && self.collected.is_empty() {
            self.collected.reserve(COLLECTED_BYTES);
        }
        Poll::Ready(Ok(collect))
    }
}

impl<S> WriteBuffer<S> {
    /// Registers the task that waits to write to an upgraded connection.
    fn note_writer<T>(&mut self, cx: &Context<'_>, written: Poll<T>) -> Poll<T> {
        self.writer = (self.is_upgraded && written.is_pending()).then(|| cx.waker().clone());
        written
    }
}

impl<S> Drop for CoalescedStream<S> {
    fn drop(&mut self) {
        let mut stream = self.0.lock();
        stream.is_dropped = true;
        if let Some(owner) = stream.owner.take() {
            owner.wake();
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CoalescedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.lock().stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CoalescedStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut stream = self.0.lock();
        let written = stream.poll_write(cx, slices);
        stream.note_writer(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Does nothing as long as there is a connection: [`CoalescedConnection`] flushes.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut stream = self.0.lock();
        if !stream.is_upgraded {
            return Poll::Ready(Ok(()));
        }
        let flushed = stream.poll_flush(cx);
        stream.note_writer(cx, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut stream = self.0.lock();
        ready!(stream.poll_pass(cx))?;
        Pin::new(&mut stream.stream).poll_shutdown(cx)
    }
}

impl<S, F, E> Future for CoalescedConnection<S, F>
where
    S: AsyncWrite + Unpin,
    F: Future<Output = Result<(), E>>,
    E: From<io::Error> + Unpin,
{
    type Output = Result<(), E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(connection) = &mut self.connection
            && let Poll::Ready(ended) = connection.as_mut().poll(cx)
        {
            self.ended = Some(ended);
            // Drops its handle of the stream, which is the last one unless the connection was upgraded.
            self.connection = None;
        }
        if let Some(Ok(())) = &self.ended {
            let mut stream = self.stream.lock();
            if !stream.is_dropped || stream.is_upgraded {
                return stream.poll_upgraded(cx).map_err(E::from);
            }
        }
        // A response wakes its connection before the next one is made, although that one may be ready: let other ready
        // tasks run first.
        let is_collecting = !self.stream.lock().collected.is_empty();
        if self.ended.is_none() && is_collecting && !self.has_waited {
            self.has_waited = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.has_waited = false;
        // If the peer accepts no more now, the connection is polled again once it does.
        let flushed = self.stream.lock().poll_flush(cx);
        match (self.ended.take(), flushed) {
            // A failed connection is not flushed.
            (Some(Err(error)), _) => Poll::Ready(Err(error)),
            (_, Poll::Ready(Err(error))) => Poll::Ready(Err(error.into())),
            (Some(Ok(())), Poll::Ready(Ok(()))) => Poll::Ready(Ok(())),
            (ended, _) => {
                self.ended = ended;
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

    use super::*;

    /// Runs a connection over a pipe with this capacity, and returns the bytes that the peer reads.
    async fn through<F>(
        room: usize,
        connect: impl FnOnce(CoalescedStream<DuplexStream>) -> F + Send + 'static,
    ) -> Vec<u8>
    where
        F: Future<Output = Result<(), io::Error>> + Send + 'static,
    {
        let (ours, mut theirs) = tokio::io::duplex(room);
        let connection = tokio::spawn(coalesce(ours, connect));
        let mut read = Vec::new();
        theirs.read_to_end(&mut read).await.unwrap();
        connection.await.unwrap().unwrap();
        read
    }

    #[tokio::test]
    async fn everything_arrives_in_order_whatever_the_sizes() {
        for room in [1, 1000, 100_000] {
            let sizes = [
                1, 9, 5000, 3, 16_384, 100, 4095, 4096, 15_000, 1500, 40_000, 7,
            ];
            let expected: Vec<u8> = (0..).map(|n| n as u8).take(sizes.iter().sum()).collect();
            let sent = expected.clone();
            let read = through(room, move |mut stream| async move {
                let mut rest = sent.as_slice();
                for size in sizes {
                    let (now, later) = rest.split_at(size);
                    stream.write_all(now).await?;
                    stream.flush().await?;
                    rest = later;
                }
                stream.shutdown().await
            });
            assert!(read.await == expected, "{room}");
        }
    }

    #[tokio::test]
    async fn what_a_connection_wrote_is_sent_when_it_waits_and_when_it_ends() {
        let (ours, mut theirs) = tokio::io::duplex(100);
        let (go_on, waits) = tokio::sync::oneshot::channel::<()>();
        let connection = coalesce(ours, |mut stream| async move {
            stream.write_all(b"before").await?;
            waits.await.unwrap();
            stream.write_all(b"behind").await?;
            Ok::<_, io::Error>(())
        });
        let connection = tokio::spawn(connection);
        let mut read = [0; 6];
        theirs.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"before");
        go_on.send(()).unwrap();
        theirs.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"behind");
        connection.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_connection_ends_only_when_the_peer_has_taken_everything() {
        let (ours, mut theirs) = tokio::io::duplex(10);
        let connection = coalesce(ours, |mut stream| async move {
            stream.write_all(&[7; 3000]).await?;
            Ok::<_, io::Error>(())
        });
        let connection = tokio::spawn(connection);
        let mut read = Vec::new();
        theirs.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, [7; 3000]);
        connection.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn what_others_write_in_their_turn_goes_out_together() {
        let (ours, mut theirs) = tokio::io::duplex(100);
        let (answers, mut ready) = tokio::sync::mpsc::unbounded_channel::<&[u8]>();
        let mut connection = coalesce(ours, |mut stream| async move {
            while let Some(answer) = ready.recv().await {
                stream.write_all(answer).await?;
                stream.flush().await?;
            }
            Ok::<_, io::Error>(())
        });
        let mut read = Vec::with_capacity(100);
        answers.send(b"one").unwrap();
        assert!((&mut connection).now_or_never().is_none());
        assert!(theirs.read_buf(&mut read).now_or_never().is_none());
        answers.send(b"two").unwrap();
        assert!((&mut connection).now_or_never().is_none());
        theirs.read_buf(&mut read).await.unwrap();
        assert_eq!(read, b"onetwo");
    }

    #[tokio::test]
    async fn no_more_is_held_back_than_a_record() {
        let (ours, theirs) = tokio::io::duplex(10);
        let mut connection = coalesce(ours, |mut stream| async move {
            for _ in 0..100 {
                stream.write_all(&[1; 1000]).await?;
                stream.flush().await?;
            }
            Ok::<_, io::Error>(())
        });
        assert!((&mut connection).now_or_never().is_none());
        assert!(connection.stream.lock().collected.len() <= COLLECTED_BYTES);
        drop(theirs);
        connection.await.unwrap_err();
    }
}
