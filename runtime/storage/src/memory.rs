//! The memory backend: present values and recent history in persistent maps, lost when the process ends.
//!
//! Readers copy the maps' roots under the lock and read without it, so they do not delay writers. Lock order: the
//! state, then the feed, so that changes are published in the order in which they were made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use imbl::{OrdMap, Vector};
use parking_lot::Mutex;

use crate::beginning;
use crate::feed::{Change, Feed, History, Replay};
use crate::keys::{prefix_end, range_start};
use crate::op::{Expiry, Op};
use crate::retention::Horizon;
use crate::{
    Entry, Event, ListRequest, Page, Retention, Revision, Storage, StorageError, WatchStart,
    WatchStream,
};

/// Maximum changes that one write compacts: more than one, so that history shrinks after a burst, and few, so that no
/// write is delayed.
const FORGET_STEP: usize = 64;

/// Default memory for history beside the present values: twice that of the watch caches. A store on disk keeps more.
const HISTORY_BYTES: u64 = 128 << 20;

/// Maximum revisions that a watcher replays at a time.
const REPLAY_STEP: usize = 4_096;

/// A store in memory.
///
/// Watches must be read within a tokio runtime that has time enabled.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use apiloom_storage::{Memory, Storage};
///
/// let store = Memory::new();
/// let revision = store.create("/registry/pods/ns/a", "{}".into(), None).await?;
/// let (entry, _) = store.get("/registry/pods/ns/a").await?;
/// assert_eq!(entry.map(|entry| entry.revision), Some(revision));
/// # Ok::<(), apiloom_storage::StorageError>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Memory {
    state: Mutex<State>,
    feed: Arc<Feed>,
    me: Weak<Memory>,
}

#[derive(Debug)]
struct State {
    /// The part that readers copy.
    view: View,
    horizon: Horizon,
    /// The keys with a time to live, in the order in which they expire.
    deadlines: BTreeSet<(Instant, Arc<str>)>,
    /// How far the time of a store with [`Memory::with_manual_time`] was moved; `None` for the time of the system.
    manual_time: Option<Duration>,
    /// When the store was made.
    origin: Instant,
    /// Notifies the thread that removes expired keys of an earlier deadline; started by the first key with one.
    reaper: Option<mpsc::Sender<()>>,
    closed: bool,
}

/// The store at one revision, and its history.
#[derive(Clone, Debug, Default)]
struct View {
    revision: Revision,
    /// The newest revision that `log` no longer holds.
    compacted: Revision,
    objects: OrdMap<Arc<str>, StoredValue>,
    /// The changes after `compacted`, one per revision.
    log: Vector<Arc<Event>>,
}

/// A value with its revision, and when it expires.
#[derive(Clone, Debug)]
struct StoredValue {
    value: Bytes,
    revision: Revision,
    deadline: Option<Instant>,
}

impl StoredValue {
    fn entry(&self, key: &str) -> Entry {
        Entry {
            key: key.to_owned(),
            value: self.value.clone(),
            revision: self.revision,
        }
    }
}

impl Memory {
    /// An empty store with the default [`Retention`], whose first write gets revision 1: for stores that outlive all
    /// clients' memory of revisions, as in tests.
    pub fn new() -> Arc<Self> {
        Self::with_retention(Self::usual_retention())
    }

    /// The same with another retention.
    pub fn with_retention(retention: Retention) -> Arc<Self> {
        Self::beginning_after(Revision(0), retention)
    }

    /// An empty store with the default [`Retention`], whose revisions begin at the clock: microseconds since 1970.
    /// Revisions that clients remember from an earlier store are then too old instead of in the future.
    pub fn beginning_now() -> Arc<Self> {
        Self::beginning_after(beginning::now(), Self::usual_retention())
    }

    fn usual_retention() -> Retention {
        Retention {
            max_bytes: HISTORY_BYTES,
            ..Retention::default()
        }
    }

