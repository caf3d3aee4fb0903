//! Memory stores with a chosen defect, and the places that keep them across restarts.

mod stream;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use apiloom_storage::conformance::MOST_READ_AT_ONCE;
use apiloom_storage::{
    Entry, ListRequest, Memory, Page, Retention, Revision, Storage, StorageError, WatchStart,
    WatchStream,
};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::FutureExt;
use parking_lot::Mutex;

/// The defect of a store. `broken_backends.rs` lists which tests detect it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    None,
    LosesCreates,
    LosesOneWriteInMany,
    LosesUpdates,
    LosesDeletes,
    LosesEvents,
    LosesFirstEvent,
    LosesBetweenHistoryAndPresent,
    CutsLargeValues,
    TakesEmptyForNone,
    FoldsKeys,
    OverwritesOnCreate,
    IgnoresExpectedOfUpdate,
    CreatesByUpdate,
    IgnoresExpectedOfDelete,
    DeletesAbsent,
    HidesPresent,
    CountsRefusedWrites,
    RemembersDeletedKeys,
    RepeatsRevisions,
    LagsWithRevision,
    ReadsWithoutRevision,
    ReadsStale,
    ListsStale,
    ListsInDisorder,
    ListsSiblings,
    IgnoresLimit,
    ForgetsMore,
    MiscountsRemaining,
    IgnoresStart,
    SkipsBetweenReads,
    IgnoresAt,
    IgnoresCompaction,
    ListsFuture,
    CountsSiblings,
    CountsDeleted,
    ReordersEvents,
    RepeatsEvents,
    DeliversStartAgain,
    DeliversPast,
    IgnoresFutureStart,
    ForgetsPrevious,
    ConfusesKinds,
    WatchesSiblings,
    DropsAllWatchersWithOne,
    DropsSlowSilently,
    NoProgress,
    ProgressOnce,
    ProgressTooEarly,
    ForgetsTtl,
    KeepsTtlAfterUpdate,
    CountsTtlFromCreate,
    EndsTtlOfNextOwner,
    LosesRewrites,
    ForgetsTtlOfRewrite,
    BeginsTtlOfRewriteAnew,
    ExpiresSilently,
    CompactsPresent,
    CompactsTooMuch,
    CompactsFuture,
    RefusesToCompactTwice,
    WorksAfterClose,
    LeavesWatchesOpen,
    RestartLosesObjects,
    RestartLosesHistory,
    RestartGoesBack,
    RestartForgetsCompaction,
    RestartForgetsTtl,
}

/// Keeps a broken store across restarts.
pub(crate) struct Place {
    defect: Defect,
    last: Mutex<Option<Arc<Memory>>>,
}

impl Place {
    pub(crate) fn new(defect: Defect) -> Self {
        Self {
            defect,
            last: Mutex::new(None),
        }
    }

    pub(crate) fn open(&self) -> Arc<dyn Storage> {
        let mut last = self.last.lock();
        let inner = match &*last {
            None => from_1(),
            Some(last) => restart(last, self.defect),
        };
        *last = Some(Arc::clone(&inner));
        Arc::new(Broken {
            inner,
            defect: self.defect,
            notes: Arc::default(),
        })
    }
}

/// A store that compacts nothing, so that a defect can deliver old changes again.
fn from_1() -> Arc<Memory> {
    Memory::beginning_after(Revision(0), Retention::default())
}

fn restart(last: &Memory, defect: Defect) -> Arc<Memory> {
    let store = last.reopen();
    let entries = || ready(store.list(ListRequest::default())).unwrap().entries;
    match defect {
        Defect::RestartLosesObjects => {
            for entry in entries() {
                ready(store.delete_if(&entry.key, entry.revision)).unwrap();
            }
        }
        Defect::RestartLosesHistory => {
            let current = ready(store.current_revision()).unwrap();
            ready(store.compact(current)).unwrap();
        }
        Defect::RestartGoesBack => {
            let behind = from_1();
            for entry in entries() {
                ready(behind.create(&entry.key, entry.value, None)).unwrap();
            }
            return behind;
        }
        _ => {}
    }
    store
}

/// The answer of a memory store, which never waits.
fn ready<T>(answer: impl Future<Output = T>) -> T {
    answer.now_or_never().expect("it does not wait")
}

