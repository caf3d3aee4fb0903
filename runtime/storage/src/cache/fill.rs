//! The only writer of a cache: it lists the store once, then watches it.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::Peekable;
use futures_util::{FutureExt, StreamExt, future};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};

use super::encodings::Encodings;
use super::history::{ALLOCATION, COUNTERS, Change};
use super::item::Item;
use super::normalize::Normalize;
use super::snapshot::{INDEX_BYTES, MAP_BYTES, Snapshot};
use super::waiters::{MarkedSeats, Waiters};
use super::{CacheProgress, Fill, WatchCache};
use crate::{
    Entry, Event, EventKind, ListRequest, Revision, StorageError, WatchItem, WatchStart,
    WatchStream,
};

/// Objects in a page of the first list: small enough to limit memory, large enough to need few pages.
const PAGE: usize = 2_000;

/// Pages that other threads normalize while the next one is read.
const PAGES_AHEAD: usize = 4;

/// Minimum objects that are normalized on another thread; below this the hand-over costs more than the work.
const WORTH_A_THREAD: usize = 100;

/// Maximum available changes that are applied together and published as one state.
const BATCH: usize = 128;

/// The shortest and the longest pause after a failure.
const FIRST_RETRY: Duration = Duration::from_millis(50);
const LAST_RETRY: Duration = Duration::from_secs(5);

/// How often the cache trims its history.
const UPKEEP: Duration = Duration::from_secs(3);

