//! The upkeep thread: checkpoints beside the writes, and the slow proof of every checksum.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::Connection;

use super::open::connect_upkeep;
use super::place::Place;
use super::prove::prove;
use super::reader::{load, name_key, query};
use super::row::sqlite_error;
use super::writer::Request;
use crate::StorageError;

/// The first proof begins when the start, in which the disk has better things to do, is over.
const FIRST_PROOF: Duration = Duration::from_secs(10);

/// The proof reads so many rows, then rests: about 5,000 rows a second.
const PROOF_ROWS: i64 = 128;
const PROOF_REST: Duration = Duration::from_millis(25);

/// How often a checkpoint goes after what was written meanwhile, and how many pages are few enough for the writer.
const CHECKPOINT_ROUNDS: usize = 8;
const CHECKPOINT_REST: i64 = 64;

/// So many lines about damage are kept; more would not help anyone.
const MAX_DAMAGE: usize = 100;

/// The other threads' end.
#[derive(Debug)]
pub(super) struct Upkeep {
    checkpoints: Sender<()>,
    thread: JoinHandle<()>,
}

impl Upkeep {
    /// Asks for a checkpoint; [`Request::Checkpointed`] follows if this says true.
    pub(super) fn checkpoint(&self) -> bool {
        self.checkpoints.send(()).is_ok()
    }

    /// Waits until the thread has closed its connection.
    pub(super) fn stop(self) {
        drop(self.checkpoints);
        if self.thread.join().is_err() {
            tracing::error!("the upkeep thread of the store panicked");
        }
    }
}

pub(super) fn start(
    place: &Place,
    prove_interval: Duration,
    writer: Sender<Request>,
    damage: Arc<Mutex<Vec<String>>>,
) -> io::Result<Upkeep> {
    let (checkpoints, asked) = mpsc::channel();
    let proof = Proof {
        place: place.clone(),
        next: Next::Objects(String::new()),
        damage,
    };
    let place = place.clone();
    let thread = std::thread::Builder::new()
        .name("apiloom-upkeep".into())
        .spawn(move || run(&place, prove_interval, &asked, &writer, proof))?;
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
    mut proof: Proof,
) {
    let mut connection = None;
    let mut rest = FIRST_PROOF.min(interval);
    loop {
        let woken = asked.recv_timeout(rest);
        if woken == Err(RecvTimeoutError::Disconnected) {
            return;
        }
        let open = match connection.take().map_or_else(|| connect_upkeep(place), Ok) {
            Ok(open) => open,
            Err(error) => {
                tracing::error!(%error, "no connection for the upkeep of the store");
                let _ = writer.send(Request::Checkpointed);
                continue;
            }
        };
        if woken.is_ok() {
            checkpoint(&open);
            // The writer may be gone: then it does the rest when it ends.
            let _ = writer.send(Request::Checkpointed);
            connection = Some(open);
            continue;
        }
        let is_done = proof.step(&open);
        rest = if is_done { interval } else { PROOF_REST };
        // Between proofs the connection's memory is given back.
        connection = (!is_done).then_some(open);
    }
}

/// Writes SQLite's log back while the writer goes on writing: again and again until little is left, for with the rest the
/// writer has to wait.
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
                tracing::warn!(%error, "SQLite's log was not written back");
                return;
            }
        }
    }
}

/// Proves everything at once; notes what is damaged.
pub(super) fn prove_everything(
    place: &Place,
    connection: &Connection,
    damage: &Arc<Mutex<Vec<String>>>,
) {
    let mut proof = Proof {
        place: place.clone(),
        next: Next::Objects(String::new()),
        damage: Arc::clone(damage),
    };
    while !proof.step(connection) {}
}

/// A pass over everything in the store.
struct Proof {
    place: Place,
    next: Next,
    damage: Arc<Mutex<Vec<String>>>,
}

/// Where the pass goes on.
enum Next {
    /// The objects after this key, each with its row of the log.
    Objects(String),
    /// The rows of the log after this revision.
    Log(i64),
}

impl Proof {
    /// Proves a part; says whether it was the last.
    fn step(&mut self, connection: &Connection) -> bool {
        let next = connection
            .unchecked_transaction()
            .map_err(|error| sqlite_error(&self.place, &error));
        let next = next.and_then(|snapshot| match &self.next {
            Next::Objects(after) => self.objects(&snapshot, after),
            Next::Log(after) => self.log(&snapshot, *after),
        });
        let next = next.unwrap_or_else(|error| {
            self.note(&error);
            None
        });
        let is_done = next.is_none();
        self.next = next.unwrap_or_else(|| Next::Objects(String::new()));
        is_done
    }

    fn objects(&self, snapshot: &Connection, after: &str) -> Result<Option<Next>, StorageError> {
        let sql = "SELECT key, revision FROM obj WHERE key > ?1 ORDER BY key LIMIT ?2";
        let rows: Vec<(String, i64)> = self.rows(snapshot, sql, (after, PROOF_ROWS))?;
        for (key, revision) in &rows {
            let proved = load(snapshot, &self.place, *revision as u64)
                .and_then(|record| record.into_entry(key));
            if let Err(error) = proved {
                self.note(&name_key(error, key));
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
        let rows: Vec<(i64, i64)> = self.rows(snapshot, sql, (after, PROOF_ROWS))?;
        for (revision, _) in &rows {
            if let Err(error) = load(snapshot, &self.place, *revision as u64) {
                self.note(&error);
            }
        }
        if let Some((last, _)) = rows.last() {
            return Ok(Some(Next::Log(*last)));
        }
        prove(&self.place, snapshot).map_err(|error| StorageError::Corrupt(error.to_string()))?;
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

    fn note(&self, error: &StorageError) {
        tracing::error!(path = %self.place.display(), %error, "the store is damaged");
        let line = error.to_string();
        let mut damage = self.damage.lock();
        if damage.len() < MAX_DAMAGE && !damage.contains(&line) {
            damage.push(line);
        }
    }
}
