//! Families with labels that clients can make up: the kinds of their definitions, which come and go.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use prometheus_client::metrics::family::{Family, MetricConstructor};

use crate::memory;

/// Limit for the number of series of a family, more than a few hundred kinds need.
const MAX_SERIES: usize = 10_000;

/// The memory of a series of the largest family, and of its lines in a scrape.
const SERIES_BYTES: usize = 8 * 1024;

/// All series of a family have no more than one of so many parts of the memory of the process.
const PARTS_OF_MEMORY: u64 = 32;

/// The limit for the number of series of a family in this process.
pub(super) fn max_series() -> usize {
    memory::share(PARTS_OF_MEMORY, MAX_SERIES * SERIES_BYTES) / SERIES_BYTES
}

/// Labels of a [`BoundedFamily`].
pub(super) trait Labels: Clone + Eq + Hash {
    /// The labels of all further series, for one with these labels. There are few of them.
    fn other(&self) -> Self;
}

/// A family with a limit for its series. Further labels are counted together.
pub(super) struct BoundedFamily<L, M, C = fn() -> M> {
    family: Family<L, M, C>,
    /// How many series there may be beside those that there are.
    room: Arc<AtomicUsize>,
}

impl<L, M, C> BoundedFamily<L, M, C> {
    pub(super) fn new(family: Family<L, M, C>, max_series: usize) -> Self {
        Self {
            family,
            room: Arc::new(AtomicUsize::new(max_series)),
        }
    }
}

impl<L: Labels, M: Clone, C: MetricConstructor<M>> BoundedFamily<L, M, C> {
    /// The metric of these labels, or the one of all further labels.
    pub(super) fn metric(&self, labels: &L) -> M {
        self.within_room(labels)
            .unwrap_or_else(|| self.family.get_or_create_owned(&labels.other()))
    }
}

impl<L: Clone + Eq + Hash, M: Clone, C: MetricConstructor<M>> BoundedFamily<L, M, C> {
    /// The metric of these labels, which is made if there is room for it.
    pub(super) fn within_room(&self, labels: &L) -> Option<M> {
        if let Some(metric) = self.family.get(labels) {
            return Some(metric.clone());
        }
        // Another thread may make the same series at this time; then its room is lost.
        let take = |room: usize| room.checked_sub(1);
        let taken = self
            .room
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken
            .is_ok()
            .then(|| self.family.get_or_create_owned(labels))
    }

    /// Removes the series of these labels, if there is one.
    pub(super) fn remove(&self, labels: &L) {
        if self.family.remove(labels) {
            self.room.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<L, M, C: Clone> Clone for BoundedFamily<L, M, C> {
    fn clone(&self) -> Self {
        Self {
            family: self.family.clone(),
            room: Arc::clone(&self.room),
        }
    }
}

impl<L, M, C> fmt::Debug for BoundedFamily<L, M, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundedFamily")
            .field("room", &self.room)
            .finish_non_exhaustive()
    }
}
