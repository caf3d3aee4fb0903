//! Reports on reads and watch caches, for metrics and `/readyz`.

use std::collections::HashSet;
use std::time::Duration;

use apiloom_meta::GroupResource;
use apiloom_storage::Revision;
use apiloom_storage::cache::{Counts, Fill, Size};

use super::resources::Registry;
use crate::endpoint::Endpoint;
use crate::objects::read_counts::ListCounts;

/// Counters of one resource's reads, and its watch cache.
#[derive(Clone, Debug)]
pub struct ResourceReport {
    /// Group and plural name.
    pub resource: GroupResource,
    /// The watch cache; `None` if there is none.
    pub cache: Option<CacheReport>,
    /// Lists from the cache, by the index that was used; `""` for those without an index.
    pub cache_lists: Vec<(String, ListCounts)>,
    /// Lists from the store.
    pub storage_lists: ListCounts,
    /// Number of objects sent as initial events of watches.
    pub initial_events: u64,
}

/// State and counters of a watch cache.
#[derive(Clone, Debug)]
pub struct CacheReport {
    /// Number and size of its objects and changes.
    pub size: Size,
    /// Counters since its start.
    pub counts: Counts,
    /// Its revision.
    pub revision: Revision,
    /// Whether it is filled; if not, why and for how long.
    pub fill: Fill,
}

impl Registry {
    /// Reports on all served resources, once for all versions of each.
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

    /// Drops the history of the watch caches up to a revision, once they have reached it, so that watches which resume
    /// before it are refused as expired. A cache that does not reach it within a second drops what it has. For tests: the
    /// store must be compacted first.
    pub async fn forget_history(&self, revision: Revision) {
        for (_, cache) in self.catalog().caches() {
            cache.cache.reach(revision, Duration::from_secs(1)).await;
            cache.cache.forget(revision);
        }
    }

    /// Why the server is not ready: one line for each resource whose watch cache is not filled.
    pub fn not_filled(&self) -> Vec<String> {
        let catalog = self.catalog();
        let lines = catalog
            .caches()
            .filter_map(|(resource, cache)| match cache.cache.fill() {
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
    let stored = resource.kind.versions.stored_version();
    let fields = stored.def.selectable.iter();
    // Name of an index as in the metrics of kube-apiserver.
    let names =
        std::iter::once(String::new()).chain(fields.map(|field| format!("f:{}", field.name)));
    ResourceReport {
        resource: resource.kind.resource.clone(),
        cache: resource.cache.as_ref().map(|cache| CacheReport {
            size: cache.size(),
            counts: cache.counts(),
            revision: cache.snapshot().revision(),
            fill: cache.fill(),
        }),
        cache_lists: names.zip(reads.cache_lists()).collect(),
        storage_lists: reads.storage_lists(),
        initial_events: reads.initial_events(),
    }
}
