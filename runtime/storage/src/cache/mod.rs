//! The watch cache: the objects below one prefix, each held once in the form in which it is served, and what changed
//! lately.
//!
//! Readers take immutable snapshots without a lock and never wait for the writer, which is one task that follows the
//! store. Watchers are cursors over a shared ring of changes: a slow one holds nothing alive and delays nobody, and one
//! that is interested in a single object is woken for that object alone.
//!
//! The invariant: every snapshot is a state that the store had, at the revision that the snapshot says; revisions of
//! snapshots never go back, unless the store itself did, which ends all cursors; a cursor is given every change after its start that it is interested in, once and in order,
//! or is told that it was not.

mod budget;
mod counters;
mod cursor;
mod fill;
mod history;
mod past;
mod snapshot;
mod sync;
mod waiters;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{self, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;

pub use budget::{Budget, Limits};
pub use counters::{Counts, WAIT_BOUNDS};
pub use cursor::{Cursor, CursorEnd};
pub use history::{Capacity, Change, Interest};
pub use snapshot::{Item, Snapshot};

use counters::Counters;
use history::History;
use past::Past;
use sync::{AtomicU64, Mutex, RwLock};
use waiters::Waiters;

use crate::{ListRequest, Revision, Storage, StorageError};

/// How often the store is asked for its progress while somebody waits for it: as often as upstream asks.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// For so long a store is taken to keep what it kept when it was asked.
const KEPT_FOR: Duration = Duration::from_secs(1);

/// A store that does not say in this time what it keeps is not waited for: it may be away, and the cache answers.
const KEPT_PATIENCE: Duration = Duration::from_secs(1);

/// The indexes below this number are kept with the objects. The others come in groups of so many, whose values are computed
/// for changes while a watcher waits for one.
pub const INDEX_GROUP: u16 = 256;

/// How stored bytes become what is served. Called once for each object when it enters the cache.
pub trait Normalize: Send + Sync + 'static {
    /// What is kept of an object.
    type Object: Send + Sync + fmt::Debug + 'static;

    /// The object to serve for stored bytes.
    ///
    /// # Errors
    /// Why the bytes are no object of this kind. It is kept in place of the object, so that one damaged object hides no
    /// other and whoever reads it is told.
    fn normalize(
        &self,
        key: &str,
        stored: &Bytes,
        revision: Revision,
    ) -> Result<Self::Object, String>;

    /// How many bytes of the object are sent to a client.
    fn wire_bytes(&self, object: &Self::Object) -> usize;

    /// How many bytes the object keeps alive beside its own size, for the limits of history and for metrics.
    fn heap_bytes(&self, object: &Self::Object) -> usize;

    /// The values by which the object can be found, each with the number of its index, which is below [`INDEX_GROUP`]; a
    /// number comes once.
    fn index(&self, object: &Self::Object, found: &mut dyn FnMut(u16, &str));

    /// Computes the values of a group of indexes that are not kept: those from `group` times [`INDEX_GROUP`] on. Says
    /// whether that was possible; if not, all watchers of the group are told of the change.
    fn derive_index(
        &self,
        _item: &Arc<Item<Self::Object>>,
        _group: u16,
        _found: &mut dyn FnMut(u16, &str),
    ) -> bool {
        false
    }
}

/// Why the cache cannot answer for a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutsideWindow {
    /// The cache was not filled yet, or the store forgot what the cache has not seen.
    #[error("the cache is not filled")]
    NotFilled,
    /// What happened since then is no longer kept.
    #[error("revision {requested} is before the window, which begins after {oldest}")]
    TooOld {
        /// What was asked for.
        requested: Revision,
        /// The oldest revision whose state is known.
        oldest: Revision,
    },
    /// The cache has not come so far.
    #[error("revision {requested} is in the future, the cache is at {current}")]
    Future {
        /// What was asked for.
        requested: Revision,
        /// How far the cache has come.
        current: Revision,
    },
}

/// A state and the changes after it.
pub type StateAndChanges<N> = (Arc<Snapshot<<N as Normalize>::Object>>, Cursor<N>);

/// How much a cache holds, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Present objects.
    pub objects: usize,
    /// Their bytes as clients get them.
    pub wire_bytes: usize,
    /// What they take, with their keys and indexes.
    pub object_bytes: usize,
    /// Changes in the window.
    pub changes: usize,
    /// What only the window keeps.
    pub history_bytes: usize,
    /// For how many changes there is room.
    pub capacity: Capacity,
}

