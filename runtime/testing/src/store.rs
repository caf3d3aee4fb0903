//! The store of a test server: in memory, with watches that a test can hold back and end.

use std::sync::Arc;

use apiloom_server::async_trait;
use apiloom_storage::{Layer, Memory, Storage, StorageError, WatchStart, WatchStream};
use futures_util::{StreamExt as _, stream};
use tokio::sync::watch;

/// A store in memory. Its watches deliver nothing while the number of pauses is not zero, so that watch caches are stale. They
/// fail when the number of losses grows, as if they were behind the history, so that watch caches are filled again.
#[derive(Debug)]
pub(crate) struct TestStore {
    pub(crate) memory: Arc<Memory>,
    pub(crate) pauses: watch::Receiver<usize>,
    pub(crate) losses: watch::Receiver<u64>,
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
        let mut losses = self.losses.clone();
        losses.mark_unchanged();
        let begun = (held.boxed(), losses, Arc::clone(&self.memory));
        let items = stream::unfold(begun, |(mut held, mut losses, memory)| async {
            let item = tokio::select! {
                biased;
                Ok(()) = losses.changed() => Err(lost(&memory)),
                item = held.next() => item?,
            };
            Some((item, (held, losses, memory)))
        });
        Ok(items.boxed())
    }
}

/// The error of a watch that was behind for longer than history is kept.
fn lost(memory: &Memory) -> StorageError {
    let (_, current) = memory.kept_revisions();
    StorageError::Compacted {
        requested: current,
        compacted: current,
    }
}
