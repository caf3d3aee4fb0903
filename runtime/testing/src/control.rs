//! [`Control`]: what a test sees of its server, and what it does to it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use apiloom_meta::{ApiError, Resource};
use apiloom_server::registry::Registry;
use apiloom_storage::Storage as _;
use bytes::Bytes;

use super::action::Action;
use super::clock::TestClock;
use super::error::TestError;
use super::fault::{Fault, FaultHandle};
use super::running::Running;
use super::shared::SharedState;

/// A key that belongs to no resource: a write of it only makes a new revision.
const NO_OBJECT: &str = "/apiloom-testing/revision";

/// What a test sees of its server, and what it does to it. Cheap to clone.
#[derive(Clone)]
pub struct Control {
    shared: Arc<SharedState>,
    /// Keeps the server running.
    _running: Option<Arc<Running>>,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control")
            .field("actions", &self.shared.requests.lock().actions.len())
            .field("watches", &self.watches())
            .finish_non_exhaustive()
    }
}

/// The revisions of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revisions {
    /// The oldest state that is kept.
    pub oldest: u64,
    /// The newest one. It grows by one with each write that changes something, and with each
    /// [`Control::compact`].
    pub current: u64,
}

impl Control {
    pub(crate) fn new(shared: Arc<SharedState>, running: Option<Arc<Running>>) -> Self {
        Self {
            shared,
            _running: running,
        }
    }

    /// All requests of clients so far, in the order in which they arrived, with those that failed. Those that made the
    /// objects of the builder are not among them.
    pub fn actions(&self) -> Vec<Action> {
        self.shared.requests.lock().actions.clone()
    }

    /// As [`Control::actions`], and forgets them.
    pub fn take_actions(&self) -> Vec<Action> {
        std::mem::take(&mut self.shared.requests.lock().actions)
    }

    /// Lets requests fail. Faults are tried in the order of their injection.
    pub fn inject(&self, fault: Fault) -> FaultHandle {
        self.shared.requests.lock().faults.inject(fault)
    }

    /// Delays every further request by this time, by tokio's clock. Default zero.
    pub fn latency(&self, latency: Duration) {
        self.shared.requests.lock().latency = latency;
    }

    /// The number of open watches.
    pub fn watches(&self) -> usize {
        self.shared.watches.count()
    }

    /// Breaks the connections of all open watches; returns how many there were.
    pub fn drop_watches(&self) -> usize {
        self.shared.watches.break_all()
    }

    /// Removes all history: a list or a watch from a resourceVersion that was seen before is refused with 410. Open watches
    /// go on.
    ///
    /// # Errors
    /// If the server is stopped.
    pub async fn compact(&self) -> Result<(), TestError> {
        let memory = &self.shared.memory;
        // A client may know the current revision, and nothing was removed after that.
        let (present, _) = memory.get(NO_OBJECT).await?;
        let revision = match present {
            None => memory.create(NO_OBJECT, Bytes::new(), None).await?,
            Some(entry) => {
                let expected = entry.revision;
                memory
                    .update_if(NO_OBJECT, expected, Bytes::new(), None)
                    .await?
            }
        };
        memory.compact(revision).await?;
        self.shared.registry.forget_history(revision).await;
        Ok(())
    }

    /// Stops the watch caches, until this value and all others of its type are dropped: what is served from them is stale, and
    /// watches get no events. Reads that must be current wait for the caches as they do in production, and are answered by the
    /// store after that.
    pub fn pause_watch_cache(&self) -> PausedWatchCache {
        self.shared.pauses.send_modify(|pauses| *pauses += 1);
        PausedWatchCache(Arc::clone(&self.shared))
    }

    /// Lets the watch caches lose the store, as if they were behind for longer than it keeps history: they are filled again, and
    /// all open watches end with 410. Until then, reads from them are refused with 429 and `Retry-After`.
    pub fn restart_watch_caches(&self) {
        self.shared.losses.send_modify(|losses| *losses += 1);
    }

    /// The registry of the server, whose catalog can be changed: kinds come and go.
    pub fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.shared.registry)
    }

    /// The clock of the server.
    pub fn clock(&self) -> &TestClock {
        &self.shared.clock
    }

    /// Stores these bytes as an object, past all validation: for objects that cannot be decoded. Without a namespace for kinds
    /// of the cluster. An object of this name is replaced.
    ///
    /// # Errors
    /// If the kind is not served, or the name cannot be part of a key.
    pub async fn seed_raw<K: Resource>(
        &self,
        namespace: Option<&str>,
        name: &str,
        bytes: impl Into<Bytes>,
    ) -> Result<(), TestError> {
        let endpoint = self
            .shared
            .registry
            .endpoint(K::GROUP, K::VERSION, K::PLURAL);
        let endpoint = endpoint.ok_or_else(ApiError::no_such_resource)?;
        let key = endpoint.storage_key(namespace, name)?;
        let memory = &self.shared.memory;
        match memory.get(&key).await?.0 {
            None => memory.create(&key, bytes.into(), None).await?,
            Some(entry) => {
                memory
                    .update_if(&key, entry.revision, bytes.into(), None)
                    .await?
            }
        };
        Ok(())
    }

    /// The revisions of the store: a write that changes nothing makes none.
    pub fn revisions(&self) -> Revisions {
        let (oldest, current) = self.shared.memory.kept_revisions();
        Revisions {
            oldest: oldest.0,
            current: current.0,
        }
    }
}

/// Watch caches that are stopped until this is dropped.
#[must_use = "the watch caches go on when this is dropped"]
pub struct PausedWatchCache(Arc<SharedState>);

impl fmt::Debug for PausedWatchCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PausedWatchCache").finish_non_exhaustive()
    }
}

impl Drop for PausedWatchCache {
    fn drop(&mut self) {
        self.0.pauses.send_modify(|pauses| *pauses -= 1);
    }
}
