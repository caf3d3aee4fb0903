//! Objects of the cache in a version that is not stored: converted when they are sent, and not kept.

use std::sync::Arc;

use apiloom_meta::ApiError;
use apiloom_meta::codec::is_verbatim;
use apiloom_meta::kind::ConvertJson;
use apiloom_storage::cache::{INDEX_GROUP, Item};

use super::cached_object::{CachedObject, object};
use super::document::Encoded;
use super::json::{Json, METADATA};
use super::kind::{Kind, KindConversion};
use super::kind_version::{KindVersion, VersionIndex};

/// An object of the cache in another version than the one it is stored in.
///
/// # Errors
/// Of the conversion, and for stored bytes that are no object.
pub(crate) fn converted(
    kind: &Kind,
    item: &Arc<Item<CachedObject>>,
    version: VersionIndex,
) -> Result<Json<'static>, ApiError> {
    let stored = object(item)?;
    let json = match convert_json(kind, &stored.json(), version) {
        Some(json) => json,
        None => convert_document(kind, item, version)?,
    };
    stored.set_convertible(version);
    Ok(json)
}

/// The same, to be looked into as what the cache holds is.
///
/// # Errors
/// As [`converted`].
pub(crate) fn convert(
    kind: &Kind,
    item: &Arc<Item<CachedObject>>,
    version: VersionIndex,
) -> Result<Arc<Item<CachedObject>>, ApiError> {
    let json = converted(kind, item, version)?;
    let object = CachedObject::new(&json, &kind.versions[version]).map_err(ApiError::internal)?;
    Ok(Arc::new(Item {
        key: Arc::clone(&item.key),
        revision: item.revision,
        object: Ok(object),
    }))
}

/// By way of documents: any conversion, and the reason why one fails.
fn convert_document(
    kind: &Kind,
    item: &Arc<Item<CachedObject>>,
    version: VersionIndex,
) -> Result<Json<'static>, ApiError> {
    let converted = kind.read_cached(&Encoded::new(item, None)?, version)?;
    Ok(Json::of(&converted, kind.versions[version].schema()))
}

/// From JSON to JSON, by way of the hub, where the kind's conversions have such a way: the metadata stays the bytes that
/// it is. `None` where they have not, where numbers could be rounded otherwise, and for what cannot be converted; then
/// the way of documents decides.
fn convert_json(kind: &Kind, stored: &Json<'_>, version: VersionIndex) -> Option<Json<'static>> {
    let (hub, target) = (&kind.versions[kind.hub], &kind.versions[version]);
    let source = &kind.versions[kind.storage_version];
    match kind.conversion {
        KindConversion::InMemory => {}
        KindConversion::Rename => return rename(kind, stored, source, target),
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
        (Some(to_hub), None) => hop(to_hub.json?.to_hub, &bare, metadata, hub, head),
        (None, Some(from_hub)) => hop(from_hub.json?.from_hub, &bare, metadata, target, head),
        (Some(to_hub), Some(from_hub)) => {
            let head_between = [b"{", METADATA].concat();
            let between = hop(to_hub.json?.to_hub, &bare, metadata, hub, &head_between)?;
            let between = between.whole();
            hop(from_hub.json?.from_hub, between, metadata, target, head)
        }
        (None, None) => None,
    }
}

/// The same bytes behind another head, if that is all that pruning and defaulting by the other schema leave to do.
fn rename(
    kind: &Kind,
    stored: &Json<'_>,
    source: &KindVersion,
    target: &KindVersion,
) -> Option<Json<'static>> {
    if kind.has_defaults(target.index) {
        return None;
    }
    let (start, end) = stored.metadata;
    let head = target.head.as_slice();
    let json = [head, stored.whole().get(start..)?].concat();
    let is_same = Arc::ptr_eq(source.schema(), target.schema());
    let metadata = (head.len(), head.len() + end - start);
    (is_same || is_verbatim(&json, target.schema())).then(|| Json::with_metadata(json, metadata))
}

/// One step of a conversion: a document of a head, the same metadata behind it, and what is converted.
fn hop(
    convert: ConvertJson,
    document: &[u8],
    metadata: &[u8],
    target: &KindVersion,
    head: &[u8],
) -> Option<Json<'static>> {
    // Room for fields that the conversion adds.
    const MORE_BYTES: usize = 128;
    let mut out = Vec::with_capacity(head.len() + document.len() + MORE_BYTES);
    out.extend_from_slice(head);
    let start = out.len();
    out.extend_from_slice(metadata);
    let rest = out.len();
    convert(document, target.schema(), &mut out).ok()?;
    // The rest is an object of its own so far.
    match out.get(rest..)? {
        b"{}" => drop(out.remove(rest)),
        [b'{', .., b'}'] => out[rest] = b',',
        _ => return None,
    }
    Some(Json::with_metadata(out, (start, rest)))
}

/// Makes sure that nothing is in the way of sending an object in a version, before anything is sent: it is converted,
/// unless it was before. What a conversion makes of the same object is the same each time.
///
/// # Errors
/// As [`convert`].
pub(crate) fn try_once(
    kind: &Kind,
    item: &Arc<Item<CachedObject>>,
    version: VersionIndex,
) -> Result<(), ApiError> {
    match version == kind.storage_version || object(item)?.is_convertible(version) {
        true => object(item).map(|_| ()),
        false => converted(kind, item, version).map(|_| ()),
    }
}

impl Kind {
    /// An object of the cache in another version, which many watchers look at: converted now unless it was lately.
    ///
    /// # Errors
    /// As [`converted`].
    pub(crate) fn converted(
        &self,
        item: &Arc<Item<CachedObject>>,
        version: VersionIndex,
    ) -> Result<Arc<Item<CachedObject>>, ApiError> {
        match self.converted.get(version) {
            Some(recent) => recent.get(item, || convert(self, item, version)),
            None => convert(self, item, version),
        }
    }

    /// The number of the index of a version's first selectable field: those of the stored version are kept with the
    /// objects, the others are groups of their own. `None` for more versions than there are numbers for.
    pub(crate) fn first_index(&self, version: VersionIndex) -> Option<u16> {
        if version == self.storage_version {
            return Some(0);
        }
        let group = u16::try_from(version).ok()?.checked_add(1)?;
        group.checked_mul(INDEX_GROUP)
    }
}
