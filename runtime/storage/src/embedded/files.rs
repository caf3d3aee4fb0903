//! The files of a store.

use std::fs::OpenOptions;

/// SQLite's write-ahead log: changes that are not yet written back to the file.
pub(super) const WAL: &str = "store.db-wal";

/// How files of a store are opened: only its owner may read them, since objects may contain secrets.
pub(super) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
