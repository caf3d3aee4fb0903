//! An object as it is stored, encoded once for all who get it: the store, the client and the watch cache.
//!
//! What is stored is what is served, without its resourceVersion, which only the store can give. So the bytes are made
//! once, and a reader that shows the object puts the number into its place. Bytes that come out of the store are looked
//! at, and only decoded when today's schema would serve something else.

use std::collections::HashMap;
use std::sync::Arc;

use apiloom_meta::codec::{VersionPlace, encode_object, verbatim, version_place};
use apiloom_meta::{ApiError, Object};
use apiloom_storage::Revision;
use bytes::Bytes;
use parking_lot::Mutex;

use super::json::Json;
use super::kind_version::KindVersion;

/// What stands around the digits of a resourceVersion.
const MEMBER: (&str, &str) = ("\"resourceVersion\":\"", "\"");

/// Beyond so many objects that the cache did not fetch, it is not listening, and will read them from the store.
const MAX_HANDED: usize = 4096;

/// An object in the version it is stored in, as bytes.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The bytes for the store.
    pub(crate) stored: Bytes,
    /// Where the resourceVersion belongs in them.
    place: VersionPlace,
}

impl Prepared {
    /// Encodes an object of the storage version.
    ///
    /// # Errors
    /// InternalError for an object without metadata.
    pub(crate) fn new(object: &mut Object, version: &KindVersion) -> Result<Self, ApiError> {
        let meta = object.meta_mut();
        // managedFields are not kept yet; they are dropped on the way in, and here once more for hooks that set them.
        for field in ["selfLink", "managedFields"] {
            meta.remove(field);
        }
        object.set_meta_str("resourceVersion", "");
        let stored = encode_object(object, version.schema());
        let place = version_place(&stored, version.schema())
            .ok_or_else(|| ApiError::internal("an object without metadata cannot be stored"))?;
        Ok(Self { stored, place })
    }

    /// Stored bytes that are just what they would be if the object were read and written again; `None` if they are not,
    /// or if that takes decoding to tell.
    pub(crate) fn recognize(stored: &Bytes, version: &KindVersion) -> Option<Self> {
        let metadata = stored.strip_prefix(version.head.as_slice())?;
        // Without a name it is no object.
        let name = metadata.strip_prefix(b"{\"name\":\"")?.first()?;
        if *name == b'"' {
            return None;
        }
        Some(Self {
            stored: stored.clone(),
            place: verbatim(stored, version.schema())?,
        })
    }

    /// Whether a document as it is served at a revision is this one.
    pub(crate) fn shows(&self, json: &[u8], revision: Revision) -> bool {
        let (before, behind) = self.stored.split_at(self.place.at);
        json.starts_with(before) && json.ends_with(behind) && json == self.served(revision).whole()
    }

    /// The document as it is served when this revision wrote it.
    pub(crate) fn served(&self, revision: Revision) -> Json<'static> {
        let digits = revision.to_string();
        let (before, behind) = self.stored.split_at(self.place.at);
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
        let put_in = json.len() - self.stored.len();
        Json::with_metadata(json, (begin, end + put_in))
    }
}

/// Objects that this server is writing, for its watch cache: it will be told of the bytes that it need not decode then.
#[derive(Debug, Default)]
pub(crate) struct Handed(Mutex<HashMap<String, Arc<Prepared>>>);

impl Handed {
    /// Keeps an object for the cache until it comes from the store.
    pub(crate) fn put(&self, key: &str, prepared: Arc<Prepared>) {
        let mut handed = self.0.lock();
        if handed.len() >= MAX_HANDED {
            handed.clear();
        }
        handed.insert(key.to_owned(), prepared);
    }

    /// Forgets an object that was not written.
    pub(crate) fn forget(&self, key: &str, prepared: &Arc<Prepared>) {
        let mut handed = self.0.lock();
        if handed
            .get(key)
            .is_some_and(|held| Arc::ptr_eq(held, prepared))
        {
            handed.remove(key);
        }
    }

    /// The object that the store now has under a key, if these are the bytes that were written there.
    pub(crate) fn take(&self, key: &str, stored: &Bytes) -> Option<Arc<Prepared>> {
        let mut handed = self.0.lock();
        match handed.get(key)?.stored == *stored {
            true => handed.remove(key),
            false => None,
        }
    }
}
