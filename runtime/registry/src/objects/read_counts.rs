//! Counters of the reads of a kind, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of the lists of one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListCounts {
    /// Number of lists.
    pub lists: u64,
    /// Objects read for them.
    pub fetched: u64,
    /// Objects returned by them.
    pub returned: u64,
}

/// Counters of the reads of one kind.
#[derive(Debug)]
pub(crate) struct ReadCounts {
    /// Lists from the cache: those without an index first, then by the number of the index.
    cached: Box<[Lists]>,
    stored: Lists,
    initial_events: AtomicU64,
}

#[derive(Debug, Default)]
struct Lists {
    lists: AtomicU64,
    fetched: AtomicU64,
    returned: AtomicU64,
}

impl ReadCounts {
    /// Counters for a kind with so many indexes.
    pub(crate) fn new(indexes: usize) -> Self {
        Self {
            cached: (0..=indexes).map(|_| Lists::default()).collect(),
            stored: Lists::default(),
            initial_events: AtomicU64::new(0),
        }
    }

    /// Counts a list from the cache.
    pub(crate) fn cached(&self, index: Option<u16>, fetched: usize, returned: usize) {
        let place = index.map_or(0, |index| usize::from(index) + 1);
        if let Some(lists) = self.cached.get(place) {
            lists.add(fetched, returned);
        }
    }

    /// Counts a list from the store.
    pub(crate) fn stored(&self, fetched: usize, returned: usize) {
        self.stored.add(fetched, returned);
    }

    /// Counts an object read for the initial events of a watch.
    pub(crate) fn initial_event(&self) {
        self.initial_events.fetch_add(1, Ordering::Relaxed);
    }

    /// Lists from the cache: those without an index first, then by the number of the index.
    pub(crate) fn cache_lists(&self) -> impl Iterator<Item = ListCounts> {
        self.cached.iter().map(Lists::counts)
    }

    /// Lists from the store.
    pub(crate) fn storage_lists(&self) -> ListCounts {
        self.stored.counts()
    }

    /// Objects read for the initial events of watches.
    pub(crate) fn initial_events(&self) -> u64 {
        self.initial_events.load(Ordering::Relaxed)
    }
}

impl Lists {
    fn add(&self, fetched: usize, returned: usize) {
        self.lists.fetch_add(1, Ordering::Relaxed);
        self.fetched.fetch_add(fetched as u64, Ordering::Relaxed);
        self.returned.fetch_add(returned as u64, Ordering::Relaxed);
    }

    fn counts(&self) -> ListCounts {
        ListCounts {
            lists: self.lists.load(Ordering::Relaxed),
            fetched: self.fetched.load(Ordering::Relaxed),
            returned: self.returned.load(Ordering::Relaxed),
        }
    }
}
