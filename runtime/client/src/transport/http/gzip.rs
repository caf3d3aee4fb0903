//! Compressed responses. Decoded as they arrive, so that limits apply to what they contain.

use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use http::{HeaderMap, HeaderValue, Response, header};
use http_body::{Body as HttpBody, Frame};
use tokio::task::coop;

use crate::transport::{Body, TransportError};

/// Asks for a compressed response unless the request says which encodings it accepts. Whether it was asked for.
pub(super) fn ask(headers: &mut HeaderMap) -> bool {
    if headers.contains_key(header::ACCEPT_ENCODING) {
        return false;
    }
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    true
}

/// The response as if it had not been compressed.
pub(super) fn decoded(response: Response<Body>, was_asked_for: bool) -> Response<Body> {
    let encoding = response.headers().get(header::CONTENT_ENCODING);
    if !was_asked_for || encoding.is_none_or(|encoding| encoding != "gzip") {
        return response;
    }
    let mut response = response.map(|body| {
        Body::new(DecodedBody {
            body,
            decoder: MultiGzDecoder::new(Vec::new()),
            pending: Bytes::new(),
            without_content: 0,
            is_begun: false,
            is_ended: false,
        })
    });
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_ENCODING);
    headers.remove(header::CONTENT_LENGTH);
    response
}

/// Most compressed bytes that are decoded in one step. They can be a thousand times as many afterwards, and limits of the
/// reader apply between steps.
const STEP: usize = 4 * 1024;

/// Most compressed bytes in a row without any content. Limits of the reader never see empty members and long headers.
const MAX_WITHOUT_CONTENT: usize = 64 * 1024;

/// A body of compressed bytes that is decoded while it is read.
struct DecodedBody {
    body: Body,
    decoder: MultiGzDecoder<Vec<u8>>,
    /// What has arrived and is not decoded yet.
    pending: Bytes,
    /// Compressed bytes since the last content.
    without_content: usize,
    /// Whether there was any byte.
    is_begun: bool,
    is_ended: bool,
}

impl DecodedBody {
    fn decode(&mut self) -> Result<Bytes, TransportError> {
        self.is_begun = true;
        let step = self.pending.split_to(self.pending.len().min(STEP));
        let written = self.decoder.write_all(&step);
        written.map_err(|error| broken(&error))?;
        let content = std::mem::take(self.decoder.get_mut());
        self.without_content = if content.is_empty() {
            self.without_content + step.len()
        } else {
            0
        };
        if self.without_content > MAX_WITHOUT_CONTENT {
            return Err(TransportError::new(format!(
                "the compressed response has {} bytes without content",
                self.without_content
            )));
        }
        Ok(content.into())
    }

    /// The rest, after the last byte: an error if the text is not complete.
    fn end(&mut self) -> Result<Bytes, TransportError> {
        self.is_ended = true;
        // An empty body has this encoding too, as that of a HEAD.
        if !self.is_begun {
            return Ok(Bytes::new());
        }
        self.decoder.try_finish().map_err(|error| broken(&error))?;
        Ok(std::mem::take(self.decoder.get_mut()).into())
    }
}

fn broken(error: &std::io::Error) -> TransportError {
    TransportError::new(format!("the compressed response is damaged: {error}"))
}

impl HttpBody for DecodedBody {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        loop {
            if self.is_ended {
                return Poll::Ready(None);
            }
            // A server that is faster than the decoder must not keep the thread, nor the reader from its deadline.
            ready!(coop::poll_proceed(cx)).made_progress();
            let bytes = if self.pending.is_empty() {
                match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                    Some(Ok(frame)) => {
                        self.pending = frame.into_data().unwrap_or_default();
                        continue;
                    }
                    Some(Err(error)) => Err(error),
                    None => self.end(),
                }
            } else {
                self.decode()
            };
            match bytes {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Err(error) => {
                    self.is_ended = true;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn response(body: Vec<u8>) -> Response<Body> {
        let response = Response::builder().header("content-encoding", "gzip");
        decoded(response.body(Body::from(Bytes::from(body))).unwrap(), true)
    }

    #[tokio::test]
    async fn members_are_decoded_one_after_the_other() {
        let text = [gzip(b"one "), gzip(b"two")].concat();
        let response = response(text);
        assert!(!response.headers().contains_key("content-encoding"));
        assert_eq!(response.into_body().collect(100).await.unwrap(), "one two");
    }

    #[tokio::test]
    async fn a_damaged_or_short_text_is_an_error() {
        let text = gzip(b"one two three");
        for end in 1..text.len() {
            let cut = response(text[..end].to_vec()).into_body();
            assert!(cut.collect(100).await.is_err(), "cut at {end}");
        }
    }

    #[tokio::test]
    async fn endless_members_without_content_are_an_error() {
        let member = Bytes::from(gzip(b""));
        let frames =
            std::iter::repeat_with(move || Ok::<_, TransportError>(Frame::data(member.clone())));
        let body = http_body_util::StreamBody::new(futures_util::stream::iter(frames));
        let response = Response::builder().header("content-encoding", "gzip");
        let response = decoded(response.body(Body::new(body)).unwrap(), true);
        let error = response.into_body().collect(100).await.unwrap_err();
        assert!(error.to_string().contains("without content"), "{error}");
    }

    #[tokio::test]
    async fn a_bomb_stops_at_the_limit() {
        let bomb = gzip(&vec![0; 64 << 20]);
        let error = response(bomb).into_body().collect(1 << 20).await;
        assert!(error.unwrap_err().to_string().contains("longer than"));
    }

    #[test]
    fn what_was_not_asked_for_is_not_decoded() {
        let mut headers = HeaderMap::new();
        headers.insert(
            header::ACCEPT_ENCODING,
            HeaderValue::from_static("identity"),
        );
        assert!(!ask(&mut headers));
        let response = Response::builder().header("content-encoding", "gzip");
        let response = decoded(response.body(Body::empty()).unwrap(), false);
        assert!(response.headers().contains_key("content-encoding"));
    }
}
