//! Readers of states: lists, and the initial events of watches, while they are sent. What slow ones keep alive is bounded.
//!
//! A reader holds the state that it shows, so that it keeps the objects that were replaced since it began. All readers of
//! a kind together keep no more than what was replaced since the oldest began. When that is more than the budget, or than
//! the present objects of the kind if they are more, the oldest reader is cut off. This needs no help from its client,
//! which may never read again: the state is dropped here, and the answer ends with an error when it is next asked for.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};

use apiloom_storage::cache::Item;
use parking_lot::Mutex;

use super::cached_object::{CachedObject, State};

/// How many objects are taken from a state at a time: finding the place again costs little beside so many.
const TAKEN_AT_ONCE: usize = 64;

/// No more objects are taken at a time once they have so many bytes: what is taken stays until it is sent.
const TAKEN_BYTES: usize = 256 * 1024;

type Taken = VecDeque<Arc<Item<CachedObject>>>;

/// Objects of the cache, in the order of their keys.
#[derive(Clone)]
pub(crate) enum Objects {
    /// These.
    Chosen(Taken),
    /// All objects of a state below a prefix, from a key on.
    Below {
        state: State,
        prefix: String,
        start: String,
    },
}

impl Objects {
    /// As many as there may be.
    fn at_most(&self) -> usize {
        match self {
            Self::Chosen(items) => items.len(),
            Self::Below { state, .. } => state.len(),
        }
    }

    /// Takes the next ones; says whether there may be more.
    fn take(&mut self, taken: &mut Taken) -> bool {
        let mut bytes = 0;
        let mut is_full = |item: &Item<CachedObject>, count: usize| {
            bytes += item
                .object
                .as_ref()
                .map_or(0, |object| object.json().whole().len());
            count >= TAKEN_AT_ONCE || bytes >= TAKEN_BYTES
        };
        match self {
            Self::Chosen(items) => {
                while let Some(item) = items.pop_front() {
                    taken.push_back(item);
                    if taken.back().is_some_and(|item| is_full(item, taken.len())) {
                        return !items.is_empty();
                    }
                }
            }
            Self::Below {
                state,
                prefix,
                start,
            } => {
                for item in state.range(prefix, start) {
                    taken.push_back(Arc::clone(item));
                    if is_full(item, taken.len()) {
                        // NUL is the smallest byte, so this is the first key behind the last.
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

/// What a reader has not taken yet.
enum Rest {
    Objects(Objects),
    /// Everything was taken. Nothing keeps the state alive that is not sent any more.
    Nothing,
    /// It was too slow.
    CutOff,
}

/// What a reader shares with those who may cut it off.
struct Shared {
    rest: Mutex<Rest>,
    /// How many bytes the cache had replaced when the reader began.
    began: u64,
}

/// The client read so slowly that its state was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client reads too slowly: too much was replaced since its request began")]
pub(crate) struct TooSlow;

/// Gives objects one after the other.
pub(crate) struct Reader {
    shared: Arc<Shared>,
    next: Taken,
}

impl Clone for Reader {
    /// A reader of the same objects that is not registered, so it is never cut off.
    fn clone(&self) -> Self {
        let rest = match &*self.shared.rest.lock() {
            Rest::Objects(objects) => Rest::Objects(objects.clone()),
            Rest::Nothing => Rest::Nothing,
            Rest::CutOff => Rest::CutOff,
        };
        let shared = Shared {
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
    /// The next object; `None` when there is none left.
    ///
    /// # Errors
    /// [`TooSlow`].
    pub(crate) fn take(&mut self) -> Option<Result<Arc<Item<CachedObject>>, TooSlow>> {
        if self.next.is_empty() {
            let mut rest = self.shared.rest.lock();
            match &mut *rest {
                Rest::Nothing => return None,
                Rest::CutOff => return Some(Err(TooSlow)),
                Rest::Objects(objects) => {
                    if !objects.take(&mut self.next) {
                        *rest = Rest::Nothing;
                    }
                }
            }
        }
        self.next.pop_front().map(Ok)
    }

    /// As many objects as there may be.
    pub(crate) fn at_most(&self) -> usize {
        let rest = match &*self.shared.rest.lock() {
            Rest::Objects(objects) => objects.at_most(),
            Rest::Nothing | Rest::CutOff => 0,
        };
        self.next.len() + rest
    }
}

/// The readers of a kind, the oldest first.
pub(crate) struct Readers {
    readers: Mutex<Registered>,
    /// How many bytes they may keep, unless the present objects are more.
    budget: u64,
}

#[derive(Default)]
struct Registered {
    readers: VecDeque<Weak<Shared>>,
    /// At this length those that have ended are removed.
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
    /// Readers that may keep so many bytes.
    pub(crate) fn new(budget: usize) -> Self {
        Self {
            readers: Mutex::default(),
            budget: budget as u64,
        }
    }

    /// Begins to read; `replaced` is how many bytes the cache had replaced before the state was taken.
    pub(crate) fn read(&self, objects: Objects, replaced: u64) -> Reader {
        let shared = Arc::new(Shared {
            rest: Mutex::new(Rest::Objects(objects)),
            began: replaced,
        });
        self.register(&shared);
        Reader {
            shared,
            next: Taken::new(),
        }
    }

    fn register(&self, shared: &Arc<Shared>) {
        let mut registered = self.readers.lock();
        if registered.readers.len() >= registered.swept_at {
            registered
                .readers
                .retain(|reader| reader.strong_count() > 0);
            registered.swept_at = 2 * registered.readers.len() + TAKEN_AT_ONCE;
        }
        registered.readers.push_back(Arc::downgrade(shared));
    }

    /// Cuts off the oldest readers as long as more than the budget, and than what is present, was replaced since they
    /// began; says how many.
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
            // Dropped when the locks are free: it may be large.
            let rest = {
                let mut rest = oldest.rest.lock();
                match &*rest {
                    Rest::Objects(_) => std::mem::replace(&mut *rest, Rest::CutOff),
                    Rest::Nothing | Rest::CutOff => continue,
                }
            };
            drop(rest);
            cut_off += 1;
        }
    }
}
