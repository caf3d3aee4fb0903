//! Readers of snapshots (lists, initial events of watches) while their objects are sent, with a limit for the memory
//! that slow ones keep alive.
//!
//! A reader holds the snapshot that it shows, and so the objects that were replaced since it began. All readers of a
//! kind together keep at most what was replaced since the oldest began. If that exceeds the budget, and also the size
//! of the present objects of the kind, the oldest reader is cut off. This does not depend on its client, which may
//! never read again: the snapshot is dropped here, and the response fails when its next object is requested.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};

use apiloom_storage::cache::Item;
use parking_lot::Mutex;

use super::cached_object::{CachedObject, State};

/// Maximum number of objects in a batch. Finding the position in the snapshot again costs little in comparison.
const TAKEN_AT_ONCE: usize = 64;

/// A batch ends when it has so many bytes: its objects stay in memory until they are sent.
const TAKEN_BYTES: usize = 256 * 1024;

type Batch = VecDeque<Arc<Item<CachedObject>>>;

/// Objects of a reader that are still in the snapshot, in the order of their keys.
#[derive(Clone)]
pub(crate) enum Objects {
    /// Selected objects.
    Selected(Batch),
    /// All objects of a snapshot below a prefix, from a start key.
    Range {
        state: State,
        prefix: String,
        start: String,
    },
}

impl Objects {
    /// Upper bound for the number of objects.
    fn at_most(&self) -> usize {
        match self {
            Self::Selected(items) => items.len(),
            Self::Range { state, .. } => state.len(),
        }
    }

    /// Moves the next batch to `taken`; returns whether there may be more.
    fn take(&mut self, taken: &mut Batch) -> bool {
        let mut bytes = 0;
        let mut is_full = |item: &Item<CachedObject>, count: usize| {
            bytes += item
                .object
                .as_ref()
                .map_or(0, |object| object.json().whole().len());
            count >= TAKEN_AT_ONCE || bytes >= TAKEN_BYTES
        };
        match self {
            Self::Selected(items) => {
                while let Some(item) = items.pop_front() {
                    taken.push_back(item);
                    if taken.back().is_some_and(|item| is_full(item, taken.len())) {
                        return !items.is_empty();
                    }
                }
            }
            Self::Range {
                state,
                prefix,
                start,
            } => {
                for item in state.range(prefix, start) {
                    taken.push_back(Arc::clone(item));
                    if is_full(item, taken.len()) {
                        // NUL is the smallest byte, so this is the smallest key after that of the item.
                        start.clear();
                        start.push_str(&item.key);
                        start.push('\0');
                        return true;
                    }
                }
            }
        }
        false
    }
}

/// State of a reader: the objects that it has not taken yet.
enum ReaderState {
    Objects(Objects),
    /// All objects were taken; the snapshot is released.
    Empty,
    /// The reader was too slow, and its snapshot was dropped.
    CutOff,
}

/// State that a reader shares with [`Readers`], which may cut it off.
struct ReaderHandle {
    rest: Mutex<ReaderState>,
    /// The cache's count of replaced bytes when the reader began.
    began: u64,
}

/// Error of a reader that was cut off: the client read so slowly that its snapshot was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client reads too slowly: too much was replaced since its request began")]
pub(crate) struct TooSlow;

/// Reads the objects of a snapshot one by one.
pub(crate) struct Reader {
    shared: Arc<ReaderHandle>,
    next: Batch,
}

impl Clone for Reader {
    /// A reader of the same objects that is not registered, so that it is never cut off.
    fn clone(&self) -> Self {
        let rest = match &*self.shared.rest.lock() {
            ReaderState::Objects(objects) => ReaderState::Objects(objects.clone()),
            ReaderState::Empty => ReaderState::Empty,
            ReaderState::CutOff => ReaderState::CutOff,
        };
        let shared = ReaderHandle {
            rest: Mutex::new(rest),
            began: self.shared.began,
        };
        Self {
            shared: Arc::new(shared),
            next: self.next.clone(),
        }
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("at_most", &self.at_most())
            .finish_non_exhaustive()
    }
}

