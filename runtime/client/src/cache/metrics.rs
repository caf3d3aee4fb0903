//! The metrics of an informer: what it has, what it asked the server for, and how its subscribers are doing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::subscriber::SubscriberMetrics;
use crate::metrics::Samples;

/// The metrics of an informer at one point in time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InformerMetrics {
    /// The number of objects.
    pub objects: usize,
    /// How often the complete state was read, also the first time.
    pub lists: u64,
    /// How many watches were opened, also those that begin with the state.
    pub watches: u64,
    /// How many requests failed, and watches broke.
    pub failures: u64,
    /// How long ago the server last sent anything: servers send bookmarks every minute. `None` before the first state.
    pub update_age: Option<Duration>,
    /// The subscribers and handlers, in the order in which they joined.
    pub subscribers: Vec<SubscriberMetrics>,
}

/// Counts what a reflector does.
#[derive(Debug, Default)]
pub(super) struct Counts {
    lists: AtomicU64,
    watches: AtomicU64,
    failures: AtomicU64,
    updated: Mutex<Option<Instant>>,
}

impl Counts {
    pub(super) fn count_list(&self) {
        self.lists.fetch_add(1, Ordering::Relaxed);
        self.set_updated();
    }
    pub(super) fn count_watch(&self) {
        self.watches.fetch_add(1, Ordering::Relaxed);
    }
    pub(super) fn count_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }
    /// The server has sent something.
    pub(super) fn set_updated(&self) {
        *self.updated.lock() = Some(Instant::now());
    }
    /// The metrics, without what only the hub knows.
    pub(super) fn get(&self) -> InformerMetrics {
        let updated = *self.updated.lock();
        InformerMetrics {
            lists: self.lists.load(Ordering::Relaxed),
            watches: self.watches.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            update_age: updated.map(|updated| updated.elapsed()),
            ..InformerMetrics::default()
        }
    }
}

impl InformerMetrics {
    /// Reports the metrics, with the label `name`, and of subscribers the label `subscriber`.
    pub fn collect(&self, samples: &mut Samples, name: &str) {
        let labels = [("name", name)];
        samples.gauge(
            "apiloom_informer_objects",
            "Objects in the cache.",
            &labels,
            self.objects as f64,
        );
        samples.counter(
            "apiloom_informer_lists_total",
            "How often the complete state was read.",
            &labels,
            self.lists,
        );
        samples.counter(
            "apiloom_informer_watches_total",
            "Watches that were opened.",
            &labels,
            self.watches,
        );
        samples.counter(
            "apiloom_informer_failures_total",
            "Requests that failed, and watches that broke.",
            &labels,
            self.failures,
        );
        if let Some(age) = self.update_age {
            samples.largest(
                "apiloom_informer_update_age_seconds",
                "How long ago the server last sent anything.",
                &labels,
                age.as_secs_f64(),
            );
        }
        for subscriber in &self.subscribers {
            let labels = [("name", name), ("subscriber", &subscriber.name)];
            samples.gauge(
                "apiloom_informer_subscriber_waiting",
                "Events that wait for a subscriber.",
                &labels,
                subscriber.waiting as f64,
            );
            samples.largest(
                "apiloom_informer_subscriber_oldest_seconds",
                "How long the oldest of them has waited.",
                &labels,
                subscriber.oldest.as_secs_f64(),
            );
            samples.counter(
                "apiloom_informer_subscriber_delivered_total",
                "Events that a subscriber got.",
                &labels,
                subscriber.delivered,
            );
            samples.counter(
                "apiloom_informer_subscriber_combined_total",
                "Events that a subscriber did not get, because they were combined with later ones.",
                &labels,
                subscriber.combined,
            );
        }
    }
}
