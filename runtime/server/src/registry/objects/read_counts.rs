//! Counts what was read of one kind, from where.

use std::sync::atomic::{AtomicU64, Ordering};

/// What lists of one resource cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListCounts {
    /// How many there were.
    pub lists: u64,
    /// How many objects were looked at for them.
    pub fetched: u64,
    /// How many objects they had.
    pub returned: u64,
}

/// Counts reads of one kind.
#[derive(Debug)]
pub(crate) struct ReadCounts {
    /// Without an index first, then by the number of the index.
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
    /// Of a kind with so many indexes.
    pub(crate) fn new(indexes: usize) -> Self {
        Self {
            cached: (0..=indexes).map(|_| Lists::default()).collect(),
            stored: Lists::default(),
            initial_events: AtomicU64::new(0),
        }
    }

    /// A list was answered from the cache.
    pub(crate) fn cached(&self, index: Option<u16>, fetched: usize, returned: usize) {
        let place = index.map_or(0, |index| usize::from(index) + 1);
        if let Some(lists) = self.cached.get(place) {
            lists.add(fetched, returned);
        }
    }

    /// A list was answered from storage.
    pub(crate) fn stored(&self, fetched: usize, returned: usize) {
        self.stored.add(fetched, returned);
    }

    /// An object was looked at for the beginning of a watch.
    pub(crate) fn initial_event(&self) {
        self.initial_events.fetch_add(1, Ordering::Relaxed);
    }

    /// The lists that the cache answered: without an index first, then by the number of the index.
    pub(crate) fn cache_lists(&self) -> impl Iterator<Item = ListCounts> {
        self.cached.iter().map(Lists::counts)
    }

    /// The lists that storage answered.
    pub(crate) fn storage_lists(&self) -> ListCounts {
        self.stored.counts()
    }

    /// The objects that were looked at for the beginnings of watches.
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
