//! Offline tools for a store that no server has open: check, export and import.

use std::fs;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use rusqlite::Connection;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::error::OpenError;
use super::failure::{name_key, sqlite_error};
use super::open;
use super::place::Place;
use super::row::{Checksums, Digest, load};
use super::verify::damaged_pages;
use super::{Embedded, upkeep};
use crate::{StorageError, beginning};

/// The result of [`Embedded::check`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckReport {
    /// Number of objects.
    pub objects: u64,
    /// Number of kept revisions: those of the present objects, and history.
    pub kept: u64,
    /// The newest revision.
    pub revision: u64,
    /// The compacted revision: history begins after it.
    pub compacted: u64,
    /// The damage, one line each, naming the key, or the file and page; empty if there is none.
    pub damage: Vec<String>,
}

/// The result of [`Embedded::export`] and [`Embedded::import`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MoveReport {
    /// Number of objects.
    pub objects: u64,
    /// The revision of the store.
    pub revision: u64,
}

/// Why an export or import failed: one line for the operator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MoveError {
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store cannot be read, or the new one cannot be written.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The directory already has a store.
    #[error("there is a store in {}; an import fills a directory without one", .0.display())]
    NotEmpty(PathBuf),
    /// An invalid line of an export.
    #[error("line {line}: {what}")]
    Line {
        /// Counted from 1.
        line: u64,
        /// What is wrong with the line.
        what: String,
    },
    /// Reading or writing the lines failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// A line of an export: an object, or the last line, which has no key but the revision of the store.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    revision: u64,
    /// When it expires, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<i64>,
    /// The value, if it is JSON: byte for byte.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    value: Option<Box<RawValue>>,
    /// The value in base64, if it is not JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    /// In the last line: the number of objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    objects: Option<u64>,
}

/// Distinguishes a `null` value from an absent field.
fn present<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Deserialize::deserialize(json).map(Some)
}

impl Line {
    fn of(key: String, revision: u64, expires: Option<i64>, bytes: &Bytes) -> Self {
        let json: Option<Box<RawValue>> = serde_json::from_slice(bytes).ok();
        // Whitespace around the value, or a line break in it, would be lost.
        let json = json.filter(|json| json.get().as_bytes() == bytes && !bytes.contains(&b'\n'));
        let base64 = json.is_none().then(|| BASE64_STANDARD.encode(bytes));
        Self {
            key: Some(key),
            revision,
            expires,
            value: json,
            base64,
            objects: None,
        }
    }

    fn bytes(&self) -> Result<Bytes, String> {
        match (&self.value, &self.base64) {
            (Some(json), None) => Ok(Bytes::copy_from_slice(json.get().as_bytes())),
            (None, Some(text)) => {
                let bytes = BASE64_STANDARD.decode(text);
                bytes
                    .map(Bytes::from)
                    .map_err(|error| format!("base64: {error}"))
            }
            _ => Err("an object has either \"value\" or \"base64\"".into()),
        }
    }
}

impl Embedded {
    /// Verifies everything in the store of a directory: every checksum, the objects against the log, and SQLite's own
    /// structures. Takes as long as reading the whole file.
    ///
    /// # Errors
    /// When the store cannot be opened, also because of damage.
    pub fn check(dir: impl AsRef<Path>) -> Result<CheckReport, OpenError> {
        let opened = open::open_present(dir.as_ref())?;
        let (place, connection) = (&opened.place, &opened.connection);
        let damage = Arc::default();
        upkeep::verify_everything(place, connection, &damage);
        let mut damage = std::mem::take(&mut *damage.lock());
        for found in damaged_pages(connection) {
            damage.push(format!("{}: {found}", place.display()));
        }
        let count = |table: &str| {
            let sql = format!("SELECT count(*) FROM {table}");
            connection
                .query_row(&sql, [], |row| row.get::<_, i64>(0))
                .map_or(0, |count| count as u64)
        };
        Ok(CheckReport {
            objects: count("obj"),
            kept: count("log"),
            revision: opened.verified.head.revision,
            compacted: opened.verified.compacted,
            damage,
        })
    }

