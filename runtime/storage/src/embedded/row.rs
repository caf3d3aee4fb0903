//! The format and the checksums of a row of the log.
//!
//! Each row has a checksum of itself and the digest of all objects after it. A changed row is detected whenever it is
//! loaded; a changed, missing or added object is detected when the store is opened.

use bytes::Bytes;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use super::failure::sqlite_error;
use super::place::Place;
use crate::{Entry, Revision, StorageError};

/// The columns that [`Line::read`] expects, in its order.
macro_rules! line_columns {
    () => {
        "revision, key, previous, digest, seal, value IS NULL"
    };
}
pub(super) use line_columns;

/// The columns that [`Record::read`] expects, in its order.
macro_rules! record_columns {
    () => {
        "revision, key, previous, digest, seal, value IS NULL, value"
    };
}
pub(super) use record_columns;

/// A row of the log without its value, so that SQLite need not load it.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) revision: u64,
    pub(super) key: &'a str,
    /// The key's previous revision, 0 if it was absent.
    pub(super) previous: u64,
    /// [`Digest`] of all objects after this row's change.
    pub(super) digest: Digest,
    pub(super) is_removal: bool,
    seal: Checksums,
}

impl<'a> Line<'a> {
    /// Reads and verifies the row of a revision.
    pub(super) fn read(
        place: &Place,
        row: &'a Row<'_>,
        revision: u64,
    ) -> Result<Self, StorageError> {
        let damaged = |what: &str| damaged_row(row, revision, what);
        let integer = |index: usize| match row.get_ref(index) {
            Ok(ValueRef::Integer(integer)) => Ok(integer as u64),
            _ => Err(damaged("has a column that is no number")),
        };
        let Ok(ValueRef::Text(key)) = row.get_ref(1) else {
            return Err(damaged("has no key"));
        };
        let key = std::str::from_utf8(key).map_err(|_| damaged("has a key that is not UTF-8"))?;
        let line = Self {
            revision: integer(0)?,
            key,
            previous: integer(2)?,
            digest: Digest(integer(3)?),
            is_removal: integer(5)? != 0,
            seal: Checksums(integer(4)?),
        };
        let is_intact = line.revision == revision && line.checksum() == line.seal.line();
        if place.is_verified && !is_intact {
            return Err(damaged("does not match its checksum"));
        }
        Ok(line)
    }

    /// The checksum of the whole row; the value is included by its own checksum. The length of the key separates the
    /// key from the numbers.
    fn checksum(&self) -> u32 {
        let numbers = [
            self.revision,
            self.previous,
            self.digest.0,
            self.key.len() as u64,
        ];
        let mut hasher = crc32fast::Hasher::new();
        for number in numbers {
            hasher.update(&number.to_le_bytes());
        }
        hasher.update(&self.seal.value().to_le_bytes());
        hasher.update(&[u8::from(self.is_removal)]);
        hasher.update(self.key.as_bytes());
        hasher.finalize()
    }
}

/// The two checksums of a row: of its value, and of everything else including the value's checksum. So a row can be
/// verified without loading its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checksums(pub(super) u64);

impl Checksums {
    /// Computes the checksums of a row that is to be written.
    pub(super) fn of(
        revision: u64,
        key: &str,
        previous: u64,
        digest: Digest,
        value: Option<&[u8]>,
    ) -> Self {
        let value_seal = Checksums(u64::from(crc32fast::hash(value.unwrap_or_default())));
        let line = Line {
            revision,
            key,
            previous,
            digest,
            is_removal: value.is_none(),
            seal: value_seal,
        };
        Checksums(u64::from(line.checksum()) << 32 | value_seal.0)
    }

    fn line(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn value(self) -> u32 {
        self.0 as u32
    }
}

/// A row of the log.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) revision: u64,
    pub(super) key: String,
    /// The key's previous revision, 0 if it was absent.
    pub(super) previous: u64,
    /// `None` for a removal.
    pub(super) value: Option<Bytes>,
}

