//! What a row of the log holds and how it is proved.
//!
//! Each row carries a checksum over itself and the digest of all objects as they are after it. So a changed row is
//! noticed whenever it is loaded, and a changed, missing or added object when the store is opened.

use std::path::Path;

use bytes::Bytes;
use rusqlite::types::ValueRef;
use rusqlite::{ErrorCode, Row};

use crate::{Entry, Revision, StorageError};

/// The columns that [`Record::read`] expects, in its order.
macro_rules! record_columns {
    ($table:literal) => {
        concat!(
            $table,
            ".revision, ",
            $table,
            ".key, ",
            $table,
            ".previous, ",
            $table,
            ".digest, ",
            $table,
            ".checksum, ",
            $table,
            ".value"
        )
    };
}
pub(super) use record_columns;

/// A row of the log.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) revision: u64,
    pub(super) key: String,
    /// The revision before, 0 where the key was absent.
    pub(super) previous: u64,
    /// [`Digest`] of all objects after this row's change.
    pub(super) digest: Digest,
    /// `None`: this row is a removal.
    pub(super) value: Option<Bytes>,
}

impl Record {
    /// Reads and proves the row of a revision; columns as [`record_columns`] says, from `first` on.
    pub(super) fn read(row: &Row<'_>, first: usize, revision: u64) -> Result<Self, StorageError> {
        let damaged = |what: &str| damaged_row(row, first, revision, what);
        let read = |index: usize| {
            row.get_ref(first + index)
                .map_err(|_| damaged("cannot be read"))
        };
        let integer = |index: usize| match read(index)? {
            ValueRef::Integer(integer) => Ok(integer as u64),
            _ => Err(damaged("has a column of another type")),
        };
        if read(0)? == ValueRef::Null {
            return Err(damaged("is missing from the log"));
        }
        let ValueRef::Text(key) = read(1)? else {
            return Err(damaged("has no key"));
        };
        let (stored_revision, previous, digest, checksum) =
            (integer(0)?, integer(2)?, integer(3)?, integer(4)?);
        let value = match read(5)? {
            ValueRef::Null => None,
            ValueRef::Blob(value) => Some(value),
            _ => return Err(damaged("has a value of another type")),
        };
        let key = std::str::from_utf8(key).map_err(|_| damaged("has a key that is not UTF-8"))?;
        let computed = record_checksum(revision, key, previous, Digest(digest), value);
        if stored_revision != revision || checksum != u64::from(computed) {
            return Err(damaged("does not match its checksum"));
        }
        let value = value.map(Bytes::copy_from_slice);
        Ok(Self {
            revision,
            key: key.to_owned(),
            previous,
            digest: Digest(digest),
            value,
        })
    }

    /// The row as the entry of an object that is present at `key`.
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

fn damaged_row(row: &Row<'_>, first: usize, revision: u64, what: &str) -> StorageError {
    let key = match row.get_ref(first + 1) {
        Ok(ValueRef::Text(key)) => format!("key {:?}: ", String::from_utf8_lossy(key)),
        _ => String::new(),
    };
    StorageError::Corrupt(format!("{key}revision {revision} {what}"))
}

/// Covers everything in the row. The length of the key keeps key and value apart.
pub(super) fn record_checksum(
    revision: u64,
    key: &str,
    previous: u64,
    digest: Digest,
    value: Option<&[u8]>,
) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    let mut head = [0; 33];
    head[..8].copy_from_slice(&revision.to_le_bytes());
    head[8..16].copy_from_slice(&previous.to_le_bytes());
    head[16..24].copy_from_slice(&digest.0.to_le_bytes());
    head[24..32].copy_from_slice(&(key.len() as u64).to_le_bytes());
    head[32] = u8::from(value.is_some());
    hasher.update(&head);
    hasher.update(key.as_bytes());
    hasher.update(value.unwrap_or_default());
    hasher.finalize()
}

/// A sum over all objects, kept up to date by adding and subtracting, so that the table of objects can be proved as a
/// whole. It guards against damage, not against an attacker.
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
    // 0 is no time at which anything expires: it is 1970.
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

/// What an error of SQLite means to a caller.
pub(super) fn sqlite_error(path: &Path, error: &rusqlite::Error) -> StorageError {
    let text = format!("{}: {error}", path.display());
    let is_damage = match error.sqlite_error_code() {
        Some(code) => matches!(code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase),
        // What comes from rusqlite itself is about a column that does not hold what we wrote.
        None => true,
    };
    if is_damage {
        StorageError::Corrupt(text)
    } else {
        StorageError::Unavailable(text)
    }
}
