//! The events that wait for one subscriber. By default they are combined by object: a slow subscriber skips states, and
//! needs memory for the objects that changed, not for the changes. One that wants every event keeps a number of them
//! as they are before it does the same.
//!
//! Invariant: of the events of one object only the newest is combined with the next change; those before it are sealed,
//! and are delivered as they are.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::event::{Event, Listener, Pending, object_of};
use super::object::{CacheObject, ObjectKey};
use super::store::Change;
use super::subscriber::{Lag, SubscriberMetrics};

/// How long an event may wait before the lag of a subscriber that wants every event is reported.
const LAG_LIMIT: Duration = Duration::from_secs(30);

/// What is delivered next.
enum Entry<T> {
    /// The pending event of this object.
    Object(ObjectKey),
    Sealed(Pending<T>),
    Synced,
}

/// What a subscriber wants who does not want events combined.
#[derive(Clone, Copy)]
struct EveryEvent {
    /// Most events that are not combined.
    bound: usize,
    /// Whether the newest event of each object does not count.
    is_beside_newest: bool,
    lag_limit: Duration,
    /// Whether the present lag was reported.
    is_reported: bool,
}

/// The pending events. An object keeps its place until its events are delivered.
struct Contents<T> {
    pending: HashMap<ObjectKey, (u64, Pending<T>)>,
    /// By place, each with the time since when it waits.
    order: BTreeMap<u64, (Instant, Entry<T>)>,
    next: u64,
    is_closed: bool,
    every_event: Option<EveryEvent>,
    /// The number of events that are sealed.
    sealed: usize,
    /// Events that were lost by combining since a subscriber that wants every event was told of it.
    skipped: u64,
    name: String,
    delivered: u64,
    combined: u64,
}

impl<T: CacheObject> Contents<T> {
    fn push_entry(&mut self, entry: Entry<T>) -> u64 {
        let place = self.next;
        self.next += 1;
        self.order.insert(place, (Instant::now(), entry));
        place
    }
    fn push(&mut self, change: &Change<T>, is_initial: bool) {
        let key = ObjectKey::of(&**object_of(change));
        if self.has_room() {
            self.seal(&key);
        }
        let (place, pending) = self.pending.remove(&key).unzip();
        let before = pending.as_ref().map_or(0, Pending::event_count);
        let merged = Pending::merge(pending, change, is_initial);
        let after = merged.as_ref().map_or(0, Pending::event_count);
        let lost = before + 1 - after;
        self.combined += lost;
        if self.every_event.is_some() {
            self.skipped += lost;
        }
        match merged {
            Some(pending) => self.put(key, place, pending),
            None => {
                if let Some(place) = place {
                    self.order.remove(&place);
                }
            }
        }
    }
    /// Whether one more event can be kept as it is.
    fn has_room(&self) -> bool {
        self.every_event.is_some_and(|every| {
            let used = if every.is_beside_newest {
                self.sealed
            } else {
                self.order.len()
            };
            used < every.bound
        })
    }
    /// Keeps the pending event of an object as it is; the next one gets a place of its own.
    fn seal(&mut self, key: &ObjectKey) {
        let Some((place, pending)) = self.pending.remove(key) else {
            return;
        };
        if let Some((_, entry)) = self.order.get_mut(&place) {
            *entry = Entry::Sealed(pending);
            self.sealed += 1;
        }
    }
    fn put(&mut self, key: ObjectKey, place: Option<u64>, pending: Pending<T>) {
        let place = place.unwrap_or_else(|| self.push_entry(Entry::Object(key.clone())));
        self.pending.insert(key, (place, pending));
    }
    fn pop(&mut self) -> Option<Event<T>> {
        if self.skipped > 0 {
            let skipped = std::mem::take(&mut self.skipped);
            return Some(Event::Lagged { skipped });
        }
        let (place, (since, entry)) = self.order.pop_first()?;
        let (event, rest) = match entry {
            Entry::Synced => return Some(Event::Synced),
            // What remains is delivered next.
            Entry::Sealed(pending) => {
                let (event, rest) = pending.split();
                self.sealed -= usize::from(rest.is_none());
                (event, rest.map(Entry::Sealed))
            }
            Entry::Object(key) => {
                let (_, pending) = self.pending.remove(&key)?;
                let (event, rest) = pending.split();
                let rest = rest.map(|rest| {
                    self.pending.insert(key.clone(), (place, rest));
                    Entry::Object(key)
                });
                (event, rest)
            }
        };
        if let Some(rest) = rest {
            self.order.insert(place, (since, rest));
        }
        self.delivered += 1;
        Some(event)
    }
    /// Since when the oldest event waits.
    fn oldest(&self) -> Option<Instant> {
        let (_, (since, _)) = self.order.first_key_value()?;
        Some(*since)
    }
    /// The lag, if it should be reported now: once for each time that events wait for too long.
    fn lag(&mut self) -> Option<Lag> {
        let oldest = self.oldest();
        let waiting = self.order.len();
        let every = self.every_event.as_mut()?;
        let oldest = oldest.map(|since| since.elapsed()).unwrap_or_default();
        let is_late = oldest > every.lag_limit;
        let is_new = is_late && !every.is_reported;
        every.is_reported = is_late;
        is_new.then(|| Lag {
            subscriber: self.name.clone(),
            waiting,
            oldest,
        })
    }
}

