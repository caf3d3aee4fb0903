//! The embedded backend: one SQLite file in a directory of its own.
//!
//! All writes go through one thread, which commits all queued writes in one transaction with one sync before it answers
//! them. Reads use a few connections on blocking threads. No value stays in memory: the log in the file is the history.

mod config;
mod connection;
mod error;
mod failure;
mod files;
mod mark;
mod open;
mod place;
mod reader;
mod request;
mod row;
mod schema;
mod times;
mod tools;
mod upkeep;
mod verify;
mod wal;
mod writer;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak, mpsc};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};

use crate::feed::{Feed, History, Replay};
use crate::op::{Expiry, Op};
use crate::{Entry, ListRequest, Page, Revision, Storage, StorageError, WatchStart, WatchStream};
use failure::closed;
use place::Place;
use reader::Readers;
use request::Request;
use writer::Writer;

pub use config::EmbeddedConfig;
pub use error::OpenError;
pub use tools::{CheckReport, MoveError, MoveReport};

/// Maximum bytes in the writer's queue: beyond that, callers wait before they queue.
const QUEUE_BYTES: usize = 64 << 20;

/// Bytes per permit of the queue's budget.
const PERMIT_BYTES: usize = 4 << 10;

/// SQLite refuses rows near 1 GB; such a row would make its whole batch fail.
const MAX_VALUE_BYTES: usize = 512 << 20;

/// A store in a local directory. Only one process at a time can open it.
///
/// Calls must come from within a tokio runtime; its blocking threads do the reads.
///
/// ```no_run
/// use apiloom_storage::{Embedded, EmbeddedConfig, Storage};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Embedded::open("/var/lib/wardle", EmbeddedConfig::default())?;
/// store.create("/registry/pods/ns/a", "{}".into(), None).await?; // now it is on the disk
/// store.close().await;
/// # Ok(())
/// # }
/// ```
pub struct Embedded {
    place: Place,
    queue: mpsc::Sender<Request>,
    /// Limits the bytes in the queue.
    budget: Arc<Semaphore>,
    readers: Readers,
    feed: Arc<Feed>,
    /// The newest compacted revision, as the writer last set it.
    compacted: Arc<AtomicU64>,
    damage: Arc<Mutex<Vec<String>>>,
    closed: AtomicBool,
    me: Weak<Embedded>,
}

impl Embedded {
    /// Opens the store in `dir`, which is created if it is missing.
    ///
    /// Blocks for a few milliseconds, or longer if the previous process was killed and left much to recover.
    ///
    /// # Errors
    /// One line that says what is wrong and how to fix it.
    pub fn open(dir: impl AsRef<Path>, config: EmbeddedConfig) -> Result<Arc<Self>, OpenError> {
        let opened = open::open(dir.as_ref(), &config)?;
        let place = opened.place.clone();
        let feed = Feed::new(Revision(opened.verified.head.revision));
        let compacted = Arc::new(AtomicU64::new(opened.verified.compacted));
        let damage = Arc::default();
        let (queue, requests) = mpsc::channel();
        let upkeep = upkeep::start(
            &place,
            config.verify_interval,
            queue.clone(),
            Arc::clone(&damage),
        )
        .map_err(|error| OpenError::thread(&place, error))?;
        let writer = Writer::new(
            opened,
            &config,
            Arc::clone(&feed),
            Arc::clone(&compacted),
            upkeep,
        );
        std::thread::Builder::new()
            .name("apiloom-writer".into())
            .spawn(move || writer.run(&requests))
            .map_err(|error| OpenError::thread(&place, error))?;
        Ok(Arc::new_cyclic(|me| Self {
            readers: Readers::new(place.clone()),
            place,
            queue,
            budget: Arc::new(Semaphore::new(QUEUE_BYTES / PERMIT_BYTES)),
            feed,
            compacted,
            damage,
            closed: AtomicBool::new(false),
            me: me.clone(),
        }))
    }

    /// The damage that the background verification found since the start: one line each, naming the key or the file.
    pub fn damage(&self) -> Vec<String> {
        self.damage.lock().clone()
    }

    fn check_open(&self) -> Result<(), StorageError> {
        if self.closed.load(Ordering::Acquire) {
            Err(closed())
        } else {
            Ok(())
        }
    }

    async fn write(&self, key: &str, op: Op) -> Result<Revision, StorageError> {
        self.check_open()?;
        let size = key.len() + op.value().map_or(0, Bytes::len);
        if size > MAX_VALUE_BYTES {
            return Err(StorageError::Unavailable(format!(
                "key and value of {size} bytes are more than fits in a row"
            )));
        }
        let weight = (1 + size / PERMIT_BYTES).min(QUEUE_BYTES / PERMIT_BYTES) as u32;
        let permit = Arc::clone(&self.budget)
            .acquire_many_owned(weight)
            .await
            .map_err(|_| closed())?;
        self.ask(|reply| Request::Write {
            key: key.to_owned(),
            op,
            reply,
            permit: Some(permit),
        })
        .await
    }