    /// Writes every object of a store as a line of JSON: `key`, `revision`, `value`, and `expires` if it has a time to
    /// live; a value that is not JSON is in `base64` instead. The last line has the `revision` of the store and the
    /// number of `objects`, so that a truncated file is noticed.
    ///
    /// # Errors
    /// When the store cannot be opened, an object is damaged, or the lines cannot be written; the output then has no
    /// last line.
    pub fn export(dir: impl AsRef<Path>, out: &mut dyn Write) -> Result<MoveReport, MoveError> {
        let opened = open::open_present(dir.as_ref())?;
        let place = &opened.place;
        let mut moved = MoveReport {
            objects: 0,
            revision: opened.verified.head.revision,
        };
        let failed = |error: rusqlite::Error| sqlite_error(place, &error);
        let mut statement = opened
            .connection
            .prepare("SELECT key, revision, expires FROM obj ORDER BY key")
            .map_err(failed)?;
        let mut rows = statement.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let key: String = row.get(0).map_err(failed)?;
            let revision = row.get::<_, i64>(1).map_err(failed)? as u64;
            let entry = load(&opened.connection, place, revision)
                .and_then(|record| record.into_entry(&key))
                .map_err(|error| name_key(error, &key))?;
            let expires = row.get(2).map_err(failed)?;
            write_line(out, &Line::of(key, revision, expires, &entry.value))?;
            moved.objects += 1;
        }
        let end = Line {
            revision: moved.revision,
            objects: Some(moved.objects),
            ..Line::default()
        };
        write_line(out, &end)?;
        out.flush()?;
        Ok(moved)
    }

    /// Fills a directory that has no store with the objects of an export, which keep their revisions. The store
    /// continues at the current time as a revision, as a new one does, or at the revision of the last line if that is
    /// later: revisions that clients remember from after the export are then too old. The store appears only when it is
    /// complete.
    ///
    /// # Errors
    /// When the directory has a store, when a line is invalid or missing, or when the store cannot be written.
    pub fn import(dir: impl AsRef<Path>, input: &mut dyn BufRead) -> Result<MoveReport, MoveError> {
        let Some((lock, new)) = open::begin_new(dir.as_ref())? else {
            return Err(MoveError::NotEmpty(dir.as_ref().to_owned()));
        };
        let place = Place::new(new.path.clone(), true);
        let connection = new.create()?;
        let failed = |error: rusqlite::Error| sqlite_error(&place, &error);
        connection.execute_batch("BEGIN").map_err(failed)?;
        let moved = Import::new(&place, &connection).run(input);
        if moved.is_err() {
            drop(connection);
            // A leftover file would only be in the way of the next import, which removes it too.
            let _ = fs::remove_file(&*place);
            return moved;
        }
        connection.execute_batch("COMMIT").map_err(failed)?;
        new.finish(connection)?;
        drop(lock);
        // Opening verifies the store and writes its mark.
        open::open_present(dir.as_ref())?;
        moved
    }
}

fn write_line(out: &mut dyn Write, line: &Line) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

/// An import in progress.
struct Import<'a> {
    place: &'a Place,
    connection: &'a Connection,
    digest: Digest,
    moved: MoveReport,
    /// The object with the greatest revision so far: its row may become the newest, which holds the digest of all
    /// objects.
    newest: Option<(String, u64, Bytes)>,
}

impl<'a> Import<'a> {
    fn new(place: &'a Place, connection: &'a Connection) -> Self {
        Self {
            place,
            connection,
            digest: Digest::default(),
            moved: MoveReport::default(),
            newest: None,
        }
    }

