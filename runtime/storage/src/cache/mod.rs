//! The watch cache: the objects below one prefix, each held once in the form in which it is served, and the recent
//! changes.
//!
//! Readers take immutable snapshots without a lock and never wait for the writer, which is one task that watches the
//! store. Watchers are cursors over a shared ring of changes: a slow one keeps no memory alive and does not delay
//! others, and one that watches a single object is woken for that object only.
//!
//! Invariants: every snapshot is a state that the store had, at the snapshot's revision. Revisions of snapshots never
//! decrease, unless the store itself went back, which ends all cursors. A cursor receives every matching change after
//! its start, once and in order, or an error.

mod budget;
mod counters;
mod cursor;
mod encodings;
mod fill;
mod history;
mod item;
mod normalize;
mod past;
mod snapshot;
mod sync;
mod waiters;
mod window;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{self, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

pub use budget::{Budget, Limits};
pub use counters::{Counts, WAIT_BOUNDS};
pub use cursor::{Cursor, CursorEnd, StateAndChanges};
pub use encodings::EncodingKey;
pub use history::{Capacity, Change, Interest};
pub use item::Item;
pub use normalize::{INDEX_GROUP, Normalize};
pub use snapshot::Snapshot;
pub use window::OutsideWindow;

use counters::Counters;
use encodings::EncodedChanges;
use history::History;
use past::Past;
use sync::{AtomicU64, Mutex, RwLock};
use waiters::Waiters;

use crate::{ListRequest, Revision, Storage, StorageError};

/// How often the store is asked for its progress while a reader waits for it: as often as in kube-apiserver.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// How long an answer of the store about its oldest kept revision is reused.
const KEPT_FOR: Duration = Duration::from_secs(1);

/// Timeout for asking the store for its oldest kept revision. After it the cache answers by itself, since the store may
/// be unavailable.
const KEPT_PATIENCE: Duration = Duration::from_secs(1);

/// The size of a cache, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Number of present objects.
    pub objects: usize,
    /// Size of the objects as sent to clients.
    pub wire_bytes: usize,
    /// Memory of the objects, with their keys and indexes.
    pub object_bytes: usize,
    /// Number of changes in the window.
    pub changes: usize,
    /// Memory that only the window keeps alive, with the encodings of its changes.
    pub history_bytes: usize,
    /// Capacity of the window.
    pub capacity: Capacity,
}

/// Whether the cache has been filled, and if not, why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fill {
    /// The list is in progress: the first one, or one after the store compacted changes that the cache had not seen.
    Pending {
        /// When it became pending.
        since: Instant,
        /// The last error, if any.
        error: Option<StorageError>,
    },
    /// The cache is filled and watches the store.
    Following,
    /// The cache was filled, and has lost the store. It still serves its content, which may be stale.
    Behind(StorageError),
}

impl Fill {
    fn pending() -> Self {
        Fill::Pending {
            since: Instant::now(),
            error: None,
        }
    }

    /// Whether there is a state to read.
    pub fn is_filled(&self) -> bool {
        !matches!(self, Fill::Pending { .. })
    }
}

/// How far a cache has come.
#[derive(Clone, Debug)]
pub struct CacheProgress {
    /// The revision of the newest state.
    pub revision: Revision,
    /// Whether the cache has been filled, and if not, why.
    pub fill: Fill,
}

/// A cache of the objects below one prefix of a store.
pub struct WatchCache<N: Normalize> {
    store: Arc<dyn Storage>,
    prefix: Arc<str>,
    normalize: N,
    current: ArcSwap<Snapshot<N::Object>>,
    /// Lock order: waiters, then history, then `past`.
    history: RwLock<History<N::Object>>,
    waiters: Mutex<Waiters>,
    past: Past<N::Object>,
    encodings: EncodedChanges<Change<N::Object>>,
    /// The oldest revision that was checked to be kept by the store, and when it was checked.
    kept: parking_lot::Mutex<Option<(Revision, Instant)>>,
    /// Number of refills: a cursor of an earlier epoch has missed changes.
    epoch: AtomicU64,
    /// The newest revision of a history that is gone because the store was restored.
    gone: atomic::AtomicU64,
    wire_bytes: atomic::AtomicU64,
    object_bytes: atomic::AtomicU64,
    replaced_bytes: atomic::AtomicU64,
    counters: Counters,
    /// Wakes the task of the cache to fill it again.
    refilling: Notify,
    /// One channel for both parts: a channel is large.
    progress: watch::Sender<CacheProgress>,
}

