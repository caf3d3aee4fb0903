//! Conversion of cached objects to a version that is not stored, for one response; the result is not kept.

use std::sync::Arc;

use apiloom_meta::codec::Encoder;
use apiloom_meta::kind::ConvertJson;
use apiloom_meta::{ApiError, Object};
use apiloom_storage::cache::{INDEX_GROUP, Item};

use super::cached_object::{CachedObject, object};
use super::document::EncodedObject;
use super::json::{Json, METADATA};
use super::kind_version::{KindVersion, VersionIndex};
use super::kind_versions::{KindConversion, KindVersions};
use crate::large::check_wanted;

/// Converts an object of the cache to another version, as JSON.
///
/// # Errors
/// The error of the conversion; InternalError for stored values that cannot be decoded.
pub(crate) fn converted(
    versions: &KindVersions,
    item: &Arc<Item<CachedObject>>,
    version: VersionIndex,
) -> Result<Json<'static>, ApiError> {
    let stored = object(item)?;
    if stored.version_index() == version {
        return Ok(stored.json().into_owned());
    }
    let json = match convert_json(versions, stored, version) {
        Some(json) => json,
        None => convert_document(versions, item, version)?,
    };
    // What is known of the object, and kept, is that of a whole conversion.
    check_wanted()?;
    stored.set_convertible(version);
    Ok(json)
}

/// As [`converted`], with labels and selectable fields extracted as for an object of the cache.
///
/// # Errors
/// As [`converted`].
pub(crate) fn convert(
    versions: &KindVersions,
    item: &Arc<Item<CachedObject>>,
    version: VersionIndex,
) -> Result<Arc<Item<CachedObject>>, ApiError> {
    if object(item)?.version_index() == version {
        return Ok(Arc::clone(item));
    }
    let json = converted(versions, item, version)?;
    let object = CachedObject::new(&json, &versions[version]).map_err(ApiError::internal)?;
    Ok(Arc::new(Item {
        key: Arc::clone(&item.key),
        revision: item.revision,
        object: Ok(object),
    }))
}

/// Converts by decoding the document. Works for every conversion, and has the error if one fails.
fn convert_document(
    versions: &KindVersions,
    item: &Arc<Item<CachedObject>>,
    version: VersionIndex,
) -> Result<Json<'static>, ApiError> {
    let converted = versions.read_cached(&EncodedObject::new(item, None)?, version)?;
    Ok(Json::of(&converted, versions[version].schema()))
}

/// Converts from JSON to JSON, by way of the hub, if the kind's conversions have functions for it; the bytes of the
/// metadata stay the same. `None` if they have none, if numbers could be rounded differently, or if the conversion
/// fails; the caller then decodes the document.
fn convert_json(
    versions: &KindVersions,
    stored: &CachedObject,
    version: VersionIndex,
) -> Option<Json<'static>> {
    let (hub, target) = (&versions[versions.hub], &versions[version]);
    let source = &versions[stored.version_index()];
    let stored = stored.json();
    match versions.conversion {
        KindConversion::InMemory => {}
        KindConversion::Rename => return rename(&stored, source, target),
        KindConversion::Asynchronous(_) => return None,
    }
    if [source, hub, target]
        .iter()
        .any(|version| version.schema().has_singles())
    {
        return None;
    }
    let (to_hub, from_hub) = (source.functions(), target.functions());
    let metadata = stored.metadata();
    let head = target.head.as_slice();
    let bare = [b"{", stored.item()].concat();
    match (to_hub, from_hub) {
        (Some(to_hub), None) => convert_step(to_hub.json?.to_hub, &bare, metadata, hub, head),
        (None, Some(from_hub)) => {
            convert_step(from_hub.json?.from_hub, &bare, metadata, target, head)
        }
        (Some(to_hub), Some(from_hub)) => {
            let head_between = [b"{", METADATA].concat();
            let between = convert_step(to_hub.json?.to_hub, &bare, metadata, hub, &head_between)?;
            let between = between.whole();
            convert_step(from_hub.json?.from_hub, between, metadata, target, head)
        }
        (None, None) => None,
    }
}

