//! The open watches of a test server, which a test can break off.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use apiloom_client::{Body, TransportError};
use bytes::Bytes;
use http_body::Frame;
use parking_lot::Mutex;

/// The open watches.
#[derive(Default)]
pub(crate) struct Watches(Mutex<Vec<Weak<Mutex<Line>>>>);

/// The connection of a watch.
struct Line {
    state: State,
    /// Waits for the next event.
    reader: Option<Waker>,
}

enum State {
    Open(Body),
    /// The reader is told of it by an error.
    Broken,
    Ended,
}

impl Watches {
    /// Adds a watch, of which this is the body.
    pub(crate) fn add(&self, body: Body) -> Body {
        let line = Arc::new(Mutex::new(Line {
            state: State::Open(body),
            reader: None,
        }));
        let mut lines = self.0.lock();
        lines.retain(|line| line.strong_count() > 0);
        lines.push(Arc::downgrade(&line));
        Body::new(WatchBody(line))
    }

    /// The open watches.
    fn open(&self) -> Vec<Arc<Mutex<Line>>> {
        let lines: Vec<_> = self.0.lock().iter().filter_map(Weak::upgrade).collect();
        let is_open = |line: &Arc<Mutex<Line>>| matches!(line.lock().state, State::Open(_));
        lines.into_iter().filter(is_open).collect()
    }

    /// The number of open watches.
    pub(crate) fn count(&self) -> usize {
        self.open().len()
    }

    /// Breaks all watches off; returns how many.
    pub(crate) fn break_all(&self) -> usize {
        self.leave(|| State::Broken)
    }

    /// Ends all watches, as a server does that stops.
    pub(crate) fn end_all(&self) {
        self.leave(|| State::Ended);
    }

    /// Drops the bodies of all open watches, so that the server knows that they are gone.
    fn leave(&self, state: impl Fn() -> State) -> usize {
        let open = self.open();
        for line in &open {
            let mut line = line.lock();
            let body = std::mem::replace(&mut line.state, state());
            let reader = line.reader.take();
            // The server's code runs when it is dropped.
            drop((line, body));
            if let Some(reader) = reader {
                reader.wake();
            }
        }
        open.len()
    }
}

/// The body of a watch as its client has it.
struct WatchBody(Arc<Mutex<Line>>);

impl http_body::Body for WatchBody {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        let mut line = self.0.lock();
        let frame = match &mut line.state {
            State::Open(body) => Pin::new(body).poll_frame(cx),
            State::Ended => return Poll::Ready(None),
            State::Broken => {
                line.state = State::Ended;
                let error = TransportError::new("the test broke this watch off");
                return Poll::Ready(Some(Err(error)));
            }
        };
        if frame.is_pending() {
            line.reader = Some(cx.waker().clone());
        } else if !matches!(frame, Poll::Ready(Some(Ok(_)))) {
            line.state = State::Ended;
        }
        frame
    }
}