impl<N: Normalize> fmt::Debug for WatchCache<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchCache")
            .field("prefix", &self.prefix)
            .field("revision", &self.snapshot().revision())
            .field("fill", &self.progress.borrow().fill)
            .finish_non_exhaustive()
    }
}

impl<N: Normalize> WatchCache<N> {
    /// Creates a cache of the objects below a prefix, which ends with a slash. It is empty until [`WatchCache::run`]
    /// fills it. `limits` applies to its history; a [`Budget`] is shared by several caches.
    pub fn new(
        store: Arc<dyn Storage>,
        prefix: impl Into<Arc<str>>,
        normalize: N,
        limits: impl Into<Limits>,
    ) -> Arc<Self> {
        let limits = limits.into();
        Arc::new(Self {
            store,
            prefix: prefix.into(),
            encodings: EncodedChanges::new(Arc::clone(&limits.budget)),
            normalize,
            current: ArcSwap::from_pointee(Snapshot::default()),
            history: RwLock::new(History::new(limits)),
            waiters: Mutex::default(),
            past: Past::default(),
            kept: parking_lot::Mutex::default(),
            epoch: AtomicU64::new(0),
            gone: atomic::AtomicU64::new(0),
            wire_bytes: atomic::AtomicU64::new(0),
            object_bytes: atomic::AtomicU64::new(0),
            replaced_bytes: atomic::AtomicU64::new(0),
            counters: Counters::default(),
            refilling: Notify::new(),
            progress: watch::Sender::new(CacheProgress {
                revision: Revision(0),
                fill: Fill::pending(),
            }),
        })
    }

    /// The prefix of every key in the cache.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The newest state.
    pub fn snapshot(&self) -> Arc<Snapshot<N::Object>> {
        self.current.load_full()
    }

    /// The state at exactly this revision, if it is in the window.
    ///
    /// # Errors
    /// [`OutsideWindow`].
    pub fn snapshot_at(
        &self,
        revision: Revision,
    ) -> Result<Arc<Snapshot<N::Object>>, OutsideWindow> {
        let (mut snapshot, undo) = {
            let history = self.history.read();
            if !history.is_filled() {
                return Err(OutsideWindow::NotFilled);
            }
            let current = self.snapshot();
            if revision > current.revision() {
                return Err(OutsideWindow::Future {
                    requested: revision,
                    current: current.revision(),
                });
            }
            if revision < history.oldest() {
                return Err(OutsideWindow::TooOld {
                    requested: revision,
                    oldest: history.oldest(),
                });
            }
            if let Some(known) = self.past.find(revision) {
                return Ok(known);
            }
            if revision == current.revision() {
                self.past.keep(&current);
                return Ok(current);
            }
            (Snapshot::clone(&current), history.after(revision))
        };
        // Without the lock: the `Arc`s keep the changes alive.
        for change in undo.iter().rev() {
            match &change.old {
                Some(old) => snapshot.put(&self.normalize, Arc::clone(old)),
                None => snapshot.remove(&self.normalize, &change.key),
            };
        }
        snapshot.set_revision(revision);
        let snapshot = Arc::new(snapshot);
        self.past.keep(&snapshot);
        Ok(snapshot)
    }

    /// Waits until every change up to a revision is in the cache; returns false on timeout.
    pub async fn wait_for(&self, revision: Revision, time: Duration) -> bool {
        if self.current.load().revision() >= revision {
            return true;
        }
        let mut progress = self.progress.subscribe();
        let has_come = |progress: &CacheProgress| progress.revision >= revision;
        let waited = tokio::time::timeout(time, progress.wait_for(has_come)).await;
        matches!(waited, Ok(Ok(_)))
    }

    /// Waits until the cache holds every write that was acknowledged before the call; returns false on timeout. A store
    /// that is behind the cache was restored; the cache is not used until it has noticed that.
    ///
    /// # Errors
    /// When the store cannot report its revision.
    pub async fn wait_for_present(&self, time: Duration) -> Result<bool, StorageError> {
        let came = self.reach_present(time).await;
        let came = came.inspect_err(|_| self.counters.consistent_failures.add(1))?;
        if came {
            self.counters.consistent_reads.add(1);
        } else {
            self.counters.consistent_fallbacks.add(1);
        }
        Ok(came)
    }

    /// As [`WatchCache::wait_for_present`], for a write, which is not counted as a consistent read.
    ///
    /// # Errors
    /// When the store cannot report its revision.
    pub async fn reach_present(&self, time: Duration) -> Result<bool, StorageError> {
        let before = self.current.load().revision();
        let present = self.store.current_revision().await?;
        Ok(present >= before && self.reach(present, time).await)
    }

