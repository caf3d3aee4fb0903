//! A work queue that tasks share.
//!
//! The lock is held only for short operations on the state, never while waiting.

use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::metrics::QueueMetrics;
use super::priority::Priority;
use super::state::{Assignment, Next, Outcome, State, WorkQueueConfig};
use super::time::later;
use crate::metrics::{Collect, Registry, Samples};

/// A queue of keys for workers. Clones share it.
///
/// A key that is queued is not queued twice: it gets the higher priority and the earlier time of the two additions. A
/// key that is added while a worker has it is handed out again, once, when that worker is done; so no two workers have
/// one key. Among keys that are ready, those of the higher priority go first, and in a priority those that have been
/// ready the longest.
///
/// Times are those of tokio's clock: tests can pause it.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use apiloom_client::controller::WorkQueue;
///
/// let queue = WorkQueue::new();
/// queue.add("default/a");
/// queue.add("default/a");
/// let item = queue.next().await.expect("the queue is open");
/// assert_eq!(*item.key(), "default/a");
/// item.succeed();
/// assert!(queue.is_idle());
/// # });
/// ```
pub struct WorkQueue<K: Clone + Eq + Hash> {
    shared: Arc<SharedQueue<K>>,
}

/// A queue, which its clones and the items that were taken share.
struct SharedQueue<K> {
    state: Mutex<State<K>>,
    /// Wakes a worker that waits for a key.
    work: Notify,
    /// Wakes those that wait until the queue is idle or closed.
    finished: Notify,
}

impl<K: Clone + Eq + Hash> Default for WorkQueue<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Clone + Eq + Hash> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        let shared = Arc::clone(&self.shared);
        Self { shared }
    }
}

impl<K: Clone + Eq + Hash> WorkQueue<K> {
    /// An empty queue with the default settings.
    pub fn new() -> Self {
        Self::with_config(WorkQueueConfig::default())
    }

    /// An empty queue.
    pub fn with_config(config: WorkQueueConfig) -> Self {
        let shared = SharedQueue {
            state: Mutex::new(State::new(config)),
            work: Notify::new(),
            finished: Notify::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Queues a key with normal priority. Does nothing once the queue drains or is shut down.
    pub fn add(&self, key: K) {
        self.add_with(key, Priority::Normal, Duration::ZERO);
    }

    /// Queues a key with normal priority, to be handed out after a delay. Delays above ten years are ten years.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.add_with(key, Priority::Normal, delay);
    }

    /// Queues a key with a priority, to be handed out after a delay.
    pub fn add_with(&self, key: K, priority: Priority, delay: Duration) {
        let now = Instant::now();
        let mut state = self.shared.lock();
        state.add(&key, priority, later(now, delay), now);
        drop(state);
        self.shared.work.notify_one();
    }

    /// Waits for the next key. `None` once the queue is shut down, or drained.
    ///
    /// Dropping the future before it is ready loses no key.
    pub async fn next(&self) -> Option<WorkItem<K>> {
        loop {
            // Registered before looking, so that no addition in between is missed.
            let work = self.shared.work.notified();
            tokio::pin!(work);
            work.as_mut().enable();
            let (next, has_more) = self.shared.take();
            let due = match next {
                Next::Work(taken) => {
                    // One worker is woken for each addition, and the time until the next delayed key may be waited
                    // for by this one, which is busy now.
                    if has_more {
                        self.shared.work.notify_one();
                    }
                    let shared = Arc::clone(&self.shared);
                    return Some(WorkItem {
                        shared,
                        taken,
                        outcome: Outcome::Unknown,
                    });
                }
                Next::Closed => return None,
                Next::Empty(due) => due,
            };
            match due {
                Some(due) => tokio::select! {
                    () = work => {}
                    () = sleep_until(due) => {}
                },
                None => work.await,
            }
        }
    }

    /// Forgets the failures of a key, so that its next failure has the first delay again.
    pub fn forget(&self, key: &K) {
        self.shared.lock().forget(key);
    }

    /// The number of failures in a row of a key.
    pub fn failures(&self, key: &K) -> u32 {
        self.shared.lock().failures(key)
    }

    /// Accepts no more keys, drops those that are delayed, and waits until workers are done with all others. Those that
    /// are ready are still handed out, so workers must go on asking; [`shutdown`](Self::shutdown) ends the wait.
    pub async fn drain(&self) {
        self.shared.lock().drain(Instant::now());
        self.shared.wake_all();
        self.wait_until(|state| state.is_idle_until(Instant::now()))
            .await;
        self.shutdown();
    }

    /// Accepts no more keys and drops all that no worker has; workers that ask get `None`.
    pub fn shutdown(&self) {
        self.shared.lock().close();
        self.shared.wake_all();
    }

    /// Whether the queue drains or is shut down.
    pub fn is_shut_down(&self) -> bool {
        !self.shared.lock().is_open()
    }

    /// Whether no worker has a key and none is ready. There may be delayed ones.
    pub fn is_idle(&self) -> bool {
        self.shared.lock().is_idle_until(Instant::now())
    }

    /// Whether no worker has a key, none is ready, and none becomes ready within a duration.
    pub(in super::super) fn is_idle_for(&self, quiet: Duration) -> bool {
        let state = self.shared.lock();
        state.is_idle_until(later(Instant::now(), quiet))
    }

    /// Waits until no worker has a key, none is ready, and none becomes ready within a duration.
    pub async fn wait_idle(&self, quiet: Duration) {
        self.wait_until(|state| state.is_idle_until(later(Instant::now(), quiet)))
            .await;
    }

    /// Waits until the queue drains or is shut down.
    pub(in super::super) async fn closed(&self) {
        self.wait_until(|state| !state.is_open()).await;
    }

    async fn wait_until(&self, condition: impl Fn(&State<K>) -> bool) {
        loop {
            let finished = self.shared.finished.notified();
            tokio::pin!(finished);
            finished.as_mut().enable();
            if condition(&self.shared.lock()) {
                return;
            }
            finished.await;
        }
    }

    /// The metrics of the queue.
    pub fn metrics(&self) -> QueueMetrics {
        self.shared.lock().metrics(Instant::now())
    }

    /// Adds the metrics of the queue to a registry, with the label `name`, as long as the queue exists.
    pub fn register_metrics(&self, registry: &Registry, name: impl Into<String>)
    where
        K: Send + Sync + 'static,
    {
        registry.register(Collector {
            shared: Arc::downgrade(&self.shared),
            name: name.into(),
        });
    }
}

/// Reports the metrics of a queue without keeping it.
struct Collector<K> {
    shared: Weak<SharedQueue<K>>,
    name: String,
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Collect for Collector<K> {
    fn collect(&self, samples: &mut Samples) {
        if let Some(shared) = self.shared.upgrade() {
            let metrics = shared.lock().metrics(Instant::now());
            metrics.collect(samples, &self.name);
        }
    }
    fn is_gone(&self) -> bool {
        self.shared.strong_count() == 0
    }
}

impl<K: Clone + Eq + Hash> fmt::Debug for WorkQueue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metrics = self.metrics();
        f.debug_struct("WorkQueue")
            .field("depth", &metrics.depth)
            .finish_non_exhaustive()
    }
}

