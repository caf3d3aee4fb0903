//! The upkeep thread: checkpoints concurrent with writes, and the slow verification of every checksum.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::Connection;

use super::connection::connect_upkeep;
use super::error::OpenError;
use super::failure::{name_key, sqlite_error};
use super::place::Place;
use super::request::Request;
use super::row::{load, query};
use super::verify::verify;
use crate::StorageError;

/// The first verification begins after the start, when the disk is less busy.
const FIRST_VERIFICATION: Duration = Duration::from_secs(10);

/// Rows that the verification reads between pauses: about 5,000 rows a second.
const VERIFY_ROWS: i64 = 128;
const VERIFY_REST: Duration = Duration::from_millis(25);

/// How long to wait before the verification retries after a disk error.
const VERIFY_RETRY: Duration = Duration::from_secs(10);

/// After this many attempts unreadable data is reported as damaged.
const VERIFY_ATTEMPTS: u32 = 6;

/// Maximum rounds of a checkpoint that follow the writes in the meantime, and the number of pages that may be left to
/// the writer.
const CHECKPOINT_ROUNDS: usize = 8;
const CHECKPOINT_REST: i64 = 64;

/// Maximum lines about damage that are kept.
const MAX_DAMAGE: usize = 100;

/// The handle of the thread.
#[derive(Debug)]
pub(super) struct Upkeep {
    checkpoints: Sender<()>,
    thread: JoinHandle<()>,
}

impl Upkeep {
    /// Requests a checkpoint; [`Request::Checkpointed`] follows if this returns true.
    pub(super) fn checkpoint(&self) -> bool {
        self.checkpoints.send(()).is_ok()
    }

    /// Waits until the thread has closed its connection.
    pub(super) fn stop(self) {
        drop(self.checkpoints);
        if self.thread.join().is_err() {
            tracing::error!("the maintenance thread of the store panicked");
        }
    }
}

pub(super) fn start(
    place: &Place,
    verify_interval: Duration,
    writer: Sender<Request>,
    damage: Arc<Mutex<Vec<String>>>,
) -> io::Result<Upkeep> {
    let (checkpoints, asked) = mpsc::channel();
    let verification = Verification {
        place: place.clone(),
        next: Next::Objects(String::new()),
        damage,
    };
    let place = place.clone();
    let thread = std::thread::Builder::new()
        .name("apiloom-upkeep".into())
        .spawn(move || run(&place, verify_interval, &asked, &writer, verification))?;
    Ok(Upkeep {
        checkpoints,
        thread,
    })
}

fn run(
    place: &Place,
    interval: Duration,
    asked: &Receiver<()>,
    writer: &Sender<Request>,
    mut verification: Verification,
) {
    let mut connection = None;
    let mut rest = FIRST_VERIFICATION.min(interval);
    let mut failures = 0;
    loop {
        let woken = asked.recv_timeout(rest);
        if woken == Err(RecvTimeoutError::Disconnected) {
            return;
        }
        let open = match connection.take().map_or_else(|| connect(place), Ok) {
            Ok(open) => open,
            Err(error) => {
                tracing::error!(%error, "failed to open a connection for store maintenance");
                let _ = writer.send(Request::Checkpointed);
                continue;
            }
        };
        if woken.is_ok() {
            checkpoint(&open);
            // The writer may have ended: then it writes the rest back itself.
            let _ = writer.send(Request::Checkpointed);
            connection = Some(open);
            continue;
        }
        match verification.step(&open) {
            // Release the connection's memory between verifications.
            Ok(true) => {
                rest = interval;
                failures = 0;
            }
            Ok(false) => {
                rest = VERIFY_REST;
                failures = 0;
                connection = Some(open);
            }
            // A failed read is not damage: the verification continues at the same place, with a new connection.
            Err(error) => {
                tracing::warn!(path = %place.display(), %error, "the verification was interrupted and will be retried");
                rest = VERIFY_RETRY.min(interval);
                failures += 1;
                if failures == VERIFY_ATTEMPTS {
                    verification.note(&error);
                }
            }
        }
    }
}

fn connect(place: &Place) -> Result<Connection, StorageError> {
    let connection = connect_upkeep(place);
    // The files at this path now may be gone, or belong to another store.
    place.check().map_err(StorageError::Refused)?;
    connection.map_err(|error| sqlite_error(place, &error))
}

/// Writes SQLite's log back while the writer continues, in rounds until little is left, because the writer must wait
/// for the rest.
fn checkpoint(connection: &Connection) {
    for _ in 0..CHECKPOINT_ROUNDS {
        let written = query(connection, "PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        let left = written.and_then(|_| {
            let sql = "PRAGMA wal_checkpoint(NOOP)";
            query(connection, sql, [], |row| {
                Ok(row.get::<_, i64>(1)? - row.get::<_, i64>(2)?)
            })
        });
        match left {
            Ok(left) if left.is_some_and(|left| left > CHECKPOINT_REST) => {}
            Ok(_) => return,
            Err(error) => {
                tracing::warn!(%error, "failed to write back SQLite's log");
                return;
            }
        }
    }
}

