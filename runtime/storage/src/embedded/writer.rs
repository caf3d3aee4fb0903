//! The writing thread: everything that waits becomes one transaction with one sync, and only then is it answered.
//!
//! Between batches it removes what has expired and what history no longer needs, in steps short enough that no write
//! waits for more than a few milliseconds.

mod housekeeping;
mod transaction;

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::EmbeddedConfig;
use super::mark::Mark;
use super::open::Opened;
use super::place::Place;
use super::prove::Head;
use super::reader::query;
use super::row::sqlite_error;
use super::upkeep::Upkeep;
use crate::feed::Feed;
use crate::op::Op;
use crate::retention::Horizon;
use crate::{Revision, StorageError};
use housekeeping::Pace;

/// A batch ends after so many writes or bytes: the first of it waits for the last.
const BATCH_WRITES: usize = 1_024;
const BATCH_BYTES: usize = 8 << 20;

type Answer<T> = oneshot::Sender<Result<T, StorageError>>;

/// What the writer is asked to do.
#[derive(Debug)]
pub(super) enum Request {
    Write {
        key: String,
        op: Op,
        reply: Answer<Revision>,
        /// Its share of the queue's budget.
        permit: Option<OwnedSemaphorePermit>,
    },
    Compact {
        revision: Revision,
        reply: Answer<()>,
    },
    /// The upkeep thread has written SQLite's log back as far as it was when it began.
    Checkpointed,
    Close {
        reply: Option<oneshot::Sender<()>>,
    },
}

/// The state of the writing thread.
pub(super) struct Writer {
    place: Place,
    connection: Connection,
    head: Head,
    /// The newest revision whose change is forgotten.
    compacted: u64,
    /// The newest revision whose change was looked at for rows to remove.
    swept: u64,
    /// `compacted`, for those who start a watch.
    shared_compacted: Arc<AtomicU64>,
    horizon: Horizon,
    look_interval: Duration,
    /// When to look next whether history has grown too long.
    next_look: Instant,
    /// Not to be swept before: later than now only after a failure.
    next_sweep: Instant,
    /// How much of the sweep is done at a time.
    pace: Pace,
    /// When the next key expires, in milliseconds since 1970.
    next_expiry: Option<i64>,
    feed: Arc<Feed>,
    upkeep: Upkeep,
    /// Whether the upkeep thread is at a checkpoint.
    is_checkpointing: bool,
    /// Writes and sweeps since the size of SQLite's log was looked at.
    writes_since_look: usize,
    /// Whether a commit is on the disk when it returns. It always is, but for the sweep.
    is_syncing: bool,
    /// Whether any commit is, which only a test denies.
    syncs: bool,
    mark: Mark,
    /// Other processes stay out until the connection is closed: declared after it, so dropped after it.
    lock: File,
}

impl Writer {
    pub(super) fn new(
        opened: Opened,
        config: &EmbeddedConfig,
        feed: Arc<Feed>,
        shared_compacted: Arc<AtomicU64>,
        upkeep: Upkeep,
    ) -> Self {
        Self {
            place: opened.place,
            connection: opened.connection,
            head: opened.proved.head,
            compacted: opened.proved.compacted,
            swept: opened.proved.swept,
            shared_compacted,
            horizon: Horizon::new(config.retention),
            look_interval: config.retention.step(),
            next_look: Instant::now(),
            next_sweep: Instant::now(),
            pace: Pace::default(),
            next_expiry: None,
            feed,
            upkeep,
            is_checkpointing: false,
            // A kill may have left a long one.
            writes_since_look: housekeeping::CHECKPOINT_LOOK_WRITES,
            is_syncing: false,
            syncs: config.safety.syncs,
            mark: opened.mark,
            lock: opened.lock,
        }
    }

    /// Works until the store is closed.
    pub(super) fn run(mut self, requests: &Receiver<Request>) {
        self.find_next_expiry();
        loop {
            let first = match requests.recv_timeout(self.idle_time()) {
                Ok(request) => Some(request),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return self.finish(None),
            };
            let batch = Batch::gather(first, requests);
            let written = batch.writes.len();
            self.write(batch.writes);
            for (revision, reply) in batch.compactions {
                // The caller may be gone: then nobody needs the answer.
                let _ = reply.send(self.compact(revision));
            }
            if batch.is_checkpointed {
                self.finish_checkpoint();
            }
            if let Some(reply) = batch.close {
                return self.finish(reply);
            }
            self.keep_house(written);
        }
    }

