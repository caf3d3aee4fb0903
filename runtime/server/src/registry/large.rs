//! Large documents: their work is done off the threads that answer other requests, and only so much of it at a time.
//!
//! A document of 3 MiB takes a good part of a second and a hundred times its size in memory. So a request reserves room for
//! it, and from then on it is polled where it may block ([`OffThread`]). It pauses between its steps, where the future of
//! a client that has gone is dropped.

use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::RequestContext;
use super::endpoint::Endpoint;

/// From how many bytes on a document is large. Below it the work takes less than a millisecond or two, and moving it
/// elsewhere would cost more than it saves.
const LARGE_BYTES: usize = 64 * 1024;

/// How many bytes of large documents are worked on at a time, for each core: one of the largest that a body brings.
const KIB_PER_CORE: usize = 4 * 1024;

/// Room for large documents, shared by all requests of a registry.
#[derive(Clone, Debug)]
pub(super) struct LargeDocuments {
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
    async fn reserve(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let kib = u32::try_from(bytes / 1024).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room);
        // It is never closed.
        room.acquire_many_owned(kib.clamp(1, self.kib)).await.ok()
    }
}

impl Endpoint {
    /// Makes room for a document of this size, if it is large, until the request ends. A request reserves once: two that
    /// each held room and waited for more would wait for each other.
    pub(crate) async fn reserve(&self, ctx: &RequestContext, bytes: usize) {
        if bytes < LARGE_BYTES || ctx.is_large() {
            return;
        }
        if let Some(room) = self.shared.large.reserve(bytes).await {
            ctx.set_large(room);
            // The next poll is where it may block.
            tokio::task::yield_now().await;
        }
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
        let moves = self.ctx.is_large() && has_other_threads();
        let request = Pin::new(&mut self.request);
        if moves {
            tokio::task::block_in_place(|| request.poll(cx))
        } else {
            request.poll(cx)
        }
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
}
