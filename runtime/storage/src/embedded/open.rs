//! Opens the store file: takes the lock on its directory, checks its format and verifies its objects.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode};

use super::config::EmbeddedConfig;
use super::connection::{READER_CACHE_KIB, WRITER_CACHE_KIB, connect, keep_log_on_close};
use super::error::OpenError;
use super::files::{WAL, private_file};
use super::mark::Mark;
use super::place::Place;
use super::row::{Checksums, Digest, Number, query};
use super::schema::SCHEMA;
use super::times::Times;
use super::verify::{VerifiedState, verify, verify_pages};
use super::wal::first_damage;
use crate::beginning;

/// "ALOM": identifies the file as an apiloom store in its header.
const APPLICATION_ID: i32 = 0x414C_4F4D;

/// The newest format that this version reads, and the one that it writes.
const FORMAT: i32 = 2;

const FILE: &str = "store.db";
const NEW_FILE: &str = "store.db.new";
const LOCK: &str = "store.lock";

/// A store that is open for writing.
#[derive(Debug)]
pub(super) struct OpenStore {
    pub(super) place: Place,
    pub(super) connection: Connection,
    pub(super) verified: VerifiedState,
    pub(super) mark: Mark,
    pub(super) times: Times,
    /// Holds the lock; must be dropped last.
    pub(super) lock: File,
}

/// Opens the store of a directory, or creates one there.
pub(super) fn open(dir: &Path, config: &EmbeddedConfig) -> Result<OpenStore, OpenError> {
    match open_once(dir, config) {
        Err(OpenError::Damaged { .. }) => {
            // SQLite reports damage also when the disk cannot be read. This read returns the disk's own error, and no
            // error if the problem has passed.
            read_through(&dir.join(FILE))?;
            read_through(&dir.join(WAL))?;
            open_once(dir, config)
        }
        opened => opened,
    }
}

/// Reads a file, if it exists, to its end.
fn read_through(path: &Path) -> Result<(), OpenError> {
    let read = File::open(path).and_then(|mut file| io::copy(&mut file, &mut io::sink()));
    match read {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(OpenError::io(path, &error)),
        _ => Ok(()),
    }
}

fn open_once(dir: &Path, config: &EmbeddedConfig) -> Result<OpenStore, OpenError> {
    make_dir(dir)?;
    let lock = lock(dir)?;
    let path = dir.join(FILE);
    let mark = Mark::open(dir).map_err(|error| OpenError::io(&Mark::path(dir), &error))?;
    let marked = mark
        .read()
        .map_err(|error| OpenError::io(&Mark::path(dir), &error))?;
    make_file(dir, &path, marked, config)?;
    let place = Place::new(path, config.safety.verifies_reads);
    let connection = connect_first(&place, config).map_err(|error| match error {
        // The mark shows that a store was here.
        OpenError::Foreign { path, found } if marked.is_some() => {
            OpenError::damaged(&path, format!("page 1: it is {found}"))
        }
        error => error,
    })?;
    let verified = verify(&place, &connection)?;
    let head = verified.head.revision;
    if let Some(marked) = marked.filter(|marked| *marked > head && place.is_verified) {
        let what = format!(
            "it ends at revision {head}, but revision {marked} was acknowledged{}; to go on with what is left, remove {}",
            lost_pages(&dir.join(WAL)),
            Mark::path(dir).display()
        );
        return Err(OpenError::damaged(&place, what));
    }
    keep_log_on_close(&place, &connection, false)?;
    // If no page is free, none can be free and in use; then the log that a killed process left need not be written back
    // now.
    let is_written_back = length(&dir.join(WAL))? == 0
        || has_free_pages(&place, &connection)? && write_back(&place, &connection);
    if is_written_back {
        verify_pages(&place, &connection)?;
    }
    mark.set(head)
        .map_err(|error| OpenError::io(&Mark::path(dir), &error))?;
    place.check().map_err(|reason| OpenError::Io {
        path: dir.to_owned(),
        reason,
    })?;
    Ok(OpenStore {
        place,
        connection,
        verified,
        mark,
        times: Times::open(dir).map_err(|error| OpenError::io(dir, &error))?,
        lock,
    })
}

/// Describes where SQLite's log is damaged.
fn lost_pages(log: &Path) -> String {
    match first_damage(log) {
        Ok((0, _)) => format!(": the header of {}, page 1, is damaged", log.display()),
        Ok((frame, offset)) => format!(
            ": {} is damaged at its page {frame}, byte {offset}",
            log.display()
        ),
        Err(_) => format!(": pages are lost with {}", log.display()),
    }
}

fn has_free_pages(path: &Path, connection: &Connection) -> Result<bool, OpenError> {
    connection
        .pragma_query_value(None, "freelist_count", |row| row.get::<_, i64>(0))
        .map(|count| count != 0)
        .map_err(|error| OpenError::sqlite(path, &error))
}

