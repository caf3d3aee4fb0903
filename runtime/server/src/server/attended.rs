//! Requests whose work ends with their client.
//!
//! A connection drops the request of a client that has left, but cannot do so while it polls it. So a request that works on a large
//! document goes on in a task of the background, for which the connection waits; when it drops the request, it interrupts the work.

use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll};

use apiloom_http::background;
use apiloom_meta::interrupt::Interrupt;
use apiloom_registry::LargeWork;
use tokio::task::JoinHandle;

use super::chain::FilterInfo;

/// The filter that [`AttendedRequest`] is.
pub(super) const INFO: FilterInfo = FilterInfo::new(
    "abandoned-requests",
    "interrupts the work of a request whose client is gone",
);

/// A request, within the scope of an interrupt that is set when this is dropped.
pub(super) struct AttendedRequest<F: Future> {
    interrupt: Interrupt,
    request: Attendance<F>,
}

/// Where a request is polled.
enum Attendance<F: Future> {
    Here(Pin<Box<F>>),
    InTask(JoinHandle<F::Output>),
    Over,
}

impl<F> AttendedRequest<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    /// The request is boxed, since it may be moved to a task while it waits.
    pub(super) fn new(request: F) -> Self {
        Self {
            interrupt: Interrupt::default(),
            request: Attendance::Here(Box::pin(request)),
        }
    }

    /// Polls the request, and moves it to a task of its own if it works on a large document from now on.
    fn poll_here(&mut self, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Attendance::Here(mut request) = std::mem::replace(&mut self.request, Attendance::Over)
        else {
            return Poll::Pending;
        };
        LargeWork::forget();
        let polled = self.interrupt.scope(|| request.as_mut().poll(cx));
        if polled.is_ready() {
            return polled;
        }
        if !LargeWork::was_announced() {
            self.request = Attendance::Here(request);
            return Poll::Pending;
        }
        let interrupt = self.interrupt.clone();
        let request = ScopedRequest { interrupt, request };
        self.request = Attendance::InTask(background::spawn(request));
        self.poll_task(cx)
    }

    fn poll_task(&mut self, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Attendance::InTask(task) = &mut self.request else {
            return Poll::Pending;
        };
        let ended = std::task::ready!(Pin::new(task).poll(cx));
        self.request = Attendance::Over;
        match ended.map_err(tokio::task::JoinError::try_into_panic) {
            Ok(output) => Poll::Ready(output),
            Err(Ok(panic)) => resume_unwind(panic),
            // The runtime ends, and drops this too.
            Err(Err(_)) => Poll::Pending,
        }
    }
}

impl<F> Future for AttendedRequest<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        match self.request {
            Attendance::Here(_) => self.poll_here(cx),
            Attendance::InTask(_) | Attendance::Over => self.poll_task(cx),
        }
    }
}

impl<F: Future> Drop for AttendedRequest<F> {
    fn drop(&mut self) {
        match &self.request {
            Attendance::InTask(task) => {
                self.interrupt.set();
                // It is dropped where it waits.
                task.abort();
            }
            Attendance::Here(_) | Attendance::Over => {}
        }
    }
}

/// A request in a task of its own.
struct ScopedRequest<F> {
    interrupt: Interrupt,
    request: Pin<Box<F>>,
}

impl<F: Future> Future for ScopedRequest<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self { interrupt, request } = &mut *self;
        interrupt.scope(|| request.as_mut().poll(cx))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use apiloom_meta::interrupt::is_interrupted;
    use tokio::sync::oneshot;

    use super::*;

    /// A request that works until it is interrupted, after it has announced that.
    async fn endless(ended: oneshot::Sender<()>) {
        LargeWork::announce();
        tokio::task::yield_now().await;
        tokio::task::block_in_place(|| {
            while !is_interrupted() {
                std::thread::yield_now();
            }
        });
        let _ = ended.send(());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_work_of_a_dropped_request_ends() {
        let (ended, end) = oneshot::channel();
        let mut request = AttendedRequest::new(endless(ended));
        tokio::select! {
            () = &mut request => panic!("it works until it is interrupted"),
            () = tokio::time::sleep(Duration::from_millis(50)) => {}
        }
        drop(request);
        end.await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_request_ends_as_it_would_without_a_task() {
        assert_eq!(AttendedRequest::new(async { 1 }).await, 1);
        let large = async {
            LargeWork::announce();
            tokio::task::yield_now().await;
            2
        };
        assert_eq!(AttendedRequest::new(large).await, 2);
        let panicking = async {
            LargeWork::announce();
            tokio::task::yield_now().await;
            panic!("in its task")
        };
        let panicked = tokio::spawn(AttendedRequest::<_>::new(panicking)).await;
        let panicked: Result<(), _> = panicked;
        assert!(panicked.unwrap_err().is_panic());
    }
}
