//! The store of a test server: in memory, with watches that a test can hold back.

use std::sync::Arc;

use apiloom_server::async_trait;
use apiloom_storage::{Layer, Memory, Storage, StorageError, WatchStart, WatchStream};
use futures_util::StreamExt as _;
use tokio::sync::watch;

/// A store in memory. Its watches deliver nothing while it is paused, so that watch caches are stale.
#[derive(Debug)]
pub(crate) struct TestStore {
    pub(crate) memory: Arc<Memory>,
    pub(crate) is_paused: watch::Receiver<bool>,
}

#[async_trait]
impl Layer for TestStore {
    fn behind(&self) -> &dyn Storage {
        &*self.memory
    }

    async fn watch(&self, prefix: &str, start: WatchStart) -> Result<WatchStream, StorageError> {
        let items = self.memory.watch(prefix, start).await?;
        let is_paused = self.is_paused.clone();
        let held = items.then(move |item| {
            let mut is_paused = is_paused.clone();
            async move {
                // An error means that the test is over.
                let _ = is_paused.wait_for(|is_paused| !is_paused).await;
                item
            }
        });
        Ok(held.boxed())
    }
}
