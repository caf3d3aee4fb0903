//! What was read from where, and what the watch caches hold: for metrics and for `/readyz`.

use std::collections::HashSet;

use apiloom_meta::GroupResource;
use apiloom_storage::Revision;
use apiloom_storage::cache::{Counts, Fill, Size};

use super::resources::Registry;
use crate::registry::endpoint::Endpoint;
use crate::registry::objects::read_counts::ListCounts;

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
        let catalog = self.catalog();
        for endpoint in catalog.endpoints() {
            if reported.insert(&endpoint.resource().kind.resource) {
                reports.push(report_of(endpoint));
            }
        }
        reports
    }

    /// Why the server should not be sent requests yet, one line for each resource whose watch cache is not filled.
    pub fn not_filled(&self) -> Vec<String> {
        let catalog = self.catalog();
        let lines =
            catalog
                .caches()
                .filter_map(|(resource, cache)| match &*cache.cache.fill().borrow() {
                    Fill::Following | Fill::Behind(_) => None,
                    Fill::Pending { error: None, .. } => Some(format!("{resource} is being read")),
                    Fill::Pending {
                        error: Some(error), ..
                    } => Some(format!("{resource} is being read: {error}")),
                });
        lines.collect()
    }
}

fn report_of(endpoint: &Endpoint) -> ResourceReport {
    let resource = endpoint.resource();
    let reads = &resource.kind.reads;
    let stored = &resource.kind.versions[resource.kind.storage_version];
    let fields = stored.def.selectable.iter();
    // As upstream writes the index of a field.
    let names =
        std::iter::once(String::new()).chain(fields.map(|path| format!("f:{}", path.as_field())));
    ResourceReport {
        resource: resource.kind.resource.clone(),
        cache: resource.cache.as_ref().map(|cache| CacheReport {
            size: cache.size(),
            counts: cache.counts(),
            revision: cache.snapshot().revision(),
            fill: cache.fill().borrow().clone(),
        }),
        cache_lists: names.zip(reads.cache_lists()).collect(),
        storage_lists: reads.storage_lists(),
        initial_events: reads.initial_events(),
    }
}
