//! Serves one connection with HTTP/1.1 or HTTP/2, and closes it when it is idle.
//!
//! The timeouts are those of Go's `http.Server` in kube-apiserver. A request in progress has its own deadline
//! (`http/request/timeout.rs`), so only connections without requests are timed here.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use apiloom_client::transport::HookedStream;
use apiloom_http::{Body, UpgradeGuard};
use http::header::CONNECTION;
use http::{Method, Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::activity::{Activity, InProgress, ReadCounter};
use super::attended::AttendedRequest;
use super::chain::FilterInfo;
use super::coalesce::coalesce;
use super::guarded_body::GuardedBody;
use super::stall::{Patience, STALL};
use super::streams::{self, PacedBody, Streams};
use super::unread::{RequestBody, UnreadBody};

/// Timeout for the first bytes of a client, for the preface and SETTINGS of HTTP/2, and for the headers of an HTTP/1.1 request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(32);
/// Timeout for a connection without requests; it is closed after once to twice this time.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// Time after GOAWAY in which a client may still open streams, since it may have sent them before.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Limit for concurrent streams of an HTTP/2 connection, as in kube-apiserver; clients open another connection above
/// it.
const MAX_CONCURRENT_STREAMS: u32 = 100;
/// Flow-control window of a stream and maximum frame size, as in kube-apiserver; most objects fit.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
/// Limit for the request line and all headers of a request, as in Go.
const MAX_HEADER_BYTES: u32 = 1024 * 1024;
/// Interval of PING on an idle HTTP/2 connection.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// The filter that [`Timing`] is.
pub(super) const TIMEOUTS: FilterInfo = FilterInfo::new(
    "connection-timeouts",
    "ends a connection without a request for 90 s, or whose headers take more than 32 s",
);

/// The limits of HTTP.
pub(super) const LIMITS: FilterInfo = FilterInfo::new(
    "http-limits",
    "at most 1 MiB of headers, and 100 streams of an HTTP/2 connection",
);

/// Error that ended a connection.
pub(super) type ConnectionError = Box<dyn std::error::Error + Send + Sync>;

/// HTTP version of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

impl Protocol {
    /// The protocol negotiated by ALPN; HTTP/1.1 for a client without ALPN, as in Go.
    pub(super) fn of_alpn(name: Option<&[u8]>) -> Self {
        match name {
            Some(b"h2") => Self::Http2,
            _ => Self::Http1,
        }
    }
}

/// Serves one connection until it ends, is idle for too long, or `stop` changes and the requests in progress have
/// ended.
///
/// A response over HTTP/2 with `Connection: close` ends the connection with GOAWAY, as in Go.
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
    let stream = HookedStream::new(stream, ReadCounter::new(Arc::clone(&activity)));
    let counted = Arc::clone(&activity);
    let service = service_fn(move |mut request: Request<Incoming>| {
        let in_progress = InProgress::begin(&counted);
        // A CONNECT over HTTP/2 may be upgraded: it is in progress until the upgraded stream ends, not until its response.
        let upgrade_end = (protocol == Protocol::Http2 && request.method() == Method::CONNECT)
            .then(|| {
                let (held, end) = oneshot::channel();
                let guard = UpgradeGuard::new((in_progress.clone(), held));
                request.extensions_mut().insert(guard);
                end
            });
        let (request, unread) = UnreadBody::of(request);
        // Boxed in it, because hyper moves the future of a stream several times before it is polled, and this is its largest
        // part.
        let answer = AttendedRequest::new(handle(request));
        async move {
            let mut response = answer.await;
            unread.discard(&mut response, &in_progress);
            if protocol == Protocol::Http2 && closes(&response) {
                in_progress.go_away();
            }
            if let Some(end) = upgrade_end
                && response.status().is_success()
            {
                streams::set_upgraded(end);
            }
            // The request is in progress until its response is sent or dropped.
            Ok::<_, Infallible>(
                response.map(|body| GuardedBody::new(PacedBody::new(body), in_progress)),
            )
        }
    });
    match protocol {
        Protocol::Http1 => {
            let mut builder = http1::Builder::new();
            // hyper's own header timeout would also count the time between requests.
            builder
                .timer(TokioTimer::new())
                .max_buf_size(MAX_HEADER_BYTES as usize)
                .header_read_timeout(None);
            // The shutdown of the server waits for an upgraded connection too.
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
            let mut builder = http2::Builder::new(Streams::new(Patience::new(STALL)));
            builder
                .timer(TokioTimer::new())
                .max_concurrent_streams(MAX_CONCURRENT_STREAMS)
                .initial_stream_window_size(STREAM_WINDOW_BYTES)
                .max_frame_size(STREAM_WINDOW_BYTES)
                .max_header_list_size(MAX_HEADER_BYTES)
                .enable_connect_protocol()
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

/// Whether a response asks to close its connection.
fn closes(response: &Response<Body>) -> bool {
    response
        .headers()
        .get(CONNECTION)
        .is_some_and(|value| value == "close")
}

/// Polls a connection, and closes it on timeouts. A shutdown of the server waits while `stop` is held here.
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
            // A client that is frozen does not react, and is not waited for without requests.
            if let Some(until) = timing.close() {
                timer.as_mut().reset(until);
            }
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
                TimerAction::Wait(until) => timer.as_mut().reset(until),
                TimerAction::Close(until) => {
                    graceful_shutdown(connection.as_mut());
                    timer.as_mut().reset(until);
                }
                TimerAction::End => return Poll::Ready(Ok(())),
            }
        }
    });
    ended.await.map_err(Into::into)
}

