//! gzip for long answers, for clients that ask. Watches are never compressed: an event must not wait in a buffer.

use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, VARY};
use http::{HeaderMap, HeaderValue, Response};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;

use super::watch::IsWatch;
use super::{Body, CutOff};

/// Answers up to this size are sent as they are: compressing them costs more than it saves.
pub(super) const THRESHOLD_BYTES: usize = 128 * 1024;

/// Compresses an answer if the client asked for it and it is worth it. An answer of unknown length is a long one.
pub(super) fn compress(request: &HeaderMap, response: Response<Body>) -> Response<Body> {
    let long = response
        .body()
        .size_hint()
        .exact()
        .is_none_or(|length| length > THRESHOLD_BYTES as u64);
    let is_watch = response.extensions().get::<IsWatch>().is_some();
    let is_encoded = response.headers().contains_key(CONTENT_ENCODING);
    if !long || is_watch || is_encoded || !accepts_gzip(request) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    parts
        .headers
        .insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts
        .headers
        .append(VARY, HeaderValue::from_static("Accept-Encoding"));
    parts.headers.remove(CONTENT_LENGTH);
    // Level 1: most of the gain for a fraction of the time.
    let gzipped = Gzipped {
        body,
        encoder: Some(GzEncoder::new(Vec::new(), Compression::fast())),
        input: Bytes::new(),
    };
    Response::from_parts(parts, gzipped.boxed_unsync())
}

/// Whether `Accept-Encoding` names gzip and does not refuse it.
pub(super) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|clause| {
        let mut parts = clause.split(';').map(str::trim);
        let names_gzip = parts
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let refused =
            parts.any(|p| p.strip_prefix("q=").and_then(|q| q.parse::<f32>().ok()) == Some(0.0));
        names_gzip && !refused
    })
}

/// So much is compressed before others get their turn on the thread: about half a millisecond's worth.
const TURN_BYTES: usize = 64 * 1024;

/// A body on its way through gzip. `encoder` is gone when the body has ended.
struct Gzipped {
    body: Body,
    encoder: Option<GzEncoder<Vec<u8>>>,
    /// What was not compressed yet.
    input: Bytes,
}

impl http_body::Body for Gzipped {
    type Data = Bytes;
    type Error = CutOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        const IN_MEMORY: &str = "writing to memory cannot fail";
        let this = &mut *self;
        let Some(encoder) = &mut this.encoder else {
            return Poll::Ready(None);
        };
        if this.input.is_empty() {
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => this.input = frame.into_data().unwrap_or_default(),
                Some(Err(cut_off)) => {
                    this.encoder = None;
                    return Poll::Ready(Some(Err(cut_off)));
                }
                None => {
                    let rest = this.encoder.take().map(GzEncoder::finish);
                    let rest = rest.transpose().expect(IN_MEMORY).unwrap_or_default();
                    return Poll::Ready(Some(Ok(Frame::data(rest.into()))));
                }
            }
        }
        let turn = this.input.split_to(this.input.len().min(TURN_BYTES));
        encoder.write_all(&turn).expect(IN_MEMORY);
        let out = std::mem::take(encoder.get_mut());
        if out.is_empty() {
            // Repetitive text fills no block for long.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Some(Ok(Frame::data(out.into()))))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;
    use crate::http::static_doc::full;
    use crate::http::testing;

    fn answer(accept_encoding: &str, length: usize) -> Response<Body> {
        let request = testing::get("/x", &[("accept-encoding", accept_encoding)]);
        compress(
            &request.headers,
            Response::new(full(Bytes::from(vec![b'x'; length]))),
        )
    }

    #[test]
    fn only_long_answers_are_compressed_and_only_when_asked() {
        let check = |accept: &str, length: usize, expected: &str| {
            let got = answer(accept, length);
            assert_eq!(
                testing::header(&got, "content-encoding"),
                expected,
                "{accept} {length}"
            );
            assert_eq!(
                testing::header(&got, "vary").is_empty(),
                expected.is_empty()
            );
        };
        check("gzip", THRESHOLD_BYTES, "");
        check("gzip", THRESHOLD_BYTES + 1, "gzip");
        check("br, GZIP;q=0.5", THRESHOLD_BYTES + 1, "gzip");
        check("", THRESHOLD_BYTES + 1, "");
        check("br", THRESHOLD_BYTES + 1, "");
        check("gzip;q=0", THRESHOLD_BYTES + 1, "");
    }

    #[test]
    fn a_watch_is_never_compressed() {
        let mut response = Response::new(full(Bytes::from(vec![b'x'; 2 * THRESHOLD_BYTES])));
        response.extensions_mut().insert(IsWatch);
        let request = testing::get("/x", &[("accept-encoding", "gzip")]);
        assert!(
            !compress(&request.headers, response)
                .headers()
                .contains_key("content-encoding")
        );
    }

    #[tokio::test]
    async fn what_was_compressed_comes_back() {
        let bytes = answer("gzip", 300_000)
            .into_body()
            .collect()
            .await
            .unwrap()
            .to_bytes();
        assert!(bytes.len() < 10_000);
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(bytes.as_ref())
            .read_to_end(&mut text)
            .unwrap();
        assert_eq!(text, vec![b'x'; 300_000]);
    }
}
