//! Request bodies that were not read to their end when the answer came: they are discarded, within bounds, so that a
//! client that sends all before it reads gets to read the answer.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, EXPECT};
use http::{HeaderValue, Request, Response, Version};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use parking_lot::Mutex;

use super::activity::InProgress;
use crate::http::Body;
use crate::http::timeout::REQUEST_TIMEOUT;

/// An HTTP/1.1 connection is kept when no more than this is to be discarded, as in Go.
const KEPT_BYTES: u64 = 256 * 1024;
/// The most that is discarded of one body.
const DISCARDED_BYTES: usize = 64 * 1024 * 1024;
/// How long a client may send nothing while its body is being discarded.
const PATIENCE: Duration = Duration::from_secs(10);

/// The body of a request.
pub(super) struct RequestBody {
    /// `None` when it has ended, or while it is being dropped.
    body: Option<Incoming>,
    /// Where it is put when it is dropped before its end; `None` for an empty one.
    rest: Option<Arc<Mutex<Rest>>>,
    /// The client sends it only when it is told to, which reading does.
    awaits_continue: bool,
}

/// What is left of a body that was dropped.
#[derive(Default)]
enum Rest {
    #[default]
    None,
    Unread(Incoming),
    /// The client was never told to send it.
    Unwanted,
}

/// What becomes of the body of a request that is being answered.
pub(super) struct Unread {
    rest: Option<Arc<Mutex<Rest>>>,
    version: Version,
}

impl Unread {
    /// Follows the body of a request.
    pub(super) fn of(request: Request<Incoming>) -> (Request<RequestBody>, Self) {
        let version = request.version();
        let is_empty = request.body().is_end_stream();
        let rest = (!is_empty).then(|| Arc::new(Mutex::new(Rest::None)));
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
        });
        (request, unread)
    }

    /// Discards what was not read, while the answer is sent. An HTTP/1.1 client is told that the connection will be closed
    /// when that is much, or of unknown length, or was not asked for.
    pub(super) fn discard(self, response: &mut Response<Body>, in_progress: &InProgress) {
        let Some(rest) = self.rest else { return };
        let is_short = match std::mem::take(&mut *rest.lock()) {
            Rest::None => return,
            Rest::Unwanted => false,
            Rest::Unread(body) => {
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

/// Reads a body and forgets it, within bounds. The connection is not idle meanwhile.
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
    // An error means that it takes too long, and no client waits for it.
    let _ = tokio::time::timeout(REQUEST_TIMEOUT, all).await;
    drop(in_progress);
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.awaits_continue = false;
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let frame = Pin::new(body).poll_frame(cx);
        if let Poll::Ready(None | Some(Err(_))) = frame {
            self.body = None;
        }
        frame
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
            Rest::Unwanted
        } else {
            Rest::Unread(body)
        };
    }
}
