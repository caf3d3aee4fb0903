//! The ring of recent changes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::OutsideWindow;
use super::budget::{Budget, Limits};
use super::snapshot::Item;
use crate::Revision;

/// The age at which changes leave the window: as long as Kubernetes' own watch cache promises them to clients that
/// reconnect.
const WINDOW: Duration = Duration::from_secs(75);

/// So many changes stay whatever their age, so that a client of a quiet resource need not list anew; as many as upstream
/// keeps.
const LEAST_CHANGES: usize = 100;

/// What an allocation costs beside what is in it.
pub(super) const ALLOCATION: usize = 16;

/// What a counted pointer's counters cost.
pub(super) const COUNTERS: usize = 16;

/// One change of one object.
#[derive(Debug)]
pub struct Change<O> {
    /// The key that changed.
    pub key: Arc<str>,
    /// The revision of the change.
    pub revision: Revision,
    /// What was there before; `None` for a creation.
    pub old: Option<Arc<Item<O>>>,
    /// What is there now; `None` for a deletion.
    pub new: Option<Arc<Item<O>>>,
    pub(super) at: Instant,
    /// The bytes that this change keeps alive.
    pub(super) bytes: usize,
}

/// What a watcher wants to hear of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Interest {
    /// Every change.
    Everything,
    /// Changes of keys directly below this prefix, which ends with a slash: those of a namespace.
    Below(Arc<str>),
    /// Changes of one key.
    Key(Arc<str>),
    /// Changes of objects that had or have a value in an index. Others may be delivered as well, but none outside the
    /// prefix.
    Indexed {
        /// The number of the index.
        index: u16,
        /// The value.
        value: Arc<str>,
        /// As in [`Interest::Below`]; `None` for objects under any key.
        below: Option<Arc<str>>,
    },
}

impl Interest {
    /// Whether a change of a key may matter.
    pub(super) fn covers(&self, key: &str) -> bool {
        match self {
            Interest::Everything | Interest::Indexed { below: None, .. } => true,
            Interest::Below(prefix)
            | Interest::Indexed {
                below: Some(prefix),
                ..
            } => folder(key) == prefix.as_ref(),
            Interest::Key(wanted) => key == wanted.as_ref(),
        }
    }
}

/// A key up to and with its last slash.
pub(super) fn folder(key: &str) -> &str {
    key.rfind('/').map_or("", |end| &key[..=end])
}

/// The changes in the window, oldest first. Each has a number; numbers count up without a gap for as long as the cache
/// lives.
#[derive(Debug)]
pub(super) struct History<O> {
    changes: VecDeque<Arc<Change<O>>>,
    /// Whether anything is known: not before the first fill, and not after what the cache has not seen was forgotten.
    is_filled: bool,
    /// The number of the oldest change that is here.
    first: u64,
    /// Every change after this revision is here.
    oldest: Revision,
    bytes: usize,
    budget: Arc<Budget>,
    /// As many changes are kept however old they are.
    least: usize,
    most: usize,
    capacity: Capacity,
}

/// How many changes the ring has room for: twice as many whenever there are more in the window, half as many when it is
/// hardly used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// Changes.
    pub changes: usize,
    /// How often it grew.
    pub increases: u64,
    /// How often it shrank.
    pub decreases: u64,
}

impl<O> History<O> {
    pub(super) fn new(limits: Limits) -> Self {
        limits.budget.join();
        let most = limits.most_changes.max(1);
        let least = LEAST_CHANGES.min(most);
        Self {
            changes: VecDeque::new(),
            is_filled: false,
            first: 0,
            oldest: Revision(0),
            bytes: 0,
            budget: limits.budget,
            least,
            most,
            capacity: Capacity {
                changes: least,
                ..Capacity::default()
            },
        }
    }

    pub(super) fn is_filled(&self) -> bool {
        self.is_filled
    }
    /// From now on nothing is known, until the history is restarted.
    pub(super) fn close(&mut self) {
        self.is_filled = false;
    }
    pub(super) fn oldest(&self) -> Revision {
        self.oldest
    }
    pub(super) fn len(&self) -> usize {
        self.changes.len()
    }
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
    /// The number of the oldest change.
    pub(super) fn first(&self) -> u64 {
        self.first
    }
    /// The number of the next change.
    pub(super) fn end(&self) -> u64 {
        self.first + self.changes.len() as u64
    }

