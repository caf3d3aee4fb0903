//! Connections of SQLite to a store.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::error::OpenError;

/// SQLite's cache of the writing connection, in KiB. Together with the readers' caches it stays at 8 MiB.
pub(super) const WRITER_CACHE_KIB: u32 = 4 << 10;
pub(super) const READER_CACHE_KIB: u32 = 1 << 10;

/// Opens a connection with the settings that all of them share.
pub(super) fn connect(path: &Path, cache_kib: u32) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.set_prepared_statement_cache_capacity(32);
    connection.execute_batch(&format!(
        "PRAGMA cache_size = -{cache_kib}; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY; \
         PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA fullfsync = ON; \
         PRAGMA checkpoint_fullfsync = ON;"
    ))?;
    Ok(connection)
}

/// Opens a read-only connection.
pub(super) fn connect_reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connect(path, READER_CACHE_KIB)?;
    connection.execute_batch("PRAGMA query_only = ON;")?;
    Ok(connection)
}

/// Opens a connection for checkpoints and verification.
pub(super) fn connect_upkeep(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connect(path, READER_CACHE_KIB)?;
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;")?;
    Ok(connection)
}

/// Sets whether the last connection to close leaves SQLite's log in place: the log of a damaged store may be all that
/// is left of it.
pub(super) fn keep_log_on_close(
    path: &Path,
    connection: &Connection,
    keep: bool,
) -> Result<(), OpenError> {
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep)
        .map(drop)
        .map_err(|error| OpenError::sqlite(path, &error))
}
