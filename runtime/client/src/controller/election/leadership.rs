//! What a leader has: the permission to write, for a limited time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::clock::{Clocks, Reading};

/// This process does not lead, or does not know that it still does: it must not write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this process is not the leader: its lease was not renewed in time, or was given up")]
pub struct NotLeader;

/// Permits writes while this process leads. It closes by itself when the renew deadline passes, without any task having to
/// run, and never opens again. Clones share it.
#[derive(Clone, Debug)]
pub struct WriteGuard(Arc<State>);

#[derive(Debug)]
struct State {
    clocks: Clocks,
    renew_deadline: Duration,
    /// When the last successful renewal began; `None` once the guard is closed.
    renewed: Mutex<Option<Reading>>,
    /// Notified when the guard is closed before its time.
    closing: Notify,
}

impl WriteGuard {
    pub(super) fn new(clocks: Clocks, renew_deadline: Duration, renewed: Reading) -> Self {
        Self(Arc::new(State {
            clocks,
            renew_deadline,
            renewed: Mutex::new(Some(renewed)),
            closing: Notify::new(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Reading>> {
        let renewed = self.0.renewed.lock();
        renewed.unwrap_or_else(PoisonError::into_inner)
    }

    /// How long writes are still permitted without another renewal.
    ///
    /// # Errors
    /// If they are not.
    pub fn check(&self) -> Result<Duration, NotLeader> {
        let mut renewed = self.lock();
        let passed = renewed.map(|renewed| self.0.clocks.longest_since(renewed));
        let left = passed.and_then(|passed| self.0.renew_deadline.checked_sub(passed));
        match left {
            Some(left) if !left.is_zero() => Ok(left),
            _ => {
                *renewed = None;
                Err(NotLeader)
            }
        }
    }

    /// Prolongs the permission, after a renewal that began at this time.
    pub(super) fn renew(&self, began: Reading) -> Result<(), NotLeader> {
        self.check()?;
        if let Some(renewed) = &mut *self.lock() {
            *renewed = began;
        }
        Ok(())
    }

    pub(super) fn close(&self) {
        *self.lock() = None;
        self.0.closing.notify_waiters();
    }

    /// Waits until writes are not permitted any more.
    pub async fn closed(&self) {
        loop {
            // Before the look at the time: it notices a guard that is closed meanwhile.
            let closing = self.0.closing.notified();
            let Ok(left) = self.check() else {
                return;
            };
            tokio::select! {
                () = closing => {}
                () = sleep(left) => {}
            }
        }
    }
}

/// The time in which this process leads.
#[derive(Clone, Debug)]
pub struct Leadership {
    pub(super) guard: WriteGuard,
    pub(super) cancel: CancellationToken,
    pub(super) term: i32,
}

impl Leadership {
    /// Permits writes while this process leads.
    pub fn guard(&self) -> &WriteGuard {
        &self.guard
    }

    /// The signal to stop: the lease was lost, or the program ends.
    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// The number of the term, `spec.leaseTransitions`: it grows with each holder, so systems that remember it can refuse
    /// writes of earlier leaders. It starts again from 0 if the Lease is deleted.
    pub fn term(&self) -> i32 {
        self.term
    }
}

/// Ends a leadership when the election ends, also by being dropped.
pub(super) struct Ending<'a>(pub(super) &'a Leadership);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.guard.close();
        self.0.cancel.cancel();
    }
}
