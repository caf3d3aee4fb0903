//! Objects on their way out: as the bytes that a client reads, when nobody has to look inside, or decoded.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use apiloom_meta::codec::{Finder, Format, decode_value, encode_object, value_end};
use apiloom_meta::schema::Schema;
use apiloom_meta::{ApiError, JsonPath, Object};
use apiloom_storage::Revision;
use apiloom_storage::cache::{INDEX_GROUP, Item, Normalize};
use bytes::Bytes;

use super::kind::{Kind, KindVersion, VersionIndex};
use super::prepared::Prepared;
use super::selection::field_text;

/// What stands before the metadata of a document.
pub(super) const METADATA: &[u8] = b"\"metadata\":";

/// What the watch cache keeps of an object: the JSON in which its storage version is served, and what selectors ask.
#[derive(Debug)]
pub(super) struct CachedObject {
    /// The whole document, `kind` and `apiVersion` first.
    json: Box<[u8]>,
    /// Where the metadata begins and ends, without its name.
    metadata: (u32, u32),
    /// Where the resourceVersion is, without its quotes.
    version: (u32, u32),
    /// The versions, as bits, into which the object was converted before: nothing is in the way of doing it again.
    convertible: AtomicU32,
    labels: Box<[(Box<str>, Box<str>)]>,
    /// The values of the kind's selectable fields, in the order of their declaration.
    fields: Box<[Box<str>]>,
}

impl CachedObject {
    /// An object whose JSON has its resourceVersion, which is a number.
    ///
    /// # Errors
    /// For JSON without metadata or resourceVersion.
    pub(super) fn new(document: &Json<'_>, version: &KindVersion) -> Result<Self, String> {
        let (json, metadata) = (document.whole(), document.metadata);
        if metadata == (0, 0) {
            return Err("it has no metadata".to_owned());
        }
        let digits = document
            .version_digits()
            .ok_or("it has no resourceVersion")?;
        let fields = version.selectable.find(json).into_iter();
        Ok(CachedObject {
            metadata: (offset(metadata.0)?, offset(metadata.1)?),
            version: (offset(digits.start)?, offset(digits.end)?),
            convertible: AtomicU32::new(0),
            labels: labels(&json[metadata.0..metadata.1]),
            fields: fields.map(field_text).collect(),
            // A buffer of just its size: it is kept for long.
            json: json.into(),
        })
    }

    /// The labels, sorted.
    pub(super) fn labels(&self) -> &[(Box<str>, Box<str>)] {
        &self.labels
    }

    pub(super) fn label(&self, key: &str) -> Option<&str> {
        let at = self
            .labels
            .binary_search_by(|(name, _)| name.as_ref().cmp(key));
        at.ok().map(|at| self.labels[at].1.as_ref())
    }

    /// The values of all selectable fields, in the order of their declaration.
    pub(super) fn fields(&self) -> &[Box<str>] {
        &self.fields
    }

    /// How many bytes it keeps alive beside its own size.
    fn heap_bytes(&self) -> usize {
        let json = self.json.len() + ALLOCATION;
        let text = |text: &str| text.len() + ALLOCATION;
        let labels = self.labels.iter();
        let labels = labels.map(|(key, value)| text(key) + text(value));
        let fields = self.fields.iter().map(|value| text(value));
        let slices = size_of_val(&*self.labels) + size_of_val(&*self.fields);
        json + labels.sum::<usize>() + fields.sum::<usize>() + slices + 2 * ALLOCATION
    }

    /// The document.
    pub(super) fn json(&self) -> Json<'_> {
        let (start, end) = self.metadata;
        Json {
            bytes: Cow::Borrowed(&self.json),
            metadata: (start as usize, end as usize),
        }
    }

    /// Whether the object was converted into a version before.
    pub(super) fn is_convertible(&self, version: VersionIndex) -> bool {
        bit(version).is_some_and(|bit| self.convertible.load(Ordering::Relaxed) & bit != 0)
    }

    /// Remembers that it was.
    pub(super) fn set_convertible(&self, version: VersionIndex) {
        if let Some(bit) = bit(version) {
            self.convertible.fetch_or(bit, Ordering::Relaxed);
        }
    }
}

/// The bit of a version; kinds of more versions than there are bits are tried each time.
fn bit(version: VersionIndex) -> Option<u32> {
    u32::try_from(version)
        .ok()
        .and_then(|version| 1u32.checked_shl(version))
}