/// Writes SQLite's log back to the file; returns whether all of it was written. On a full disk it is not, and reads
/// still work.
fn write_back(place: &Place, connection: &Connection) -> bool {
    let done = query(connection, "PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
        row.get::<_, i64>(0)
    });
    if let Err(error) = &done {
        tracing::warn!(path = %place.display(), %error, "failed to write back SQLite's log");
    }
    matches!(done, Ok(Some(0)))
}

fn make_dir(dir: &Path) -> Result<(), OpenError> {
    match fs::metadata(dir) {
        Ok(found) if found.is_dir() => return Ok(()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(OpenError::io(dir, &error));
        }
        _ => {}
    }
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    // Objects may contain secrets.
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(dir)
        .map_err(|error| OpenError::io(dir, &error))?;
    match dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => sync_dir(parent),
        None => sync_dir(Path::new(".")),
    }
}

fn lock(dir: &Path) -> Result<File, OpenError> {
    let path = dir.join(LOCK);
    let file = private_file()
        .open(&path)
        .map_err(|error| OpenError::io(&path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked {
            dir: dir.to_owned(),
        }),
        Err(TryLockError::Error(error)) => Err(OpenError::io(&path, &error)),
    }
}

/// Creates an empty store if there is none.
fn make_file(
    dir: &Path,
    path: &Path,
    marked: Option<u64>,
    config: &EmbeddedConfig,
) -> Result<(), OpenError> {
    if length(path)? > 0 {
        return Ok(());
    }
    if length(&dir.join(WAL))? > 0 {
        return Err(OpenError::damaged(
            path,
            format!("it is empty or missing, but {WAL} beside it is not"),
        ));
    }
    if let Some(marked) = marked.filter(|marked| *marked > 0) {
        return Err(OpenError::damaged(
            path,
            format!("it is empty or missing, but revision {marked} was acknowledged (page 1)"),
        ));
    }
    let new = NewFile::begin(dir)?;
    let begin = config.begin_after.unwrap_or_else(beginning::now);
    let connection = new.create()?;
    begin_after(&connection, begin.0, Digest::default())
        .map_err(|error| OpenError::sqlite(&new.path, &error))?;
    new.finish(connection)
}

/// The length of a file, 0 where there is none.
fn length(path: &Path) -> Result<u64, OpenError> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        // The file may exist: it must be neither reported as lost nor replaced by a new one.
        Err(error) => Err(OpenError::io(path, &error)),
    }
}