#[derive(Debug)]
struct Broken {
    inner: Arc<Memory>,
    defect: Defect,
    notes: Arc<Notes>,
}

/// The state that a defect needs.
#[derive(Debug, Default)]
struct Notes {
    writes: Mutex<u64>,
    /// The entries of keys before their last write.
    before: Mutex<BTreeMap<String, Option<Entry>>>,
    deleted: Mutex<BTreeMap<String, Entry>>,
    /// The revisions of deletes.
    removals: Mutex<Vec<Revision>>,
    ttls: Mutex<BTreeMap<String, (Duration, Instant)>>,
    compacted: Mutex<Revision>,
    watcher_was_dropped: AtomicBool,
}

impl Broken {
    fn is(&self, defect: Defect) -> bool {
        self.defect == defect
    }

    fn key(&self, key: &str) -> String {
        if self.is(Defect::FoldsKeys) {
            key.to_lowercase()
        } else {
            key.to_owned()
        }
    }

    fn count_write(&self) -> u64 {
        let mut writes = self.notes.writes.lock();
        *writes += 1;
        *writes
    }

    /// Records the entry of a key before a write.
    async fn note_before(&self, key: &str) -> Result<Option<Entry>, StorageError> {
        let (present, _) = self.inner.get(key).await?;
        self.notes
            .before
            .lock()
            .insert(key.to_owned(), present.clone());
        Ok(present)
    }

    /// Acknowledges a write that was not executed.
    async fn pretend(&self) -> Result<Revision, StorageError> {
        let current = self.inner.current_revision().await?;
        Ok(Revision(current.0 + 1))
    }

    /// The answer to the caller of a write.
    async fn answer(&self, done: Result<Revision, StorageError>) -> Result<Revision, StorageError> {
        if done.is_err() && self.is(Defect::CountsRefusedWrites) {
            let key = format!("/refused/{}", self.count_write());
            self.inner.create(&key, Bytes::new(), None).await?;
        }
        match done {
            Ok(revision) if self.is(Defect::RepeatsRevisions) && revision.0 % 2 == 0 => {
                Ok(Revision(revision.0 - 1))
            }
            Err(StorageError::Exists(present)) if self.is(Defect::HidesPresent) => {
                Err(StorageError::Exists(Box::new(Entry {
                    value: Bytes::new(),
                    ..*present
                })))
            }
            Err(StorageError::Conflict { key, .. }) if self.is(Defect::HidesPresent) => {
                Err(StorageError::Conflict { key, present: None })
            }
            done => done,
        }
    }

    fn ttl(&self, key: &str, ttl: Option<Duration>, is_update: bool) -> Option<Duration> {
        let mut ttls = self.notes.ttls.lock();
        let old = ttls.get(key).copied();
        match self.defect {
            Defect::ForgetsTtl | Defect::RestartForgetsTtl => return None,
            Defect::KeepsTtlAfterUpdate if is_update => return ttl.or(old.map(|(ttl, _)| ttl)),
            Defect::CountsTtlFromCreate if is_update && ttl.is_some() => {
                return old
                    .map(|(ttl, since)| ttl.saturating_sub(since.elapsed()))
                    .or(ttl);
            }
            Defect::EndsTtlOfNextOwner => {
                if let Some(ttl) = ttl {
                    let (inner, key) = (Arc::clone(&self.inner), key.to_owned());
                    let end = tokio::time::Instant::now() + ttl;
                    tokio::spawn(async move {
                        tokio::time::sleep_until(end).await;
                        if let Ok((Some(present), _)) = inner.get(&key).await {
                            let _ = inner.delete_if(&key, present.revision).await;
                        }
                    });
                }
                return None;
            }
            _ => {}
        }
        if let Some(ttl) = ttl {
            ttls.insert(key.to_owned(), (ttl, Instant::now()));
        }
        ttl
    }

    fn value(&self, mut value: Bytes) -> Bytes {
        if self.is(Defect::CutsLargeValues) {
            value.truncate(1 << 20);
        }
        value
    }
}

/// A prefix without its slash, which also matches similar names.
fn blunt(prefix: &str) -> String {
    prefix.trim_end_matches('/').to_owned()
}