    /// How long nothing has to be done.
    fn idle_time(&self) -> Duration {
        let now = Instant::now();
        let mut look = self.next_look.saturating_duration_since(now);
        if self.swept < self.sweep_end() {
            look = look.min(self.next_sweep.saturating_duration_since(now));
        }
        match self.next_expiry {
            Some(expiry) => look.min(Duration::from_millis(
                u64::try_from(expiry - now_millis()).unwrap_or(0),
            )),
            None => look,
        }
    }

    fn write(&mut self, writes: Vec<Write>) {
        if writes.is_empty() {
            return;
        }
        match self.commit(writes.iter().map(|write| (&*write.key, &write.op))) {
            Ok(answers) => {
                for (write, answer) in writes.into_iter().zip(answers) {
                    let _ = write.reply.send(answer);
                }
            }
            Err(error) => {
                tracing::error!(%error, writes = writes.len(), "writes failed");
                for write in writes {
                    let _ = write.reply.send(Err(error.clone()));
                }
            }
        }
    }

    /// Does writes in one transaction and publishes them; gives the answer to each.
    fn commit<'a>(
        &mut self,
        writes: impl Iterator<Item = (&'a str, &'a Op)>,
    ) -> Result<Vec<Result<Revision, StorageError>>, StorageError> {
        let committed = self
            .sync_commits()
            .and_then(|()| transaction::run(self, writes))
            .map_err(|error| {
                self.roll_back();
                sqlite_error(&self.place, &error)
            })?;
        self.head = committed.head;
        self.next_expiry = committed.next_expiry;
        if let Err(error) = self.mark.set(self.head.revision) {
            // What is written is safe all the same; only damage to SQLite's log would now go unnoticed.
            tracing::warn!(%error, "the mark of the newest revision was not written");
        }
        if !committed.changes.is_empty() {
            self.feed
                .publish(&committed.changes, Revision(self.head.revision));
        }
        Ok(committed.answers)
    }

    /// SQLite has undone some failed transactions already, and others not.
    fn roll_back(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.execute("ROLLBACK")
        {
            tracing::error!(%error, "a failed transaction was not rolled back");
        }
    }

    fn execute(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }

    fn finish(self, reply: Option<oneshot::Sender<()>>) {
        self.upkeep.stop();
        if let Err(error) = query(
            &self.connection,
            "PRAGMA wal_checkpoint(TRUNCATE)",
            [],
            |_| Ok(()),
        ) {
            tracing::warn!(%error, "SQLite's log was not written back");
        }
        drop(self.connection);
        drop(self.lock);
        if let Some(reply) = reply {
            let _ = reply.send(());
        }
    }
}

/// A write that waits for its answer.
struct Write {
    key: String,
    op: Op,
    reply: Answer<Revision>,
    _permit: Option<OwnedSemaphorePermit>,
}

/// What the writer does in one go.
#[derive(Default)]
struct Batch {
    writes: Vec<Write>,
    compactions: Vec<(Revision, Answer<()>)>,
    is_checkpointed: bool,
    close: Option<Option<oneshot::Sender<()>>>,
}

impl Batch {
    /// Takes what waits, up to the bounds of a batch.
    fn gather(first: Option<Request>, requests: &Receiver<Request>) -> Self {
        let mut batch = Self::default();
        let mut bytes = 0;
        let mut next = first;
        while let Some(request) = next {
            match request {
                Request::Write {
                    key,
                    op,
                    reply,
                    permit,
                } => {
                    bytes += key.len() + op.value().map_or(0, bytes::Bytes::len);
                    batch.writes.push(Write {
                        key,
                        op,
                        reply,
                        _permit: permit,
                    });
                }
                Request::Compact { revision, reply } => batch.compactions.push((revision, reply)),
                Request::Checkpointed => batch.is_checkpointed = true,
                Request::Close { reply } => batch.close = Some(reply),
            }
            let is_full =
                batch.writes.len() >= BATCH_WRITES || bytes >= BATCH_BYTES || batch.close.is_some();
            next = if is_full {
                None
            } else {
                requests.try_recv().ok()
            };
        }
        batch
    }
}

fn now_millis() -> i64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
