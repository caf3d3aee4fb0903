//! The lease by which one of several servers over a store runs a controller.
//!
//! It is a Lease of coordination.k8s.io/v1 in the store itself, not an object that is served: servers need not serve
//! Leases for it, and none of their clients can take it.

use std::sync::Arc;

use apiloom_client::controller::{Lease, LeaseError, LeaseStore};
use apiloom_storage::{Entry, Revision, Storage, StorageError};
use bytes::Bytes;
use futures_util::future::BoxFuture;

/// A Lease in the store, by which one of several servers runs a controller.
pub(in crate::server) struct StoredLease {
    store: Arc<dyn Storage>,
    key: String,
}

impl StoredLease {
    /// The lease of the controller with this name; `prefix` is that of all keys of the servers.
    pub(in crate::server) fn new(store: Arc<dyn Storage>, prefix: &str, controller: &str) -> Self {
        Self {
            store,
            key: format!("{prefix}/apiloom/leases/{controller}"),
        }
    }

    async fn read(&self) -> Result<Option<Lease>, LeaseError> {
        let (entry, _) = self.store.get(&self.key).await.map_err(error)?;
        entry.map(|entry| decode(&entry)).transpose()
    }

    async fn create_new(&self, mut lease: Lease) -> Result<Lease, LeaseError> {
        for (name, value) in [("kind", "Lease"), ("apiVersion", "coordination.k8s.io/v1")] {
            lease.other.insert(name.to_owned(), value.into());
        }
        let created = self
            .store
            .create(&self.key, encode(&mut lease)?, None)
            .await;
        Ok(at(lease, created.map_err(error)?))
    }

    async fn replace(&self, mut lease: Lease) -> Result<Lease, LeaseError> {
        let version = lease.metadata.resource_version.as_deref();
        let version = version.and_then(|version| version.parse().ok());
        let expected = Revision(version.ok_or(LeaseError::Conflict)?);
        let value = encode(&mut lease)?;
        let updated = self.store.update_if(&self.key, expected, value, None).await;
        Ok(at(lease, updated.map_err(error)?))
    }
}

impl LeaseStore for StoredLease {
    fn get(&self) -> BoxFuture<'_, Result<Option<Lease>, LeaseError>> {
        Box::pin(self.read())
    }

    fn create(&self, lease: Lease) -> BoxFuture<'_, Result<Lease, LeaseError>> {
        Box::pin(self.create_new(lease))
    }

    fn update(&self, lease: Lease) -> BoxFuture<'_, Result<Lease, LeaseError>> {
        Box::pin(self.replace(lease))
    }
}

/// The JSON to store, which does not have the resourceVersion.
fn encode(lease: &mut Lease) -> Result<Bytes, LeaseError> {
    lease.metadata.resource_version = None;
    let json = serde_json::to_vec(lease).map_err(other)?;
    Ok(json.into())
}

fn decode(entry: &Entry) -> Result<Lease, LeaseError> {
    let lease = serde_json::from_slice(&entry.value).map_err(other)?;
    Ok(at(lease, entry.revision))
}

fn at(mut lease: Lease, revision: Revision) -> Lease {
    lease.metadata.resource_version = Some(revision.to_string());
    lease
}

fn error(error: StorageError) -> LeaseError {
    match error {
        StorageError::Exists(_) | StorageError::Conflict { .. } => LeaseError::Conflict,
        error => other(error),
    }
}

fn other(error: impl std::error::Error + Send + Sync + 'static) -> LeaseError {
    LeaseError::Other(Box::new(error))
}

#[cfg(test)]
mod tests {
    use apiloom_storage::Memory;

    use super::*;

    #[tokio::test]
    async fn a_lease_is_written_once_for_each_version() {
        let store: Arc<dyn Storage> = Memory::new();
        let [one, other] =
            [(); 2].map(|()| StoredLease::new(Arc::clone(&store), "/registry", "tidier"));
        assert!(one.get().await.unwrap().is_none());
        let mut lease = Lease::default();
        lease.spec.holder_identity = Some("one".to_owned());
        let created = one.create(lease.clone()).await.unwrap();
        let conflict = other.create(lease).await.unwrap_err();
        assert!(matches!(conflict, LeaseError::Conflict), "{conflict}");
        let read = other.get().await.unwrap().unwrap();
        assert_eq!(read, created);
        assert_eq!(read.other["kind"], "Lease");
        let renewed = one.update(created).await.unwrap();
        let conflict = other.update(read).await.unwrap_err();
        assert!(matches!(conflict, LeaseError::Conflict), "{conflict}");
        assert_eq!(other.get().await.unwrap(), Some(renewed));
    }
}
