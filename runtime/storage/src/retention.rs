//! How much history is kept: at least so long and at least so many revisions, whichever is more.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::Revision;

/// How much history a store keeps by itself. [`Storage::compact`](crate::Storage::compact) may forget more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// No change younger than this is forgotten.
    pub min_age: Duration,
    /// The newest so many changes are not forgotten, however old they are.
    pub min_revisions: u64,
}

impl Default for Retention {
    /// Five minutes, as long as a Kubernetes client may take for the pages of one list, and 10,000 revisions.
    fn default() -> Self {
        Self {
            min_age: Duration::from_secs(300),
            min_revisions: 10_000,
        }
    }
}

impl Retention {
    /// How often it is worth asking [`Horizon::floor`].
    pub(crate) fn step(&self) -> Duration {
        (self.min_age / 32).clamp(Duration::from_millis(50), Duration::from_secs(10))
    }
}

/// Knows how old revisions are, from samples: exact ages would cost a time stamp per revision.
#[derive(Clone, Debug)]
pub(crate) struct Horizon {
    retention: Retention,
    /// (when, the newest revision then), oldest first, one per [`Retention::step`].
    samples: VecDeque<(Instant, Revision)>,
}

impl Horizon {
    pub(crate) fn new(retention: Retention) -> Self {
        Self {
            retention,
            samples: VecDeque::new(),
        }
    }

    /// Notes that `revision` is the newest one now.
    pub(crate) fn observe(&mut self, now: Instant, revision: Revision) {
        let step = self.retention.step();
        if self
            .samples
            .back()
            .is_none_or(|(last, _)| now.duration_since(*last) >= step)
        {
            self.samples.push_back((now, revision));
        }
    }

    /// The revision up to which the changes may be forgotten.
    pub(crate) fn floor(&mut self, now: Instant, current: Revision) -> Revision {
        let by_count = current.0.saturating_sub(self.retention.min_revisions);
        let old =
            |sample: &(Instant, Revision)| now.duration_since(sample.0) >= self.retention.min_age;
        while self.samples.len() > 1 && old(&self.samples[1]) {
            self.samples.pop_front();
        }
        let by_age = self
            .samples
            .front()
            .filter(|sample| old(sample))
            .map_or(0, |(_, revision)| revision.0);
        Revision(by_count.min(by_age))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floor_respects_age_and_count() {
        let check = |min_revisions, at_secs: u64, expected| {
            let start = Instant::now();
            let mut horizon = Horizon::new(Retention {
                min_age: Duration::from_secs(320),
                min_revisions,
            });
            for second in 0..=at_secs {
                horizon.observe(start + Duration::from_secs(second), Revision(second));
            }
            let floor = horizon.floor(start + Duration::from_secs(at_secs), Revision(at_secs));
            assert_eq!(
                floor,
                Revision(expected),
                "{min_revisions} revisions, {at_secs} s"
            );
        };
        check(0, 100, 0);
        check(0, 319, 0);
        check(0, 400, 80);
        check(0, 409, 80);
        check(390, 400, 10);
        check(1_000, 400, 0);
    }
}
