//! The threads of a server: those that answer requests, and those for work that takes long, which have a lower priority.
//!
//! Work on a large document takes a processor for up to a second. A thread that a request has just woken would wait for its turn beside
//! such work, and a request is woken several times. With a lower priority the system lets it wait, and still gives it a third of what it
//! gives others, so that it goes on beside any load.

use std::io;
use std::sync::LazyLock;

use apiloom_registry::memory;
use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::task::JoinHandle;

/// The stack of a thread, which is address space before it is memory.
const STACK_BYTES: usize = 2 * 1024 * 1024;

/// Most threads of a runtime for work that blocks, and least.
const MAX_BLOCKING_THREADS: usize = 512;
const MIN_BLOCKING_THREADS: usize = 16;

/// The stacks of these threads may have one of so many parts of the memory of the process, in each of the two runtimes.
const PARTS_OF_MEMORY: u64 = 8;

/// By how much the priority of the threads is lower, as `nice` counts: their share of a processor is a third of that of others.
#[cfg(target_os = "linux")]
const LOWER: i32 = 5;

/// The threads of the background; `None` if the system gives no more threads.
static THREADS: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    let mut threads = builder();
    threads.thread_name("apiloom-background");
    lower_priority(&mut threads);
    threads
        .build()
        .inspect_err(|error| tracing::warn!(%error, "no threads for work in the background"))
        .ok()
});

/// A runtime whose threads have no more stacks than the memory of the process allows.
fn builder() -> Builder {
    let stacks = memory::share(PARTS_OF_MEMORY, MAX_BLOCKING_THREADS * STACK_BYTES);
    let mut builder = Builder::new_multi_thread();
    builder
        .enable_all()
        .thread_stack_size(STACK_BYTES)
        .max_blocking_threads((stacks / STACK_BYTES).max(MIN_BLOCKING_THREADS));
    builder
}

/// The runtime that answers requests.
///
/// # Errors
/// If the system gives no threads.
pub fn runtime() -> io::Result<Runtime> {
    builder().build()
}

/// Lets threads have a lower priority than this one. A thread begins with that of the thread that made it.
#[cfg(target_os = "linux")]
fn lower_priority(threads: &mut Builder) {
    use rustix::process::{getpriority_process, setpriority_process};
    let Ok(own) = getpriority_process(None) else {
        return;
    };
    threads.on_thread_start(move || {
        if let Err(error) = setpriority_process(None, own + LOWER) {
            tracing::debug!(%error, "a thread of the background has the priority of the server");
        }
    });
}

/// On other systems threads have the priority of their process.
#[cfg(not(target_os = "linux"))]
fn lower_priority(_: &mut Builder) {}

/// The background; the present runtime if that has one thread, since its tests have a clock of their own.
fn background() -> Option<&'static Handle> {
    let present = Handle::try_current().ok()?;
    if present.runtime_flavor() == RuntimeFlavor::CurrentThread {
        return None;
    }
    THREADS.as_ref().map(Runtime::handle)
}

/// Spawns a task in the background.
pub fn spawn<F>(work: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    match background() {
        Some(background) => background.spawn(work),
        None => tokio::spawn(work),
    }
}

/// Runs work that blocks its thread in the background.
pub fn spawn_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    match background() {
        Some(background) => background.spawn_blocking(work),
        None => tokio::task::spawn_blocking(work),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    /// The priority of this thread, as `nice` counts.
    fn priority() -> i32 {
        getpriority_process(None).expect("a priority")
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn the_background_has_a_lower_priority() {
        let own = tokio::spawn(async { priority() }).await.unwrap();
        assert_eq!(spawn(async { priority() }).await.unwrap(), own + LOWER);
        assert_eq!(spawn_blocking(priority).await.unwrap(), own + LOWER);
        let in_place = spawn(async {
            tokio::task::block_in_place(|| ());
            priority()
        });
        assert_eq!(in_place.await.unwrap(), own + LOWER);
        assert_eq!(tokio::spawn(async { priority() }).await.unwrap(), own);
    }

    // Its clock may be paused.
    #[tokio::test(start_paused = true)]
    async fn a_runtime_with_one_thread_is_its_own_background() {
        let own = std::thread::current().id();
        let thread = spawn(async { std::thread::current().id() });
        assert_eq!(thread.await.unwrap(), own);
    }
}
