//! Limits the CPU and memory that large documents and long queries take from other requests.
//!
//! A document of 3 MiB takes a large part of a second and a hundred times its size in memory. So a request reserves
//! capacity for it, and is then polled in [`OffThread`], where it may block a thread. It pauses between its steps, and ends there
//! if it was interrupted: past its deadline, or because its client has left.
//!
//! A long query is limited in the same way: 20,000 terms of a selector fit into a URI, and parsing them does not
//! yield.

use std::cell::Cell;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};

use apiloom_meta::ApiError;
use apiloom_meta::interrupt;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::handler_timeout;
use crate::memory;
use crate::options::RequestContext;

/// Minimum size of a large document, in bytes. Below it the work takes one or two milliseconds at most, and moving it
/// to another thread would cost more than it saves.
pub(crate) const LARGE_BYTES: usize = 64 * 1024;

/// Capacity for each core, in KiB of documents: one document of the maximum body size.
const KIB_PER_CORE: usize = 4 * 1024;

/// The capacity is no more than one of so many parts of the memory of the process, since a document takes up to a hundred times its
/// size. One that is larger than that is alone.
const PARTS_OF_MEMORY: u64 = 256;

/// How many converters that do not answer may have all of their capacity. Further ones wait for each other.
const SLOW_CONVERTERS: u32 = 4;

/// Maximum number of large documents in work for each core, even if they are small: each of them occupies a thread.
const DOCUMENTS_PER_CORE: usize = 8;

/// Minimum size of a long query, in bytes. Below it parsing takes a few microseconds for each of some hundred terms.
const LONG_QUERY_BYTES: usize = 4 * 1024;

/// Bytes of capacity for each byte of a query: its parsed terms take about so much memory. With it, two queries of the
/// maximum size are parsed at a time for each core.
const QUERY_WEIGHT: usize = 32;

/// Semaphore over the capacity for large documents, shared by all requests of a registry.
#[derive(Clone, Debug)]
pub(crate) struct LargeDocuments {
    room: Arc<Semaphore>,
    kib: u32,
    /// That of all converters together, if this is of one.
    of_all: Option<Arc<Semaphore>>,
}

/// The capacity of the writes of all kinds that are converted by converters.
static OF_CONVERTERS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let kib = LargeDocuments::new().kib.saturating_mul(SLOW_CONVERTERS);
    Arc::new(Semaphore::new(kib as usize))
});

/// The capacity of the results of all converters: no request waits for anything else while it has some.
static OF_RESULTS: LazyLock<LargeDocuments> = LazyLock::new(LargeDocuments::new);

impl LargeDocuments {
    /// Capacity in proportion to the cores of this machine, and to the memory of this process if that is small.
    pub(crate) fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let most = cores.saturating_mul(KIB_PER_CORE * 1024);
        Self::with_room(memory::share(PARTS_OF_MEMORY, most) / 1024)
    }

    /// Capacity for the writes of one converter, which may not answer for long, within that of all.
    pub(crate) fn of_converter() -> Self {
        Self {
            of_all: Some(Arc::clone(&OF_CONVERTERS)),
            ..Self::new()
        }
    }

    /// Capacity for the results of converters.
    pub(crate) fn of_results() -> Self {
        OF_RESULTS.clone()
    }

    fn with_room(kib: usize) -> Self {
        let kib = kib.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            room: Arc::new(Semaphore::new(kib)),
            kib: u32::try_from(kib).unwrap_or(u32::MAX),
            of_all: None,
        }
    }

    /// Waits for capacity, first come, first served. A document that is larger than the whole capacity gets all of it.
    pub(crate) async fn reserve(&self, bytes: usize) -> Option<Vec<OwnedSemaphorePermit>> {
        let least = KIB_PER_CORE / DOCUMENTS_PER_CORE;
        let kib = u32::try_from((bytes / 1024).max(least)).unwrap_or(u32::MAX);
        let kib = kib.min(self.kib);
        let mut reserved = Vec::with_capacity(2);
        for room in [Some(&self.room), self.of_all.as_ref()]
            .into_iter()
            .flatten()
        {
            // It is never closed.
            reserved.push(Arc::clone(room).acquire_many_owned(kib).await.ok()?);
        }
        Some(reserved)
    }

    /// Reserves capacity for a document of this size, if it is large, until the request ends. A request reserves only
    /// once: two requests that both hold capacity and wait for more would deadlock.
    pub(super) async fn reserve_for(&self, ctx: &RequestContext, bytes: usize) {
        if bytes < LARGE_BYTES || ctx.is_large() {
            return;
        }
        if let Some(room) = self.reserve(bytes).await {
            ctx.set_large(room);
            LargeWork::announce();
            // The next poll runs where it may block.
            tokio::task::yield_now().await;
        }
    }

    /// Runs work on this many bytes with capacity for it, and where it may block. The capacity is released afterwards: it is not held
    /// while the request waits for anything else.
    pub(crate) async fn run<T>(&self, bytes: usize, work: impl FnOnce() -> T) -> T {
        // Boxed, so that the state of the wait does not enlarge the futures of other requests.
        let _room = Box::pin(self.reserve(bytes)).await;
        off_thread(work)
    }

    /// Runs `read` for a query of this size; a long one as [`run`](Self::run) does.
    pub(super) async fn read_query<T>(&self, bytes: usize, read: impl FnOnce() -> T) -> T {
        if bytes < LONG_QUERY_BYTES {
            return read();
        }
        self.run(bytes.saturating_mul(QUERY_WEIGHT), read).await
    }
}

