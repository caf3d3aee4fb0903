//! Where a store is, whether its checksums are verified, and whether it can be written.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::{fs, io};

use parking_lot::Mutex;

use super::files::{WAL, private_file};

/// A file that is created and removed to learn the disk's own error.
const PROBE: &str = "store.probe";

/// More than a full disk has left.
const PROBE_BYTES: usize = 64 << 10;

/// The file of a store.
#[derive(Clone, Debug)]
pub(super) struct Place {
    path: PathBuf,
    /// Whether checksums are verified; false only in tests that show what would happen otherwise.
    pub(super) is_verified: bool,
    state: Arc<State>,
}

/// The state of a store's files that all parts of it share.
#[derive(Debug, Default)]
struct State {
    file: OnceLock<Identity>,
    /// SQLite's log, which is created at the first write and stays while the store is open.
    log: OnceLock<Identity>,
    /// Why the store cannot be written, if it cannot.
    trouble: Mutex<Option<String>>,
}

/// The identity of a file: device and inode number.
type Identity = (u64, u64);

impl Place {
    pub(super) fn new(path: PathBuf, is_verified: bool) -> Self {
        Self {
            path,
            is_verified,
            state: Arc::default(),
        }
    }

    /// Checks that the files at this path are the same as at the first call: writes to files that were removed or
    /// replaced are lost. The error is shown to clients, so it contains no path.
    pub(super) fn check(&self) -> Result<(), String> {
        let log = self.path.with_file_name(WAL);
        for (path, known) in [(&self.path, &self.state.file), (&log, &self.state.log)] {
            match identity(path) {
                Ok(found) if *known.get_or_init(|| found) == found => {}
                Ok(_) => return Err(told("were replaced")),
                Err(error) if is_gone(&error) && known.get().is_none() => {}
                Err(error) if is_gone(&error) => return Err(told("were removed")),
                Err(error) => {
                    return Err(format!("the files of the store cannot be seen: {error}"));
                }
            }
        }
        Ok(())
    }

    /// Why the store cannot be written, if it cannot.
    pub(super) fn trouble(&self) -> Option<String> {
        self.state.trouble.lock().clone()
    }

    /// Records that the store cannot be written, and logs it once.
    pub(super) fn note_trouble(&self, what: &str) {
        let mut trouble = self.state.trouble.lock();
        if trouble.as_deref() != Some(what) {
            tracing::error!(path = %self.path.display(), error = what, "the store cannot be written");
            *trouble = Some(what.to_owned());
        }
    }

    /// Records that the store can be written again.
    pub(super) fn end_trouble(&self) {
        if self.state.trouble.lock().take().is_some() {
            tracing::warn!(path = %self.path.display(), "the store can be written again");
        }
    }

    /// Writes and removes a small file: SQLite does not report the disk's own error.
    pub(super) fn probe(&self) -> io::Result<()> {
        let path = self.path.with_file_name(PROBE);
        let written = private_file().truncate(true).open(&path).and_then(|file| {
            let mut file = file;
            io::Write::write_all(&mut file, &[0; PROBE_BYTES])?;
            file.sync_all()
        });
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => written.and(Err(error)),
            _ => written,
        }
    }
}

/// Describes an error of the disk that a retry will not fix; `None` for one that may pass.
pub(super) fn lasting(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::StorageFull => Some("the disk is full"),
        io::ErrorKind::QuotaExceeded => Some("the quota of the disk is used up"),
        io::ErrorKind::ReadOnlyFilesystem => Some("the disk is read-only"),
        io::ErrorKind::PermissionDenied => Some("its folder is not writable"),
        _ => None,
    }
}

fn told(what: &str) -> String {
    format!("the files of the store {what} while the server was running; restart it")
}

fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

#[cfg(unix)]
fn identity(path: &Path) -> io::Result<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(path).map(|file| (file.dev(), file.ino()))
}

/// On other systems an open file cannot be removed.
#[cfg(not(unix))]
fn identity(path: &Path) -> io::Result<Identity> {
    fs::metadata(path).map(|_| (0, 0))
}

impl Deref for Place {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}