/// Timeouts of a connection. Requests do not reset the timer, which would cost each of them; their counters are
/// compared when it fires.
struct Timing<'a> {
    protocol: Protocol,
    activity: &'a Activity,
    phase: Phase,
    /// Requests begun when the timer fired last.
    begun_before: usize,
    /// Requests begun and reads done when the connection was last polled without partial headers.
    begun: usize,
    reads: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No bytes received yet, or not the whole preface of HTTP/2.
    New,
    Open,
    /// Receiving the headers of an HTTP/1.1 request.
    Headers,
    /// GOAWAY was sent.
    Closing,
    /// The time to react to GOAWAY has passed.
    Closed,
}

/// Action for an expired timer, with the next expiry.
enum TimerAction {
    Wait(Instant),
    /// Send GOAWAY.
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

    /// Whether the client has said enough to be waited for: its first bytes, over HTTP/2 the preface with SETTINGS.
    fn has_begun(&self) -> bool {
        match self.protocol {
            Protocol::Http1 => self.activity.reads.load(Ordering::Relaxed) > 0,
            Protocol::Http2 => self.activity.has_preface.load(Ordering::Relaxed),
        }
    }

    fn is_busy(&self) -> bool {
        self.activity.in_progress.load(Ordering::Relaxed) > 0
    }

    /// Next expiry after GOAWAY is sent; `None` if it was sent before.
    fn close(&mut self) -> Option<Instant> {
        let is_first = !matches!(self.phase, Phase::Closing | Phase::Closed);
        is_first.then(|| {
            self.phase = Phase::Closing;
            Instant::now() + CLOSE_TIMEOUT
        })
    }

    /// Deadline for the headers of an HTTP/1.1 request, once their first bytes have arrived.
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

    fn expire(&mut self) -> TimerAction {
        let begun = self.activity.begun.load(Ordering::Relaxed);
        let was_active = begun != self.begun_before;
        self.begun_before = begun;
        let is_busy = self.is_busy();
        let now = Instant::now();
        match self.phase {
            Phase::Headers if begun == self.begun => TimerAction::End,
            Phase::New if !self.has_begun() => TimerAction::End,
            // A connection that never had a request is idle since its beginning.
            Phase::New => {
                self.phase = Phase::Open;
                TimerAction::Wait(now + (IDLE_TIMEOUT - HEADER_TIMEOUT))
            }
            Phase::Open if !is_busy && !was_active => TimerAction::Close(now + CLOSE_TIMEOUT),
            Phase::Open | Phase::Headers => {
                self.phase = Phase::Open;
                TimerAction::Wait(now + IDLE_TIMEOUT)
            }
            Phase::Closing if is_busy => {
                self.phase = Phase::Closed;
                TimerAction::Wait(now + CLOSE_TIMEOUT)
            }
            // Requests in progress may finish; but a client that still opens streams ignores GOAWAY.
            Phase::Closed if is_busy && !was_active => TimerAction::Wait(now + CLOSE_TIMEOUT),
            Phase::Closing | Phase::Closed => TimerAction::End,
        }
    }
}

#[cfg(test)]
mod tests;
