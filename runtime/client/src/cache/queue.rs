//! The events that wait for one subscriber, combined by object: a slow subscriber skips states, and needs memory for the
//! objects that changed, not for the changes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::event::{Event, Listener, Pending, object_of};
use super::object::{CacheObject, ObjectKey};
use super::store::Change;

/// What is delivered next.
enum Entry {
    Object(ObjectKey),
    Synced,
}

/// The pending events. An object keeps its place until its events are delivered.
struct Contents<T> {
    pending: HashMap<ObjectKey, (u64, Pending<T>)>,
    order: BTreeMap<u64, Entry>,
    next: u64,
    is_closed: bool,
}

impl<T: CacheObject> Contents<T> {
    fn push_entry(&mut self, entry: Entry) -> u64 {
        let place = self.next;
        self.next += 1;
        self.order.insert(place, entry);
        place
    }
    fn push(&mut self, change: &Change<T>, is_initial: bool) {
        let key = ObjectKey::of(&**object_of(change));
        let (place, pending) = self.pending.remove(&key).unzip();
        match Pending::merge(pending, change, is_initial) {
            Some(pending) => self.put(key, place, pending),
            None => {
                if let Some(place) = place {
                    self.order.remove(&place);
                }
            }
        }
    }
    fn put(&mut self, key: ObjectKey, place: Option<u64>, pending: Pending<T>) {
        let place = place.unwrap_or_else(|| self.push_entry(Entry::Object(key.clone())));
        self.pending.insert(key, (place, pending));
    }
    fn pop(&mut self) -> Option<Event<T>> {
        let (place, entry) = self.order.pop_first()?;
        let Entry::Object(key) = entry else {
            return Some(Event::Synced);
        };
        let (_, pending) = self.pending.remove(&key)?;
        let (event, rest) = pending.split();
        if let Some(rest) = rest {
            // Delivered next.
            self.order.insert(place, Entry::Object(key.clone()));
            self.pending.insert(key, (place, rest));
        }
        Some(event)
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
    /// The next event.
    pub(super) fn pop(&self) -> Option<Event<T>> {
        self.contents.lock().pop()
    }
    /// Number of objects with pending events.
    pub(super) fn len(&self) -> usize {
        self.contents.lock().pending.len()
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
        drop(contents);
        self.changed.notify_one();
    }
    pub(super) fn is_closed(&self) -> bool {
        self.contents.lock().is_closed
    }
}

impl<T: CacheObject> Listener<T> for Arc<Queue<T>> {
    fn on_changes(&mut self, changes: &[Change<T>], is_initial: bool) {
        let mut contents = self.contents.lock();
        if contents.is_closed {
            return;
        }
        for change in changes {
            contents.push(change, is_initial);
        }
        if is_initial {
            contents.push_entry(Entry::Synced);
        }
        drop(contents);
        self.changed.notify_one();
    }
    fn close(&mut self) {
        Queue::close(self);
    }
}
