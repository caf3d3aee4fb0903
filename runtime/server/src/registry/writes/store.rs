//! The last steps of a write: the calls of the store, and the result for a written object.

use std::sync::Arc;

use apiloom_meta::{ApiError, Object};
use apiloom_storage::{Revision, StorageError};

use super::Writes;
use super::results::WrittenObject;
use crate::registry::large::check_wanted;
use crate::registry::objects::prepared_object::PreparedObject;

impl Writes {
    /// Creates an object in the store or, with an `expected` revision, updates the one of that revision. The encoding is
    /// kept for the watch cache, see `pending_writes`.
    pub(crate) async fn store(
        &self,
        key: &str,
        prepared: &Arc<PreparedObject>,
        expected: Option<Revision>,
    ) -> Result<Revision, StorageError> {
        check_complete()?;
        let kind = &self.resource.kind;
        if self.resource.cache.is_some() {
            kind.pending_writes.put(key, Arc::clone(prepared));
        }
        let bytes = prepared.stored.clone();
        let strategy = kind.strategy(self.resource.version);
        let ttl = strategy.and_then(|(_, strategy)| strategy.ttl());
        let written = match expected {
            None => kind.store.create(key, bytes, ttl).await,
            Some(expected) => kind.store.update_if(key, expected, bytes, ttl).await,
        };
        match &written {
            Ok(revision) => kind.acknowledge(*revision).await,
            Err(_) => kind.pending_writes.remove(key, prepared),
        }
        written
    }

    /// Stores an object of a revision in another form; it keeps its remaining time to live.
    pub(crate) async fn rewrite(
        &self,
        key: &str,
        prepared: &Arc<PreparedObject>,
        expected: Revision,
    ) -> Result<Revision, StorageError> {
        let kind = &self.resource.kind;
        if self.resource.cache.is_some() {
            kind.pending_writes.put(key, Arc::clone(prepared));
        }
        let bytes = prepared.stored.clone();
        let written = kind.store.rewrite_if(key, expected, bytes).await;
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
        if self.resource.version == self.resource.kind.storage_version {
            object.set_meta_str("resourceVersion", &revision.to_string());
            let json = Some(prepared.served(revision));
            return Ok(WrittenObject { object, json });
        }
        let (kind, version) = (&self.resource.kind, self.resource.version);
        let object = kind.read_in(key, &prepared.json, revision, version).await?;
        Ok(object.into())
    }
}

/// Fails if the work that made a write was interrupted: the write may be a part of what it should be.
fn check_complete() -> Result<(), StorageError> {
    check_wanted().map_err(|error| StorageError::Unavailable(error.message))
}
