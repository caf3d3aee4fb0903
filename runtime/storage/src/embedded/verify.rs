//! Verifies a store: its objects against its log, and the structures of SQLite that keep them intact.
//!
//! Every row of the log has checksums of its own (see `row`). Verified here is what has none: the table of objects,
//! against the digest in the newest row; its index of expiring keys, against the table; the text of the schema; and the
//! list of free pages, since a page that is both free and in use would be overwritten later.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use rusqlite::Connection;

use super::error::OpenError;
use super::place::Place;
use super::row::{Digest, Line, Number, line_columns, load, query};
use super::schema::SCHEMA;
use crate::StorageError;

/// The end of a store's history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) revision: u64,
    pub(super) digest: Digest,
}

/// The state of a store that was verified.
#[derive(Clone, Copy, Debug)]
pub(super) struct VerifiedState {
    pub(super) head: Head,
    pub(super) compacted: u64,
    pub(super) swept: u64,
}

/// Verifies everything except the rows of the log and the list of free pages. Takes as long as reading all keys.
pub(super) fn verify(place: &Place, connection: &Connection) -> Result<VerifiedState, OpenError> {
    let located = |table| move |error| locate(connection, table, error);
    verify_schema(place, connection).map_err(located("sqlite_schema"))?;
    let head = newest(place, connection).map_err(located("log"))?;
    let digest = objects(place, connection).map_err(located("obj"))?;
    if place.is_verified && digest != head.digest {
        let what = find_difference(place, connection).map_err(located("obj"))?;
        return Err(OpenError::damaged(place, what));
    }
    let (compacted, swept) = (
        number(place, connection, "compacted")?,
        number(place, connection, "swept")?,
    );
    if compacted > head.revision || swept > compacted {
        let page = root_page(connection, "log");
        let what = format!("its log ends before its history: {page}");
        return Err(OpenError::damaged(place, what));
    }
    Ok(VerifiedState {
        head,
        compacted,
        swept,
    })
}

/// Adds the page number to an error about damage that names no key.
fn locate(connection: &Connection, table: &str, error: OpenError) -> OpenError {
    match error {
        OpenError::Damaged { path, what }
            if !what.contains("key \"") && !what.contains("page ") =>
        {
            let page = damaged_page(connection).unwrap_or_else(|| root_page(connection, table));
            let what = format!("{what}: {page}");
            OpenError::Damaged { path, what }
        }
        other => other,
    }
}

/// The first damage that SQLite finds in its structures, with the page number. Reads the whole file.
pub(super) fn damaged_page(connection: &Connection) -> Option<String> {
    let found = query(connection, "PRAGMA quick_check(1)", [], |row| {
        row.get::<_, String>(0)
    });
    match found {
        Ok(Some(found)) if found == "ok" => None,
        Ok(found) => found.and_then(|found| {
            let line = found.lines().find(|line| !line.starts_with("***"))?;
            Some(line.to_owned())
        }),
        // The check itself failed: the schema begins on the first page.
        Err(_) => Some("page 1 cannot be read".to_owned()),
    }
}

/// The damage that SQLite finds in its structures, up to a limit. Reads the whole file.
pub(super) fn damaged_pages(connection: &Connection) -> Vec<String> {
    let found = connection
        .prepare("PRAGMA quick_check(20)")
        .and_then(|mut check| {
            check
                .query_map([], |row| row.get::<_, String>(0))?
                .collect()
        });
    let found: Vec<String> = found.unwrap_or_else(|error: rusqlite::Error| vec![error.to_string()]);
    found
        .iter()
        .flat_map(|found| found.lines())
        .filter(|line| *line != "ok" && !line.starts_with("***"))
        .map(str::to_owned)
        .collect()
}

/// Verifies the text of the schema: one changed letter may change what a statement does.
fn verify_schema(place: &Place, connection: &Connection) -> Result<(), OpenError> {
    if !place.is_verified {
        return Ok(());
    }
    let failed = |error: rusqlite::Error| OpenError::sqlite(place, &error);
    let damaged = |what: &str| Err(OpenError::damaged(place, what));
    let words = |sql: &str| sql.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut statement = connection
        .prepare("SELECT sql FROM sqlite_schema ORDER BY rowid")
        .map_err(failed)?;
    let found: Vec<String> = statement
        .query_map([], |row| row.get::<_, String>(0))
        .and_then(Iterator::collect)
        .map_err(failed)?;
    if !found.iter().map(|sql| words(sql)).eq(SCHEMA.map(words)) {
        return damaged("page 1: its schema is not that of a store");
    }
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, String>(0));
    if pragma("encoding").map_err(failed)? != "UTF-8" {
        return damaged("page 1: its encoding is not that of a store");
    }
    let vacuum: i64 = connection
        .pragma_query_value(None, "auto_vacuum", |row| row.get(0))
        .map_err(failed)?;
    if vacuum != 0 {
        return damaged("page 1: its kind of vacuum is not that of a store");
    }
    Ok(())
}

