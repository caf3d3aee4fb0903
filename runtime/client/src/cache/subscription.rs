//! `Subscription`: the events of a cache as one subscriber reads them, and `Handler`, a task that calls a function for each.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::stream::{Stream, unfold};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::event::Event;
use super::hub::{Group, Hub};
use super::keys::KeySubscription;
use super::object::CacheObject;
use super::queue::Queue;
use super::subscriber::SubscriberMetrics;

/// The events of a cache, read by one subscriber. It begins with the objects that are there. A slow one delays no other:
/// what it has not read is combined by object. Dropping it ends the subscription.
pub struct Subscription<T: CacheObject> {
    hub: Arc<Hub<T>>,
    group: Arc<Group>,
    number: u64,
    queue: Arc<Queue<T>>,
    resync: Option<(Duration, Instant)>,
    synced: watch::Sender<bool>,
}

impl<T: CacheObject> Drop for Subscription<T> {
    fn drop(&mut self) {
        self.hub.unlisten(self.number);
    }
}

impl<T: CacheObject> Subscription<T> {
    pub(super) fn new(hub: Arc<Hub<T>>, group: Arc<Group>) -> Self {
        let mut added = None;
        let number = hub.listen(&group, |objects, is_synced| {
            let queue = Arc::new(Queue::new(objects, is_synced));
            added = Some(Arc::clone(&queue));
            Box::new(queue)
        });
        Self {
            hub,
            group,
            number,
            queue: added.expect("the hub calls the function that makes a listener"),
            resync: None,
            synced: watch::Sender::new(false),
        }
    }

    /// Sets the name for metrics and reports.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        self.queue.set_name(name.into());
        self
    }

    /// Keeps up to this number of events as they are, from now on. Only when more wait are later changes of an object
    /// combined, and the subscriber gets [`Event::Lagged`]: it never stops the cache or another subscriber, and its
    /// memory is limited by this number and the number of objects.
    ///
    /// A change that arrives when the oldest event has waited for 30 s is reported as
    /// [`CacheError::Lagging`](super::CacheError::Lagging).
    #[must_use]
    pub fn every_event(self, bound: usize) -> Self {
        self.queue.keep_every_event(bound, false);
        self
    }
    /// As [`Subscription::every_event`], beside the newest event of each object: only a subscriber that is slow lags, and not
    /// one that gets many objects at once.
    #[must_use]
    pub(crate) fn every_event_beside_newest(self, bound: usize) -> Self {
        self.queue.keep_every_event(bound, true);
        self
    }
    /// Announces every object again, once.
    pub(crate) fn resync_now(&self) {
        self.hub
            .resync(&self.group, |objects| self.queue.resync(objects));
    }

    /// How long an event may wait before it is reported, after [`Subscription::every_event`]. Default: 30 s.
    #[must_use]
    pub fn report_lag_after(self, limit: Duration) -> Self {
        self.queue.set_lag_limit(limit);
        self
    }

    /// Only the keys of the objects that change, from now on: the objects that are there come again.
    pub fn keys_only(self) -> KeySubscription<T> {
        KeySubscription::new(Arc::clone(&self.hub), &self.group)
    }

    /// Announces every object again after each period of this length; by default never. A period of zero is none.
    #[must_use]
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = (!period.is_zero()).then(|| (period, Instant::now() + period));
        self
    }

    /// The next event; `None` when the informer was shut down and all events were read. Dropping the future loses no
    /// event.
    pub async fn next(&mut self) -> Option<Event<T>> {
        loop {
            // Read first: nothing is added once it is closed.
            let is_closed = self.queue.is_closed();
            if let Some(event) = self.queue.pop() {
                if matches!(event, Event::Synced) {
                    self.synced.send_replace(true);
                }
                return Some(event);
            }
            if is_closed {
                return None;
            }
            // A change between the look and this wait has left a permit.
            let changed = self.queue.changed.notified();
            let Some((period, at)) = &mut self.resync else {
                changed.await;
                continue;
            };
            tokio::select! {
                () = changed => {}
                () = sleep_until(*at) => {
                    *at = Instant::now() + *period;
                    self.resync_now();
                }
            }
        }
    }

    /// The events as a stream.
    pub fn into_stream(self) -> impl Stream<Item = Event<T>> + Send {
        unfold(self, |mut this| async move {
            let event = this.next().await?;
            Some((event, this))
        })
    }

    /// Number of objects with events that were not read yet.
    pub fn backlog(&self) -> usize {
        self.queue.len()
    }

    /// What waits, and for how long.
    pub fn metrics(&self) -> SubscriberMetrics {
        self.queue.metrics()
    }

    /// A handler that is never called.
    pub(super) fn ended(&self) -> Handler<T> {
        self.queue.discard();
        Handler {
            queue: Arc::clone(&self.queue),
            synced: watch::channel(false).1,
        }
    }

    /// Calls a function for each event, in a task of its own; the next call begins when the one before has ended. A call
    /// that panics is logged, and the next one follows.
    pub(super) fn spawn<F, Fut>(mut self, mut on_event: F) -> (Handler<T>, JoinHandle<()>)
    where
        F: FnMut(Event<T>) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send,
    {
        let handler = Handler {
            queue: Arc::clone(&self.queue),
            synced: self.synced.subscribe(),
        };
        let task = tokio::spawn(async move {
            while let Some(event) = self.next().await {
                let call = AssertUnwindSafe(async { on_event(event).await });
                if call.catch_unwind().await.is_err() {
                    tracing::error!("a handler of a cache's events panicked");
                }
            }
        });
        (handler, task)
    }
}

/// A function that is called for the events of a cache. Dropping this removes it: a call that has begun ends, and no other
/// one follows.
#[must_use = "dropping it removes the handler"]
pub struct Handler<T: CacheObject> {
    queue: Arc<Queue<T>>,
    synced: watch::Receiver<bool>,
}

impl<T: CacheObject> Drop for Handler<T> {
    fn drop(&mut self) {
        self.queue.discard();
    }
}

impl<T: CacheObject> Handler<T> {
    /// Waits until the calls for all initial objects have ended; false if the handler ended before.
    pub async fn synced(&mut self) -> bool {
        self.synced.wait_for(|synced| *synced).await.is_ok()
    }
    /// Number of objects with events that wait for a call.
    pub fn backlog(&self) -> usize {
        self.queue.len()
    }
    /// What waits for a call, and for how long.
    pub fn metrics(&self) -> SubscriberMetrics {
        self.queue.metrics()
    }
}
