//! `WatchStream`: the events of a watch, one after the other.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use http::{Response, header};
use http_body::Body as _;
use tokio::task::coop;
use tokio::time::Sleep;

use super::super::object::ApiObject;
use super::super::{excerpt, failure};
use super::event::{LineError, WatchEvent, decode};
use super::lines::Lines;
use crate::error::{DecodeError, Error};
use crate::transport::{Body, TransportError};

/// How much later than asked a server may end a watch.
const MARGIN: Duration = Duration::from_secs(30);

/// Most bytes in a row without an event, beside those of an event that is not complete: blank lines are no sign of life.
const MAX_BLANK_BYTES: usize = 64 * 1024;

/// Most bytes of an answer that is not a watch which are read, and how long it may take.
const MAX_OTHER_BYTES: usize = 64 * 1024;
const OTHER_TIMEOUT: Duration = Duration::from_secs(5);

/// The events of a watch. It ends when the server closes it, which is usual: a new watch begins at the resourceVersion of
/// the last event. After an error it has ended.
///
/// Dropping it ends the watch. Events are read from the network only when they are asked for.
pub struct WatchStream<K> {
    body: Body,
    lines: Lines,
    path: String,
    kind: String,
    /// Bytes of blank lines since the last event.
    blank: usize,
    /// Whether an event of an unknown type was reported: one line of the log for each stream.
    has_unknown: bool,
    /// The bytes that the initial events may still have; `None` behind them.
    initial_room: Option<usize>,
    /// When the server must have ended the watch.
    deadline: Pin<Box<Sleep>>,
    /// The whole time until then.
    most: Duration,
    state: State,
    object: PhantomData<fn() -> K>,
}

/// What a watch may have.
pub(super) struct Limits {
    /// Bytes of an event.
    pub(super) line_bytes: usize,
    /// Bytes of all initial events, if those were asked for.
    pub(super) initial_bytes: Option<usize>,
    /// How long it was asked to be open.
    pub(super) timeout: Duration,
}

enum State {
    /// No event was decoded so far: the body could be something else.
    First,
    Events,
    /// The first line is not an event: the rest is collected, to say what it is.
    Other {
        text: Vec<u8>,
        error: Box<DecodeError>,
        deadline: Pin<Box<Sleep>>,
    },
    Ended,
}

impl<K: ApiObject> WatchStream<K> {
    pub(super) fn new(
        response: Response<Body>,
        path: String,
        kind: String,
        limits: Limits,
    ) -> Result<Self, Error> {
        let (parts, body) = response.into_parts();
        let encoding = parts.headers.get(header::CONTENT_ENCODING);
        if let Some(encoding) = encoding.filter(|encoding| *encoding != "identity") {
            return Err(Error::Decode(Box::new(DecodeError {
                path,
                kind,
                name: String::new(),
                reason: format!(
                    "the watch has the content encoding {encoding:?}, which was not asked for"
                ),
                excerpt: String::new(),
            })));
        }
        let most = limits.timeout.saturating_add(MARGIN);
        Ok(Self {
            body,
            lines: Lines::new(limits.line_bytes),
            blank: 0,
            initial_room: limits.initial_bytes,
            has_unknown: false,
            path,
            kind,
            deadline: Box::pin(tokio::time::sleep(most)),
            most,
            state: State::First,
            object: PhantomData,
        })
    }

    /// The next event, from what has arrived.
    fn take_event(&mut self) -> Option<Result<WatchEvent<K>, Error>> {
        loop {
            let line = match self.lines.next() {
                Ok(line) => line?,
                Err(_) => {
                    self.close();
                    return Some(Err(self.malformed(
                        "an event is longer than max_watch_line_bytes of the client",
                    )));
                }
            };
            return match decode(&line, &self.path, &self.kind) {
                Ok(event) => {
                    self.state = State::Events;
                    if matches!(&event, WatchEvent::Bookmark(mark) if mark.ends_initial_events) {
                        self.initial_room = None;
                    }
                    Some(Ok(event))
                }
                Err(LineError::Unknown(event_type)) => {
                    // What it means for its object is unknown too: the object stays as it is.
                    if !std::mem::replace(&mut self.has_unknown, true) {
                        tracing::warn!(
                            path = self.path,
                            "an event of the unknown type {event_type:?} is skipped, and others of unknown types"
                        );
                    }
                    self.state = State::Events;
                    continue;
                }
                Err(LineError::Failure(error)) => {
                    self.close();
                    Some(Err(error))
                }
                Err(LineError::Malformed(error)) if matches!(self.state, State::First) => {
                    self.begin_other(&line, error);
                    None
                }
                Err(LineError::Malformed(error)) => {
                    self.close();
                    Some(Err(Error::Decode(Box::new(error))))
                }
            };
        }
    }

    /// Ends the stream. The body is dropped at once: servers wait for it when they stop.
    fn close(&mut self) {
        self.state = State::Ended;
        self.body = Body::empty();
    }

