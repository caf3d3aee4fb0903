//! Why a store cannot be opened.

use std::io;
use std::path::{Path, PathBuf};

use super::failure::{describe, sqlite_error};
use crate::StorageError;

/// Why a store cannot be opened: one line for the operator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process, or another part of this one, has it open.
    #[error("the store in {} is in use by another process; stop that one first, or choose another directory", .dir.display())]
    Locked {
        /// The directory.
        dir: PathBuf,
    },
    /// The directory has no store. Only for calls that need one, such as [`Embedded::check`](crate::Embedded::check).
    #[error("there is no store in {}", .dir.display())]
    Missing {
        /// The directory.
        dir: PathBuf,
    },
    /// The file is not an apiloom store.
    #[error("{} is not an apiloom store ({found}); move it away, or choose another directory", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The format that the file seems to have.
        found: String,
    },
    /// The file was written by a later version.
    #[error(
        "{} has format {found}, and this program reads formats up to {supported}; use the newer program that wrote it, or \
         choose another directory", .path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        found: i32,
        /// The newest supported format.
        supported: i32,
    },
    /// The directory or the file cannot be created, read or written.
    #[error("cannot use {}: {reason}; make it writable with room to spare, or choose another directory", .path.display())]
    Io {
        /// The directory or file.
        path: PathBuf,
        /// The error of the operating system or of SQLite.
        reason: String,
    },
    /// The stored data is damaged.
    #[error("the store {} is damaged: {what}; restore it from a backup, or choose another directory", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// A description of the damage.
        what: String,
    },
}

impl OpenError {
    pub(super) fn io(path: &Path, error: &io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            reason: error.to_string(),
        }
    }

    pub(super) fn thread(path: &Path, error: io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            reason: format!("no thread for it: {error}"),
        }
    }

    pub(super) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            what: what.into(),
        }
    }

    pub(super) fn sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        match sqlite_error(path, error) {
            StorageError::Corrupt(_) => Self::damaged(path, describe(error)),
            _ => Self::Io {
                path: path.to_owned(),
                reason: describe(error),
            },
        }
    }

    pub(super) fn of(path: &Path, error: StorageError) -> Self {
        match error {
            StorageError::Corrupt(what) => Self::damaged(path, what),
            other => Self::Io {
                path: path.to_owned(),
                reason: other.to_string(),
            },
        }
    }
}
