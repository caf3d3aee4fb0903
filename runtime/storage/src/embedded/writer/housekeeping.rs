//! Maintenance on the writing thread between batches: it removes expired keys, compacts history and removes its rows,
//! and starts checkpoints.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rusqlite::params;

use super::pace::SWEEP_TIME;
use super::state::{CHECKPOINT_LOOK_WRITES, Writer};
use super::transaction::{now_millis, present};
use crate::embedded::failure::{cannot_be_written, sqlite_error};
use crate::embedded::place::lasting;
use crate::embedded::row::{Line, Number, line_columns, query};
use crate::op::Op;
use crate::retention::{Horizon, Sample};
use crate::{Revision, StorageError};

/// Maximum keys that are removed at a time when many expire together.
const EXPIRE_STEP: i64 = 256;

/// The pages of SQLite's log above which it is written back.
const CHECKPOINT_PAGES: i64 = 1_000;

/// How long to wait before retrying an operation that the disk refused.
const RETRY: Duration = Duration::from_secs(1);

impl Writer {
    pub(super) fn run_maintenance(&mut self, written: usize) {
        if self
            .next_expiry
            .is_some_and(|expiry| expiry <= now_millis())
        {
            self.expire();
        }
        let now = Instant::now();
        if self.place.trouble().is_some() && now >= self.next_try {
            match self.try_to_write() {
                Ok(()) => self.place.end_trouble(),
                Err(error) => {
                    tracing::debug!(%error, "the store still cannot be written");
                    self.next_try = now + RETRY;
                }
            }
        }
        let is_too_large = self.horizon.is_too_large() && self.place.trouble().is_none();
        if now >= self.next_look || is_too_large {
            // Without writes, only this shows that a disk has become read-only.
            if let Err(error) = self.mark.set(self.head.revision) {
                self.place.note_trouble(&match lasting(&error) {
                    Some(why) => cannot_be_written(why).to_string(),
                    None => format!("the store cannot be written: {error}"),
                });
            }
            self.next_look = now + self.look_interval;
            self.forget_history(now);
        }
        let swept_before = self.swept;
        if self.swept < self.sweep_end()
            && now >= self.next_sweep
            && let Err(error) = self.sweep()
        {
            tracing::error!(%error, "failed to remove the rows of compacted history");
            self.next_sweep = now + RETRY;
        }
        self.look_at_log(written + (self.swept - swept_before) as usize);
    }

    /// Compacts history beyond its retention; if the disk refuses that, the next check retries.
    fn forget_history(&mut self, now: Instant) {
        let head = Revision(self.head.revision);
        if self.horizon.observe(now, head) {
            self.keep_times();
        }
        let floor = self.horizon.floor(now, head);
        match self.compact(floor) {
            Ok(()) => self.horizon.forget(Revision(self.compacted)),
            Err(error) => tracing::error!(%error, "failed to compact history"),
        }
    }

    /// Saves the age and size of history for the next start.
    pub(super) fn keep_times(&self) {
        if let Err(error) = self.times.set(self.horizon.samples(Instant::now())) {
            tracing::warn!(%error, "failed to save the age of history");
        }
    }

    /// Restores the saved age and size of history, and counts the changes written after they were saved.
    pub(super) fn resume_history(&mut self) {
        let now = Instant::now();
        let known = self.times.read().unwrap_or_else(|error| {
            tracing::warn!(%error, "failed to read the age of history");
            Vec::new()
        });
        let in_order = known.is_sorted_by_key(|sample| (sample.revision, sample.bytes));
        let (compacted, head) = (self.compacted, self.head.revision);
        // A backup may contain the times of another state.
        let fits = |sample: &Sample| sample.revision.0 <= head;
        if in_order
            && known
                .first()
                .is_some_and(|first| first.revision.0 <= compacted)
        {
            let known = known.into_iter().filter(fits);
            self.horizon = Horizon::resume(self.retention, now, known);
            self.horizon.forget(Revision(compacted));
        }
        let counted = self.horizon.newest();
        if let Err(error) = self.count_since(counted.0, now) {
            tracing::error!(%error, "failed to read the size of history");
        }
    }

