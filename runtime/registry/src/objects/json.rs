//! A document as JSON, with the positions of its metadata and its resourceVersion.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use apiloom_meta::codec::{Decoder, Encoder, Finder, value_end};
use apiloom_meta::schema::Schema;
use apiloom_meta::{ApiError, JsonPath, Object};

/// The member name of the metadata, as it is encoded.
pub(crate) const METADATA: &[u8] = b"\"metadata\":";

/// Position of the first occurrence. For short distances only; this search is not optimized.
fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// Start and end of the metadata of a document. In documents that begin with `kind` only `apiVersion` comes before it; the
/// fields of custom resources are sorted.
fn metadata(json: &[u8]) -> Option<(usize, usize)> {
    static FINDER: LazyLock<Finder> = LazyLock::new(|| Finder::new([JsonPath::new(["metadata"])]));
    if !json.starts_with(b"{\"kind\":") {
        let found = place(json, &FINDER)?;
        return Some((found.start, found.end));
    }
    let start = find(json, METADATA)? + METADATA.len();
    Some((start, value_end(json, start)?))
}

/// The range of the value that a finder of one path finds.
fn place(json: &[u8], finder: &Finder) -> Option<Range<usize>> {
    let found = finder.find(json).pop().flatten()?;
    let start = found.as_ptr() as usize - json.as_ptr() as usize;
    Some(start..start + found.len())
}

/// A document as JSON: `kind`, `apiVersion`, `metadata`, then the fields that its type declares; or, of a custom resource, all
/// fields sorted.
#[derive(Clone)]
pub struct Json<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    /// Start and end of the value of `metadata`; (0, 0) for a document without it.
    pub(crate) metadata: (usize, usize),
}

/// Without the document, which may be secret.
impl fmt::Debug for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Json")
            .field("bytes", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

impl<'a> Json<'a> {
    /// Encodes an object.
    pub fn of(object: &Object, schema: &Schema) -> Self {
        Self::new(Cow::Owned(Encoder::of(schema).object(object).into()))
    }

    /// A view of the JSON of an object, which is empty if it has none.
    pub fn new(bytes: Cow<'a, [u8]>) -> Self {
        let metadata = metadata(&bytes).unwrap_or_default();
        Self { bytes, metadata }
    }

    /// The whole document.
    #[inline]
    pub fn whole(&self) -> &[u8] {
        &self.bytes
    }

    /// The document as an item of a list, which has `kind` and `apiVersion` only once; without the opening brace.
    #[inline]
    pub fn item(&self) -> &[u8] {
        match self.metadata {
            // Without metadata it is not an object of a list.
            (0, _) => b"}",
            (start, _) => &self.bytes[start - METADATA.len()..],
        }
    }

    /// The value of `metadata`; `{}` for a document without it.
    #[inline]
    pub fn metadata(&self) -> &[u8] {
        match self.metadata {
            (0, _) => b"{}",
            (start, end) => &self.bytes[start..end],
        }
    }

    /// The JSON at the paths of a finder. The metadata, which may be most of the document, is read as far as needed.
    pub fn find(&self, finder: &Finder) -> Vec<Option<&[u8]>> {
        finder.find_beside(&self.bytes, self.metadata)
    }

    /// Range of the resourceVersion's digits, without the quotes.
    pub(crate) fn version_digits(&self) -> Option<Range<usize>> {
        static FINDER: LazyLock<Finder> =
            LazyLock::new(|| Finder::new([JsonPath::new(["resourceVersion"])]));
        // In the metadata of custom resources, which is sorted, labels and annotations come before it: one of them may have
        // its name.
        let is_sorted = [&b"{\"name"[..], b"{\"generateName"]
            .iter()
            .all(|first| !self.metadata().starts_with(first));
        if is_sorted {
            let place = place(self.metadata(), &FINDER)?;
            let (start, end) = (self.metadata.0 + place.start, self.metadata.0 + place.end);
            return Some(start + 1..end - 1);
        }
        // The fields before it contain no quotes that JSON does not escape.
        let mark = b"\"resourceVersion\":\"";
        let start = self.metadata.0 + find(self.metadata(), mark)? + mark.len();
        let digits = self.bytes[start..].iter();
        let len = digits.take_while(|byte| byte.is_ascii_digit()).count();
        Some(start..start + len)
    }

    /// The same document, with a copy of the bytes if they are borrowed.
    pub(crate) fn into_owned(self) -> Json<'static> {
        Json {
            bytes: Cow::Owned(self.bytes.into_owned()),
            metadata: self.metadata,
        }
    }

    /// Takes the bytes, with a copy if they are borrowed.
    pub fn into_whole(self) -> Vec<u8> {
        self.bytes.into_owned()
    }

    /// Decodes the document.
    pub(crate) fn object(&self) -> Result<Object, ApiError> {
        let value = Decoder::encoded(&self.bytes, self.metadata)
            .map_err(|error| ApiError::internal(error.to_string()))?;
        Object::from_value(value).ok_or_else(|| ApiError::internal("a cached object is no object"))
    }
}

impl Json<'static> {
    /// A document whose metadata has this start and end.
    pub(crate) fn with_metadata(bytes: Vec<u8>, metadata: (usize, usize)) -> Self {
        let bytes = Cow::Owned(bytes);
        Self { bytes, metadata }
    }
}
