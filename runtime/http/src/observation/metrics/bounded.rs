//! Families with labels that clients can make up: the kinds of their definitions, which come and go.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use prometheus_client::metrics::family::{Family, MetricConstructor};

use apiloom_registry::memory;

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

/// Names and values of labels.
pub(super) type LabelSet<const N: usize> = [(&'static str, Cow<'static, str>); N];

/// The labels of all further series, for one with these labels. There are few of them: the verb, or else the first label, is
/// `other`, and only labels that the server itself makes keep their values.
fn other<const N: usize>(labels: &LabelSet<N>) -> LabelSet<N> {
    const KEPT: [&str; 3] = ["code", "component", "succeeded"];
    let verb = labels.iter().position(|(name, _)| *name == "verb");
    std::array::from_fn(|at| match &labels[at] {
        (name, value) if KEPT.contains(name) => (*name, value.clone()),
        (name, _) if at == verb.unwrap_or(0) => (*name, "other".into()),
        (name, _) => (*name, "".into()),
    })
}

/// A family with a limit for its series. Further labels are counted together.
pub(super) struct BoundedFamily<const N: usize, M, C = fn() -> M> {
    family: Family<LabelSet<N>, M, C>,
    /// How many series there may be beside those that there are.
    room: Arc<AtomicUsize>,
}

impl<const N: usize, M, C> BoundedFamily<N, M, C> {
    pub(super) fn new(family: Family<LabelSet<N>, M, C>, max_series: usize) -> Self {
        Self {
            family,
            room: Arc::new(AtomicUsize::new(max_series)),
        }
    }
}

impl<const N: usize, M: Clone, C: MetricConstructor<M>> BoundedFamily<N, M, C> {
    /// The metric of these labels, or the one of all further labels.
    pub(super) fn metric(&self, labels: &LabelSet<N>) -> M {
        self.within_room(labels)
            .unwrap_or_else(|| self.family.get_or_create_owned(&other(labels)))
    }

    /// The metric of these labels, which is made if there is room for it.
    pub(super) fn within_room(&self, labels: &LabelSet<N>) -> Option<M> {
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
    pub(super) fn remove(&self, labels: &LabelSet<N>) {
        if self.family.remove(labels) {
            self.room.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<const N: usize, M, C: Clone> Clone for BoundedFamily<N, M, C> {
    fn clone(&self) -> Self {
        Self {
            family: self.family.clone(),
            room: Arc::clone(&self.room),
        }
    }
}

impl<const N: usize, M, C> fmt::Debug for BoundedFamily<N, M, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundedFamily")
            .field("room", &self.room)
            .finish_non_exhaustive()
    }
}
