//! `Informer`: a reflector, its store, and the subscribers that share them. Informers of several factories may use one
//! [`Feed`]; each has its own start, handlers and end.

#[cfg(test)]
mod policies;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::catch_up::{BehindError, catch_up};
use super::event::Event;
use super::feed::{Feed, OnEnd};
use super::hub::{CacheError, CacheState, Group, Hub};
use super::index::Index;
use super::lister::Lister;
use super::metrics::InformerMetrics;
use super::object::CacheObject;
use super::reflector::{Reflector, SavedState, ServerTraits, Session, Settings, Transform};
use super::resource_version::ResourceVersion;
use super::source::{ListWatch, SourceError};
use super::subscription::{Handler, Subscription};
use crate::metrics::Registry;

/// How long [`Informer::shutdown`] waits for calls of handlers, before it cancels them.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(30);

/// Where an informer is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    New,
    Running,
    Stopped,
}

/// Why a cache has no complete state yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SyncError {
    /// It was not started, so it reads nothing.
    #[error("the cache of {name} was not started")]
    NotStarted {
        /// The name of the informer.
        name: String,
    },
    /// It was shut down before.
    #[error("the cache of {name} was shut down")]
    Stopped {
        /// The name of the informer.
        name: String,
    },
    /// The time has passed.
    #[error("the cache of {name} has no complete state after {limit:?}: {}", .error.as_ref().map_or_else(|| "the server has not sent all of it yet".to_owned(), ToString::to_string))]
    TimedOut {
        /// The name of the informer.
        name: String,
        /// How long it was waited for.
        limit: Duration,
        /// The last failure, if requests fail.
        error: Option<SourceError>,
    },
}

/// Builds an [`Informer`].
pub struct InformerBuilder<T> {
    source: Arc<dyn ListWatch<T>>,
    name: String,
    settings: Settings,
    transform: Option<Transform<T>>,
    on_error: Option<super::hub::OnError>,
    saved: Option<SavedState<T>>,
    on_end: Option<OnEnd>,
}

impl<T: CacheObject> InformerBuilder<T> {
    /// The name for errors and logs; by default `objects`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }
    /// What is known of the server; caches of one server should share it.
    #[must_use]
    pub fn server(mut self, server: ServerTraits) -> Self {
        self.settings.server = server;
        self
    }
    /// Number of objects of a page, where objects are listed in pages; by default 500.
    #[must_use]
    pub fn page_size(mut self, objects: u32) -> Self {
        self.settings.page_size = objects.max(1);
        self
    }
    /// Changes each object before it is cached, for instance to drop fields that are not needed. It is called once for
    /// each state of an object. An object for which it fails, panics, or changes name, namespace, uid or resourceVersion
    /// is not cached, and is reported.
    #[must_use]
    pub fn transform(
        mut self,
        transform: impl Fn(&mut T) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.transform = Some(Arc::new(transform));
        self
    }
    /// Called for each failed request, and once for each state of an object that cannot be cached.
    #[must_use]
    pub fn on_error(mut self, on_error: impl Fn(&CacheError) + Send + Sync + 'static) -> Self {
        self.on_error = Some(Arc::new(on_error));
        self
    }
    /// Begins with a state that an earlier cache had ([`Lister::snapshot`]), instead of reading all objects: the first
    /// request is a watch from its version. If the server does not know that any more, the state is read, and subscribers
    /// see what is different.
    ///
    /// The objects must be all that the source selected, as they were cached: they are not transformed again. The cache
    /// counts as synced once it is started; [`Informer::state`] shows when the server has answered.
    #[must_use]
    pub fn resume_from(
        mut self,
        objects: impl IntoIterator<Item = T>,
        version: ResourceVersion,
    ) -> Self {
        self.saved = Some(SavedState {
            objects: objects.into_iter().collect(),
            version,
        });
        self
    }
    /// Called when the last informer that uses the cache was shut down or dropped.
    pub(super) fn on_end(mut self, on_end: impl FnOnce() + Send + 'static) -> Self {
        self.on_end = Some(Box::new(on_end));
        self
    }
    /// The informer; it reads nothing before it is started.
    pub fn build(self) -> Informer<T> {
        let hub = Hub::new(&self.name);
        if let Some(on_error) = self.on_error {
            hub.set_on_error(on_error);
        }
        let source = Arc::clone(&self.source);
        let session = Session::new(self.source, Arc::clone(&hub), self.transform, self.settings);
        let mut reflector = Reflector::new(session);
        if let Some(saved) = self.saved {
            reflector.begin_with(saved);
        }
        let feed = Feed::new(hub, source, reflector, self.on_end);
        feed.join();
        Informer::of(feed, true)
    }
}

