//! How much history is kept: at least a minimum age and a minimum number of revisions, whichever is more, but at most a
//! number of bytes.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::Revision;

/// How much history a store keeps by itself. [`Storage::compact`](crate::Storage::compact) may remove more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Changes younger than this are kept.
    pub min_age: Duration,
    /// Number of newest changes that are kept, regardless of their age.
    pub min_revisions: u64,
    /// Maximum bytes of history beside the present values: beyond that the oldest changes are compacted, regardless of
    /// their age and number.
    pub max_bytes: u64,
}

impl Default for Retention {
    /// Five minutes, as long as a Kubernetes client may take for the pages of one list, and 10,000 revisions; but at
    /// most 1 GiB, since 10,000 objects of the maximum size would take 30.
    fn default() -> Self {
        Self {
            min_age: Duration::from_secs(300),
            min_revisions: 10_000,
            max_bytes: 1 << 30,
        }
    }
}

impl Retention {
    /// How often [`Horizon::floor`] should be called.
    pub(crate) fn step(&self) -> Duration {
        (self.min_age / 32).clamp(Duration::from_millis(50), Duration::from_secs(10))
    }

    /// The granularity of the byte limit: this many bytes are kept or compacted together.
    fn byte_step(&self) -> u64 {
        self.max_bytes / 64
    }
}

/// The cost of a change in history beside the value that it replaced: its key, numbers and map entries.
pub(crate) const CHANGE_BYTES: u64 = 128;

/// A point in history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// The newest revision at that time.
    pub(crate) revision: Revision,
    /// Its age.
    pub(crate) age: Duration,
    /// The cost of the changes up to there, counted from any point that is the same for all samples.
    pub(crate) bytes: u64,
}

/// Estimates the age and size of changes from samples: exact ages would cost a time stamp per revision.
#[derive(Clone, Debug)]
pub(crate) struct Horizon {
    retention: Retention,
    origin: Instant,
    /// Oldest first. Changes before the first sample are compacted, or of unknown age.
    samples: VecDeque<At>,
    /// The cost of all changes, counted from the same point as in the samples.
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct At {
    /// Milliseconds after the origin.
    millis: i64,
    revision: Revision,
    bytes: u64,
}

impl Horizon {
    /// For a store whose history begins after `compacted`.
    pub(crate) fn new(retention: Retention, now: Instant, compacted: Revision) -> Self {
        let first = Sample {
            revision: compacted,
            age: Duration::ZERO,
            bytes: 0,
        };
        Self::resume(retention, now, [first])
    }

    /// For a store with saved samples, oldest first.
    pub(crate) fn resume(
        retention: Retention,
        now: Instant,
        samples: impl IntoIterator<Item = Sample>,
    ) -> Self {
        let mut last = i64::MIN;
        let samples: VecDeque<At> = samples
            .into_iter()
            .map(|sample| {
                // If the clock was set back, the later sample is used.
                last = last.max(-i64::try_from(sample.age.as_millis()).unwrap_or(i64::MAX));
                At {
                    millis: last,
                    revision: sample.revision,
                    bytes: sample.bytes,
                }
            })
            .collect();
        Self {
            retention,
            origin: now,
            bytes: samples.back().map_or(0, |last| last.bytes),
            samples,
        }
    }

    /// The samples, for saving.
    pub(crate) fn samples(&self, now: Instant) -> impl Iterator<Item = Sample> {
        let now = self.millis(now);
        self.samples.iter().map(move |at| Sample {
            revision: at.revision,
            age: Duration::from_millis(now.saturating_sub(at.millis).try_into().unwrap_or(0)),
            bytes: at.bytes,
        })
    }

    fn millis(&self, now: Instant) -> i64 {
        let since = now.saturating_duration_since(self.origin).as_millis();
        i64::try_from(since).unwrap_or(i64::MAX)
    }

    /// Adds the cost of a replaced value.
    pub(crate) fn count(&mut self, bytes: u64) {
        self.bytes = self
            .bytes
            .saturating_add(bytes)
            .saturating_add(CHANGE_BYTES);
    }

    /// Records that `revision` is the newest one now; returns whether that added a sample.
    pub(crate) fn observe(&mut self, now: Instant, revision: Revision) -> bool {
        let millis = self.millis(now);
        let step = self.retention.step().as_millis() as i64;
        let is_due = self.samples.back().is_none_or(|last| {
            last.revision < revision
                && (millis.saturating_sub(last.millis) >= step
                    || self.bytes - last.bytes >= self.retention.byte_step())
        });
        if is_due {
            self.samples.push_back(At {
                millis,
                revision,
                bytes: self.bytes,
            });
            self.thin_out(millis);
        }
        is_due
    }

    /// The same for a change of which only its existence is known.
    pub(crate) fn observe_bytes(&mut self, now: Instant, revision: Revision) {
        let last = self.samples.back().map_or(0, |last| last.bytes);
        if self.bytes - last >= self.retention.byte_step() {
            self.observe(now, revision);
        }
    }