    /// An empty store whose first write gets the revision after this one: for callers that know the earlier revisions.
    pub fn beginning_after(revision: Revision, retention: Retention) -> Arc<Self> {
        let view = View {
            revision,
            compacted: revision,
            ..View::default()
        };
        let origin = Instant::now();
        let state = State {
            view,
            horizon: Horizon::new(retention, origin, revision),
            deadlines: BTreeSet::new(),
            manual_time: None,
            origin,
            reaper: None,
            closed: false,
        };
        Arc::new_cyclic(|me| Self {
            state: Mutex::new(state),
            feed: Feed::new(revision),
            me: me.clone(),
        })
    }

    /// As [`Memory::new`], but time passes only by [`Memory::advance`], and no thread removes expired keys. For tests.
    pub fn with_manual_time() -> Arc<Self> {
        let store = Self::new();
        store.state.lock().manual_time = Some(Duration::ZERO);
        store
    }

    /// Lets time pass for a store with [`Memory::with_manual_time`], and removes the keys that expire. Does nothing for other
    /// stores.
    pub fn advance(&self, duration: Duration) {
        if let Some(time) = &mut self.state.lock().manual_time {
            *time = time.saturating_add(duration);
        }
        self.expire();
    }

    /// A copy of this store with its history, as if it had been on a disk and were closed and opened again. Later
    /// writes to one of them are not in the other.
    pub fn reopen(&self) -> Arc<Self> {
        let old = self.state.lock();
        let state = State {
            view: old.view.clone(),
            horizon: old.horizon.clone(),
            deadlines: old.deadlines.clone(),
            manual_time: old.manual_time,
            origin: old.origin,
            reaper: None,
            closed: false,
        };
        let feed = Feed::new(state.view.revision);
        drop(old);
        let store = Arc::new_cyclic(|me| Self {
            state: Mutex::new(state),
            feed,
            me: me.clone(),
        });
        let mut state = store.state.lock();
        if !state.deadlines.is_empty() {
            state.wake_reaper(&store.me);
        }
        drop(state);
        store
    }

    /// The oldest state that is kept, and the current one.
    pub fn kept_revisions(&self) -> (Revision, Revision) {
        let state = self.state.lock();
        (state.view.compacted, state.view.revision)
    }

    fn view(&self) -> Result<View, StorageError> {
        let state = self.state.lock();
        state.check_open()?;
        Ok(state.view.clone())
    }

    fn write(&self, key: &str, op: &Op) -> Result<Revision, StorageError> {
        let mut state = self.state.lock();
        state.check_open()?;
        let event = state.apply(key, op)?;
        let revision = event.revision;
        if matches!(op.expiry(), Expiry::After(_)) {
            state.wake_reaper(&self.me);
        }
        self.feed.publish(&[Change::Loaded(event)], revision);
        Ok(revision)
    }

    /// Deletes expired keys; returns the time until the next one expires.
    fn expire(&self) -> Option<Duration> {
        let mut state = self.state.lock();
        if state.closed {
            return None;
        }
        let now = state.now();
        while let Some((deadline, key)) = state.deadlines.first().cloned() {
            if deadline > now {
                return Some(deadline - now);
            }
            state.deadlines.pop_first();
            let Some(expected) = state.view.objects.get(&*key).map(|stored| stored.revision) else {
                continue;
            };
            if let Ok(event) = state.apply(&key, &Op::Delete { expected }) {
                let revision = event.revision;
                self.feed.publish(&[Change::Loaded(event)], revision);
            }
        }
        None
    }
}

impl State {
    fn check_open(&self) -> Result<(), StorageError> {
        if self.closed { Err(closed()) } else { Ok(()) }
    }

    /// The time by which keys expire and history ages.
    fn now(&self) -> Instant {
        match self.manual_time {
            None => Instant::now(),
            // A time beyond what the system can express is not reached.
            Some(passed) => self.origin.checked_add(passed).unwrap_or(self.origin),
        }
    }

