//! One connection: speaks the protocol that TLS has agreed on, and is closed when its client does nothing with it.
//!
//! Times are those of Go's `http.Server` as kube-apiserver sets it up. A request in progress has a deadline of its own
//! (`http/timeout.rs`), so only a connection without requests is timed here.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use http::header::CONNECTION;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::Instant;

use super::activity::{Activity, Counted, InProgress};
use super::coalesce::coalesce;
use super::held::Held;
use super::stall::STALL;
use super::streams::{Paced, Streams};
use super::unread::{RequestBody, Unread};
use crate::http::Body;

/// How long a client may take over its first bytes, or over the headers of an HTTP/1.1 request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(32);
/// A connection without requests is closed after this long, at the latest after twice as long.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// How long a client that was told to go away may still open streams, which it may have done before it was told.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Requests in flight on one HTTP/2 connection, as kube-apiserver has it: clients open another connection beyond it.
const MAX_CONCURRENT_STREAMS: u32 = 100;
/// How much of a body is received before it is read, and in one frame, as kube-apiserver has it: most objects fit.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
/// The request line and all headers together, per request, as Go's servers have it.
const MAX_HEADER_BYTES: u32 = 1024 * 1024;
/// An idle HTTP/2 client is asked whether it is still there after this long.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Why a connection ended.
pub(super) type ConnectionError = Box<dyn std::error::Error + Send + Sync>;

/// What TLS has agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

impl Protocol {
    /// The protocol of ALPN; HTTP/1.1 for a client that names none, as in Go.
    pub(super) fn of_alpn(name: Option<&[u8]>) -> Self {
        match name {
            Some(b"h2") => Self::Http2,
            _ => Self::Http1,
        }
    }
}

/// Serves one connection until it ends, its client does nothing with it for too long, or `stop` changes and the requests
/// in progress have ended.
///
/// An answer over HTTP/2 with `Connection: close` ends the connection with GOAWAY, as Go does it.
pub(super) async fn serve<S, H, F>(
    stream: S,
    protocol: Protocol,
    stop: watch::Receiver<()>,
    handle: H,
) -> Result<(), ConnectionError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    H: Fn(Request<RequestBody>) -> F + Send + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let activity = Arc::new(Activity::default());
    let stream = Counted {
        stream,
        activity: Arc::clone(&activity),
    };
    let counted = Arc::clone(&activity);
    let service = service_fn(move |request: Request<Incoming>| {
        let in_progress = InProgress::begin(&counted);
        let (request, unread) = Unread::of(request);
        // Boxed, because the future of a stream is moved several times before it runs, and this is most of it.
        let answer = Box::pin(handle(request));
        async move {
            let mut response = answer.await;
            unread.discard(&mut response, &in_progress);
            if protocol == Protocol::Http2 && closes(&response) {
                in_progress.go_away();
            }
            // The request is in progress until its answer is sent or given up.
            Ok::<_, Infallible>(response.map(|body| Held::new(Paced::new(body), in_progress)))
        }
    });
    match protocol {
        Protocol::Http1 => {
            let mut builder = http1::Builder::new();
            // The header timeout is ours, because this one would also count the time between requests.
            builder
                .timer(TokioTimer::new())
                .max_buf_size(MAX_HEADER_BYTES as usize)
                .header_read_timeout(None);
            // The server waits for an upgraded connection too.
            let _upgraded = stop.clone();
            coalesce(stream, |stream| {
                let connection = builder.serve_connection(TokioIo::new(stream), service);
                let connection = connection.with_upgrades();
                let shutdown = http1::UpgradeableConnection::graceful_shutdown;
                run(connection, shutdown, protocol, activity, stop)
            })
            .await
        }
        Protocol::Http2 => {
            let mut builder = http2::Builder::new(Streams::new(STALL));
            builder
                .timer(TokioTimer::new())
                .max_concurrent_streams(MAX_CONCURRENT_STREAMS)
                .initial_stream_window_size(STREAM_WINDOW_BYTES)
                .max_frame_size(STREAM_WINDOW_BYTES)
                .max_header_list_size(MAX_HEADER_BYTES)
                .keep_alive_interval(KEEP_ALIVE);
            coalesce(stream, |stream| {
                let connection = builder.serve_connection(TokioIo::new(stream), service);
                let shutdown = http2::Connection::graceful_shutdown;
                run(connection, shutdown, protocol, activity, stop)
            })
            .await
        }
    }
}

/// Whether an answer says that it is the last one of its connection.
fn closes(response: &Response<Body>) -> bool {
    response
        .headers()
        .get(CONNECTION)
        .is_some_and(|value| value == "close")
}

