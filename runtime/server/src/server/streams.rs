//! Ends HTTP/2 streams whose client takes nothing: with a flow-control window of zero an answer would be kept for ever on a
//! connection that is otherwise alive, with all that it is made from.
//!
//! hyper runs each stream as a task and asks the body for a frame only when the one before has been handed over. A
//! stream is stalled when its body gave a frame and is not asked again. Its task is dropped then, and with it the body,
//! and the stream is reset. A body that has nothing to give, such as a quiet watch, is not stalled.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::rt::Executor;
use tokio::time::{Instant, Sleep};

use crate::http::{Body, CutOff};

/// No more is handed over at a time, so that little is kept for a client that takes little.
const PIECE_BYTES: usize = 64 * 1024;

/// As much is made before other tasks have their turn. HTTP/1.1 asks for more as long as the kernel takes it, which is
/// some MiB for a client that does not read.
const TURN_BYTES: usize = 4 * PIECE_BYTES;

/// What a body last did, as the task that polled it learns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// It gave a frame, which is to be sent now, or does so in its next turn.
    Gave,
    /// It has nothing to give for now, or has ended.
    HasNothing,
}

thread_local! {
    /// What a body did while the task of its stream was polled: both happen in one call on one thread.
    static ASKED: Cell<Option<Asked>> = const { Cell::new(None) };
}

/// Runs the streams of HTTP/2 connections, each as a task that ends when its client takes nothing for `patience`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams {
    patience: Duration,
}

impl Streams {
    pub(super) fn new(patience: Duration) -> Self {
        Self { patience }
    }
}

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        tokio::spawn(until_stalled(stream, self.patience));
    }
}

async fn until_stalled(stream: impl Future<Output = ()>, patience: Duration) {
    let mut stream = pin!(stream);
    let mut is_sending = false;
    // Made by the first frame that is not taken at once: most answers fit into the window.
    let mut timer: Option<Pin<Box<Sleep>>> = None;
    poll_fn(|cx| {
        ASKED.set(None);
        if stream.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        match ASKED.take() {
            Some(Asked::Gave) => {
                is_sending = true;
                if let Some(timer) = &mut timer {
                    timer.as_mut().reset(Instant::now() + patience);
                }
            }
            Some(Asked::HasNothing) => is_sending = false,
            // What was given before is not taken yet, or nothing was given yet.
            None => {}
        }
        if !is_sending {
            return Poll::Pending;
        }
        let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        timer.as_mut().poll(cx)
    })
    .await;
    // Dropped with the future, an unfinished stream is reset.
}

/// The body of an answer, in pieces whose sending is watched.
pub(super) struct Paced {
    body: Body,
    /// What is left of a frame that is longer than a piece.
    rest: Bytes,
    /// What was given since the body had to wait, or a turn ended.
    given: usize,
}

impl Paced {
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

impl http_body::Body for Paced {
    type Data = Bytes;
    type Error = CutOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        if self.given >= TURN_BYTES {
            self.given = 0;
            ASKED.set(Some(Asked::Gave));
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let polled = self.next_piece(cx);
        ASKED.set(Some(if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.given += frame.data_ref().map_or(0, Bytes::len);
            Asked::Gave
        } else {
            self.given = 0;
            Asked::HasNothing
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
    use std::convert::Infallible;
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

    /// A client with this window for each stream, of a server that answers with what `answer` makes for each path.
    async fn connect(
        window: u32,
        answer: impl Fn(&str) -> Answer + Send + Sync + 'static,
    ) -> SendRequest<Empty<Bytes>> {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let answer = Arc::new(answer);
        let service = service_fn(move |request: Request<Incoming>| {
            let frames = answer(request.uri().path()).map(|data| Ok(Frame::data(data)));
            let body = Paced::new(StreamBody::new(frames).boxed_unsync());
            async { Ok::<_, Infallible>(Response::new(body)) }
        });
        tokio::spawn(async move {
            let mut builder = hyper::server::conn::http2::Builder::new(Streams::new(PATIENCE));
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

    // Issue 9, point 12.
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
            // The connection goes on.
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

    /// How much each poll of a task gets from a body of which it takes all that there is.
    async fn turns(body: Body) -> Vec<usize> {
        let mut body = Paced::new(body);
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

    // Issue 9, point 12: over HTTP/1.1 the kernel takes 4 MiB for a client that does not read.
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

    // What an ordinary request is answered costs no turn.
    #[tokio::test]
    async fn a_short_answer_is_made_in_one_turn() {
        let body = crate::http::plain(http::StatusCode::OK, vec![b'x'; TURN_BYTES - 1]);
        assert_eq!(turns(body.into_body()).await, [TURN_BYTES - 1]);
    }

    #[tokio::test]
    async fn long_frames_are_handed_over_in_pieces() {
        let whole = crate::http::plain(http::StatusCode::OK, vec![b'x'; 2 * PIECE_BYTES + 1]);
        let mut body = Paced::new(whole.into_body());
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
