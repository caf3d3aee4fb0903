//! How much of the past caches may keep.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// No window holds more changes, whatever their size: upstream's bound.
const MOST_CHANGES: usize = 102_400;

/// How many bytes the histories of all caches may keep alive together. One that keeps more than its share gives first, so
/// that a busy resource does not take the window of the others.
#[derive(Debug)]
pub struct Budget {
    used: AtomicUsize,
    most: usize,
    histories: AtomicUsize,
}

impl Budget {
    /// 64 MiB for the histories of a server.
    pub const DEFAULT_BYTES: usize = 64 << 20;

    /// A budget of so many bytes.
    pub fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            used: AtomicUsize::new(0),
            most: bytes,
            histories: AtomicUsize::new(0),
        })
    }

    /// How many bytes are used.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether a history that keeps so many bytes has to give some.
    pub(super) fn wants_back_from(&self, bytes: usize) -> bool {
        let histories = self.histories.load(Ordering::Relaxed).max(1);
        self.used() > self.most && bytes > self.most / histories
    }

    pub(super) fn join(&self) {
        self.histories.fetch_add(1, Ordering::Relaxed);
    }
    pub(super) fn leave(&self) {
        self.histories.fetch_sub(1, Ordering::Relaxed);
    }
    pub(super) fn take(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }
    pub(super) fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// What bounds the history of one cache.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Its bytes, together with those of other caches.
    pub budget: Arc<Budget>,
    /// Its changes; at least one is kept.
    pub most_changes: usize,
}

impl From<Arc<Budget>> for Limits {
    /// Bounded by the budget, and by as many changes as upstream keeps at most.
    fn from(budget: Arc<Budget>) -> Self {
        Self {
            budget,
            most_changes: MOST_CHANGES,
        }
    }
}