impl<N: Normalize> WatchCache<N> {
    /// Fills the cache and keeps it up to date; never returns. After a failure it reconnects with growing pauses and
    /// continues from the last revision, which watchers do not notice. If the store no longer has the history since
    /// then, the cache is filled again and every watch ends with an error.
    pub async fn run(self: Arc<Self>) {
        let mut wait = FIRST_RETRY;
        loop {
            let pending = !self.is_filled();
            let failed = if pending {
                // Its state is large, and the cache is filled once.
                Box::pin(self.refill()).await.err()
            } else {
                None
            };
            let error = match failed {
                None => {
                    // A variable of its own: inside the call it would keep this state alive for as long as `follow`
                    // runs.
                    let from = self.current.load().revision();
                    let followed = tokio::select! {
                        error = self.follow(from) => Some(error),
                        () = self.refilling.notified() => None,
                    };
                    let Some(error) = followed else {
                        self.begin_again();
                        continue;
                    };
                    // A retry would meet the same damage.
                    let is_damaged = matches!(error, StorageError::Corrupt(_));
                    if self.fill() == Fill::Following && !is_damaged {
                        wait = FIRST_RETRY;
                    }
                    error
                }
                Some(error) => error,
            };
            self.record_failure(error);
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LAST_RETRY);
        }
    }

    /// Records a failure: Pending if history is gone, else Behind. Ends the watches if the cache cannot continue them.
    fn record_failure(&self, error: StorageError) {
        tracing::warn!(prefix = %self.prefix, %error, "the watch cache lost the store");
        let is_lost = matches!(
            error,
            StorageError::Compacted { .. }
                | StorageError::Restored { .. }
                | StorageError::Corrupt(_)
        );
        let is_compacted = matches!(
            error,
            StorageError::Compacted { .. } | StorageError::Restored { .. }
        );
        let mut was_filled = false;
        self.progress
            .send_modify(|CacheProgress { fill, .. }| match (&mut *fill, error) {
                (Fill::Pending { error: known, .. }, error) => *known = Some(error),
                // The store compacted changes that the cache has not seen.
                (_, StorageError::Compacted { .. }) => {
                    was_filled = true;
                    *fill = Fill::pending();
                }
                // The store was restored, so the content of the cache is invalid too.
                (_, error @ StorageError::Restored { .. }) => {
                    was_filled = true;
                    *fill = Fill::Pending {
                        since: Instant::now(),
                        error: Some(error),
                    };
                }
                (_, error) => {
                    was_filled = true;
                    *fill = Fill::Behind(error);
                }
            });
        if was_filled && is_lost {
            self.end_cursors(is_compacted);
        }
    }

    /// Makes the cache Pending, so that it is filled again.
    fn begin_again(&self) {
        self.progress
            .send_modify(|progress| progress.fill = Fill::pending());
        self.end_cursors(true);
    }

    /// Ends every cursor, because they would miss changes. With `is_closed`, no new ones can be created before the
    /// cache is filled.
    pub(super) fn end_cursors(&self, is_closed: bool) {
        {
            let mut history = self.history.write();
            if is_closed {
                history.close();
            }
            self.epoch.fetch_add(1, Ordering::AcqRel);
        }
        self.waiters.lock().wake_all();
    }

    #[cfg(test)]
    pub(super) async fn refill_for_test(self: &Arc<Self>) {
        self.refill().await.expect("the store answers");
    }

    /// Publishes a state as if it came from a list of the store.
    #[cfg(test)]
    pub(super) fn fill_with(&self, entries: Vec<Entry>, revision: Revision) {
        let item = |entry: Entry| self.item(entry.key.into(), &entry.value, entry.revision);
        let mut filling = Filling::default();
        filling.add(self, entries.into_iter().map(item).collect());
        self.publish_filled(filling, revision);
    }

    /// Lists the store and publishes the result.
    async fn refill(self: &Arc<Self>) -> Result<(), StorageError> {
        let mut filling = Filling::default();
        let mut parts: VecDeque<Part<N>> = VecDeque::new();
        let mut request = ListRequest {
            prefix: self.prefix.to_string(),
            limit: PAGE,
            uncounted: true,
            ..ListRequest::default()
        };
        let mut page = self.store.list(request.clone()).await?;
        loop {
            // NUL is the smallest byte, so this is the first possible key after the last one.
            let next = page.entries.last().filter(|_| page.more);
            let next = next.map(|last| format!("{}\0", last.key));
            parts.push_back(self.part(page.entries));
            let Some(next) = next else {
                filling.take(self, &mut parts, 0).await?;
                self.publish_filled(filling, page.revision);
                return Ok(());
            };
            request.at = Some(page.revision);
            request.start = next;
            // The store reads this page while earlier pages are normalized.
            let reading = self.store.list(request.clone());
            let taking = filling.take(self, &mut parts, PAGES_AHEAD);
            let (read, taken) = future::join(reading, taking).await;
            taken?;
            page = read?;
        }
    }

    /// Normalizes a page, on another thread if it is large enough.
    fn part(self: &Arc<Self>, entries: Vec<Entry>) -> Part<N> {
        let is_large = entries.len() >= WORTH_A_THREAD;
        let cache = Arc::clone(self);
        let normalize = move || {
            let item = |entry: Entry| cache.item(entry.key.into(), &entry.value, entry.revision);
            entries.into_iter().map(item).collect()
        };
        if is_large {
            Part::Running(tokio::task::spawn_blocking(normalize))
        } else {
            Part::Done(normalize())
        }
    }

    fn publish_filled(&self, filling: Filling<N>, revision: Revision) {
        let mut snapshot = filling.snapshot;
        snapshot.set_revision(revision);
        let objects = snapshot.len() as u64;
        {
            let mut history = self.history.write();
            let before = self.current.load().revision();
            if revision < before {
                self.gone.fetch_max(before.0, Ordering::Relaxed);
            }
            history.restart(revision);
            self.past.clear();
            self.current.store(Arc::new(snapshot));
            self.wire_bytes.store(filling.wire_bytes, Ordering::Relaxed);
            let replaced = self
                .object_bytes
                .swap(filling.object_bytes, Ordering::Relaxed);
            self.replaced_bytes.fetch_add(replaced, Ordering::Relaxed);
            self.epoch.fetch_add(1, Ordering::AcqRel);
        }
        self.counters.fills.add(1);
        self.counters.filled_objects.add(objects);
        self.progress.send_replace(CacheProgress {
            revision,
            fill: Fill::Following,
        });
        self.waiters.lock().wake_all();
    }

    /// Applies changes after a revision until the watch ends; returns the reason.
    async fn follow(&self, after: Revision) -> StorageError {
        let changes = match self
            .store
            .watch(&self.prefix, WatchStart::After(after))
            .await
        {
            Ok(changes) => changes,
            Err(error) => return error,
        };
        self.progress
            .send_if_modified(|CacheProgress { fill, .. }| {
                let changed = *fill != Fill::Following;
                *fill = Fill::Following;
                changed
            });
        let mut changes = changes.peekable();
        let mut upkeep = tokio::time::interval(UPKEEP);
        upkeep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let (items, end) = tokio::select! {
                batch = batch(&mut changes) => batch,
                _ = upkeep.tick() => {
                    self.trim();
                    continue;
                }
            };
            self.apply(items);
            if let Some(error) = end {
                return error;
            }
        }
    }

    /// Removes changes that have left the window, also when no new ones arrive.
    pub(super) fn trim(&self) {
        self.past.forget_unused();
        let now = Instant::now();
        self.encodings.trim(now);
        if self.history.read().needs_trimming(now) {
            let mut history = self.history.write();
            history.trim(now);
            self.past.forget_before(history.oldest());
        }
    }

    /// Applies the items of a watch and publishes the result as one state.
    pub(super) fn apply(&self, items: Vec<WatchItem>) {
        let mut snapshot = Snapshot::clone(&self.current.load());
        let mut revision = snapshot.revision();
        let mut changes = Vec::with_capacity(items.len());
        for item in items {
            match item {
                WatchItem::Progress(reached) => revision = revision.max(reached),
                WatchItem::Event(event) => {
                    self.counters.received.add(1);
                    revision = revision.max(event.revision);
                    changes.extend(self.change(&mut snapshot, event));
                }
            }
        }
        snapshot.set_revision(revision);
        self.publish(snapshot, changes);
    }

    /// Applies one event to a state; `None` for the removal of an absent key.
    fn change(
        &self,
        snapshot: &mut Snapshot<N::Object>,
        event: Event,
    ) -> Option<Change<N::Object>> {
        // All states of an object share the memory of its key.
        let known = snapshot.get(&event.key);
        let key = known.map_or_else(|| event.key.into(), |known| Arc::clone(&known.key));
        let (old, new) = match event.kind {
            EventKind::Deleted => (Some(snapshot.remove(&self.normalize, &key)?), None),
            EventKind::Created | EventKind::Updated => {
                let item = self.item(Arc::clone(&key), &event.value, event.revision);
                let old = snapshot.put(&self.normalize, Arc::clone(&item));
                (old, Some(item))
            }
        };
        // Wrapping arithmetic is correct here: the sum of all terms is never negative.
        for (bytes, of) in [
            (
                &self.wire_bytes,
                Self::wire_bytes as fn(&Self, &Item<_>) -> u64,
            ),
            (&self.object_bytes, Self::present_bytes),
        ] {
            let [gone, came] =
                [&old, &new].map(|item| item.as_ref().map_or(0, |item| of(self, item)));
            bytes.fetch_add(came.wrapping_sub(gone), Ordering::Relaxed);
        }
        let mut bytes = old.as_deref().map_or(0, |old| self.item_bytes(old));
        if new.is_none() {
            bytes += key_bytes(&key);
        }
        self.replaced_bytes
            .fetch_add((bytes + NODES_BYTES) as u64, Ordering::Relaxed);
        Some(Change {
            key,
            revision: event.revision,
            old,
            new,
            at: Instant::now(),
            bytes,
            encodings: Encodings::default(),
        })
    }

    /// Publishes a state and the changes that led to it, and wakes the watchers that wait for them.
    fn publish(&self, snapshot: Snapshot<N::Object>, changes: Vec<Change<N::Object>>) {
        let revision = snapshot.revision();
        self.counters.dispatched.add(changes.len() as u64);
        let derived = self.derive_indexes(&changes);
        // Held until every change is announced: a watcher that registers later finds the changes in the ring.
        let waiters = self.waiters.lock();
        let mut marked = MarkedSeats::default();
        {
            let mut history = self.history.write();
            // The state comes first: a watcher that was woken for a change must find it in the state that it reads.
            self.current.store(Arc::new(snapshot));
            // So a reader that holds the lock knows that every change in the ring was announced.
            for (place, change) in changes.into_iter().enumerate() {
                let number = history.end();
                waiters.mark(&change.key, number, &mut marked);
                if waiters.wants_indexes() {
                    self.mark_indexed(&waiters, &change, number, &mut marked);
                }
                for group in waiters.derived_groups() {
                    let values = derived.get(&group).and_then(|values| values.get(place));
                    match values {
                        Some(Some(values)) => values.iter().for_each(|(index, value)| {
                            waiters.mark_indexed(&change.key, *index, value, number, &mut marked);
                        }),
                        // The values could not be computed, or the first watcher of the group has registered since.
                        _ => waiters.mark_group(&change.key, group, number, &mut marked),
                    }
                }
                history.push(Arc::new(change));
            }
            self.past.forget_before(history.oldest());
        }
        marked.tell();
        drop(waiters);
        self.progress
            .send_modify(|progress| progress.revision = revision);
    }

    /// Marks the waiters for an index value that the object had or has. The caller holds the waiters' lock, so a waiter
    /// that registers at the same time is not missed.
    fn mark_indexed<'a>(
        &self,
        waiters: &'a Waiters,
        change: &Change<N::Object>,
        number: u64,
        marked: &mut MarkedSeats<'a>,
    ) {
        for item in [&change.old, &change.new].into_iter().flatten() {
            match &item.object {
                Ok(object) => self.normalize.index(object, &mut |index, value| {
                    waiters.mark_indexed(&change.key, index, value, number, marked);
                }),
                // Watchers of any value are told that the object cannot be read.
                Err(_) => waiters.mark_group(&change.key, 0, number, marked),
            }
        }
    }

    /// Computes the values of each index group that a watcher waits for and that is not kept, per change; `None` where
    /// they cannot be computed. Runs without a lock, since it may take long.
    fn derive_indexes(&self, changes: &[Change<N::Object>]) -> HashMap<u16, Vec<Option<Values>>> {
        let groups: Vec<u16> = self.waiters.lock().derived_groups().collect();
        let derive = |group: u16, change: &Change<N::Object>| {
            let mut values = Values::new();
            let mut items = [&change.old, &change.new].into_iter().flatten();
            let all = items.all(|item| {
                self.normalize
                    .derive_index(item, group, &mut |index, value| {
                        values.push((index, value.into()));
                    })
            });
            all.then_some(values)
        };
        let derived = groups.into_iter().map(|group| {
            let values = changes.iter().map(|change| derive(group, change));
            (group, values.collect())
        });
        derived.collect()
    }

    fn item(&self, key: Arc<str>, stored: &Bytes, revision: Revision) -> Arc<Item<N::Object>> {
        let object = self.normalize.normalize(&key, stored, revision);
        if let Err(error) = &object {
            tracing::warn!(%key, error, "a stored value cannot be decoded");
        }
        Arc::new(Item {
            key,
            revision,
            object,
        })
    }

    fn wire_bytes(&self, item: &Item<N::Object>) -> u64 {
        let object = item.object.as_ref();
        object.map_or(0, |object| self.normalize.wire_bytes(object) as u64)
    }

    /// The memory that one state of an object uses, without the key that all of its states share.
    fn item_bytes(&self, item: &Item<N::Object>) -> usize {
        let heap = match &item.object {
            Ok(object) => self.normalize.heap_bytes(object),
            Err(text) => text.len() + ALLOCATION,
        };
        heap + size_of::<Item<N::Object>>() + COUNTERS + ALLOCATION
    }

    /// The memory that a present object uses: its state, its key and its entries in the map and the indexes.
    fn present_bytes(&self, item: &Item<N::Object>) -> u64 {
        let mut bytes = self.item_bytes(item) + key_bytes(&item.key) + MAP_BYTES;
        if let Ok(object) = &item.object {
            self.normalize.index(object, &mut |_, value| {
                bytes += INDEX_BYTES + key_bytes(value);
            });
        }
        bytes as u64
    }
}

