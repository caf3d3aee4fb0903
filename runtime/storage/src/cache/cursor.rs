//! A watcher's place in the ring.

use std::sync::Arc;

use super::history::{Change, Interest};
use super::waiters::Waiter;
use super::{Fill, Normalize, WatchCache};
use crate::Revision;

/// No more changes are taken at a time once they keep so many bytes of the past: a watcher that does not read keeps what it
/// took.
const TAKEN_BYTES: usize = 256 * 1024;

/// Why a cursor gives nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CursorEnd {
    /// The watcher did not read for so long that changes it had not taken have left the window.
    #[error("the watcher was too slow")]
    Lagged,
    /// The cache lost the store's history: it is filled anew, or cannot go on. [`WatchCache::fill`] says which.
    #[error("the cache lost the history of the store")]
    Lost,
}

/// The changes of one interest after some revision, one after the other.
#[derive(Debug)]
pub struct Cursor<N: Normalize> {
    cache: Arc<WatchCache<N>>,
    waiter: Arc<Waiter>,
    interest: Interest,
    /// The number of the first change that was not looked at.
    next: u64,
    /// Changes up to this revision are not wanted.
    after: Revision,
    epoch: u64,
}

impl<N: Normalize> Cursor<N> {
    pub(super) fn new(
        cache: Arc<WatchCache<N>>,
        waiter: Arc<Waiter>,
        interest: Interest,
        next: u64,
        after: Revision,
        epoch: u64,
    ) -> Self {
        Self {
            cache,
            waiter,
            interest,
            next,
            after,
            epoch,
        }
    }

    /// Takes up to `most` changes that are there, fewer if they are large, and gives the revision up to which everything of interest was taken.
    ///
    /// # Errors
    /// [`CursorEnd`]; what was taken before stays valid, and nothing is taken with an error.
    pub fn take(
        &mut self,
        most: usize,
        taken: &mut Vec<Arc<Change<N::Object>>>,
    ) -> Result<Revision, CursorEnd> {
        // Under the lock every change in the ring has been announced, so what is not pending does not matter.
        let history = self.cache.history.read();
        let pending = self.waiter.take_pending();
        if self.cache.epoch() != self.epoch {
            return Err(CursorEnd::Lost);
        }
        let present = self.cache.snapshot().revision();
        let Some(pending) = pending.filter(|number| *number < history.end()) else {
            self.next = history.end();
            return Ok(present);
        };
        let begin = self.next.max(pending);
        if begin < history.first() {
            self.cache.counters.ended_watchers.add(1);
            return Err(CursorEnd::Lagged);
        }
        let mut number = begin;
        let (mut count, mut bytes) = (0, 0);
        for change in history.from(begin) {
            if count == most || bytes >= TAKEN_BYTES {
                self.next = number;
                self.waiter.leave(number);
                // Everything before the first one that was left.
                return Ok(Revision(change.revision.0 - 1));
            }
            number += 1;
            if change.revision > self.after && self.interest.covers(&change.key) {
                taken.push(Arc::clone(change));
                count += 1;
                bytes += change.bytes;
            }
        }
        self.next = number;
        Ok(present)
    }

    /// The oldest revision from which the cache knows all changes.
    pub fn oldest(&self) -> Revision {
        self.cache.history.read().oldest()
    }

    /// Up to where there is nothing to take, when there is nothing.
    pub fn idle_at(&mut self) -> Option<Revision> {
        let history = self.cache.history.read();
        match self.waiter.take_pending() {
            None if self.cache.epoch() == self.epoch => Some(self.cache.snapshot().revision()),
            None => None,
            Some(number) => {
                drop(history);
                self.waiter.leave(number);
                None
            }
        }
    }

    /// Whether the cache is filled now, and if not, why.
    pub fn fill(&self) -> Fill {
        self.cache.fill.borrow().clone()
    }

    #[cfg(test)]
    pub(super) fn interest(&self) -> &Interest {
        &self.interest
    }

    /// Waits until there may be something to take. Comes back at once when something was left.
    pub async fn changed(&self) {
        self.waiter.told().await;
    }
}

impl<N: Normalize> Drop for Cursor<N> {
    fn drop(&mut self) {
        // Whoever is cut off because he took nothing for so long never learns that he lagged.
        if self.waiter.is_behind(self.cache.history.read().first()) {
            self.cache.counters.ended_watchers.add(1);
        }
        self.cache
            .waiters
            .lock()
            .remove(&self.interest, &self.waiter);
    }
}
