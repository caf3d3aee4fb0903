//! Turns of costly work on long answers: making a piece of a Table or of YAML, and compressing one, take about a
//! millisecond.
//!
//! Only as many of them are at work as there are cores but one, however many clients ask for them. Otherwise every other
//! task would wait behind one piece of each of these answers, or of one for each core, as often as it is to be polled.

use std::num::NonZeroUsize;
use std::sync::LazyLock;

use tokio::sync::{Semaphore, SemaphorePermit};

static TURNS: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    Semaphore::new(cores.saturating_sub(1).max(1))
});

/// Ends when it is dropped, which is to be before the next wait: a client must not hold it by reading slowly.
pub(super) struct Turn {
    _permit: Option<SemaphorePermit<'static>>,
}

/// Waits for a turn, and then until the tasks that are ready have been polled.
pub(super) async fn take_turn() -> Turn {
    // It is never closed.
    let permit = TURNS.acquire().await.ok();
    tokio::task::yield_now().await;
    Turn { _permit: permit }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    // Issue 9, point 12.
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
