//! The writing thread: everything that waits becomes one transaction with one sync, and only then is it answered.
//!
//! Between batches it removes what has expired and what history no longer needs, in steps short enough that no write
//! waits for more than a few milliseconds.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, params};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::EmbeddedConfig;
use super::open::{Head, Opened};
use super::reader::{load, name_key, query};
use super::row::{Line, Seal, line_columns, sqlite_error};
use super::upkeep::Upkeep;
use crate::feed::{Change, Feed};
use crate::op::Op;
use crate::retention::Horizon;
use crate::{Event, Revision, StorageError};

/// A batch ends after so many writes or bytes: the first of it waits for the last.
const BATCH_WRITES: usize = 1_024;
const BATCH_BYTES: usize = 8 << 20;

/// So many keys are removed at a time when many expire together.
const EXPIRE_STEP: i64 = 256;

/// A step of the sweep ends after so long. The rows and pages of one more row come on top.
const SWEEP_TIME: Duration = Duration::from_millis(2);

/// How often the size of SQLite's log is looked at, in writes, and from how many pages on it is written back.
const CHECKPOINT_LOOK_WRITES: usize = 128;
const CHECKPOINT_PAGES: i64 = 1_000;

/// How long to wait before trying again what the disk refused.
const RETRY: Duration = Duration::from_secs(1);

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
    path: PathBuf,
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
    /// When the next key expires, in milliseconds since 1970.
    next_expiry: Option<i64>,
    feed: Arc<Feed>,
    upkeep: Upkeep,
    /// Whether the upkeep thread is at a checkpoint.
    is_checkpointing: bool,
    writes_since_look: usize,
    /// Other processes stay out until the connection is closed: declared after it, so dropped after it.
    lock: File,
}