#[async_trait]
impl Storage for Broken {
    async fn get(&self, key: &str) -> Result<(Option<Entry>, Revision), StorageError> {
        let key = self.key(key);
        let (mut entry, mut revision) = self.inner.get(&key).await?;
        if self.is(Defect::ReadsStale)
            && let Some(before) = self.notes.before.lock().get(&key)
        {
            entry.clone_from(before);
        }
        if self.is(Defect::ReadsWithoutRevision) {
            revision = Revision(0);
        }
        Ok((entry, revision))
    }

    async fn list(&self, mut request: ListRequest) -> Result<Page, StorageError> {
        let asked = request.clone();
        match self.defect {
            Defect::ListsStale if request.at.is_none() => {
                let current = self.inner.current_revision().await?;
                request.at = Some(Revision(current.0.saturating_sub(1)));
            }
            Defect::ListsSiblings => request.prefix = blunt(&request.prefix),
            Defect::IgnoresLimit => request.limit = 0,
            Defect::IgnoresStart => request.start.clear(),
            Defect::IgnoresAt => request.at = None,
            _ => {}
        }
        let mut page = match self.inner.list(request.clone()).await {
            Err(StorageError::Future { .. }) if self.is(Defect::ListsFuture) => {
                request.at = None;
                self.inner.list(request).await?
            }
            page => page?,
        };
        match self.defect {
            Defect::ListsInDisorder => page.entries.reverse(),
            Defect::ForgetsMore => page.more = false,
            Defect::SkipsBetweenReads if page.entries.len() > MOST_READ_AT_ONCE => {
                page.entries.remove(MOST_READ_AT_ONCE);
            }
            Defect::MiscountsRemaining => page.remaining = page.remaining.map(|count| count + 1),
            Defect::IgnoresAt => page.revision = asked.at.unwrap_or(page.revision),
            Defect::ReadsWithoutRevision => page.revision = Revision(0),
            _ => {}
        }
        Ok(page)
    }

    async fn count(&self, prefix: &str) -> Result<u64, StorageError> {
        match self.defect {
            Defect::CountsSiblings => self.inner.count(&blunt(prefix)).await,
            Defect::CountsDeleted => {
                let deleted = self.notes.deleted.lock().len() as u64;
                Ok(self.inner.count(prefix).await? + deleted)
            }
            _ => self.inner.count(prefix).await,
        }
    }

