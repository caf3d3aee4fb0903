//! Reads: a pool of connections, each used by one read at a time, on tokio's blocking threads.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rusqlite::{Connection, Row, Transaction, params};
use tokio::sync::Semaphore;

use super::connection::connect_reader;
use super::failure::{closed, name_key, sqlite_error};
use super::place::Place;
use super::row::{Line, Number, Record, line_columns, load, query, record_columns};
use super::verify::{damaged_page, root_page};
use crate::feed::Replay;
use crate::keys::{prefix_end, range_start};
use crate::{Entry, Event, EventKind, ListRequest, Page, Revision, StorageError};

/// Four keep a disk busy: lists and watches of the current state are answered by the watch cache.
const CONNECTIONS: u32 = 4;

/// Maximum rows of a page of a replay, which also has a limit in bytes, so that it delays neither checkpoints nor the
/// release of memory.
const REPLAY_ROWS: u64 = 2_048;
const REPLAY_BYTES: usize = 4 << 20;

/// The pool of reading connections.
#[derive(Debug)]
pub(super) struct Readers {
    place: Arc<Place>,
    permits: Arc<Semaphore>,
    /// Connections not in use; more are opened on demand, up to the number of permits.
    idle: Arc<Mutex<Vec<Connection>>>,
    /// Where the file is damaged: searched for once, since that reads all of it.
    damaged_page: Arc<OnceLock<String>>,
}

impl Readers {
    pub(super) fn new(place: Place) -> Self {
        let permits = Arc::new(Semaphore::new(CONNECTIONS as usize));
        Self {
            place: Arc::new(place),
            permits,
            idle: Arc::default(),
            damaged_page: Arc::default(),
        }
    }

    /// Runs a read on a blocking thread, over one snapshot of the store.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Snapshot<'_>) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, StorageError> {
        let permit = Arc::clone(&self.permits)
            .acquire_owned()
            .await
            .map_err(|_| closed())?;
        let (idle, place) = (Arc::clone(&self.idle), Arc::clone(&self.place));
        let damaged_page = Arc::clone(&self.damaged_page);
        let task = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let failed = |error: rusqlite::Error| sqlite_error(&place, &error);
            let connection = idle.lock().pop();
            let connection = match connection {
                Some(connection) => connection,
                None => {
                    let connection = connect_reader(&place);
                    // The files at this path now may be gone, or belong to another store.
                    place.check().map_err(StorageError::Refused)?;
                    connection.map_err(failed)?
                }
            };
            let answer =
                connection
                    .unchecked_transaction()
                    .map_err(failed)
                    .and_then(|transaction| {
                        read(&Snapshot {
                            place: &place,
                            transaction,
                        })
                    });
            let answer = answer.map_err(|error| name_page(error, &connection, &damaged_page));
            idle.lock().push(connection);
            answer
        });
        task.await
            .map_err(|error| StorageError::Unavailable(format!("the read was given up: {error}")))?
    }

    /// Waits for the reads in progress and closes the connections.
    pub(super) async fn close(&self) {
        // Fails if the semaphore is already closed.
        let _ = self.permits.acquire_many(CONNECTIONS).await;
        self.permits.close();
        self.idle.lock().clear();
    }
}

/// The store at one revision.
pub(super) struct Snapshot<'a> {
    place: &'a Place,
    transaction: Transaction<'a>,
}

