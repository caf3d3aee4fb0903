//! The body of requests and responses.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full};

use super::error::{BoxError, TransportError};

/// The bytes of a request or of a response, of any origin. Its errors are [`TransportError`]s.
pub struct Body(UnsyncBoxBody<Bytes, TransportError>);

impl Body {
    /// A body without bytes.
    pub fn empty() -> Self {
        Self::new(Empty::new())
    }

    /// A body of any type.
    pub fn new<B>(body: B) -> Self
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let body = body.map_err(|error| TransportError::from_boxed(error.into()));
        Self(body.boxed_unsync())
    }

    /// All bytes, at most `limit`. Bytes that arrived in one piece are not copied.
    ///
    /// # Errors
    /// If the body breaks off, or is longer.
    pub async fn collect(mut self, limit: usize) -> Result<Bytes, CollectError> {
        let announced = self.size_hint().lower();
        if announced > limit as u64 {
            return Err(CollectError::TooLong(limit));
        }
        let mut pieces = Pieces::None;
        let mut length = 0;
        while let Some(frame) = self.frame().await {
            // Frames without bytes never reach the limit: the deadline of the caller must.
            tokio::task::coop::consume_budget().await;
            let Ok(data) = frame.map_err(CollectError::Transport)?.into_data() else {
                continue;
            };
            length += data.len();
            if length > limit {
                return Err(CollectError::TooLong(limit));
            }
            pieces = match pieces {
                Pieces::None => Pieces::One(data),
                Pieces::One(first) => {
                    // The server chooses the announced length: not all memory for it is reserved before it is needed.
                    let expected = (announced as usize).min(MAX_RESERVED).max(length);
                    let mut all = BytesMut::with_capacity(expected);
                    all.extend_from_slice(&first);
                    all.extend_from_slice(&data);
                    Pieces::Many(all)
                }
                Pieces::Many(mut all) => {
                    all.extend_from_slice(&data);
                    Pieces::Many(all)
                }
            };
        }
        Ok(match pieces {
            Pieces::None => Bytes::new(),
            Pieces::One(only) => only,
            Pieces::Many(all) => all.freeze(),
        })
    }
}

/// The parts of a body that have arrived.
enum Pieces {
    None,
    One(Bytes),
    Many(BytesMut),
}

/// Most bytes that are reserved before they have arrived.
const MAX_RESERVED: usize = 16 * 1024 * 1024;

/// A body that was not collected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CollectError {
    /// It has more than this number of bytes.
    #[error("the body is longer than {0} bytes")]
    TooLong(usize),
    /// It broke off.
    #[error("{0}")]
    Transport(#[source] TransportError),
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::new(Full::new(bytes))
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        Pin::new(&mut self.0).poll_frame(cx)
    }
    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }
    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body")
            .field("size", &self.size_hint().exact())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http_body_util::StreamBody;

    use super::*;

    fn body_of(pieces: &'static [&'static str]) -> Body {
        let frames = pieces.iter().map(|piece| {
            let data = Bytes::from_static(piece.as_bytes());
            Ok::<_, TransportError>(Frame::data(data))
        });
        Body::new(StreamBody::new(stream::iter(frames)))
    }

    #[tokio::test]
    async fn pieces_are_joined_up_to_the_limit() {
        assert_eq!(Body::empty().collect(0).await.unwrap(), "");
        let pieces = &["ab", "", "c", "def"];
        assert_eq!(body_of(pieces).collect(6).await.unwrap(), "abcdef");
        let error = body_of(pieces).collect(5).await.unwrap_err();
        assert_eq!(error.to_string(), "the body is longer than 5 bytes");
    }

    #[tokio::test]
    async fn endless_empty_pieces_end_at_the_deadline_of_the_reader() {
        let frames = std::iter::repeat_with(|| Ok::<_, TransportError>(Frame::data(Bytes::new())));
        let body = Body::new(StreamBody::new(stream::iter(frames)));
        let deadline = std::time::Duration::from_millis(20);
        let collected = tokio::time::timeout(deadline, body.collect(1)).await;
        assert!(collected.is_err());
    }

    #[tokio::test]
    async fn an_announced_length_over_the_limit_is_refused_unread() {
        let error = Body::from(Bytes::from_static(b"abc")).collect(2).await;
        assert!(error.is_err());
    }
}
