//! A store whose reads are answered by a watch cache, so that the suite tests the cache over any backend.
//!
//! As in a server, reads that the cache cannot answer go to the store: keys outside its prefix, states and watches
//! before its window. Added here is only what the cache leaves to its owner: closing ends watches, and compaction also
//! drops the cache's history.

use std::collections::VecDeque;
use std::fmt;

use async_trait::async_trait;
use futures_util::stream;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::support::*;
use crate::cache::{
    Budget, CacheProgress, Change, Cursor, CursorEnd, Fill, Interest, Item, Normalize,
    OutsideWindow, WatchCache,
};
use crate::layer::Layer;

/// The prefix of the suite's objects; it writes elsewhere too.
const PREFIX: &str = "/r/";

/// Maximum changes that a watch takes at a time: few, so that changes are left in the cursor more often than in a
/// server.
const TAKEN_AT_ONCE: usize = 7;

/// A [`Backend`] with a watch cache in front.
pub struct ThroughCache<B>(B);

impl<B: Backend> Backend for ThroughCache<B> {
    const PATIENCE: Duration = B::PATIENCE;

    async fn new() -> Self {
        Self(B::new().await)
    }

    async fn open(&self) -> Arc<dyn Storage> {
        CachedStore::over(self.0.open().await).await
    }
}

/// Normalizes nothing: objects are the stored bytes.
struct IdentityNormalizer;

impl Normalize for IdentityNormalizer {
    type Object = Bytes;

    fn normalize(&self, _: &str, stored: &Bytes, _: Revision) -> Result<Bytes, String> {
        Ok(stored.clone())
    }
    fn wire_bytes(&self, object: &Bytes) -> usize {
        object.len()
    }
    fn heap_bytes(&self, object: &Bytes) -> usize {
        object.len()
    }
    fn index(&self, object: &Bytes, found: &mut dyn FnMut(u16, &str)) {
        // The suite does not use this index; keeping it must change nothing.
        found(0, &String::from_utf8_lossy(&object[..object.len().min(1)]));
    }
}

/// A store with a watch cache that follows it.
struct CachedStore {
    store: Arc<dyn Storage>,
    cache: Arc<WatchCache<IdentityNormalizer>>,
    closed: watch::Sender<bool>,
    /// Aborted when this is dropped.
    _running: JoinSet<()>,
}

impl fmt::Debug for CachedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cache.fmt(f)
    }
}

impl CachedStore {
    async fn over(store: Arc<dyn Storage>) -> Arc<dyn Storage> {
        let budget = Budget::new(Budget::DEFAULT_BYTES);
        let cache = WatchCache::new(Arc::clone(&store), PREFIX, IdentityNormalizer, budget);
        let mut running = JoinSet::new();
        running.spawn(Arc::clone(&cache).run());
        let mut progress = cache.progress();
        let filled = progress.wait_for(|progress| progress.fill == Fill::Following);
        let filled = tokio::time::timeout(patience(), filled).await;
        assert!(matches!(filled, Ok(Ok(_))), "the cache fills");
        Arc::new(Self {
            store,
            cache,
            closed: watch::Sender::new(false),
            _running: running,
        })
    }

    /// Waits until the cache has every acknowledged write.
    async fn catch_up(&self) -> Result<(), StorageError> {
        let came = self.cache.wait_for_present(patience()).await?;
        assert!(came, "the cache does not come to the present");
        Ok(())
    }
}

fn stored(item: &Item<Bytes>) -> Entry {
    Entry {
        key: item.key.to_string(),
        value: item.object.clone().expect("bytes are an object"),
        revision: item.revision,
    }
}

#[async_trait]
impl Layer for CachedStore {
    fn behind(&self) -> &dyn Storage {
        &*self.store
    }

    async fn get(&self, key: &str) -> Result<(Option<Entry>, Revision), StorageError> {
        if !key.starts_with(PREFIX) {
            return self.store.get(key).await;
        }
        self.catch_up().await?;
        let state = self.cache.snapshot();
        Ok((state.get(key).map(|item| stored(item)), state.revision()))
    }

    async fn list(&self, request: ListRequest) -> Result<Page, StorageError> {
        if !request.prefix.starts_with(PREFIX) {
            return self.store.list(request).await;
        }
        self.catch_up().await?;
        let state = match request.at.map(|at| self.cache.snapshot_at(at)) {
            None => self.cache.snapshot(),
            Some(Ok(state)) => state,
            Some(Err(OutsideWindow::TooOld { .. } | OutsideWindow::NotFilled)) => {
                return self.store.list(request).await;
            }
            Some(Err(OutsideWindow::Future { requested, current })) => {
                return Err(StorageError::Future { requested, current });
            }
        };
        let mut items = state.range(&request.prefix, &request.start);
        let limit = match request.limit {
            0 => usize::MAX,
            limit => limit,
        };
        let entries: Vec<Entry> = items
            .by_ref()
            .take(limit)
            .map(|item| stored(item))
            .collect();
        let remaining = items.count() as u64;
        Ok(Page {
            entries,
            revision: state.revision(),
            more: remaining > 0,
            remaining: Some(remaining),
        })
    }

