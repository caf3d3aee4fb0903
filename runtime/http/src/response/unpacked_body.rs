//! The body of a document that is kept compressed: decompressed piece by piece as the client reads it, so that one that does not read
//! holds no more than a piece of a large document.

use std::io::{Cursor, Read as _};

use apiloom_client::transport::PiecesBody;
use bytes::Bytes;
use flate2::read::GzDecoder;
use http_body_util::BodyExt as _;

use super::{Body, CutOff};

/// Size of a piece, in bytes: about a tenth of a millisecond of work.
const PIECE: usize = 32 * 1024;

/// The document of `size` bytes that was compressed to `gzip`.
pub(crate) fn unpacked(gzip: Bytes, size: usize) -> Body {
    let mut packed = GzDecoder::new(Cursor::new(gzip));
    let sizes = (0..size).step_by(PIECE).map(move |at| PIECE.min(size - at));
    let pieces = sizes.map(move |bytes| {
        let mut piece = vec![0; bytes];
        let read = packed.read_exact(&mut piece);
        // The bytes were compressed here, so decompression cannot fail.
        read.map_or(Err(CutOff::Unfinished), |()| Ok(Bytes::from(piece)))
    });
    PiecesBody::new(size, pieces).boxed_unsync()
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
