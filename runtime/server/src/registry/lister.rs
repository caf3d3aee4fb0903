//! All objects of one kind, typed and in memory, for admission plugins and strategies.

use std::marker::PhantomData;
use std::sync::Arc;

use apiloom_meta::{ApiError, Resource};

/// The objects of a kind, kept in memory by a watch on the store. Cheap to clone.
pub struct Lister<K> {
    _kind: PhantomData<fn() -> K>,
}

impl<K: Resource> Lister<K> {
    /// Every object, as new as the last write that was acknowledged before the call. Reads no storage: it waits for the
    /// watch to catch up, which takes microseconds.
    ///
    /// # Errors
    /// When the watch is broken and does not come back in time.
    pub async fn list(&self) -> Result<Vec<Arc<K>>, ApiError> {
        todo!()
    }
    /// One object; `namespace` is empty for cluster-scoped kinds.
    ///
    /// # Errors
    /// As [`Lister::list`].
    pub async fn get(&self, _namespace: &str, _name: &str) -> Result<Option<Arc<K>>, ApiError> {
        todo!()
    }
}
