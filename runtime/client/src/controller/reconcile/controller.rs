//! A controller: sources, a queue and workers.

use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::marker::PhantomData;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use super::super::guard::{CacheVersion, Caches, ConsistencyGuard};
use super::super::queue::{Priority, WorkQueue, WorkQueueConfig};
use super::super::source::{EventSource, EventSubscription};
use super::action::{Action, Context, ReconcileError, Request};
use super::metrics::MetricsRecorder;
use super::running::{RunningController, Source, SourceSignals};
use super::worker::Worker;
use apiloom_meta::GroupResource;
use futures_util::future::FutureExt as _;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::cache::Event;

/// How long a call may take after it was told to end, unless the controller is given another time.
const DEFAULT_GRACE: Duration = Duration::from_secs(10);

/// Queues the keys that an event asks to reconcile.
#[derive(Debug)]
pub struct Enqueue<'a, K: Clone + Eq + Hash> {
    queue: &'a WorkQueue<K>,
    priority: Priority,
}

impl<K: Clone + Eq + Hash> Enqueue<'_, K> {
    /// Queues a key, with the priority of the event: low if no object changed, else normal.
    pub fn add(&self, key: K) {
        self.add_with(key, self.priority, Duration::ZERO);
    }

    /// Queues a key with a priority, after a delay.
    pub fn add_with(&self, key: K, priority: Priority, delay: Duration) {
        self.queue.add_with(key, priority, delay);
    }
}

/// Subscribes to a source for a queue.
type Subscribe<K> =
    Box<dyn FnOnce(WorkQueue<K>, SourceSignals) -> Box<dyn EventSubscription> + Send>;

/// The old and the new state of an object.
fn objects<T>(event: &Event<T>) -> impl Iterator<Item = &Arc<T>> {
    let old = match event {
        Event::Updated { old, .. } => Some(old),
        _ => None,
    };
    old.into_iter().chain(event.object())
}

/// Changes go before objects that existed before or are only shown again.
fn priority<T>(event: &Event<T>) -> Priority {
    match event {
        Event::Added { initial: true, .. } | Event::Resync { .. } => Priority::Low,
        _ => Priority::Normal,
    }
}

/// Calls a function for each key that the changes of sources ask for: keys go through a [`WorkQueue`] to a number of
/// workers, each a task of its own.
///
/// A call that fails or panics is repeated after the next delay of the key's backoff. Keys are not handed out before all
/// sources have shown the objects that existed at first.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use apiloom_client::controller::{Action, Controller};
///
/// let running = Controller::<String>::new("example").workers(2).start(async |request, _context| {
///     println!("{}", request.key);
///     Ok(Action::Done)
/// });
/// running.queue().add("default/a".to_owned());
/// running.wait_idle().await;
/// assert_eq!(running.metrics().successes, 1);
/// running.shutdown().await;
/// # });
/// ```
///
/// `O` is the kind of the objects that [`Controller::watch_self`] was given, which may own others ([`Controller::owns`]).
pub struct Controller<K: Clone + Eq + Hash, O = ()> {
    name: String,
    workers: usize,
    queue: WorkQueueConfig,
    timeout: Option<Duration>,
    grace: Duration,
    sources: Vec<Subscribe<K>>,
    caches: Caches,
    first_cache: Option<GroupResource>,
    owner: PhantomData<fn() -> O>,
}

impl<K> Controller<K>
where
    K: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static,
{
    /// A controller without sources, with one worker for each core. The name is for logs and metrics.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            workers: std::thread::available_parallelism().map_or(1, NonZero::get),
            queue: WorkQueueConfig::default(),
            timeout: None,
            grace: DEFAULT_GRACE,
            sources: Vec::new(),
            caches: Caches::new(),
            first_cache: None,
            owner: PhantomData,
        }
    }
}

