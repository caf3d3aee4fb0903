//! The state of a work queue: plain data that is told the time. Locks and waiting are in `shared.rs`.
//!
//! Invariant: a key has at most one place in `ready` and `delayed` together, and none while a worker has it; what is
//! added then stays in its entry until the worker is done.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

use super::backoff::{Backoff, Failures};
use super::metrics::QueueMetrics;
use super::priority::Priority;
use super::time::later;
use crate::metrics::DurationHistogram;

/// The settings of a work queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkQueueConfig {
    /// The delays after failures.
    pub backoff: Backoff,
    /// The time after which a waiting key rises by one priority. Default: 30 s.
    pub ageing: Duration,
}

impl Default for WorkQueueConfig {
    fn default() -> Self {
        Self {
            backoff: Backoff::default(),
            ageing: Duration::from_secs(30),
        }
    }
}

/// A place in an ordered map: a time, and the number of the addition, for a stable order.
type Place = (Instant, u64);

/// A key that is queued, in the hands of a worker, or both.
#[derive(Debug, Default)]
struct Entry {
    queued: Option<Schedule>,
    /// Since when a worker has the key.
    started: Option<Instant>,
}

/// When a key is handed out: its priority, its time, and its place in the queue.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    priority: Priority,
    due: Instant,
    /// The number of its first addition.
    number: u64,
    location: Location,
}

#[derive(Clone, Copy, Debug)]
enum Location {
    Ready(Place),
    Delayed(Place),
    /// Waits until the worker that has the key is done.
    Entry,
}

/// Whether keys are accepted and handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// No key is accepted; those that are ready are handed out.
    Draining,
    Closed,
}

/// A key that is assigned to a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Assignment<K> {
    pub(super) key: K,
    pub(super) priority: Priority,
    /// Failures in a row before this attempt.
    pub(super) failures: u32,
}

/// The answer to a worker that asks for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next<K> {
    Work(Assignment<K>),
    /// None is ready; the next is due at this time, if one is.
    Empty(Option<Instant>),
    Closed,
}

/// What a worker says of the key that it had.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    /// Its failures are forgotten.
    Success,
    /// It is queued again after the next delay of the backoff.
    Failure,
    /// Its failures are forgotten, and it is queued again after a delay.
    Again(Duration),
    /// It is queued again after a delay, and its failures stay.
    Postponed(Duration),
    /// The worker says nothing: its failures stay.
    Unknown,
}

#[derive(Debug)]
pub(super) struct State<K> {
    ageing: Duration,
    failures: Failures<K>,
    entries: HashMap<K, Entry>,
    /// By the time at which the key has aged to the highest priority: waiting keys keep their order while they age.
    ready: BTreeMap<Place, K>,
    /// By the time at which the key is due.
    delayed: BTreeMap<Place, K>,
    processing: usize,
    additions: u64,
    phase: Phase,
    adds: u64,
    retries: u64,
    queue_duration: DurationHistogram,
    work_duration: DurationHistogram,
}

impl<K: Clone + Eq + Hash> State<K> {
    pub(super) fn new(config: WorkQueueConfig) -> Self {
        Self {
            ageing: config.ageing,
            failures: Failures::new(config.backoff),
            entries: HashMap::new(),
            ready: BTreeMap::new(),
            delayed: BTreeMap::new(),
            processing: 0,
            additions: 0,
            phase: Phase::Open,
            adds: 0,
            retries: 0,
            queue_duration: DurationHistogram::default(),
            work_duration: DurationHistogram::default(),
        }
    }

    /// Queues a key. One that is queued already gets the higher priority and the earlier time of the two.
    pub(super) fn add(&mut self, key: &K, priority: Priority, due: Instant, now: Instant) {
        if self.phase != Phase::Open {
            return;
        }
        let mut queued = Schedule {
            priority,
            due,
            number: self.additions,
            location: Location::Entry,
        };
        self.additions += 1;
        if let Some(before) = self.unqueue(key) {
            queued.priority = priority.max(before.priority);
            queued.due = due.min(before.due);
            queued.number = before.number;
            queued.location = before.location;
        }
        self.queue(key, queued, now);
    }

    /// Removes a key from its place in the queue.
    fn unqueue(&mut self, key: &K) -> Option<Schedule> {
        let queued = self.entries.get_mut(key)?.queued.take()?;
        match queued.location {
            Location::Ready(place) => {
                self.ready.remove(&place);
            }
            Location::Delayed(place) => {
                self.delayed.remove(&place);
            }
            Location::Entry => {}
        }
        Some(queued)
    }

    /// Gives a key that was removed from its place the right one.
    fn queue(&mut self, key: &K, mut queued: Schedule, now: Instant) {
        let was_ready = matches!(queued.location, Location::Ready(_));
        let Schedule { due, number, .. } = queued;
        let entry = self.entries.entry(key.clone()).or_default();
        queued.location = if entry.started.is_some() {
            Location::Entry
        } else if due <= now {
            let levels = queued.priority.levels_below_highest();
            let place = (later(due, self.ageing.saturating_mul(levels)), number);
            self.ready.insert(place, key.clone());
            self.adds += u64::from(!was_ready);
            Location::Ready(place)
        } else {
            self.delayed.insert((due, number), key.clone());
            Location::Delayed((due, number))
        };
        entry.queued = Some(queued);
    }

