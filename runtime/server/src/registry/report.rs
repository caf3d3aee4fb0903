//! What was read from where, and what the watch caches hold: for metrics and for `/readyz`.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use apiloom_meta::GroupResource;
use apiloom_storage::Revision;
use apiloom_storage::cache::{Counts, Fill, Size};

use super::{Endpoint, Registry};

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

/// What one resource did and holds.
#[derive(Clone, Debug)]
pub struct ResourceReport {
    /// Which.
    pub resource: GroupResource,
    /// Its watch cache, if it has one.
    pub cache: Option<CacheReport>,
    /// The lists that the cache answered, by the index that found the objects; `""` for those without one.
    pub cache_lists: Vec<(String, ListCounts)>,
    /// The lists that were read from storage.
    pub storage_lists: ListCounts,
    /// Objects that were sent at the beginning of watches.
    pub initial_events: u64,
}

/// What a watch cache did and holds.
#[derive(Clone, Debug)]
pub struct CacheReport {
    /// How much it holds.
    pub size: Size,
    /// What it did.
    pub counts: Counts,
    /// How far it has come.
    pub revision: Revision,
    /// Whether it is filled.
    pub fill: Fill,
}

impl Registry {
    /// A report for every served resource, once for all its versions.
    pub fn report(&self) -> Vec<ResourceReport> {
        let mut reported = HashSet::new();
        let mut reports = Vec::new();
        for endpoint in &self.endpoints {
            if reported.insert(&endpoint.kind.resource) {
                reports.push(endpoint.resource_report());
            }
        }
        reports
    }

    /// Why the server should not be sent requests yet, one line for each resource whose watch cache is not filled.
    pub fn not_filled(&self) -> Vec<String> {
        let lines =
            self.caches
                .iter()
                .filter_map(|(resource, cache)| match &*cache.fill().borrow() {
                    Fill::Following | Fill::Behind(_) => None,
                    Fill::Pending { error: None, .. } => Some(format!("{resource} is being read")),
                    Fill::Pending {
                        error: Some(error), ..
                    } => Some(format!("{resource} is being read: {error}")),
                });
        lines.collect()
    }
}

impl Endpoint {
    fn resource_report(&self) -> ResourceReport {
        let reads = &self.kind.reads;
        let stored = &self.kind.versions[self.kind.storage_version];
        let fields = stored.def.selectable.iter();
        // As upstream writes the index of a field.
        let names = std::iter::once(String::new())
            .chain(fields.map(|path| format!("f:{}", path.as_field())));
        ResourceReport {
            resource: self.kind.resource.clone(),
            cache: self.cache.as_ref().map(|cache| CacheReport {
                size: cache.size(),
                counts: cache.counts(),
                revision: cache.snapshot().revision(),
                fill: cache.fill().borrow().clone(),
            }),
            cache_lists: names.zip(reads.cached.iter().map(Lists::counts)).collect(),
            storage_lists: reads.stored.counts(),
            initial_events: reads.initial_events.load(Ordering::Relaxed),
        }
    }
}

/// Counts reads of one kind.
#[derive(Debug)]
pub(super) struct ReadCounts {
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
    pub(super) fn new(indexes: usize) -> Self {
        Self {
            cached: (0..=indexes).map(|_| Lists::default()).collect(),
            stored: Lists::default(),
            initial_events: AtomicU64::new(0),
        }
    }

    /// A list was answered from the cache.
    pub(super) fn cached(&self, index: Option<u16>, fetched: usize, returned: usize) {
        let place = index.map_or(0, |index| usize::from(index) + 1);
        if let Some(lists) = self.cached.get(place) {
            lists.add(fetched, returned);
        }
    }

    /// A list was answered from storage.
    pub(super) fn stored(&self, fetched: usize, returned: usize) {
        self.stored.add(fetched, returned);
    }

    /// An object was looked at for the beginning of a watch.
    pub(super) fn initial_event(&self) {
        self.initial_events.fetch_add(1, Ordering::Relaxed);
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
