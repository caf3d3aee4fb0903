//! How many objects are stored, for whoever watches the server.

use std::collections::HashSet;

use apiloom_meta::GroupResource;
use apiloom_storage::StorageError;

use super::Registry;

impl Registry {
    /// The number of objects of every served resource, once for all its versions, or why it is not known. Asks the store.
    pub async fn count_objects(&self) -> Vec<(GroupResource, Result<u64, StorageError>)> {
        let mut counted = HashSet::new();
        let mut counts = Vec::new();
        for endpoint in &self.endpoints {
            let kind = &endpoint.kind;
            if counted.insert(&kind.resource) {
                let count = kind.store.count(&kind.prefix(None)).await;
                counts.push((kind.resource.clone(), count));
            }
        }
        counts
    }
}