    fn run(mut self, input: &mut dyn BufRead) -> Result<MoveReport, MoveError> {
        let mut number = 0;
        let mut end = None;
        for text in input.lines() {
            let text = text?;
            number += 1;
            let wrong = |what: String| MoveError::Line { line: number, what };
            if text.trim().is_empty() {
                continue;
            }
            if end.is_some() {
                return Err(wrong("it follows the last line of an export".into()));
            }
            let line: Line =
                serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
            match line.key.clone() {
                Some(key) => self.object(key, &line).map_err(wrong)?,
                None => end = Some(line),
            }
        }
        let wrong = |what: String| MoveError::Line { line: number, what };
        let Some(end) = end else {
            return Err(wrong(format!(
                "the end of the export is missing, it may have been cut short; where it is whole, add the line \
                 {{\"revision\":{},\"objects\":{}}}",
                self.newest.as_ref().map_or(0, |(_, revision, _)| *revision),
                self.moved.objects
            )));
        };
        if end
            .objects
            .is_some_and(|objects| objects != self.moved.objects)
        {
            return Err(wrong(format!(
                "{} objects were exported, and {} are here",
                end.objects.unwrap_or_default(),
                self.moved.objects
            )));
        }
        self.end(end.revision, beginning::now().0).map_err(wrong)?;
        Ok(self.moved)
    }

    fn object(&mut self, key: String, line: &Line) -> Result<(), String> {
        if line.revision == 0 || i64::try_from(line.revision).is_err() || line.objects.is_some() {
            return Err(format!(
                "key {key:?} has no revision that an object may have"
            ));
        }
        let bytes = line
            .bytes()
            .map_err(|what| format!("key {key:?}: {what}"))?;
        let sql =
            "INSERT INTO obj (key, revision, expires) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
        let put = self
            .connection
            .prepare_cached(sql)
            .and_then(|mut put| put.execute((&key, line.revision as i64, line.expires)))
            .map_err(|error| self.failed(&error))?;
        if put == 0 {
            return Err(format!("key {key:?} is there twice"));
        }
        self.digest.add(&key, line.revision, line.expires);
        self.moved.objects += 1;
        let this = (key, line.revision, bytes);
        let is_newer = |newest: &(String, u64, Bytes)| newest.1 < this.1;
        let older = if self.newest.as_ref().is_none_or(is_newer) {
            self.newest.replace(this)
        } else {
            Some(this)
        };
        match older {
            Some((key, revision, bytes)) => {
                self.row(&key, revision, Digest::default(), Some(&bytes))
            }
            None => Ok(()),
        }
    }

    /// Writes the newest row, a removal at the revision from which the store continues.
    fn end(&mut self, revision: u64, now: u64) -> Result<(), String> {
        let newest = self.newest.take();
        let last = newest.as_ref().map_or(0, |(_, revision, _)| *revision);
        if revision < last || i64::try_from(revision).is_err() {
            return Err(format!(
                "an object has revision {last}, later than the store's {revision}"
            ));
        }
        let revision = revision.max(now);
        if let Some((key, last, bytes)) = newest {
            let digest = if last == revision {
                self.digest
            } else {
                Digest::default()
            };
            self.row(&key, last, digest, Some(&bytes))?;
        }
        let done = if revision > last {
            open::begin_after(self.connection, revision, self.digest)
        } else {
            open::forget_until(self.connection, revision)
        };
        done.map_err(|error| self.failed(&error))?;
        self.moved.revision = revision;
        Ok(())
    }

    fn row(
        &self,
        key: &str,
        revision: u64,
        digest: Digest,
        value: Option<&[u8]>,
    ) -> Result<(), String> {
        let seal = Checksums::of(revision, key, 0, digest, value);
        let sql = "INSERT INTO log (revision, key, previous, digest, seal, value) VALUES (?1, ?2, 0, ?3, ?4, ?5) \
                   ON CONFLICT DO NOTHING";
        let put = self
            .connection
            .prepare_cached(sql)
            .and_then(|mut put| {
                put.execute((revision as i64, key, digest.0 as i64, seal.0 as i64, value))
            })
            .map_err(|error| self.failed(&error))?;
        if put == 0 {
            return Err(format!("key {key:?}: revision {revision} is there twice"));
        }
        Ok(())
    }

    fn failed(&self, error: &rusqlite::Error) -> String {
        sqlite_error(self.place, error).to_string()
    }
}
