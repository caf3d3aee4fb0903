//! How the webhook answers, for `/metrics`. The names and labels are those of kube-apiserver.

use std::sync::Arc;
use std::time::Duration;

use apiloom_client::metrics::{Bounds, Collect, DurationHistogram, Samples};
use apiloom_server::webhook::WebhookError;
use parking_lot::Mutex;

/// The bounds of calls: 5 ms to 10 s.
static OF_CALLS: Bounds = Bounds(&[
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (25_000_000, "0.025"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (250_000_000, "0.25"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1"),
    (2_500_000_000, "2.5"),
    (5_000_000_000, "5"),
    (10_000_000_000, "10"),
]);

/// The name of the webhook that flags name, as kube-apiserver calls it.
const NAME: &str = "default";

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Success,
    Timeout,
    Error,
}

impl Outcome {
    const ALL: [(Self, &'static str); 3] = [
        (Self::Success, "success"),
        (Self::Timeout, "timeout"),
        (Self::Error, "error"),
    ];

    /// That of a call without an answer.
    pub(super) fn of(error: &WebhookError) -> Self {
        let is_late = error.text.ends_with("deadline exceeded") || error.text.ends_with("in time");
        if is_late || error.code == Some(504) {
            Self::Timeout
        } else {
            Self::Error
        }
    }
}

/// Counts of calls. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct WebhookMetrics(Arc<Mutex<[Counts; Outcome::ALL.len()]>>);

#[derive(Debug)]
struct Counts {
    durations: DurationHistogram,
    calls: u64,
    failed_open: u64,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            durations: DurationHistogram::with_bounds(&OF_CALLS),
            calls: 0,
            failed_open: 0,
        }
    }
}

impl WebhookMetrics {
    /// Counts a call.
    pub(super) fn asked(&self, outcome: Outcome, elapsed: Duration) {
        let counts = &mut self.0.lock()[outcome as usize];
        counts.calls += 1;
        counts.durations.observe(elapsed);
    }

    /// Counts a request that the next authorizer decides, since the webhook did not answer.
    pub(super) fn failed_open(&self, outcome: Outcome) {
        self.0.lock()[outcome as usize].failed_open += 1;
    }
}

impl Collect for WebhookMetrics {
    fn collect(&self, samples: &mut Samples) {
        let counts = self.0.lock();
        let all = || {
            let of = |(outcome, result)| (&counts[outcome as usize], result);
            let all = Outcome::ALL.into_iter().map(of);
            all.filter(|(counts, _)| counts.calls > 0 || counts.failed_open > 0)
        };
        for (counts, result) in all() {
            samples.histogram(
                "apiserver_authorization_webhook_duration_seconds",
                "How long calls of the authorization webhook took",
                &[("name", NAME), ("result", result)],
                &counts.durations,
            );
        }
        for (counts, result) in all() {
            samples.counter(
                "apiserver_authorization_webhook_evaluations_total",
                "Calls of the authorization webhook, by how they ended",
                &[("name", NAME), ("result", result)],
                counts.calls,
            );
        }
        for (counts, result) in all().filter(|(counts, _)| counts.failed_open > 0) {
            samples.counter(
                "apiserver_authorization_webhook_evaluations_fail_open_total",
                "Requests that the next authorizer decided, since the webhook did not answer",
                &[("name", NAME), ("result", result)],
                counts.failed_open,
            );
        }
    }
}