    /// Waits until every change up to a revision is in the cache, and asks the store for its progress meanwhile;
    /// returns false on timeout.
    pub async fn reach(&self, revision: Revision, time: Duration) -> bool {
        if self.current.load().revision() >= revision {
            self.counters.waited(Duration::ZERO);
            return true;
        }
        let begin = Instant::now();
        let asking = async {
            loop {
                // Writes to other prefixes advance the store's revision without a change here, so only a progress item
                // reports it. A failed request is repeated in the next round.
                let _ = self.store.request_progress().await;
                tokio::time::sleep(ASK_AGAIN).await;
            }
        };
        let came = tokio::select! {
            came = self.wait_for(revision, time) => came,
            () = asking => false,
        };
        self.counters.waited(begin.elapsed());
        came
    }

    /// Whether every change up to a revision is in the cache. A revision of a history that is gone, because the store was
    /// restored, never comes; it counts as reached.
    pub fn has_reached(&self, revision: Revision) -> bool {
        self.current.load().revision() >= revision
            || revision.0 <= self.gone.load(Ordering::Relaxed)
    }

    /// How far the cache has come, now and after every change.
    pub fn progress(&self) -> watch::Receiver<CacheProgress> {
        self.progress.subscribe()
    }

    /// Asks the store whether it still keeps the state at a past revision, unless it was asked a moment ago, and drops
    /// what the store has compacted, perhaps on request of another server.
    pub async fn check_kept(&self, revision: Revision) {
        if revision >= self.current.load().revision() {
            return;
        }
        let known = *self.kept.lock();
        if known.is_some_and(|(kept, at)| kept <= revision && at.elapsed() < KEPT_FOR) {
            return;
        }
        // No object has this key: only whether the revision is kept matters.
        let request = ListRequest {
            prefix: format!("{}\0", self.prefix),
            limit: 1,
            at: Some(revision),
            uncounted: true,
            ..ListRequest::default()
        };
        let asked = tokio::time::timeout(KEPT_PATIENCE, self.store.list(request)).await;
        if let Ok(Err(StorageError::Compacted { compacted, .. })) = asked {
            self.forget(compacted);
        }
        *self.kept.lock() = Some((revision, Instant::now()));
    }

    /// Drops the changes up to and including a revision, as far as the cache has come, because the store compacted
    /// them.
    pub fn forget(&self, revision: Revision) {
        let mut history = self.history.write();
        history.forget_until(revision.min(self.current.load().revision()));
        self.past.forget_before(history.oldest());
    }

    /// What `make` makes of a change. It is kept with the change for the watchers that ask for the same a moment later, and
    /// made again when it is older than `max_age`.
    pub fn encoding(
        &self,
        change: &Arc<Change<N::Object>>,
        key: EncodingKey,
        max_age: Option<Duration>,
        make: impl FnOnce() -> Vec<u8>,
    ) -> Bytes {
        self.encodings.get(change, key, max_age, make)
    }

    /// Fills the cache again, which ends every watch, if it has values that could not be decoded: they may be read in another
    /// way now. Returns whether it has some.
    pub fn refill_unreadable(&self) -> bool {
        let has_some = self.snapshot().damaged("", "").next().is_some();
        if has_some {
            self.refilling.notify_one();
        }
        has_some
    }

    /// Whether the cache is filled now, and if not, why.
    pub fn fill(&self) -> Fill {
        self.progress.borrow().fill.clone()
    }

    /// Whether the cache has been filled.
    pub fn is_filled(&self) -> bool {
        self.progress.borrow().fill.is_filled()
    }

    /// The size of the cache.
    pub fn size(&self) -> Size {
        let bytes = |count: &atomic::AtomicU64| {
            usize::try_from(count.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
        };
        let history = self.history.read();
        Size {
            objects: self.current.load().len(),
            wire_bytes: bytes(&self.wire_bytes),
            object_bytes: bytes(&self.object_bytes),
            changes: history.len(),
            history_bytes: history.bytes() + self.encodings.bytes(),
            capacity: history.capacity(),
        }
    }

    /// Bytes replaced since the cache was created. A snapshot that is held keeps at most the bytes alive that were
    /// replaced after it was current.
    pub fn replaced_bytes(&self) -> u64 {
        self.replaced_bytes.load(Ordering::Relaxed)
    }

    /// The counters of the cache.
    pub fn counts(&self) -> Counts {
        self.counters.counts()
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests;
