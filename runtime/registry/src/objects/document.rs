//! An object for a response: encoded bytes, or decoded if the server must read its fields.

use std::borrow::Cow;
use std::sync::Arc;

use apiloom_meta::schema::Schema;
use apiloom_meta::{ApiError, Object};
use apiloom_storage::Revision;
use apiloom_storage::cache::Item;
use bytes::Bytes;

use super::cached_object::{CachedObject, StateId, object};
use super::json::Json;
use super::kind_version::VersionIndex;

/// An object for a response.
#[derive(Clone, Debug)]
pub enum Document {
    /// Bytes of the cache, in the requested version.
    Encoded(EncodedObject),
    /// Bytes encoded for this response: a cached object converted to another version, or an object of a list from the
    /// store.
    Converted(Json<'static>),
    /// A decoded object, from a write or a get.
    Decoded(Arc<Object>),
}

impl From<Object> for Document {
    fn from(object: Object) -> Self {
        Self::Decoded(Arc::new(object))
    }
}

/// An object as the cache holds it.
#[derive(Clone, Debug)]
pub struct EncodedObject {
    item: Arc<Item<CachedObject>>,
    /// A resourceVersion to show in place of the object's own: a deleted object is shown with the revision of the
    /// deletion.
    shown: Option<Revision>,
}

impl EncodedObject {
    /// The revision of the write that produced the object.
    pub(crate) fn revision(&self) -> Revision {
        self.item.revision
    }

    /// Wraps an object of the cache.
    ///
    /// # Errors
    /// As [`object`].
    pub(crate) fn new(
        item: &Arc<Item<CachedObject>>,
        shown: Option<Revision>,
    ) -> Result<Self, ApiError> {
        object(item)?;
        Ok(Self {
            item: Arc::clone(item),
            shown: shown.filter(|shown| *shown != item.revision),
        })
    }

    /// See [`CachedObject::is_in_stored_form`].
    pub(crate) fn is_in_stored_form(&self) -> bool {
        let object = self.item.object.as_ref();
        object.is_ok_and(|object| object.is_in_stored_form)
    }

    /// Whether this is the object of an item of the cache, in the same state.
    pub(crate) fn is_of(&self, item: &Arc<Item<CachedObject>>) -> bool {
        Arc::ptr_eq(&self.item, item)
    }

    /// Id of this document: the state of the object and the resourceVersion it shows.
    pub(crate) fn id(&self) -> (StateId, Option<Revision>) {
        (StateId::of(&self.item), self.shown)
    }

    /// Whether the document has this id.
    pub(crate) fn has_id(&self, (state, shown): &(StateId, Option<Revision>)) -> bool {
        state.is_of(&self.item) && *shown == self.shown
    }

    /// Index of the version that the document is in.
    pub(crate) fn version_index(&self) -> VersionIndex {
        // `new` refuses items without an object.
        self.item
            .object
            .as_ref()
            .map_or(0, CachedObject::version_index)
    }

    /// Length of the document in bytes; one or two off if it shows another revision than its own.
    #[inline]
    #[allow(clippy::len_without_is_empty, reason = "no object is empty as JSON")]
    pub fn len(&self) -> usize {
        let object = self.item.object.as_ref();
        object.map_or(0, |object| object.json.len())
    }

    /// See [`CachedObject::item_bytes`].
    pub fn item_bytes(&self, measure: impl FnOnce() -> Option<u64>) -> Option<u64> {
        match &self.item.object {
            Ok(object) if self.shown.is_none() => object.item_bytes(measure),
            _ => measure(),
        }
    }

    /// The document as JSON.
    pub fn json(&self) -> Json<'_> {
        let Ok(object) = &self.item.object else {
            // `new` refuses items without an object.
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

    /// The whole document; shares the bytes of the cache unless another resourceVersion is shown.
    pub fn shared(&self) -> Bytes {
        match self.shown {
            None => Bytes::from_owner(BodyOwner(Arc::clone(&self.item))),
            Some(_) => self.json().into_whole().into(),
        }
    }
}

/// Owner of the cached bytes in a response: keeps the object alive until they are sent.
struct BodyOwner(Arc<Item<CachedObject>>);

impl AsRef<[u8]> for BodyOwner {
    fn as_ref(&self) -> &[u8] {
        self.0.object.as_ref().map_or(b"{}", |object| &object.json)
    }
}

impl Document {
    /// The document as JSON; `schema` is that of its version.
    #[inline]
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

    /// The document as an object; decodes it if necessary.
    ///
    /// # Errors
    /// InternalError if the JSON of the cache cannot be decoded.
    pub fn object(&self) -> Result<Arc<Object>, ApiError> {
        match self {
            Document::Decoded(object) => Ok(Arc::clone(object)),
            Document::Encoded(encoded) => encoded.json().object().map(Arc::new),
            Document::Converted(json) => json.object().map(Arc::new),
        }
    }
}
