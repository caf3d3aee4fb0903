//! A document as JSON, and where its metadata and its resourceVersion are.

use std::borrow::Cow;
use std::ops::Range;

use apiloom_meta::codec::{Format, decode_value, encode_object, value_end};
use apiloom_meta::schema::Schema;
use apiloom_meta::{ApiError, Object};

/// What stands before the metadata of a document.
pub(crate) const METADATA: &[u8] = b"\"metadata\":";

/// Near its beginning; for more there are faster ways.
fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// Where the metadata of a document begins and ends. Nothing but `kind` and `apiVersion` stands in front of it.
fn metadata(json: &[u8]) -> Option<(usize, usize)> {
    let start = find(json, METADATA)? + METADATA.len();
    Some((start, value_end(json, start)?))
}

/// A document as JSON: `kind`, `apiVersion`, `metadata`, then what its type declares.
#[derive(Clone, Debug)]
pub struct Json<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    /// Where the metadata begins and ends, without its name.
    pub(crate) metadata: (usize, usize),
}

impl<'a> Json<'a> {
    /// Encodes an object.
    pub fn of(object: &Object, schema: &Schema) -> Self {
        Self::new(Cow::Owned(encode_object(object, schema).into()))
    }

    pub(crate) fn new(bytes: Cow<'a, [u8]>) -> Self {
        let metadata = metadata(&bytes).unwrap_or_default();
        Self { bytes, metadata }
    }

    /// The whole document.
    pub fn whole(&self) -> &[u8] {
        &self.bytes
    }

    /// The document as an item of a list, which says once what its items are; without its opening bracket.
    pub fn item(&self) -> &[u8] {
        match self.metadata {
            // No metadata, so it is no object that a list could hold.
            (0, _) => b"}",
            (start, _) => &self.bytes[start - METADATA.len()..],
        }
    }

    /// The metadata.
    pub fn metadata(&self) -> &[u8] {
        match self.metadata {
            (0, _) => b"{}",
            (start, end) => &self.bytes[start..end],
        }
    }

    /// Where the resourceVersion is, without its quotes.
    pub(crate) fn version_digits(&self) -> Option<Range<usize>> {
        // The fields in front of it in the metadata hold no quotes that JSON would not escape.
        let mark = b"\"resourceVersion\":\"";
        let start = self.metadata.0 + find(self.metadata(), mark)? + mark.len();
        let digits = self.bytes[start..].iter();
        let len = digits.take_while(|byte| byte.is_ascii_digit()).count();
        Some(start..start + len)
    }

    /// Gives the bytes.
    pub fn into_whole(self) -> Vec<u8> {
        self.bytes.into_owned()
    }

    /// Decodes the document.
    pub(crate) fn object(&self) -> Result<Object, ApiError> {
        let value = decode_value(&self.bytes, Format::Json)
            .map_err(|error| ApiError::internal(error.to_string()))?;
        Object::from_value(value).ok_or_else(|| ApiError::internal("a cached object is no object"))
    }
}

impl Json<'static> {
    /// A document whose metadata begins and ends there, without its name.
    pub(crate) fn with_metadata(bytes: Vec<u8>, metadata: (usize, usize)) -> Self {
        let bytes = Cow::Owned(bytes);
        Self { bytes, metadata }
    }
}
