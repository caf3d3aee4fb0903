//! Objects on their way out: as the bytes that a client reads, when nobody has to look inside, or decoded.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use apiloom_meta::codec::encode_object;
use apiloom_meta::{ApiError, Object};
use apiloom_storage::Revision;
use apiloom_storage::cache::{Item, Normalize};
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;

use super::kind::{Kind, KindVersion, VersionIndex};
use super::selection::field_value;

/// What the watch cache keeps of an object: the JSON in which its storage version is served, and what selectors ask.
#[derive(Debug)]
pub(super) struct CachedObject {
    /// The whole document, `kind` and `apiVersion` first.
    json: Bytes,
    /// Where `kind` and `apiVersion` end and the items of a list begin.
    body: u32,
    /// Where the resourceVersion is, without its quotes.
    version: Range<u32>,
    labels: Box<[(Box<str>, Box<str>)]>,
    /// The values of the kind's selectable fields, in the order of their declaration.
    fields: Box<[Box<str>]>,
}

impl Encoded {
    pub(super) fn label(&self, key: &str) -> Option<&str> {
        let labels = &self.object()?.labels;
        let at = labels.binary_search_by(|(name, _)| name.as_ref().cmp(key));
        at.ok().map(|at| labels[at].1.as_ref())
    }

    /// A field as selectors compare it.
    pub(super) fn field(&self, version: &KindVersion, field: &str) -> Cow<'_, str> {
        let mut segments = self.item.key.rsplit('/');
        let name = segments.next().unwrap_or_default();
        let value = match field {
            "metadata.name" => name,
            "metadata.namespace" => segments.next().unwrap_or_default(),
            other => {
                let declared = version.def.selectable.iter();
                let number = declared
                    .map(|path| path.as_field())
                    .position(|path| path == other);
                let fields = self.object().map(|object| &object.fields);
                number
                    .and_then(|number| fields?.get(number))
                    .map_or("", AsRef::as_ref)
            }
        };
        Cow::Borrowed(value)
    }
}

impl CachedObject {
    /// An object in a version, with its resourceVersion.
    fn new(object: &Object, version: &KindVersion) -> Result<Self, String> {
        let json = encode_object(object, &version.schema);
        let body = find(&json, b"\"metadata\":").ok_or("it has no metadata")?;
        // Whatever stands in front of it in the metadata holds no quotes that JSON would not escape.
        let mark = b"\"resourceVersion\":\"";
        let digits = find(&json, mark).ok_or("it has no resourceVersion")? + mark.len();
        let end = digits + object.resource_version().len();
        let text = |value: &str| Box::<str>::from(value);
        let labels = object.meta().and_then(|meta| meta.get("labels"));
        // A map of serde_json is sorted by its keys.
        let labels = labels.and_then(Value::as_object).into_iter().flatten();
        let labels = labels.filter_map(|(key, value)| Some((text(key), text(value.as_str()?))));
        let fields = version.def.selectable.iter();
        Ok(CachedObject {
            body: offset(body)?,
            version: offset(digits)?..offset(end)?,
            labels: labels.collect(),
            fields: fields
                .map(|path| text(&field_value(object, &path.as_field())))
                .collect(),
            // A copy of just its size: it is kept for long, and the encoder's buffer is up to twice as large.
            json: Bytes::copy_from_slice(&json),
        })
    }
}

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
        let object = kind
            .read(key, stored, revision, kind.storage_version)
            .map_err(|error| error.message)?;
        CachedObject::new(&object, &kind.versions[kind.storage_version])
    }

    fn weight(&self, object: &CachedObject) -> usize {
        object.json.len()
    }

    fn index(&self, object: &CachedObject, found: &mut dyn FnMut(u16, &str)) {
        for (number, value) in (0..).zip(&object.fields) {
            found(number, value);
        }
    }
}