impl RequestContext {
    /// Yields between the steps of a write with a large document.
    ///
    /// # Errors
    /// As [`check_wanted`].
    pub async fn pause(&self) -> Result<(), ApiError> {
        if self.is_large() {
            tokio::task::yield_now().await;
        }
        check_wanted()
    }

    /// Runs work on the document of a request, where it may block if the document is large.
    pub fn work<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.is_large() {
            off_thread(work)
        } else {
            work()
        }
    }
}

/// Bytes of an object whose work counts as one step of an interrupt.
const STEP_BYTES: usize = 32;

/// Fails if the work of this request was interrupted: then what the steps before it made may be a part of what it should be.
///
/// # Errors
/// Timeout. The client gets the response for the limit that has passed, or has left.
#[inline]
pub fn check_wanted() -> Result<(), ApiError> {
    if interrupt::is_set() {
        return Err(handler_timeout());
    }
    Ok(())
}

/// As [`check_wanted`], within a loop over objects, after work on as many bytes: looks at the clock once in 32 KiB or a thousand objects,
/// since a look takes as long as to send a small object. Nothing that was interrupted before passes it.
///
/// # Errors
/// As [`check_wanted`].
#[inline]
pub fn check_wanted_after(bytes: usize) -> Result<(), ApiError> {
    let steps = u32::try_from(bytes / STEP_BYTES).unwrap_or(u32::MAX);
    if interrupt::spend(steps.saturating_add(1)) {
        return Err(handler_timeout());
    }
    Ok(())
}

/// Says that a request works on a large document from its next poll on, to the code that polls it.
pub struct LargeWork;

thread_local! {
    /// Set and read within one poll of a request.
    static ANNOUNCED: Cell<bool> = const { Cell::new(false) };
}

impl LargeWork {
    /// Announces work on a large document to the poll of this thread that calls for it.
    pub fn announce() {
        ANNOUNCED.set(true);
    }

    /// Forgets what an earlier poll of this thread announced.
    pub fn forget() {
        ANNOUNCED.set(false);
    }

    /// Whether work was announced since it was forgotten; asked once.
    pub fn was_announced() -> bool {
        ANNOUNCED.take()
    }
}

/// Polls a request in `block_in_place` once its document is large.
#[derive(Debug)]
pub struct OffThread<'c, F> {
    ctx: &'c RequestContext,
    request: F,
}

impl<'c, F> OffThread<'c, F> {
    /// Polls `request`, whose context is `ctx`.
    pub fn new(ctx: &'c RequestContext, request: F) -> Self {
        Self { ctx, request }
    }
}

impl<F: Future + Unpin> Future for OffThread<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let is_large = self.ctx.is_large();
        let request = Pin::new(&mut self.request);
        // Without a function in between: each is one more for a reader of a backtrace.
        if is_large {
            off_thread(|| request.poll(cx))
        } else {
            request.poll(cx)
        }
    }
}

