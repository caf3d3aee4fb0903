//! Compresses long responses with gzip for clients that accept it. Watches are never compressed: an event must not
//! wait in a buffer.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, VARY};
use http::{HeaderMap, HeaderValue, Response};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt, StreamBody};

use super::turns::take_turn;
use super::{Body, CutOff, IsWatch};

/// Maximum size of a response that is not compressed, since compression would cost more than it saves.
pub(crate) const THRESHOLD_BYTES: usize = 128 * 1024;

/// Compresses a response if the client accepts it and it is long. A response of unknown length is treated as long.
pub(crate) fn compress(request: &HeaderMap, response: Response<Body>) -> Response<Body> {
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
    let frames = futures_util::stream::unfold(Some(GzipBody::new(body)), async |rest| {
        Some(rest?.next().await)
    });
    Response::from_parts(parts, StreamBody::new(frames).boxed_unsync())
}

/// Whether `Accept-Encoding` contains gzip without refusing it.
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

/// Number of bytes compressed in a turn, in about half a millisecond.
const TURN_BYTES: usize = 64 * 1024;

/// A body that is being compressed.
struct GzipBody {
    body: Body,
    encoder: GzEncoder<Vec<u8>>,
    /// Bytes that are not compressed yet.
    input: Bytes,
}

impl GzipBody {
    fn new(body: Body) -> Self {
        Self {
            body,
            // Level 1 gives most of the compression in a fraction of the time.
            encoder: GzEncoder::new(Vec::new(), Compression::fast()),
            input: Bytes::new(),
        }
    }

    /// The next output, with the remaining work unless it is the last.
    async fn next(mut self) -> (Result<Frame<Bytes>, CutOff>, Option<Self>) {
        const IN_MEMORY: &str = "writing to memory cannot fail";
        loop {
            if self.input.is_empty() {
                match self.body.frame().await {
                    Some(Ok(frame)) => self.input = frame.into_data().unwrap_or_default(),
                    Some(Err(cut_off)) => return (Err(cut_off), None),
                    None => {
                        let rest = self.encoder.finish().expect(IN_MEMORY);
                        return (Ok(Frame::data(rest.into())), None);
                    }
                }
            }
            let turn = take_turn().await;
            let input = self.input.split_to(self.input.len().min(TURN_BYTES));
            self.encoder.write_all(&input).expect(IN_MEMORY);
            drop(turn);
            // Repetitive text gives no output for many turns.
            let out = std::mem::take(self.encoder.get_mut());
            if !out.is_empty() {
                return (Ok(Frame::data(out.into())), Some(self));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::pin::Pin;
    use std::task::{Poll, ready};

    use super::*;
    use crate::response::full;
    use crate::testing;

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
        let is_watch = IsWatch { has_lines: true };
        response.extensions_mut().insert(is_watch);
        let request = testing::get("/x", &[("accept-encoding", "gzip")]);
        assert!(
            !compress(&request.headers, response)
                .headers()
                .contains_key("content-encoding")
        );
    }

    // Text that is hard to compress gives output in every turn.
    #[tokio::test]
    async fn compressing_lets_other_tasks_have_their_turn() {
        let mut seed = 1_u32;
        let mut noise = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 24) as u8
        };
        for text in [
            vec![b'x'; 20 * TURN_BYTES],
            (0..20 * TURN_BYTES).map(|_| noise()).collect(),
        ] {
            let request = testing::get("/x", &[("accept-encoding", "gzip")]);
            let whole = Response::new(full(Bytes::from(text)));
            let mut body = compress(&request.headers, whole).into_body();
            let mut polls = 0;
            std::future::poll_fn(|cx| {
                polls += 1;
                while ready!(Pin::new(&mut body).poll_frame(cx)).is_some() {}
                Poll::Ready(())
            })
            .await;
            assert!(polls > 20, "{polls}");
        }
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
