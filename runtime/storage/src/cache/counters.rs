//! Counters of a cache since it was created, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets of [`Counts::waits`] in seconds, as in kube-apiserver.
pub const WAIT_BOUNDS: [f64; 13] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0,
];

/// The values of the counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Number of fills: the first one and each later one.
    pub fills: u64,
    /// Objects read by fills.
    pub filled_objects: u64,
    /// Changes received from the store.
    pub received: u64,
    /// Changes published to watchers.
    pub dispatched: u64,
    /// Watchers ended because they were too slow.
    pub ended_watchers: u64,
    /// Consistent reads that the cache answered.
    pub consistent_reads: u64,
    /// Consistent reads that timed out before the cache had caught up.
    pub consistent_fallbacks: u64,
    /// Consistent reads that failed because the store did not report its revision.
    pub consistent_failures: u64,
    /// A histogram of how long readers waited for a revision, with the bounds [`WAIT_BOUNDS`]: a bucket counts the waits up
    /// to its bound and above the one before it; the last bucket counts the waits above all bounds.
    pub waits: [u64; WAIT_BOUNDS.len() + 1],
    /// The sum of these waits in seconds.
    pub waited_seconds: f64,
}

#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) fills: Counter,
    pub(super) filled_objects: Counter,
    pub(super) received: Counter,
    pub(super) dispatched: Counter,
    pub(super) ended_watchers: Counter,
    pub(super) consistent_reads: Counter,
    pub(super) consistent_fallbacks: Counter,
    pub(super) consistent_failures: Counter,
    waits: [Counter; WAIT_BOUNDS.len() + 1],
    waited_micros: Counter,
}

impl Counters {
    pub(super) fn waited(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        self.waits[WAIT_BOUNDS.partition_point(|bound| *bound < seconds)].add(1);
        self.waited_micros
            .add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    pub(super) fn counts(&self) -> Counts {
        Counts {
            fills: self.fills.get(),
            filled_objects: self.filled_objects.get(),
            received: self.received.get(),
            dispatched: self.dispatched.get(),
            ended_watchers: self.ended_watchers.get(),
            consistent_reads: self.consistent_reads.get(),
            consistent_fallbacks: self.consistent_fallbacks.get(),
            consistent_failures: self.consistent_failures.get(),
            waits: std::array::from_fn(|bucket| self.waits[bucket].get()),
            waited_seconds: self.waited_micros.get() as f64 / 1e6,
        }
    }
}
