//! What the transports and the control of a test server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use apiloom_server::registry::Registry;
use apiloom_storage::Memory;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::action::Action;
use super::clock::TestClock;
use super::fault::{Effect, Faults};
use super::watches::Watches;

/// What the transports and the control of a test server share.
pub(crate) struct SharedState {
    pub(crate) registry: Arc<Registry>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) clock: TestClock,
    pub(crate) watches: Watches,
    /// How many pauses there are, during which the watches of the store deliver nothing.
    pub(crate) pauses: watch::Sender<usize>,
    /// How often the watches of the store have failed.
    pub(crate) losses: watch::Sender<u64>,
    pub(crate) requests: Mutex<Requests>,
    is_stopped: AtomicBool,
}

/// The requests so far, and what happens to the next ones.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pub(crate) actions: Vec<Action>,
    pub(crate) faults: Faults,
    pub(crate) latency: Duration,
}

impl Requests {
    /// Records a request. Returns how it fails, if it does.
    pub(crate) fn begin(&mut self, action: Action) -> Option<(Effect, Action)> {
        let effect = self.faults.take(&action);
        let failed = effect.map(|effect| (effect, action.clone()));
        self.actions.push(action);
        failed
    }
}

impl SharedState {
    pub(crate) fn new(
        registry: Arc<Registry>,
        memory: Arc<Memory>,
        clock: TestClock,
        pauses: watch::Sender<usize>,
        losses: watch::Sender<u64>,
    ) -> Self {
        Self {
            registry,
            memory,
            clock,
            watches: Watches::default(),
            pauses,
            losses,
            requests: Mutex::default(),
            is_stopped: AtomicBool::new(false),
        }
    }

    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }
}
