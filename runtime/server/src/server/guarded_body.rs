//! A response body with a guard, which is dropped when the body has ended or is abandoned.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::{Body, Frame, SizeHint};

/// A body with a guard that is dropped at its end, or with it.
pub(super) struct GuardedBody<B, G> {
    body: B,
    guard: Option<G>,
}

impl<B, G> GuardedBody<B, G> {
    pub(super) fn new(body: B, guard: G) -> Self {
        Self {
            body,
            guard: Some(guard),
        }
    }
}

impl<B: Body + Unpin, G: Unpin> Body for GuardedBody<B, G> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) {
            self.guard = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use http_body_util::{BodyExt as _, Full};

    use super::*;

    #[tokio::test]
    async fn the_guard_goes_at_the_end_of_the_body_or_with_it() {
        let guard = Arc::new(());
        let mut read = GuardedBody::new(Full::new(Bytes::from("a")), Arc::clone(&guard));
        let abandoned = GuardedBody::new(Full::new(Bytes::from("a")), Arc::clone(&guard));
        assert_eq!(Arc::strong_count(&guard), 3);
        drop(abandoned);
        assert!(read.frame().await.is_some());
        assert_eq!(Arc::strong_count(&guard), 2, "it may go on");
        assert!(read.frame().await.is_none());
        assert_eq!(Arc::strong_count(&guard), 1);
        drop(read);
    }
}
