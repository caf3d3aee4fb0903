//! Counts of stored objects and sizes of stores, for metrics.

use std::collections::HashSet;
use std::sync::Arc;

use apiloom_meta::GroupResource;
use apiloom_storage::{Storage, StorageError};

use crate::catalog::resources::Registry;

impl Registry {
    /// Size of each store in bytes, the store with most resources first; stores that do not report a size are omitted.
    pub async fn store_sizes(&self) -> Vec<Result<u64, StorageError>> {
        let mut stores: Vec<&Arc<dyn Storage>> = Vec::new();
        let catalog = self.catalog();
        for endpoint in catalog.endpoints() {
            let store = &endpoint.resource().kind.store;
            if !stores.iter().any(|known| Arc::ptr_eq(known, store)) {
                stores.push(store);
            }
        }
        let mut sizes = Vec::new();
        for store in stores {
            sizes.extend(store.size_bytes().await.transpose());
        }
        sizes
    }

    /// The number of stored objects of every served resource, once for all its versions; an error if the store cannot
    /// be read.
    pub async fn count_objects(&self) -> Vec<(GroupResource, Result<u64, StorageError>)> {
        let mut counted = HashSet::new();
        let mut counts = Vec::new();
        let catalog = self.catalog();
        for endpoint in catalog.endpoints() {
            let kind = &endpoint.resource().kind;
            if kind.has_store() && counted.insert(&kind.resource) {
                let count = kind.store.count(kind.keys.of_all()).await;
                counts.push((kind.resource.clone(), count));
            }
        }
        counts
    }
}
