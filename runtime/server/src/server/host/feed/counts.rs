//! What a feed counts: the metrics of an informer of the client crate.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use apiloom_client::cache::InformerMetrics;
use apiloom_client::metrics::{Collect, Registry, Samples};
use parking_lot::Mutex;
use tokio::time::Instant;

/// The counts of a feed.
#[derive(Debug, Default)]
pub struct Counts {
    name: String,
    objects: AtomicUsize,
    lists: AtomicU64,
    watches: AtomicU64,
    failures: AtomicU64,
    /// When the watch last reported anything.
    updated: Mutex<Option<Instant>>,
}

impl Counts {
    /// Adds them to a registry, with this value of the label `name`, as long as they exist.
    pub fn register(registry: &Registry, name: String) -> Arc<Self> {
        let counts = Arc::new(Self {
            name,
            ..Self::default()
        });
        registry.register(Collector(Arc::downgrade(&counts)));
        counts
    }

    pub(super) fn count_watch(&self) {
        self.watches.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn set_updated(&self) {
        *self.updated.lock() = Some(Instant::now());
    }

    /// All objects were reported.
    pub(super) fn count_list(&self, objects: usize) {
        self.lists.fetch_add(1, Ordering::Relaxed);
        self.objects.store(objects, Ordering::Relaxed);
    }

    pub(super) fn count_new(&self) {
        self.objects.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_deleted(&self) {
        let one_less = |objects: usize| objects.checked_sub(1);
        let order = Ordering::Relaxed;
        // An object that was not listed may be deleted.
        let _ = self.objects.fetch_update(order, order, one_less);
    }

    fn metrics(&self) -> InformerMetrics {
        let updated = *self.updated.lock();
        InformerMetrics {
            objects: self.objects.load(Ordering::Relaxed),
            lists: self.lists.load(Ordering::Relaxed),
            watches: self.watches.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
            update_age: updated.map(|updated| updated.elapsed()),
            ..InformerMetrics::default()
        }
    }
}

/// Reports the counts of a feed without keeping them.
struct Collector(Weak<Counts>);

impl Collect for Collector {
    fn collect(&self, samples: &mut Samples) {
        if let Some(counts) = self.0.upgrade() {
            counts.metrics().collect(samples, &counts.name);
        }
    }
    fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}