/// The handlers that were started.
#[derive(Default)]
struct Tasks {
    handlers: Vec<JoinHandle<()>>,
    /// Whether no handler is started any more.
    has_ended: bool,
}

/// The tasks that a shutdown waits for.
#[derive(Default)]
struct Ending {
    reflector: Option<JoinHandle<()>>,
    handlers: Vec<JoinHandle<()>>,
}

/// The state of an informer, which its clones share.
struct InformerState<T: CacheObject> {
    feed: Arc<Feed<T>>,
    /// Its subscribers.
    group: Arc<Group>,
    /// Whether the feed counts it as a user.
    is_user: bool,
    phase: watch::Sender<Phase>,
    tasks: Mutex<Tasks>,
    /// Held by a shutdown: another one waits for the same tasks, also if the first is cancelled.
    ending: AsyncMutex<Ending>,
}

impl<T: CacheObject> InformerState<T> {
    fn hub(&self) -> &Arc<Hub<T>> {
        self.feed.hub()
    }

    /// Leaves the feed, once; the result is the task that was cancelled by it.
    fn leave(&self) -> Option<JoinHandle<()>> {
        let phase = self.phase.send_replace(Phase::Stopped);
        let leaves = self.is_user && phase != Phase::Stopped;
        leaves.then(|| self.feed.leave()).flatten()
    }
    /// Tells the subscribers that no changes follow: its own, and those of all when the feed has ended.
    fn close(&self) {
        if self.feed.has_ended() {
            self.hub().close();
        }
        self.hub().close_group(&self.group);
    }
}

impl<T: CacheObject> Drop for InformerState<T> {
    /// Without a shutdown the reflector is cancelled, and handlers end after the events that they have.
    fn drop(&mut self) {
        self.leave();
        self.close();
    }
}

/// A cache of the objects of one resource that any number of readers and subscribers share. Clones are the same informer;
/// dropping the last one stops it. Equal informers of several factories have one cache; see
/// [`InformerFactory`](super::InformerFactory).
///
/// ```no_run
/// use std::time::Duration;
/// use apiloom_client::cache::{CacheObject, Event, Informer, ListWatch};
///
/// # async fn example<Pod: CacheObject + std::fmt::Debug>(source: impl ListWatch<Pod>) -> Result<(), Box<dyn std::error::Error>> {
/// let pods = Informer::builder(source).name("pods").build();
/// let handler = pods.on_event(|event| async move {
///     if let Event::Deleted { last, .. } = event {
///         println!("{last:?} is gone");
///     }
/// });
/// pods.start();
/// pods.wait_for_sync(Duration::from_secs(30)).await?;
/// println!("{} pods", pods.lister().len());
/// pods.shutdown().await;
/// # Ok(())
/// # }
/// ```
pub struct Informer<T: CacheObject> {
    shared: Arc<InformerState<T>>,
}

impl<T: CacheObject> Clone for Informer<T> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

/// An informer that is not kept.
pub(crate) struct WeakInformer<T: CacheObject>(Weak<InformerState<T>>);

impl<T: CacheObject> WeakInformer<T> {
    /// The informer, if it still exists.
    pub(crate) fn upgrade(&self) -> Option<Informer<T>> {
        let shared = self.0.upgrade()?;
        Some(Informer { shared })
    }
}

impl<T: CacheObject> fmt::Debug for Informer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Informer")
            .field("name", &self.shared.hub().name())
            .finish_non_exhaustive()
    }
}

