//! A store for tests in which two writes share one revision, as the puts of one transaction in etcd do.
//!
//! The invariant: readers and watchers see both writes of a revision or none of them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use tokio::sync::Mutex;

use crate::{
    Entry, Event, ListRequest, Memory, Page, Revision, Storage, StorageError, WatchItem,
    WatchStart, WatchStream,
};

/// Takes the second half of a revision whose first half is a single write.
const PADDING: &str = "/padding/key";

/// A memory store whose revisions hold two writes each. A single write shares its revision with a write to a key
/// outside every other prefix.
#[derive(Debug)]
pub struct PairedStore {
    /// Revisions 2n-1 and 2n of the inner store are revision n here.
    store: Arc<Memory>,
    /// Held while both writes of a revision are made and during every read.
    whole: Mutex<()>,
}

impl PairedStore {
    /// An empty store.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            store: Memory::new(),
            whole: Mutex::new(()),
        })
    }

    /// Two writes at one revision: a value to put, or `None` to delete the key.
    ///
    /// # Errors
    /// Those of the memory store.
    pub async fn transact(
        &self,
        writes: [(&str, Option<Bytes>); 2],
    ) -> Result<Revision, StorageError> {
        let _whole = self.whole.lock().await;
        for (key, value) in writes {
            self.write(key, value).await?;
        }
        Ok(paired(self.store.current_revision().await?))
    }

    async fn write(&self, key: &str, value: Option<Bytes>) -> Result<(), StorageError> {
        let (present, _) = self.store.get(key).await?;
        let written = match (present, value) {
            (None, Some(value)) => self.store.create(key, value, None).await,
            (Some(present), Some(value)) => {
                let revision = present.revision;
                self.store.update_if(key, revision, value, None).await
            }
            (Some(present), None) => self.store.delete_if(key, present.revision).await,
            (None, None) => self.pad().await,
        };
        written.map(|_| ())
    }

    async fn pad(&self) -> Result<Revision, StorageError> {
        let (present, _) = self.store.get(PADDING).await?;
        let value = Bytes::from_static(b"{}");
        match present {
            None => self.store.create(PADDING, value, None).await,
            Some(present) => {
                let revision = present.revision;
                self.store.update_if(PADDING, revision, value, None).await
            }
        }
    }

    /// Completes the revision of a single write.
    async fn single(
        &self,
        written: Result<Revision, StorageError>,
    ) -> Result<Revision, StorageError> {
        let revision = written.map_err(failure)?;
        self.pad().await?;
        Ok(paired(revision))
    }

    /// The inner store's revision of a key, if the key holds the write at `expected`.
    async fn expected(&self, key: &str, expected: Revision) -> Result<Revision, StorageError> {
        let (present, _) = self.store.get(key).await?;
        match present {
            Some(entry) if paired(entry.revision) == expected => Ok(entry.revision),
            present => Err(StorageError::Conflict {
                key: key.to_owned(),
                present: present.map(|present| Box::new(entry(present))),
            }),
        }
    }
}

fn paired(revision: Revision) -> Revision {
    Revision(revision.0.div_ceil(2))
}

fn last_of(revision: Revision) -> Revision {
    Revision(revision.0.saturating_mul(2))
}

fn entry(entry: Entry) -> Entry {
    Entry {
        revision: paired(entry.revision),
        ..entry
    }
}

fn failure(error: StorageError) -> StorageError {
    match error {
        StorageError::Exists(present) => StorageError::Exists(Box::new(entry(*present))),
        StorageError::Conflict { key, present } => StorageError::Conflict {
            key,
            present: present.map(|present| Box::new(entry(*present))),
        },
        StorageError::Compacted {
            requested,
            compacted,
        } => StorageError::Compacted {
            requested: paired(requested),
            compacted: paired(compacted),
        },
        StorageError::Future { requested, current } => StorageError::Future {
            requested: paired(requested),
            current: paired(current),
        },
        other => other,
    }
}

/// The changes of a watch, with the two of one revision delivered together.
struct Changes {
    changes: WatchStream,
    /// The first change of a revision, held until the other one is known.
    held: Option<Event>,
    ready: VecDeque<WatchItem>,
}