impl<K> SharedQueue<K> {
    /// Ignores poisoning: the state is consistent between its operations, none of which panics.
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next key, and whether there are more.
    fn take(&self) -> (Next<K>, bool)
    where
        K: Clone + Eq + Hash,
    {
        let mut state = self.lock();
        (state.take(Instant::now()), state.has_queued())
    }

    fn wake_all(&self) {
        self.work.notify_waiters();
        self.finished.notify_waiters();
    }
}

/// A key in the hands of a worker, which says by one of the methods what became of it. Dropping it, as a panic does,
/// gives the key back and leaves its failures as they are.
#[must_use = "dropping the item gives the key back"]
pub struct WorkItem<K: Clone + Eq + Hash> {
    shared: Arc<SharedQueue<K>>,
    taken: Assignment<K>,
    outcome: Outcome,
}

impl<K: Clone + Eq + Hash> WorkItem<K> {
    /// The key.
    pub fn key(&self) -> &K {
        &self.taken.key
    }

    /// The priority with which the key was queued.
    pub fn priority(&self) -> Priority {
        self.taken.priority
    }

    /// The number of attempts of this key that failed in a row before this one.
    pub fn failures(&self) -> u32 {
        self.taken.failures
    }

    /// The work is done: forgets the failures of the key.
    pub fn succeed(mut self) {
        self.outcome = Outcome::Success;
    }

    /// The work failed: queues the key again after the next delay of its backoff.
    ///
    /// An attempt that began before the last delay had passed, because something else queued the key, does not count.
    pub fn retry(mut self) {
        self.outcome = Outcome::Failure;
    }

    /// The work is done for now: forgets the failures of the key, and queues it again after a delay.
    pub fn requeue_after(mut self, delay: Duration) {
        self.outcome = Outcome::Again(delay);
    }

    /// The work could not begin: queues the key again after a delay. Its failures stay.
    pub fn postpone(mut self, delay: Duration) {
        self.outcome = Outcome::Postponed(delay);
    }
}

impl<K: Clone + Eq + Hash> Drop for WorkItem<K> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.finish(&self.taken, self.outcome, Instant::now());
        let is_open = state.is_open();
        drop(state);
        if is_open {
            self.shared.work.notify_one();
        } else {
            // The last key of a queue that drains ends all workers.
            self.shared.work.notify_waiters();
        }
        self.shared.finished.notify_waiters();
    }
}

impl<K: Clone + Eq + Hash + fmt::Debug> fmt::Debug for WorkItem<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WorkItem").field(&self.taken.key).finish()
    }
}
