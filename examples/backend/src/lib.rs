//! A storage backend of one's own: a file with one JSON line a change, and everything in memory.
//!
//! It shows what a backend has to do, and passes the conformance suite of `apiloom-storage` (see `tests/`). A server
//! takes it with `Builder::storage`. What it leaves out: the file is never rewritten, so it only grows, and a list of a
//! past state copies the present one.

mod log;
mod state;
mod watching;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use apiloom::server::async_trait;
use apiloom::storage::{
    Entry, ListRequest, Page, Revision, Storage, StorageError, WatchStart, WatchStream,
};
use bytes::Bytes;
use tokio::sync::watch;

use log::{Line, Log};
use state::State;
use watching::{Cursor, Signals};

/// A store in a file with one JSON line a change. Clones share it.
#[derive(Clone, Debug)]
pub struct JsonLines(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Held while a change is checked, written and applied; `None` when the store is closed.
    log: Mutex<Option<Log>>,
    /// Never held while something waits.
    state: Mutex<State>,
    signals: Signals,
}

impl JsonLines {
    /// Opens or creates the store in a file. To be called in a tokio runtime: a task removes what outlived its time.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or is open in another process.
    pub fn open(path: &Path) -> io::Result<Self> {
        let (log, state) = Log::open(path)?;
        let store = Self(Arc::new(Inner {
            log: Mutex::new(Some(log)),
            state: Mutex::new(state),
            signals: Signals::default(),
        }));
        let moved = store.0.signals.subscribe();
        tokio::spawn(remove_expired(Arc::downgrade(&store.0), moved));
        Ok(store)
    }

    /// Writes what `decide` makes of the present state. The file is written in a thread that may block, to its end even
    /// if the caller goes away: what is in the file is also in memory.
    async fn write(
        &self,
        decide: impl FnOnce(&State) -> Result<Line, StorageError> + Send + 'static,
    ) -> Result<Revision, StorageError> {
        let store = Arc::clone(&self.0);
        let written = tokio::task::spawn_blocking(move || store.write(decide)).await;
        written.map_err(|error| StorageError::Unavailable(error.to_string()))?
    }

    fn read(&self) -> Result<MutexGuard<'_, State>, StorageError> {
        let state = self.0.state();
        if state.closed {
            Err(closed())
        } else {
            Ok(state)
        }
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        // A change is applied whole or not at all, so a panic elsewhere has not spoiled it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(
        &self,
        decide: impl FnOnce(&State) -> Result<Line, StorageError>,
    ) -> Result<Revision, StorageError> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let log = log.as_mut().ok_or_else(closed)?;
        let line = decide(&self.state())?;
        log.append(&line)
            .map_err(|error| StorageError::Refused(format!("the file is not written: {error}")))?;
        let revision = {
            let mut state = self.state();
            state.apply(line);
            state.revision
        };
        self.signals.moved();
        Ok(revision)
    }
}

fn closed() -> StorageError {
    StorageError::Unavailable("the store is closed".to_owned())
}

/// Deletes every key whose time has ended, until the store is closed or dropped.
async fn remove_expired(store: Weak<Inner>, mut moved: watch::Receiver<()>) {
    loop {
        let Some(store) = store.upgrade().map(JsonLines) else {
            return;
        };
        let Ok(next) = store.read().map(|state| state.next_to_expire()) else {
            return;
        };
        let Some((key, revision, at)) = next else {
            drop(store);
            if moved.changed().await.is_err() {
                return;
            }
            continue;
        };
        let wait = at.duration_since(SystemTime::now()).unwrap_or_default();
        // A write may change the time of the key, or bring one that ends sooner.
        if tokio::time::timeout(wait, moved.changed()).await.is_err() {
            // The key may be changed or the store closed by now: the next turn sees which.
            let _ = store.delete_if(&key, revision).await;
        }
    }
}

/// When a key with this time to live ends, as it is written.
fn end_of(ttl: Option<Duration>) -> Option<SystemTime> {
    ttl.map(|ttl| SystemTime::now() + ttl)
}

#[async_trait]
impl Storage for JsonLines {
    async fn get(&self, key: &str) -> Result<(Option<Entry>, Revision), StorageError> {
        let state = self.read()?;
        Ok((state.entry(key), state.revision))
    }

    async fn list(&self, request: ListRequest) -> Result<Page, StorageError> {
        self.read()?.list(&request)
    }

    async fn count(&self, prefix: &str) -> Result<u64, StorageError> {
        Ok(self.read()?.count(prefix))
    }

    async fn create(
        &self,
        key: &str,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> Result<Revision, StorageError> {
        let key = key.to_owned();
        self.write(move |state| match state.entry(&key) {
            Some(present) => Err(StorageError::Exists(Box::new(present))),
            None => Ok(Line::put(state.next_revision(), key, &value, end_of(ttl))),
        })
        .await
    }

    async fn update_if(
        &self,
        key: &str,
        expected: Revision,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> Result<Revision, StorageError> {
        let key = key.to_owned();
        self.write(move |state| {
            state.check(&key, expected)?;
            Ok(Line::put(state.next_revision(), key, &value, end_of(ttl)))
        })
        .await
    }

    async fn rewrite_if(
        &self,
        key: &str,
        expected: Revision,
        value: Bytes,
    ) -> Result<Revision, StorageError> {
        let key = key.to_owned();
        self.write(move |state| {
            state.check(&key, expected)?;
            let end = state.end_of(&key);
            Ok(Line::put(state.next_revision(), key, &value, end))
        })
        .await
    }

    async fn delete_if(&self, key: &str, expected: Revision) -> Result<Revision, StorageError> {
        let key = key.to_owned();
        self.write(move |state| {
            state.check(&key, expected)?;
            Ok(Line::delete(state.next_revision(), key))
        })
        .await
    }

    async fn watch(&self, prefix: &str, start: WatchStart) -> Result<WatchStream, StorageError> {
        let after = {
            let state = self.read()?;
            match start {
                WatchStart::Now => state.revision,
                WatchStart::After(revision) => {
                    state.check_kept(revision)?;
                    revision
                }
            }
        };
        Ok(Cursor::new(self.clone(), prefix, after).into_stream())
    }

    async fn request_progress(&self) -> Result<(), StorageError> {
        drop(self.read()?);
        self.0.signals.request_progress();
        Ok(())
    }

    async fn current_revision(&self) -> Result<Revision, StorageError> {
        Ok(self.read()?.revision)
    }

    async fn compact(&self, revision: Revision) -> Result<(), StorageError> {
        self.write(move |state| {
            if revision > state.revision {
                return Err(StorageError::Future {
                    requested: revision,
                    current: state.revision,
                });
            }
            Ok(Line::compact(revision))
        })
        .await
        .map(drop)
    }

    async fn close(&self) {
        let store = Arc::clone(&self.0);
        // Waits for the write that is under way.
        let closing = tokio::task::spawn_blocking(move || {
            let mut log = store.log.lock().unwrap_or_else(PoisonError::into_inner);
            *log = None;
            store.state().closed = true;
            store.signals.moved();
        });
        // It does not panic, and ends before the runtime does.
        let _ = closing.await;
    }
}
