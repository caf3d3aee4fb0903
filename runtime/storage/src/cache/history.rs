//! The ring of recent changes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::budget::{Budget, Limits};
use super::encodings::Encodings;
use super::item::Item;
use super::window::OutsideWindow;
use crate::Revision;

/// Maximum age of a change in the window: as long as Kubernetes' own watch cache guarantees to clients that reconnect.
const WINDOW: Duration = Duration::from_secs(75);

/// Minimum changes that stay regardless of their age, so that a client of a resource with few writes need not list
/// again; kube-apiserver's value.
const LEAST_CHANGES: usize = 100;

/// The allocator's overhead per allocation.
pub(super) const ALLOCATION: usize = 16;

/// The reference counts of an `Arc`.
pub(super) const COUNTERS: usize = 16;

/// One change of one object.
#[derive(Debug)]
pub struct Change<O> {
    /// The key that changed.
    pub key: Arc<str>,
    /// The revision of the change.
    pub revision: Revision,
    /// The object before the change; `None` for a creation.
    pub old: Option<Arc<Item<O>>>,
    /// The object after the change; `None` for a deletion.
    pub new: Option<Arc<Item<O>>>,
    pub(super) at: Instant,
    /// The memory that this change keeps alive, without its encodings.
    pub(super) bytes: usize,
    pub(super) encodings: Encodings,
}

impl<O> AsRef<Encodings> for Change<O> {
    fn as_ref(&self) -> &Encodings {
        &self.encodings
    }
}

/// Which changes a watcher selects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Interest {
    /// Every change.
    Everything,
    /// Changes of keys directly below this prefix, which ends with a slash: the keys of a namespace.
    Below(Arc<str>),
    /// Changes of one key.
    Key(Arc<str>),
    /// Changes of objects that had or have a value in an index. It may deliver other changes as well, but none outside
    /// the prefix.
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
    /// Whether a change of this key may match.
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

/// A key up to and including its last slash.
pub(super) fn folder(key: &str) -> &str {
    key.rfind('/').map_or("", |end| &key[..=end])
}

/// The changes in the window, oldest first. Changes are numbered without gaps for the whole life of the cache.
#[derive(Debug)]
pub(super) struct History<O> {
    changes: VecDeque<Arc<Change<O>>>,
    /// False before the first fill, and after the store compacted changes that the cache has not seen.
    is_filled: bool,
    /// The number of the oldest change in the window.
    first: u64,
    /// Every change after this revision is in the window.
    oldest: Revision,
    bytes: usize,
    budget: Arc<Budget>,
    /// Minimum changes that are kept regardless of their age.
    least: usize,
    most: usize,
    capacity: Capacity,
}

/// The capacity of the ring in changes. It doubles when the window is full and halves when little of it is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// The capacity, in changes.
    pub changes: usize,
    /// How often the capacity was increased.
    pub increases: u64,
    /// How often the capacity was decreased.
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
    /// Marks the history as unknown until it is restarted.
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

    /// Adds a change, removes those that leave the window, and returns its number.
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

    /// Removes the changes that have left the window, and releases their share of the budget.
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

    /// The memory that a change keeps alive: the old object, the change, and up to two slots of the ring, which may be
    /// up to twice as large as its content.
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
            // The newest change stays: its watchers have not been able to read it yet.
            || self.changes.len() > 1 && self.budget.wants_back_from(self.bytes)
    }

    fn drop_oldest(&mut self) {
        if let Some(change) = self.changes.pop_front() {
            self.first += 1;
            self.oldest = change.revision;
            self.forget(Self::cost(&change));
        }
    }

    /// Removes the changes up to a revision.
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

    /// Restarts at a state whose past is unknown. The numbers continue, so that no cursor mistakes an old position for
    /// a new one.
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