fn offset(at: usize) -> Result<u32, String> {
    u32::try_from(at).map_err(|_| "it is too large".to_owned())
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// An object to send.
#[derive(Clone, Debug)]
pub enum Document {
    /// As it lies in the cache; it is in the version that is asked for.
    Encoded(Encoded),
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
    /// An object of the cache.
    ///
    /// # Errors
    /// InternalError, naming the key, when the stored bytes are no object.
    pub(super) fn new(
        item: &Arc<Item<CachedObject>>,
        shown: Option<Revision>,
    ) -> Result<Self, ApiError> {
        match &item.object {
            Ok(_) => Ok(Self {
                item: Arc::clone(item),
                shown: shown.filter(|shown| *shown != item.revision),
            }),
            Err(text) => Err(ApiError::internal(text.clone())),
        }
    }

    fn object(&self) -> Option<&CachedObject> {
        self.item.object.as_ref().ok()
    }

    /// Appends the whole document as JSON.
    pub fn write(&self, out: &mut Vec<u8>) {
        if let Some(object) = self.object() {
            self.write_from(object, 0, out);
        }
    }

    /// Appends the document as an item of a list, which says once what its items are.
    pub fn write_item(&self, out: &mut Vec<u8>) {
        if let Some(object) = self.object() {
            out.push(b'{');
            self.write_from(object, object.body as usize, out);
        }
    }

    fn write_from(&self, object: &CachedObject, from: usize, out: &mut Vec<u8>) {
        let Some(shown) = self.shown else {
            out.extend_from_slice(&object.json[from..]);
            return;
        };
        let (start, end) = (object.version.start as usize, object.version.end as usize);
        out.extend_from_slice(&object.json[from..start]);
        out.extend_from_slice(shown.to_string().as_bytes());
        out.extend_from_slice(&object.json[end..]);
    }

    /// The whole document without a copy, when it is shown as it is.
    pub fn json(&self) -> Bytes {
        match (self.shown, self.object()) {
            (None, Some(object)) => object.json.clone(),
            _ => {
                let mut json = Vec::new();
                self.write(&mut json);
                json.into()
            }
        }
    }
}

impl Document {
    /// The object, decoded if it was not.
    ///
    /// # Errors
    /// InternalError; what the cache holds was JSON when it was put there.
    pub fn object(&self) -> Result<Arc<Object>, ApiError> {
        match self {
            Document::Decoded(object) => Ok(Arc::clone(object)),
            Document::Encoded(encoded) => {
                let value: Value = serde_json::from_slice(&encoded.json())
                    .map_err(|error| ApiError::internal(error.to_string()))?;
                let object = Object::from_value(value)
                    .ok_or_else(|| ApiError::internal("a cached object is no object"))?;
                Ok(Arc::new(object))
            }
        }
    }

    /// The namespace, of a kind that has them, and the name.
    pub(super) fn namespace_and_name(&self) -> (String, String) {
        match self {
            Document::Decoded(object) => (object.namespace().to_owned(), object.name().to_owned()),
            Document::Encoded(encoded) => {
                let mut segments = encoded.item.key.rsplit('/');
                let name = segments.next().unwrap_or_default().to_owned();
                let namespace = segments.next().unwrap_or_default().to_owned();
                (namespace, name)
            }
        }
    }
}

/// An object of the cache in another version than the one it is stored in.
///
/// # Errors
/// Of the conversion.
pub(super) fn convert(
    kind: &Kind,
    item: &Arc<Item<CachedObject>>,
    version: VersionIndex,
) -> Result<Arc<Item<CachedObject>>, ApiError> {
    let stored = Document::Encoded(Encoded::new(item, None)?).object()?;
    let stored = Arc::unwrap_or_clone(stored);
    let mut object = kind.convert(stored, kind.storage_version, version)?;
    object.set_meta_str("resourceVersion", &item.revision.to_string());
    let object = CachedObject::new(&object, &kind.versions[version]).map_err(ApiError::internal)?;
    Ok(Arc::new(Item {
        key: Arc::clone(&item.key),
        revision: item.revision,
        object: Ok(object),
    }))
}

/// How many converted objects are kept: more than watchers are apart from each other.
const CONVERTED: usize = 64;

/// Objects in a version that is not stored, newest last. A revision names one state of one object.
#[derive(Debug, Default)]
pub(super) struct Converted(Mutex<VecDeque<Arc<Item<CachedObject>>>>);

impl Converted {
    /// The object in a version, converted now unless it was lately.
    pub(super) fn get(
        &self,
        kind: &Kind,
        item: &Arc<Item<CachedObject>>,
        version: VersionIndex,
    ) -> Result<Arc<Item<CachedObject>>, ApiError> {
        let known = {
            let known = self.0.lock();
            let mut known = known.iter().rev();
            known.find(|known| known.revision == item.revision).cloned()
        };
        if let Some(known) = known {
            return Ok(known);
        }
        // Without the lock; two watchers may do it at the same time, and both be right.
        let converted = convert(kind, item, version)?;
        let mut known = self.0.lock();
        if known.len() == CONVERTED {
            known.pop_front();
        }
        known.push_back(Arc::clone(&converted));
        Ok(converted)
    }
}