    /// The revision of the newest sample.
    pub(crate) fn newest(&self) -> Revision {
        self.samples
            .back()
            .map_or(Revision(0), |last| last.revision)
    }

    /// Drops samples that add no precision to their neighbors.
    fn thin_out(&mut self, now: i64) {
        let old = self.first_young(now);
        let mut index = 1;
        let mut left = old;
        while index + 1 < left {
            let between = self.samples[index + 1].bytes - self.samples[index - 1].bytes;
            if between < self.retention.byte_step().max(1) {
                self.samples.remove(index);
                left -= 1;
            } else {
                index += 1;
            }
        }
    }

    /// The first sample that is younger than the minimum age.
    fn first_young(&self, now: i64) -> usize {
        let min_age = i64::try_from(self.retention.min_age.as_millis()).unwrap_or(i64::MAX);
        self.samples
            .partition_point(|at| now.saturating_sub(at.millis) >= min_age)
    }

    /// Whether history exceeds its byte limit by so much that the floor should be computed.
    pub(crate) fn is_too_large(&self) -> bool {
        let first = self.samples.front().map_or(self.bytes, |first| first.bytes);
        self.bytes - first
            > self
                .retention
                .max_bytes
                .saturating_add(self.retention.byte_step())
    }

    /// The revision up to which changes may be compacted.
    pub(crate) fn floor(&self, now: Instant, current: Revision) -> Revision {
        let by_count = current.0.saturating_sub(self.retention.min_revisions);
        let by_age = match self.first_young(self.millis(now)) {
            0 => 0,
            young => self.samples[young - 1].revision.0,
        };
        Revision(by_count.min(by_age).max(self.floor_by_bytes()))
    }

    fn floor_by_bytes(&self) -> u64 {
        let bytes = self.bytes;
        let most = self.retention.max_bytes;
        let large = self.samples.partition_point(|at| bytes - at.bytes > most);
        match self.samples.get(large) {
            _ if large == 0 => 0,
            Some(at) => at.revision.0,
            None => self.samples[large - 1].revision.0,
        }
    }

    /// Drops the samples of compacted changes.
    pub(crate) fn forget(&mut self, compacted: Revision) {
        while self.samples.len() > 1 && self.samples[1].revision <= compacted {
            self.samples.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn floor_respects_age_and_count() {
        let check = |min_revisions, at_secs: u64, expected| {
            let start = Instant::now();
            let retention = Retention {
                min_age: second(320),
                min_revisions,
                ..Retention::default()
            };
            let mut horizon = Horizon::new(retention, start, Revision(0));
            for at in 0..=at_secs {
                horizon.count(0);
                horizon.observe(start + second(at), Revision(at));
            }
            let floor = horizon.floor(start + second(at_secs), Revision(at_secs));
            assert_eq!(
                floor,
                Revision(expected),
                "{min_revisions} revisions, {at_secs} s"
            );
            assert!(horizon.samples.len() < 64 + 34);
        };
        check(0, 100, 0);
        check(0, 319, 0);
        check(0, 400, 80);
        check(0, 409, 80);
        check(390, 400, 10);
        check(1_000, 400, 0);
        check(1_000_000, 100_000, 0);
    }

    #[test]
    fn floor_respects_bytes_before_age_and_count() {
        let retention = Retention {
            max_bytes: 64 << 20,
            ..Retention::default()
        };
        let start = Instant::now();
        let mut horizon = Horizon::new(retention, start, Revision(0));
        let mut compacted = Revision(0);
        for revision in 1..=10_000 {
            horizon.count(1 << 20);
            horizon.observe(start, Revision(revision));
            if horizon.is_too_large() {
                compacted = horizon.floor(start, Revision(revision)).max(compacted);
                horizon.forget(compacted);
            }
            let kept = revision - compacted.0;
            assert!(kept <= 66, "{kept} at {revision}");
            assert!(revision < 64 || kept >= 62, "{kept} at {revision}");
        }
        assert!(horizon.samples.len() < 100);
    }

    #[test]
    fn samples_tell_the_age_after_a_restart_too() {
        let retention = Retention {
            min_age: second(300),
            min_revisions: 0,
            ..Retention::default()
        };
        let mut now = Instant::now();
        let mut horizon = Horizon::new(retention, now, Revision(0));
        // Each life of the process is shorter than a step.
        for life in 1..=100 {
            horizon.observe(now, Revision(life));
            now += second(7);
            let known: Vec<Sample> = horizon.samples(now).collect();
            horizon = Horizon::resume(retention, now, known);
        }
        let floor = horizon.floor(now, Revision(100));
        // 300 s are 43 lives; a sample is taken in every second life.
        assert!((54..=57).contains(&floor.0), "{floor}");
    }
}
