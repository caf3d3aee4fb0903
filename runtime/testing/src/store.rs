//! The store of a test server: in memory, with watches that a test can hold back.

use std::sync::Arc;

use apiloom_server::async_trait;
use apiloom_storage::{Layer, Memory, Storage, StorageError, WatchStart, WatchStream};
use futures_util::StreamExt as _;
use tokio::sync::watch;

/// A store in memory. Its watches deliver nothing while the number of pauses is not zero, so that watch caches are stale.
#[derive(Debug)]
pub(crate) struct TestStore {
    pub(crate) memory: Arc<Memory>,
    pub(crate) pauses: watch::Receiver<usize>,
}

#[async_trait]
impl Layer for TestStore {
    fn behind(&self) -> &dyn Storage {
        &*self.memory
    }

    async fn watch(&self, prefix: &str, start: WatchStart) -> Result<WatchStream, StorageError> {
        let items = self.memory.watch(prefix, start).await?;
        let pauses = self.pauses.clone();
        let held = items.then(move |item| {
            let mut pauses = pauses.clone();
            async move {
                // An error means that the test is over.
                let _ = pauses.wait_for(|pauses| *pauses == 0).await;
                item
            }
        });
        Ok(held.boxed())
    }
}
