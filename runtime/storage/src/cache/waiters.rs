//! The registry of waiting watchers and of the changes that they wait for.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::Notify;

use super::history::{Interest, folder};
use super::normalize::INDEX_GROUP;
use super::sync::AtomicU64;

/// The value of `pending` when no change is pending.
const NONE: u64 = u64::MAX;

/// The registration of one watcher.
#[derive(Debug)]
pub(super) struct Waiter {
    /// The number of the oldest matching change that was not taken.
    pending: AtomicU64,
    notify: Notify,
}

impl Waiter {
    fn mark(&self, number: u64) {
        self.pending.fetch_min(number, Ordering::AcqRel);
    }

    /// Returns the number of the oldest pending change and resets it.
    pub(super) fn take_pending(&self) -> Option<u64> {
        Some(self.pending.swap(NONE, Ordering::AcqRel)).filter(|number| *number != NONE)
    }

    /// Marks changes from a number on as pending again.
    pub(super) fn leave(&self, number: u64) {
        self.mark(number);
        self.notify.notify_one();
    }

    /// Whether a change before this number was announced and not taken.
    pub(super) fn is_behind(&self, number: u64) -> bool {
        self.pending.load(Ordering::Acquire) < number
    }

    /// Waits for a change or for the end of the watch.
    pub(super) async fn told(&self) {
        self.notify.notified().await;
    }
}

type Seats = Vec<Arc<Waiter>>;

/// The waiting watchers by what they wait for. Changes are announced in two steps: watchers are marked while the
/// history is locked, so that a reader of the history knows of all changes, and woken after it is unlocked, so that
/// none of them waits for the lock.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    everything: Seats,
    below: HashMap<Arc<str>, Seats>,
    keys: HashMap<Arc<str>, Seats>,
    indexed: ByValue,
    /// By the prefix of the indexed objects.
    indexed_below: HashMap<Arc<str>, ByValue>,
    /// The number of waiters for an index of each group.
    groups: BTreeMap<u16, usize>,
}

/// Seats by the number of an index and a value in it. No list is empty.
#[derive(Debug, Default)]
struct ByValue(HashMap<u16, HashMap<Arc<str>, Seats>>);

impl ByValue {
    fn get(&self, index: u16, value: &str) -> Option<&Seats> {
        self.0.get(&index)?.get(value)
    }

    fn entry(&mut self, index: u16, value: &Arc<str>) -> &mut Seats {
        let values = self.0.entry(index).or_default();
        values.entry(Arc::clone(value)).or_default()
    }

