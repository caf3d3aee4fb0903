//! Documents that change only with the build, with their hash for conditional requests (`If-None-Match`).
//!
//! Equal content gives equal bytes and an equal ETag, across restarts and replicas; it must not depend on time.

use std::io::{self, Read, Write};

use aws_lc_rs::digest::{self, Digest, SHA512};
use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde::Serialize;

use super::compress::accepts_gzip;
use super::unpacked_body::unpacked;
use super::{Body, ok, ok_as, status};

/// A document with its hash.
#[derive(Clone, Debug)]
pub(crate) struct StaticDoc {
    bytes: Bytes,
    hash: String,
}

impl StaticDoc {
    /// Hashes a document.
    pub(crate) fn new(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let hash = sha512_hex(&bytes);
        Self { bytes, hash }
    }

    /// The document.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// SHA-512 of the bytes in upper-case hex.
    pub(crate) fn hash(&self) -> &str {
        &self.hash
    }
}

/// A document that is kept compressed, because it is large and rarely requested.
#[derive(Clone, Debug, PartialEq)]
pub struct PackedDoc {
    gzip: Bytes,
    /// Of the uncompressed bytes.
    size: usize,
    hash: String,
}

impl PackedDoc {
    /// Hashes and compresses a document.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let mut packer = Packer::new();
        packer.add(bytes);
        packer.finish()
    }

    /// Hashes and compresses the JSON of a value while it is written: the text of all schemas of a server is many times larger than what is
    /// kept of it.
    pub(crate) fn json(value: &impl Serialize) -> Self {
        let mut packer = Packer::new();
        // Neither the packer nor a value of JSON can fail.
        let _ = serde_json::to_writer(&mut packer, value);
        packer.finish()
    }

    /// SHA-512 of the uncompressed bytes in upper-case hex.
    pub(crate) fn hash(&self) -> &str {
        &self.hash
    }

    /// The bytes of the document when it is not compressed.
    pub fn size(&self) -> usize {
        self.size
    }

    /// A 200 response with the document: compressed if the client accepts gzip, else decompressed while it is read.
    pub(crate) fn answer(&self, headers: &HeaderMap, content_type: &'static str) -> Response<Body> {
        if accepts_gzip(headers) {
            let mut response = ok(content_type, self.gzip.clone());
            response
                .headers_mut()
                .insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            return response;
        }
        ok(content_type, Bytes::new()).map(|_| unpacked(self.gzip.clone(), self.size))
    }

    /// The document.
    pub(crate) fn unpacked(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // The bytes were compressed here, so decompression cannot fail.
        let _ = GzDecoder::new(&*self.gzip).read_to_end(&mut bytes);
        bytes
    }
}

/// A [`PackedDoc`] that is being written.
struct Packer {
    gzip: GzEncoder<Vec<u8>>,
    digest: digest::Context,
    size: usize,
}

impl Packer {
    fn new() -> Self {
        Self {
            gzip: GzEncoder::new(Vec::new(), Compression::default()),
            digest: digest::Context::new(&SHA512),
            size: 0,
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        // Writing to a vector cannot fail.
        let _ = self.gzip.write_all(bytes);
        self.digest.update(bytes);
        self.size += bytes.len();
    }

    fn finish(self) -> PackedDoc {
        PackedDoc {
            gzip: self.gzip.finish().unwrap_or_default().into(),
            size: self.size,
            hash: hex(&self.digest.finish()),
        }
    }
}

impl Write for Packer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// SHA-512 in upper-case hex, as for all hashes in discovery and OpenAPI.
pub(crate) fn sha512_hex(bytes: &[u8]) -> String {
    hex(&digest::digest(&SHA512, bytes))
}

fn hex(digest: &Digest) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let hex = |byte: &u8| {
        [
            DIGITS[usize::from(byte >> 4)] as char,
            DIGITS[usize::from(byte & 15)] as char,
        ]
    };
    digest.as_ref().iter().flat_map(hex).collect()
}

/// Whether the client's copy has this hash.
pub(crate) fn is_fresh(headers: &HeaderMap, hash: &str) -> bool {
    let known = |tag: &str| {
        let tag = tag.trim();
        tag == "*" || tag.strip_prefix("W/").unwrap_or(tag).trim_matches('"') == hash
    };
    headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|tags| tags.split(',').any(known))
}

/// A 200 response with a body, or a 304 without one if the client's copy has this `hash`.
pub(crate) fn conditional(
    headers: &HeaderMap,
    hash: &str,
    content_type: HeaderValue,
    cache: &'static str,
    body: impl FnOnce() -> Bytes,
) -> Response<Body> {
    let mut response = if is_fresh(headers, hash) {
        status(StatusCode::NOT_MODIFIED)
    } else {
        ok_as(content_type, body())
    };
    let out = response.headers_mut();
    out.insert(ETAG, quoted(hash));
    out.insert(VARY, HeaderValue::from_static("Accept"));
    out.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    response
}

/// A header value in double quotes. Hashes are hex, so the value is always valid.
pub(crate) fn quoted(hash: &str) -> HeaderValue {
    HeaderValue::try_from(format!("\"{hash}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

#[cfg(test)]
mod tests {
    use http::header::ACCEPT_ENCODING;

    use super::*;

    #[test]
    fn hash_is_upper_case_sha512() {
        let empty = sha512_hex(b"");
        assert!(
            empty.starts_with("CF83E1357EEFB8BDF1542850D66D8007D620E4050B5715DC83F4A921D36CE9CE")
                && empty.len() == 128,
            "{empty}"
        );
    }

    #[test]
    fn tags_are_compared_without_quotes_and_weakness() {
        let check = |header: &str, expected: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(IF_NONE_MATCH, header.parse().unwrap());
            assert_eq!(is_fresh(&headers, "AB"), expected, "{header}");
        };
        check("\"AB\"", true);
        check("AB", true);
        check("W/\"AB\"", true);
        check("\"CD\", \"AB\"", true);
        check("*", true);
        check("\"CD\"", false);
        assert!(!is_fresh(&HeaderMap::new(), "AB"));
    }

    #[test]
    fn a_packed_document_is_unpacked_for_who_takes_no_gzip() {
        let check = |encoding: &str, packed: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, encoding.parse().unwrap());
            let response = PackedDoc::new(b"{}").answer(&headers, "application/json");
            assert_eq!(
                response.headers().contains_key(CONTENT_ENCODING),
                packed,
                "{encoding}"
            );
            if !packed {
                assert_eq!(crate::testing::body(response), "{}");
            }
        };
        check("gzip", true);
        check("br, GZIP;q=0.5", true);
        check("gzip;q=0", false);
        check("identity", false);
    }
}
