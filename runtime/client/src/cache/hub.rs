//! The store of a reflector together with the listeners of its changes: both change in one step, so that a listener can
//! join at any time and misses nothing. Listeners are in groups, one for each informer.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::event::Listener;
use super::lister::Lister;
use super::metrics::{Counts, InformerMetrics};
use super::object::CacheObject;
use super::resource_version::ResourceVersion;
use super::source::{SourceError, Undecodable};
use super::store::{Change, Delta, Relist, Store};
use super::subscriber::Lag;
use crate::metrics::{Collect, Registry, Samples, WeakRegistry};

/// How a cache is doing.
#[derive(Clone, Debug)]
pub enum CacheState {
    /// The first state is being read, or the cache was not started.
    Syncing,
    /// The server sends changes.
    Live {
        /// Since when.
        since: Instant,
    },
    /// The last request failed, and is being repeated; the objects may be old.
    Degraded {
        /// The last failure.
        error: SourceError,
        /// Since when requests have failed.
        since: Instant,
    },
}

/// A problem that a cache reports and lives with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CacheError {
    /// A request failed; it will be repeated.
    #[error(transparent)]
    Source(SourceError),
    /// An object is not in the cache. Reported once for each of its states.
    #[error(transparent)]
    Object(Undecodable),
    /// A subscriber that wants every event does not keep up. Reported once for each time that it falls behind.
    #[error(transparent)]
    Lagging(Lag),
}

/// A function that is told of problems.
pub(super) type OnError = Arc<dyn Fn(&CacheError) + Send + Sync>;

/// Whether the listeners of a group are told of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupState {
    /// Not before it is opened.
    Waiting,
    Open,
    /// No changes follow.
    Closed,
}

/// The listeners of one informer. They are told of nothing until the group is opened: the hub may have changes before, which
/// another informer asked for. The state changes with the hub locked.
pub(super) struct Group(Mutex<GroupState>);

impl Group {
    /// A group that is not open yet.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(GroupState::Waiting)))
    }
    fn state(&self) -> GroupState {
        *self.0.lock()
    }
    fn set_state(&self, state: GroupState) {
        *self.0.lock() = state;
    }
}

/// A listener that joined.
struct Member<T> {
    number: u64,
    group: Arc<Group>,
    listener: Box<dyn Listener<T>>,
}

struct Inner<T> {
    store: Store<T>,
    members: Vec<Member<T>>,
    next_listener: u64,
    /// Whether no changes follow.
    is_closed: bool,
}

impl<T> Inner<T> {
    /// The listeners of a group.
    fn of_group(&mut self, group: &Arc<Group>) -> impl Iterator<Item = &mut Box<dyn Listener<T>>> {
        let members = self.members.iter_mut();
        let members = members.filter(|member| Arc::ptr_eq(&member.group, group));
        members.map(|member| &mut member.listener)
    }

    /// Tells the listeners of open groups of changes; the result are those that do not keep up.
    fn announce(&mut self, changes: &[Change<T>], is_initial: bool) -> Vec<Lag> {
        let members = self.members.iter_mut();
        let open = members.filter(|member| member.group.state() == GroupState::Open);
        open.filter_map(|member| member.listener.on_changes(changes, is_initial))
            .collect()
    }
}

/// A store and its listeners.
pub(super) struct Hub<T> {
    /// For logs.
    name: String,
    inner: Mutex<Inner<T>>,
    lister: Lister<T>,
    state: watch::Sender<CacheState>,
    on_error: Mutex<Option<OnError>>,
    counts: Counts,
    /// The registries that have its metrics.
    registries: Mutex<Vec<WeakRegistry>>,
}

impl<T> fmt::Debug for Hub<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}

impl<T: CacheObject> Hub<T> {
    pub(super) fn new(name: &str) -> Arc<Self> {
        let store = Store::new();
        let lister = store.lister();
        Arc::new(Self {
            name: name.to_owned(),
            inner: Mutex::new(Inner {
                store,
                members: Vec::new(),
                next_listener: 0,
                is_closed: false,
            }),
            lister,
            state: watch::Sender::new(CacheState::Syncing),
            on_error: Mutex::new(None),
            counts: Counts::default(),
            registries: Mutex::new(Vec::new()),
        })
    }

    /// The name for errors and logs.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
    pub(super) fn lister(&self) -> &Lister<T> {
        &self.lister
    }
    pub(super) fn set_on_error(&self, on_error: OnError) {
        *self.on_error.lock() = Some(on_error);
    }

    /// Adds a listener to a group. It is made from the objects that are in the store when it joins, and from whether they are
    /// a complete state; while the group waits, from nothing. The result is its number.
    pub(super) fn listen(
        &self,
        group: &Arc<Group>,
        listener: impl FnOnce(Vec<Arc<T>>, bool) -> Box<dyn Listener<T>>,
    ) -> u64 {
        let mut inner = self.inner.lock();
        let state = group.state();
        let mut listener = match state {
            GroupState::Waiting => listener(Vec::new(), false),
            GroupState::Open | GroupState::Closed => {
                listener(self.lister.list(), self.lister.is_synced())
            }
        };
        if inner.is_closed || state == GroupState::Closed {
            listener.close();
        }
        let number = inner.next_listener;
        inner.next_listener += 1;
        inner.members.push(Member {
            number,
            group: Arc::clone(group),
            listener,
        });
        number
    }
    /// Removes a listener.
    pub(super) fn unlisten(&self, number: u64) {
        let mut inner = self.inner.lock();
        inner.members.retain(|member| member.number != number);
    }

