//! Discards request bodies that were not read completely when the response is ready, within limits, so that a client
//! that sends its whole body before it reads can read the response.
//!
//! A body whose stream was reset is no whole body, also if the reset says NO_ERROR: the beginning of a document that was broken off may be
//! a document too.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use apiloom_http::Body;
use apiloom_http::request::timeout::REQUEST_TIMEOUT;
use apiloom_registry::auth::BoxError;
use bytes::Bytes;
use http::header::{CONNECTION, EXPECT};
use http::{HeaderValue, Request, Response, Version};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use parking_lot::Mutex;

use super::activity::InProgress;

/// Maximum size of a discarded body after which an HTTP/1.1 connection stays open, as in Go.
const KEPT_BYTES: u64 = 256 * 1024;
/// Maximum number of bytes discarded of one body.
const DISCARDED_BYTES: usize = 64 * 1024 * 1024;
/// Maximum time between two frames of a body that is being discarded.
const PATIENCE: Duration = Duration::from_secs(10);

/// The body of a request.
pub(super) struct RequestBody {
    /// `None` once it has ended, or while it is being dropped.
    body: Option<Incoming>,
    /// Receives the rest of the body when it is dropped before its end; `None` for an empty body.
    rest: Option<Arc<Mutex<BodyRest>>>,
    /// Whether the client waits for `100 Continue`, which is sent when the body is first read.
    awaits_continue: bool,
    version: Version,
}

/// A client reset its stream within the body, without an error (NO_ERROR). hyper ends the body there, as if it were whole.
#[derive(Debug, thiserror::Error)]
#[error("the client reset the stream before the end of the body")]
struct BrokenOff;

/// The rest of a body that was dropped.
#[derive(Default)]
enum BodyRest {
    #[default]
    None,
    Unread(Incoming),
    /// The client was not asked to send it.
    Unwanted,
}

/// Handle to the unread rest of a request's body.
pub(super) struct UnreadBody {
    rest: Option<Arc<Mutex<BodyRest>>>,
    version: Version,
}

impl UnreadBody {
    /// Wraps the body of a request.
    pub(super) fn of(request: Request<Incoming>) -> (Request<RequestBody>, Self) {
        let version = request.version();
        let is_empty = request.body().is_end_stream();
        let rest = (!is_empty).then(|| Arc::new(Mutex::new(BodyRest::None)));
        let awaits_continue =
            !is_empty && version == Version::HTTP_11 && request.headers().contains_key(EXPECT);
        let unread = Self {
            rest: rest.clone(),
            version,
        };
        let request = request.map(|body| RequestBody {
            body: Some(body),
            rest,
            awaits_continue,
            version,
        });
        (request, unread)
    }

    /// Discards the rest of the body while the response is sent. Over HTTP/1.1 the response announces that the
    /// connection will be closed, if the rest is long, of unknown length, or was not asked for.
    pub(super) fn discard(self, response: &mut Response<Body>, in_progress: &InProgress) {
        let Some(rest) = self.rest else { return };
        let is_short = match std::mem::take(&mut *rest.lock()) {
            BodyRest::None => return,
            BodyRest::Unwanted => false,
            BodyRest::Unread(body) => {
                let length = body.size_hint().upper();
                tokio::spawn(discard(body, in_progress.clone()));
                length.is_some_and(|length| length <= KEPT_BYTES)
            }
        };
        if !is_short && self.version < Version::HTTP_2 {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
    }
}

/// Reads and drops a body, within limits. The connection does not count as idle meanwhile.
async fn discard(mut body: Incoming, in_progress: InProgress) {
    let all = async {
        let mut bytes = 0;
        while let Ok(Some(Ok(frame))) = tokio::time::timeout(PATIENCE, body.frame()).await {
            bytes += frame.data_ref().map_or(0, Bytes::len);
            if bytes > DISCARDED_BYTES {
                break;
            }
        }
    };
    // An error means that it took too long; the rest is not read.
    let _ = tokio::time::timeout(REQUEST_TIMEOUT, all).await;
    drop(in_progress);
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.awaits_continue = false;
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let frame = ready!(Pin::new(&mut *body).poll_frame(cx));
        let is_whole = body.is_end_stream();
        if let None | Some(Err(_)) = frame {
            self.body = None;
        }
        Poll::Ready(match frame {
            // Over HTTP/1.1 hyper tells of a body that is broken off.
            None if self.version == Version::HTTP_2 && !is_whole => Some(Err(BrokenOff.into())),
            frame => frame.map(|frame| frame.map_err(Into::into)),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.body.as_ref().map(Incoming::size_hint);
        hint.unwrap_or_else(|| SizeHint::with_exact(0))
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        let (Some(body), Some(rest)) = (self.body.take(), &self.rest) else {
            return;
        };
        if body.is_end_stream() {
            return;
        }
        *rest.lock() = if self.awaits_continue {
            BodyRest::Unwanted
        } else {
            BodyRest::Unread(body)
        };
    }
}
