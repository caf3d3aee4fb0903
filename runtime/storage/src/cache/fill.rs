//! The one writer of a cache: lists the store once, then follows it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::StreamExt;

use super::history::{Change, Interest};
use super::snapshot::{Item, Snapshot};
use super::{Fill, Normalize, WatchCache};
use crate::{Entry, Event, EventKind, ListRequest, Revision, StorageError, WatchItem, WatchStart};

/// Objects of a page of the first list: few enough that a page is small, many enough that pages are few.
const PAGE: usize = 5_000;

/// Changes that are applied together when they are there together, and published as one state.
const BATCH: usize = 256;

/// The first wait after a failure, and the longest.
const FIRST_RETRY: Duration = Duration::from_millis(50);
const LAST_RETRY: Duration = Duration::from_secs(5);

impl<N: Normalize> WatchCache<N> {
    /// Fills the cache and keeps it up to date; never returns. A lost store is tried again, ever more slowly, from where
    /// it was lost: watchers do not notice. When it no longer knows what happened since, the cache is filled anew and
    /// watchers are told that they missed something.
    pub async fn run(self: Arc<Self>) {
        let mut wait = FIRST_RETRY;
        let mut from = None;
        loop {
            let outcome = match from {
                None => self.refill().await.map(|revision| from = Some(revision)),
                Some(revision) => self.follow(revision).await,
            };
            // What was applied before an error stays; the next watch goes on behind it.
            if from.is_some() {
                from = Some(self.current.load().revision());
            }
            match outcome {
                Ok(()) => {
                    wait = FIRST_RETRY;
                    continue;
                }
                Err(StorageError::Compacted { .. }) => {
                    tracing::warn!(prefix = %self.prefix, "the store forgot what the cache has not seen, filling it anew");
                    from = None;
                }
                Err(error) => {
                    tracing::warn!(prefix = %self.prefix, %error, "the watch cache lost the store");
                    self.fill.send_modify(|fill| {
                        *fill = match fill {
                            Fill::Pending(_) => Fill::Pending(error.to_string()),
                            _ => Fill::Behind(error.to_string()),
                        };
                    });
                }
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LAST_RETRY);
        }
    }

    #[cfg(test)]
    pub(super) async fn refill_for_test(&self) {
        self.refill().await.expect("the store answers");
    }

    /// Lists the store and publishes what it holds.
    async fn refill(&self) -> Result<Revision, StorageError> {
        let mut snapshot = Snapshot::default();
        let mut bytes = 0;
        let mut request = ListRequest {
            prefix: self.prefix.to_string(),
            limit: PAGE,
            ..ListRequest::default()
        };
        loop {
            let page = self.store.list(request.clone()).await?;
            for entry in &page.entries {
                let item = self.item(entry);
                bytes += self.weight(&item);
                snapshot.put(&self.normalize, item);
            }
            snapshot.set_revision(page.revision);
            let Some(last) = page.entries.last().filter(|_| page.more) else {
                break;
            };
            // NUL is the smallest byte, so this is the first key behind the last one.
            request.start = format!("{}\0", last.key);
            request.at = Some(page.revision);
        }
        let revision = snapshot.revision();
        {
            let mut history = self.history.write();
            history.restart(revision);
            self.past.lock().clear();
            self.current.store(Arc::new(snapshot));
            self.object_bytes.store(bytes as u64, Ordering::Relaxed);
            self.epoch.fetch_add(1, Ordering::AcqRel);
        }
        self.seen.send_replace(revision);
        self.waiters.lock().wake_all();
        Ok(revision)
    }

    /// Applies changes after a revision until the watch ends.
    async fn follow(&self, after: Revision) -> Result<(), StorageError> {
        let changes = self
            .store
            .watch(&self.prefix, WatchStart::After(after))
            .await?;
        self.fill.send_replace(Fill::Following);
        let mut batches = changes.ready_chunks(BATCH);
        while let Some(batch) = batches.next().await {
            let mut failed = None;
            let mut items = Vec::with_capacity(batch.len());
            for item in batch {
                match item {
                    Ok(item) => items.push(item),
                    Err(error) => failed = Some(error),
                }
            }
            self.apply(items);
            if let Some(error) = failed {
                return Err(error);
            }
        }
        Err(StorageError::Unavailable("the watch ended".to_owned()))
    }