    /// Executes a write if its precondition holds.
    fn apply(&mut self, key: &str, op: &Op) -> Result<Arc<Event>, StorageError> {
        let now = self.now();
        let present = self.view.objects.get(key);
        if !op.is_allowed(present.map(|stored| stored.revision)) {
            return Err(op.refusal(key, present.map(|stored| stored.entry(key))));
        }
        let revision = Revision(self.view.revision.0 + 1);
        let shared_key: Arc<str> = key.into();
        let deadline = match op.expiry() {
            Expiry::Never => None,
            Expiry::After(ttl) => now.checked_add(ttl),
            Expiry::Kept => present.and_then(|stored| stored.deadline),
        };
        let previous = match op.value() {
            Some(value) => {
                let stored = StoredValue {
                    value: value.clone(),
                    revision,
                    deadline,
                };
                self.view.objects.insert(Arc::clone(&shared_key), stored)
            }
            None => self.view.objects.remove(key),
        };
        if let Some(old) = previous.as_ref().and_then(|stored| stored.deadline) {
            self.deadlines.remove(&(old, Arc::clone(&shared_key)));
        }
        if let Some(deadline) = deadline {
            self.deadlines.insert((deadline, shared_key));
        }
        let replaced = (previous.as_ref()).map_or(0, |stored| stored.value.len());
        self.horizon.count((key.len() + replaced) as u64);
        let event = Arc::new(Event {
            kind: op.kind(),
            key: key.to_owned(),
            value: op.value().cloned().unwrap_or_default(),
            previous: previous.map(|stored| (stored.value, stored.revision)),
            revision,
        });
        self.view.revision = revision;
        self.view.log.push_back(Arc::clone(&event));
        self.forget_old(now);
        Ok(event)
    }

    fn forget_old(&mut self, now: Instant) {
        self.horizon.observe(now, self.view.revision);
        let floor = self.horizon.floor(now, self.view.revision);
        self.horizon.forget(self.view.compacted);
        for _ in 0..FORGET_STEP {
            if self.view.compacted >= floor {
                break;
            }
            self.view.log.pop_front();
            self.view.compacted.0 += 1;
        }
    }

    fn wake_reaper(&mut self, store: &Weak<Memory>) {
        if self.manual_time.is_some() {
            return;
        }
        let reaper = self.reaper.get_or_insert_with(|| {
            let (sender, receiver) = mpsc::channel();
            let store = Weak::clone(store);
            let thread = std::thread::Builder::new().name("apiloom-expiry".into());
            if let Err(error) = thread.spawn(move || reap(&store, &receiver)) {
                tracing::error!(%error, "failed to start the thread that removes expired keys");
            }
            sender
        });
        // The thread cannot have ended: it does so when the store is dropped.
        let _ = reaper.send(());
    }
}

fn closed() -> StorageError {
    StorageError::Unavailable("the store is closed".into())
}

/// Removes expired keys until the store is dropped.
fn reap(store: &Weak<Memory>, earlier_deadline: &mpsc::Receiver<()>) {
    loop {
        let Some(wait) = store.upgrade().map(|store| store.expire()) else {
            return;
        };
        let woken = match wait {
            Some(wait) => earlier_deadline.recv_timeout(wait),
            None => earlier_deadline
                .recv()
                .map_err(|_| RecvTimeoutError::Disconnected),
        };
        if woken == Err(RecvTimeoutError::Disconnected) {
            return;
        }
    }
}

impl View {
    fn check_kept(&self, requested: Revision) -> Result<(), StorageError> {
        if requested < self.compacted {
            return Err(StorageError::Compacted {
                requested,
                compacted: self.compacted,
            });
        }
        Ok(())
    }

    fn check_past(&self, requested: Revision) -> Result<(), StorageError> {
        if requested > self.revision {
            return Err(StorageError::Future {
                requested,
                current: self.revision,
            });
        }
        Ok(())
    }

    /// The changes after a kept revision, oldest first.
    fn changes_after(&self, revision: Revision) -> impl DoubleEndedIterator<Item = &Arc<Event>> {
        let skipped = usize::try_from(revision.0 - self.compacted.0).unwrap_or(usize::MAX);
        self.log.iter().skip(skipped)
    }

    /// The objects in a range of keys.
    fn range(&self, from: &str, prefix: &str) -> impl Iterator<Item = (&Arc<str>, &StoredValue)> {
        let end = prefix_end(prefix);
        self.objects
            .range::<_, str>((std::ops::Bound::Included(from), std::ops::Bound::Unbounded))
            .take_while(move |(key, _)| end.as_deref().is_none_or(|end| ***key < *end))
    }

