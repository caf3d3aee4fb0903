//! An object in the watch cache, and ids for its states.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use apiloom_meta::codec::{Decoder, Finder, Format};
use apiloom_meta::selector::Labels;
use apiloom_meta::{ApiError, JsonPath};
use apiloom_storage::cache::{Item, Snapshot};

use super::json::Json;
use super::kind_version::{KindVersion, VersionIndex};
use super::listed::TypedObject;

/// A snapshot of the objects of a kind.
pub(crate) type State = Arc<Snapshot<CachedObject>>;

/// An object in the watch cache: its served JSON in the version that it has there, and the values that selectors compare.
pub struct CachedObject {
    /// The whole document, `kind` and `apiVersion` first.
    pub(crate) json: Box<[u8]>,
    /// Start and end of the value of `metadata`.
    metadata: (u32, u32),
    /// Start and end of the resourceVersion's digits.
    pub(crate) version: (u32, u32),
    /// Bitmap of the versions to which the object was converted before, so that the conversion is known to succeed.
    convertible: AtomicU32,
    /// Size of the object in lists of a format that begins them with the size of all items; 0 if it is not known yet.
    item_bytes: AtomicU32,
    /// Index of the version of `json`: the storage version or, for kinds without a hub, the version in which the object was
    /// written.
    version_index: u16,
    /// Whether the stored bytes are known to be those that a write of this object would store, and are not encrypted.
    pub(crate) is_in_stored_form: bool,
    labels: Box<[(Box<str>, Box<str>)]>,
    /// Values of the kind's selectable fields, in the order of their declaration.
    fields: Box<[Box<str>]>,
    /// As each of the types that listers read; empty for kinds without listers.
    typed: Box<[Option<TypedObject>]>,
}

/// Without the document, which may be secret.
impl fmt::Debug for CachedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedObject")
            .field("bytes", &self.json.len())
            .finish_non_exhaustive()
    }
}

impl CachedObject {
    /// Indexes a document that contains its resourceVersion.
    ///
    /// # Errors
    /// If the document has no metadata, no resourceVersion, or exceeds the range of the offsets.
    pub(crate) fn new(document: &Json<'_>, version: &KindVersion) -> Result<Self, String> {
        let (json, metadata) = (document.whole(), document.metadata);
        if metadata == (0, 0) {
            return Err("it has no metadata".to_owned());
        }
        let digits = document
            .version_digits()
            .ok_or("it has no resourceVersion")?;
        let version_index = u16::try_from(version.index).map_err(|_| "it has too many versions")?;
        Ok(CachedObject {
            metadata: (offset(metadata.0)?, offset(metadata.1)?),
            version: (offset(digits.start)?, offset(digits.end)?),
            convertible: AtomicU32::new(0),
            item_bytes: AtomicU32::new(0),
            version_index,
            is_in_stored_form: false,
            labels: labels(&json[metadata.0..metadata.1]),
            fields: version.selectable.find(document),
            typed: Box::default(),
            // Copied to a buffer without spare capacity, since it is kept for long.
            json: json.into(),
        })
    }