    /// The body is something else than a watch, for instance a Status of several lines.
    fn begin_other(&mut self, first_line: &[u8], error: DecodeError) {
        let mut text = first_line.to_vec();
        while let Ok(Some(line)) = self.lines.next() {
            text.push(b'\n');
            text.extend_from_slice(&line);
        }
        text.push(b'\n');
        text.extend_from_slice(self.lines.rest());
        self.state = State::Other {
            text,
            error: Box::new(error),
            deadline: Box::pin(tokio::time::sleep(OTHER_TIMEOUT)),
        };
    }

    fn malformed(&self, reason: &str) -> Error {
        Error::Decode(Box::new(DecodeError {
            path: self.path.clone(),
            kind: self.kind.clone(),
            name: String::new(),
            reason: reason.to_owned(),
            excerpt: excerpt::of(self.lines.rest(), 0),
        }))
    }

    /// The next bytes of the body; `None` at its end.
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, TransportError>>> {
        loop {
            // Bytes that are always ready must not keep the thread.
            ready!(coop::poll_proceed(cx)).made_progress();
            return Poll::Ready(match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => Some(Ok(data)),
                    // Trailers.
                    Err(_) => continue,
                },
                Some(Err(error)) => Some(Err(error)),
                None => None,
            });
        }
    }

    /// Collects a body that is not a watch, and ends with its error.
    fn poll_other(&mut self, cx: &mut Context<'_>) -> Poll<Error> {
        loop {
            let piece = match self.poll_bytes(cx) {
                Poll::Ready(Some(Ok(piece))) => Some(piece),
                Poll::Ready(_) => None,
                Poll::Pending => {
                    let State::Other { deadline, .. } = &mut self.state else {
                        return Poll::Pending;
                    };
                    ready!(deadline.as_mut().poll(cx));
                    None
                }
            };
            let State::Other { text, error, .. } = &mut self.state else {
                return Poll::Pending;
            };
            let is_full = match &piece {
                Some(piece) => {
                    text.extend_from_slice(piece);
                    text.len() > MAX_OTHER_BYTES
                }
                None => true,
            };
            if is_full {
                error.excerpt = excerpt::of(text, 0);
                let failure = failure::failure_in_success(text);
                let error = failure.unwrap_or_else(|| Error::Decode(error.clone()));
                self.close();
                return Poll::Ready(error);
            }
        }
    }
}

impl<K: ApiObject> Stream for WatchStream<K> {
    type Item = Result<WatchEvent<K>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match self.state {
                State::Ended => return Poll::Ready(None),
                State::Other { .. } => return self.poll_other(cx).map(|error| Some(Err(error))),
                State::First | State::Events => {}
            }
            if let Some(event) = self.take_event() {
                return Poll::Ready(Some(event));
            }
            if matches!(self.state, State::Other { .. }) {
                continue;
            }
            // Also while bytes are ready all the time.
            if self.deadline.as_mut().poll(cx).is_ready() {
                let error = Error::Timeout(self.most);
                self.close();
                return Poll::Ready(Some(Err(error)));
            }
            match ready!(self.poll_bytes(cx)) {
                Some(Ok(bytes)) => self.push(bytes)?,
                Some(Err(error)) => {
                    self.close();
                    return Poll::Ready(Some(Err(error.into())));
                }
                None => return Poll::Ready(self.end()),
            }
        }
    }
}

impl<K: ApiObject> WatchStream<K> {
    /// Takes bytes that have arrived.
    ///
    /// # Errors
    /// If too many in a row were blank, or the initial events have too many; the stream has ended then.
    fn push(&mut self, bytes: Bytes) -> Result<(), Error> {
        if let Some(room) = &mut self.initial_room {
            let Some(rest) = room.checked_sub(bytes.len()) else {
                self.close();
                return Err(self
                    .malformed("the initial events are longer than max_list_bytes of the client"));
            };
            *room = rest;
        }
        self.blank = if bytes.iter().all(u8::is_ascii_whitespace) {
            self.blank + bytes.len()
        } else {
            0
        };
        self.lines.push(bytes);
        if self.blank > MAX_BLANK_BYTES {
            self.close();
            return Err(self.malformed("the server sends blank lines instead of events"));
        }
        Ok(())
    }

    /// The end of the body. An event that is not complete is dropped: it comes again in the next watch.
    fn end(&mut self) -> Option<Result<WatchEvent<K>, Error>> {
        let is_first = matches!(self.state, State::First);
        self.close();
        let rest = self.lines.rest().trim_ascii();
        if !is_first || rest.is_empty() {
            return None;
        }
        // One line without a break: the answer may be no watch at all.
        if let Some(failure) = failure::failure_in_success(rest) {
            return Some(Err(failure));
        }
        (!rest.starts_with(b"{")).then(|| Err(self.malformed("the answer is not a watch")))
    }
}

/// One type is in use for all kinds: nothing is pinned.
impl<K> Unpin for WatchStream<K> {}

impl<K> fmt::Debug for WatchStream<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchStream")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
