//! `Feed`: a store and the reflector that fills it. It belongs to one informer, or to the equal ones of several factories.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::hub::Hub;
use super::object::CacheObject;
use super::reflector::Reflector;
use super::source::ListWatch;

/// Called when the last user has left.
pub(super) type OnEnd = Box<dyn FnOnce() + Send>;

struct Run<T> {
    /// The informers that have joined and not left.
    users: usize,
    /// Until the start.
    reflector: Option<Reflector<T>>,
    running: Option<JoinHandle<()>>,
    on_end: Option<OnEnd>,
}

/// What is read once for all its users: from the start of the first one until the last one has left.
pub(super) struct Feed<T> {
    hub: Arc<Hub<T>>,
    source: Arc<dyn ListWatch<T>>,
    run: Mutex<Run<T>>,
    /// Cancelled when the last user has left, with `run` locked.
    ended: CancellationToken,
}

impl<T: CacheObject> Feed<T> {
    pub(super) fn new(
        hub: Arc<Hub<T>>,
        source: Arc<dyn ListWatch<T>>,
        reflector: Reflector<T>,
        on_end: Option<OnEnd>,
    ) -> Arc<Self> {
        Arc::new(Self {
            hub,
            source,
            run: Mutex::new(Run {
                users: 0,
                reflector: Some(reflector),
                running: None,
                on_end,
            }),
            ended: CancellationToken::new(),
        })
    }

    pub(super) fn hub(&self) -> &Arc<Hub<T>> {
        &self.hub
    }
    pub(super) fn source(&self) -> &dyn ListWatch<T> {
        &*self.source
    }
    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }
    /// Returns when the last user has left.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Adds a user; false if the last one has left.
    pub(super) fn join(&self) -> bool {
        let mut run = self.run.lock();
        if self.has_ended() {
            return false;
        }
        run.users += 1;
        true
    }
    /// Starts to read. Does nothing if it reads already, or has ended.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub(super) fn start(&self) {
        let mut run = self.run.lock();
        if let Some(reflector) = run.reflector.take() {
            run.running = Some(tokio::spawn(reflector.run()));
        }
    }
    /// Removes a user. With the last one the reading is cancelled; the result is its task, if it has one.
    pub(super) fn leave(&self) -> Option<JoinHandle<()>> {
        let mut run = self.run.lock();
        run.users = run.users.saturating_sub(1);
        if run.users > 0 {
            return None;
        }
        self.ended.cancel();
        let (reflector, on_end) = (run.reflector.take(), run.on_end.take());
        let running = run.running.take();
        // Without the lock: both are made by others.
        drop(run);
        drop(reflector);
        if let Some(on_end) = on_end {
            on_end();
        }
        if let Some(task) = &running {
            task.abort();
        }
        running
    }
}
