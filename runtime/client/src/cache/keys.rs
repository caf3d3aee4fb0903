//! `KeySubscription`: the keys of the objects that change, without the objects, as a work queue needs them.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::event::{Listener, object_of};
use super::hub::{Group, Hub};
use super::object::{CacheObject, ObjectKey};
use super::store::Change;
use super::subscriber::{Lag, SubscriberMetrics};

/// What a subscriber to keys is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyEvent {
    /// The object was added, has changed, or is gone; the lister shows which.
    Changed {
        /// Its key.
        key: ObjectKey,
        /// Whether it was there when the subscriber joined, or in the first state of the cache, and has not changed since.
        initial: bool,
    },
    /// All initial keys were delivered. Sent once.
    Synced,
}

enum Place {
    Key(ObjectKey),
    Synced,
}

struct Contents {
    order: VecDeque<(Instant, Place)>,
    /// The keys that wait, and whether they are initial.
    waiting: HashMap<ObjectKey, bool>,
    is_closed: bool,
    name: String,
    delivered: u64,
    combined: u64,
}

impl Contents {
    fn push(&mut self, key: ObjectKey, is_initial: bool) {
        match self.waiting.entry(key) {
            Entry::Occupied(mut waiting) => {
                *waiting.get_mut() &= is_initial;
                self.combined += 1;
            }
            Entry::Vacant(vacant) => {
                let place = Place::Key(vacant.key().clone());
                vacant.insert(is_initial);
                self.order.push_back((Instant::now(), place));
            }
        }
    }
    fn pop(&mut self) -> Option<KeyEvent> {
        let (_, place) = self.order.pop_front()?;
        let Place::Key(key) = place else {
            return Some(KeyEvent::Synced);
        };
        let initial = self.waiting.remove(&key).unwrap_or_default();
        self.delivered += 1;
        Some(KeyEvent::Changed { key, initial })
    }
}

struct KeyQueue {
    contents: Mutex<Contents>,
    changed: Notify,
}

impl KeyQueue {
    fn new<T: CacheObject>(objects: &[Arc<T>], is_synced: bool) -> Self {
        let mut contents = Contents {
            order: VecDeque::new(),
            waiting: HashMap::new(),
            is_closed: false,
            name: String::new(),
            delivered: 0,
            combined: 0,
        };
        for object in objects {
            contents.push(ObjectKey::of(&**object), true);
        }
        if is_synced {
            contents.order.push_back((Instant::now(), Place::Synced));
        }
        Self {
            contents: Mutex::new(contents),
            changed: Notify::new(),
        }
    }

    fn metrics(&self) -> SubscriberMetrics {
        let contents = self.contents.lock();
        let oldest = contents.order.front().map(|(since, _)| since.elapsed());
        SubscriberMetrics {
            name: contents.name.clone(),
            waiting: contents.order.len(),
            oldest: oldest.unwrap_or_default(),
            delivered: contents.delivered,
            combined: contents.combined,
        }
    }
}

impl<T: CacheObject> Listener<T> for Arc<KeyQueue> {
    fn on_changes(&mut self, changes: &[Change<T>], is_initial: bool) -> Option<Lag> {
        let mut contents = self.contents.lock();
        if contents.is_closed {
            return None;
        }
        for change in changes {
            contents.push(ObjectKey::of(&**object_of(change)), is_initial);
        }
        if is_initial {
            contents.order.push_back((Instant::now(), Place::Synced));
        }
        drop(contents);
        self.changed.notify_one();
        None
    }
    fn close(&mut self) {
        self.contents.lock().is_closed = true;
        self.changed.notify_one();
    }
    fn metrics(&self) -> Option<SubscriberMetrics> {
        Some(KeyQueue::metrics(self))
    }
}

/// The keys of the objects of a cache that change, read by one subscriber: first those of the objects that are there. A key
/// that waits is not added again, and no object is kept alive. Dropping it ends the subscription.
pub struct KeySubscription<T: CacheObject> {
    hub: Arc<Hub<T>>,
    number: u64,
    queue: Arc<KeyQueue>,
}

impl<T: CacheObject> Drop for KeySubscription<T> {
    fn drop(&mut self) {
        self.hub.unlisten(self.number);
    }
}

impl<T: CacheObject> KeySubscription<T> {
    pub(super) fn new(hub: Arc<Hub<T>>, group: &Arc<Group>) -> Self {
        let mut added = None;
        let number = hub.listen(group, |objects, is_synced| {
            let queue = Arc::new(KeyQueue::new(&objects, is_synced));
            added = Some(Arc::clone(&queue));
            Box::new(queue)
        });
        Self {
            hub,
            number,
            queue: added.expect("the hub calls the function that makes a listener"),
        }
    }

    /// Sets the name for metrics.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        self.queue.contents.lock().name = name.into();
        self
    }

    /// The next key; `None` when the informer was shut down and all keys were read. Dropping the future loses no key.
    pub async fn next(&mut self) -> Option<KeyEvent> {
        loop {
            {
                let mut contents = self.queue.contents.lock();
                if let Some(event) = contents.pop() {
                    return Some(event);
                }
                if contents.is_closed {
                    return None;
                }
            }
            // A change between the look and this wait has left a permit.
            self.queue.changed.notified().await;
        }
    }

    /// What waits, and for how long.
    pub fn metrics(&self) -> SubscriberMetrics {
        KeyQueue::metrics(&self.queue)
    }
}
