//! The body of a response, and responses that need no negotiation.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};

/// The body of every answer.
pub type Body = UnsyncBoxBody<Bytes, CutOff>;

/// The answer ends here although more was to come; the connection, or its HTTP/2 stream, is to be aborted so that the
/// client does not take it for whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CutOff {
    /// The request may not take longer.
    #[error("the request's time is up, its answer is cut off")]
    TimeIsUp,
    /// What was still to be sent cannot be made.
    #[error("the rest of the answer cannot be made, it is cut off")]
    Unfinished,
}

/// Marks an answer that goes on while the client reads it: never compressed, never delayed.
#[derive(Clone, Copy, Debug)]
pub(super) struct IsWatch;

/// A 200 with this body.
pub(crate) fn ok(content_type: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    ok_as(HeaderValue::from_static(content_type), body)
}

/// The same, of any type.
pub(crate) fn ok_as(content_type: HeaderValue, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(full(body.into()));
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// A text for people.
pub(crate) fn plain(code: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = ok("text/plain; charset=utf-8", text);
    *response.status_mut() = code;
    response
}

/// An answer without a body.
pub(crate) fn status(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(full(Bytes::new()));
    *response.status_mut() = code;
    response
}

/// A body of bytes that are all here.
pub(crate) fn full(bytes: Bytes) -> Body {
    Full::new(bytes)
        .map_err(|never| match never {})
        .boxed_unsync()
}