/// Reads the newest row of the log.
fn newest(place: &Place, connection: &Connection) -> Result<Head, OpenError> {
    let failed = |error: rusqlite::Error| OpenError::sqlite(place, &error);
    let sql = concat!(
        "SELECT ",
        line_columns!(),
        " FROM log ORDER BY revision DESC LIMIT 1"
    );
    let mut statement = connection.prepare(sql).map_err(failed)?;
    let mut rows = statement.query([]).map_err(failed)?;
    let Some(row) = rows.next().map_err(failed)? else {
        return Ok(Head::default());
    };
    let revision = row.get::<_, i64>(0).map_err(failed)? as u64;
    let line = Line::read(place, row, revision).map_err(|error| OpenError::of(place, error))?;
    Ok(Head {
        revision,
        digest: line.digest,
    })
}

/// Computes the digest of all objects, checks that they are in key order, and that the index of expiring keys matches
/// them.
fn objects(place: &Place, connection: &Connection) -> Result<Digest, OpenError> {
    let failed = |error: rusqlite::Error| OpenError::sqlite(place, &error);
    let mut statement = connection
        .prepare("SELECT key, revision, expires FROM obj")
        .map_err(failed)?;
    let mut rows = statement.query([]).map_err(failed)?;
    let (mut digest, mut expiring) = (Digest::default(), Digest::default());
    let mut last = String::new();
    let mut is_first = true;
    while let Some(row) = rows.next().map_err(failed)? {
        let key = row.get_ref(0).and_then(|key| Ok(key.as_str()?));
        let key = key.map_err(failed)?;
        let expires = row.get(2).map_err(failed)?;
        digest.add(key, row.get::<_, i64>(1).map_err(failed)? as u64, expires);
        if expires.is_some() {
            expiring.add(key, 0, expires);
        }
        if !is_first && *key <= *last && place.is_verified {
            let what = format!("key {key:?}: the object is not where its key belongs");
            return Err(OpenError::damaged(place, what));
        }
        is_first = false;
        last.clear();
        last.push_str(key);
    }
    if place.is_verified && index_of_expiry(connection).map_err(failed)? != Some(expiring) {
        let what = "its index obj_expires of expiring keys is not that of its objects";
        let page = root_page(connection, "obj_expires");
        return Err(OpenError::damaged(place, format!("{what}: {page}")));
    }
    Ok(digest)
}

/// The digest of the index of expiring keys; `None` if it is not in order.
fn index_of_expiry(connection: &Connection) -> rusqlite::Result<Option<Digest>> {
    let sql = "SELECT expires, key FROM obj INDEXED BY obj_expires WHERE expires IS NOT NULL ORDER BY expires";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut digest = Digest::default();
    let mut last = i64::MIN;
    while let Some(row) = rows.next()? {
        let expires = row.get(0)?;
        if expires < last {
            return Ok(None);
        }
        last = expires;
        digest.add(row.get_ref(1)?.as_str()?, 0, Some(expires));
    }
    Ok(Some(digest))
}

/// The root page of a table or an index, to locate damage that SQLite does not find.
pub(super) fn root_page(connection: &Connection, name: &str) -> String {
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    match query(connection, sql, [name], |row| row.get::<_, i64>(0)) {
        Ok(Some(page)) => format!("page {page} or one below it"),
        _ => "page 1".to_owned(),
    }
}

/// Finds the difference between the objects and the log, for the error message.
fn find_difference(place: &Place, connection: &Connection) -> Result<String, OpenError> {
    let failed = |error: rusqlite::Error| OpenError::sqlite(place, &error);
    let mut statement = connection
        .prepare("SELECT key, revision FROM obj ORDER BY key")
        .map_err(failed)?;
    let mut rows = statement.query([]).map_err(failed)?;
    let mut objects = BTreeMap::new();
    while let Some(row) = rows.next().map_err(failed)? {
        let key: String = row.get(0).map_err(failed)?;
        let revision = row.get::<_, i64>(1).map_err(failed)? as u64;
        let record = load(connection, place, revision).and_then(|record| record.into_entry(&key));
        match record {
            Ok(_) => {}
            Err(StorageError::Corrupt(what)) => return Ok(format!("key {key:?}: {what}")),
            // The disk cannot be read now, so the difference is unknown.
            Err(error) => return Err(OpenError::of(place, error)),
        }
        objects.insert(key, revision);
    }
    let sql = concat!(
        "SELECT ",
        line_columns!(),
        " FROM log ORDER BY revision DESC"
    );
    let mut statement = connection.prepare(sql).map_err(failed)?;
    let mut rows = statement.query([]).map_err(failed)?;
    let mut seen = BTreeSet::new();
    while let Some(row) = rows.next().map_err(failed)? {
        let revision = row.get::<_, i64>(0).map_err(failed)? as u64;
        let Ok(line) = Line::read(place, row, revision) else {
            continue;
        };
        if !seen.insert(line.key.to_owned()) {
            continue;
        }
        let expected = (!line.is_removal).then_some(revision);
        if objects.get(line.key).copied() != expected {
            return Ok(format!(
                "key {:?}: its newest revision in the log is {revision}, but not among the objects",
                line.key
            ));
        }
    }
    Ok(format!(
        "its objects are not those that its log says are present, in a time of expiry or a removal: {}",
        root_page(connection, "obj")
    ))
}

