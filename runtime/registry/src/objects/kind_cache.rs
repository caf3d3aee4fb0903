//! The watch cache of a kind with its task, which runs as long as a catalog or a request uses it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use apiloom_storage::cache::WatchCache;
use tokio::task::AbortHandle;

use super::normalizer::CacheNormalizer;

/// Timeout for waiting until the cache has reached a revision, as in kube-apiserver.
pub(crate) const CATCH_UP: Duration = Duration::from_secs(3);

/// The watch cache of a kind, and the task that applies the changes of the store to it.
#[derive(Clone, Debug)]
pub(crate) struct KindCache {
    pub(crate) cache: Arc<WatchCache<CacheNormalizer>>,
    pub(crate) task: Arc<CacheTask>,
}

impl KindCache {
    pub(crate) fn new(cache: Arc<WatchCache<CacheNormalizer>>) -> Self {
        Self {
            cache,
            task: Arc::default(),
        }
    }
}

/// Handle of a watch cache's task; aborts the task when the last catalog or request that uses the cache drops it.
#[derive(Debug, Default)]
pub(crate) struct CacheTask(OnceLock<AbortHandle>);

impl CacheTask {
    pub(crate) fn started(&self, task: AbortHandle) {
        if let Err(second) = self.0.set(task) {
            second.abort();
        }
    }

    pub(crate) fn is_started(&self) -> bool {
        self.0.get().is_some()
    }
}

impl Drop for CacheTask {
    fn drop(&mut self) {
        if let Some(task) = self.0.get() {
            task.abort();
        }
    }
}