    async fn count(&self, prefix: &str) -> Result<u64, StorageError> {
        if !prefix.starts_with(PREFIX) {
            return self.store.count(prefix).await;
        }
        self.catch_up().await?;
        Ok(self.cache.snapshot().range(prefix, "").count() as u64)
    }

    async fn watch(&self, prefix: &str, start: WatchStart) -> Result<WatchStream, StorageError> {
        if !prefix.starts_with(PREFIX) {
            return self.store.watch(prefix, start).await;
        }
        self.catch_up().await?;
        let from = match start {
            WatchStart::Now => self.cache.snapshot().revision(),
            WatchStart::After(revision) => revision,
        };
        let Ok(cursor) = self.cache.watch(Interest::Everything, Some(from)) else {
            return self.store.watch(prefix, start).await;
        };
        let watching = Watching {
            cursor,
            prefix: prefix.to_owned(),
            from,
            cache: self.cache.progress(),
            closed: self.closed.subscribe(),
            taken: VecDeque::new(),
            progress: None,
            asked: true,
            ended: false,
        };
        Ok(stream::unfold(watching, |mut watching| async move {
            Some((watching.next().await?, watching))
        })
        .boxed())
    }

    async fn compact(&self, revision: Revision) -> Result<(), StorageError> {
        self.store.compact(revision).await?;
        self.catch_up().await?;
        self.cache.forget(revision);
        Ok(())
    }

    async fn close(&self) {
        // A cache is filled before it watches the store. If the store closes before the watch begins, the cache would
        // never learn of the writes in between.
        let caught_up = self.catch_up().await;
        let last = caught_up.and(self.store.current_revision().await);
        self.store.close().await;
        if let Ok(last) = last {
            self.cache.wait_for(last, patience()).await;
        }
        self.closed.send_replace(true);
    }
}

/// Adapts a watch of the cache to a watch of a store.
struct Watching {
    cursor: Cursor<IdentityNormalizer>,
    prefix: String,
    from: Revision,
    cache: watch::Receiver<CacheProgress>,
    closed: watch::Receiver<bool>,
    taken: VecDeque<Arc<Change<Bytes>>>,
    /// The revision up to which everything is delivered once `taken` is empty.
    progress: Option<Revision>,
    /// Whether to report progress even without changes.
    asked: bool,
    ended: bool,
}

impl Watching {
    async fn next(&mut self) -> Option<Result<WatchItem, StorageError>> {
        while !self.ended {
            if let Some(change) = self.taken.pop_front() {
                if change.key.starts_with(&self.prefix) {
                    return Some(Ok(WatchItem::Event(event(&change))));
                }
                continue;
            }
            if let Some(progress) = self.progress.take() {
                return Some(Ok(WatchItem::Progress(progress)));
            }
            let closed = *self.closed.borrow_and_update();
            let mut batch = Vec::new();
            let reached = match self.cursor.take(TAKEN_AT_ONCE, &mut batch) {
                Ok(reached) => reached,
                Err(CursorEnd::Lagged | CursorEnd::Lost) => {
                    return self.end(StorageError::Lagged);
                }
            };
            if !batch.is_empty() || std::mem::take(&mut self.asked) {
                self.taken = batch.into();
                self.progress = Some(reached).filter(|reached| *reached >= self.from);
                continue;
            }
            if closed {
                return self.end(StorageError::Unavailable("the store is closed".to_owned()));
            }
            tokio::select! {
                () = self.cursor.changed() => {}
                _ = self.closed.changed() => {}
                moved = self.cache.changed() => self.asked = moved.is_ok(),
            }
        }
        None
    }

    fn end(&mut self, error: StorageError) -> Option<Result<WatchItem, StorageError>> {
        self.ended = true;
        Some(Err(error))
    }
}

/// Converts a change of the cache to an event of a store.
fn event(change: &Change<Bytes>) -> Event {
    let old = change.old.as_deref().map(stored);
    let new = change.new.as_deref().map(stored);
    let kind = match (&old, &new) {
        (_, None) => EventKind::Deleted,
        (None, Some(_)) => EventKind::Created,
        (Some(_), Some(_)) => EventKind::Updated,
    };
    Event {
        kind,
        key: change.key.to_string(),
        value: new.map(|entry| entry.value).unwrap_or_default(),
        previous: old.map(|entry| (entry.value, entry.revision)),
        revision: change.revision,
    }
}
