//! Encodings of changes: what was made of a change for one watcher is kept with it for the others.
//!
//! They are kept for a few seconds, up to a limit in bytes for each cache, and count in the budget of the histories. The
//! oldest ones go first.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::budget::Budget;

/// Maximum encodings of one change. Most changes have one.
const MOST_OF_A_CHANGE: usize = 8;

/// Maximum bytes of a cache's encodings: the states before and after a change of an object of the largest size, in two
/// forms. The newest encoding is always kept.
const MOST_BYTES: usize = 12 << 20;

/// How long an encoding is kept: longer than the watchers of a change are apart from each other.
const KEPT_FOR: Duration = Duration::from_secs(3);

/// What an encoding is of, besides its change. The numbers are the caller's; equal keys stand for equal bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodingKey(pub u64, pub u64);

#[derive(Debug)]
struct Encoding {
    key: EncodingKey,
    at: Instant,
    bytes: Bytes,
}

/// The encodings of one change, oldest first.
#[derive(Debug, Default)]
pub(super) struct Encodings(Mutex<Vec<Encoding>>);

impl Encodings {
    fn find(&self, key: EncodingKey, max_age: Option<Duration>) -> Option<Bytes> {
        let kept = self.0.lock();
        let found = kept.iter().find(|encoding| encoding.key == key)?;
        let is_fresh = max_age.is_none_or(|age| found.at.elapsed() < age);
        is_fresh.then(|| found.bytes.clone())
    }

    fn keep(&self, encoding: Encoding) {
        let mut kept = self.0.lock();
        // An older one of the same key, or the oldest one of all, makes room.
        let same = kept.iter().position(|other| other.key == encoding.key);
        let full = (kept.len() == MOST_OF_A_CHANGE).then_some(0);
        if let Some(place) = same.or(full) {
            kept.remove(place);
        }
        kept.push(encoding);
    }

    fn clear(&self) {
        let cleared = std::mem::take(&mut *self.0.lock());
        // Freed after the lock is let go.
        drop(cleared);
    }
}

/// The changes of a cache that have encodings.
#[derive(Debug)]
pub(super) struct EncodedChanges<C> {
    kept: Mutex<Kept<C>>,
    budget: Arc<Budget>,
}

#[derive(Debug)]
struct Kept<C> {
    /// One entry for each encoding, oldest first.
    entries: VecDeque<Entry<C>>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry<C> {
    change: Weak<C>,
    bytes: usize,
    at: Instant,
}

impl<C: AsRef<Encodings>> EncodedChanges<C> {
    pub(super) fn new(budget: Arc<Budget>) -> Self {
        let kept = Kept {
            entries: VecDeque::new(),
            bytes: 0,
        };
        Self {
            kept: Mutex::new(kept),
            budget,
        }
    }

    /// The encoding of a change under a key; made now unless one is kept that is younger than `max_age`. Two callers may
    /// make it at the same time.
    pub(super) fn get(
        &self,
        change: &Arc<C>,
        key: EncodingKey,
        max_age: Option<Duration>,
        make: impl FnOnce() -> Vec<u8>,
    ) -> Bytes {
        if let Some(known) = C::as_ref(change).find(key, max_age) {
            return known;
        }
        let made = make();
        let bytes = made.capacity() + size_of::<Encoding>() + size_of::<Entry<C>>();
        let (made, at) = (Bytes::from(made), Instant::now());
        C::as_ref(change).keep(Encoding {
            key,
            at,
            bytes: made.clone(),
        });
        self.budget.take(bytes);
        let mut kept = self.kept.lock();
        kept.bytes += bytes;
        let change = Arc::downgrade(change);
        kept.entries.push_back(Entry { change, bytes, at });
        let is_over = |kept: &Kept<C>| {
            let over = kept.bytes > MOST_BYTES || self.budget.is_exceeded();
            over && kept.entries.len() > 1
        };
        let released = self.release(&mut kept, is_over);
        drop(kept);
        drop(released);
        made
    }

    /// Releases the encodings that were kept long enough.
    pub(super) fn trim(&self, now: Instant) {
        let is_old = |kept: &Kept<C>| {
            let oldest = kept.entries.front();
            oldest.is_some_and(|oldest| now.saturating_duration_since(oldest.at) >= KEPT_FOR)
        };
        let released = self.release(&mut self.kept.lock(), is_old);
        drop(released);
    }

    /// Removes the oldest entries; the changes whose encodings are to be cleared without the lock.
    fn release(
        &self,
        kept: &mut Kept<C>,
        is_over: impl Fn(&Kept<C>) -> bool,
    ) -> ReleasedChanges<C> {
        let mut released = Vec::new();
        while is_over(kept) {
            let Some(oldest) = kept.entries.pop_front() else {
                break;
            };
            kept.bytes -= oldest.bytes;
            self.budget.give(oldest.bytes);
            released.extend(oldest.change.upgrade());
        }
        if kept.entries.is_empty() {
            kept.entries = VecDeque::new();
        }
        ReleasedChanges(released)
    }

    /// The memory of the encodings.
    pub(super) fn bytes(&self) -> usize {
        self.kept.lock().bytes
    }
}

impl<C> Drop for EncodedChanges<C> {
    fn drop(&mut self) {
        self.budget.give(self.kept.get_mut().bytes);
    }
}

/// Changes whose encodings are cleared when this is dropped.
struct ReleasedChanges<C: AsRef<Encodings>>(Vec<Arc<C>>);

impl<C: AsRef<Encodings>> Drop for ReleasedChanges<C> {
    fn drop(&mut self) {
        self.0.iter().for_each(|change| C::as_ref(change).clear());
    }
}
