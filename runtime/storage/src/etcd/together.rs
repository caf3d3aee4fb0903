//! One answer for all who ask the same at the same time.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, WeakShared};
use parking_lot::Mutex;
use tokio::time::timeout;

/// So long a question keeps its turn. One whose answer is slow delays others no longer.
const PATIENCE: Duration = Duration::from_millis(20);

/// Asks a question once for all who ask it while an earlier one is being answered. No answer is older than the moment
/// at which it was asked for.
pub(super) struct Together<T: Clone> {
    /// The question that is not asked yet, as long as somebody wants to know.
    next: Mutex<Option<WeakShared<BoxFuture<'static, T>>>>,
    turn: tokio::sync::Mutex<()>,
}

impl<T: Clone + Send + Sync + 'static> Together<T> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            next: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        })
    }

    /// Gives the answer to a question that is asked after this call; `question` asks it.
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
        // Whoever comes from now on comes too late for this one.
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

impl<T: Clone> fmt::Debug for Together<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Together").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