/// Whether the cache has been filled, and if not, why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fill {
    /// The list is under way: the first one, or one after the store forgot what the cache has not seen.
    Pending {
        /// Since when.
        since: Instant,
        /// Why it failed the last time, if it did.
        error: Option<StorageError>,
    },
    /// It follows the store.
    Following,
    /// It was filled, and has lost the store. What it holds is served as what it is: not the newest.
    Behind(StorageError),
}

impl Fill {
    fn pending() -> Self {
        Fill::Pending {
            since: Instant::now(),
            error: None,
        }
    }

    /// Whether there is something to read.
    pub fn is_filled(&self) -> bool {
        !matches!(self, Fill::Pending { .. })
    }
}

/// The objects below one prefix of a store.
pub struct WatchCache<N: Normalize> {
    store: Arc<dyn Storage>,
    prefix: Arc<str>,
    normalize: N,
    current: ArcSwap<Snapshot<N::Object>>,
    /// Lock order: waiters, then history, then what is remembered of the past.
    history: RwLock<History<N::Object>>,
    waiters: Mutex<Waiters>,
    past: Past<N::Object>,
    /// The oldest revision of which the store was asked whether it keeps it, and when.
    kept: parking_lot::Mutex<Option<(Revision, Instant)>>,
    /// Counts refills: a cursor of an earlier one has missed changes.
    epoch: AtomicU64,
    /// The newest revision of a past that is gone: of a store that was restored.
    gone: atomic::AtomicU64,
    wire_bytes: atomic::AtomicU64,
    object_bytes: atomic::AtomicU64,
    replaced_bytes: atomic::AtomicU64,
    counters: Counters,
    seen: watch::Sender<Revision>,
    fill: watch::Sender<Fill>,
}

impl<N: Normalize> fmt::Debug for WatchCache<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchCache")
            .field("prefix", &self.prefix)
            .field("revision", &self.snapshot().revision())
            .field("fill", &*self.fill.borrow())
            .finish_non_exhaustive()
    }
}

