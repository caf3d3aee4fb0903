//! The last steps of a write: encoding, size, the calls of the store, and the loop that repeats a write after a conflict.
//!
//! A first attempt may start from the cached object, because the store writes only if the object is still at that
//! revision. A refusal and a dry run are not decided by a cached object, which may be outdated: the attempt is repeated
//! with the stored one. So is a write without change, unless the stored object is what the attempt would have stored. Where no
//! other process writes to the store, it is enough that the cache has reached the store's revision.

use std::sync::Arc;

use apiloom_meta::{ApiError, Object};
use apiloom_storage::cache::Fill;
use apiloom_storage::{Revision, StorageError};
use bytes::Bytes;

use super::results::WrittenObject;
use super::settings::WriteSettings;
use crate::large::check_wanted;
use crate::objects::document::EncodedObject;
use crate::objects::kind_cache::CATCH_UP;
use crate::objects::prepared_object::{PendingWrite, PreparedObject};
use crate::objects::present_object::PresentObject;
use crate::objects::versioned_resource::VersionedResource;

/// The result of one attempt to write.
pub(crate) enum Attempt<T> {
    /// The store has accepted the write.
    Written(T),
    /// Another write came first; contains the object that it stored, if any.
    Conflict(Option<PresentObject>),
    /// The write changes nothing; contains what it would have stored, or `None` if the cache alone can say that this is stored.
    Unchanged(T, Option<Arc<PreparedObject>>),
    /// The write is refused, or is a dry run. Final only if the attempt started from the stored object.
    Decided(Result<T, ApiError>),
}

/// Writes the objects of a resource to its store.
#[derive(Debug)]
pub(crate) struct Commit {
    resource: Arc<VersionedResource>,
    settings: Arc<WriteSettings>,
}

impl Commit {
    pub(super) fn new(resource: Arc<VersionedResource>, settings: Arc<WriteSettings>) -> Self {
        Self { resource, settings }
    }

    /// Repeats a write until it succeeds, or is decided with the stored object. Each attempt starts from the current
    /// object. There is no limit for the number of attempts: each conflict means that another write succeeded, and the
    /// request's deadline ends the loop.
    ///
    /// # Errors
    /// Those of the attempts and of the store.
    pub(crate) async fn retry_on_conflict<T, F>(
        &self,
        key: &str,
        operation: &str,
        mut attempt: impl FnMut(Option<PresentObject>) -> F,
    ) -> Result<T, ApiError>
    where
        F: Future<Output = Result<Attempt<T>, ApiError>>,
    {
        let mut present = self.present(key, operation).await?;
        loop {
            // An absent object was looked up in the store: `present` does not trust the cache for it.
            let cached = present.as_ref().and_then(PresentObject::cached).cloned();
            present = match (attempt(present).await?, cached) {
                (Attempt::Written(result), _) => return Ok(result),
                (Attempt::Conflict(present), _) => present,
                (Attempt::Unchanged(result, _), None) => return Ok(result),
                (Attempt::Unchanged(result, prepared), Some(cached)) => {
                    if self.is_current(key, &cached).await {
                        return Ok(result);
                    }
                    let stored = self.stored(key, operation).await?;
                    let is_confirmed = |stored: &PresentObject| {
                        stored.revision() == cached.revision()
                            && (prepared.as_deref()).is_some_and(|prepared| {
                                stored.is_unchanged_by(&self.resource.kind, prepared)
                            })
                    };
                    if stored.as_ref().is_some_and(is_confirmed) {
                        return Ok(result);
                    }
                    stored
                }
                (Attempt::Decided(result), None) => return result,
                (Attempt::Decided(_), Some(_)) => self.stored(key, operation).await?,
            };
        }
    }

    /// The result of an attempt whose write the store refused: a conflict, or the error.
    pub(crate) fn conflict_or_error<T>(
        &self,
        error: StorageError,
        operation: &str,
    ) -> Result<Attempt<T>, ApiError> {
        match error {
            StorageError::Conflict { present, .. } => {
                Ok(Attempt::Conflict(present.map(PresentObject::Stored)))
            }
            other => Err(self.resource.kind.error(other, operation)),
        }
    }

    /// Whether the cache alone can say that an object is stored as it is cached: in its stored form, not encrypted, and in a
    /// store that no other process writes to. Where others write, waiting for the cache would cost more than reading the object.
    pub(crate) fn is_known_by_cache(&self, cached: &EncodedObject) -> bool {
        let kind = &self.resource.kind;
        cached.is_in_stored_form() && kind.cipher.is_identity() && !kind.store.is_shared()
    }

    /// Whether the cache says that an object is still as it was cached.
    async fn is_current(&self, key: &str, cached: &EncodedObject) -> bool {
        let Some(cache) = &self.resource.cache else {
            return false;
        };
        if !self.is_known_by_cache(cached) || !matches!(cache.fill(), Fill::Following) {
            return false;
        }
        let came = matches!(cache.reach_present(CATCH_UP).await, Ok(true));
        came && (cache.snapshot().get(key)).is_some_and(|item| cached.is_of(item))
    }

