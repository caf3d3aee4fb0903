//! The memory limit of the caches' histories.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum changes in a window, regardless of their size: kube-apiserver's limit.
const MOST_CHANGES: usize = 102_400;

/// The memory limit in bytes for the histories of all caches together. A history over its share is trimmed first, so
/// that a busy resource does not shrink the windows of the others.
#[derive(Debug)]
pub struct Budget {
    used: AtomicUsize,
    most: usize,
    histories: AtomicUsize,
}

impl Budget {
    /// The default limit for all histories of a server: 64 MiB.
    pub const DEFAULT_BYTES: usize = 64 << 20;

    /// Creates a budget of `bytes` bytes.
    pub fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            used: AtomicUsize::new(0),
            most: bytes,
            histories: AtomicUsize::new(0),
        })
    }

    /// The bytes in use by all histories.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether more is in use than the limit.
    pub(super) fn is_exceeded(&self) -> bool {
        self.used() > self.most
    }

    /// Whether a history that holds this many bytes must release some.
    pub(super) fn wants_back_from(&self, bytes: usize) -> bool {
        let histories = self.histories.load(Ordering::Relaxed).max(1);
        self.is_exceeded() && bytes > self.most / histories
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

/// The limits of one cache's history.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The limit in bytes, shared with other caches.
    pub budget: Arc<Budget>,
    /// Maximum changes in this history; the newest one is always kept.
    pub most_changes: usize,
}

impl From<Arc<Budget>> for Limits {
    /// Limits the history to the budget and to kube-apiserver's maximum number of changes.
    fn from(budget: Arc<Budget>) -> Self {
        Self {
            budget,
            most_changes: MOST_CHANGES,
        }
    }
}