impl<T: CacheObject> Informer<T> {
    /// Begins an informer of what a source lists.
    pub fn builder(source: impl ListWatch<T>) -> InformerBuilder<T> {
        InformerBuilder {
            source: Arc::new(source),
            name: "objects".to_owned(),
            settings: Settings::default(),
            transform: None,
            on_error: None,
            saved: None,
            on_end: None,
        }
    }

    fn of(feed: Arc<Feed<T>>, is_user: bool) -> Self {
        Self {
            shared: Arc::new(InformerState {
                feed,
                group: Group::new(),
                is_user,
                phase: watch::Sender::new(Phase::New),
                tasks: Mutex::default(),
                ending: AsyncMutex::default(),
            }),
        }
    }
    /// Another informer with the cache of others; `None` if all of these were shut down or dropped.
    pub(super) fn join(feed: Arc<Feed<T>>) -> Option<Self> {
        feed.join().then(|| Self::of(feed, true))
    }
    /// An informer that reads the cache of others until the last of these was shut down or dropped.
    pub(super) fn reader(feed: Arc<Feed<T>>) -> Self {
        Self::of(feed, false)
    }
    /// Its cache, and what fills it.
    pub(super) fn feed(&self) -> &Arc<Feed<T>> {
        &self.shared.feed
    }

    /// The name for errors and logs.
    pub fn name(&self) -> &str {
        self.shared.hub().name()
    }
    /// Reads the objects; empty before the first state is complete.
    pub fn lister(&self) -> Lister<T> {
        self.shared.hub().lister().clone()
    }
    /// The same informer, whose store has an index; see [`Lister::by_index`].
    #[must_use]
    pub fn with_index<I: Index<T>>(self) -> Self {
        self.shared.hub().lister().add_index::<I>();
        self
    }
    /// How the cache is doing, for readiness checks.
    pub fn state(&self) -> CacheState {
        self.shared.hub().state().borrow().clone()
    }
    /// The same, for waiting on a change of it.
    pub fn watch_state(&self) -> watch::Receiver<CacheState> {
        self.shared.hub().state()
    }

    /// Subscribes to the events: first the objects that are there. It can be called at any time.
    pub fn subscribe(&self) -> Subscription<T> {
        let InformerState { feed, group, .. } = &*self.shared;
        Subscription::new(Arc::clone(feed.hub()), Arc::clone(group))
    }
    /// The metrics of the cache, and of the subscribers of this informer.
    pub fn metrics(&self) -> InformerMetrics {
        self.shared.hub().metrics(Some(&self.shared.group))
    }
    /// Adds the metrics of the cache and all its subscribers to a registry, with the name of the informer, as long as it
    /// exists. Once for a cache that several informers share.
    pub fn register_metrics(&self, registry: &Registry) {
        self.shared.hub().register_metrics(registry);
    }
    /// Calls a function for each event, in a task of its own, as [`Informer::subscribe`] delivers them. The next call
    /// begins when the one before has ended; a call that panics is logged. After a shutdown it is never called.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn on_event<F, Fut>(&self, on_event: F) -> Handler<T>
    where
        F: FnMut(Event<T>) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send,
    {
        self.handle(self.subscribe(), on_event)
    }
    /// As [`Informer::on_event`], for a subscription with other settings.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn handle<F, Fut>(&self, subscription: Subscription<T>, on_event: F) -> Handler<T>
    where
        F: FnMut(Event<T>) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send,
    {
        let mut tasks = self.shared.tasks.lock();
        if tasks.has_ended {
            return subscription.ended();
        }
        let (handler, task) = subscription.spawn(on_event);
        tasks.handlers.retain(|task| !task.is_finished());
        tasks.handlers.push(task);
        handler
    }

