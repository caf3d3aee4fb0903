//! The state of the writing thread, and what it commits.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::pace::Pace;
use super::transaction::{self, Before};
use crate::embedded::config::EmbeddedConfig;
use crate::embedded::failure::{cannot_be_written, refusal};
use crate::embedded::mark::Mark;
use crate::embedded::open::OpenStore;
use crate::embedded::place::{Place, lasting};
use crate::embedded::row::Number;
use crate::embedded::times::Times;
use crate::embedded::upkeep::Upkeep;
use crate::embedded::verify::Head;
use crate::feed::Feed;
use crate::op::Op;
use crate::retention::Horizon;
use crate::{Retention, Revision, StorageError};

/// Free pages at which a size-limited file counts as writable again.
const ROOM_PAGES: i64 = 16;

/// Writes between two checks of the size of SQLite's log.
pub(super) const CHECKPOINT_LOOK_WRITES: usize = 128;

/// The state of the writing thread.
pub(in crate::embedded) struct Writer {
    pub(super) place: Place,
    pub(super) connection: Connection,
    pub(super) head: Head,
    /// The newest compacted revision.
    pub(super) compacted: u64,
    /// The newest revision up to which rows of compacted history are removed.
    pub(super) swept: u64,
    /// `compacted`, shared with the code that starts watches.
    pub(super) shared_compacted: Arc<AtomicU64>,
    pub(super) horizon: Horizon,
    pub(super) times: Times,
    pub(super) retention: Retention,
    pub(super) look_interval: Duration,
    /// When to check next whether history has grown too long.
    pub(super) next_look: Instant,
    /// Earliest next sweep; in the future only while backing off after an error.
    pub(super) next_sweep: Instant,
    /// The size of the sweep's steps.
    pub(super) pace: Pace,
    /// When to retry a store that could not be written.
    pub(super) next_try: Instant,
    /// Whether the size of the file is limited.
    pub(super) is_bounded: bool,
    /// When the next key expires, in milliseconds since 1970.
    pub(super) next_expiry: Option<i64>,
    pub(super) feed: Arc<Feed>,
    pub(super) upkeep: Upkeep,
    /// Whether the upkeep thread is running a checkpoint.
    pub(super) is_checkpointing: bool,
    /// Writes and sweeps since the size of SQLite's log was checked.
    pub(super) writes_since_look: usize,
    /// Whether a commit is on the disk when it returns. Always true except in the sweep.
    pub(super) is_syncing: bool,
    /// Whether commits are synced at all; false only in tests.
    pub(super) syncs: bool,
    pub(super) mark: Mark,
    /// Locks out other processes until the connection is closed: declared after it, so dropped after it.
    pub(super) lock: File,
}

impl Writer {
    pub(in crate::embedded) fn new(
        opened: OpenStore,
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
            writes_since_look: CHECKPOINT_LOOK_WRITES,
            is_syncing: false,
            syncs: config.safety.syncs,
            mark: opened.mark,
            lock: opened.lock,
        }
    }

    /// Commits writes in one transaction and publishes them; returns the answer to each.
    pub(super) fn commit<'a>(
        &mut self,
        writes: impl Iterator<Item = (&'a str, &'a Op)>,
    ) -> Result<Vec<Result<Revision, StorageError>>, StorageError> {
        let committed = self
            .sync_commits()
            .and_then(|()| {
                let before = Before {
                    place: &self.place,
                    connection: &self.connection,
                    head: self.head,
                    next_expiry: self.next_expiry,
                    is_watched: self.feed.is_watched(),
                };
                transaction::run(&before, writes)
            })
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
    pub(super) fn failed(&self, error: &rusqlite::Error) -> StorageError {
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
    pub(super) fn roll_back(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.execute("ROLLBACK")
        {
            tracing::error!(%error, "a failed transaction was not rolled back");
        }
    }

    /// Checks whether the store can be written, by a write that changes nothing.
    pub(super) fn try_to_write(&mut self) -> Result<(), StorageError> {
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

    pub(super) fn execute(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }

    /// Makes every commit sync before it returns.
    pub(super) fn sync_commits(&mut self) -> rusqlite::Result<()> {
        if !self.is_syncing && self.syncs {
            self.connection.execute_batch("PRAGMA synchronous = FULL")?;
            self.is_syncing = true;
        }
        Ok(())
    }
}

/// The text of an error without the path of the store, which clients must not see.
fn without_path(error: &StorageError) -> String {
    match error {
        StorageError::Refused(what) => what.clone(),
        _ => "the store cannot be written; the log says why".to_owned(),
    }
}