    /// The labels, sorted by key.
    pub(crate) fn labels(&self) -> &[(Box<str>, Box<str>)] {
        &self.labels
    }

    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        let at = self
            .labels
            .binary_search_by(|(name, _)| name.as_ref().cmp(key));
        at.ok().map(|at| self.labels[at].1.as_ref())
    }

    /// Values of all selectable fields, in the order of their declaration.
    pub(crate) fn fields(&self) -> &[Box<str>] {
        &self.fields
    }

    /// Size on the heap, in bytes, with the overhead of allocations.
    pub(crate) fn heap_bytes(&self) -> usize {
        let json = self.json.len() + ALLOCATION;
        let text = |text: &str| text.len() + ALLOCATION;
        let labels = self.labels.iter();
        let labels = labels.map(|(key, value)| text(key) + text(value));
        let fields = self.fields.iter().map(|value| text(value));
        let typed = self.typed.iter().flatten();
        let typed = typed.map(|typed| self.typed_bytes(typed));
        let slices =
            size_of_val(&*self.labels) + size_of_val(&*self.fields) + size_of_val(&*self.typed);
        let parts = json + labels.sum::<usize>() + fields.sum::<usize>() + typed.sum::<usize>();
        parts + slices + 2 * ALLOCATION
    }

    /// Size of the object as an item of a list, which `measure` finds once. Only one format has such sizes.
    pub(crate) fn item_bytes(&self, measure: impl FnOnce() -> Option<u64>) -> Option<u64> {
        let known = self.item_bytes.load(Ordering::Relaxed);
        if known > 0 {
            return Some(known.into());
        }
        let bytes = measure()?;
        // A larger one is measured again.
        let known = u32::try_from(bytes).unwrap_or(0);
        self.item_bytes.store(known, Ordering::Relaxed);
        Some(bytes)
    }

    /// Adds what listers read.
    pub(crate) fn set_typed(&mut self, typed: Box<[Option<TypedObject>]>) {
        self.typed = typed;
    }

    /// The object as a type that listers read, by the position of the type.
    pub(crate) fn typed(&self, view: usize) -> Option<&TypedObject> {
        self.typed.get(view)?.as_ref()
    }

    /// How many bytes a typed value keeps alive: itself, and about as much as its JSON.
    fn typed_bytes(&self, typed: &TypedObject) -> usize {
        size_of_val(&**typed) + self.json.len() + ALLOCATION
    }

    /// The document.
    pub(crate) fn json(&self) -> Json<'_> {
        let (start, end) = self.metadata;
        Json {
            bytes: Cow::Borrowed(&self.json),
            metadata: (start as usize, end as usize),
        }
    }

    /// Index of the version that the document is in.
    pub(crate) fn version_index(&self) -> VersionIndex {
        usize::from(self.version_index)
    }

    /// Whether the object was converted to a version before.
    pub(crate) fn is_convertible(&self, version: VersionIndex) -> bool {
        bit(version).is_some_and(|bit| self.convertible.load(Ordering::Relaxed) & bit != 0)
    }

    /// Records that the object was converted to a version.
    pub(crate) fn set_convertible(&self, version: VersionIndex) {
        if let Some(bit) = bit(version) {
            self.convertible.fetch_or(bit, Ordering::Relaxed);
        }
    }
}

/// The bit of a version; none for versions above 31, which are converted again for each check.
fn bit(version: VersionIndex) -> Option<u32> {
    u32::try_from(version)
        .ok()
        .and_then(|version| 1u32.checked_shl(version))
}

/// The labels in the metadata of a document, sorted by key.
fn labels(metadata: &[u8]) -> Box<[(Box<str>, Box<str>)]> {
    static LABELS: LazyLock<Finder> = LazyLock::new(|| Finder::new([JsonPath::new(["labels"])]));
    let Some(labels) = LABELS.find(metadata).pop().flatten() else {
        return Box::default();
    };
    let labels = Decoder::new(Format::Json).value(labels).unwrap_or_default();
    let labels = labels.as_object().into_iter().flatten();
    // A map of serde_json is sorted by its keys.
    labels
        .filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())))
        .collect()
}

/// Overhead of an allocation, in bytes.
const ALLOCATION: usize = 16;

fn offset(at: usize) -> Result<u32, String> {
    u32::try_from(at).map_err(|_| "it is too large".to_owned())
}

impl Labels for CachedObject {
    fn value(&self, key: &str) -> Option<&str> {
        self.label(key)
    }
    fn count(&self) -> usize {
        self.labels().len()
    }
    fn all(&self, mut holds: impl FnMut(&str, &str) -> bool) -> bool {
        let mut labels = self.labels().iter();
        labels.all(|(key, value)| holds(key, value))
    }
}

/// Id of one state of an object in a cache. A revision is not unique: the writes of one transaction share it, and a
/// restored store assigns it again. The id is the address of the item; the weak reference keeps that address from
/// being used again, but does not keep the object alive.
#[derive(Debug)]
pub(crate) struct StateId(Weak<Item<CachedObject>>);

impl StateId {
    pub(crate) fn of(item: &Arc<Item<CachedObject>>) -> Self {
        Self(Arc::downgrade(item))
    }

    pub(crate) fn is_of(&self, item: &Arc<Item<CachedObject>>) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(item))
    }

    /// Whether the cache or a reader still holds the state.
    pub(crate) fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }
}

/// Memory of an item in bytes.
pub(crate) fn item_bytes(item: &Item<CachedObject>) -> usize {
    let object = item.object.as_ref();
    size_of::<Item<CachedObject>>() + object.map_or(0, CachedObject::heap_bytes)
}

/// The object of an item.
///
/// # Errors
/// InternalError with the key if the stored value could not be decoded.
pub(crate) fn object(item: &Item<CachedObject>) -> Result<&CachedObject, ApiError> {
    item.object
        .as_ref()
        .map_err(|text| ApiError::internal(text.clone()))
}