    /// The current object of a key: from the watch cache if it has it, else from the store.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn present(
        &self,
        key: &str,
        operation: &str,
    ) -> Result<Option<PresentObject>, ApiError> {
        let cached = self.resource.cache.as_ref().and_then(|cache| {
            let state = cache.snapshot();
            EncodedObject::new(state.get(key)?, None).ok()
        });
        match cached {
            Some(cached) => Ok(Some(PresentObject::Cached(cached))),
            None => self.stored(key, operation).await,
        }
    }

    /// The current object of a key, from the store.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn stored(
        &self,
        key: &str,
        operation: &str,
    ) -> Result<Option<PresentObject>, ApiError> {
        let entry = self.resource.kind.get(key, operation).await?;
        Ok(entry.map(|entry| PresentObject::Stored(Box::new(entry))))
    }

    /// Checks the size of an object, as JSON without its resourceVersion, against the limit. A stored object above the limit, written when that was
    /// higher, may still be made smaller.
    ///
    /// # Errors
    /// RequestEntityTooLarge.
    pub(crate) fn check_size(
        &self,
        prepared: &PreparedObject,
        present: Option<&PresentObject>,
    ) -> Result<(), ApiError> {
        let (limit, len) = (self.settings.max_object_bytes, prepared.json.len());
        // The cached object may be outdated; after a refusal the attempt is repeated with the stored one.
        let shrinks = || {
            present.is_some_and(|present| match present {
                PresentObject::Stored(entry) => {
                    let stored = self.resource.kind.json_len(entry);
                    stored.is_some_and(|stored| len < stored)
                }
                PresentObject::Cached(_) => false,
            })
        };
        if len <= limit || shrinks() {
            Ok(())
        } else {
            Err(ApiError::too_large(limit))
        }
    }

    /// Creates an object in the store or, with an `expected` revision, updates the one of that revision.
    pub(crate) async fn store(
        &self,
        key: &str,
        prepared: &Arc<PreparedObject>,
        expected: Option<Revision>,
    ) -> Result<Revision, StorageError> {
        check_complete()?;
        let kind = &self.resource.kind;
        let strategy = kind.versions.strategy(self.resource.version);
        let ttl = strategy.and_then(|(_, strategy)| strategy.ttl());
        let bytes = self.begin_write(key, prepared)?;
        let written = match expected {
            None => kind.store.create(key, bytes, ttl).await,
            Some(expected) => kind.store.update_if(key, expected, bytes, ttl).await,
        };
        self.end_write(key, prepared, written).await
    }

    /// Stores an object of a revision in another form; it keeps its remaining time to live.
    pub(crate) async fn rewrite(
        &self,
        key: &str,
        prepared: &Arc<PreparedObject>,
        expected: Revision,
    ) -> Result<Revision, StorageError> {
        let bytes = self.begin_write(key, prepared)?;
        let store = &self.resource.kind.store;
        let written = store.rewrite_if(key, expected, bytes).await;
        self.end_write(key, prepared, written).await
    }

    /// The bytes to write, encrypted. The encoding is kept for the watch cache, see `pending_writes`.
    fn begin_write(
        &self,
        key: &str,
        prepared: &Arc<PreparedObject>,
    ) -> Result<Bytes, StorageError> {
        let kind = &self.resource.kind;
        let bytes = kind.seal(key, &prepared.stored)?;
        if self.resource.cache.is_some() {
            let prepared = Arc::clone(prepared);
            let stored = bytes.clone();
            let write = PendingWrite { prepared, stored };
            kind.pending_writes.put(key, write);
        }
        Ok(bytes)
    }

    /// Waits until listers show a write, or forgets the encoding of one that failed.
    async fn end_write(
        &self,
        key: &str,
        prepared: &Arc<PreparedObject>,
        written: Result<Revision, StorageError>,
    ) -> Result<Revision, StorageError> {
        let kind = &self.resource.kind;
        match &written {
            Ok(revision) => kind.acknowledge(*revision).await,
            Err(_) => kind.pending_writes.remove(key, prepared),
        }
        written
    }

    /// Deletes an object of the store if it is at the `expected` revision.
    pub(crate) async fn delete_stored(
        &self,
        key: &str,
        expected: Revision,
    ) -> Result<Revision, StorageError> {
        check_complete()?;
        let kind = &self.resource.kind;
        let deleted = kind.store.delete_if(key, expected).await;
        if let Ok(revision) = &deleted {
            kind.acknowledge(*revision).await;
        }
        deleted
    }

    /// The written object in the version of the request, as a read returns it.
    pub(crate) async fn written(
        &self,
        key: &str,
        prepared: &PreparedObject,
        revision: Revision,
        mut object: Object,
    ) -> Result<WrittenObject, ApiError> {
        if self.resource.version == self.resource.kind.versions.stored {
            object.set_meta_str("resourceVersion", &revision.to_string());
            let json = Some(prepared.served(revision));
            return Ok(WrittenObject { object, json });
        }
        let (kind, version) = (&self.resource.kind, self.resource.version);
        let object = kind
            .read_plain_in(key, &prepared.json, revision, version)
            .await?;
        Ok(object.into())
    }

    /// Deletes an object that was stored at this revision, even if it was changed meanwhile. Another object of its name stays.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn undo_create(
        &self,
        key: &str,
        object: &Object,
        mut revision: Revision,
    ) -> Result<(), ApiError> {
        let kind = &self.resource.kind;
        loop {
            let present = match self.delete_stored(key, revision).await {
                Err(StorageError::Conflict {
                    present: Some(present),
                    ..
                }) => present,
                Ok(_) | Err(StorageError::Conflict { present: None, .. }) => return Ok(()),
                Err(error) => return Err(kind.error(error, "delete")),
            };
            let (changed, _) = kind.decode(&present.key, &present.value, present.revision)?;
            if changed.uid() != object.uid() {
                return Ok(());
            }
            revision = present.revision;
        }
    }
}

/// Fails if the work that made a write was interrupted: the write may be a part of what it should be.
fn check_complete() -> Result<(), StorageError> {
    check_wanted().map_err(|error| StorageError::Unavailable(error.message))
}