impl<K, O> Controller<K, O>
where
    K: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static,
{
    /// The same controller, of objects of another kind.
    pub(super) fn with_owner<P>(self) -> Controller<K, P> {
        Controller {
            name: self.name,
            workers: self.workers,
            queue: self.queue,
            timeout: self.timeout,
            grace: self.grace,
            sources: self.sources,
            caches: self.caches,
            first_cache: self.first_cache,
            owner: PhantomData,
        }
    }

    /// Sets the number of workers, at least one: so many keys are reconciled at a time.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// Sets the backoff and the ageing of priorities.
    #[must_use]
    pub fn queue_config(mut self, config: WorkQueueConfig) -> Self {
        self.queue = config;
        self
    }

    /// Tells a call to end after this time. Default: calls may take any time.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets how long a call may go on after it was told to end; then it is dropped. Default: 10 s.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Reconciles the keys that `keys` returns for the objects of a source when they change. For an update it is called
    /// with the old and with the new state.
    #[must_use]
    pub fn watch<S, I>(
        self,
        source: &S,
        keys: impl Fn(&S::Object) -> I + Send + Sync + 'static,
    ) -> Self
    where
        S: EventSource + Clone + 'static,
        I: IntoIterator<Item = K>,
    {
        self.watch_with(source, move |event, enqueue| {
            for key in objects(event).flat_map(|object| keys(object)) {
                enqueue.add(key);
            }
        })
    }

    /// Calls `map` with the events of a source, except [`Event::Synced`] and [`Event::Lagged`]; it queues the keys that should
    /// be reconciled. It is called with each state of an object. After [`Event::Lagged`], when some are missing, all sources
    /// show all their objects again.
    #[must_use]
    pub fn watch_with<S>(
        mut self,
        source: &S,
        map: impl Fn(&Event<S::Object>, &Enqueue<'_, K>) + Send + Sync + 'static,
    ) -> Self
    where
        S: EventSource + Clone + 'static,
    {
        let source = source.clone();
        let subscribe = move |queue: WorkQueue<K>, signals: SourceSignals| {
            source.subscribe(Box::new(move |event| {
                match event {
                    Event::Synced => {
                        signals.synced.send_replace(true);
                        return;
                    }
                    Event::Lagged { .. } => {
                        signals.lagged.notify_one();
                        return;
                    }
                    _ => {}
                }
                let (queue, priority) = (&queue, priority(&event));
                map(&event, &Enqueue { queue, priority });
            }))
        };
        self.sources.push(Box::new(subscribe));
        self
    }

    /// Names the cache from which the reconcile function reads the objects of a resource. After a call that wrote to the
    /// resource, and recorded it ([`Context::writes`]), the key is not reconciled again before the cache shows the
    /// write, or 10 s have passed.
    #[must_use]
    pub fn cache(mut self, resource: GroupResource, cache: impl CacheVersion + 'static) -> Self {
        self.first_cache.get_or_insert_with(|| resource.clone());
        self.caches.insert(resource, Arc::new(cache));
        self
    }

    /// Subscribes to the sources and spawns the workers, on the runtime of the caller.
    ///
    /// # Panics
    ///
    /// If it is not called in a tokio runtime.
    pub fn start<F, R>(self, reconcile: F) -> RunningController<K>
    where
        F: Fn(Request<K>, Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Action, ReconcileError>> + Send + 'static,
    {
        let queue = WorkQueue::with_config(self.queue);
        let lagged = Arc::new(Notify::new());
        let sources = self.sources.into_iter();
        let sources = sources
            .map(|subscribe| Source::start(&lagged, |signals| subscribe(queue.clone(), signals)))
            .collect();
        let worker = Worker {
            name: self.name,
            queue,
            reconcile: Box::new(move |request, context| reconcile(request, context).boxed()),
            metrics: MetricsRecorder::new(self.workers),
            guard: Arc::new(ConsistencyGuard::new(self.caches)),
            first_cache: self.first_cache,
            cancel: CancellationToken::new(),
            timeout: self.timeout,
            grace: self.grace,
        };
        RunningController::spawn(worker, self.workers, sources, lagged)
    }

    /// Starts, waits for the signal, and shuts down.
    pub async fn run<F, R>(self, cancel: &CancellationToken, reconcile: F)
    where
        F: Fn(Request<K>, Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Action, ReconcileError>> + Send + 'static,
    {
        let running = self.start(reconcile);
        cancel.cancelled().await;
        running.shutdown().await;
    }
}

impl<K: Clone + Eq + Hash, O> fmt::Debug for Controller<K, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Controller").field(&self.name).finish()
    }
}