    fn leave(&mut self, index: u16, value: &Arc<str>, waiter: &Arc<Waiter>) {
        if let Some(values) = self.0.get_mut(&index) {
            leave_one_of(values, value, waiter);
            if values.is_empty() {
                self.0.remove(&index);
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = &Seats> {
        self.0.values().flat_map(HashMap::values)
    }
}

/// The seats that were marked, each once.
#[derive(Default)]
pub(super) struct MarkedSeats<'a> {
    known: HashSet<*const Seats>,
    seats: Vec<&'a Seats>,
}

impl<'a> MarkedSeats<'a> {
    fn mark(&mut self, seats: &'a Seats, number: u64) {
        // Numbers only grow: a seat that was marked for an earlier change reads the later ones as well.
        if self.known.insert(seats) {
            seats.iter().for_each(|waiter| waiter.mark(number));
            self.seats.push(seats);
        }
    }

    pub(super) fn tell(self) {
        let waiters = self.seats.into_iter().flatten();
        waiters.for_each(|waiter| waiter.notify.notify_one());
    }
}

impl Waiters {
    pub(super) fn register(&mut self, interest: &Interest) -> Arc<Waiter> {
        let waiter = Arc::new(Waiter {
            pending: AtomicU64::new(NONE),
            notify: Notify::new(),
        });
        let seats = match interest {
            Interest::Everything => &mut self.everything,
            Interest::Below(prefix) => self.below.entry(Arc::clone(prefix)).or_default(),
            Interest::Key(key) => self.keys.entry(Arc::clone(key)).or_default(),
            Interest::Indexed {
                index,
                value,
                below,
            } => {
                let indexed = match below {
                    None => &mut self.indexed,
                    Some(prefix) => self.indexed_below.entry(Arc::clone(prefix)).or_default(),
                };
                *self.groups.entry(group_of(*index)).or_default() += 1;
                indexed.entry(*index, value)
            }
        };
        // Most have one watcher.
        if seats.is_empty() {
            seats.reserve_exact(1);
        }
        seats.push(Arc::clone(&waiter));
        waiter
    }

    pub(super) fn remove(&mut self, interest: &Interest, waiter: &Arc<Waiter>) {
        if let Interest::Indexed { index, .. } = interest {
            let group = group_of(*index);
            if let Some(waiting) = self.groups.get_mut(&group) {
                *waiting -= 1;
                if *waiting == 0 {
                    self.groups.remove(&group);
                }
            }
        }
        match interest {
            Interest::Everything => leave(&mut self.everything, waiter),
            Interest::Below(prefix) => leave_one_of(&mut self.below, prefix, waiter),
            Interest::Key(key) => leave_one_of(&mut self.keys, key, waiter),
            Interest::Indexed {
                index,
                value,
                below: None,
            } => self.indexed.leave(*index, value, waiter),
            Interest::Indexed {
                index,
                value,
                below: Some(prefix),
            } => {
                if let Some(indexed) = self.indexed_below.get_mut(prefix) {
                    indexed.leave(*index, value, waiter);
                    if indexed.0.is_empty() {
                        self.indexed_below.remove(prefix);
                    }
                }
            }
        }
    }

    /// Whether a watcher waits for a kept index: if not, no index values need to be read from objects.
    pub(super) fn wants_indexes(&self) -> bool {
        self.groups.contains_key(&0)
    }

    /// The groups of indexes whose values must be computed because a watcher waits for one.
    pub(super) fn derived_groups(&self) -> impl Iterator<Item = u16> {
        self.groups.keys().copied().filter(|group| *group > 0)
    }

    /// Marks every watcher that waits for a change of this key.
    pub(super) fn mark<'a>(&'a self, key: &str, number: u64, marked: &mut MarkedSeats<'a>) {
        marked.mark(&self.everything, number);
        if let Some(seats) = self.keys.get(key) {
            marked.mark(seats, number);
        }
        if !self.below.is_empty()
            && let Some(seats) = self.below.get(folder(key))
        {
            marked.mark(seats, number);
        }
    }

    /// Marks every watcher that waits for an index value that the object under this key had or has.
    pub(super) fn mark_indexed<'a>(
        &'a self,
        key: &str,
        index: u16,
        value: &str,
        number: u64,
        marked: &mut MarkedSeats<'a>,
    ) {
        if let Some(seats) = self.indexed.get(index, value) {
            marked.mark(seats, number);
        }
        if !self.indexed_below.is_empty()
            && let Some(indexed) = self.indexed_below.get(folder(key))
            && let Some(seats) = indexed.get(index, value)
        {
            marked.mark(seats, number);
        }
    }

    /// Marks every watcher that waits for any value of an index group that the object under this key may have or have
    /// had.
    pub(super) fn mark_group<'a>(
        &'a self,
        key: &str,
        group: u16,
        number: u64,
        marked: &mut MarkedSeats<'a>,
    ) {
        let below = self.indexed_below.get(folder(key));
        for indexed in std::iter::once(&self.indexed).chain(below) {
            let of_group = indexed
                .0
                .iter()
                .filter(|(index, _)| group_of(**index) == group);
            for seats in of_group.flat_map(|(_, values)| values.values()) {
                marked.mark(seats, number);
            }
        }
    }

    /// Wakes every watcher, so that each checks for itself.
    pub(super) fn wake_all(&self) {
        let by_key = self.below.values().chain(self.keys.values());
        let by_value = std::iter::once(&self.indexed).chain(self.indexed_below.values());
        let seats = by_key.chain(by_value.flat_map(ByValue::all));
        seats
            .chain([&self.everything])
            .flatten()
            .for_each(|waiter| waiter.notify.notify_one());
    }
}

fn group_of(index: u16) -> u16 {
    index / INDEX_GROUP
}

fn leave(seats: &mut Seats, waiter: &Arc<Waiter>) {
    if let Some(seat) = seats.iter().position(|seat| Arc::ptr_eq(seat, waiter)) {
        seats.swap_remove(seat);
    }
}

fn leave_one_of<K: Eq + std::hash::Hash>(
    all: &mut HashMap<K, Seats>,
    key: &K,
    waiter: &Arc<Waiter>,
) {
    if let Some(seats) = all.get_mut(key) {
        leave(seats, waiter);
        if seats.is_empty() {
            all.remove(key);
        }
    }
}
