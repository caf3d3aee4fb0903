//! Wrappers around a store, as tests need them: calls that a layer does not override go to the inner store.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{Entry, ListRequest, Page, Revision, Storage, StorageError, WatchStart, WatchStream};

/// A wrapper around another store. Every method delegates unless it is overridden; [`Storage`] documents them.
#[async_trait]
#[allow(
    clippy::missing_errors_doc,
    reason = "the methods are those of Storage, which says when they fail"
)]
pub trait Layer: Send + Sync + fmt::Debug + 'static {
    /// The inner store.
    fn behind(&self) -> &dyn Storage;

    /// [`Storage::get`].
    async fn get(&self, key: &str) -> Result<(Option<Entry>, Revision), StorageError> {
        self.behind().get(key).await
    }
    /// [`Storage::list`].
    async fn list(&self, request: ListRequest) -> Result<Page, StorageError> {
        self.behind().list(request).await
    }
    /// [`Storage::count`].
    async fn count(&self, prefix: &str) -> Result<u64, StorageError> {
        self.behind().count(prefix).await
    }
    /// [`Storage::watch`].
    async fn watch(&self, prefix: &str, start: WatchStart) -> Result<WatchStream, StorageError> {
        self.behind().watch(prefix, start).await
    }
    /// [`Storage::request_progress`].
    async fn request_progress(&self) -> Result<(), StorageError> {
        self.behind().request_progress().await
    }
    /// [`Storage::current_revision`].
    async fn current_revision(&self) -> Result<Revision, StorageError> {
        self.behind().current_revision().await
    }
    /// [`Storage::compact`].
    async fn compact(&self, revision: Revision) -> Result<(), StorageError> {
        self.behind().compact(revision).await
    }
    /// [`Storage::delete_if`].
    async fn delete_if(&self, key: &str, expected: Revision) -> Result<Revision, StorageError> {
        self.behind().delete_if(key, expected).await
    }
    /// [`Storage::rewrite_if`].
    async fn rewrite_if(
        &self,
        key: &str,
        expected: Revision,
        value: Bytes,
    ) -> Result<Revision, StorageError> {
        self.behind().rewrite_if(key, expected, value).await
    }
    /// [`Storage::is_shared`].
    fn is_shared(&self) -> bool {
        self.behind().is_shared()
    }
    /// [`Storage::close`].
    async fn close(&self) {
        self.behind().close().await;
    }
}

/// Other writes and operator calls are always delegated.
#[async_trait]
impl<L: Layer> Storage for L {
    async fn get(&self, key: &str) -> Result<(Option<Entry>, Revision), StorageError> {
        Layer::get(self, key).await
    }
    async fn list(&self, request: ListRequest) -> Result<Page, StorageError> {
        Layer::list(self, request).await
    }
    async fn count(&self, prefix: &str) -> Result<u64, StorageError> {
        Layer::count(self, prefix).await
    }
    async fn create(
        &self,
        key: &str,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> Result<Revision, StorageError> {
        self.behind().create(key, value, ttl).await
    }
    async fn update_if(
        &self,
        key: &str,
        expected: Revision,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> Result<Revision, StorageError> {
        self.behind().update_if(key, expected, value, ttl).await
    }
    async fn rewrite_if(
        &self,
        key: &str,
        expected: Revision,
        value: Bytes,
    ) -> Result<Revision, StorageError> {
        Layer::rewrite_if(self, key, expected, value).await
    }
    async fn delete_if(&self, key: &str, expected: Revision) -> Result<Revision, StorageError> {
        Layer::delete_if(self, key, expected).await
    }
    async fn watch(&self, prefix: &str, start: WatchStart) -> Result<WatchStream, StorageError> {
        Layer::watch(self, prefix, start).await
    }
    async fn request_progress(&self) -> Result<(), StorageError> {
        Layer::request_progress(self).await
    }
    async fn current_revision(&self) -> Result<Revision, StorageError> {
        Layer::current_revision(self).await
    }
    async fn compact(&self, revision: Revision) -> Result<(), StorageError> {
        Layer::compact(self, revision).await
    }
    async fn health(&self) -> Result<(), StorageError> {
        self.behind().health().await
    }
    fn is_shared(&self) -> bool {
        Layer::is_shared(self)
    }
    async fn size_bytes(&self) -> Result<Option<u64>, StorageError> {
        self.behind().size_bytes().await
    }
    async fn close(&self) {
        Layer::close(self).await;
    }
}
