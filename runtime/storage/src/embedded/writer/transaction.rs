//! One transaction of the writing thread: the writes of a batch, each with an answer of its own.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, params};

use crate::embedded::failure::name_key;
use crate::embedded::place::Place;
use crate::embedded::row::{Checksums, load, query};
use crate::embedded::verify::Head;
use crate::feed::Change;
use crate::op::{Expiry, Op};
use crate::{Event, Revision, StorageError};

/// The store before a transaction.
pub(super) struct Before<'w> {
    pub(super) place: &'w Place,
    pub(super) connection: &'w Connection,
    pub(super) head: Head,
    /// When the next key expires, in milliseconds since 1970.
    pub(super) next_expiry: Option<i64>,
    /// Whether to load previous values for watchers.
    pub(super) is_watched: bool,
}

/// The result of a transaction that was committed.
pub(super) struct Commit {
    pub(super) head: Head,
    /// One answer per write.
    pub(super) answers: Vec<Result<Revision, StorageError>>,
    pub(super) changes: Vec<Change>,
    /// For each revision the bytes of the value that it replaced.
    pub(super) replaced: Vec<(u64, u64)>,
    pub(super) next_expiry: Option<i64>,
}

/// Runs writes in one transaction, which is durable when this returns. After an error it must be rolled back.
pub(super) fn run<'a>(
    before: &Before<'_>,
    writes: impl Iterator<Item = (&'a str, &'a Op)>,
) -> rusqlite::Result<Commit> {
    let mut transaction = Transaction {
        place: before.place,
        connection: before.connection,
        is_watched: before.is_watched,
        now: now_millis(),
        head: before.head,
        changes: Vec::new(),
        replaced: Vec::new(),
        next_expiry: before.next_expiry,
    };
    transaction.execute("BEGIN IMMEDIATE", [])?;
    let answers = writes
        .map(|(key, op)| transaction.apply(key, op))
        .collect::<rusqlite::Result<_>>()?;
    transaction.execute("COMMIT", [])?;
    let Transaction {
        head,
        changes,
        replaced,
        next_expiry,
        ..
    } = transaction;
    Ok(Commit {
        head,
        answers,
        changes,
        replaced,
        next_expiry,
    })
}

/// A transaction in progress.
struct Transaction<'a> {
    place: &'a Place,
    connection: &'a Connection,
    /// Whether to load previous values for watchers.
    is_watched: bool,
    now: i64,
    head: Head,
    changes: Vec<Change>,
    replaced: Vec<(u64, u64)>,
    next_expiry: Option<i64>,
}

impl Transaction<'_> {
    /// Runs one write. The inner error is the answer to it, the outer one aborts the transaction.
    fn apply(&mut self, key: &str, op: &Op) -> rusqlite::Result<Result<Revision, StorageError>> {
        let revision = self.head.revision + 1;
        let ttl = match op.expiry() {
            Expiry::After(ttl) => Some(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX)),
            Expiry::Never | Expiry::Kept => None,
        };
        let mut expires = ttl.map(|ttl| self.now.saturating_add(ttl));
        let is_new = matches!(op, Op::Create { .. }) && self.insert(key, revision, expires)?;
        let present = if is_new {
            None
        } else {
            present(self.connection, key)?
        };
        if !op.is_allowed(present.map(|(revision, _)| Revision(revision))) {
            return Ok(Err(self.refusal(
                key,
                op,
                present.map(|(revision, _)| revision),
            )));
        }
        if matches!(op.expiry(), Expiry::Kept) {
            expires = present.and_then(|(_, expires)| expires);
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
        let replaced = match (&change, previous) {
            (_, None) => 0,
            (Change::Loaded(event), _) => {
                (event.previous.as_ref()).map_or(0, |(value, _)| value.len() as u64)
            }
            (Change::InHistory { .. }, Some(previous)) => value_bytes(self.connection, previous)?,
        };
        self.replaced.push((revision, key.len() as u64 + replaced));
        self.changes.push(change);
        if let Some(expires) = expires {
            self.next_expiry = Some(self.next_expiry.map_or(expires, |next| next.min(expires)));
        }
        Ok(Ok(Revision(revision)))
    }

    /// Inserts an object if the key is absent; returns whether it did.
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
        let seal = Checksums::of(revision, key, previous, digest, value);
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
        self.connection.prepare_cached(sql)?.execute(params)
    }

    fn refusal(&self, key: &str, op: &Op, present: Option<u64>) -> StorageError {
        let entry = present.map(|revision| {
            load(self.connection, self.place, revision)
                .and_then(|record| record.into_entry(key))
                .map_err(|error| name_key(error, key))
        });
        entry
            .transpose()
            .map_or_else(|damage| damage, |entry| op.refusal(key, entry))
    }

    /// The change for the watchers. A previous value that cannot be read does not fail the write that replaces it:
    /// watchers get the error when they read history.
    fn change(&self, key: &str, op: &Op, revision: u64, previous: Option<u64>) -> Change {
        let load = |revision| load(self.connection, self.place, revision)?.into_entry(key);
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

/// The size of the value of a revision, without reading it.
fn value_bytes(connection: &Connection, revision: u64) -> rusqlite::Result<u64> {
    let sql = "SELECT length(value) FROM log WHERE revision = ?1";
    let bytes = query(connection, sql, [revision as i64], |row| {
        row.get::<_, Option<i64>>(0)
    })?;
    Ok(bytes.flatten().unwrap_or_default().unsigned_abs())
}

/// The revision of a present object and its time of expiry.
pub(super) fn present(
    connection: &Connection,
    key: &str,
) -> rusqlite::Result<Option<(u64, Option<i64>)>> {
    let sql = "SELECT revision, expires FROM obj WHERE key = ?1";
    query(connection, sql, [key], |row| {
        Ok((row.get::<_, i64>(0)? as u64, row.get(1)?))
    })
}

/// Milliseconds since 1970.
pub(super) fn now_millis() -> i64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
