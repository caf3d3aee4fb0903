//! Normalizes stored values of a kind for its watch cache.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use apiloom_meta::Object;
use apiloom_storage::Revision;
use apiloom_storage::cache::{INDEX_GROUP, Item, Normalize};
use bytes::Bytes;

use super::cached_object::CachedObject;
use super::json::Json;
use super::kind::Kind;
use super::kind_version::VersionIndex;
use super::listed::{ListedKind, TypedObject, TypedView};

/// Decodes, indexes and measures stored values of a kind for its watch cache.
pub struct CacheNormalizer(pub(crate) Arc<Kind>);

impl Normalize for CacheNormalizer {
    type Object = CachedObject;

    fn normalize(
        &self,
        key: &str,
        stored: &Bytes,
        revision: Revision,
    ) -> Result<CachedObject, String> {
        let mut object = self.object(key, stored, revision)?;
        if let Some(listed) = self.0.listed.get() {
            object.set_typed(self.typed(listed, key, &object));
        }
        Ok(object)
    }

    fn wire_bytes(&self, object: &CachedObject) -> usize {
        object.json.len()
    }

    fn heap_bytes(&self, object: &CachedObject) -> usize {
        object.heap_bytes()
    }

    fn index(&self, object: &CachedObject, found: &mut dyn FnMut(u16, &str)) {
        for (number, value) in (0..INDEX_GROUP).zip(object.fields()) {
            found(number, value);
        }
    }

    fn derive_index(
        &self,
        item: &Arc<Item<CachedObject>>,
        group: u16,
        found: &mut dyn FnMut(u16, &str),
    ) -> bool {
        let versions = &self.0.versions;
        let version = (0..versions.all.len())
            .find(|version| versions.first_index(*version) == group.checked_mul(INDEX_GROUP));
        // The conversion is kept for the watchers that this change wakes.
        let converted = version.and_then(|version| versions.converted(item, version).ok());
        let Some(Ok(object)) = converted.as_deref().map(|item| &item.object) else {
            return false;
        };
        for (number, value) in (0..INDEX_GROUP).zip(object.fields()) {
            found(group * INDEX_GROUP + number, value);
        }
        true
    }
}

impl CacheNormalizer {
    /// A stored value as it is served, without typed values.
    fn object(
        &self,
        key: &str,
        stored: &Bytes,
        revision: Revision,
    ) -> Result<CachedObject, String> {
        let kind = &self.0;
        let version = kind.versions.stored_version();
        if let Some(written) = kind.pending_writes.take(key, stored) {
            let mut object = CachedObject::new(&written.prepared.served(revision), version)?;
            object.is_in_stored_form = written.is_plain();
            return Ok(object);
        }
        let opened = kind.open(key, stored).map_err(|error| error.message)?;
        let (plain, is_encrypted) = match opened.bytes {
            Cow::Borrowed(_) => (stored.clone(), false),
            Cow::Owned(plain) => (plain.into(), true),
        };
        if let Some(known) = kind.recognize(&plain) {
            let mut object = CachedObject::new(&known.served(revision), version)?;
            object.is_in_stored_form =
                kind.stores_json() && known.is_stored_as_json() && !is_encrypted;
            return Ok(object);
        }
        if !kind.versions.has_hub() {
            let decoded = kind.decode_plain(key, &plain, revision);
            let (object, held) = decoded.map_err(|error| error.message)?;
            let version = &kind.versions[held];
            if held != kind.versions.stored {
                kind.has_other_versions.store(true, Ordering::Release);
            }
            return CachedObject::new(&Json::of(&object, version.schema()), version);
        }
        let object = kind
            .read_plain(key, &plain, revision, kind.versions.stored)
            .map_err(|error| error.message)?;
        CachedObject::new(&Json::of(&object, version.schema()), version)
    }

    /// The object as each of the types that listers read. One that cannot be decoded is logged and left out: a damaged
    /// object must not hide the others.
    fn typed(
        &self,
        listed: &ListedKind,
        key: &str,
        object: &CachedObject,
    ) -> Box<[Option<TypedObject>]> {
        let document = object.json().object();
        let typed = listed.views.iter().map(|view| {
            let typed = match &document {
                Ok(document) => self.typed_as(view, document, object.version_index()),
                Err(error) => Err(error.message.clone()),
            };
            typed
                .inspect_err(|error| {
                    tracing::warn!(key, error, "an object that cannot be decoded is not listed");
                })
                .ok()
        });
        typed.collect()
    }

    /// A document of this version as one of the types.
    fn typed_as(
        &self,
        view: &TypedView,
        document: &Object,
        version: VersionIndex,
    ) -> Result<TypedObject, String> {
        let typed = if version == view.version {
            (view.decode)(document)
        } else {
            let versions = &self.0.versions;
            let converted = versions.convert(document.clone(), version, view.version);
            (view.decode)(&converted.map_err(|error| error.message)?)
        };
        typed.map_err(|error| error.to_string())
    }
}
