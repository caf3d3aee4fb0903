//! Large documents: their work is done off the threads that answer other requests, and only so much of it at a time.
//!
//! A document of 3 MiB takes a good part of a second and a hundred times its size in memory. So a request reserves room for
//! it, and from then on it is polled where it may block ([`OffThread`]). It pauses between its steps, where the future of
//! a client that has gone is dropped.
//!
//! A long query is the same in small: 20,000 terms of a selector fit into a URI, and reading them takes no pause.

use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::registry::options::RequestContext;

/// From how many bytes on a document is large. Below it the work takes less than a millisecond or two, and moving it
/// elsewhere would cost more than it saves.
const LARGE_BYTES: usize = 64 * 1024;

/// How many bytes of large documents are worked on at a time, for each core: one of the largest that a body brings.
const KIB_PER_CORE: usize = 4 * 1024;

/// How many large documents are worked on at a time, for each core, however small they are: each of them holds a thread.
const DOCUMENTS_PER_CORE: usize = 8;

/// From how many bytes on a query is long. Below it reading takes a few microseconds for each of some hundred terms.
const LONG_QUERY_BYTES: usize = 4 * 1024;

/// What a byte of a query counts for: its terms take about so much memory. Two of the longest are read at a time, for each
/// core.
const QUERY_WEIGHT: usize = 32;

/// Room for large documents, shared by all requests of a registry.
#[derive(Clone, Debug)]
pub(crate) struct LargeDocuments {
    room: Arc<Semaphore>,
    kib: u32,
}

impl LargeDocuments {
    /// Room as this machine has cores.
    pub(super) fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self::with_room(cores.saturating_mul(KIB_PER_CORE))
    }

    fn with_room(kib: usize) -> Self {
        let kib = kib.min(Semaphore::MAX_PERMITS);
        Self {
            room: Arc::new(Semaphore::new(kib)),
            kib: u32::try_from(kib).unwrap_or(u32::MAX),
        }
    }

    /// Waits for room, in turn. A document that is larger than all of it gets all of it.
    pub(super) async fn reserve(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let least = KIB_PER_CORE / DOCUMENTS_PER_CORE;
        let kib = u32::try_from((bytes / 1024).max(least)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room);
        // It is never closed.
        room.acquire_many_owned(kib.min(self.kib)).await.ok()
    }

    /// Makes room for a document of this size, if it is large, until the request ends. A request reserves once: two that
    /// each held room and waited for more would wait for each other.
    pub(super) async fn reserve_for(&self, ctx: &RequestContext, bytes: usize) {
        if bytes < LARGE_BYTES || ctx.is_large() {
            return;
        }
        if let Some(room) = self.reserve(bytes).await {
            ctx.set_large(room);
            // The next poll is where it may block.
            tokio::task::yield_now().await;
        }
    }

    /// Does what takes a query of this size, where it may block and when there is room, if the query is long. The room is
    /// given back behind it.
    pub(super) async fn read_query<T>(&self, bytes: usize, read: impl FnOnce() -> T) -> T {
        if bytes < LONG_QUERY_BYTES {
            return read();
        }
        // Boxed, so that other requests do not carry around the room that waiting needs.
        let _room = Box::pin(self.reserve(bytes.saturating_mul(QUERY_WEIGHT))).await;
        off_thread(read)
    }
}

impl RequestContext {
    /// Called between the steps of a write: one with a large document ends here when its client has gone.
    pub(crate) async fn pause(&self) {
        if self.is_large() {
            tokio::task::yield_now().await;
        }
    }
}

/// A request that is polled off the threads that answer others, as soon as its document is large.
#[derive(Debug)]
pub(crate) struct OffThread<'c, F> {
    ctx: &'c RequestContext,
    request: F,
}

impl<'c, F> OffThread<'c, F> {
    pub(crate) fn new(ctx: &'c RequestContext, request: F) -> Self {
        Self { ctx, request }
    }
}

impl<F: Future + Unpin> Future for OffThread<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let is_large = self.ctx.is_large();
        let request = Pin::new(&mut self.request);
        if is_large {
            off_thread(|| request.poll(cx))
        } else {
            request.poll(cx)
        }
    }
}

/// Does what takes long, while the other tasks of this thread are handed to another one.
fn off_thread<T>(work: impl FnOnce() -> T) -> T {
    if has_other_threads() {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}

/// A runtime of one thread has nothing to hand its other tasks to.
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

    // Issue 9, point 10: 50 bodies of 200 KB at once left 61 threads behind.
    #[test]
    fn a_core_works_on_few_documents_at_a_time() {
        let large = LargeDocuments::with_room(2 * KIB_PER_CORE);
        let reserved = std::iter::from_fn(|| large.reserve(LARGE_BYTES).now_or_never().flatten());
        let reserved: Vec<_> = reserved.collect();
        assert_eq!(reserved.len(), 2 * DOCUMENTS_PER_CORE);
    }

    // Issue 9, point 11.
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