/// The queue of one subscriber.
pub(super) struct Queue<T> {
    contents: Mutex<Contents<T>>,
    pub(super) changed: Notify,
}

impl<T: CacheObject> Queue<T> {
    /// A queue with the objects that are there; `is_synced` if they are a complete state.
    pub(super) fn new(objects: Vec<Arc<T>>, is_synced: bool) -> Self {
        let mut contents = Contents {
            pending: HashMap::new(),
            order: BTreeMap::new(),
            next: 0,
            is_closed: false,
            every_event: None,
            sealed: 0,
            skipped: 0,
            name: String::new(),
            delivered: 0,
            combined: 0,
        };
        for object in objects {
            contents.push(&Change::Added(object), true);
        }
        if is_synced {
            contents.push_entry(Entry::Synced);
        }
        Self {
            contents: Mutex::new(contents),
            changed: Notify::new(),
        }
    }
    pub(super) fn set_name(&self, name: String) {
        self.contents.lock().name = name;
    }
    /// Keeps so many events as they are, from now on; also those that are the newest of their object, unless these are not
    /// to count.
    pub(super) fn keep_every_event(&self, bound: usize, is_beside_newest: bool) {
        self.contents.lock().every_event = Some(EveryEvent {
            bound,
            is_beside_newest,
            lag_limit: LAG_LIMIT,
            is_reported: false,
        });
    }
    pub(super) fn set_lag_limit(&self, limit: Duration) {
        if let Some(every) = &mut self.contents.lock().every_event {
            every.lag_limit = limit;
        }
    }
    /// The next event.
    pub(super) fn pop(&self) -> Option<Event<T>> {
        self.contents.lock().pop()
    }
    /// Number of objects with pending events.
    pub(super) fn len(&self) -> usize {
        self.contents.lock().pending.len()
    }
    pub(super) fn metrics(&self) -> SubscriberMetrics {
        let contents = self.contents.lock();
        SubscriberMetrics {
            name: contents.name.clone(),
            waiting: contents.order.len(),
            oldest: contents
                .oldest()
                .map(|since| since.elapsed())
                .unwrap_or_default(),
            delivered: contents.delivered,
            combined: contents.combined,
        }
    }
    /// Announces objects again that have no other event pending.
    pub(super) fn resync(&self, objects: Vec<Arc<T>>) {
        let mut contents = self.contents.lock();
        if contents.is_closed {
            return;
        }
        for object in objects {
            let key = ObjectKey::of(&*object);
            if !contents.pending.contains_key(&key) {
                contents.put(key, None, Pending::Resync { object });
            }
        }
        drop(contents);
        self.changed.notify_one();
    }
    /// No events are added any more; those that are pending are delivered.
    pub(super) fn close(&self) {
        self.contents.lock().is_closed = true;
        self.changed.notify_one();
    }
    /// Drops all pending events too.
    pub(super) fn discard(&self) {
        let mut contents = self.contents.lock();
        contents.is_closed = true;
        contents.pending.clear();
        contents.order.clear();
        contents.sealed = 0;
        contents.skipped = 0;
        drop(contents);
        self.changed.notify_one();
    }
    pub(super) fn is_closed(&self) -> bool {
        self.contents.lock().is_closed
    }
}

impl<T: CacheObject> Listener<T> for Arc<Queue<T>> {
    fn on_changes(&mut self, changes: &[Change<T>], is_initial: bool) -> Option<Lag> {
        let mut contents = self.contents.lock();
        if contents.is_closed {
            return None;
        }
        let lag = contents.lag();
        for change in changes {
            contents.push(change, is_initial);
        }
        if is_initial {
            contents.push_entry(Entry::Synced);
        }
        drop(contents);
        self.changed.notify_one();
        lag
    }
    fn close(&mut self) {
        Queue::close(self);
    }
    fn metrics(&self) -> Option<SubscriberMetrics> {
        Some(Queue::metrics(self))
    }
}
