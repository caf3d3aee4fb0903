//! The metrics of a work queue, with the names and buckets of client-go.

use std::fmt;
use std::time::Duration;

/// The upper bounds of the buckets in nanoseconds: 10 ns to 1000 s.
const BOUNDS: [u64; 12] = [
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
    10_000_000_000,
    100_000_000_000,
    1_000_000_000_000,
];

/// The same bounds in seconds, as the text format shows them.
const LABELS: [&str; 12] = [
    "1e-08", "1e-07", "1e-06", "1e-05", "0.0001", "0.001", "0.01", "0.1", "1", "10", "100", "1000",
];

/// A histogram of durations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DurationHistogram {
    /// The number of durations up to each bound; longer ones are only in `count`.
    buckets: [u64; BOUNDS.len()],
    count: u64,
    sum: Duration,
}

impl DurationHistogram {
    pub(crate) fn observe(&mut self, duration: Duration) {
        let first = BOUNDS.partition_point(|bound| u128::from(*bound) < duration.as_nanos());
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

    /// The series of the histogram in Prometheus' text format. `labels` are written into the braces as they are.
    pub(crate) fn write(
        &self,
        out: &mut impl fmt::Write,
        metric: &str,
        labels: &str,
    ) -> fmt::Result {
        for (label, bucket) in LABELS.iter().zip(self.buckets) {
            writeln!(out, "{metric}_bucket{{{labels},le=\"{label}\"}} {bucket}")?;
        }
        let Self { count, sum, .. } = self;
        writeln!(out, "{metric}_bucket{{{labels},le=\"+Inf\"}} {count}")?;
        writeln!(out, "{metric}_sum{{{labels}}} {}", sum.as_secs_f64())?;
        writeln!(out, "{metric}_count{{{labels}}} {count}")
    }
}

/// The metrics of a work queue at one point in time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueMetrics {
    /// The number of keys that wait for a worker, without delayed ones.
    pub depth: usize,
    /// How often a key became ready for a worker.
    pub adds: u64,
    /// How often a key was queued again because its attempt failed.
    pub retries: u64,
    /// How long keys waited for a worker once they were ready.
    pub queue_duration: DurationHistogram,
    /// How long workers had keys.
    pub work_duration: DurationHistogram,
    /// The sum of the times for which workers have had the keys that they have now.
    pub unfinished_work: Duration,
    /// The longest of these times.
    pub longest_running: Duration,
}

impl QueueMetrics {
    /// Writes the metrics in Prometheus' text format, with the label `name`, which must not have quotes, backslashes
    /// or line ends.
    ///
    /// # Errors
    ///
    /// Fails if the writer does; a `String` never does.
    pub fn write(&self, out: &mut impl fmt::Write, name: &str) -> fmt::Result {
        let labels = format!("name=\"{name}\"");
        let mut single = |metric: &str, kind: &str, value: &dyn fmt::Display| {
            writeln!(out, "# TYPE {metric} {kind}\n{metric}{{{labels}}} {value}")
        };
        single("workqueue_depth", "gauge", &self.depth)?;
        single("workqueue_adds_total", "counter", &self.adds)?;
        single("workqueue_retries_total", "counter", &self.retries)?;
        single(
            "workqueue_unfinished_work_seconds",
            "gauge",
            &self.unfinished_work.as_secs_f64(),
        )?;
        single(
            "workqueue_longest_running_processor_seconds",
            "gauge",
            &self.longest_running.as_secs_f64(),
        )?;
        for (metric, histogram) in [
            ("workqueue_queue_duration_seconds", &self.queue_duration),
            ("workqueue_work_duration_seconds", &self.work_duration),
        ] {
            writeln!(out, "# TYPE {metric} histogram")?;
            histogram.write(out, metric, &labels)?;
        }
        Ok(())
    }
}