/// Runs blocking work, while the other tasks of this thread move to another one.
pub fn off_thread<T>(work: impl FnOnce() -> T) -> T {
    if has_other_threads() {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}

/// Whether the runtime has more than one thread; one with a single thread cannot block in place.
fn has_other_threads() -> bool {
    Handle::try_current()
        .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn room_is_given_in_turn_and_never_more_than_there_is() {
        let large = LargeDocuments::with_room(4 * 1024);
        let three = large.reserve(3 * 1024 * 1024).now_or_never().flatten();
        assert!(three.is_some());
        assert!(large.reserve(2 * 1024 * 1024).now_or_never().is_none());
        assert!(large.reserve(100 * 1024).now_or_never().flatten().is_some());
        drop(three);
        let all = large.reserve(usize::MAX).now_or_never().flatten();
        assert!(all.is_some());
        assert!(large.reserve(LARGE_BYTES).now_or_never().is_none());
    }

    #[test]
    fn a_loop_over_objects_ends_soon_after_its_deadline() {
        let bytes_until_the_end = |bytes: usize| {
            let interrupt = interrupt::Interrupt::default();
            interrupt.scope(|| {
                assert!((0..100).all(|_| check_wanted_after(bytes).is_ok()));
                interrupt.set_after(std::time::Duration::ZERO);
                let passed = (0..10_000).take_while(|_| check_wanted_after(bytes).is_ok());
                let passed = passed.count();
                assert!(check_wanted_after(0).is_err(), "it does not go on");
                passed * bytes.max(STEP_BYTES)
            })
        };
        for bytes in [0, 1, 100, 1024, 100_000] {
            let more = bytes_until_the_end(bytes);
            assert!(more <= 33 * 1024, "{more} bytes in pieces of {bytes}");
        }
    }

    // Each kind with a webhook had capacity of its own, and their number has no bound.
    #[test]
    fn converters_that_do_not_answer_have_a_bound_together() {
        let of_all = Arc::new(Semaphore::new(2 * KIB_PER_CORE));
        let converter = || LargeDocuments {
            of_all: Some(Arc::clone(&of_all)),
            ..LargeDocuments::with_room(KIB_PER_CORE)
        };
        let reserve = |of: &LargeDocuments| of.reserve(usize::MAX).now_or_never().flatten();
        let converters = [converter(), converter(), converter()];
        let held: Vec<_> = converters[..2].iter().map(reserve).collect();
        assert!(held.iter().all(Option::is_some));
        assert!(reserve(&converters[2]).is_none());
        drop(held);
        assert!(reserve(&converters[2]).is_some());
    }

    // 50 bodies of 200 KB at once left 61 threads behind.
    #[test]
    fn a_core_works_on_few_documents_at_a_time() {
        let large = LargeDocuments::with_room(2 * KIB_PER_CORE);
        let reserved = std::iter::from_fn(|| large.reserve(LARGE_BYTES).now_or_never().flatten());
        let reserved: Vec<_> = reserved.collect();
        assert_eq!(reserved.len(), 2 * DOCUMENTS_PER_CORE);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn others_have_their_turn_while_long_queries_are_read() {
        let large = LargeDocuments::with_room(4 * KIB_PER_CORE);
        let (close, closed) = std::sync::mpsc::channel::<()>();
        let closed = Arc::new(parking_lot::Mutex::new(closed));
        let (begin, begun) = std::sync::mpsc::channel();
        // More of them than the runtime has threads for.
        let reads: Vec<_> = (0..4)
            .map(|_| {
                let (large, begin, closed) = (large.clone(), begin.clone(), Arc::clone(&closed));
                tokio::spawn(async move {
                    let read = || begin.send(()).is_ok() && closed.lock().recv().is_err();
                    large.read_query(LONG_QUERY_BYTES, read).await
                })
            })
            .collect();
        let patience = std::time::Duration::from_secs(10);
        for _ in 0..4 {
            tokio::task::block_in_place(|| begun.recv_timeout(patience)).unwrap();
        }
        tokio::spawn(async {}).await.unwrap();
        drop(close);
        for read in reads {
            assert!(read.await.unwrap());
        }
    }
}
