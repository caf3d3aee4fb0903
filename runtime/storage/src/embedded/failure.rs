//! The errors of SQLite and of the disk, for callers.

use std::path::Path;

use rusqlite::{ErrorCode, ffi};

use super::place::{Place, lasting};
use crate::StorageError;

/// Describes an error of SQLite, with the failed operation if the text says only that the disk failed.
pub(super) fn describe(error: &rusqlite::Error) -> String {
    let doing = match error.sqlite_error().map_or(0, |error| error.extended_code) {
        ffi::SQLITE_IOERR_READ | ffi::SQLITE_IOERR_CORRUPTFS => "while reading",
        ffi::SQLITE_IOERR_WRITE => "while writing",
        ffi::SQLITE_IOERR_FSYNC => "while syncing",
        ffi::SQLITE_IOERR_TRUNCATE => "while cutting a file",
        ffi::SQLITE_IOERR_SHMOPEN => "while making the -shm file beside it",
        ffi::SQLITE_IOERR_SHMSIZE => {
            "while extending the -shm file beside it: the disk may be full"
        }
        _ => return error.to_string(),
    };
    format!("{error} {doing}")
}

/// Converts an error of SQLite for the caller.
pub(super) fn sqlite_error(path: &Path, error: &rusqlite::Error) -> StorageError {
    let text = format!("{}: {}", path.display(), describe(error));
    let is_damage = match error.sqlite_error_code() {
        Some(ErrorCode::SystemIoFailure) => {
            // A failed read of the disk may succeed later: only a missing part of the file is damage.
            let code = error.sqlite_error().map_or(0, |error| error.extended_code);
            code == ffi::SQLITE_IOERR_SHORT_READ
        }
        Some(code) => matches!(code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase),
        // rusqlite's own errors are about a column whose content differs from what was written.
        None => true,
    };
    if is_damage {
        StorageError::Corrupt(text)
    } else {
        StorageError::Unavailable(text)
    }
}

/// The error for the caller of a failed write, if retrying does not help.
pub(super) fn refusal(place: &Place, is_bounded: bool, error: &rusqlite::Error) -> StorageError {
    let of_disk = || place.probe().err();
    let why = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) if is_bounded => Some("it is full"),
        Some(ErrorCode::DiskFull) => Some("the disk is full"),
        Some(ErrorCode::ReadOnly) => Some("it is read-only"),
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => {
            of_disk().and_then(|error| lasting(&error))
        }
        _ => None,
    };
    match why {
        Some(why) => cannot_be_written(why),
        None => sqlite_error(place, error),
    }
}

pub(super) fn cannot_be_written(why: &str) -> StorageError {
    StorageError::Refused(format!("the store cannot be written: {why}"))
}

/// Adds the key to an error about damage.
pub(super) fn name_key(error: StorageError, key: &str) -> StorageError {
    match error {
        StorageError::Corrupt(what) if !what.contains(&format!("{key:?}")) => {
            StorageError::Corrupt(format!("key {key:?}: {what}"))
        }
        other => other,
    }
}

/// The error of a call after the end of the store.
pub(super) fn closed() -> StorageError {
    StorageError::Unavailable("the store is closed".into())
}
