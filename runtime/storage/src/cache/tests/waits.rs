//! How long readers wait for a state, and what is done meanwhile for it to come.

use std::sync::atomic::AtomicU64;

use async_trait::async_trait;
use futures_util::StreamExt;

use super::*;
use crate::{Entry, ListRequest, Page, WatchItem, WatchStart, WatchStream};

/// A store that says nothing of itself, and at the `answers`th request how far it is.
#[derive(Debug)]
struct Taciturn {
    store: Arc<Memory>,
    asked: AtomicU64,
    answers: u64,
    told: watch::Sender<Revision>,
}

#[async_trait]
impl Storage for Taciturn {
    async fn get(&self, key: &str) -> Result<(Option<Entry>, Revision), StorageError> {
        self.store.get(key).await
    }
    async fn list(&self, request: ListRequest) -> Result<Page, StorageError> {
        self.store.list(request).await
    }
    async fn count(&self, prefix: &str) -> Result<u64, StorageError> {
        self.store.count(prefix).await
    }
    async fn create(
        &self,
        key: &str,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> Result<Revision, StorageError> {
        self.store.create(key, value, ttl).await
    }
    async fn update_if(
        &self,
        key: &str,
        expected: Revision,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> Result<Revision, StorageError> {
        self.store.update_if(key, expected, value, ttl).await
    }
    async fn delete_if(&self, key: &str, expected: Revision) -> Result<Revision, StorageError> {
        self.store.delete_if(key, expected).await
    }
    async fn watch(&self, _: &str, _: WatchStart) -> Result<WatchStream, StorageError> {
        let told = futures_util::stream::unfold(self.told.subscribe(), |mut told| async {
            told.changed().await.ok()?;
            let revision = *told.borrow_and_update();
            Some((Ok(WatchItem::Progress(revision)), told))
        });
        Ok(told.boxed())
    }
    async fn request_progress(&self) -> Result<(), StorageError> {
        if self.asked.fetch_add(1, Ordering::Relaxed) + 1 == self.answers {
            self.told.send_replace(self.store.current_revision().await?);
        }
        Ok(())
    }
    async fn current_revision(&self) -> Result<Revision, StorageError> {
        self.store.current_revision().await
    }
    async fn compact(&self, revision: Revision) -> Result<(), StorageError> {
        self.store.compact(revision).await
    }
    async fn close(&self) {
        self.store.close().await;
    }
}

/// A filled cache over such a store, which has moved on since.
async fn behind(answers: u64) -> (Arc<Taciturn>, Arc<WatchCache<Text>>, Revision) {
    let store = Arc::new(Taciturn {
        store: Memory::new(),
        asked: AtomicU64::new(0),
        answers,
        told: watch::Sender::new(Revision(0)),
    });
    let budget = Budget::new(Budget::DEFAULT_BYTES);
    let cache = WatchCache::new(Arc::clone(&store) as _, PREFIX, Text, budget);
    tokio::spawn(Arc::clone(&cache).run());
    following(&cache).await;
    let present = put(&store.store, "/elsewhere/a", "x").await;
    (store, cache, present)
}

#[tokio::test(start_paused = true)]
async fn c_149_a_reader_waits_for_three_seconds_and_asks_for_progress_ten_times_a_second() {
    let (store, cache, present) = behind(u64::MAX).await;
    let begun = Instant::now();
    let three_seconds = Duration::from_secs(3);
    assert!(!cache.reach(present, three_seconds).await);
    assert_eq!(begun.elapsed().as_secs(), 3);
    let asked = store.asked.load(Ordering::Relaxed);
    assert!((30..=31).contains(&asked), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn c_149_a_reader_goes_on_as_soon_as_the_store_answers() {
    let (store, cache, present) = behind(5).await;
    let begun = Instant::now();
    assert!(
        cache
            .wait_for_present(Duration::from_secs(3))
            .await
            .unwrap()
    );
    assert_eq!(begun.elapsed().as_millis() / 100, 4, "at the fifth request");
    assert_eq!(store.asked.load(Ordering::Relaxed), 5);
    assert!(cache.snapshot().revision() >= present);
    // Who is there already asks nobody.
    assert!(cache.reach(present, Duration::from_secs(3)).await);
    assert_eq!(store.asked.load(Ordering::Relaxed), 5);
}
