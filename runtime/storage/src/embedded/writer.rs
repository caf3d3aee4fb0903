//! The writing thread: it commits all queued writes in one transaction with one sync before it answers them.
//!
//! Between batches it removes expired keys and compacted history, in steps that delay no write by more than a few
//! milliseconds.

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
use super::open::{Opened, keep_log_on_close};
use super::place::{Place, lasting};
use super::reader::query;
use super::row::{Number, cannot_be_written, refusal};
use super::times::Times;
use super::upkeep::Upkeep;
use super::verify::Head;
use crate::feed::Feed;
use crate::op::Op;
use crate::retention::Horizon;
use crate::{Retention, Revision, StorageError};
use housekeeping::Pace;

/// Maximum writes of a batch, which also has a limit in bytes: its first write waits for the last.
const BATCH_WRITES: usize = 1_024;
const BATCH_BYTES: usize = 8 << 20;

/// Free pages at which a size-limited file counts as writable again.
const ROOM_PAGES: i64 = 16;

type Answer<T> = oneshot::Sender<Result<T, StorageError>>;

/// A request to the writer.
#[derive(Debug)]
pub(super) enum Request {
    Write {
        key: String,
        op: Op,
        reply: Answer<Revision>,
        /// The request's share of the queue's budget.
        permit: Option<OwnedSemaphorePermit>,
    },
    Compact {
        revision: Revision,
        reply: Answer<()>,
    },
    /// The upkeep thread has finished a checkpoint of the log as it was when it started.
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
    /// The newest compacted revision.
    compacted: u64,
    /// The newest revision up to which rows of compacted history are removed.
    swept: u64,
    /// `compacted`, shared with the code that starts watches.
    shared_compacted: Arc<AtomicU64>,
    horizon: Horizon,
    times: Times,
    retention: Retention,
    look_interval: Duration,
    /// When to check next whether history has grown too long.
    next_look: Instant,
    /// Earliest next sweep; in the future only while backing off after an error.
    next_sweep: Instant,
    /// The size of the sweep's steps.
    pace: Pace,
    /// When to retry a store that could not be written.
    next_try: Instant,
    /// Whether the size of the file is limited.
    is_bounded: bool,
    /// When the next key expires, in milliseconds since 1970.
    next_expiry: Option<i64>,
    feed: Arc<Feed>,
    upkeep: Upkeep,
    /// Whether the upkeep thread is running a checkpoint.
    is_checkpointing: bool,
    /// Writes and sweeps since the size of SQLite's log was checked.
    writes_since_look: usize,
    /// Whether a commit is on the disk when it returns. Always true except in the sweep.
    is_syncing: bool,
    /// Whether commits are synced at all; false only in tests.
    syncs: bool,
    mark: Mark,
    /// Locks out other processes until the connection is closed: declared after it, so dropped after it.
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
        let compacted = Revision(opened.verified.compacted);
        let horizon = Horizon::new(config.retention, Instant::now(), compacted);
        Self {
            place: opened.place,
            connection: opened.connection,
            head: opened.verified.head,
            compacted: opened.verified.compacted,
            swept: opened.verified.swept,
            shared_compacted,
            horizon,
            times: opened.times,
            retention: config.retention,
            look_interval: config.retention.step(),
            next_look: Instant::now(),
            next_sweep: Instant::now(),
            pace: Pace::default(),
            next_try: Instant::now(),
            is_bounded: config.max_bytes.is_some(),
            next_expiry: None,
            feed,
            upkeep,
            is_checkpointing: false,
            // A killed process may have left a long log.
            writes_since_look: housekeeping::CHECKPOINT_LOOK_WRITES,
            is_syncing: false,
            syncs: config.safety.syncs,
            mark: opened.mark,
            lock: opened.lock,
        }
    }

    /// Runs until the store is closed.
    pub(super) fn run(mut self, requests: &Receiver<Request>) {
        self.find_next_expiry();
        self.resume_history();
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
                // The caller may have dropped the receiver: the answer is not needed then.
                let _ = reply.send(self.compact(revision));
            }
            if batch.is_checkpointed {
                self.finish_checkpoint();
            }
            if let Some(reply) = batch.close {
                return self.finish(reply);
            }
            self.run_maintenance(written);
        }
    }

    /// How long the thread can sleep.
    fn idle_time(&self) -> Duration {
        let now = Instant::now();
        let mut look = self.next_look.saturating_duration_since(now);
        if self.swept < self.sweep_end() {
            look = look.min(self.next_sweep.saturating_duration_since(now));
        }
        if self.place.trouble().is_some() {
            look = look.min(self.next_try.saturating_duration_since(now));
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

    /// Commits writes in one transaction and publishes them; returns the answer to each.
    fn commit<'a>(
        &mut self,
        writes: impl Iterator<Item = (&'a str, &'a Op)>,
    ) -> Result<Vec<Result<Revision, StorageError>>, StorageError> {
        let committed = self
            .sync_commits()
            .and_then(|()| transaction::run(self, writes))
            .map_err(|error| self.failed(&error))?;
        self.head = committed.head;
        if !committed.replaced.is_empty() {
            let now = Instant::now();
            for (revision, bytes) in committed.replaced {
                self.horizon.count(bytes);
                self.horizon.observe_bytes(now, Revision(revision));
            }
        }
        self.next_expiry = committed.next_expiry;
        // Commits to files that were removed or replaced are lost, so they must not be acknowledged.
        let place = self.place.check();
        if place.is_ok()
            && let Err(error) = self.mark.set(self.head.revision)
        {
            // The write itself is safe; only damage to SQLite's log would now go unnoticed.
            tracing::warn!(%error, "the mark of the newest revision was not written");
        }
        if !committed.changes.is_empty() {
            self.feed
                .publish(&committed.changes, Revision(self.head.revision));
        }
        if let Err(what) = place {
            self.place.note_trouble(&what);
            return Err(StorageError::Refused(what));
        }
        self.place.end_trouble();
        Ok(committed.answers)
    }

    /// Converts the error of a failed transaction, which is rolled back; the store is not ready until it can be written
    /// again.
    fn failed(&self, error: &rusqlite::Error) -> StorageError {
        self.roll_back();
        let error = match self.place.check() {
            Ok(()) => refusal(&self.place, self.is_bounded, error),
            Err(what) => StorageError::Refused(what),
        };
        if !matches!(error, StorageError::Corrupt(_)) {
            self.place.note_trouble(&without_path(&error));
        }
        error
    }

    /// SQLite has rolled back some failed transactions already, and others not.
    fn roll_back(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.execute("ROLLBACK")
        {
            tracing::error!(%error, "a failed transaction was not rolled back");
        }
    }

    /// Checks whether the store can be written, by a write that changes nothing.
    fn try_to_write(&mut self) -> Result<(), StorageError> {
        self.place.check().map_err(StorageError::Refused)?;
        self.place.probe().map_err(|error| match lasting(&error) {
            Some(why) => cannot_be_written(why),
            None => StorageError::Unavailable(error.to_string()),
        })?;
        if self.is_bounded && !self.has_room() {
            return Err(cannot_be_written("it is full"));
        }
        let written = self
            .sync_commits()
            .and_then(|()| Number::store(&self.connection, "swept", self.swept));
        written.map_err(|error| self.failed(&error))
    }

    /// Whether a size-limited file may still grow by a few pages.
    fn has_room(&self) -> bool {
        let pragma = |name| {
            let number = self
                .connection
                .pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            number.unwrap_or_default()
        };
        let left = pragma("max_page_count") - pragma("page_count");
        left + pragma("freelist_count") >= ROOM_PAGES
    }

    fn execute(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }

    fn finish(self, reply: Option<oneshot::Sender<()>>) {
        self.keep_times();
        self.upkeep.stop();
        if self.place.check().is_err() {
            // Closing would make SQLite remove the log at this path, which may belong to another store now.
            if let Err(error) = keep_log_on_close(&self.place, &self.connection, true) {
                tracing::warn!(%error, "cannot keep SQLite's log on close");
            }
        }
        if let Err(error) = query(
            &self.connection,
            "PRAGMA wal_checkpoint(TRUNCATE)",
            [],
            |_| Ok(()),
        ) {
            tracing::warn!(%error, "failed to write back SQLite's log");
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

/// The requests that the writer handles together.
#[derive(Default)]
struct Batch {
    writes: Vec<Write>,
    compactions: Vec<(Revision, Answer<()>)>,
    is_checkpointed: bool,
    close: Option<Option<oneshot::Sender<()>>>,
}

impl Batch {
    /// Takes queued requests, up to the limits of a batch.
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

/// The text of an error without the path of the store, which clients must not see.
fn without_path(error: &StorageError) -> String {
    match error {
        StorageError::Refused(what) => what.clone(),
        _ => "the store cannot be written; the log says why".to_owned(),
    }
}

fn now_millis() -> i64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