    /// This view at an earlier revision, in a range of keys: the changes since are undone.
    fn rewound(&self, at: Revision, from: &str, prefix: &str) -> OrdMap<Arc<str>, StoredValue> {
        let mut undone: BTreeMap<&str, &Option<(Bytes, Revision)>> = BTreeMap::new();
        for event in self.changes_after(at) {
            if event.key.starts_with(prefix) && &*event.key >= from {
                undone.entry(&event.key).or_insert(&event.previous);
            }
        }
        let mut objects = self.objects.clone();
        for (key, previous) in undone {
            match previous {
                Some((value, revision)) => {
                    let stored = StoredValue {
                        value: value.clone(),
                        revision: *revision,
                        deadline: None,
                    };
                    objects.insert(key.into(), stored);
                }
                None => {
                    objects.remove(key);
                }
            }
        }
        objects
    }

    fn list(mut self, request: &ListRequest) -> Result<Page, StorageError> {
        let from = range_start(&request.prefix, &request.start);
        if let Some(at) = request.at {
            self.check_kept(at)?;
            self.check_past(at)?;
            self.objects = self.rewound(at, from, &request.prefix);
        }
        let limit = if request.limit == 0 {
            usize::MAX
        } else {
            request.limit
        };
        let mut range = self.range(from, &request.prefix);
        let entries: Vec<_> = range
            .by_ref()
            .take(limit)
            .map(|(key, stored)| stored.entry(key))
            .collect();
        let remaining = range.count() as u64;
        let revision = request.at.unwrap_or(self.revision);
        Ok(Page {
            entries,
            revision,
            more: remaining > 0,
            remaining: Some(remaining),
        })
    }
}

#[async_trait]
impl History for Memory {
    async fn replay(
        &self,
        prefix: &str,
        after: Revision,
        upto: Revision,
    ) -> Result<Replay, StorageError> {
        let view = self.view()?;
        view.check_kept(after)?;
        let step = view
            .changes_after(after)
            .take(REPLAY_STEP)
            .take_while(|event| event.revision <= upto);
        let mut replay = Replay {
            events: Vec::new(),
            reached: after,
        };
        for event in step {
            replay.reached = event.revision;
            if event.key.starts_with(prefix) {
                replay.events.push(Event::clone(event));
            }
        }
        Ok(replay)
    }
}

#[async_trait]
impl Storage for Memory {
    async fn get(&self, key: &str) -> Result<(Option<Entry>, Revision), StorageError> {
        let state = self.state.lock();
        state.check_open()?;
        Ok((
            state.view.objects.get(key).map(|stored| stored.entry(key)),
            state.view.revision,
        ))
    }

    async fn list(&self, request: ListRequest) -> Result<Page, StorageError> {
        self.view()?.list(&request)
    }

    async fn count(&self, prefix: &str) -> Result<u64, StorageError> {
        Ok(self.view()?.range(prefix, prefix).count() as u64)
    }