impl<N: Normalize> WatchCache<N> {
    /// A cache of the objects below a prefix, which ends with a slash. It is empty until [`WatchCache::run`] fills it.
    /// `limits` bound its history; a [`Budget`] alone bounds that of every cache that shares it.
    pub fn new(
        store: Arc<dyn Storage>,
        prefix: impl Into<Arc<str>>,
        normalize: N,
        limits: impl Into<Limits>,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            prefix: prefix.into(),
            normalize,
            current: ArcSwap::from_pointee(Snapshot::default()),
            history: RwLock::new(History::new(limits.into())),
            waiters: Mutex::default(),
            past: Past::default(),
            kept: parking_lot::Mutex::default(),
            epoch: AtomicU64::new(0),
            gone: atomic::AtomicU64::new(0),
            wire_bytes: atomic::AtomicU64::new(0),
            object_bytes: atomic::AtomicU64::new(0),
            replaced_bytes: atomic::AtomicU64::new(0),
            counters: Counters::default(),
            seen: watch::Sender::new(Revision(0)),
            fill: watch::Sender::new(Fill::pending()),
        })
    }

    /// Every key in the cache begins with this.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The newest state.
    pub fn snapshot(&self) -> Arc<Snapshot<N::Object>> {
        self.current.load_full()
    }

    /// The state at exactly this revision, while it is in the window.
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
        // Without the lock: the changes are held by what was taken.
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

    /// Waits until every change up to a revision is in the cache; says whether it came so far in time.
    pub async fn wait_for(&self, revision: Revision, time: Duration) -> bool {
        if self.current.load().revision() >= revision {
            return true;
        }
        let mut seen = self.seen.subscribe();
        let waited = tokio::time::timeout(time, seen.wait_for(|seen| *seen >= revision)).await;
        matches!(waited, Ok(Ok(_)))
    }

    /// Waits until the cache holds everything that was acknowledged before the call; says whether it came so far in
    /// time. A store that is behind the cache was restored, and the cache is of no use until it has noticed.
    ///
    /// # Errors
    /// When the store cannot say where it is.
    pub async fn wait_for_present(&self, time: Duration) -> Result<bool, StorageError> {
        let before = self.current.load().revision();
        let present = self.store.current_revision().await;
        let present = present.inspect_err(|_| self.counters.consistent_failures.add(1))?;
        let came = present >= before && self.reach(present, time).await;
        match came {
            true => self.counters.consistent_reads.add(1),
            false => self.counters.consistent_fallbacks.add(1),
        }
        Ok(came)
    }

    /// Waits until every change up to a revision is in the cache, and asks the store to say how far it is as long as it
    /// waits; says whether the cache came so far in time.
    pub async fn reach(&self, revision: Revision, time: Duration) -> bool {
        if self.current.load().revision() >= revision {
            self.counters.waited(Duration::ZERO);
            return true;
        }
        let begin = Instant::now();
        let asking = async {
            loop {
                // Other resources may have moved the store on: nothing else would tell. A store that cannot be asked now
                // may be in time for the next.
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

    /// How far the cache has come, now and whenever it is told.
    pub fn revisions(&self) -> watch::Receiver<Revision> {
        self.seen.subscribe()
    }

    /// Asks the store whether it still keeps the state at a revision of the past, unless it was asked a moment ago, and
    /// forgets what the store did: it may have been compacted by others.
    pub async fn check_kept(&self, revision: Revision) {
        if revision >= self.current.load().revision() {
            return;
        }
        let known = *self.kept.lock();
        if known.is_some_and(|(kept, at)| kept <= revision && at.elapsed() < KEPT_FOR) {
            return;
        }
        // Nothing has such a key: the answer is whether the revision is kept, and no object.
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

    /// Forgets the changes up to and including a revision, as far as the cache has come: when their store did.
    pub fn forget(&self, revision: Revision) {
        let mut history = self.history.write();
        history.forget_until(revision.min(self.current.load().revision()));
        self.past.forget_before(history.oldest());
    }

    /// The changes after a revision, or from the present on, of one interest.
    ///
    /// # Errors
    /// [`OutsideWindow::NotFilled`] and [`OutsideWindow::TooOld`]. A start in the future waits for it, and what happens
    /// until then is left out.
    pub fn watch(
        self: &Arc<Self>,
        interest: Interest,
        after: Option<Revision>,
    ) -> Result<Cursor<N>, OutsideWindow> {
        Ok(self.watch_with_state(interest, after)?.1)
    }

    /// The present state and the changes after it, without a gap and without an overlap.
    ///
    /// # Errors
    /// [`OutsideWindow::NotFilled`], and with `after` as [`WatchCache::watch`].
    pub fn watch_with_state(
        self: &Arc<Self>,
        interest: Interest,
        after: Option<Revision>,
    ) -> Result<StateAndChanges<N>, OutsideWindow> {
        // First the seat, then the place: a change between the two is announced needlessly instead of missed.
        let waiter = self.waiters.lock().register(&interest);
        let history = self.history.read();
        let snapshot = self.snapshot();
        let present = snapshot.revision();
        let after = after.unwrap_or(present);
        let place = match after > present && after.0 <= self.gone.load(Ordering::Relaxed) {
            false => history.place_after(after),
            true => Err(OutsideWindow::TooOld {
                requested: after,
                oldest: present,
            }),
        };
        let place = place.map(|next| {
            // What is there already was announced to nobody.
            if next < history.end() {
                waiter.leave(next);
            }
            (next, self.epoch())
        });
        drop(history);
        match place {
            Ok((next, epoch)) => {
                let cursor = Cursor::new(Arc::clone(self), waiter, interest, next, after, epoch);
                Ok((snapshot, cursor))
            }
            Err(error) => {
                self.waiters.lock().remove(&interest, &waiter);
                Err(error)
            }
        }
    }

    /// Whether the cache is filled, now and whenever that changes.
    pub fn fill(&self) -> watch::Receiver<Fill> {
        self.fill.subscribe()
    }

    /// Whether it has been filled.
    pub fn is_filled(&self) -> bool {
        self.fill.borrow().is_filled()
    }

    /// How much it holds.
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
            history_bytes: history.bytes(),
            capacity: history.capacity(),
        }
    }

    /// How many bytes were replaced since the cache was made. A held state keeps at most the bytes alive that were
    /// replaced since it was the present one.
    pub fn replaced_bytes(&self) -> u64 {
        self.replaced_bytes.load(Ordering::Relaxed)
    }

    /// What it did.
    pub fn counts(&self) -> Counts {
        self.counters.counts()
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests;
