//! How far the feeds of all kinds are, for what follows from the absence of objects.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use apiloom_storage::{Revision, Storage};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::server::controllers::feed::Progress;
use crate::server::controllers::requests::{RequestError, Requests};

/// Longest wait for the feeds.
const CATCH_UP: Duration = Duration::from_secs(3);

/// Time between requests to a store for its progress, on which idle kinds depend.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// How far the feeds are.
#[derive(Default)]
pub(super) struct FeedProgress {
    feeds: Mutex<Arc<[Position]>>,
    /// Number of rounds of [`FeedProgress::catch_up`] that began.
    begun: AtomicU64,
    /// The last round that succeeded. Held during a round.
    succeeded: tokio::sync::Mutex<u64>,
}

/// How far a feed is.
#[derive(Clone)]
pub(super) struct Position {
    /// The store of its kind.
    pub(super) store: Arc<dyn Storage>,
    pub(super) progress: watch::Receiver<Progress>,
    /// The revision for which it is waited.
    pub(super) wanted: Arc<watch::Sender<Revision>>,
}

impl FeedProgress {
    /// Sets the feeds that run.
    pub(super) fn set_feeds(&self, feeds: Arc<[Position]>) {
        *self.feeds.lock() = feeds;
    }

    /// Waits until the feeds have reported all that was written before the call. Callers at the same time wait for the
    /// same round.
    ///
    /// # Errors
    /// [`RequestError::NotListed`] while the objects of a kind are not known, and if the feeds take too long;
    /// [`RequestError::OnlyElsewhere`] if only another server knows a kind.
    pub(super) async fn catch_up(&self, requests: &Requests) -> Result<(), RequestError> {
        let before = self.begun.load(Ordering::SeqCst);
        let mut succeeded = self.succeeded.lock().await;
        if *succeeded > before {
            return Ok(());
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        requests.check_serves_all().await?;
        let feeds = Arc::clone(&self.feeds.lock());
        let round = tokio::time::timeout(CATCH_UP, wait_for_all(&feeds));
        round.await.unwrap_or(Err(RequestError::NotListed))?;
        *succeeded = number;
        Ok(())
    }
}

/// Waits until feeds have reached the present revisions of their stores.
async fn wait_for_all(feeds: &[Position]) -> Result<(), RequestError> {
    let mut stores: Vec<(&Arc<dyn Storage>, Revision)> = Vec::new();
    let mut awaited = Vec::with_capacity(feeds.len());
    for feed in feeds {
        let known = stores
            .iter()
            .find(|(store, _)| Arc::ptr_eq(store, &feed.store));
        let present = match known {
            Some((_, present)) => *present,
            None => {
                let present = feed.store.current_revision().await?;
                stores.push((&feed.store, present));
                present
            }
        };
        feed.wanted.send_replace(present);
        awaited.push((feed.progress.clone(), present));
    }
    let reached = async {
        for (progress, present) in &mut awaited {
            let is_decided =
                |progress: &Progress| !progress.is_complete || progress.reached >= *present;
            // The feed of a kind that is not served any more ends without.
            let Ok(progress) = progress.wait_for(is_decided).await else {
                continue;
            };
            if !progress.is_complete {
                return Err(RequestError::NotListed);
            }
        }
        Ok(())
    };
    let asking = async {
        loop {
            for (store, _) in &stores {
                // A failed request is repeated in the next round.
                let _ = store.request_progress().await;
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
    };
    tokio::select! {
        biased;
        result = reached => result,
        () = asking => Err(RequestError::NotListed),
    }
}
