//! Limits concurrent CPU-intensive work on long responses: encoding a piece of a Table or of YAML, or compressing one,
//! takes about a millisecond.
//!
//! At most one task per core, minus one, does such work at a time, however many clients request it. Otherwise every
//! poll of any other task would wait behind a piece of each of these responses.
//!
//! A connection that could go on ends its turn with [`end_turn`].

use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::LazyLock;
use std::task::Context;

use tokio::sync::{Semaphore, SemaphorePermit};

static TURNS: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    Semaphore::new(cores.saturating_sub(1).max(1))
});

/// Permit for CPU-intensive work. Must be dropped before the next await, so that a slow reader does not hold it.
pub(crate) struct Turn {
    _permit: Option<SemaphorePermit<'static>>,
}

/// Waits for a permit, and then yields once to the tasks that are ready.
pub(crate) async fn take_turn() -> Turn {
    // The semaphore is never closed.
    let permit = TURNS.acquire().await.ok();
    tokio::task::yield_now().await;
    Turn { _permit: permit }
}

/// Ends the turn of a task that could go on: it is polled again after all that are ready, and after the sockets. The
/// caller returns `Pending`.
///
/// A task that only wakes itself is polled again before the sockets, which a busy thread of tokio looks at once in 61
/// polls.
pub fn end_turn(cx: &mut Context<'_>) {
    let _ = pin!(tokio::task::yield_now()).poll(cx);
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Poll;

    use tokio::io::AsyncReadExt as _;

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

    // Tasks without an end keep the only thread busy; one byte at a time arrives for another.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_socket_is_read_after_one_turn_of_each_busy_task() {
        const BUSY: usize = 3;
        let (mut theirs, ours) = std::os::unix::net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let turns = Arc::new(AtomicUsize::new(0));
        for _ in 0..BUSY {
            let turns = Arc::clone(&turns);
            tokio::spawn(std::future::poll_fn(move |cx| {
                turns.fetch_add(1, Ordering::Relaxed);
                end_turn(cx);
                Poll::<()>::Pending
            }));
        }
        let reader = tokio::spawn(async move {
            let mut ours = tokio::net::UnixStream::from_std(ours).unwrap();
            let mut byte = [0];
            for _ in 0..20 {
                tokio::task::yield_now().await;
                let before = turns.load(Ordering::Relaxed);
                theirs.write_all(&byte).unwrap();
                ours.read_exact(&mut byte).await.unwrap();
                let passed = turns.load(Ordering::Relaxed) - before;
                assert!(passed <= 2 * BUSY, "{passed}");
            }
        });
        reader.await.unwrap();
    }
}
