//! What is recorded and what is lost, for `/metrics`. The names and labels are those of kube-apiserver.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use apiloom_client::metrics::{Collect, Samples};
use apiloom_registry::audit::AuditLevel;

/// What can lose an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// A queue that is full.
    Queue,
    /// The file.
    Log,
    /// The webhook.
    Webhook,
    /// The bound of an event.
    Size,
}

impl Loss {
    const ALL: [Self; 4] = [Self::Queue, Self::Log, Self::Webhook, Self::Size];

    /// Its name as a plugin of kube-apiserver.
    pub(super) fn plugin(self) -> &'static str {
        match self {
            Self::Queue => "buffered",
            Self::Log => "log",
            Self::Webhook => "webhook",
            Self::Size => "truncate",
        }
    }
}

/// Counts of events and requests. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct AuditMetrics(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    events: AtomicU64,
    rejected: AtomicU64,
    levels: [AtomicU64; AuditLevel::ALL.len()],
    lost: [AtomicU64; Loss::ALL.len()],
}

impl AuditMetrics {
    /// Counts an event.
    pub(super) fn event(&self) {
        self.0.events.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that is refused because it cannot be recorded.
    pub(super) fn rejected(&self) {
        self.0.rejected.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request for which the policy has this level.
    pub(super) fn request(&self, level: AuditLevel) {
        self.0.levels[level as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts events that are lost.
    pub(super) fn lost(&self, loss: Loss, events: usize) {
        self.0.lost[loss as usize].fetch_add(events as u64, Ordering::Relaxed);
    }
}

impl Collect for AuditMetrics {
    fn collect(&self, samples: &mut Samples) {
        let value = |count: &AtomicU64| count.load(Ordering::Relaxed);
        samples.counter(
            "apiserver_audit_event_total",
            "Audit events that were made for the backends",
            &[],
            value(&self.0.events),
        );
        samples.counter(
            "apiserver_audit_requests_rejected_total",
            "Requests that were refused because they could not be recorded",
            &[],
            value(&self.0.rejected),
        );
        for level in AuditLevel::ALL {
            samples.counter(
                "apiserver_audit_level_total",
                "Requests by the level that the audit policy has for them",
                &[("level", level.as_str())],
                value(&self.0.levels[level as usize]),
            );
        }
        for loss in Loss::ALL {
            let count = value(&self.0.lost[loss as usize]);
            if count > 0 {
                samples.counter(
                    "apiserver_audit_error_total",
                    "Audit events that were lost, by what lost them",
                    &[("plugin", loss.plugin())],
                    count,
                );
            }
        }
    }
}
