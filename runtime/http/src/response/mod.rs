//! What responses to every request are made of: bodies, compression, prepared documents, turns of large bodies, warnings. The lowest wing:
//! it knows no request.

pub(super) mod compress;
pub(super) mod static_doc;
pub mod turns;
pub(super) mod unpacked_body;
pub(super) mod warning;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};

/// The body of all responses.
pub type Body = UnsyncBoxBody<Bytes, CutOff>;

/// Error that ends an incomplete response; the connection, or its HTTP/2 stream, is aborted, so that the client does
/// not take the response for complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CutOff {
    /// The deadline of the request has passed.
    #[error("the request's time is up, its answer is cut off")]
    TimeIsUp,
    /// The rest of the response could not be encoded.
    #[error("the rest of the answer cannot be made, it is cut off")]
    Unfinished,
}

/// Marks the response of a watch, which is never compressed and never delayed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IsWatch {
    /// Whether an event ends with a line. Otherwise it begins with its length, in four bytes.
    pub(crate) has_lines: bool,
}

/// A 200 response with this body.
pub(crate) fn ok(content_type: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    ok_as(HeaderValue::from_static(content_type), body)
}

/// As [`ok`], with any content type.
pub(crate) fn ok_as(content_type: HeaderValue, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(full(body.into()));
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

/// A response with plain text.
pub fn plain(code: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = ok("text/plain; charset=utf-8", text);
    *response.status_mut() = code;
    response
}

/// A response without a body.
pub(crate) fn status(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(full(Bytes::new()));
    *response.status_mut() = code;
    response
}

/// A body of bytes in memory.
pub fn full(bytes: Bytes) -> Body {
    Full::new(bytes)
        .map_err(|never| match never {})
        .boxed_unsync()
}
