//! The metrics of a controller, with the names of controller-runtime.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::super::queue::DurationHistogram;

/// How a call of a reconcile function ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallResult {
    Success,
    RequeueAfter,
    Error,
    TerminalError,
    Panic,
    /// The call took too long, or the controller stopped.
    Dropped,
}

/// The metrics of a controller at one point in time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerMetrics {
    /// Calls that returned [`Done`](super::Action::Done).
    pub successes: u64,
    /// Calls that asked for another call.
    pub requeues: u64,
    /// Calls that returned an error, and those that panicked or took too long.
    pub errors: u64,
    /// Calls that returned a terminal error; they are among `errors`.
    pub terminal_errors: u64,
    /// Calls that panicked; they are among `errors`.
    pub panics: u64,
    /// Calls that go on.
    pub active: usize,
    /// The number of workers.
    pub workers: usize,
    /// How long calls took.
    pub duration: DurationHistogram,
}

impl ControllerMetrics {
    /// Writes the metrics in Prometheus' text format, with the label `controller`, which must not have quotes,
    /// backslashes or line ends.
    ///
    /// # Errors
    ///
    /// Fails if the writer does; a `String` never does.
    pub fn write(&self, out: &mut impl fmt::Write, name: &str) -> fmt::Result {
        let labels = format!("controller=\"{name}\"");
        let metric = "controller_runtime_reconcile_total";
        writeln!(out, "# TYPE {metric} counter")?;
        for (result, value) in [
            ("success", self.successes),
            ("requeue_after", self.requeues),
            ("error", self.errors),
        ] {
            writeln!(out, "{metric}{{{labels},result=\"{result}\"}} {value}")?;
        }
        let counters = [("errors", self.errors), ("panics", self.panics)];
        for (what, value) in counters {
            let metric = format!("controller_runtime_reconcile_{what}_total");
            writeln!(out, "# TYPE {metric} counter\n{metric}{{{labels}}} {value}")?;
        }
        let metric = "controller_runtime_terminal_reconcile_errors_total";
        let value = self.terminal_errors;
        writeln!(out, "# TYPE {metric} counter\n{metric}{{{labels}}} {value}")?;
        let gauges = [
            ("active_workers", self.active),
            ("max_concurrent_reconciles", self.workers),
        ];
        for (what, value) in gauges {
            let metric = format!("controller_runtime_{what}");
            writeln!(out, "# TYPE {metric} gauge\n{metric}{{{labels}}} {value}")?;
        }
        let metric = "controller_runtime_reconcile_time_seconds";
        writeln!(out, "# TYPE {metric} histogram")?;
        self.duration.write(out, metric, &labels)
    }
}

/// Counts calls.
#[derive(Debug, Default)]
pub(super) struct Recorded(Mutex<ControllerMetrics>);

impl Recorded {
    pub(super) fn new(workers: usize) -> Self {
        Self(Mutex::new(ControllerMetrics {
            workers,
            ..ControllerMetrics::default()
        }))
    }

    fn update(&self, change: impl FnOnce(&mut ControllerMetrics)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn begin(&self) {
        self.update(|metrics| metrics.active += 1);
    }

    pub(super) fn end(&self, result: CallResult, duration: Duration) {
        self.update(|metrics| {
            metrics.active -= 1;
            metrics.duration.observe(duration);
            match result {
                CallResult::Success => metrics.successes += 1,
                CallResult::RequeueAfter => metrics.requeues += 1,
                CallResult::Error | CallResult::Dropped => metrics.errors += 1,
                CallResult::TerminalError => {
                    metrics.errors += 1;
                    metrics.terminal_errors += 1;
                }
                CallResult::Panic => {
                    metrics.errors += 1;
                    metrics.panics += 1;
                }
            }
        });
    }

    pub(super) fn get(&self) -> ControllerMetrics {
        let metrics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        metrics.clone()
    }
}
