//! What the writing thread does between batches: remove what has expired, forget history and remove its rows, and have
//! SQLite's log written back.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rusqlite::params;

use super::transaction::present;
use super::{Writer, now_millis};
use crate::embedded::reader::query;
use crate::embedded::row::{Line, Number, line_columns, sqlite_error};
use crate::op::Op;
use crate::{Revision, StorageError};

/// So many keys are removed at a time when many expire together.
const EXPIRE_STEP: i64 = 256;

/// A step of the sweep ends after so long. The rows and pages of one more row come on top.
const SWEEP_TIME: Duration = Duration::from_millis(2);

/// How often the size of SQLite's log is looked at, in writes, and from how many pages on it is written back.
const CHECKPOINT_LOOK_WRITES: usize = 128;
const CHECKPOINT_PAGES: i64 = 1_000;

/// How long to wait before trying again what the disk refused.
const RETRY: Duration = Duration::from_secs(1);

impl Writer {
    pub(super) fn keep_house(&mut self, written: usize) {
        if self
            .next_expiry
            .is_some_and(|expiry| expiry <= now_millis())
        {
            self.expire();
        }
        let now = Instant::now();
        if now >= self.next_look {
            self.next_look = now + self.look_interval;
            self.horizon.observe(now, Revision(self.head.revision));
            let floor = self.horizon.floor(now, Revision(self.head.revision));
            if let Err(error) = self.compact(floor) {
                tracing::error!(%error, "history was not compacted");
            }
        }
        let swept_before = self.swept;
        if self.swept < self.sweep_end()
            && now >= self.next_sweep
            && let Err(error) = self.sweep(64.max(2 * written))
        {
            tracing::error!(%error, "history was not swept");
            self.next_sweep = now + RETRY;
        }
        self.look_at_log(written + (self.swept - swept_before) as usize);
    }

    /// Deletes what has expired, by ordinary deletes.
    fn expire(&mut self) {
        let done = self
            .due()
            .map_err(|error| sqlite_error(&self.place, &error))
            .and_then(|due| self.commit(due.iter().map(|(key, op)| (&**key, op))));
        match done {
            Ok(answers) => {
                self.find_next_expiry();
                let is_due = self
                    .next_expiry
                    .is_some_and(|expiry| expiry <= now_millis());
                if is_due && answers.is_empty() {
                    self.retry_expiry("the index of expiring keys is not that of the objects");
                }
            }
            Err(error) => self.retry_expiry(&error.to_string()),
        }
    }

    /// The deletes of what has expired. The index only finds the keys: the object itself says when it expires, for that
    /// is proved.
    fn due(&self) -> rusqlite::Result<Vec<(String, Op)>> {
        let now = now_millis();
        let sql = "SELECT key FROM obj WHERE expires <= ?1 ORDER BY expires LIMIT ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let keys = statement
            .query_map([now, EXPIRE_STEP], |row| row.get(0))?
            .collect::<rusqlite::Result<Vec<String>>>()?;
        let mut due = Vec::with_capacity(keys.len());
        for key in keys {
            if let Some((revision, Some(expires))) = present(&self.connection, &key)?
                && expires <= now
            {
                due.push((
                    key,
                    Op::Delete {
                        expected: Revision(revision),
                    },
                ));
            }
        }
        Ok(due)
    }

    fn retry_expiry(&mut self, error: &str) {
        tracing::error!(path = %self.place.display(), %error, "expired keys were not removed");
        self.next_expiry = Some(now_millis() + RETRY.as_millis() as i64);
    }

    pub(super) fn find_next_expiry(&mut self) {
        let sql = "SELECT expires FROM obj WHERE expires IS NOT NULL ORDER BY expires LIMIT 1";
        self.next_expiry =
            query(&self.connection, sql, [], |row| row.get(0)).unwrap_or_else(|error| {
                tracing::error!(%error, "the next key to expire was not found");
                Some(now_millis() + RETRY.as_millis() as i64)
            });
    }

    /// Forgets changes; their rows go later, step by step.
    pub(super) fn compact(&mut self, revision: Revision) -> Result<(), StorageError> {
        if revision.0 > self.head.revision {
            let current = Revision(self.head.revision);
            return Err(StorageError::Future {
                requested: revision,
                current,
            });
        }
        if revision.0 <= self.compacted {
            return Ok(());
        }
        let done = self
            .sync_commits()
            .and_then(|()| Number::store(&self.connection, "compacted", revision.0));
        done.map_err(|error| sqlite_error(&self.place, &error))?;
        self.compacted = revision.0;
        self.shared_compacted.store(revision.0, Ordering::Release);
        Ok(())
    }