/// Whether a directory contains any file of a store.
fn has_any(dir: &Path) -> Result<bool, OpenError> {
    for path in [dir.join(FILE), dir.join(WAL), Mark::path(dir)] {
        if length(&path)? > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A new store under a temporary name: it is completed there first, so that a crash leaves all of it or nothing. Only
/// its owner may read it; SQLite gives the files beside it the same mode.
#[derive(Debug)]
pub(super) struct NewFile {
    dir: PathBuf,
    pub(super) path: PathBuf,
    file: File,
}

impl NewFile {
    fn begin(dir: &Path) -> Result<Self, OpenError> {
        let path = dir.join(NEW_FILE);
        let io = |error: io::Error| OpenError::io(&path, &error);
        for stale in [&path, &dir.join(format!("{NEW_FILE}-wal"))] {
            if stale.exists() {
                fs::remove_file(stale).map_err(io)?;
            }
        }
        let file = private_file().open(&path).map_err(io)?;
        Ok(Self {
            dir: dir.to_owned(),
            path,
            file,
        })
    }

    /// Creates the schema and the initial rows of a store. Nothing is synced yet.
    pub(super) fn create(&self) -> Result<Connection, OpenError> {
        let create = || {
            let connection = connect(&self.path, READER_CACHE_KIB)?;
            connection.execute_batch(&format!(
                "PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL; BEGIN; \
                 PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT}; {};",
                SCHEMA.join(";")
            ))?;
            insert_numbers(&connection, 0, 0)?;
            connection.execute_batch("COMMIT")?;
            Ok(connection)
        };
        create().map_err(|error| OpenError::sqlite(&self.path, &error))
    }

    /// Moves the file to its final name, durably.
    pub(super) fn finish(self, connection: Connection) -> Result<(), OpenError> {
        let io = |error: io::Error| OpenError::io(&self.path, &error);
        // Closing writes SQLite's log back and removes it.
        connection
            .close()
            .map_err(|(_, error)| OpenError::sqlite(&self.path, &error))?;
        self.file.sync_all().map_err(io)?;
        fs::rename(&self.path, self.dir.join(FILE)).map_err(io)?;
        sync_dir(&self.dir)
    }
}

/// Begins a new store in a directory; `None` if it already has one. Other processes are locked out while the lock
/// lives.
pub(super) fn begin_new(dir: &Path) -> Result<Option<(File, NewFile)>, OpenError> {
    make_dir(dir)?;
    let lock = lock(dir)?;
    if has_any(dir)? {
        return Ok(None);
    }
    Ok(Some((lock, NewFile::begin(dir)?)))
}

/// Opens a store that must exist.
pub(super) fn open_present(dir: &Path) -> Result<OpenStore, OpenError> {
    if has_any(dir)? {
        return open(dir, &EmbeddedConfig::default());
    }
    Err(OpenError::Missing {
        dir: dir.to_owned(),
    })
}

/// Makes a new store continue after a revision, whose objects have this digest. It writes a removal of an absent key,
/// because the newest row holds both values. All earlier history is compacted.
pub(super) fn begin_after(
    connection: &Connection,
    revision: u64,
    digest: Digest,
) -> rusqlite::Result<()> {
    if revision == 0 {
        return Ok(());
    }
    let seal = Checksums::of(revision, "", 0, digest, None);
    connection.execute(
        "INSERT INTO log (revision, key, previous, digest, seal, value) VALUES (?1, '', 0, ?2, ?3, NULL)",
        (revision as i64, digest.0 as i64, seal.0 as i64),
    )?;
    forget_until(connection, revision)
}

/// Sets the compacted revision of a new store, so that its history begins after it.
pub(super) fn forget_until(connection: &Connection, revision: u64) -> rusqlite::Result<()> {
    Number::store(connection, "compacted", revision)?;
    Number::store(connection, "swept", revision.saturating_sub(1))
}

fn insert_numbers(connection: &Connection, compacted: i64, swept: i64) -> rusqlite::Result<()> {
    for (name, value) in [("compacted", compacted), ("swept", swept)] {
        let sql = "INSERT INTO meta (name, value, seal) VALUES (?1, ?2, ?3)";
        connection.execute(sql, (name, value, Number::seal(name, value)))?;
    }
    Ok(())
}

/// Upgrades format 1, which had no checksums of the numbers in `meta`.
fn upgrade_from_1(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let number = |name: &str| {
        let sql = "SELECT value FROM meta WHERE name = ?1";
        connection.query_row(sql, [name], |row| row.get::<_, i64>(0))
    };
    let (compacted, swept) = (number("compacted")?, number("swept")?);
    connection.execute_batch(&format!("DROP TABLE meta; {}", SCHEMA[3]))?;
    insert_numbers(connection, compacted, swept)?;
    connection.execute_batch(&format!("PRAGMA user_version = {FORMAT}; COMMIT"))
}

/// Syncs a directory: a new name is durable only after that.
fn sync_dir(dir: &Path) -> Result<(), OpenError> {
    if cfg!(unix) {
        File::open(dir)
            .and_then(|dir| dir.sync_all())
            .map_err(|error| OpenError::io(dir, &error))?;
    }
    Ok(())
}

/// Opens the first connection and checks that the file is an apiloom store before it changes anything.
fn connect_first(path: &Path, config: &EmbeddedConfig) -> Result<Connection, OpenError> {
    let failed = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => foreign(path, "not an SQLite file"),
        _ => match OpenError::sqlite(path, &error) {
            // Nothing below reads more than the header and the schema.
            OpenError::Damaged { path, what } => {
                OpenError::damaged(&path, format!("{what}: page 1 cannot be read"))
            }
            other => other,
        },
    };
    let connection = connect(path, WRITER_CACHE_KIB).map_err(failed)?;
    keep_log_on_close(path, &connection, true)?;
    let pragma = |name: &str| {
        connection
            .pragma_query_value(None, name, |row| row.get::<_, i32>(0))
            .map_err(failed)
    };
    let (application, format) = (pragma("application_id")?, pragma("user_version")?);
    match (application, format) {
        (APPLICATION_ID, 1 | FORMAT) => {}
        (APPLICATION_ID, found) if found > FORMAT => {
            return Err(OpenError::Newer {
                path: path.to_owned(),
                found,
                supported: FORMAT,
            });
        }
        _ => return Err(foreign(path, "an SQLite file of another program")),
    }
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
        .map_err(failed)?;
    if mode != "wal" {
        let reason =
            format!("its file system has no shared memory, and SQLite stays in mode {mode}");
        return Err(OpenError::Io {
            path: path.to_owned(),
            reason,
        });
    }
    configure_writer(&connection, config).map_err(failed)?;
    if format == 1 {
        upgrade_from_1(&connection).map_err(failed)?;
    }
    Ok(connection)
}

fn foreign(path: &Path, found: &str) -> OpenError {
    OpenError::Foreign {
        path: path.to_owned(),
        found: found.to_owned(),
    }
}

fn configure_writer(connection: &Connection, config: &EmbeddedConfig) -> rusqlite::Result<()> {
    // Checkpoints run where no write waits for them (see upkeep). The log is truncated after a burst.
    let synchronous = if config.safety.syncs { "FULL" } else { "OFF" };
    connection.execute_batch(&format!(
        "PRAGMA synchronous = {synchronous}; PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = 67108864;",
    ))?;
    if let Some(bytes) = config.max_bytes {
        let page_bytes: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let pages = i64::try_from(bytes / u64::from(page_bytes))
            .unwrap_or(i64::MAX)
            .max(1);
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    }
    Ok(())
}