/// Collects the available items of a watch up to a limit, and why the watch has ended, if it has. Never splits a
/// revision, since several keys may expire in one. Cancel-safe: dropping the future loses no item.
pub(super) async fn batch(
    changes: &mut Peekable<WatchStream>,
) -> (Vec<WatchItem>, Option<StorageError>) {
    let over = || StorageError::Unavailable("the watch ended".to_owned());
    let mut items = Vec::new();
    let mut next = changes.next().await;
    loop {
        match next {
            Some(Ok(item)) => items.push(item),
            Some(Err(error)) => return (items, Some(error)),
            None => return (items, Some(over())),
        }
        let peeked = Pin::new(&mut *changes).peek().now_or_never();
        let goes_on = match (items.last(), &peeked) {
            (_, None) => false,
            (Some(WatchItem::Event(last)), Some(Some(Ok(WatchItem::Event(next)))))
                if next.revision == last.revision =>
            {
                true
            }
            _ => items.len() < BATCH,
        };
        if !goes_on {
            return (items, None);
        }
        next = changes.next().await;
    }
}

/// The memory of the map's inner nodes that one change replaces, approximately.
const NODES_BYTES: usize = 512;

/// Index values of an object, each with the number of its index.
type Values = Vec<(u16, Box<str>)>;

