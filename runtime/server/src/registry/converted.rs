//! Objects of the cache in a version that is not stored: converted when they are sent, and not kept.

use std::collections::VecDeque;
use std::sync::Arc;

use apiloom_meta::ApiError;
use apiloom_meta::codec::encode_object;
use apiloom_storage::cache::Item;
use parking_lot::Mutex;

use super::document::{CachedObject, Document, Encoded, object};
use super::kind::{Kind, VersionIndex};

/// An object of the cache in another version than the one it is stored in.
///
/// # Errors
/// Of the conversion, and for stored bytes that are no object.
pub(super) fn convert(
    kind: &Kind,
    item: &Arc<Item<CachedObject>>,
    version: VersionIndex,
) -> Result<Arc<Item<CachedObject>>, ApiError> {
    let stored = Document::Encoded(Encoded::new(item, None)?).object()?;
    let stored = Arc::unwrap_or_clone(stored);
    let mut converted = kind.convert(stored, kind.storage_version, version)?;
    converted.set_meta_str("resourceVersion", &item.revision.to_string());
    let target = &kind.versions[version];
    let json = encode_object(&converted, &target.schema);
    let converted = CachedObject::new(&json, target).map_err(ApiError::internal)?;
    object(item)?.set_convertible(version);
    Ok(Arc::new(Item {
        key: Arc::clone(&item.key),
        revision: item.revision,
        object: Ok(converted),
    }))
}

/// Makes sure that nothing is in the way of sending an object in a version, before anything is sent: it is converted,
/// unless it was before. What a conversion makes of the same object is the same each time.
///
/// # Errors
/// As [`convert`].
pub(super) fn try_once(
    kind: &Kind,
    item: &Arc<Item<CachedObject>>,
    version: VersionIndex,
) -> Result<(), ApiError> {
    match version == kind.storage_version || object(item)?.is_convertible(version) {
        true => object(item).map(|_| ()),
        false => convert(kind, item, version).map(|_| ()),
    }
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
