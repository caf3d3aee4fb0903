//! Objects on their way out: as the bytes that a client reads, or decoded when the server must look inside.

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
    pub(crate) fn revision(&self) -> Revision {
        self.item.revision
    }

    /// An object of the cache.
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

    /// What names this document among all others.
    pub(crate) fn id(&self) -> (StateId, Option<Revision>) {
        (StateId::of(&self.item), self.shown)
    }

    /// Whether it is the document that has this name.
    pub(crate) fn has_id(&self, (state, shown): &(StateId, Option<Revision>)) -> bool {
        state.is_of(&self.item) && *shown == self.shown
    }

    /// The version that it is in.
    pub(crate) fn held(&self) -> VersionIndex {
        // `new` refuses what is no object.
        self.item.object.as_ref().map_or(0, CachedObject::held)
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

/// An object of the cache that bytes on their way to a client keep alive.
struct Shared(Arc<Item<CachedObject>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        self.0.object.as_ref().map_or(b"{}", |object| &object.json)
    }
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