impl Record {
    /// Reads and verifies the row of a revision.
    pub(super) fn read(place: &Place, row: &Row<'_>, revision: u64) -> Result<Self, StorageError> {
        let line = Line::read(place, row, revision)?;
        let is_intact =
            |value: &[u8]| !place.is_verified || crc32fast::hash(value) == line.seal.value();
        let value = match row.get_ref(6) {
            Ok(ValueRef::Null) if line.is_removal => None,
            Ok(ValueRef::Blob(value)) if !line.is_removal && is_intact(value) => {
                Some(Bytes::copy_from_slice(value))
            }
            _ => {
                return Err(damaged_row(
                    row,
                    revision,
                    "has a value that does not match its checksum",
                ));
            }
        };
        Ok(Self {
            revision,
            key: line.key.to_owned(),
            previous: line.previous,
            value,
        })
    }

    /// Converts the row to the entry of the present object at `key`.
    pub(super) fn into_entry(self, key: &str) -> Result<Entry, StorageError> {
        match self.value {
            Some(value) if self.key == key => Ok(Entry {
                key: self.key,
                value,
                revision: Revision(self.revision),
            }),
            _ => Err(StorageError::Corrupt(format!(
                "key {key:?}: revision {} is not its value",
                self.revision
            ))),
        }
    }
}

fn damaged_row(row: &Row<'_>, revision: u64, what: &str) -> StorageError {
    let key = match row.get_ref(1) {
        Ok(ValueRef::Text(key)) => format!("key {:?}: ", String::from_utf8_lossy(key)),
        _ => String::new(),
    };
    StorageError::Corrupt(format!("{key}revision {revision} {what}"))
}

/// A sum over all objects, updated incrementally, so that the table of objects can be verified as a whole. It protects
/// against damage, not against an attacker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Digest(pub(super) u64);

impl Digest {
    pub(super) fn add(&mut self, key: &str, revision: u64, expires: Option<i64>) {
        self.0 = self.0.wrapping_add(object_mark(key, revision, expires));
    }

    pub(super) fn remove(&mut self, key: &str, revision: u64, expires: Option<i64>) {
        self.0 = self.0.wrapping_sub(object_mark(key, revision, expires));
    }
}

fn object_mark(key: &str, revision: u64, expires: Option<i64>) -> u64 {
    // 0 stands for no expiry: no object expires in 1970.
    let expires = expires.unwrap_or_default() as u64;
    mix(mix(u64::from(crc32fast::hash(key.as_bytes())) ^ mix(revision)).wrapping_add(expires))
}

/// The finalizer of SplitMix64: every bit of the input changes about half of the output.
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// A number of the table `meta`, with its checksum.
#[derive(Debug)]
pub(super) struct Number;

impl Number {
    /// Reads and verifies a number.
    pub(super) fn load(
        place: &Place,
        connection: &Connection,
        name: &str,
    ) -> Result<u64, StorageError> {
        let sql = "SELECT value, seal FROM meta WHERE name = ?1";
        let found = query(connection, sql, [name], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        });
        match found.map_err(|error| sqlite_error(place, &error))? {
            Some((value, seal)) if seal == Self::seal(name, value) || !place.is_verified => {
                Ok(value as u64)
            }
            _ => Err(StorageError::Corrupt(format!(
                "{}: the number {name:?} of meta does not match its checksum",
                place.display()
            ))),
        }
    }

    /// Updates an existing number.
    pub(super) fn store(connection: &Connection, name: &str, value: u64) -> rusqlite::Result<()> {
        let value = value as i64;
        let sql = "UPDATE meta SET value = ?2, seal = ?3 WHERE name = ?1";
        connection
            .prepare_cached(sql)?
            .execute((name, value, Self::seal(name, value)))
            .map(drop)
    }

    pub(super) fn seal(name: &str, value: i64) -> i64 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&value.to_le_bytes());
        hasher.update(name.as_bytes());
        i64::from(hasher.finalize())
    }
}

/// The only row of a query, if it has one.
pub(super) fn query<T>(
    connection: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    rows.next()?.map(read).transpose()
}

/// Loads and verifies the row of a revision.
pub(super) fn load(
    connection: &Connection,
    place: &Place,
    revision: u64,
) -> Result<Record, StorageError> {
    let sql = concat!(
        "SELECT ",
        record_columns!(),
        " FROM log WHERE revision = ?1"
    );
    match query(connection, sql, [revision as i64], |row| {
        Ok(Record::read(place, row, revision))
    }) {
        Ok(Some(record)) => record,
        Ok(None) => Err(StorageError::Corrupt(format!(
            "revision {revision} is missing from the log"
        ))),
        Err(error) => Err(sqlite_error(place, &error)),
    }
}
