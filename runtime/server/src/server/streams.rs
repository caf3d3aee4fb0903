//! Resets stalled HTTP/2 streams: with a flow-control window of zero, a response and everything it refers to would
//! stay in memory for ever, while the connection is alive.
//!
//! hyper runs each stream as a task, and polls its body for a frame only when the previous one is sent. A stream is
//! stalled if its body returned a frame and is not polled again. Then its task is dropped, and with it the body, and
//! the stream is reset. A pending body, such as that of a quiet watch, is not stalled.
//!
//! An upgraded stream (WebSocket) is timed by its own code, and reset here if it cannot send its last bytes.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use apiloom_http::response::turns::end_turn;
use apiloom_http::{Body, CutOff};
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::rt::Executor;
use tokio::sync::oneshot;

use super::stall::{Patience, Waiting};

/// Maximum size of a frame, which limits the memory for a client that reads slowly.
const PIECE_BYTES: usize = 64 * 1024;

/// Maximum number of bytes that a body returns in one poll of its task. HTTP/1.1 polls as long as the kernel accepts
/// bytes, which is some MiB for a client that does not read. A request waits three times for the turns of all others: until it is
/// read, until it is handled, and until its response is sent.
const TURN_BYTES: usize = PIECE_BYTES;

/// The last result of a body, for the task that polled it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyResult {
    /// It returned a frame, or will do so in its next turn.
    Frame,
    /// It is pending or has ended.
    Idle,
}

thread_local! {
    /// Set by a body while the task of its stream is polled; both happen in one call on one thread.
    static LAST_RESULT: Cell<Option<BodyResult>> = const { Cell::new(None) };
    /// Set by the service when its response upgrades the stream. hyper spawns the task that sends for the upgraded stream
    /// in the same call.
    static UPGRADED: Cell<Option<UpgradeEnd>> = const { Cell::new(None) };
}

/// Completes when an upgraded stream is no longer used.
type UpgradeEnd = oneshot::Receiver<Infallible>;

/// How long an upgraded stream may take to send its last bytes when it is no longer used.
const UPGRADE_END_TIMEOUT: Duration = Duration::from_secs(5);

/// Announces that the response returned by the service upgrades its stream. The stream is reset some time after the sender
/// of `end` is dropped, if its client accepts nothing.
pub(super) fn set_upgraded(end: UpgradeEnd) {
    UPGRADED.set(Some(end));
}

/// Executor for the streams of HTTP/2 connections: each is a task that ends when its client accepts nothing for
/// `patience`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams {
    patience: Patience,
}

impl Streams {
    pub(super) fn new(patience: Patience) -> Self {
        Self { patience }
    }
}

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        match UPGRADED.take() {
            Some(end) => tokio::spawn(until_ended(stream, end)),
            None => tokio::spawn(until_stalled(stream, self.patience)),
        };
    }
}

/// Runs the task that sends for an upgraded stream until the stream is no longer used.
async fn until_ended(stream: impl Future<Output = ()>, end: UpgradeEnd) {
    let mut stream = pin!(stream);
    tokio::select! {
        () = &mut stream => return,
        // An error, since nothing is sent: the sender is dropped.
        Err(_) = end => {}
    }
    let _ = tokio::time::timeout(UPGRADE_END_TIMEOUT, stream).await;
}

async fn until_stalled(stream: impl Future<Output = ()>, patience: Patience) {
    let mut stream = pin!(stream);
    let mut is_sending = false;
    // Created for the first frame that is not sent at once: most responses fit into the window.
    let mut waiting: Option<Waiting> = None;
    poll_fn(|cx| {
        LAST_RESULT.set(None);
        let polled = stream.as_mut().poll(cx);
        // Unused if hyper refused the response.
        UPGRADED.take();
        if polled.is_ready() {
            return Poll::Ready(());
        }
        match LAST_RESULT.take() {
            Some(BodyResult::Frame) => {
                is_sending = true;
                if let Some(waiting) = &mut waiting {
                    waiting.restart();
                }
            }
            Some(BodyResult::Idle) => is_sending = false,
            // The last frame is not sent yet, or there was none yet.
            None => {}
        }
        if !is_sending {
            return Poll::Pending;
        }
        let waiting = waiting.get_or_insert_with(|| Waiting::new(patience));
        waiting.poll_end(cx)
    })
    .await;
    // Dropping the future resets an unfinished stream.
}