/// Reads a number of the table `meta`.
fn number(place: &Place, connection: &Connection, name: &'static str) -> Result<u64, OpenError> {
    Number::load(place, connection, name)
        .map_err(|error| locate(connection, "meta", OpenError::of(place, error)))
}

/// Verifies that all pages exist, and that no free page belongs to one of the structures verified above. SQLite's log
/// must be written back: the pages are read from the file. The pages of the table `log` are not visited, which would
/// take as long as reading all values: if one of them is overwritten, its rows no longer match their checksums.
pub(super) fn verify_pages(place: &Place, connection: &Connection) -> Result<(), OpenError> {
    if !place.is_verified {
        return Ok(());
    }
    let pragma = |name| {
        let number = connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
        number
            .map(u64::from)
            .map_err(|error| OpenError::sqlite(place, &error))
    };
    let length = std::fs::metadata(&**place)
        .map_err(|error| OpenError::io(place, &error))?
        .len();
    let page = length / pragma("page_size")? + 1;
    if page <= pragma("page_count")? {
        let what = format!("it ends at byte {length}, in page {page}");
        return Err(OpenError::damaged(place, what));
    }
    let free = free_pages(place).map_err(|error| OpenError::io(place, &error))?;
    let free = free.map_err(|page| {
        OpenError::damaged(
            place,
            format!("its list of free pages is broken: page {page}"),
        )
    })?;
    if free.is_empty() {
        return Ok(());
    }
    let used = |name: &str| -> rusqlite::Result<Option<u32>> {
        let mut statement = connection.prepare("SELECT pageno FROM dbstat WHERE name = ?1")?;
        let mut rows = statement.query([name])?;
        while let Some(row) = rows.next()? {
            let page = row.get(0)?;
            if free.contains(&page) {
                return Ok(Some(page));
            }
        }
        Ok(None)
    };
    for name in ["sqlite_schema", "meta", "obj", "obj_expires"] {
        if let Some(page) = used(name).map_err(|error| OpenError::sqlite(place, &error))? {
            let what = format!("page {page} is in use by {name} and on the list of free pages");
            return Err(OpenError::damaged(place, what));
        }
    }
    Ok(())
}

/// The numbers of the free pages, or the number of the page where their list is broken.
fn free_pages(path: &Path) -> io::Result<Result<BTreeSet<u32>, u32>> {
    let mut file = File::open(path)?;
    let mut header = [0; 100];
    file.read_exact(&mut header)?;
    let big_endian = |bytes: &[u8], at: usize| {
        let mut number = [0; 4];
        number.copy_from_slice(&bytes[at..at + 4]);
        u32::from_be_bytes(number)
    };
    let page_bytes = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        bytes => usize::from(bytes),
    };
    let pages = file.metadata()?.len() / page_bytes.max(512) as u64;
    let (mut trunk, count) = (big_endian(&header, 32), big_endian(&header, 36));
    let mut free = BTreeSet::new();
    let mut page = vec![0; page_bytes];
    let is_page = |number: u32| number > 1 && u64::from(number) <= pages;
    while trunk != 0 {
        if !is_page(trunk) || !free.insert(trunk) {
            return Ok(Err(trunk));
        }
        file.seek(SeekFrom::Start(u64::from(trunk - 1) * page_bytes as u64))?;
        file.read_exact(&mut page)?;
        let leaves = big_endian(&page, 4) as usize;
        if leaves > page_bytes / 4 - 2 {
            return Ok(Err(trunk));
        }
        for index in 0..leaves {
            let leaf = big_endian(&page, 8 + 4 * index);
            if !is_page(leaf) || !free.insert(leaf) {
                return Ok(Err(trunk));
            }
        }
        trunk = big_endian(&page, 0);
    }
    Ok(if free.len() == count as usize {
        Ok(free)
    } else {
        Err(1)
    })
}