    /// The newest row stays whatever it is: the revision and the digest go on from it.
    pub(super) fn sweep_end(&self) -> u64 {
        self.compacted.min(self.head.revision.saturating_sub(1))
    }

    /// Removes rows that no object and no history needs: for each forgotten change the row that it replaced, and its own
    /// where it is a removal.
    fn sweep(&mut self, rows: usize) -> rusqlite::Result<()> {
        // These removals need not be durable before anything else is, only in order: the next write syncs them too.
        if self.is_syncing {
            self.is_syncing = false;
            self.connection
                .execute_batch("PRAGMA synchronous = NORMAL")?;
        }
        let swept = self.sweep_rows(rows);
        if swept.is_err() {
            self.roll_back();
        }
        self.sync_commits()?;
        self.swept = swept?;
        Ok(())
    }

    /// Has every commit be synced before it returns.
    pub(super) fn sync_commits(&mut self) -> rusqlite::Result<()> {
        if !self.is_syncing && self.syncs {
            self.connection.execute_batch("PRAGMA synchronous = FULL")?;
            self.is_syncing = true;
        }
        Ok(())
    }

    fn sweep_rows(&self, rows: usize) -> rusqlite::Result<u64> {
        let start = Instant::now();
        let mut swept = self.swept;
        self.execute("BEGIN IMMEDIATE")?;
        let forgotten = self.forgotten(rows)?;
        if forgotten.is_empty() {
            // Rows are missing; the proof in the background says so.
            swept = self.sweep_end();
        }
        // Whatever else is damaged, the value of a present object is not removed.
        let mut remove = self.connection.prepare_cached(
            "DELETE FROM log WHERE revision = ?1 \
             AND NOT EXISTS (SELECT 1 FROM obj WHERE obj.key = log.key AND obj.revision = log.revision)",
        )?;
        for (revision, unneeded) in forgotten {
            for row in unneeded.into_iter().flatten() {
                remove.execute([row as i64])?;
            }
            swept = revision;
            if start.elapsed() > SWEEP_TIME {
                break;
            }
        }
        Number::store(&self.connection, "swept", swept)?;
        self.execute("COMMIT")?;
        Ok(swept)
    }

    /// The next forgotten changes, each with the rows that go with it. A damaged one leaves its rows where they are.
    fn forgotten(&self, rows: usize) -> rusqlite::Result<Vec<(u64, [Option<u64>; 2])>> {
        let sql = concat!(
            "SELECT ",
            line_columns!(),
            " FROM log WHERE revision > ?1 AND revision <= ?2 ORDER BY revision LIMIT ?3"
        );
        let range = params![self.swept as i64, self.sweep_end() as i64, rows as i64];
        let mut statement = self.connection.prepare_cached(sql)?;
        let forgotten = statement.query_map(range, |row| {
            let revision = row.get::<_, i64>(0)? as u64;
            let unneeded = match Line::read(&self.place, row, revision) {
                Ok(line) => [
                    (line.previous != 0).then_some(line.previous),
                    line.is_removal.then_some(line.revision),
                ],
                Err(error) => {
                    tracing::error!(path = %self.place.display(), %error, "the store is damaged");
                    [None, None]
                }
            };
            Ok((revision, unneeded))
        })?;
        forgotten.collect()
    }

    /// Has SQLite's log written back when it is long.
    fn look_at_log(&mut self, written: usize) {
        self.writes_since_look += written;
        if self.is_checkpointing || self.writes_since_look < CHECKPOINT_LOOK_WRITES {
            return;
        }
        self.writes_since_look = 0;
        let pages = query(&self.connection, "PRAGMA wal_checkpoint(NOOP)", [], |row| {
            row.get::<_, i64>(1)
        });
        if pages.ok().flatten().unwrap_or_default() >= CHECKPOINT_PAGES {
            self.is_checkpointing = self.upkeep.checkpoint();
        }
    }

    /// Writes back what came since the upkeep thread began, so that the log starts anew with the next write.
    pub(super) fn finish_checkpoint(&mut self) {
        self.is_checkpointing = false;
        if let Err(error) = query(
            &self.connection,
            "PRAGMA wal_checkpoint(PASSIVE)",
            [],
            |_| Ok(()),
        ) {
            tracing::warn!(%error, "SQLite's log was not written back");
        }
    }
}
