//! The delays between the attempts of a key that fails.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

use super::time::later;

/// The delays between attempts: the first after `base`, each further one twice as long, at most `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The delay after the first failure. Default: 5 ms, as in client-go.
    pub base: Duration,
    /// The longest delay. Default: 1000 s, as in client-go.
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            base: Duration::from_millis(5),
            max: Duration::from_secs(1000),
        }
    }
}

impl Backoff {
    /// The delay after a number of failures in a row; zero without a failure.
    pub fn delay(&self, failures: u32) -> Duration {
        let Some(doublings) = failures.checked_sub(1) else {
            return Duration::ZERO;
        };
        let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
        self.base.saturating_mul(factor).min(self.max)
    }
}

/// The failures of keys since their last success.
#[derive(Debug)]
pub(super) struct Failures<K> {
    backoff: Backoff,
    of_keys: HashMap<K, Failure>,
}

#[derive(Clone, Copy, Debug)]
struct Failure {
    count: u32,
    /// The end of the delay after the last counted failure.
    retry_at: Instant,
}

impl<K: Clone + Eq + Hash> Failures<K> {
    pub(super) fn new(backoff: Backoff) -> Self {
        Self {
            backoff,
            of_keys: HashMap::new(),
        }
    }

    pub(super) fn count(&self, key: &K) -> u32 {
        self.of_keys.get(key).map_or(0, |failure| failure.count)
    }

    pub(super) fn forget(&mut self, key: &K) {
        self.of_keys.remove(key);
    }

    /// Records that an attempt failed, and returns when the next one is due. An attempt that started before the
    /// current delay had passed, because something else triggered it, is not counted and leaves the time as it is.
    pub(super) fn fail(&mut self, key: &K, started: Instant, now: Instant) -> Instant {
        if let Some(failure) = self.of_keys.get(key)
            && started < failure.retry_at
        {
            return failure.retry_at.max(now);
        }
        let count = self.count(key).saturating_add(1);
        let retry_at = later(now, self.backoff.delay(count));
        self.of_keys
            .insert(key.clone(), Failure { count, retry_at });
        retry_at
    }
}