    /// The changes from a number on.
    pub(super) fn from(&self, number: u64) -> impl Iterator<Item = &Arc<Change<O>>> {
        let skip = usize::try_from(number.saturating_sub(self.first)).unwrap_or(usize::MAX);
        self.changes.range(skip.min(self.changes.len())..)
    }

    /// The changes after a revision.
    pub(super) fn after(&self, revision: Revision) -> Vec<Arc<Change<O>>> {
        let begin = self.begin_after(revision);
        self.changes.range(begin..).cloned().collect()
    }

    /// The number of the first change after a revision.
    pub(super) fn place_after(&self, revision: Revision) -> Result<u64, OutsideWindow> {
        if !self.is_filled {
            return Err(OutsideWindow::NotFilled);
        }
        if revision < self.oldest {
            return Err(OutsideWindow::TooOld {
                requested: revision,
                oldest: self.oldest,
            });
        }
        Ok(self.first + self.begin_after(revision) as u64)
    }

    fn begin_after(&self, revision: Revision) -> usize {
        self.changes
            .partition_point(|change| change.revision <= revision)
    }

    pub(super) fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// Adds a change and drops those that leave the window; gives its number.
    pub(super) fn push(&mut self, change: Arc<Change<O>>) -> u64 {
        let now = change.at;
        let bytes = Self::cost(&change);
        self.bytes += bytes;
        self.budget.take(bytes);
        self.changes.push_back(change);
        self.drop_what_is_over(now);
        if self.changes.len() > self.capacity.changes {
            self.capacity.changes = (self.capacity.changes * 2).min(self.most);
            self.capacity.increases += 1;
        }
        self.end() - 1
    }

    /// Drops what has left the window since the last change, and gives back what it took.
    pub(super) fn trim(&mut self, now: Instant) {
        self.drop_what_is_over(now);
        while self.capacity.changes > self.least && self.changes.len() * 4 < self.capacity.changes {
            self.capacity.changes = (self.capacity.changes / 2).max(self.least);
            self.capacity.decreases += 1;
            self.changes.shrink_to(self.capacity.changes);
        }
    }

    /// Whether [`History::trim`] would do something.
    pub(super) fn needs_trimming(&self, now: Instant) -> bool {
        self.is_over(now)
            || self.capacity.changes > self.least && self.changes.len() * 4 < self.capacity.changes
    }

    /// What a change keeps alive: the old object, itself, and its place, of which a ring that grew has up to twice as many
    /// as it needs.
    fn cost(change: &Change<O>) -> usize {
        change.bytes
            + size_of::<Change<O>>()
            + COUNTERS
            + ALLOCATION
            + 2 * size_of::<Arc<Change<O>>>()
    }

    fn drop_what_is_over(&mut self, now: Instant) {
        while self.is_over(now) {
            self.drop_oldest();
        }
    }

    fn is_over(&self, now: Instant) -> bool {
        let Some(oldest) = self.changes.front() else {
            return false;
        };
        let aged = now.saturating_duration_since(oldest.at) > WINDOW;
        self.changes.len() > self.most
            || self.changes.len() > self.least && aged
            // The newest stays: whoever waits for it has not had a chance to read it.
            || self.changes.len() > 1 && self.budget.wants_back_from(self.bytes)
    }

    fn drop_oldest(&mut self) {
        if let Some(change) = self.changes.pop_front() {
            self.first += 1;
            self.oldest = change.revision;
            self.forget(Self::cost(&change));
        }
    }

    /// Drops the changes up to a revision.
    pub(super) fn forget_until(&mut self, revision: Revision) {
        while (self.changes.front()).is_some_and(|oldest| oldest.revision <= revision) {
            self.drop_oldest();
        }
        self.oldest = self.oldest.max(revision);
    }

    fn forget(&mut self, bytes: usize) {
        self.bytes -= bytes;
        self.budget.give(bytes);
    }

    /// Begins anew at a state of which the past is unknown. Numbers go on, so that no cursor takes an old place for a
    /// new one.
    pub(super) fn restart(&mut self, at: Revision) {
        self.is_filled = true;
        self.first = self.end();
        self.changes.clear();
        self.changes.shrink_to(self.least);
        self.forget(self.bytes);
        self.oldest = at;
    }
}

impl<O> Drop for History<O> {
    fn drop(&mut self) {
        self.forget(self.bytes);
        self.budget.leave();
    }
}