/// The memory that a shared string uses.
fn key_bytes(key: &str) -> usize {
    key.len() + COUNTERS + ALLOCATION
}

/// A page of the first list; its normalization may still be running.
enum Part<N: Normalize> {
    Done(Items<N>),
    Running(JoinHandle<Items<N>>),
}

type Items<N> = Vec<Arc<Item<<N as Normalize>::Object>>>;

impl<N: Normalize> Part<N> {
    async fn items(self) -> Result<Items<N>, StorageError> {
        match self {
            Part::Done(items) => Ok(items),
            Part::Running(running) => running
                .await
                .map_err(|error| StorageError::Unavailable(error.to_string())),
        }
    }
}

/// A state that is being filled.
struct Filling<N: Normalize> {
    snapshot: Snapshot<N::Object>,
    wire_bytes: u64,
    object_bytes: u64,
}

impl<N: Normalize> Default for Filling<N> {
    fn default() -> Self {
        Self {
            snapshot: Snapshot::default(),
            wire_bytes: 0,
            object_bytes: 0,
        }
    }
}

impl<N: Normalize> Filling<N> {
    /// Adds finished pages in order, until at most `left` remain.
    async fn take(
        &mut self,
        cache: &WatchCache<N>,
        parts: &mut VecDeque<Part<N>>,
        left: usize,
    ) -> Result<(), StorageError> {
        while parts.len() > left
            && let Some(part) = parts.pop_front()
        {
            self.add(cache, part.items().await?);
        }
        Ok(())
    }

    fn add(&mut self, cache: &WatchCache<N>, items: Items<N>) {
        for item in items {
            self.wire_bytes += cache.wire_bytes(&item);
            self.object_bytes += cache.present_bytes(&item);
            self.snapshot.put(&cache.normalize, item);
        }
    }
}
