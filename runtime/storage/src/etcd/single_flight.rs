//! Coalesces concurrent identical queries.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, WeakShared};
use parking_lot::Mutex;
use tokio::time::timeout;

/// How long an in-flight query blocks the next one; after that, queries overlap.
const PATIENCE: Duration = Duration::from_millis(20);

/// Runs one query for all callers that arrive while an earlier one is in flight. No caller gets an answer to a query
/// that was sent before its call.
pub(super) struct SingleFlight<T: Clone> {
    /// The next query, not sent yet, as long as a caller waits for it.
    next: Mutex<Option<WeakShared<BoxFuture<'static, T>>>>,
    turn: tokio::sync::Mutex<()>,
}

impl<T: Clone + Send + Sync + 'static> SingleFlight<T> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            next: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        })
    }

    /// Returns the answer to a query that is sent after this call; `question` sends it.
    pub(super) async fn ask<F>(self: &Arc<Self>, question: impl FnOnce() -> F + Send + 'static) -> T
    where
        F: Future<Output = T> + Send + 'static,
    {
        let shared = {
            let mut next = self.next.lock();
            let joined = next.as_ref().and_then(WeakShared::upgrade);
            joined.unwrap_or_else(|| {
                let shared = Arc::clone(self).ask_alone(question).boxed().shared();
                *next = shared.downgrade();
                shared
            })
        };
        shared.await
    }

    async fn ask_alone<F>(self: Arc<Self>, question: impl FnOnce() -> F) -> T
    where
        F: Future<Output = T>,
    {
        let turn = timeout(PATIENCE, self.turn.lock()).await;
        // Callers from now on need the next query.
        self.next.lock().take();
        let mut answer = pin!(question());
        if let Ok(turn) = turn {
            if let Ok(answer) = timeout(PATIENCE, &mut answer).await {
                return answer;
            }
            drop(turn);
        }
        answer.await
    }
}

impl<T: Clone> fmt::Debug for SingleFlight<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleFlight").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
