//! The file: one JSON object a line, each synced to the disk before it is acknowledged.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use apiloom::storage::Revision;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::state::State;

/// A line of the file.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Line {
    /// A key gets a value, in base64, and the time of its end in milliseconds since 1970.
    #[serde(rename_all = "camelCase")]
    Put {
        revision: u64,
        key: String,
        value: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires: Option<u64>,
    },
    /// A key is removed.
    Delete { revision: u64, key: String },
    /// The history up to this revision is no longer kept.
    Compact { revision: u64 },
}

impl Line {
    pub(crate) fn put(
        revision: Revision,
        key: String,
        value: &Bytes,
        expires: Option<SystemTime>,
    ) -> Self {
        let since_1970 = |at: SystemTime| at.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::Put {
            revision: revision.0,
            key,
            value: BASE64_STANDARD.encode(value),
            expires: expires
                .map(|at| u64::try_from(since_1970(at).as_millis()).unwrap_or(u64::MAX)),
        }
    }

    pub(crate) fn delete(revision: Revision, key: String) -> Self {
        Self::Delete {
            revision: revision.0,
            key,
        }
    }

    pub(crate) fn compact(revision: Revision) -> Self {
        Self::Compact {
            revision: revision.0,
        }
    }
}

/// The bytes of a line's value.
pub(crate) fn decoded(value: &str) -> Result<Bytes, base64::DecodeError> {
    BASE64_STANDARD.decode(value).map(Bytes::from)
}

/// The time of a line's `expires`.
pub(crate) fn time(expires: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(expires)
}

/// The open file.
#[derive(Debug)]
pub(crate) struct Log {
    file: File,
    /// The length of what was acknowledged.
    length: u64,
}

impl Log {
    /// Opens the file, locks it and reads it. A last line without an end was never acknowledged, and is removed.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, State)> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false);
        let file = file.open(path)?;
        file.try_lock()?;
        let mut state = State::default();
        let mut length = 0;
        let mut text = String::new();
        let mut reader = BufReader::new(&file);
        loop {
            text.clear();
            let read = reader.read_line(&mut text)?;
            if read == 0 || !text.ends_with('\n') {
                break;
            }
            let damaged = |why: &dyn std::fmt::Display| {
                let text = format!("{}: damaged at byte {length}: {why}", path.display());
                io::Error::new(io::ErrorKind::InvalidData, text)
            };
            let line = serde_json::from_str(&text).map_err(|error| damaged(&error))?;
            if let Line::Put { value, .. } = &line {
                decoded(value).map_err(|error| damaged(&error))?;
            }
            state.apply(line);
            length += read as u64;
        }
        let mut log = Self { file, length };
        log.cut()?;
        Ok((log, state))
    }

    /// Appends a line; when this fails, the file is as it was.
    pub(crate) fn append(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        let written = self
            .file
            .write_all(&text)
            .and_then(|()| self.file.sync_data());
        match written {
            Ok(()) => {
                self.length += text.len() as u64;
                Ok(())
            }
            Err(error) => {
                self.cut()?;
                Err(error)
            }
        }
    }

    /// Removes what is not acknowledged from the end of the file.
    fn cut(&mut self) -> io::Result<()> {
        self.file.set_len(self.length)?;
        self.file.seek(SeekFrom::Start(self.length)).map(drop)
    }
}