    /// Queues a request and waits for its answer.
    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, StorageError>>) -> Request,
    ) -> Result<T, StorageError> {
        let (reply, answer) = oneshot::channel();
        self.queue.send(request(reply)).map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded")
            .field("path", &&*self.place)
            .field("feed", &self.feed)
            .finish_non_exhaustive()
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        // The writer holds the lock on the directory and releases it after the queued requests.
        let _ = self.queue.send(Request::Close { reply: None });
    }
}

#[async_trait]
impl History for Embedded {
    async fn replay(
        &self,
        prefix: &str,
        after: Revision,
        upto: Revision,
    ) -> Result<Replay, StorageError> {
        let prefix = prefix.to_owned();
        self.readers
            .read(move |snapshot| snapshot.replay(&prefix, after, upto))
            .await
    }
}

#[async_trait]
impl Storage for Embedded {
    async fn get(&self, key: &str) -> Result<(Option<Entry>, Revision), StorageError> {
        let key = key.to_owned();
        self.readers.read(move |snapshot| snapshot.get(&key)).await
    }

    async fn list(&self, request: ListRequest) -> Result<Page, StorageError> {
        self.readers
            .read(move |snapshot| snapshot.list(&request))
            .await
    }

    async fn count(&self, prefix: &str) -> Result<u64, StorageError> {
        let prefix = prefix.to_owned();
        self.readers
            .read(move |snapshot| snapshot.count(&prefix, &prefix))
            .await
    }

    async fn create(
        &self,
        key: &str,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> Result<Revision, StorageError> {
        self.write(key, Op::Create { value, ttl }).await
    }

    async fn update_if(
        &self,
        key: &str,
        expected: Revision,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> Result<Revision, StorageError> {
        let op = Op::Update {
            expected,
            value,
            expiry: ttl.into(),
        };
        self.write(key, op).await
    }

    async fn rewrite_if(
        &self,
        key: &str,
        expected: Revision,
        value: Bytes,
    ) -> Result<Revision, StorageError> {
        let op = Op::Update {
            expected,
            value,
            expiry: Expiry::Kept,
        };
        self.write(key, op).await
    }

    async fn delete_if(&self, key: &str, expected: Revision) -> Result<Revision, StorageError> {
        self.write(key, Op::Delete { expected }).await
    }

    async fn watch(&self, prefix: &str, start: WatchStart) -> Result<WatchStream, StorageError> {
        self.check_open()?;
        if let WatchStart::After(requested) = start {
            let compacted = Revision(self.compacted.load(Ordering::Acquire));
            if requested < compacted {
                return Err(StorageError::Compacted {
                    requested,
                    compacted,
                });
            }
        }
        let store = self.me.upgrade().ok_or_else(closed)?;
        Ok(self.feed.watch(prefix, start, store))
    }

    async fn request_progress(&self) -> Result<(), StorageError> {
        self.check_open()?;
        self.feed.request_progress();
        Ok(())
    }

    async fn current_revision(&self) -> Result<Revision, StorageError> {
        self.check_open()?;
        Ok(self.feed.published())
    }

    async fn health(&self) -> Result<(), StorageError> {
        self.check_open()?;
        if !self.damage.lock().is_empty() {
            return Err(StorageError::Corrupt(
                "the verification in the background found damage, see the log".into(),
            ));
        }
        let place = self.place.clone();
        let looked = tokio::task::spawn_blocking(move || {
            place.check().inspect_err(|what| place.note_trouble(what))?;
            place.trouble().map_or(Ok(()), Err)
        });
        let looked = looked.await;
        let looked = looked.unwrap_or_else(|error| Err(error.to_string()));
        looked.map_err(StorageError::Refused)
    }

    async fn size_bytes(&self) -> Result<Option<u64>, StorageError> {
        self.check_open()?;
        let file = self.place.to_path_buf();
        let sizes = tokio::task::spawn_blocking(move || {
            // SQLite's log exists while it has content.
            let log = std::fs::metadata(file.with_file_name(files::WAL)).map_or(0, |log| log.len());
            std::fs::metadata(file).map(|file| file.len() + log)
        });
        let size = sizes.await.map_err(std::io::Error::other).flatten();
        size.map(Some)
            .map_err(|error| StorageError::Unavailable(error.to_string()))
    }

    async fn compact(&self, revision: Revision) -> Result<(), StorageError> {
        self.check_open()?;
        self.ask(|reply| Request::Compact { revision, reply }).await
    }

    async fn close(&self) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        self.readers.close().await;
        let (reply, answer) = oneshot::channel();
        if self
            .queue
            .send(Request::Close { reply: Some(reply) })
            .is_ok()
        {
            // An error means that the writer has already ended, which is the goal.
            let _ = answer.await;
        }
        self.feed.close();
    }
}