    /// Tells the listeners of a group of the objects that are in the store, and of all changes that follow. Does nothing if
    /// the group was opened before.
    pub(super) fn open(&self, group: &Arc<Group>) {
        let mut inner = self.inner.lock();
        if group.state() != GroupState::Waiting {
            return;
        }
        group.set_state(GroupState::Open);
        if !self.lister.is_synced() {
            return;
        }
        let objects = self.lister.list().into_iter();
        let changes: Vec<Change<T>> = objects.map(Change::Added).collect();
        for listener in inner.of_group(group) {
            // Nothing has waited in it, so it is not late.
            let _ = listener.on_changes(&changes, true);
        }
    }
    /// Tells the listeners of a group, also those that join later, that no changes follow.
    pub(super) fn close_group(&self, group: &Arc<Group>) {
        let mut inner = self.inner.lock();
        group.set_state(GroupState::Closed);
        for listener in inner.of_group(group) {
            listener.close();
        }
    }

    /// Returns when the listeners were told of everything that the store shows now: a change is shown a moment earlier.
    pub(super) fn announced(&self) {
        drop(self.inner.lock());
    }

    /// Announces all objects to a subscriber of a group again.
    pub(super) fn resync(&self, group: &Group, announce: impl FnOnce(Vec<Arc<T>>)) {
        // Locked, so that no object leaves between the list and the announcement.
        let _inner = self.inner.lock();
        if group.state() != GroupState::Waiting {
            announce(self.lister.list());
        }
    }
    /// Tells the listeners of all groups, also those that join later, that no changes follow.
    pub(super) fn close(&self) {
        let mut inner = self.inner.lock();
        inner.is_closed = true;
        for member in &mut inner.members {
            member.listener.close();
        }
    }

    pub(super) fn begin_relist(&self) -> Relist<T> {
        self.inner.lock().store.begin_relist()
    }
    pub(super) fn finish_relist(&self, relist: Relist<T>, version: Option<ResourceVersion>) {
        let mut inner = self.inner.lock();
        let is_initial = !self.lister.is_synced();
        let changes = inner.store.finish_relist(relist, version);
        let lags = inner.announce(&changes, is_initial);
        // Objects that left are dropped without the lock.
        drop(inner);
        drop(changes);
        self.report_lags(lags);
    }
    pub(super) fn apply(&self, deltas: Vec<Delta<T>>, version: Option<ResourceVersion>) {
        let mut inner = self.inner.lock();
        let changes = inner.store.apply(deltas, version);
        self.counts.set_updated();
        let mut lags = Vec::new();
        if !changes.is_empty() {
            lags = inner.announce(&changes, false);
        }
        drop(inner);
        drop(changes);
        self.report_lags(lags);
    }

    fn report_lags(&self, lags: Vec<Lag>) {
        for lag in lags {
            tracing::warn!(cache = self.name, "{lag}");
            self.report(&CacheError::Lagging(lag));
        }
    }
    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }
    /// The metrics, with the subscribers of one group or of all.
    pub(super) fn metrics(&self, group: Option<&Arc<Group>>) -> InformerMetrics {
        let inner = self.inner.lock();
        let members = inner.members.iter();
        let members =
            members.filter(|member| group.is_none_or(|group| Arc::ptr_eq(&member.group, group)));
        let subscribers = members.filter_map(|member| member.listener.metrics());
        InformerMetrics {
            objects: self.lister.len(),
            subscribers: subscribers.collect(),
            ..self.counts.get()
        }
    }
    /// Adds the metrics to a registry, once: the informers that share the hub may have the same registry.
    pub(super) fn register_metrics(self: &Arc<Self>, registry: &Registry) {
        let mut registries = self.registries.lock();
        if registries.iter().any(|other| registry.is(other)) {
            return;
        }
        registries.retain(WeakRegistry::is_alive);
        registries.push(registry.downgrade());
        drop(registries);
        registry.register(Collector(Arc::downgrade(self)));
    }

    pub(super) fn state(&self) -> watch::Receiver<CacheState> {
        self.state.subscribe()
    }
    /// The server answers.
    pub(super) fn set_live(&self) {
        self.state.send_if_modified(|state| {
            let is_changed = !matches!(state, CacheState::Live { .. });
            if is_changed {
                let since = Instant::now();
                *state = CacheState::Live { since };
            }
            is_changed
        });
    }
    /// A request failed.
    pub(super) fn set_degraded(&self, error: SourceError) {
        tracing::warn!(cache = self.name, %error, "a list or watch failed and is repeated");
        self.counts.count_failure();
        self.state.send_modify(|state| {
            let since = match state {
                CacheState::Degraded { since, .. } => *since,
                CacheState::Syncing | CacheState::Live { .. } => Instant::now(),
            };
            let error = error.clone();
            *state = CacheState::Degraded { error, since };
        });
        self.report(&CacheError::Source(error));
    }
    /// Calls the function that is told of problems.
    pub(super) fn report(&self, error: &CacheError) {
        let on_error = self.on_error.lock().clone();
        let Some(on_error) = on_error else {
            return;
        };
        if catch_unwind(AssertUnwindSafe(|| on_error(error))).is_err() {
            tracing::error!(cache = self.name, %error, "the error function of a cache panicked");
        }
    }
}

/// Reports the metrics of an informer without keeping it.
struct Collector<T>(Weak<Hub<T>>);

impl<T: CacheObject> Collect for Collector<T> {
    fn collect(&self, samples: &mut Samples) {
        if let Some(hub) = self.0.upgrade() {
            hub.metrics(None).collect(samples, hub.name());
        }
    }
    fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}