/// Drives a connection, and ends it in time. The server waits for it, when it stops, as long as `stop` is held here.
async fn run<C>(
    connection: C,
    graceful_shutdown: impl Fn(Pin<&mut C>),
    protocol: Protocol,
    activity: Arc<Activity>,
    mut stop: watch::Receiver<()>,
) -> Result<(), ConnectionError>
where
    C: Future<Output = hyper::Result<()>>,
{
    let mut connection = pin!(connection);
    let mut timing = Timing::new(protocol, &activity);
    let mut timer = pin!(tokio::time::sleep(HEADER_TIMEOUT));
    let mut stopped = pin!(stop.changed());
    let mut is_stopping = false;
    let ended = std::future::poll_fn(|cx| {
        activity.waker.register(cx.waker());
        if !is_stopping && stopped.as_mut().poll(cx).is_ready() {
            is_stopping = true;
            graceful_shutdown(connection.as_mut());
        }
        if activity.goes_away.load(Ordering::Relaxed)
            && let Some(until) = timing.close()
        {
            graceful_shutdown(connection.as_mut());
            timer.as_mut().reset(until);
        }
        loop {
            if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
                return Poll::Ready(ended);
            }
            if let Some(until) = timing.begin_headers() {
                timer.as_mut().reset(until);
            }
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            match timing.expire() {
                Expired::Wait(until) => timer.as_mut().reset(until),
                Expired::Close(until) => {
                    graceful_shutdown(connection.as_mut());
                    timer.as_mut().reset(until);
                }
                Expired::End => return Poll::Ready(Ok(())),
            }
        }
    });
    ended.await.map_err(Into::into)
}

/// When to close a connection. Requests set no timer, which would cost each of them; what they did is looked at when the
/// timer expires.
struct Timing<'a> {
    protocol: Protocol,
    activity: &'a Activity,
    phase: Phase,
    /// Requests begun when the timer expired last.
    begun_before: usize,
    /// Requests begun and reads when the connection was polled last without headers in progress.
    begun: usize,
    reads: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing has been received.
    New,
    Open,
    /// The headers of an HTTP/1.1 request have begun.
    Headers,
    /// The client was told to go away.
    Closing,
    /// It has had the time to notice.
    Closed,
}

/// What to do when the timer has expired, and how to set it again.
enum Expired {
    Wait(Instant),
    /// Tell the client to go away.
    Close(Instant),
    End,
}

impl<'a> Timing<'a> {
    fn new(protocol: Protocol, activity: &'a Activity) -> Self {
        Self {
            protocol,
            activity,
            phase: Phase::New,
            begun_before: 0,
            begun: 0,
            reads: 0,
        }
    }

    fn is_busy(&self) -> bool {
        self.activity.in_progress.load(Ordering::Relaxed) > 0
    }

    /// When the timer expires next for a client that is told now to go away; `None` when it was told before.
    fn close(&mut self) -> Option<Instant> {
        let is_first = !matches!(self.phase, Phase::Closing | Phase::Closed);
        is_first.then(|| {
            self.phase = Phase::Closing;
            Instant::now() + CLOSE_TIMEOUT
        })
    }

    /// The time by which the headers of an HTTP/1.1 request must be complete, when they have begun to arrive.
    fn begin_headers(&mut self) -> Option<Instant> {
        let reads = self.activity.reads.load(Ordering::Relaxed);
        if self.protocol == Protocol::Http2 || reads == self.reads {
            return None;
        }
        let begun = self.activity.begun.load(Ordering::Relaxed);
        if self.is_busy() || begun != self.begun {
            (self.begun, self.reads) = (begun, reads);
            if self.phase == Phase::Headers {
                self.phase = Phase::Open;
            }
            return None;
        }
        if !matches!(self.phase, Phase::New | Phase::Open) {
            return None;
        }
        self.phase = Phase::Headers;
        Some(Instant::now() + HEADER_TIMEOUT)
    }

    fn expire(&mut self) -> Expired {
        let begun = self.activity.begun.load(Ordering::Relaxed);
        let was_active = begun != self.begun_before;
        self.begun_before = begun;
        let is_busy = self.is_busy();
        let now = Instant::now();
        match self.phase {
            Phase::Headers if begun == self.begun => Expired::End,
            Phase::New if self.activity.reads.load(Ordering::Relaxed) == 0 => Expired::End,
            Phase::Open if !is_busy && !was_active => Expired::Close(now + CLOSE_TIMEOUT),
            Phase::New | Phase::Open | Phase::Headers => {
                self.phase = Phase::Open;
                Expired::Wait(now + IDLE_TIMEOUT)
            }
            Phase::Closing if is_busy => {
                self.phase = Phase::Closed;
                Expired::Wait(now + CLOSE_TIMEOUT)
            }
            // What is in progress may end; a client that still opens streams has not heeded the GOAWAY.
            Phase::Closed if is_busy && !was_active => Expired::Wait(now + CLOSE_TIMEOUT),
            Phase::Closing | Phase::Closed => Expired::End,
        }
    }
}

#[cfg(test)]
mod tests;
