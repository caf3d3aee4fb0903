//! Watches of a cache: a cursor is a watcher's position in the ring of changes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::history::{Change, Interest};
use super::normalize::Normalize;
use super::snapshot::Snapshot;
use super::waiters::Waiter;
use super::window::OutsideWindow;
use super::{Fill, WatchCache};
use crate::Revision;

/// Maximum bytes of history that one call of `take` holds: a watcher that does not read keeps what it took in memory.
const TAKEN_BYTES: usize = 256 * 1024;

/// Why a cursor has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CursorEnd {
    /// The watcher was too slow: changes that it had not read have left the window.
    #[error("the watcher was too slow")]
    Lagged,
    /// The cache lost the store's history. [`WatchCache::fill`] says whether it is being filled again or cannot continue.
    #[error("the cache lost the history of the store")]
    Lost,
}

/// An iterator over the changes that match one interest after some revision.
#[derive(Debug)]
pub struct Cursor<N: Normalize> {
    cache: Arc<WatchCache<N>>,
    waiter: Arc<Waiter>,
    interest: Interest,
    /// The number of the first change that was not examined.
    next: u64,
    /// Changes up to this revision are skipped.
    after: Revision,
    epoch: u64,
}

/// A state and a cursor over the changes after it.
pub type StateAndChanges<N> = (Arc<Snapshot<<N as Normalize>::Object>>, Cursor<N>);

impl<N: Normalize> WatchCache<N> {
    /// The changes that match an interest after a revision, or from now on.
    ///
    /// # Errors
    /// [`OutsideWindow::NotFilled`] and [`OutsideWindow::TooOld`]. For a revision in the future the cursor skips all
    /// changes up to it.
    pub fn watch(
        self: &Arc<Self>,
        interest: Interest,
        after: Option<Revision>,
    ) -> Result<Cursor<N>, OutsideWindow> {
        Ok(self.watch_with_state(interest, after)?.1)
    }

    /// The current state and the changes after it, without a gap and without an overlap.
    ///
    /// # Errors
    /// [`OutsideWindow::NotFilled`], and with `after` as [`WatchCache::watch`].
    pub fn watch_with_state(
        self: &Arc<Self>,
        interest: Interest,
        after: Option<Revision>,
    ) -> Result<StateAndChanges<N>, OutsideWindow> {
        // Registers before it reads the position: a change in between causes an unnecessary wake-up instead of a missed
        // one.
        let waiter = self.waiters.lock().register(&interest);
        let history = self.history.read();
        let snapshot = self.snapshot();
        let present = snapshot.revision();
        let after = after.unwrap_or(present);
        let place = if after > present && after.0 <= self.gone.load(Ordering::Relaxed) {
            Err(OutsideWindow::TooOld {
                requested: after,
                oldest: present,
            })
        } else {
            history.place_after(after)
        };
        let place = place.map(|next| {
            // Changes already in the ring were announced before this watcher registered.
            if next < history.end() {
                waiter.leave(next);
            }
            (next, self.epoch())
        });
        drop(history);
        match place {
            Ok((next, epoch)) => {
                let cursor = Cursor {
                    cache: Arc::clone(self),
                    waiter,
                    interest,
                    next,
                    after,
                    epoch,
                };
                Ok((snapshot, cursor))
            }
            Err(error) => {
                self.waiters.lock().remove(&interest, &waiter);
                Err(error)
            }
        }
    }
}

impl<N: Normalize> Cursor<N> {
    /// Takes up to `most` available changes, fewer if they are large, and returns the revision up to which all matching
    /// changes were taken.
    ///
    /// # Errors
    /// [`CursorEnd`]. Changes taken earlier stay valid; none are taken when an error is returned.
    pub fn take(
        &mut self,
        most: usize,
        taken: &mut impl Extend<Arc<Change<N::Object>>>,
    ) -> Result<Revision, CursorEnd> {
        // Under the lock every change in the ring has been announced, so only pending changes matter.
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
                // The revision before the first change that was not taken.
                return Ok(Revision(change.revision.0 - 1));
            }
            number += 1;
            if change.revision > self.after && self.interest.covers(&change.key) {
                taken.extend([Arc::clone(change)]);
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

    /// The revision up to which the cursor has read, if no change is available now.
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
        self.cache.fill()
    }

    #[cfg(test)]
    pub(super) fn interest(&self) -> &Interest {
        &self.interest
    }

    /// Waits until a change may be available, or the watch has ended. Returns at once if the last `take` left some, and the
    /// first time if there are some.
    pub async fn changed(&self) {
        self.waiter.told().await;
    }
}

impl<N: Normalize> Drop for Cursor<N> {
    fn drop(&mut self) {
        // A cursor that is ended while its client does not read would otherwise not be reported as too slow.
        if self.waiter.is_behind(self.cache.history.read().first()) {
            self.cache.counters.ended_watchers.add(1);
        }
        self.cache
            .waiters
            .lock()
            .remove(&self.interest, &self.waiter);
    }
}