impl Snapshot<'_> {
    pub(super) fn get(&self, key: &str) -> Result<(Option<Entry>, Revision), StorageError> {
        let revision = self.revision()?;
        let present = self.query("SELECT revision FROM obj WHERE key = ?1", [key], |row| {
            row.get::<_, i64>(0)
        })?;
        let entry = present
            .map(|revision| self.entry(key, revision as u64))
            .transpose()?;
        Ok((entry, revision))
    }

    pub(super) fn count(&self, prefix: &str, from: &str) -> Result<u64, StorageError> {
        let end = prefix_end(prefix);
        let sql = "SELECT count(*) FROM obj WHERE key >= ?1 AND (?2 IS NULL OR key < ?2)";
        let bounded = "SELECT count(*) FROM obj WHERE key >= ?1 AND key < ?2";
        let sql = if end.is_some() { bounded } else { sql };
        let count = self.query(sql, params![from, end], |row| row.get::<_, i64>(0))?;
        Ok(count.unwrap_or_default() as u64)
    }

    pub(super) fn list(&self, request: &ListRequest) -> Result<Page, StorageError> {
        let revision = self.revision()?;
        let from = range_start(&request.prefix, &request.start);
        let undone = match request.at {
            Some(at) if at != revision => self.undone_since(at, revision, &request.prefix, from)?,
            _ => BTreeMap::new(),
        };
        let limit = if request.limit == 0 {
            usize::MAX
        } else {
            request.limit
        };
        let (keys, next) = self.page(&request.prefix, from, limit, &undone)?;
        let remaining = match &next {
            None => Some(0),
            Some(_) if request.uncounted => None,
            Some(next) => Some(self.remaining(&request.prefix, next, &undone)?),
        };
        let entries = keys
            .iter()
            .map(|(key, revision)| self.entry(key, *revision))
            .collect::<Result<_, _>>()?;
        Ok(Page {
            entries,
            revision: request.at.unwrap_or(revision),
            more: next.is_some(),
            remaining,
        })
    }

    /// The values at `at` of the keys that changed since (`None`: absent), in a range of keys.
    fn undone_since(
        &self,
        at: Revision,
        current: Revision,
        prefix: &str,
        from: &str,
    ) -> Result<BTreeMap<String, Option<u64>>, StorageError> {
        self.check_kept(at)?;
        if at > current {
            return Err(StorageError::Future {
                requested: at,
                current,
            });
        }
        let sql = concat!(
            "SELECT ",
            line_columns!(),
            " FROM log WHERE revision > ?1 ORDER BY revision"
        );
        let mut undone = BTreeMap::new();
        let mut reached = at.0;
        self.for_each(sql, [at.0 as i64], |row| {
            if self.number(row, 0)? != reached + 1 {
                return Ok(false);
            }
            reached += 1;
            let line = Line::read(self.place, row, reached)?;
            if line.key.starts_with(prefix) && line.key >= from && !undone.contains_key(line.key) {
                undone.insert(
                    line.key.to_owned(),
                    (line.previous != 0).then_some(line.previous),
                );
            }
            Ok(true)
        })?;
        if reached < current.0 {
            return Err(self.missing(reached + 1));
        }
        Ok(undone)
    }

    fn missing(&self, revision: u64) -> StorageError {
        StorageError::Corrupt(format!(
            "{}: revision {revision} is missing from the log",
            self.place.display()
        ))
    }

    /// The first keys of a range with the revisions of their values, and the key after them.
    #[expect(
        clippy::type_complexity,
        reason = "a page and the key after it, used once"
    )]
    fn page(
        &self,
        prefix: &str,
        from: &str,
        limit: usize,
        undone: &BTreeMap<String, Option<u64>>,
    ) -> Result<(Vec<(String, u64)>, Option<String>), StorageError> {
        let mut old = undone
            .iter()
            .filter_map(|(key, revision)| Some((key, (*revision)?)))
            .peekable();
        let mut keys: Vec<(String, u64)> = Vec::new();
        self.for_each_object(prefix, from, |key, revision| {
            while let Some((old_key, old_revision)) =
                old.next_if(|(old_key, _)| old_key.as_str() <= key)
            {
                keys.push((old_key.clone(), old_revision));
            }
            if !undone.contains_key(key) {
                keys.push((key.to_owned(), revision));
            }
            keys.len() <= limit
        })?;
        if keys.len() <= limit {
            keys.extend(old.map(|(key, revision)| (key.clone(), revision)));
        }
        let next = keys.get(limit).map(|(key, _)| key.clone());
        keys.truncate(limit);
        Ok((keys, next))
    }

    /// The number of keys from `from` on.
    fn remaining(
        &self,
        prefix: &str,
        from: &str,
        undone: &BTreeMap<String, Option<u64>>,
    ) -> Result<u64, StorageError> {
        let mut count = self.count(prefix, from)?;
        for (key, old) in
            undone.range::<str, _>((std::ops::Bound::Included(from), std::ops::Bound::Unbounded))
        {
            let sql = "SELECT revision FROM obj WHERE key = ?1";
            let is_present = self
                .query(sql, [key], |row| row.get::<_, i64>(0))?
                .is_some();
            count = count + u64::from(old.is_some()) - u64::from(is_present);
        }
        Ok(count)
    }

    /// A page of the changes below a prefix; verifies that no row of the log in between is missing.
    pub(super) fn replay(
        &self,
        prefix: &str,
        after: Revision,
        upto: Revision,
    ) -> Result<Replay, StorageError> {
        self.check_kept(after)?;
        let sql = concat!(
            "SELECT ",
            record_columns!(),
            " FROM log WHERE revision > ?1 AND revision <= ?2 ORDER BY revision LIMIT ?3"
        );
        let mut replay = Replay {
            events: Vec::new(),
            reached: after,
        };
        let mut bytes = 0;
        let range = params![after.0 as i64, upto.0 as i64, REPLAY_ROWS as i64];
        let read = self.for_each(sql, range, |row| {
            let revision = replay.reached.0 + 1;
            if self.number(row, 0)? != revision {
                return Ok(false);
            }
            if Line::read(self.place, row, revision)?
                .key
                .starts_with(prefix)
            {
                let event = self.event(Record::read(self.place, row, revision)?)?;
                bytes +=
                    event.value.len() + event.previous.as_ref().map_or(0, |(value, _)| value.len());
                replay.events.push(event);
            }
            replay.reached = Revision(revision);
            Ok(bytes < REPLAY_BYTES)
        });
        if replay.reached > after {
            // The changes before the damage are delivered first; the next call starts at the damage and reports it.
            return Ok(replay);
        }
        read?;
        Err(self.missing(after.0 + 1))
    }

    fn event(&self, record: Record) -> Result<Event, StorageError> {
        let previous = match record.previous {
            0 => None,
            revision => Some(self.entry(&record.key, revision)?),
        };
        let kind = match (&record.value, &previous) {
            (None, _) => EventKind::Deleted,
            (Some(_), None) => EventKind::Created,
            (Some(_), Some(_)) => EventKind::Updated,
        };
        Ok(Event {
            kind,
            key: record.key,
            value: record.value.unwrap_or_default(),
            previous: previous.map(|entry| (entry.value, entry.revision)),
            revision: Revision(record.revision),
        })
    }

    /// The value that a key got at a revision.
    fn entry(&self, key: &str, revision: u64) -> Result<Entry, StorageError> {
        load(&self.transaction, self.place, revision)
            .and_then(|record| record.into_entry(key))
            .map_err(|error| name_key(error, key))
    }

    fn check_kept(&self, requested: Revision) -> Result<(), StorageError> {
        let compacted = Revision(Number::load(self.place, &self.transaction, "compacted")?);
        if requested < compacted {
            Err(StorageError::Compacted {
                requested,
                compacted,
            })
        } else {
            Ok(())
        }
    }

    fn revision(&self) -> Result<Revision, StorageError> {
        let newest = self.query("SELECT max(revision) FROM log", [], |row| {
            row.get::<_, Option<i64>>(0)
        })?;
        Ok(Revision(newest.flatten().unwrap_or_default() as u64))
    }

    fn for_each_object(
        &self,
        prefix: &str,
        from: &str,
        mut visit: impl FnMut(&str, u64) -> bool,
    ) -> Result<(), StorageError> {
        let visit = |row: &Row<'_>| {
            let key = row.get_ref(0).and_then(|key| Ok(key.as_str()?));
            let key = key.map_err(|error| sqlite_error(self.place, &error))?;
            Ok(visit(key, self.number(row, 1)?))
        };
        match prefix_end(prefix) {
            Some(end) => {
                let sql = "SELECT key, revision FROM obj WHERE key >= ?1 AND key < ?2 ORDER BY key";
                self.for_each(sql, [from, &end], visit)
            }
            None => self.for_each(
                "SELECT key, revision FROM obj WHERE key >= ?1 ORDER BY key",
                [from],
                visit,
            ),
        }
    }

    /// Visits rows until `visit` returns that it has enough.
    fn for_each(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
        mut visit: impl FnMut(&Row<'_>) -> Result<bool, StorageError>,
    ) -> Result<(), StorageError> {
        let failed = |error: rusqlite::Error| sqlite_error(self.place, &error);
        let mut statement = self.transaction.prepare_cached(sql).map_err(failed)?;
        let mut rows = statement.query(params).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            if !visit(row)? {
                break;
            }
        }
        Ok(())
    }

    fn number(&self, row: &Row<'_>, column: usize) -> Result<u64, StorageError> {
        let number = row
            .get::<_, i64>(column)
            .map_err(|error| sqlite_error(self.place, &error))?;
        Ok(number as u64)
    }

    /// The only row of a query, if it has one.
    fn query<T>(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StorageError> {
        query(&self.transaction, sql, params, read)
            .map_err(|error| sqlite_error(self.place, &error))
    }
}

/// Adds the page number to an error about damage that names no key.
fn name_page(
    error: StorageError,
    connection: &Connection,
    found: &OnceLock<String>,
) -> StorageError {
    match error {
        StorageError::Corrupt(what) if !what.contains("key \"") && !what.contains("page ") => {
            let page = found.get_or_init(|| {
                damaged_page(connection).unwrap_or_else(|| root_page(connection, "log"))
            });
            StorageError::Corrupt(format!("{what}: {page}"))
        }
        other => other,
    }
}