/// What one transaction did.
struct Committed {
    head: Head,
    answers: Vec<Result<Revision, StorageError>>,
    changes: Vec<Change>,
    next_expiry: Option<i64>,
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
            path: opened.path,
            connection: opened.connection,
            head: opened.head,
            compacted: opened.compacted,
            swept: opened.swept,
            shared_compacted,
            horizon: Horizon::new(config.retention),
            look_interval: config.retention.step(),
            next_look: Instant::now(),
            next_sweep: Instant::now(),
            next_expiry: None,
            feed,
            upkeep,
            is_checkpointing: false,
            writes_since_look: 0,
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
        let committed = self.transact(writes).map_err(|error| {
            self.roll_back();
            sqlite_error(&self.path, &error)
        })?;
        self.head = committed.head;
        self.next_expiry = committed.next_expiry;
        if !committed.changes.is_empty() {
            self.feed
                .publish(&committed.changes, Revision(self.head.revision));
        }
        Ok(committed.answers)
    }

    fn transact<'a>(
        &self,
        writes: impl Iterator<Item = (&'a str, &'a Op)>,
    ) -> rusqlite::Result<Committed> {
        let mut transaction = Transaction {
            writer: self,
            is_watched: self.feed.is_watched(),
            now: now_millis(),
            head: self.head,
            changes: Vec::new(),
            next_expiry: self.next_expiry,
        };
        self.execute("BEGIN IMMEDIATE")?;
        let answers = writes
            .map(|(key, op)| transaction.apply(key, op))
            .collect::<rusqlite::Result<_>>()?;
        self.execute("COMMIT")?;
        let Transaction {
            head,
            changes,
            next_expiry,
            ..
        } = transaction;
        Ok(Committed {
            head,
            answers,
            changes,
            next_expiry,
        })
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

    fn keep_house(&mut self, written: usize) {
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
        if self.swept < self.sweep_end()
            && now >= self.next_sweep
            && let Err(error) = self.sweep(64.max(2 * written))
        {
            tracing::error!(%error, "history was not swept");
            self.next_sweep = now + RETRY;
        }
        self.look_at_log(written);
    }

    /// Deletes what has expired, by ordinary deletes.
    fn expire(&mut self) {
        let done = self
            .due()
            .map_err(|error| sqlite_error(&self.path, &error))
            .and_then(|due| self.commit(due.iter().map(|(key, op)| (&**key, op))));
        match done {
            Ok(answers) if !answers.is_empty() => self.find_next_expiry(),
            Ok(_) => self.retry_expiry("the index of expiring keys is not that of the objects"),
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
        tracing::error!(path = %self.path.display(), %error, "expired keys were not removed");
        self.next_expiry = Some(now_millis() + RETRY.as_millis() as i64);
    }

    fn find_next_expiry(&mut self) {
        let sql = "SELECT expires FROM obj WHERE expires IS NOT NULL ORDER BY expires LIMIT 1";
        self.next_expiry =
            query(&self.connection, sql, [], |row| row.get(0)).unwrap_or_else(|error| {
                tracing::error!(%error, "the next key to expire was not found");
                Some(now_millis() + RETRY.as_millis() as i64)
            });
    }

    /// Forgets changes; their rows go later, step by step.
    fn compact(&mut self, revision: Revision) -> Result<(), StorageError> {
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
        let sql = "UPDATE meta SET value = ?1 WHERE name = 'compacted'";
        let done = self.connection.execute(sql, [revision.0 as i64]);
        done.map_err(|error| sqlite_error(&self.path, &error))?;
        self.compacted = revision.0;
        self.shared_compacted.store(revision.0, Ordering::Release);
        Ok(())
    }

    /// The newest row stays whatever it is: the revision and the digest go on from it.
    fn sweep_end(&self) -> u64 {
        self.compacted.min(self.head.revision.saturating_sub(1))
    }

    /// Removes rows that no object and no history needs: for each forgotten change the row that it replaced, and its own
    /// where it is a removal.
    fn sweep(&mut self, rows: usize) -> rusqlite::Result<()> {
        // These removals need not be durable before anything else is, only in order: the next write syncs them too.
        self.connection
            .execute_batch("PRAGMA synchronous = NORMAL")?;
        let swept = self.sweep_rows(rows);
        if swept.is_err() {
            self.roll_back();
        }
        self.connection.execute_batch("PRAGMA synchronous = FULL")?;
        self.swept = swept?;
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
        let sql = "UPDATE meta SET value = ?1 WHERE name = 'swept'";
        self.connection
            .prepare_cached(sql)?
            .execute([swept as i64])?;
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
            let unneeded = match Line::read(row, revision) {
                Ok(line) => [
                    (line.previous != 0).then_some(line.previous),
                    line.is_removal.then_some(line.revision),
                ],
                Err(error) => {
                    tracing::error!(path = %self.path.display(), %error, "the store is damaged");
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
    fn finish_checkpoint(&mut self) {
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

/// One transaction under way.
struct Transaction<'a> {
    writer: &'a Writer,
    /// Whether to load previous values for watchers.
    is_watched: bool,
    now: i64,
    head: Head,
    changes: Vec<Change>,
    next_expiry: Option<i64>,
}

impl Transaction<'_> {
    /// Does one write. The inner error is the answer to it, the outer one ends the transaction.
    fn apply(&mut self, key: &str, op: &Op) -> rusqlite::Result<Result<Revision, StorageError>> {
        let revision = self.head.revision + 1;
        let expires = op.ttl().map(|ttl| {
            self.now
                .saturating_add(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX))
        });
        let is_new = matches!(op, Op::Create { .. }) && self.insert(key, revision, expires)?;
        let present = if is_new {
            None
        } else {
            present(&self.writer.connection, key)?
        };
        if !op.is_allowed(present.map(|(revision, _)| Revision(revision))) {
            return Ok(Err(self.refusal(
                key,
                op,
                present.map(|(revision, _)| revision),
            )));
        }
        match op {
            Op::Create { .. } => {}
            Op::Update { .. } => {
                self.execute(
                    "UPDATE obj SET revision = ?2, expires = ?3 WHERE key = ?1",
                    params![key, revision as i64, expires],
                )?;
            }
            Op::Delete { .. } => {
                self.execute("DELETE FROM obj WHERE key = ?1", [key])?;
            }
        }
        self.log(key, op, revision, present, expires)?;
        let previous = present.map(|(revision, _)| revision);
        let change = self.change(key, op, revision, previous);
        self.changes.push(change);
        if let Some(expires) = expires {
            self.next_expiry = Some(self.next_expiry.map_or(expires, |next| next.min(expires)));
        }
        Ok(Ok(Revision(revision)))
    }

    /// Puts in an object where there is none; says whether it did.
    fn insert(&self, key: &str, revision: u64, expires: Option<i64>) -> rusqlite::Result<bool> {
        let sql = "INSERT INTO obj (key, revision, expires) VALUES (?1, ?2, ?3) ON CONFLICT (key) DO NOTHING";
        Ok(self.execute(sql, params![key, revision as i64, expires])? == 1)
    }

    fn log(
        &mut self,
        key: &str,
        op: &Op,
        revision: u64,
        present: Option<(u64, Option<i64>)>,
        expires: Option<i64>,
    ) -> rusqlite::Result<()> {
        let mut digest = self.head.digest;
        if let Some((revision, expires)) = present {
            digest.remove(key, revision, expires);
        }
        if op.value().is_some() {
            digest.add(key, revision, expires);
        }
        let previous = present.map_or(0, |(revision, _)| revision);
        let value = op.value().map(|value| &value[..]);
        let seal = Seal::of(revision, key, previous, digest, value);
        let sql = "INSERT INTO log (revision, key, previous, digest, seal, value) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.execute(
            sql,
            params![
                revision as i64,
                key,
                previous as i64,
                digest.0 as i64,
                seal.0 as i64,
                value
            ],
        )?;
        self.head = Head { revision, digest };
        Ok(())
    }

    fn execute(&self, sql: &str, params: impl rusqlite::Params) -> rusqlite::Result<usize> {
        self.writer.connection.prepare_cached(sql)?.execute(params)
    }

    fn refusal(&self, key: &str, op: &Op, present: Option<u64>) -> StorageError {
        let entry = present.map(|revision| {
            load(&self.writer.connection, &self.writer.path, revision)
                .and_then(|record| record.into_entry(key))
                .map_err(|error| name_key(error, key))
        });
        entry
            .transpose()
            .map_or_else(|damage| damage, |entry| op.refusal(key, entry))
    }

    /// The change for the watchers. A previous value that cannot be read does not stop the write that replaces it:
    /// the watchers meet the damage in history.
    fn change(&self, key: &str, op: &Op, revision: u64, previous: Option<u64>) -> Change {
        let load =
            |revision| load(&self.writer.connection, &self.writer.path, revision)?.into_entry(key);
        let loaded = self.is_watched.then(|| previous.map(load).transpose());
        let Some(Ok(previous)) = loaded else {
            return Change::InHistory {
                key: key.to_owned(),
            };
        };
        Change::Loaded(Arc::new(Event {
            kind: op.kind(),
            key: key.to_owned(),
            value: op.value().cloned().unwrap_or_default(),
            previous: previous.map(|entry| (entry.value, entry.revision)),
            revision: Revision(revision),
        }))
    }
}

/// The revision of an object and when it expires.
fn present(connection: &Connection, key: &str) -> rusqlite::Result<Option<(u64, Option<i64>)>> {
    let sql = "SELECT revision, expires FROM obj WHERE key = ?1";
    query(connection, sql, [key], |row| {
        Ok((row.get::<_, i64>(0)? as u64, row.get(1)?))
    })
}

fn now_millis() -> i64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
