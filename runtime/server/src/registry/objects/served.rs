//! A kind, as its watch cache sees it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use apiloom_storage::Revision;
use apiloom_storage::cache::{INDEX_GROUP, Item, Normalize};
use bytes::Bytes;

use super::cached_object::CachedObject;
use super::json::Json;
use super::kind::Kind;

/// A kind, as its watch cache sees it.
pub(crate) struct Served(pub(crate) Arc<Kind>);

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
        if let Some(known) = kind.recognize(stored) {
            return CachedObject::new(&known.served(revision), version);
        }
        if kind.is_asynchronous() {
            let decoded = kind.decode(key, stored, revision);
            let (object, held) = decoded.map_err(|error| error.message)?;
            let version = &kind.versions[held];
            if held != kind.storage_version {
                kind.holds_others.store(true, Ordering::Release);
            }
            return CachedObject::new(&Json::of(&object, version.schema()), version);
        }
        let object = kind
            .read(key, stored, revision, kind.storage_version)
            .map_err(|error| error.message)?;
        CachedObject::new(&Json::of(&object, version.schema()), version)
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
        let kind = &self.0;
        let version = (0..kind.versions.len())
            .find(|version| kind.first_index(*version) == group.checked_mul(INDEX_GROUP));
        // Watchers that are woken find what was converted here.
        let converted = version.and_then(|version| kind.converted(item, version).ok());
        let Some(Ok(object)) = converted.as_deref().map(|item| &item.object) else {
            return false;
        };
        for (number, value) in (0..INDEX_GROUP).zip(object.fields()) {
            found(group * INDEX_GROUP + number, value);
        }
        true
    }
}
