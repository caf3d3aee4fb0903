//! The events that wait to be written: so many, and of more the newest.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::event::NewEvent;

/// As many as client-go keeps.
pub(super) const MAX_QUEUED: usize = 1000;

/// The events of a recorder, up to [`MAX_QUEUED`].
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    state: Mutex<QueueState>,
    added: Notify,
    /// No more events are taken.
    pub(super) closed: CancellationToken,
}

/// The events that wait, and how many were dropped.
#[derive(Debug, Default)]
struct QueueState {
    events: VecDeque<NewEvent>,
    dropped: u64,
}

impl EventQueue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event. If there are too many, the oldest is dropped: newer ones say more of the state of things.
    pub(super) fn push(&self, event: NewEvent) {
        if self.closed.is_cancelled() {
            return;
        }
        let mut state = self.lock();
        if state.events.len() == MAX_QUEUED {
            state.events.pop_front();
            state.dropped += 1;
        }
        state.events.push_back(event);
        drop(state);
        self.added.notify_one();
    }

    pub(super) fn pop(&self) -> Option<NewEvent> {
        self.lock().events.pop_front()
    }

    pub(super) fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// Waits for an event, or until the queue is closed. One task may wait.
    pub(super) async fn changed(&self) {
        tokio::select! {
            () = self.added.notified() => {}
            () = self.closed.cancelled() => {}
        }
    }
}
