//! Closes connections whose peer accepts no bytes for too long, so that a client that never reads cannot keep a
//! response or a watch in memory for ever, and not for long while memory is short.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use apiloom_client::transport::StreamHook;
use apiloom_http::request::timeout::REQUEST_TIMEOUT;
use apiloom_registry::memory;
use tokio::time::{Instant, Sleep};

use super::chain::FilterInfo;

/// Maximum time for which a peer accepts no bytes: the timeout of ordinary requests.
pub(super) const STALL: Duration = REQUEST_TIMEOUT;

/// The time while memory is short. What is not read keeps objects in memory that have changed since: their sum has no other bound.
const SHORT_STALL: Duration = Duration::from_secs(5);

/// The filter that [`Stall`] is.
pub(super) const INFO: FilterInfo = FilterInfo::new(
    "stalled-peers",
    "ends a connection whose client accepts no bytes for a minute, for 5 s while memory is short",
);

/// How long a peer may accept nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    most: Duration,
    is_memory_short: fn() -> bool,
}

impl Patience {
    /// At most so long, and [`SHORT_STALL`] while the memory of the process is short.
    pub(super) fn new(most: Duration) -> Self {
        Self {
            most,
            is_memory_short: memory::is_short,
        }
    }

    /// The time after which is asked whether it has ended.
    fn step(self) -> Duration {
        self.most.min(SHORT_STALL)
    }

    #[cfg(test)]
    pub(super) fn with_memory(most: Duration, is_memory_short: fn() -> bool) -> Self {
        Self {
            most,
            is_memory_short,
        }
    }
}

/// The time since which a peer accepts nothing.
pub(super) struct Waiting {
    patience: Patience,
    since: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Waiting {
    pub(super) fn new(patience: Patience) -> Self {
        Self {
            patience,
            since: Instant::now(),
            timer: Box::pin(tokio::time::sleep(patience.step())),
        }
    }

    pub(super) fn restart(&mut self) {
        self.since = Instant::now();
        self.timer.as_mut().reset(self.since + self.patience.step());
    }

    /// Ready when patience has ended.
    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.timer.as_mut().poll(cx));
            let now = Instant::now();
            let left = self.patience.most.saturating_sub(now - self.since);
            if left.is_zero() || (self.patience.is_memory_short)() {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(now + left.min(SHORT_STALL));
        }
    }
}

/// Fails the writes of a stream when the peer has accepted nothing for `patience`.
pub(super) struct Stall {
    patience: Patience,
    /// Counts while a write is pending; created by the first such write.
    waiting: Option<Waiting>,
    is_waiting: bool,
}

impl Stall {
    pub(super) fn new(patience: Patience) -> Self {
        Self {
            patience,
            waiting: None,
            is_waiting: false,
        }
    }
}

impl StreamHook for Stall {
    /// Returns the result of a write; fails if this write and those before it were pending for too long.
    fn write(
        &mut self,
        cx: &mut Context<'_>,
        _: usize,
        write: impl FnOnce(&mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let written = write(cx);
        if written.is_ready() {
            self.is_waiting = false;
            return written;
        }
        let waiting = self
            .waiting
            .get_or_insert_with(|| Waiting::new(self.patience));
        if !self.is_waiting {
            self.is_waiting = true;
            waiting.restart();
        }
        waiting.poll_end(cx).map(|()| {
            Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the client does not read",
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use apiloom_client::transport::HookedStream;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn patience() -> Patience {
        Patience::with_memory(PATIENCE, || false)
    }

    /// When a peer that reads nothing is given up.
    async fn given_up_after(patience: Patience) -> Duration {
        let (ours, _theirs) = tokio::io::duplex(10);
        let mut stalled = HookedStream::new(ours, Stall::new(patience));
        stalled.write_all(b"0123456789").await.unwrap();
        let begun = Instant::now();
        let error = stalled.write_all(b"x").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_nothing_is_given_up() {
        assert_eq!(given_up_after(patience()).await, PATIENCE);
        let impatient = Patience::with_memory(SHORT_STALL / 2, || false);
        assert_eq!(given_up_after(impatient).await, SHORT_STALL / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_nothing_is_given_up_soon_while_memory_is_short() {
        let short = Patience::with_memory(PATIENCE, || true);
        assert_eq!(given_up_after(short).await, SHORT_STALL);
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
        let mut stalled = HookedStream::new(ours, Stall::new(patience()));
        stalled.write_all(&[0; 50]).await.unwrap();
        reader.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn rest_between_writes_does_not_count() {
        let (ours, mut theirs) = tokio::io::duplex(10);
        let mut stalled = HookedStream::new(ours, Stall::new(patience()));
        stalled.write_all(&[0; 10]).await.unwrap();
        tokio::time::sleep(2 * PATIENCE).await;
        let mut taken = [0; 20];
        let (written, read) =
            tokio::join!(stalled.write_all(&[1; 10]), theirs.read_exact(&mut taken));
        written.unwrap();
        read.unwrap();
    }
}
