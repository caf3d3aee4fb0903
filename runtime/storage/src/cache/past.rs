//! A cache of past states that were requested recently, for the next page of the same list.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::snapshot::Snapshot;
use crate::Revision;

/// Maximum number of states.
const MOST_STATES: usize = 16;

/// Maximum objects of all states together: a state that shares nothing with the current one costs about a hundred bytes
/// per object.
const MOST_OBJECTS: usize = 1 << 18;

/// How long a state is kept after its last use.
const KEPT_UNUSED: Duration = Duration::from_secs(10);

struct State<O> {
    snapshot: Arc<Snapshot<O>>,
    used: Instant,
}

/// Least recently used first.
pub(super) struct Past<O>(Mutex<Vec<State<O>>>);

impl<O> Default for Past<O> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<O> Past<O> {
    pub(super) fn find(&self, revision: Revision) -> Option<Arc<Snapshot<O>>> {
        let mut states = self.0.lock();
        let at = states
            .iter()
            .position(|state| state.snapshot.revision() == revision)?;
        let mut state = states.remove(at);
        state.used = Instant::now();
        let snapshot = Arc::clone(&state.snapshot);
        states.push(state);
        Some(snapshot)
    }

    /// Keeps a state that [`Past::find`] did not return.
    pub(super) fn keep(&self, snapshot: &Arc<Snapshot<O>>) {
        let mut states = self.0.lock();
        let mut objects: usize = states.iter().map(|state| state.snapshot.len()).sum();
        while states.len() >= MOST_STATES
            || !states.is_empty() && objects + snapshot.len() > MOST_OBJECTS
        {
            objects -= states.remove(0).snapshot.len();
        }
        states.push(State {
            snapshot: Arc::clone(snapshot),
            used: Instant::now(),
        });
    }

    /// Drops states from before the window.
    pub(super) fn forget_before(&self, oldest: Revision) {
        let mut states = self.0.lock();
        states.retain(|state| state.snapshot.revision() >= oldest);
    }

    /// Drops states that were not used recently.
    pub(super) fn forget_unused(&self) {
        self.0
            .lock()
            .retain(|state| state.used.elapsed() < KEPT_UNUSED);
    }

    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(revision: u64) -> Arc<Snapshot<String>> {
        let mut snapshot = Snapshot::default();
        snapshot.set_revision(Revision(revision));
        Arc::new(snapshot)
    }

    fn known(past: &Past<String>) -> Vec<u64> {
        let states = past.0.lock();
        states.iter().map(|s| s.snapshot.revision().0).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_used_goes_first() {
        let past = Past::default();
        for revision in 1..=MOST_STATES as u64 {
            past.keep(&state(revision));
        }
        assert!(past.find(Revision(1)).is_some());
        past.keep(&state(100));
        assert!(past.find(Revision(2)).is_none());
        past.forget_before(Revision(15));
        assert_eq!(known(&past), [15, 16, 100]);
        tokio::time::advance(KEPT_UNUSED / 2).await;
        assert!(past.find(Revision(16)).is_some());
        tokio::time::advance(KEPT_UNUSED / 2).await;
        past.forget_unused();
        assert_eq!(known(&past), [16]);
    }
}
