//! Limits concurrent CPU-intensive work on long responses: encoding a piece of a Table or of YAML, or compressing one,
//! takes about a millisecond.
//!
//! At most one task per core, minus one, does such work at a time, however many clients request it. Otherwise every
//! poll of any other task would wait behind a piece of each of these responses.

use std::num::NonZeroUsize;
use std::sync::LazyLock;

use tokio::sync::{Semaphore, SemaphorePermit};

static TURNS: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    Semaphore::new(cores.saturating_sub(1).max(1))
});

/// Permit for CPU-intensive work. Must be dropped before the next await, so that a slow reader does not hold it.
pub(super) struct Turn {
    _permit: Option<SemaphorePermit<'static>>,
}

/// Waits for a permit, and then yields once to the tasks that are ready.
pub(super) async fn take_turn() -> Turn {
    // The semaphore is never closed.
    let permit = TURNS.acquire().await.ok();
    tokio::task::yield_now().await;
    Turn { _permit: permit }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn other_tasks_wait_for_few_turns() {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let turns = Arc::new(AtomicUsize::new(0));
        let busy: Vec<_> = (0..100 * cores)
            .map(|_| {
                let turns = Arc::clone(&turns);
                tokio::spawn(async move {
                    loop {
                        let turn = take_turn().await;
                        turns.fetch_add(1, Ordering::Relaxed);
                        drop(turn);
                    }
                })
            })
            .collect();
        while turns.load(Ordering::Relaxed) < 10 {
            tokio::task::yield_now().await;
        }
        for _ in 0..10 {
            let before = turns.load(Ordering::Relaxed);
            tokio::task::yield_now().await;
            let passed = turns.load(Ordering::Relaxed) - before;
            assert!(passed <= 2 * cores, "{passed}");
        }
        for task in busy {
            task.abort();
        }
    }
}