/// The document with another head, if pruning by the target schema would not change the rest.
fn rename(stored: &Json<'_>, source: &KindVersion, target: &KindVersion) -> Option<Json<'static>> {
    let (start, end) = stored.metadata;
    let head = target.head.as_slice();
    // A field of a custom resource may come before the metadata.
    if start != source.head.len() {
        return None;
    }
    let json = [head, stored.whole().get(start..)?].concat();
    let is_same = Arc::ptr_eq(source.schema(), target.schema());
    let metadata = (head.len(), head.len() + end - start);
    (is_same || Encoder::of(target.schema()).is_verbatim(&json))
        .then(|| Json::with_metadata(json, metadata))
}

/// One step of a conversion: writes the head, the unchanged metadata, and the converted fields.
fn convert_step(
    convert: ConvertJson,
    document: &[u8],
    metadata: &[u8],
    target: &KindVersion,
    head: &[u8],
) -> Option<Json<'static>> {
    // Capacity for fields that the conversion adds.
    const MORE_BYTES: usize = 128;
    let mut out = Vec::with_capacity(head.len() + document.len() + MORE_BYTES);
    out.extend_from_slice(head);
    let start = out.len();
    out.extend_from_slice(metadata);
    let rest = out.len();
    convert(document, target.schema(), &mut out).ok()?;
    // So far the rest is an object of its own; its opening brace is removed or replaced.
    match out.get(rest..)? {
        b"{}" => drop(out.remove(rest)),
        [b'{', .., b'}'] => out[rest] = b',',
        _ => return None,
    }
    Some(Json::with_metadata(out, (start, rest)))
}

/// Checks that an object can be converted to a version, before the response begins. An object that was converted
/// before is not converted again: conversions are deterministic.
///
/// # Errors
/// As [`convert`].
pub(crate) fn check_convertible(
    versions: &KindVersions,
    item: &Arc<Item<CachedObject>>,
    version: VersionIndex,
) -> Result<(), ApiError> {
    let held = object(item)?;
    if held.version_index() == version || held.is_convertible(version) {
        return Ok(());
    }
    converted(versions, item, version).map(|_| ())
}

impl KindVersions {
    /// Converts an object of the cache to another version, for watchers; they share recent conversions.
    ///
    /// # Errors
    /// As [`converted`].
    pub(crate) fn converted(
        &self,
        item: &Arc<Item<CachedObject>>,
        version: VersionIndex,
    ) -> Result<Arc<Item<CachedObject>>, ApiError> {
        match self.recent.get(version) {
            Some(recent) if object(item)?.version_index() != version => {
                recent.get(item, || convert(self, item, version))
            }
            _ => convert(self, item, version),
        }
    }

    /// Decodes an object of the watch cache, in a version.
    pub(crate) fn read_cached(
        &self,
        cached: &EncodedObject,
        version: VersionIndex,
    ) -> Result<Object, ApiError> {
        let object = cached.json().object()?;
        let mut object = self.convert(object, cached.version_index(), version)?;
        object.set_meta_str("resourceVersion", &cached.revision().to_string());
        Ok(object)
    }

    /// Whether an object has the same values of selectable fields in all versions in which the cache may hold it, so that an
    /// index of the cache serves every version.
    pub(crate) fn has_common_fields(&self) -> bool {
        let stored = &self.stored_version().def.selectable;
        let mut versions = self.all.iter();
        match self.conversion {
            KindConversion::InMemory => true,
            KindConversion::Rename => versions.all(|version| version.def.selectable == *stored),
            KindConversion::Asynchronous(_) => false,
        }
    }

    /// First number of the indexes over a version's selectable fields. Those of the storage version are kept with the
    /// objects, those of other versions are groups of their own. `None` if the version's number exceeds the range of
    /// groups.
    pub(crate) fn first_index(&self, version: VersionIndex) -> Option<u16> {
        if version == self.stored {
            return Some(0);
        }
        let group = u16::try_from(version).ok()?.checked_add(1)?;
        group.checked_mul(INDEX_GROUP)
    }
}
