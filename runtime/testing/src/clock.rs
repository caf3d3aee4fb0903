//! The clock of a test server.

use std::sync::Arc;
use std::time::Duration;

use apiloom_meta::{ManualClock, MicroTime, Time};
use apiloom_storage::Memory;

/// The clock of a test server: it stands still until a test moves it.
///
/// The server dates its writes by it (`creationTimestamp`, `deletionTimestamp`, managedFields, ages in Tables), and the
/// store removes by it what has a time to live, such as events. Deadlines of requests and of watches are measured by tokio's
/// clock, which is another one (`tokio::time::pause`).
#[derive(Clone, Debug)]
pub struct TestClock {
    clock: ManualClock,
    store: Arc<Memory>,
}

impl TestClock {
    pub(crate) fn new(start: MicroTime, store: Arc<Memory>) -> Self {
        Self {
            clock: ManualClock::new(start),
            store,
        }
    }

    pub(crate) fn manual(&self) -> ManualClock {
        self.clock.clone()
    }

    /// The time of the server.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Moves the clock forward, and removes what expires.
    pub fn advance(&self, duration: Duration) {
        self.clock.advance(duration);
        self.store.advance(duration);
    }
}
