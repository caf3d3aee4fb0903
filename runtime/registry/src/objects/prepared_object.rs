//! An object of the storage version, encoded once for the store, the response and the watch cache.
//!
//! The JSON is the served bytes without the resourceVersion, which the store assigns later. A reader inserts the number at
//! its place. Stored bytes are this JSON, or the same in Protobuf. They are checked, and decoded only if the current schema
//! would serve other bytes.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use apiloom_meta::codec::{Encoder, VersionPlace};
use apiloom_meta::managed_fields::ManagedFields;
use apiloom_meta::{ApiError, Object};
use apiloom_storage::Revision;
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;

use super::json::Json;
use super::kind_version::KindVersion;

/// The text before and after the digits of a resourceVersion.
const MEMBER: (&str, &str) = ("\"resourceVersion\":\"", "\"");

/// Limit for the writes that the cache has not taken: with so many it is not running, and will read them from the
/// store later.
const MAX_PENDING_WRITES: usize = 4096;

/// An object of the storage version, encoded.
pub(crate) struct PreparedObject {
    /// The bytes for the store, before they are encrypted.
    pub(crate) stored: Bytes,
    /// The JSON without resourceVersion; the same bytes, if JSON is stored.
    pub(crate) json: Bytes,
    /// Where the resourceVersion is inserted.
    place: VersionPlace,
}

/// Without the bytes, which may be secret.
impl fmt::Debug for PreparedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedObject")
            .field("bytes", &self.stored.len())
            .finish_non_exhaustive()
    }
}

impl PreparedObject {
    /// Encodes an object of the storage version; `store` makes the stored bytes of its JSON.
    ///
    /// # Errors
    /// InternalError for an object without metadata.
    pub(crate) fn new(
        object: &mut Object,
        version: &KindVersion,
        store: impl FnOnce(&Bytes) -> Bytes,
    ) -> Result<Self, ApiError> {
        // Removed from requests, and here once more in case a hook sets it.
        object.meta_mut().remove("selfLink");
        object.set_meta_str("resourceVersion", "");
        let json = Encoder::of(version.schema()).object(object);
        let entries = ManagedFields::value(object).and_then(Value::as_str);
        let place = Encoder::of(version.schema())
            .version_place(&json, entries.unwrap_or_default())
            .ok_or_else(|| ApiError::internal("an object without metadata cannot be stored"))?;
        Ok(Self {
            stored: store(&json),
            json,
            place,
        })
    }

    /// Recognizes stored bytes with this `json`, which reading and writing the object would not change; `None` if they
    /// differ, or if that cannot be decided without decoding.
    pub(crate) fn recognize(stored: &Bytes, json: Bytes, version: &KindVersion) -> Option<Self> {
        let metadata = json.strip_prefix(version.head.as_slice())?;
        // Without a name it is not an object.
        let name = metadata.strip_prefix(b"{\"name\":\"")?.first()?;
        if *name == b'"' {
            return None;
        }
        Some(Self {
            stored: stored.clone(),
            place: Encoder::of(version.schema()).verbatim(&json)?,
            json,
        })
    }

    /// Whether the JSON itself is stored: both are the same bytes then.
    pub(crate) fn is_stored_as_json(&self) -> bool {
        self.stored.as_ptr() == self.json.as_ptr()
    }

    /// Whether the served bytes at a revision are equal to this object.
    pub(crate) fn shows(&self, json: &[u8], revision: Revision) -> bool {
        let (before, behind) = self.json.split_at(self.place.at);
        json.starts_with(before) && json.ends_with(behind) && json == self.served(revision).whole()
    }

    /// The served document: the stored bytes with this revision as the resourceVersion.
    pub(crate) fn served(&self, revision: Revision) -> Json<'static> {
        let digits = revision.to_string();
        let (before, behind) = self.json.split_at(self.place.at);
        let comma = |is_there: bool| if is_there { &b","[..] } else { b"" };
        let parts = [
            before,
            comma(self.place.follows),
            MEMBER.0.as_bytes(),
            digits.as_bytes(),
            MEMBER.1.as_bytes(),
            comma(self.place.precedes),
            behind,
        ];
        let json = parts.concat();
        let (begin, end) = self.place.metadata;
        let put_in = json.len() - self.json.len();
        Json::with_metadata(json, (begin, end + put_in))
    }
}

/// A write in flight.
#[derive(Debug)]
pub(crate) struct PendingWrite {
    pub(crate) prepared: Arc<PreparedObject>,
    /// The bytes that the store is given: those of the object, or encrypted.
    pub(crate) stored: Bytes,
}

impl PendingWrite {
    /// Whether the object is stored as it is encoded.
    pub(crate) fn is_plain(&self) -> bool {
        self.stored.as_ptr() == self.prepared.stored.as_ptr()
    }
}

/// Encodings of writes in flight, so that the cache reuses them when the store reports the write.
#[derive(Debug, Default)]
pub(crate) struct PendingWrites(Mutex<HashMap<String, PendingWrite>>);

impl PendingWrites {
    /// Adds the encoding of a write that is about to begin.
    pub(crate) fn put(&self, key: &str, write: PendingWrite) {
        let mut pending_writes = self.0.lock();
        if pending_writes.len() >= MAX_PENDING_WRITES {
            pending_writes.clear();
        }
        pending_writes.insert(key.to_owned(), write);
    }

    /// Removes the encoding of a write that failed.
    pub(crate) fn remove(&self, key: &str, prepared: &Arc<PreparedObject>) {
        let mut pending_writes = self.0.lock();
        if pending_writes
            .get(key)
            .is_some_and(|held| Arc::ptr_eq(&held.prepared, prepared))
        {
            pending_writes.remove(key);
        }
    }

    /// Removes and returns the encoding of the object under a key, if the store has exactly these bytes.
    pub(crate) fn take(&self, key: &str, stored: &Bytes) -> Option<PendingWrite> {
        let mut pending_writes = self.0.lock();
        if pending_writes.get(key)?.stored == *stored {
            pending_writes.remove(key)
        } else {
            None
        }
    }
}
