//! State of a kind with listers: its watch cache keeps typed values, and its writes wait for that cache.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use apiloom_meta::{Object, Resource};
use apiloom_storage::Revision;
use apiloom_storage::cache::CacheProgress;
use tokio::sync::watch;

use super::kind_version::VersionIndex;

/// How long a write waits for the watch cache. After that it is acknowledged, since it is durable, and listers return an
/// error until the cache has it.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// A type-erased typed value of an object.
pub(crate) type TypedObject = Arc<dyn Any + Send + Sync>;

/// Decodes an object as the type, in the version of the type.
pub(crate) type DecodeTyped = fn(&Object) -> Result<TypedObject, serde_json::Error>;

/// A type of listers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypedView {
    /// The version of the type.
    pub(crate) version: VersionIndex,
    pub(crate) decode: DecodeTyped,
}

/// Decodes an object as `K`.
pub(crate) fn decode_typed<K: Resource>(object: &Object) -> Result<TypedObject, serde_json::Error> {
    Ok(Arc::new(object.to_typed::<K>()?))
}

/// The views of a kind that has listers, and the progress of its watch cache.
#[derive(Debug)]
pub(crate) struct ListedKind {
    /// The types of the listers. The cache keeps a typed value of each object for each of them, in this order.
    pub(crate) views: Vec<TypedView>,
    /// How far the cache has come.
    pub(crate) progress: watch::Receiver<CacheProgress>,
}

impl ListedKind {
    /// Waits until the cache has a write, so that listers return it after it is acknowledged. Does not wait for a cache
    /// that is not filled: it reads the write when it is.
    pub(crate) async fn wait_for(&self, revision: Revision) {
        if !self.progress.borrow().fill.is_filled() {
            return;
        }
        let mut progress = self.progress.clone();
        let has_come = |progress: &CacheProgress| progress.revision >= revision;
        let waited = tokio::time::timeout(MAX_WAIT, progress.wait_for(has_come)).await;
        if waited.is_err() {
            tracing::warn!(%revision, "the watch cache of a listed kind is behind a write");
        }
    }
}