/// The labels in a document's metadata, sorted.
fn labels(metadata: &[u8]) -> Box<[(Box<str>, Box<str>)]> {
    static LABELS: LazyLock<Finder> = LazyLock::new(|| Finder::new([JsonPath::new(["labels"])]));
    let Some(labels) = LABELS.find(metadata).pop().flatten() else {
        return Box::default();
    };
    let labels = decode_value(labels, Format::Json).unwrap_or_default();
    let labels = labels.as_object().into_iter().flatten();
    // A map of serde_json is sorted by its keys.
    labels
        .filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())))
        .collect()
}

/// What an allocation costs beside what is in it.
const ALLOCATION: usize = 16;

/// A kind, as its watch cache sees it.
pub(super) struct Served(pub(super) Arc<Kind>);

impl Normalize for Served {
    type Object = CachedObject;

    fn normalize(
        &self,
        key: &str,
        stored: &Bytes,
        revision: Revision,
    ) -> Result<CachedObject, String> {
        let kind = &self.0;
        let version = &kind.versions[kind.storage_version];
        if let Some(written) = kind.handed.take(key, stored) {
            return CachedObject::new(&written.served(revision), version);
        }
        if let Some(known) = Prepared::recognize(stored, kind) {
            return CachedObject::new(&known.served(revision), version);
        }
        let object = kind
            .read(key, stored, revision, kind.storage_version)
            .map_err(|error| error.message)?;
        CachedObject::new(&Json::of(&object, &version.schema), version)
    }

    fn wire_bytes(&self, object: &CachedObject) -> usize {
        object.json.len()
    }

    fn heap_bytes(&self, object: &CachedObject) -> usize {
        object.heap_bytes()
    }

    fn index(&self, object: &CachedObject, found: &mut dyn FnMut(u16, &str)) {
        for (number, value) in (0..INDEX_GROUP).zip(&object.fields) {
            found(number, value);
        }
    }

    fn derive_index(
        &self,
        item: &Arc<Item<CachedObject>>,
        group: u16,
        found: &mut dyn FnMut(u16, &str),
    ) -> bool {
        let kind = &self.0;
        let version = (0..kind.versions.len())
            .find(|version| kind.first_index(*version) == group.checked_mul(INDEX_GROUP));
        // Watchers that are woken find what was converted here.
        let converted = version.and_then(|version| kind.converted(item, version).ok());
        let Some(Ok(object)) = converted.as_deref().map(|item| &item.object) else {
            return false;
        };
        for (number, value) in (0..INDEX_GROUP).zip(&object.fields) {
            found(group * INDEX_GROUP + number, value);
        }
        true
    }
}

fn offset(at: usize) -> Result<u32, String> {
    u32::try_from(at).map_err(|_| "it is too large".to_owned())
}

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
    bytes: Cow<'a, [u8]>,
    /// Where the metadata begins and ends, without its name.
    metadata: (usize, usize),
}

impl<'a> Json<'a> {
    /// Encodes an object.
    pub fn of(object: &Object, schema: &Schema) -> Self {
        Self::new(Cow::Owned(encode_object(object, schema).into()))
    }

    pub(super) fn new(bytes: Cow<'a, [u8]>) -> Self {
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
    pub(super) fn version_digits(&self) -> Option<Range<usize>> {
        // Whatever stands in front of it in the metadata holds no quotes that JSON would not escape.
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
    pub(super) fn object(&self) -> Result<Object, ApiError> {
        let value = decode_value(&self.bytes, Format::Json)
            .map_err(|error| ApiError::internal(error.to_string()))?;
        Object::from_value(value).ok_or_else(|| ApiError::internal("a cached object is no object"))
    }
}

impl Json<'static> {
    /// A document whose metadata begins and ends there, without its name.
    pub(super) fn with_metadata(bytes: Vec<u8>, metadata: (usize, usize)) -> Self {
        let bytes = Cow::Owned(bytes);
        Self { bytes, metadata }
    }
}

/// An object to send.
#[derive(Clone, Debug)]
pub enum Document {
    /// As it lies in the cache; it is in the version that is asked for.
    Encoded(Encoded),
    /// Encoded for this answer: what lies in the cache in another version, and what was read from the store for a list.
    Converted(Json<'static>),
    /// Decoded.
    Decoded(Arc<Object>),
}

impl From<Object> for Document {
    fn from(object: Object) -> Self {
        Self::Decoded(Arc::new(object))
    }
}

/// An object as the cache holds it.
#[derive(Clone, Debug)]
pub struct Encoded {
    item: Arc<Item<CachedObject>>,
    /// The resourceVersion to show in place of its own: the previous state of a deleted object shows the deletion's.
    shown: Option<Revision>,
}

impl Encoded {
    /// The revision that wrote it.
    pub(super) fn revision(&self) -> Revision {
        self.item.revision
    }