/// A response body that records its results, and splits long frames.
pub(super) struct PacedBody {
    body: Body,
    /// The rest of a frame that is longer than a piece.
    rest: Bytes,
    /// Bytes returned since the body was pending last, or since the turn began.
    given: usize,
}

impl PacedBody {
    pub(super) fn new(body: Body) -> Self {
        Self {
            body,
            rest: Bytes::new(),
            given: 0,
        }
    }

    fn next_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        if self.rest.is_empty() {
            let frame = match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => frame,
                other => return other,
            };
            match frame.into_data() {
                Ok(data) if data.len() > PIECE_BYTES => self.rest = data,
                Ok(data) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Err(frame) => return Poll::Ready(Some(Ok(frame))),
            }
        }
        let piece = self.rest.split_to(self.rest.len().min(PIECE_BYTES));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}

impl http_body::Body for PacedBody {
    type Data = Bytes;
    type Error = CutOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        if self.given >= TURN_BYTES {
            self.given = 0;
            LAST_RESULT.set(Some(BodyResult::Frame));
            end_turn(cx);
            return Poll::Pending;
        }
        let polled = self.next_piece(cx);
        LAST_RESULT.set(Some(if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.given += frame.data_ref().map_or(0, Bytes::len);
            BodyResult::Frame
        } else {
            self.given = 0;
            BodyResult::Idle
        }));
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let hint = self.body.size_hint();
        let mut whole = SizeHint::new();
        whole.set_lower(hint.lower() + rest);
        if let Some(upper) = hint.upper() {
            whole.set_upper(upper + rest);
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::{Stream, StreamExt as _, stream};
    use http::{Request, Response};
    use http_body_util::{BodyExt as _, Empty, StreamBody};
    use hyper::body::Incoming;
    use hyper::client::conn::http2::{Builder, SendRequest};
    use hyper::service::service_fn;
    use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    type Answer = Box<dyn Stream<Item = Bytes> + Send + Unpin>;

    /// A client, with this window for each stream, of a server whose response to each path is made by `answer`.
    async fn connect(
        window: u32,
        answer: impl Fn(&str) -> Answer + Send + Sync + 'static,
    ) -> SendRequest<Empty<Bytes>> {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let answer = Arc::new(answer);
        let service = service_fn(move |request: Request<Incoming>| {
            let frames = answer(request.uri().path()).map(|data| Ok(Frame::data(data)));
            let body = PacedBody::new(StreamBody::new(frames).boxed_unsync());
            async { Ok::<_, Infallible>(Response::new(body)) }
        });
        tokio::spawn(async move {
            let mut builder = hyper::server::conn::http2::Builder::new(Streams::new(
                Patience::with_memory(PATIENCE, || false),
            ));
            builder.timer(TokioTimer::new());
            builder.serve_connection(TokioIo::new(ours), service).await
        });
        let mut builder = Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(window);
        let (client, connection) = builder.handshake(TokioIo::new(theirs)).await.unwrap();
        tokio::spawn(connection);
        client
    }

    async fn get(client: &mut SendRequest<Empty<Bytes>>, path: &str) -> Incoming {
        let request = Request::get(format!("http://x{path}")).body(Empty::new());
        client
            .send_request(request.unwrap())
            .await
            .unwrap()
            .into_body()
    }

    fn frames(count: usize, bytes: usize, held: Arc<()>) -> Answer {
        let frames = stream::iter((0..count).map(move |_| Bytes::from(vec![b'x'; bytes])));
        Box::new(frames.inspect(move |_| {
            let _ = &held;
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_of_which_nothing_is_taken_is_reset_and_what_it_held_is_dropped() {
        for bytes in [1, 1000, 1_000_000] {
            let held = Arc::new(());
            let kept = Arc::clone(&held);
            let mut client = connect(0, move |path| match path {
                "/none" => Box::new(stream::empty()),
                _ => frames(10, bytes, Arc::clone(&kept)),
            })
            .await;
            let body = get(&mut client, "/list").await;
            assert_eq!(Arc::strong_count(&held), 3);
            tokio::time::sleep(PATIENCE - Duration::from_secs(1)).await;
            assert_eq!(Arc::strong_count(&held), 3, "it may still be read");
            tokio::time::sleep(Duration::from_secs(2)).await;
            assert_eq!(Arc::strong_count(&held), 2, "{bytes}");
            assert!(body.collect().await.is_err());
            // The connection is not closed.
            let none = get(&mut client, "/none").await.collect().await;
            assert_eq!(none.unwrap().to_bytes(), "");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_is_read_slowly_goes_on() {
        const WINDOW: usize = 64 * 1024;
        let mut client = connect(WINDOW as u32, |_| frames(5, WINDOW, Arc::default())).await;
        let mut body = get(&mut client, "/").await;
        let mut read = 0;
        while let Some(frame) = body.frame().await {
            read += frame.unwrap().into_data().unwrap().len();
            if read % WINDOW == 0 {
                tokio::time::sleep(PATIENCE - Duration::from_secs(1)).await;
            }
        }
        assert_eq!(read, 5 * WINDOW);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_has_nothing_to_send_goes_on() {
        let mut client = connect(1000, |_| {
            let quiet = stream::once(Box::pin(async {
                tokio::time::sleep(20 * PATIENCE).await;
                Bytes::from_static(b"second")
            }));
            Box::new(stream::iter([Bytes::from_static(b"first")]).chain(quiet))
        })
        .await;
        let body = get(&mut client, "/").await.collect().await;
        assert_eq!(body.unwrap().to_bytes(), "firstsecond");
    }

    /// The bytes that each poll of a task gets from a body, if it takes all it can.
    async fn turns(body: Body) -> Vec<usize> {
        let mut body = PacedBody::new(body);
        let mut turns = Vec::new();
        poll_fn(|cx| {
            turns.push(0);
            loop {
                match std::task::ready!(Pin::new(&mut body).poll_frame(cx)) {
                    Some(frame) => {
                        let data = frame.unwrap().into_data().unwrap();
                        *turns.last_mut().unwrap() += data.len();
                    }
                    None => return Poll::Ready(()),
                }
            }
        })
        .await;
        turns
    }

    // Over HTTP/1.1 the kernel takes 4 MiB for a client that does not read.
    #[tokio::test]
    async fn a_long_answer_lets_other_tasks_have_their_turn() {
        for frame in [1000, PIECE_BYTES, 3 * PIECE_BYTES + 1, 100 * PIECE_BYTES] {
            let count = 100 * PIECE_BYTES / frame;
            let frames = frames(count, frame, Arc::default());
            let body = StreamBody::new(frames.map(|data| Ok(Frame::data(data))));
            let turns = turns(body.boxed_unsync()).await;
            assert_eq!(turns.iter().sum::<usize>(), count * frame);
            assert!(turns.len() > 20, "{frame}: {turns:?}");
            for turn in turns {
                assert!(turn < TURN_BYTES + PIECE_BYTES, "{frame}: {turn}");
            }
        }
    }

    // A short response does not yield.
    #[tokio::test]
    async fn a_short_answer_is_made_in_one_turn() {
        let body = apiloom_http::plain(http::StatusCode::OK, vec![b'x'; TURN_BYTES - 1]);
        assert_eq!(turns(body.into_body()).await, [TURN_BYTES - 1]);
    }

    #[tokio::test]
    async fn long_frames_are_handed_over_in_pieces() {
        let whole = apiloom_http::plain(http::StatusCode::OK, vec![b'x'; 2 * PIECE_BYTES + 1]);
        let mut body = PacedBody::new(whole.into_body());
        let mut sizes = Vec::new();
        assert_eq!(body.size_hint().exact(), Some(2 * PIECE_BYTES as u64 + 1));
        while let Some(frame) = body.frame().await {
            sizes.push(frame.unwrap().into_data().unwrap().len());
            let left = 2 * PIECE_BYTES + 1 - sizes.iter().sum::<usize>();
            assert_eq!(body.size_hint().exact(), Some(left as u64));
            assert_eq!(body.is_end_stream(), left == 0);
        }
        assert_eq!(sizes, [PIECE_BYTES, PIECE_BYTES, 1]);
    }
}
