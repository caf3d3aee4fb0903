//! What the watch cache keeps of an object, and the names of its states.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use apiloom_meta::codec::{Finder, Format, decode_value};
use apiloom_meta::selector::Labels;
use apiloom_meta::{ApiError, JsonPath};
use apiloom_storage::cache::{Item, Snapshot};
use serde_json::Value;

use super::json::Json;
use super::kind_version::{KindVersion, VersionIndex};

/// A state of a kind's objects.
pub(crate) type State = Arc<Snapshot<CachedObject>>;

/// What the watch cache keeps of an object: the JSON in which its storage version is served, and what selectors ask.
#[derive(Debug)]
pub(crate) struct CachedObject {
    /// The whole document, `kind` and `apiVersion` first.
    pub(crate) json: Box<[u8]>,
    /// Where the metadata begins and ends, without its name.
    metadata: (u32, u32),
    /// Where the resourceVersion is, without its quotes.
    pub(crate) version: (u32, u32),
    /// The versions, as bits, into which the object was converted before: nothing is in the way of doing it again.
    convertible: AtomicU32,
    /// The version that it is in: the one that is stored, or of objects that are converted asynchronously another one, in
    /// which they were written.
    held: u16,
    labels: Box<[(Box<str>, Box<str>)]>,
    /// The values of the kind's selectable fields, in the order of their declaration.
    fields: Box<[Box<str>]>,
}

impl CachedObject {
    /// An object whose JSON has its resourceVersion, which is a number.
    ///
    /// # Errors
    /// For JSON without metadata or resourceVersion.
    pub(crate) fn new(document: &Json<'_>, version: &KindVersion) -> Result<Self, String> {
        let (json, metadata) = (document.whole(), document.metadata);
        if metadata == (0, 0) {
            return Err("it has no metadata".to_owned());
        }
        let digits = document
            .version_digits()
            .ok_or("it has no resourceVersion")?;
        let held = u16::try_from(version.index).map_err(|_| "it has too many versions")?;
        let fields = version.selectable.find(json).into_iter();
        Ok(CachedObject {
            metadata: (offset(metadata.0)?, offset(metadata.1)?),
            version: (offset(digits.start)?, offset(digits.end)?),
            convertible: AtomicU32::new(0),
            held,
            labels: labels(&json[metadata.0..metadata.1]),
            fields: fields.map(field_text).collect(),
            // A buffer of just its size: it is kept for long.
            json: json.into(),
        })
    }

    /// The labels, sorted.
    pub(crate) fn labels(&self) -> &[(Box<str>, Box<str>)] {
        &self.labels
    }

    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        let at = self
            .labels
            .binary_search_by(|(name, _)| name.as_ref().cmp(key));
        at.ok().map(|at| self.labels[at].1.as_ref())
    }

    /// The values of all selectable fields, in the order of their declaration.
    pub(crate) fn fields(&self) -> &[Box<str>] {
        &self.fields
    }

    /// How many bytes it keeps alive beside its own size.
    pub(crate) fn heap_bytes(&self) -> usize {
        let json = self.json.len() + ALLOCATION;
        let text = |text: &str| text.len() + ALLOCATION;
        let labels = self.labels.iter();
        let labels = labels.map(|(key, value)| text(key) + text(value));
        let fields = self.fields.iter().map(|value| text(value));
        let slices = size_of_val(&*self.labels) + size_of_val(&*self.fields);
        json + labels.sum::<usize>() + fields.sum::<usize>() + slices + 2 * ALLOCATION
    }

    /// The document.
    pub(crate) fn json(&self) -> Json<'_> {
        let (start, end) = self.metadata;
        Json {
            bytes: Cow::Borrowed(&self.json),
            metadata: (start as usize, end as usize),
        }
    }

    /// The version that the document is in.
    pub(crate) fn held(&self) -> VersionIndex {
        usize::from(self.held)
    }

    /// Whether the object was converted into a version before.
    pub(crate) fn is_convertible(&self, version: VersionIndex) -> bool {
        bit(version).is_some_and(|bit| self.convertible.load(Ordering::Relaxed) & bit != 0)
    }

    /// Remembers that it was.
    pub(crate) fn set_convertible(&self, version: VersionIndex) {
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

/// Names one state of one object of a cache. Revisions do not: the writes of one transaction share one, and a store that
/// was restored gives them again. It keeps nothing of the object alive, only its place in memory, so that no other state
/// comes to have the same name.
#[derive(Debug)]
pub(crate) struct StateId(Weak<Item<CachedObject>>);

impl StateId {
    pub(crate) fn of(item: &Arc<Item<CachedObject>>) -> Self {
        Self(Arc::downgrade(item))
    }

    pub(crate) fn is_of(&self, item: &Arc<Item<CachedObject>>) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(item))
    }

    /// Whether the state is still held by the cache or a reader.
    pub(crate) fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }
}

/// How many bytes an item keeps alive.
pub(crate) fn item_bytes(item: &Item<CachedObject>) -> usize {
    let object = item.object.as_ref();
    size_of::<Item<CachedObject>>() + object.map_or(0, CachedObject::heap_bytes)
}

/// The object of an item.
///
/// # Errors
/// InternalError, naming the key, when the stored bytes are no object.
pub(crate) fn object(item: &Item<CachedObject>) -> Result<&CachedObject, ApiError> {
    item.object
        .as_ref()
        .map_err(|text| ApiError::internal(text.clone()))
}

/// A value as selectors compare it: strings as they are, other scalars as they print, everything else as empty.
pub(crate) fn printed(value: Option<&Value>) -> Cow<'_, str> {
    match value {
        Some(Value::String(text)) => Cow::Borrowed(text),
        Some(scalar @ (Value::Bool(_) | Value::Number(_))) => Cow::Owned(scalar.to_string()),
        _ => Cow::Borrowed(""),
    }
}

/// A field as selectors compare it, of its JSON.
pub(crate) fn field_text(json: Option<&[u8]>) -> Box<str> {
    let value: Option<Value> = json.and_then(|json| serde_json::from_slice(json).ok());
    printed(value.as_ref()).into()
}