/// Verifies everything in one pass; records damage.
pub(super) fn verify_everything(
    place: &Place,
    connection: &Connection,
    damage: &Arc<Mutex<Vec<String>>>,
) {
    let mut verification = Verification {
        place: place.clone(),
        next: Next::Objects(String::new()),
        damage: Arc::clone(damage),
    };
    loop {
        match verification.step(connection) {
            Ok(false) => {}
            Ok(true) => return,
            Err(error) => return verification.note(&error),
        }
    }
}

/// Runs a verification again if it found damage: SQLite reports damage also when the disk fails once, and real damage
/// is found again.
fn twice<T>(verify: impl Fn() -> Result<T, StorageError>) -> Result<T, StorageError> {
    match verify() {
        Err(StorageError::Corrupt(_)) => verify(),
        verified => verified,
    }
}

/// A verification pass over the whole store.
struct Verification {
    place: Place,
    next: Next,
    damage: Arc<Mutex<Vec<String>>>,
}

/// Where the pass continues.
enum Next {
    /// The objects after this key, each with its row of the log.
    Objects(String),
    /// The rows of the log after this revision.
    Log(i64),
}

impl Verification {
    /// Verifies the next part; returns whether it was the last. Damage is recorded; a temporary failure is an error,
    /// and the part must be verified again.
    fn step(&mut self, connection: &Connection) -> Result<bool, StorageError> {
        let next = connection
            .unchecked_transaction()
            .map_err(|error| sqlite_error(&self.place, &error));
        let next = next.and_then(|snapshot| {
            twice(|| match &self.next {
                Next::Objects(after) => self.objects(&snapshot, after),
                Next::Log(after) => self.log(&snapshot, *after),
            })
        });
        let next = match next {
            Err(error) => {
                self.note_damage(error)?;
                None
            }
            Ok(next) => next,
        };
        let is_done = next.is_none();
        self.next = next.unwrap_or_else(|| Next::Objects(String::new()));
        Ok(is_done)
    }

    fn objects(&self, snapshot: &Connection, after: &str) -> Result<Option<Next>, StorageError> {
        let sql = "SELECT key, revision FROM obj WHERE key > ?1 ORDER BY key LIMIT ?2";
        let rows: Vec<(String, i64)> = self.rows(snapshot, sql, (after, VERIFY_ROWS))?;
        for (key, revision) in &rows {
            let verified = twice(|| {
                load(snapshot, &self.place, *revision as u64)
                    .and_then(|record| record.into_entry(key))
            });
            if let Err(error) = verified {
                self.note_damage(name_key(error, key))?;
            }
        }
        Ok(Some(
            rows.into_iter()
                .next_back()
                .map_or(Next::Log(0), |(key, _)| Next::Objects(key)),
        ))
    }

    fn log(&self, snapshot: &Connection, after: i64) -> Result<Option<Next>, StorageError> {
        let sql =
            "SELECT revision, previous FROM log WHERE revision > ?1 ORDER BY revision LIMIT ?2";
        let rows: Vec<(i64, i64)> = self.rows(snapshot, sql, (after, VERIFY_ROWS))?;
        for (revision, _) in &rows {
            if let Err(error) = twice(|| load(snapshot, &self.place, *revision as u64)) {
                self.note_damage(error)?;
            }
        }
        if let Some((last, _)) = rows.last() {
            return Ok(Some(Next::Log(*last)));
        }
        verify(&self.place, snapshot).map_err(|error| match error {
            OpenError::Io { .. } => StorageError::Unavailable(error.to_string()),
            _ => StorageError::Corrupt(error.to_string()),
        })?;
        Ok(None)
    }

    fn rows<A, B>(
        &self,
        snapshot: &Connection,
        sql: &str,
        params: impl rusqlite::Params,
    ) -> Result<Vec<(A, B)>, StorageError>
    where
        A: rusqlite::types::FromSql,
        B: rusqlite::types::FromSql,
    {
        let rows = snapshot.prepare_cached(sql).and_then(|mut statement| {
            statement
                .query_map(params, |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<rusqlite::Result<_>>()
        });
        rows.map_err(|error| sqlite_error(&self.place, &error))
    }

    fn note_damage(&self, error: StorageError) -> Result<(), StorageError> {
        if !matches!(error, StorageError::Corrupt(_)) {
            return Err(error);
        }
        self.note(&error);
        Ok(())
    }

    fn note(&self, error: &StorageError) {
        tracing::error!(path = %self.place.display(), %error, "the store is damaged");
        let line = error.to_string();
        let mut damage = self.damage.lock();
        if damage.len() < MAX_DAMAGE && !damage.contains(&line) {
            damage.push(line);
        }
    }
}
