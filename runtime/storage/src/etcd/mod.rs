//! The etcd backend: one store for several servers, in the layout of kube-apiserver.
//!
//! Keys and values are stored unchanged; every write is one transaction that compares the key's revision. One watch of
//! etcd serves all watchers through the [`Feed`](crate::feed::Feed); a watcher that is behind reads etcd's history. Keys with a time to
//! live share leases, and so may expire together in one revision.

mod changes;
mod compactor;
mod config;
mod failure;
mod history;
mod lease;
mod list;
mod members;
mod past;
mod pump;
mod single_flight;
mod store;
mod version;
mod wire;
mod write;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use etcd_client::GetOptions;
use tokio::task::AbortHandle;

pub use config::{ConnectError, EtcdConfig, EtcdTls};
pub use store::Etcd;

use self::wire::Range;
use self::write::Precondition;
use crate::op::Expiry;
use crate::{Entry, ListRequest, Page, Revision, Storage, StorageError, WatchStart, WatchStream};

#[async_trait]
impl Storage for Etcd {
    async fn get(&self, key: &str) -> Result<(Option<Entry>, Revision), StorageError> {
        self.entry(key).await
    }

    async fn list(&self, request: ListRequest) -> Result<Page, StorageError> {
        self.check_open()?;
        self.list_pages(&request).await
    }

    async fn count(&self, prefix: &str) -> Result<u64, StorageError> {
        self.check_open()?;
        let options = GetOptions::new().with_count_only();
        let answer = self.range(&Range::of_prefix(prefix), options).await?;
        Ok(answer.count.unsigned_abs())
    }

    async fn create(
        &self,
        key: &str,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> Result<Revision, StorageError> {
        self.check_open()?;
        match self
            .put(key, Precondition::Nothing, value, ttl.into())
            .await?
        {
            Ok(revision) => Ok(revision),
            Err(Some(present)) => Err(StorageError::Exists(Box::new(present))),
            Err(None) => Err(StorageError::Unavailable(format!(
                "etcd says of {key:?} both that it is there and that it is not"
            ))),
        }
    }

    async fn update_if(
        &self,
        key: &str,
        expected: Revision,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> Result<Revision, StorageError> {
        self.check_open()?;
        let done = self
            .put(key, Precondition::Revision(expected), value, ttl.into())
            .await?;
        done.map_err(|present| conflict(key, present))
    }

    async fn rewrite_if(
        &self,
        key: &str,
        expected: Revision,
        value: Bytes,
    ) -> Result<Revision, StorageError> {
        self.check_open()?;
        let done = self
            .put(key, Precondition::Revision(expected), value, Expiry::Kept)
            .await?;
        done.map_err(|present| conflict(key, present))
    }

    async fn delete_if(&self, key: &str, expected: Revision) -> Result<Revision, StorageError> {
        self.check_open()?;
        let done = self.delete(key, Precondition::Revision(expected)).await?;
        done.map_err(|present| conflict(key, present))
    }

    async fn watch(&self, prefix: &str, start: WatchStart) -> Result<WatchStream, StorageError> {
        self.check_open()?;
        let (after, present) = match start {
            WatchStart::Now => {
                let present = self.history.current_revision().await?;
                (present, present)
            }
            WatchStart::After(after) => match self.history.check_kept(after).await {
                Ok(present) => (after, present),
                Err(failure) => return Err(self.history.error(failure, after).await),
            },
        };
        // Writes acknowledged before this call count as history for this watch, and its first progress covers them.
        self.catch_up(present).await?;
        let start = WatchStart::After(after);
        Ok(self.feed.watch(prefix, start, Arc::clone(&self.history)))
    }

    async fn request_progress(&self) -> Result<(), StorageError> {
        self.check_open()?;
        self.catch_up(self.present().await?).await?;
        self.feed.request_progress();
        Ok(())
    }

    async fn current_revision(&self) -> Result<Revision, StorageError> {
        self.check_open()?;
        Ok(self.present().await?)
    }

    async fn health(&self) -> Result<(), StorageError> {
        let asked = async {
            self.current_revision().await?;
            Ok(self.status().await?)
        };
        let status = asked.await.map_err(|error: StorageError| {
            // The address of etcd is only for the operator, not for clients.
            tracing::warn!(%error, "etcd is not healthy");
            StorageError::Unavailable("etcd does not answer".to_owned())
        })?;
        // As `memberID:10276657743932975437 alarm:NOSPACE `.
        let raised = |error: &String| Some(error.split_once("alarm:")?.1.trim().to_owned());
        match status.errors().iter().find_map(raised) {
            None => Ok(()),
            Some(alarm) => Err(StorageError::Refused(format!(
                "etcd takes no writes, its alarm {alarm} is raised"
            ))),
        }
    }

    fn is_shared(&self) -> bool {
        true
    }

    async fn size_bytes(&self) -> Result<Option<u64>, StorageError> {
        self.check_open()?;
        Ok(Some(self.status().await?.db_size().unsigned_abs()))
    }

    async fn compact(&self, revision: Revision) -> Result<(), StorageError> {
        self.check_open()?;
        if revision == Revision(0) {
            return Ok(());
        }
        match compactor::compact(&self.members, revision).await {
            Ok(()) => Ok(()),
            Err(failure) => Err(self.history.error(failure, revision).await),
        }
    }

    async fn close(&self) {
        if self.closed.swap(true, Ordering::Relaxed) {
            return;
        }
        // Deliver all acknowledged writes to the watchers first; if etcd is unavailable they get what was received
        // before.
        let caught_up = match self.history.current_revision().await {
            Ok(present) => self.catch_up(present).await,
            Err(failure) => Err(failure),
        };
        if let Err(failure) = caught_up {
            tracing::warn!(%failure, "closed without delivering the last changes to watchers");
        }
        self.feed.close();
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

fn conflict(key: &str, present: Option<Entry>) -> StorageError {
    StorageError::Conflict {
        key: key.to_owned(),
        present: present.map(Box::new),
    }
}
