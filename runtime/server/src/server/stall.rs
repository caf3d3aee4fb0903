//! A connection that takes no bytes for too long is closed: a client that never reads must not keep an answer, or a
//! watch, for ever.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// A stream whose writes fail when the peer has taken nothing for `patience`.
pub(super) struct Stall<S> {
    stream: S,
    patience: Duration,
    /// Runs while a write waits; made by the first one that does.
    timer: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
}

impl<S> Stall<S> {
    pub(super) fn new(stream: S, patience: Duration) -> Self {
        Self {
            stream,
            patience,
            timer: None,
            is_waiting: false,
        }
    }

    /// Passes on what became of a write; fails it when it, and those before it, waited too long.
    fn judge<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.is_waiting = false;
            return written;
        }
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(self.patience)));
        if !self.is_waiting {
            self.is_waiting = true;
            timer.as_mut().reset(Instant::now() + self.patience);
        }
        match timer.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the client does not read",
            ))),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stall<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stall<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judge(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.judge(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.judge(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.judge(cx, shut)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_nothing_is_given_up() {
        let (ours, _theirs) = tokio::io::duplex(10);
        let mut stalled = Stall::new(ours, PATIENCE);
        stalled.write_all(b"0123456789").await.unwrap();
        let begun = Instant::now();
        let error = stalled.write_all(b"x").await.unwrap_err();
        assert_eq!(
            (error.kind(), begun.elapsed()),
            (io::ErrorKind::TimedOut, PATIENCE)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_slowly_is_served_to_the_end() {
        let (ours, mut theirs) = tokio::io::duplex(10);
        let reader = tokio::spawn(async move {
            let mut taken = [0; 10];
            for _ in 0..5 {
                tokio::time::sleep(PATIENCE - Duration::from_secs(1)).await;
                theirs.read_exact(&mut taken).await.unwrap();
            }
        });
        let mut stalled = Stall::new(ours, PATIENCE);
        stalled.write_all(&[0; 50]).await.unwrap();
        reader.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn rest_between_writes_does_not_count() {
        let (ours, mut theirs) = tokio::io::duplex(10);
        let mut stalled = Stall::new(ours, PATIENCE);
        stalled.write_all(&[0; 10]).await.unwrap();
        tokio::time::sleep(2 * PATIENCE).await;
        let mut taken = [0; 20];
        let (written, read) =
            tokio::join!(stalled.write_all(&[1; 10]), theirs.read_exact(&mut taken));
        written.unwrap();
        read.unwrap();
    }
}
