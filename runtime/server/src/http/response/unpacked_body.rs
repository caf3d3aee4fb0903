//! The body of a document that is kept compressed: decompressed piece by piece as the client reads it, so that one that does not read
//! holds no more than a piece of a large document.

use std::io::{Cursor, Read as _};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use flate2::read::GzDecoder;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;

use super::{Body, CutOff};

/// Size of a piece, in bytes: about a tenth of a millisecond of work.
const PIECE: usize = 32 * 1024;

struct UnpackedBody {
    packed: GzDecoder<Cursor<Bytes>>,
    /// How many bytes of the document follow.
    left: usize,
}

/// The document of `size` bytes that was compressed to `gzip`.
pub(in crate::http) fn unpacked(gzip: Bytes, size: usize) -> Body {
    let packed = GzDecoder::new(Cursor::new(gzip));
    let body = UnpackedBody { packed, left: size };
    body.boxed_unsync()
}

impl http_body::Body for UnpackedBody {
    type Data = Bytes;
    type Error = CutOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let mut piece = vec![0; self.left.min(PIECE)];
        // The bytes were compressed here, so decompression cannot fail.
        if self.packed.read_exact(&mut piece).is_err() {
            self.left = 0;
            return Poll::Ready(Some(Err(CutOff::Unfinished)));
        }
        self.left -= piece.len();
        Poll::Ready(Some(Ok(Frame::data(piece.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::super::static_doc::PackedDoc;
    use super::*;

    fn of(document: &[u8]) -> Body {
        let doc = PackedDoc::new(document);
        doc.answer(&http::HeaderMap::new(), "application/json")
            .into_body()
    }

    #[test]
    fn a_document_comes_whole_and_in_pieces() {
        for size in [0, 1, PIECE, PIECE + 1, 10 * PIECE] {
            let document: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
            let mut body = of(&document);
            assert_eq!(http_body::Body::size_hint(&body).exact(), Some(size as u64));
            let mut found = Vec::new();
            while let Some(frame) = body.frame().now_or_never().unwrap() {
                let piece = frame.unwrap().into_data().unwrap();
                assert!(piece.len() <= PIECE);
                found.extend_from_slice(&piece);
            }
            assert_eq!(found, document, "{size}");
        }
    }
}