    /// Applies what a watch delivered and publishes the result as one state.
    fn apply(&self, items: Vec<WatchItem>) {
        let mut snapshot = Snapshot::clone(&self.current.load());
        let mut revision = snapshot.revision();
        let mut changes = Vec::with_capacity(items.len());
        for item in items {
            match item {
                WatchItem::Progress(reached) => revision = revision.max(reached),
                WatchItem::Event(event) => {
                    revision = revision.max(event.revision);
                    changes.extend(self.change(&mut snapshot, event));
                }
            }
        }
        snapshot.set_revision(revision);
        self.publish(snapshot, changes);
    }

    /// Puts one event into a state; `None` for a removal of what is not there.
    fn change(
        &self,
        snapshot: &mut Snapshot<N::Object>,
        event: Event,
    ) -> Option<Change<N::Object>> {
        let (old, new) = match event.kind {
            EventKind::Deleted => (Some(snapshot.remove(&self.normalize, &event.key)?), None),
            EventKind::Created | EventKind::Updated => {
                let item = self.item(&Entry {
                    key: event.key.clone(),
                    value: event.value,
                    revision: event.revision,
                });
                let old = snapshot.put(&self.normalize, Arc::clone(&item));
                (old, Some(item))
            }
        };
        let weight = |item: &Option<Arc<Item<N::Object>>>| {
            item.as_deref().map_or(0, |item| self.weight(item))
        };
        let (gone, came) = (weight(&old), weight(&new));
        // Wraps around and back: the sum of all is never negative.
        self.object_bytes
            .fetch_add((came as u64).wrapping_sub(gone as u64), Ordering::Relaxed);
        let key = new
            .as_ref()
            .or(old.as_ref())
            .map(|item| Arc::clone(&item.key))?;
        Some(Change {
            key,
            revision: event.revision,
            old,
            new,
            at: Instant::now(),
            bytes: gone,
        })
    }

    /// Makes a state and the changes that led to it visible, and wakes who waits for them.
    fn publish(&self, snapshot: Snapshot<N::Object>, changes: Vec<Change<N::Object>>) {
        let revision = snapshot.revision();
        let indexed = self.indexed(&changes);
        {
            let mut history = self.history.write();
            // First the state: who was told of a change finds it in what he reads.
            self.current.store(Arc::new(snapshot));
            // Whoever holds the lock for reading knows that every change in the ring was announced.
            let waiters = self.waiters.lock();
            let begin = history.end();
            for change in changes {
                let key = Arc::clone(&change.key);
                let number = history.push(Arc::new(change));
                waiters.tell(&key, number);
            }
            for (interest, offset) in indexed {
                waiters.tell_interest(&interest, begin + offset);
            }
            self.forget_past(history.oldest());
        }
        self.seen.send_replace(revision);
    }

    /// The index values that changes touch, each with the place of the first change that does; nothing when nobody waits
    /// for an index.
    fn indexed(&self, changes: &[Change<N::Object>]) -> HashMap<Interest, u64> {
        let mut found = HashMap::new();
        if !self.waiters.lock().wants_indexes() {
            return found;
        }
        for (offset, change) in (0..).zip(changes) {
            for item in [&change.old, &change.new].into_iter().flatten() {
                if let Ok(object) = &item.object {
                    self.normalize.index(object, &mut |index, value| {
                        found
                            .entry(Interest::Indexed(index, value.into()))
                            .or_insert(offset);
                    });
                }
            }
        }
        found
    }

    fn item(&self, entry: &Entry) -> Arc<Item<N::Object>> {
        let object = self
            .normalize
            .normalize(&entry.key, &entry.value, entry.revision);
        if let Err(error) = &object {
            tracing::warn!(key = entry.key, error, "the store holds what is no object");
        }
        Arc::new(Item {
            key: entry.key.as_str().into(),
            revision: entry.revision,
            object,
        })
    }

    fn weight(&self, item: &Item<N::Object>) -> usize {
        match &item.object {
            Ok(object) => self.normalize.weight(object),
            Err(text) => text.len(),
        }
    }
}