    /// An object of the cache.
    ///
    /// # Errors
    /// As [`object`].
    pub(super) fn new(
        item: &Arc<Item<CachedObject>>,
        shown: Option<Revision>,
    ) -> Result<Self, ApiError> {
        object(item)?;
        Ok(Self {
            item: Arc::clone(item),
            shown: shown.filter(|shown| *shown != item.revision),
        })
    }

    /// What names this document among all others.
    pub(crate) fn id(&self) -> (StateId, Option<Revision>) {
        (StateId::of(&self.item), self.shown)
    }

    /// Whether it is the document that has this name.
    pub(crate) fn has_id(&self, (state, shown): &(StateId, Option<Revision>)) -> bool {
        state.is_of(&self.item) && *shown == self.shown
    }

    /// A document that cannot be read.
    #[cfg(test)]
    pub(crate) fn unreadable(revision: Revision) -> Self {
        let item = Item {
            key: "/a".into(),
            revision,
            object: Err("it is made for a test".to_owned()),
        };
        Self {
            item: Arc::new(item),
            shown: None,
        }
    }

    /// How long the document is, or a byte or two off when it shows another revision than its own.
    pub(crate) fn len(&self) -> usize {
        let object = self.item.object.as_ref();
        object.map_or(0, |object| object.json.len())
    }

    /// The document.
    pub fn json(&self) -> Json<'_> {
        let Ok(object) = &self.item.object else {
            // `new` refuses it.
            return Json::new(Cow::Borrowed(b"{}"));
        };
        let Some(shown) = self.shown else {
            return object.json();
        };
        let (start, end) = (object.version.0 as usize, object.version.1 as usize);
        let shown = shown.to_string();
        let bytes = [&object.json[..start], shown.as_bytes(), &object.json[end..]].concat();
        Json::new(Cow::Owned(bytes))
    }

    /// The whole document without a copy, when it is shown as it is.
    pub fn shared(&self) -> Bytes {
        match self.shown {
            None => Bytes::from_owner(Shared(Arc::clone(&self.item))),
            Some(_) => self.json().into_whole().into(),
        }
    }
}

/// Names one state of one object of a cache. Revisions do not: the writes of one transaction share one, and a store that
/// was restored gives them again. It keeps nothing of the object alive, only its place in memory, so that no other state
/// comes to have the same name.
#[derive(Debug)]
pub(crate) struct StateId(Weak<Item<CachedObject>>);

impl StateId {
    pub(super) fn of(item: &Arc<Item<CachedObject>>) -> Self {
        Self(Arc::downgrade(item))
    }

    pub(super) fn is_of(&self, item: &Arc<Item<CachedObject>>) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(item))
    }

    /// Whether the state is still held by the cache or a reader.
    pub(super) fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }
}

/// How many bytes an item keeps alive.
pub(super) fn item_bytes(item: &Item<CachedObject>) -> usize {
    let object = item.object.as_ref();
    size_of::<Item<CachedObject>>() + object.map_or(0, CachedObject::heap_bytes)
}

/// An object of the cache that bytes on their way to a client keep alive.
struct Shared(Arc<Item<CachedObject>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        self.0.object.as_ref().map_or(b"{}", |object| &object.json)
    }
}

/// The object of an item.
///
/// # Errors
/// InternalError, naming the key, when the stored bytes are no object.
pub(super) fn object(item: &Item<CachedObject>) -> Result<&CachedObject, ApiError> {
    item.object
        .as_ref()
        .map_err(|text| ApiError::internal(text.clone()))
}

impl Document {
    /// The document as JSON; `schema` is its version's.
    pub fn json(&self, schema: &Schema) -> Json<'_> {
        match self {
            Document::Encoded(encoded) => encoded.json(),
            Document::Converted(json) => Json {
                bytes: Cow::Borrowed(&json.bytes),
                metadata: json.metadata,
            },
            Document::Decoded(object) => Json::of(object, schema),
        }
    }

    /// The object, decoded if it was not.
    ///
    /// # Errors
    /// InternalError; what the cache holds was JSON when it was put there.
    pub fn object(&self) -> Result<Arc<Object>, ApiError> {
        match self {
            Document::Decoded(object) => Ok(Arc::clone(object)),
            Document::Encoded(encoded) => encoded.json().object().map(Arc::new),
            Document::Converted(json) => json.object().map(Arc::new),
        }
    }
}
