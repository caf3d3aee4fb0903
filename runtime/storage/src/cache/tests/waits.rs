//! How long readers wait for a state, and what they ask the store meanwhile.

use std::sync::atomic::AtomicU64;

use async_trait::async_trait;
use futures_util::StreamExt;

use super::*;
use crate::{Layer, WatchItem, WatchStart, WatchStream};

/// A store that reports its progress only at the `answers`th request.
#[derive(Debug)]
struct Taciturn {
    store: Arc<Memory>,
    asked: AtomicU64,
    answers: u64,
    told: watch::Sender<Revision>,
}

#[async_trait]
impl Layer for Taciturn {
    fn behind(&self) -> &dyn Storage {
        &*self.store
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
}

/// A filled cache over such a store, which has advanced since.
async fn behind(answers: u64) -> (Arc<Taciturn>, Arc<WatchCache<Text>>, Revision) {
    let store = Arc::new(Taciturn {
        store: memory(),
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
    // A reader that need not wait does not ask the store.
    assert!(cache.reach(present, Duration::from_secs(3)).await);
    assert_eq!(store.asked.load(Ordering::Relaxed), 5);
}