    /// Moves the keys whose delay has passed.
    fn ready_due_keys(&mut self, now: Instant) {
        while let Some(first) = self.delayed.first_entry() {
            if first.key().0 > now {
                return;
            }
            let key = first.get().clone();
            if let Some(queued) = self.unqueue(&key) {
                self.queue(&key, queued, now);
            }
        }
    }

    /// The next key for a worker.
    pub(super) fn take(&mut self, now: Instant) -> Next<K> {
        self.ready_due_keys(now);
        let Some((_, key)) = self.ready.pop_first() else {
            let is_closed = match self.phase {
                Phase::Open => false,
                Phase::Draining => self.processing == 0,
                Phase::Closed => true,
            };
            if is_closed {
                return Next::Closed;
            }
            return Next::Empty(self.delayed.first_key_value().map(|(place, _)| place.0));
        };
        let entry = self.entries.entry(key.clone()).or_default();
        let queued = entry.queued.take();
        entry.started = Some(now);
        self.processing += 1;
        let due = queued.map_or(now, |queued| queued.due);
        self.queue_duration
            .observe(now.saturating_duration_since(due));
        let failures = self.failures.count(&key);
        Next::Work(Assignment {
            priority: queued.map(|queued| queued.priority).unwrap_or_default(),
            failures,
            key,
        })
    }

    /// Takes back a key from its worker.
    pub(super) fn finish(&mut self, taken: &Assignment<K>, outcome: Outcome, now: Instant) {
        let key = &taken.key;
        let Some(started) = self.entries.get_mut(key).and_then(|entry| entry.started) else {
            return;
        };
        self.work_duration
            .observe(now.saturating_duration_since(started));
        match outcome {
            Outcome::Success => self.failures.forget(key),
            Outcome::Failure => {
                let due = self.failures.fail(key, started, now);
                self.retries += 1;
                self.add(key, taken.priority, due, now);
            }
            Outcome::Again(delay) => {
                self.failures.forget(key);
                self.add(key, taken.priority, later(now, delay), now);
            }
            Outcome::Postponed(delay) => {
                self.add(key, taken.priority, later(now, delay), now);
            }
            Outcome::Unknown => {}
        }
        self.processing -= 1;
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        entry.started = None;
        match entry.queued.take() {
            Some(queued) => self.queue(key, queued, now),
            None => {
                self.entries.remove(key);
            }
        }
    }

    pub(super) fn forget(&mut self, key: &K) {
        self.failures.forget(key);
    }

    pub(super) fn failures(&self, key: &K) -> u32 {
        self.failures.count(key)
    }

    /// Accepts no more keys, and drops those that are not due.
    pub(super) fn drain(&mut self, now: Instant) {
        if self.phase == Phase::Open {
            self.ready_due_keys(now);
            self.phase = Phase::Draining;
            self.remove_queued(|queued| queued.due > now);
        }
    }

    /// Accepts no more keys, and drops all that no worker has.
    pub(super) fn close(&mut self) {
        self.phase = Phase::Closed;
        self.remove_queued(|_| true);
    }

    fn remove_queued(&mut self, is_removed: impl Fn(&Schedule) -> bool) {
        let queued = self.entries.iter();
        let removed: Vec<K> = queued
            .filter(|(_, entry)| entry.queued.as_ref().is_some_and(&is_removed))
            .map(|(key, _)| key.clone())
            .collect();
        for key in &removed {
            self.unqueue(key);
            if self.entries[key].started.is_none() {
                self.entries.remove(key);
            }
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Whether no worker has a key, and none is or becomes ready until a time.
    pub(super) fn is_idle_until(&self, time: Instant) -> bool {
        let next_due = self.delayed.first_key_value();
        self.processing == 0
            && self.ready.is_empty()
            && next_due.is_none_or(|(place, _)| place.0 > time)
    }

    /// Whether a worker that waits has a reason to look: a key is ready, or will be.
    pub(super) fn has_queued(&self) -> bool {
        !self.ready.is_empty() || !self.delayed.is_empty()
    }

    pub(super) fn metrics(&mut self, now: Instant) -> QueueMetrics {
        self.ready_due_keys(now);
        let started = self.entries.values().filter_map(|entry| entry.started);
        let running: Vec<Duration> = started
            .map(|started| now.saturating_duration_since(started))
            .collect();
        QueueMetrics {
            depth: self.ready.len(),
            adds: self.adds,
            retries: self.retries,
            queue_duration: self.queue_duration.clone(),
            work_duration: self.work_duration.clone(),
            unfinished_work: running.iter().sum(),
            longest_running: running.into_iter().max().unwrap_or_default(),
        }
    }
}