impl Changes {
    async fn next(&mut self) -> Option<Result<WatchItem, StorageError>> {
        while self.ready.is_empty() {
            match self.changes.next().await? {
                Err(error) => return Some(Err(failure(error))),
                Ok(WatchItem::Progress(revision)) => {
                    self.release_before(revision);
                    let complete = Revision(revision.0 / 2);
                    self.ready.push_back(WatchItem::Progress(complete));
                }
                Ok(WatchItem::Event(event)) => {
                    self.release_before(event.revision);
                    if event.revision.0.is_multiple_of(2) {
                        self.ready.push_back(changed(event));
                    } else {
                        self.held = Some(event);
                    }
                }
            }
        }
        self.ready.pop_front().map(Ok)
    }

    /// Delivers a held change whose revision is complete at a later revision of the inner store.
    fn release_before(&mut self, revision: Revision) {
        if let Some(held) = self.held.take_if(|held| held.revision < revision) {
            self.ready.push_back(changed(held));
        }
    }
}

fn changed(event: Event) -> WatchItem {
    WatchItem::Event(Event {
        revision: paired(event.revision),
        previous: event
            .previous
            .map(|(value, revision)| (value, paired(revision))),
        ..event
    })
}

#[async_trait]
impl Storage for PairedStore {
    async fn get(&self, key: &str) -> Result<(Option<Entry>, Revision), StorageError> {
        let _whole = self.whole.lock().await;
        let (found, revision) = self.store.get(key).await?;
        Ok((found.map(entry), paired(revision)))
    }
    async fn list(&self, request: ListRequest) -> Result<Page, StorageError> {
        let _whole = self.whole.lock().await;
        let at = request.at.map(last_of);
        let page = self.store.list(ListRequest { at, ..request }).await;
        let page = page.map_err(failure)?;
        Ok(Page {
            entries: page.entries.into_iter().map(entry).collect(),
            revision: paired(page.revision),
            ..page
        })
    }
    async fn count(&self, prefix: &str) -> Result<u64, StorageError> {
        self.store.count(prefix).await
    }
    async fn create(
        &self,
        key: &str,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> Result<Revision, StorageError> {
        let _whole = self.whole.lock().await;
        self.single(self.store.create(key, value, ttl).await).await
    }
    async fn update_if(
        &self,
        key: &str,
        expected: Revision,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> Result<Revision, StorageError> {
        let _whole = self.whole.lock().await;
        let expected = self.expected(key, expected).await?;
        let written = self.store.update_if(key, expected, value, ttl).await;
        self.single(written).await
    }
    async fn rewrite_if(
        &self,
        key: &str,
        expected: Revision,
        value: Bytes,
    ) -> Result<Revision, StorageError> {
        let _whole = self.whole.lock().await;
        let expected = self.expected(key, expected).await?;
        let written = self.store.rewrite_if(key, expected, value).await;
        self.single(written).await
    }
    async fn delete_if(&self, key: &str, expected: Revision) -> Result<Revision, StorageError> {
        let _whole = self.whole.lock().await;
        let expected = self.expected(key, expected).await?;
        self.single(self.store.delete_if(key, expected).await).await
    }
    async fn watch(&self, prefix: &str, start: WatchStart) -> Result<WatchStream, StorageError> {
        let _whole = self.whole.lock().await;
        let start = match start {
            WatchStart::Now => WatchStart::Now,
            WatchStart::After(revision) => WatchStart::After(last_of(revision)),
        };
        let changes = Changes {
            changes: self.store.watch(prefix, start).await.map_err(failure)?,
            held: None,
            ready: VecDeque::new(),
        };
        let items = stream::unfold(changes, |mut changes| async move {
            Some((changes.next().await?, changes))
        });
        Ok(items.boxed())
    }
    async fn request_progress(&self) -> Result<(), StorageError> {
        self.store.request_progress().await
    }
    async fn current_revision(&self) -> Result<Revision, StorageError> {
        let _whole = self.whole.lock().await;
        self.store.current_revision().await.map(paired)
    }
    async fn compact(&self, revision: Revision) -> Result<(), StorageError> {
        let compacted = self.store.compact(last_of(revision)).await;
        compacted.map_err(failure)
    }
    async fn close(&self) {
        self.store.close().await;
    }
}
