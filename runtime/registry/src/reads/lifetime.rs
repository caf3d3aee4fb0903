//! How long a watch lasts, and when its bookmarks are due.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// Interval of bookmarks.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);

/// Time before the timeout of a stream at which a last bookmark is sent, so that the client can resume from it.
const BEFORE_END: Duration = Duration::from_secs(2);

/// Minimum timeout of a stream without `timeoutSeconds`. The timeout is random, up to twice the minimum, so that
/// clients do not reconnect all at once.
const MIN_LIFE_SECONDS: u64 = 1800;

/// Maximum timeout: a year, so that adding it to the clock cannot overflow.
const MAX_LIFE_SECONDS: u64 = 31_536_000;

/// What is due in a stream.
pub(super) enum Due {
    /// A bookmark.
    Bookmark,
    /// Its end.
    End,
}

/// Timer for the bookmarks and the timeout of a stream.
pub(super) struct Lifetime {
    end: Instant,
    bookmarks: bool,
    /// Fires at the next bookmark or the timeout. One timer for the whole stream: mostly it is polled, not reset.
    timer: Pin<Box<Sleep>>,
}

impl Lifetime {
    /// The lifetime of a stream that begins now.
    pub(super) fn new(timeout_seconds: Option<u64>, bookmarks: bool) -> Self {
        let seconds = match timeout_seconds {
            Some(seconds) if seconds > 0 => seconds,
            _ => MIN_LIFE_SECONDS + random_below(MIN_LIFE_SECONDS),
        };
        let now = Instant::now();
        let end = now + Duration::from_secs(seconds.min(MAX_LIFE_SECONDS));
        let mut lifetime = Self {
            end,
            bookmarks,
            timer: Box::pin(sleep_until(end)),
        };
        lifetime.schedule(now);
        lifetime
    }

    /// Schedules the next bookmark: about a minute after `now`, or shortly before the timeout if that is earlier. None
    /// if the client did not ask for bookmarks, or the timeout comes first.
    pub(super) fn schedule(&mut self, now: Instant) {
        let jitter = Duration::from_millis(random_below(1000));
        let last = self.end.checked_sub(BEFORE_END).filter(|last| *last > now);
        let bookmark = last
            .filter(|_| self.bookmarks)
            .map(|last| last.min(now + BOOKMARK_PERIOD + jitter));
        self.timer.as_mut().reset(bookmark.unwrap_or(self.end));
    }

    /// Waits for the next bookmark or the timeout.
    pub(super) async fn due(&mut self) -> Due {
        self.timer.as_mut().await;
        if self.timer.deadline() < self.end {
            Due::Bookmark
        } else {
            Due::End
        }
    }
}

/// A random number below `bound`, which is at least 1; not uniform, but sufficient to spread load.
fn random_below(bound: u64) -> u64 {
    let (high, _) = uuid::Uuid::new_v4().as_u64_pair();
    (high >> 16) % bound
}
