//! A body of pieces that are made when they are sent.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// A body of a known length, with its pieces. It ends with the first error, and never waits.
pub struct PiecesBody<I> {
    pieces: I,
    /// How many bytes follow.
    left: usize,
}

impl<I> PiecesBody<I> {
    /// Pieces of so many bytes together.
    pub fn new(bytes: usize, pieces: I) -> Self {
        Self {
            pieces,
            left: bytes,
        }
    }
}

impl<I, E> Body for PiecesBody<I>
where
    I: Iterator<Item = Result<Bytes, E>> + Unpin,
{
    type Data = Bytes;
    type Error = E;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let piece = self.pieces.next();
        self.left = match &piece {
            Some(Ok(piece)) => self.left.saturating_sub(piece.len()),
            Some(Err(_)) | None => 0,
        };
        Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}