    async fn create(
        &self,
        key: &str,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> Result<Revision, StorageError> {
        self.write(key, &Op::Create { value, ttl })
    }

    async fn update_if(
        &self,
        key: &str,
        expected: Revision,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> Result<Revision, StorageError> {
        let op = Op::Update {
            expected,
            value,
            expiry: ttl.into(),
        };
        self.write(key, &op)
    }

    async fn rewrite_if(
        &self,
        key: &str,
        expected: Revision,
        value: Bytes,
    ) -> Result<Revision, StorageError> {
        let op = Op::Update {
            expected,
            value,
            expiry: Expiry::Kept,
        };
        self.write(key, &op)
    }

    async fn delete_if(&self, key: &str, expected: Revision) -> Result<Revision, StorageError> {
        self.write(key, &Op::Delete { expected })
    }

    async fn watch(&self, prefix: &str, start: WatchStart) -> Result<WatchStream, StorageError> {
        let state = self.state.lock();
        state.check_open()?;
        if let WatchStart::After(revision) = start {
            state.view.check_kept(revision)?;
        }
        let store = self.me.upgrade().ok_or_else(closed)?;
        Ok(self.feed.watch(prefix, start, store))
    }

    async fn request_progress(&self) -> Result<(), StorageError> {
        self.state.lock().check_open()?;
        self.feed.request_progress();
        Ok(())
    }

    async fn current_revision(&self) -> Result<Revision, StorageError> {
        let state = self.state.lock();
        state.check_open()?;
        Ok(state.view.revision)
    }

    async fn compact(&self, revision: Revision) -> Result<(), StorageError> {
        let mut state = self.state.lock();
        state.check_open()?;
        state.view.check_past(revision)?;
        if revision > state.view.compacted {
            let forgotten =
                usize::try_from(revision.0 - state.view.compacted.0).unwrap_or(usize::MAX);
            let length = state.view.log.len();
            state.view.log = state.view.log.skip(forgotten.min(length));
            state.view.compacted = revision;
        }
        Ok(())
    }

    async fn close(&self) {
        self.state.lock().closed = true;
        self.feed.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::Backend;
    use crate::{EventKind, WatchItem};
    use futures_util::StreamExt as _;

    struct InMemory(Mutex<Option<Arc<Memory>>>);

    impl Backend for InMemory {
        async fn new() -> Self {
            Self(Mutex::new(None))
        }

        async fn open(&self) -> Arc<dyn Storage> {
            let mut last = self.0.lock();
            let store = last.as_ref().map_or_else(Memory::new, |last| last.reopen());
            *last = Some(Arc::clone(&store));
            store
        }
    }

    mod conformance {
        crate::conformance_tests!(super::InMemory);
    }

    #[test]
    fn keys_expire_by_manual_time_only() {
        crate::conformance::run(async {
            let store = Memory::with_manual_time();
            let ttl = Some(Duration::from_nanos(1));
            let created = store.create("/r/a", "1".into(), ttl).await.unwrap();
            let mut watch = store
                .watch("/r/", WatchStart::After(created))
                .await
                .unwrap();
            assert!(store.get("/r/a").await.unwrap().0.is_some());
            store.advance(Duration::from_nanos(1));
            assert!(store.get("/r/a").await.unwrap().0.is_none());
            let event = loop {
                if let WatchItem::Event(event) = watch.next().await.unwrap().unwrap() {
                    break event;
                }
            };
            assert_eq!(event.kind, EventKind::Deleted);
            assert!(store.state.lock().reaper.is_none(), "no thread was started");
        });
    }

    #[test]
    fn history_is_bounded_by_bytes() {
        crate::conformance::run(async {
            let store = Memory::with_retention(Retention {
                max_bytes: 1 << 20,
                ..Retention::default()
            });
            let value = || Bytes::from(vec![b'x'; 64 << 10]);
            let first = store.create("/r/a", value(), None).await.unwrap();
            let mut last = first;
            for _ in 0..200 {
                last = store.update_if("/r/a", last, value(), None).await.unwrap();
            }
            let refused = store.watch("/r/", WatchStart::After(first)).await.err();
            assert!(matches!(refused, Some(StorageError::Compacted { .. })));
            let view = store.view().unwrap();
            let kept: usize = view.log.iter().map(|event| event.value.len()).sum();
            assert!((768 << 10..1280 << 10).contains(&kept), "{kept}");
            assert!(
                store
                    .watch("/r/", WatchStart::After(Revision(last.0 - 10)))
                    .await
                    .is_ok()
            );
        });
    }

    #[test]
    fn revisions_of_an_earlier_store_are_too_old_to_a_new_one() {
        crate::conformance::run(async {
            let old = Memory::beginning_now();
            let mut known = vec![old.current_revision().await.unwrap()];
            for value in ["1", "2", "3"] {
                known.push(
                    old.create(&format!("/r/{value}"), value.into(), None)
                        .await
                        .unwrap(),
                );
            }
            let new = Memory::beginning_now();
            known.extend([Revision(0), Revision(1)]);
            crate::conformance::all_are_too_old(&*new, &known).await;
            new.create("/r/1", "1".into(), None).await.unwrap();
            crate::conformance::all_are_too_old(&*new, &known).await;
        });
    }

    mod conformance_through_the_cache {
        crate::conformance_tests!(crate::conformance::ThroughCache<super::InMemory>);
    }
}