impl Reader {
    /// The next object; `None` at the end.
    ///
    /// # Errors
    /// [`TooSlow`] if the reader was cut off.
    pub(crate) fn take(&mut self) -> Option<Result<Arc<Item<CachedObject>>, TooSlow>> {
        if self.next.is_empty() {
            let mut rest = self.shared.rest.lock();
            match &mut *rest {
                ReaderState::Empty => return None,
                ReaderState::CutOff => return Some(Err(TooSlow)),
                ReaderState::Objects(objects) => {
                    if !objects.take(&mut self.next) {
                        *rest = ReaderState::Empty;
                    }
                }
            }
        }
        self.next.pop_front().map(Ok)
    }

    /// Upper bound for the number of objects left.
    pub(crate) fn at_most(&self) -> usize {
        let rest = match &*self.shared.rest.lock() {
            ReaderState::Objects(objects) => objects.at_most(),
            ReaderState::Empty | ReaderState::CutOff => 0,
        };
        self.next.len() + rest
    }
}

/// The readers of a kind, oldest first.
pub(crate) struct Readers {
    readers: Mutex<ReaderQueue>,
    /// Limit in bytes for replaced objects that readers keep alive; the size of the present objects if that is more.
    budget: u64,
}

#[derive(Default)]
struct ReaderQueue {
    readers: VecDeque<Weak<ReaderHandle>>,
    /// Length of the queue at which ended readers are removed.
    swept_at: usize,
}

impl fmt::Debug for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readers")
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

impl Readers {
    /// Readers with this budget in bytes.
    pub(crate) fn new(budget: usize) -> Self {
        Self {
            readers: Mutex::default(),
            budget: budget as u64,
        }
    }

    /// Starts a reader; `replaced` is the cache's count of replaced bytes when the snapshot was taken.
    pub(crate) fn read(&self, objects: Objects, replaced: u64) -> Reader {
        let shared = Arc::new(ReaderHandle {
            rest: Mutex::new(ReaderState::Objects(objects)),
            began: replaced,
        });
        self.register(&shared);
        Reader {
            shared,
            next: Batch::new(),
        }
    }

    fn register(&self, shared: &Arc<ReaderHandle>) {
        let mut registered = self.readers.lock();
        if registered.readers.len() >= registered.swept_at {
            registered
                .readers
                .retain(|reader| reader.strong_count() > 0);
            registered.swept_at = 2 * registered.readers.len() + TAKEN_AT_ONCE;
        }
        registered.readers.push_back(Arc::downgrade(shared));
    }

    /// Cuts off the oldest readers as long as the bytes replaced since they began exceed both the budget and
    /// `present`, the size of the present objects; returns how many were cut off.
    pub(crate) fn cut_off(&self, replaced: u64, present: u64) -> usize {
        let most = self.budget.max(present);
        let mut cut_off = 0;
        loop {
            let oldest = {
                let mut registered = self.readers.lock();
                let Some(first) = registered.readers.front() else {
                    return cut_off;
                };
                let oldest = first.upgrade();
                let is_over = oldest
                    .as_ref()
                    .is_none_or(|oldest| replaced.saturating_sub(oldest.began) > most);
                if !is_over {
                    return cut_off;
                }
                registered.readers.pop_front();
                oldest
            };
            let Some(oldest) = oldest else { continue };
            // Dropped after the locks are released, since it may be large.
            let rest = {
                let mut rest = oldest.rest.lock();
                match &*rest {
                    ReaderState::Objects(_) => std::mem::replace(&mut *rest, ReaderState::CutOff),
                    ReaderState::Empty | ReaderState::CutOff => continue,
                }
            };
            drop(rest);
            cut_off += 1;
        }
    }
}
