//! The metrics of a controller, with the names of controller-runtime.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::metrics::{DurationHistogram, Samples};

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
    /// Reports the metrics, with the label `controller`.
    pub fn collect(&self, samples: &mut Samples, name: &str) {
        let labels = [("controller", name)];
        for (result, value) in [
            ("success", self.successes),
            ("requeue_after", self.requeues),
            ("error", self.errors),
        ] {
            samples.counter(
                "controller_runtime_reconcile_total",
                "Calls of reconcile functions, by result.",
                &[("controller", name), ("result", result)],
                value,
            );
        }
        samples.counter(
            "controller_runtime_reconcile_errors_total",
            "Calls that failed, panicked or took too long.",
            &labels,
            self.errors,
        );
        samples.counter(
            "controller_runtime_reconcile_panics_total",
            "Calls that panicked.",
            &labels,
            self.panics,
        );
        samples.counter(
            "controller_runtime_terminal_reconcile_errors_total",
            "Calls that failed and are not repeated.",
            &labels,
            self.terminal_errors,
        );
        samples.gauge(
            "controller_runtime_active_workers",
            "Calls that go on.",
            &labels,
            self.active as f64,
        );
        samples.gauge(
            "controller_runtime_max_concurrent_reconciles",
            "The number of workers.",
            &labels,
            self.workers as f64,
        );
        samples.histogram(
            "controller_runtime_reconcile_time_seconds",
            "How long calls took.",
            &labels,
            &self.duration,
        );
    }
}

/// Counts calls in the metrics of a controller.
#[derive(Debug, Default)]
pub(super) struct MetricsRecorder(Mutex<ControllerMetrics>);

impl MetricsRecorder {
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
