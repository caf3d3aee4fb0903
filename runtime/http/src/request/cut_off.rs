//! Aborts a response at its request's deadline if the client still reads it, as kube-apiserver does; the rest of the
//! response is dropped.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use apiloom_meta::interrupt::Interrupt;
use bytes::Bytes;
use http::Response;
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::timeout::set_deadline;
use crate::response::{Body, CutOff};

/// Aborts the response at the deadline. A complete response in memory is not aborted, since it needs no more work.
pub(crate) fn until(deadline: Instant, response: Response<Body>) -> Response<Body> {
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    response.map(|body| DeadlineBody::new(deadline, body).boxed_unsync())
}

/// State of a body.
enum Progress {
    Sending(Body, Option<Waker>),
    Ended,
    CutOff,
}

/// A body that a separate task aborts at the deadline, because the body itself is not polled if the client does not
/// read.
struct DeadlineBody {
    progress: Arc<Mutex<Progress>>,
    /// Ends the work on a piece.
    interrupt: Interrupt,
    timer: AbortHandle,
}

impl DeadlineBody {
    fn new(deadline: Instant, body: Body) -> Self {
        let progress = Arc::new(Mutex::new(Progress::Sending(body, None)));
        let timed = Arc::clone(&progress);
        let timer = tokio::spawn(async move {
            tokio::time::sleep_until(deadline).await;
            cut_off(&timed);
        });
        let interrupt = Interrupt::default();
        set_deadline(&interrupt, deadline);
        Self {
            progress,
            interrupt,
            timer: timer.abort_handle(),
        }
    }
}

fn cut_off(progress: &Mutex<Progress>) {
    let mut progress = progress.lock();
    if let Progress::Sending(..) = *progress {
        // Drops the body and everything it refers to.
        let sending = std::mem::replace(&mut *progress, Progress::CutOff);
        drop(progress);
        if let Progress::Sending(_, Some(waker)) = sending {
            waker.wake();
        }
    }
}

impl Drop for DeadlineBody {
    fn drop(&mut self) {
        self.timer.abort();
    }
}

impl http_body::Body for DeadlineBody {
    type Data = Bytes;
    type Error = CutOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        let mut progress = self.progress.lock();
        let polled = match &mut *progress {
            Progress::Ended => return Poll::Ready(None),
            Progress::CutOff => return Poll::Ready(Some(Err(CutOff::TimeIsUp))),
            Progress::Sending(body, waker) => {
                let polled = self.interrupt.scope(|| Pin::new(body).poll_frame(cx));
                // The piece may be a part of what it should be.
                if self.interrupt.is_set() {
                    *progress = Progress::CutOff;
                    return Poll::Ready(Some(Err(CutOff::TimeIsUp)));
                }
                *waker = polled.is_pending().then(|| cx.waker().clone());
                polled
            }
        };
        if let Poll::Ready(None) = polled {
            *progress = Progress::Ended;
            self.timer.abort();
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body_util::StreamBody;

    use super::*;

    /// Two frames, then the items of `rest`; the receiver is notified when the body is dropped.
    fn body(
        rest: impl futures_util::Stream<Item = Result<Frame<Bytes>, CutOff>> + Send + 'static,
        held: Arc<()>,
    ) -> Body {
        let frame = |text: &'static str| Ok(Frame::data(Bytes::from_static(text.as_bytes())));
        let frames = futures_util::stream::iter([frame("a"), frame("b")]);
        let all = futures_util::StreamExt::chain(frames, rest);
        let all = futures_util::StreamExt::inspect(all, move |_| {
            let _ = &held;
        });
        StreamBody::new(all).boxed_unsync()
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_ends_in_time_is_whole() {
        let deadline = Instant::now() + Duration::from_secs(1);
        let whole = body(futures_util::stream::empty(), Arc::default());
        let response = until(deadline, Response::new(whole));
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(bytes, "ab");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_waits_is_woken_and_cut_off() {
        let deadline = Instant::now() + Duration::from_secs(1);
        let endless = body(futures_util::stream::pending(), Arc::default());
        let response = until(deadline, Response::new(endless));
        let error = response.into_body().collect().await.unwrap_err();
        assert_eq!((error, Instant::now()), (CutOff::TimeIsUp, deadline));
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_reads_is_forgotten_at_the_deadline() {
        let held = Arc::new(());
        let deadline = Instant::now() + Duration::from_secs(1);
        let endless = body(futures_util::stream::pending(), Arc::clone(&held));
        let mut response = until(deadline, Response::new(endless));
        response.body_mut().frame().await.unwrap().unwrap();
        assert_eq!(Arc::strong_count(&held), 2);
        tokio::time::sleep_until(deadline + Duration::from_millis(1)).await;
        assert_eq!(Arc::strong_count(&held), 1);
        assert!(response.body_mut().frame().await.unwrap().is_err());
    }
}