    /// Adds the size of the values that were replaced after a revision.
    fn count_since(&mut self, revision: u64, now: Instant) -> rusqlite::Result<()> {
        let sql = "SELECT log.revision, length(log.key), length(old.value) FROM log \
                   LEFT JOIN log AS old ON old.revision = log.previous \
                   WHERE log.revision > ?1 ORDER BY log.revision";
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([revision as i64])?;
        while let Some(row) = rows.next()? {
            let replaced = row.get::<_, Option<i64>>(2)?.unwrap_or_default();
            self.horizon
                .count((row.get::<_, i64>(1)? + replaced).unsigned_abs());
            self.horizon
                .observe_bytes(now, Revision(row.get::<_, i64>(0)? as u64));
        }
        Ok(())
    }

    /// Removes expired keys by ordinary deletes.
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

    /// The deletes of expired keys. The index is used only to find the keys: the time is read from the object, which is
    /// verified.
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
        tracing::error!(path = %self.place.display(), %error, "failed to remove expired keys");
        self.next_expiry = Some(now_millis() + RETRY.as_millis() as i64);
    }

    pub(super) fn find_next_expiry(&mut self) {
        let sql = "SELECT expires FROM obj WHERE expires IS NOT NULL ORDER BY expires LIMIT 1";
        self.next_expiry =
            query(&self.connection, sql, [], |row| row.get(0)).unwrap_or_else(|error| {
                tracing::error!(%error, "failed to find the next key to expire");
                Some(now_millis() + RETRY.as_millis() as i64)
            });
    }

    /// Compacts history; its rows are removed later, step by step.
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

    /// The newest row always stays: the revision and the digest continue from it.
    pub(super) fn sweep_end(&self) -> u64 {
        self.compacted.min(self.head.revision.saturating_sub(1))
    }

    /// Removes rows that neither an object nor history needs: for each compacted change the row that it replaced, and
    /// its own row if it is a removal.
    fn sweep(&mut self) -> rusqlite::Result<()> {
        let start = Instant::now();
        // These removals need not be durable at once, only in order: the next write syncs them too.
        if self.is_syncing {
            self.is_syncing = false;
            self.connection
                .execute_batch("PRAGMA synchronous = NORMAL")?;
        }
        let swept = self.sweep_rows(self.pace.rows);
        if swept.is_err() {
            self.roll_back();
        }
        self.sync_commits()?;
        let swept = swept?;
        let (done, took) = (swept.saturating_sub(self.swept) as usize, start.elapsed());
        tracing::debug!(changes = done, ?took, "removed rows of compacted history");
        self.pace.adapt(done, took);
        self.swept = swept;
        Ok(())
    }

    fn sweep_rows(&self, rows: usize) -> rusqlite::Result<u64> {
        let start = Instant::now();
        let mut swept = self.swept;
        self.execute("BEGIN IMMEDIATE")?;
        let forgotten = self.forgotten(rows)?;
        if forgotten.is_empty() {
            // Rows are missing; the background verification reports that.
            swept = self.sweep_end();
        }
        // Even in a damaged store the value of a present object is not removed.
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

    /// The next compacted changes, each with the rows to remove. The rows of a damaged one stay.
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

    /// Starts a checkpoint of SQLite's log when it is long.
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

    /// Writes back the changes since the upkeep thread's checkpoint, so that the log starts from its beginning with the
    /// next write.
    pub(super) fn finish_checkpoint(&mut self) {
        self.is_checkpointing = false;
        if let Err(error) = query(
            &self.connection,
            "PRAGMA wal_checkpoint(PASSIVE)",
            [],
            |_| Ok(()),
        ) {
            tracing::warn!(%error, "failed to write back SQLite's log");
        }
    }
}