    /// Starts to read. Does nothing if it runs already, or was shut down.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn start(&self) {
        let is_started = self.shared.phase.send_if_modified(|phase| {
            let is_new = *phase == Phase::New;
            if is_new {
                *phase = Phase::Running;
            }
            is_new
        });
        if is_started {
            self.shared.feed.start();
            self.shared.hub().open(&self.shared.group);
        }
    }

    /// Makes changes, as a reflector does.
    #[cfg(test)]
    pub(crate) fn apply(&self, deltas: Vec<super::store::Delta<T>>) {
        let version = ResourceVersion::new("9");
        self.shared.hub().open(&self.shared.group);
        self.shared.hub().apply(deltas, version);
    }

    fn phase(&self) -> Phase {
        *self.shared.phase.borrow()
    }

    /// Waits until the first state is complete.
    ///
    /// # Errors
    /// If it was not started, was shut down, or the time has passed.
    pub async fn wait_for_sync(&self, limit: Duration) -> Result<(), SyncError> {
        let lister = self.shared.hub().lister();
        let mut phase = self.shared.phase.subscribe();
        let name = || self.name().to_owned();
        if self.phase() == Phase::New {
            return Err(SyncError::NotStarted { name: name() });
        }
        let synced = async {
            tokio::select! {
                biased;
                () = lister.wait_until(|| lister.is_synced()) => Ok(()),
                _ = phase.wait_for(|phase| *phase == Phase::Stopped) => {
                    Err(SyncError::Stopped { name: name() })
                }
                () = self.shared.feed.ended() => Err(SyncError::Stopped { name: name() }),
            }
        };
        timeout(limit, synced).await.unwrap_or_else(|_| {
            let error = match self.state() {
                CacheState::Degraded { error, .. } => Some(error),
                CacheState::Syncing | CacheState::Live { .. } => None,
            };
            Err(SyncError::TimedOut {
                name: name(),
                limit,
                error,
            })
        })
    }

    /// Waits until the cache shows what the server has now, for tests: all objects are listed for it. Objects that cannot be
    /// cached are waited for too, until another one changes.
    ///
    /// # Errors
    /// If the time has passed, with the last failure.
    pub async fn wait_for_server(&self, limit: Duration) -> Result<(), BehindError> {
        let InformerState { feed, .. } = &*self.shared;
        let hub = feed.hub();
        catch_up(feed.source(), hub.lister(), hub.name(), limit).await?;
        hub.announced();
        Ok(())
    }

    /// The same informer, which is not kept.
    pub(crate) fn downgrade(&self) -> WeakInformer<T> {
        WeakInformer(Arc::downgrade(&self.shared))
    }

    /// Stops reading, unless other informers use the same cache, lets handlers work off the events that they have, and returns when their last call has ended. Calls
    /// that take longer than 30 s are cancelled.
    pub async fn shutdown(&self) {
        self.shutdown_within(SHUTDOWN_LIMIT).await;
    }

    /// As [`Informer::shutdown`], with another limit for the handlers. Those that are added meanwhile are waited for, too.
    pub async fn shutdown_within(&self, limit: Duration) {
        let mut ending = self.shared.ending.lock().await;
        let Ending {
            reflector,
            handlers,
        } = &mut *ending;
        if let Some(running) = self.shared.leave() {
            *reflector = Some(running);
        }
        if let Some(task) = reflector {
            // It was cancelled, or has panicked, which was logged; either way it has ended.
            let _ = task.await;
            *reflector = None;
        }
        self.shared.close();
        let waiting = async {
            while self.take_handlers(handlers) {
                join_all(handlers.iter_mut()).await;
            }
        };
        if timeout(limit, waiting).await.is_err() {
            self.shared.tasks.lock().has_ended = true;
            self.take_handlers(handlers);
            let (cache, late) = (self.name(), handlers.len());
            tracing::warn!(cache, late, "handlers are cancelled");
            for task in handlers.iter() {
                task.abort();
            }
            join_all(handlers.iter_mut()).await;
        }
        handlers.clear();
    }

    /// Adds the handlers that were started since the last call to those that have not ended. If there are none, none is
    /// started any more, and the result is false.
    fn take_handlers(&self, handlers: &mut Vec<JoinHandle<()>>) -> bool {
        let mut tasks = self.shared.tasks.lock();
        handlers.append(&mut tasks.handlers);
        // A wait that was cancelled may have seen the end of some, which must not be awaited again.
        handlers.retain(|task| !task.is_finished());
        tasks.has_ended |= handlers.is_empty();
        !handlers.is_empty()
    }
}
