//! The metrics of a work queue, with the names and buckets of client-go.

use std::time::Duration;

use crate::metrics::{DurationHistogram, Samples};

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
    /// Reports the metrics, with the label `name`.
    pub fn collect(&self, samples: &mut Samples, name: &str) {
        let labels = [("name", name)];
        samples.gauge(
            "workqueue_depth",
            "Keys that wait for a worker.",
            &labels,
            self.depth as f64,
        );
        samples.counter(
            "workqueue_adds_total",
            "How often a key became ready for a worker.",
            &labels,
            self.adds,
        );
        samples.counter(
            "workqueue_retries_total",
            "How often a key was queued again because its attempt failed.",
            &labels,
            self.retries,
        );
        samples.gauge(
            "workqueue_unfinished_work_seconds",
            "The sum of the times for which workers have had the keys that they have now.",
            &labels,
            self.unfinished_work.as_secs_f64(),
        );
        samples.largest(
            "workqueue_longest_running_processor_seconds",
            "The longest of these times.",
            &labels,
            self.longest_running.as_secs_f64(),
        );
        samples.histogram(
            "workqueue_queue_duration_seconds",
            "How long keys waited for a worker once they were ready.",
            &labels,
            &self.queue_duration,
        );
        samples.histogram(
            "workqueue_work_duration_seconds",
            "How long workers had keys.",
            &labels,
            &self.work_duration,
        );
    }
}