    async fn create(
        &self,
        key: &str,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> Result<Revision, StorageError> {
        let key = self.key(key);
        self.note_before(&key).await?;
        let is_lost = match self.defect {
            Defect::LosesCreates => true,
            Defect::LosesOneWriteInMany => self.count_write() % 50 == 49,
            Defect::TakesEmptyForNone => value.is_empty(),
            _ => false,
        };
        if is_lost {
            return self.pretend().await;
        }
        if self.is(Defect::RemembersDeletedKeys)
            && let Some(old) = self.notes.deleted.lock().get(&key)
        {
            return Err(StorageError::Exists(Box::new(old.clone())));
        }
        let ttl = self.ttl(&key, ttl, false);
        let value = self.value(value);
        let mut done = self.inner.create(&key, value.clone(), ttl).await;
        if self.is(Defect::OverwritesOnCreate)
            && let Err(StorageError::Exists(present)) = &done
        {
            done = self
                .inner
                .update_if(&key, present.revision, value, ttl)
                .await;
        }
        self.answer(done).await
    }

    async fn update_if(
        &self,
        key: &str,
        expected: Revision,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> Result<Revision, StorageError> {
        let key = self.key(key);
        self.note_before(&key).await?;
        if self.is(Defect::LosesUpdates) {
            return self.pretend().await;
        }
        let ttl = self.ttl(&key, ttl, true);
        let value = self.value(value);
        let mut done = self
            .inner
            .update_if(&key, expected, value.clone(), ttl)
            .await;
        match (&done, self.defect) {
            (
                Err(StorageError::Conflict {
                    present: Some(present),
                    ..
                }),
                Defect::IgnoresExpectedOfUpdate,
            ) => {
                done = self
                    .inner
                    .update_if(&key, present.revision, value, ttl)
                    .await;
            }
            (Err(StorageError::Conflict { present: None, .. }), Defect::CreatesByUpdate) => {
                done = self.inner.create(&key, value, ttl).await;
            }
            _ => {}
        }
        self.answer(done).await
    }

    async fn rewrite_if(
        &self,
        key: &str,
        expected: Revision,
        value: Bytes,
    ) -> Result<Revision, StorageError> {
        let key = self.key(key);
        self.note_before(&key).await?;
        if self.is(Defect::LosesRewrites) {
            return self.pretend().await;
        }
        let value = self.value(value);
        let old = self.notes.ttls.lock().get(&key).copied();
        let done = match self.defect {
            Defect::ForgetsTtlOfRewrite => self.inner.update_if(&key, expected, value, None).await,
            Defect::BeginsTtlOfRewriteAnew => {
                let ttl = old.map(|(ttl, _)| ttl);
                self.inner.update_if(&key, expected, value, ttl).await
            }
            _ => self.inner.rewrite_if(&key, expected, value).await,
        };
        self.answer(done).await
    }

    async fn delete_if(&self, key: &str, expected: Revision) -> Result<Revision, StorageError> {
        let key = self.key(key);
        let present = self.note_before(&key).await?;
        if self.is(Defect::LosesDeletes) {
            return self.pretend().await;
        }
        let mut done = self.inner.delete_if(&key, expected).await;
        match (&done, self.defect) {
            (
                Err(StorageError::Conflict {
                    present: Some(present),
                    ..
                }),
                Defect::IgnoresExpectedOfDelete,
            ) => done = self.inner.delete_if(&key, present.revision).await,
            (Err(StorageError::Conflict { present: None, .. }), Defect::DeletesAbsent) => {
                done = self.inner.current_revision().await;
            }
            _ => {}
        }
        if let (Ok(revision), Some(present)) = (&done, present) {
            self.notes.removals.lock().push(*revision);
            self.notes.deleted.lock().insert(key, present);
        }
        self.answer(done).await
    }

    async fn watch(&self, prefix: &str, start: WatchStart) -> Result<WatchStream, StorageError> {
        let current = self.inner.current_revision().await?;
        let start = match (start, self.defect) {
            (WatchStart::After(revision), Defect::DeliversStartAgain) => {
                WatchStart::After(Revision(revision.0.saturating_sub(1)))
            }
            (WatchStart::Now, Defect::DeliversPast) => WatchStart::After(Revision(0)),
            (WatchStart::After(revision), Defect::IgnoresFutureStart) if revision > current => {
                WatchStart::Now
            }
            (start, _) => start,
        };
        let prefix = match self.defect {
            Defect::WatchesSiblings => blunt(prefix),
            _ => prefix.to_owned(),
        };
        let changes = self.inner.watch(&prefix, start).await?;
        Ok(stream::bend(
            changes,
            self.defect,
            start,
            current,
            prefix,
            Arc::clone(&self.inner),
            Arc::clone(&self.notes),
        ))
    }

    async fn request_progress(&self) -> Result<(), StorageError> {
        self.inner.request_progress().await
    }

    async fn current_revision(&self) -> Result<Revision, StorageError> {
        let current = self.inner.current_revision().await?;
        Ok(match self.defect {
            Defect::LagsWithRevision => Revision(current.0.saturating_sub(1)),
            _ => current,
        })
    }

    async fn compact(&self, revision: Revision) -> Result<(), StorageError> {
        let current = self.inner.current_revision().await?;
        let compacted = std::mem::replace(&mut *self.notes.compacted.lock(), revision);
        match self.defect {
            Defect::IgnoresCompaction | Defect::RestartForgetsCompaction => Ok(()),
            Defect::CompactsTooMuch => self.inner.compact(current).await,
            Defect::CompactsFuture => self.inner.compact(revision.min(current)).await,
            Defect::RefusesToCompactTwice if revision <= compacted => {
                Err(StorageError::Compacted {
                    requested: revision,
                    compacted,
                })
            }
            Defect::CompactsPresent => {
                for entry in self.inner.list(ListRequest::default()).await?.entries {
                    if entry.revision <= revision {
                        self.inner.delete_if(&entry.key, entry.revision).await?;
                    }
                }
                Ok(())
            }
            _ => self.inner.compact(revision).await,
        }
    }

    async fn close(&self) {
        if !matches!(
            self.defect,
            Defect::WorksAfterClose | Defect::LeavesWatchesOpen
        ) {
            self.inner.close().await;
        }
    }
}
