//! Histograms of durations.

use std::time::Duration;

/// The upper bounds of buckets, in order: in nanoseconds, and as the text format shows them in seconds.
#[derive(Debug, PartialEq, Eq)]
pub struct Bounds(pub &'static [(u64, &'static str)]);

/// The bounds of client-go's work queues: 10 ns to 1000 s.
pub(crate) static OF_WORK: Bounds = Bounds(&[
    (10, "1e-08"),
    (100, "1e-07"),
    (1_000, "1e-06"),
    (10_000, "1e-05"),
    (100_000, "0.0001"),
    (1_000_000, "0.001"),
    (10_000_000, "0.01"),
    (100_000_000, "0.1"),
    (1_000_000_000, "1"),
    (10_000_000_000, "10"),
    (100_000_000_000, "100"),
    (1_000_000_000_000, "1000"),
]);

/// The bounds of client-go's requests: 5 ms to 60 s.
pub(crate) static OF_REQUESTS: Bounds = Bounds(&[
    (5_000_000, "0.005"),
    (25_000_000, "0.025"),
    (100_000_000, "0.1"),
    (250_000_000, "0.25"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1"),
    (2_000_000_000, "2"),
    (4_000_000_000, "4"),
    (8_000_000_000, "8"),
    (15_000_000_000, "15"),
    (30_000_000_000, "30"),
    (60_000_000_000, "60"),
]);

/// A histogram of durations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurationHistogram {
    bounds: &'static Bounds,
    /// The number of durations up to each bound; longer ones are only in `count`.
    buckets: Box<[u64]>,
    count: u64,
    sum: Duration,
}

impl Default for DurationHistogram {
    /// Empty, with the buckets of client-go's work queues: 10 ns to 1000 s.
    fn default() -> Self {
        Self::with_bounds(&OF_WORK)
    }
}

impl DurationHistogram {
    /// Empty, with these buckets.
    pub fn with_bounds(bounds: &'static Bounds) -> Self {
        Self {
            bounds,
            buckets: vec![0; bounds.0.len()].into(),
            count: 0,
            sum: Duration::ZERO,
        }
    }

    /// Counts a duration.
    pub fn observe(&mut self, duration: Duration) {
        let bounds = self.bounds.0;
        let first = bounds.partition_point(|(bound, _)| u128::from(*bound) < duration.as_nanos());
        for bucket in &mut self.buckets[first..] {
            *bucket += 1;
        }
        self.count += 1;
        self.sum = self.sum.saturating_add(duration);
    }

    /// The number of durations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all durations.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// The bound of each bucket, and the number of durations up to it.
    pub(super) fn buckets(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let labels = self.bounds.0.iter().map(|(_, label)| *label);
        labels.zip(self.buckets.iter().copied())
    }
}
