//! Tests of the embedded store only: its file, its lock, damage, a full disk. One file, because nearly all of them use
//! the same few helpers for a store in a folder.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt;
use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::conformance::{Backend, run};
use crate::{Retention, WatchItem};

struct InDirectory(TempDir);

impl Backend for InDirectory {
    async fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    async fn open(&self) -> Arc<dyn Storage> {
        open(self.0.path())
    }
}

mod conformance {
    crate::conformance_tests!(super::InDirectory);
}

mod conformance_through_the_cache {
    crate::conformance_tests!(crate::conformance::ThroughCache<super::InDirectory>);
}

/// A store whose first write gets revision 1.
fn open(dir: &Path) -> Arc<Embedded> {
    Embedded::open(dir, from_1()).unwrap()
}

fn from_1() -> EmbeddedConfig {
    EmbeddedConfig {
        begin_after: Some(Revision(0)),
        ..EmbeddedConfig::default()
    }
}

/// The error of opening a store; always one line.
fn refusal(dir: &Path) -> String {
    let error = Embedded::open(dir, EmbeddedConfig::default()).unwrap_err();
    let line = error.to_string();
    assert!(!line.contains('\n'), "{line}");
    assert!(
        line.contains(&*dir.to_string_lossy()),
        "{line} names the directory"
    );
    line
}

fn file(dir: &Path) -> std::path::PathBuf {
    dir.join("store.db")
}

fn list_all() -> ListRequest {
    ListRequest::default()
}

#[test]
fn second_open_is_refused_until_the_first_is_closed() {
    run(async {
        let dir = TempDir::new().unwrap();
        let store = open(dir.path());
        let line = refusal(dir.path());
        assert!(line.contains("in use by another process"), "{line}");
        store.create("/r/a", "1".into(), None).await.unwrap();
        store.close().await;
        open(dir.path()).close().await;
    });
}

#[test]
fn file_that_is_not_a_store_is_refused_and_left_alone() {
    let check = |content: &[u8], expected: &str| {
        let dir = TempDir::new().unwrap();
        fs::write(file(dir.path()), content).unwrap();
        let line = refusal(dir.path());
        assert!(
            line.contains("is not an apiloom store") && line.contains(expected),
            "{line}"
        );
        assert_eq!(fs::read(file(dir.path())).unwrap(), content);
    };
    check(
        b"some notes that someone keeps here\n"
            .repeat(40)
            .as_slice(),
        "not an SQLite file",
    );

    let other = TempDir::new().unwrap();
    let connection = Connection::open(other.path().join("db")).unwrap();
    connection
        .execute_batch("CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')")
        .unwrap();
    connection.close().unwrap();
    check(
        &fs::read(other.path().join("db")).unwrap(),
        "an SQLite file of another program",
    );
}

#[test]
fn log_of_sqlite_without_its_file_is_refused() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("store.db-wal"), "frames").unwrap();
    let line = refusal(dir.path());
    assert!(line.contains("store.db-wal"), "{line}");
}

#[test]
fn start_that_was_cut_short_is_begun_anew() {
    run(async {
        let dir = TempDir::new().unwrap();
        fs::write(file(dir.path()), "").unwrap();
        fs::write(dir.path().join("store.db.new"), "half a file").unwrap();
        let store = open(dir.path());
        assert_eq!(
            store.create("/r/a", "1".into(), None).await,
            Ok(Revision(1))
        );
        store.close().await;
    });
}

#[test]
fn revisions_of_a_store_that_was_removed_are_too_old_to_its_successor() {
    run(async {
        let dir = TempDir::new().unwrap();
        let place = dir.path().join("store");
        let open = || Embedded::open(&place, EmbeddedConfig::default()).unwrap();
        let mut known = vec![Revision(0), Revision(1)];
        for _ in 0..3 {
            let store = open();
            crate::conformance::all_are_too_old(&*store, &known).await;
            known.push(store.current_revision().await.unwrap());
            for key in ["/r/a", "/r/b"] {
                known.push(store.create(key, "1".into(), None).await.unwrap());
            }
            store.close().await;
            // It continues at its last revision, not at the clock.
            let store = open();
            let last = *known.last().unwrap();
            assert_eq!(store.current_revision().await, Ok(last));
            let next = store.create("/r/c", "1".into(), None).await;
            assert_eq!(next, Ok(Revision(last.0 + 1)));
            known.push(next.unwrap());
            store.close().await;
            assert_eq!(Embedded::check(&place).unwrap().damage, [""; 0]);
            fs::remove_dir_all(&place).unwrap();
        }
    });
}

#[test]
fn newer_format_is_refused() {
    run(async {
        let dir = TempDir::new().unwrap();
        open(dir.path()).close().await;
        Connection::open(file(dir.path()))
            .unwrap()
            .pragma_update(None, "user_version", 3)
            .unwrap();
        let line = refusal(dir.path());
        assert!(
            line.contains("has format 3") && line.contains("formats up to 2"),
            "{line}"
        );
    });
}

#[test]
fn store_of_format_1_is_brought_up_to_date() {
    run(async {
        let dir = TempDir::new().unwrap();
        fill(&open(dir.path())).await;
        Connection::open(file(dir.path()))
            .unwrap()
            .execute_batch(
                "BEGIN; DROP TABLE meta; PRAGMA user_version = 1; \
                 CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID; \
                 INSERT INTO meta VALUES ('compacted', 2), ('swept', 1); COMMIT",
            )
            .unwrap();
        for _ in 0..2 {
            let store = open(dir.path());
            assert_eq!(store.list(list_all()).await.unwrap().entries.len(), 3);
            let refused = store.watch("/r/", WatchStart::After(Revision(1))).await;
            assert!(matches!(
                refused.err(),
                Some(StorageError::Compacted { .. })
            ));
            store.close().await;
        }
    });
}

#[test]
fn end_of_the_log_that_is_lost_is_noticed() {
    run(async {
        let dir = TempDir::new().unwrap();
        let store = open(dir.path());
        store.create("/r/a", "1".into(), None).await.unwrap();
        store.create("/r/b", "1".into(), None).await.unwrap();
        let image = TempDir::new().unwrap();
        copy(dir.path(), image.path());
        store.close().await;
        let log = image.path().join("store.db-wal");
        let whole = fs::read(&log).unwrap();
        // The last frame was synced and acknowledged, and then damaged.
        let mut damaged = whole.clone();
        *damaged.last_mut().unwrap() ^= 1;
        fs::write(&log, damaged).unwrap();
        let line = refusal(image.path());
        assert!(
            line.contains("ends at revision 1, but revision 2 was acknowledged"),
            "{line}"
        );
        // Opening did not increase the damage: a repaired store can be opened.
        fs::write(&log, whole).unwrap();
        let store = open(image.path());
        assert_eq!(store.list(list_all()).await.unwrap().entries.len(), 2);
        store.close().await;
    });
}

#[test]
fn file_that_vanished_is_not_made_anew() {
    run(async {
        let dir = TempDir::new().unwrap();
        fill(&open(dir.path())).await;
        fs::remove_file(file(dir.path())).unwrap();
        let line = refusal(dir.path());
        assert!(line.contains("revision 3 was acknowledged"), "{line}");
    });
}

#[test]
fn files_that_are_removed_or_replaced_under_an_open_store_are_noticed() {
    let check = |damage: &dyn Fn(&Path, &Path), expected: &str| {
        run(async {
            let place = TempDir::new().unwrap();
            let dir = place.path().join("store");
            let store = open(&dir);
            store.create("/r/a", "1".into(), None).await.unwrap();
            let backup = place.path().join("backup");
            fs::create_dir(&backup).unwrap();
            copy(&dir, &backup);
            assert_eq!(store.health().await, Ok(()));
            assert!(store.get("/r/a").await.unwrap().0.is_some());
            damage(&dir, &backup);
            let told = store.health().await.unwrap_err();
            assert!(told.to_string().contains(expected), "{told}");
            let refused = store.create("/r/b", "1".into(), None).await.unwrap_err();
            assert_eq!(refused, told);
            assert!(matches!(refused, StorageError::Refused(_)), "{refused}");
            assert!(store.get("/r/a").await.unwrap().0.is_some(), "reads go on");
            store.close().await;
            // The files now in the directory are unchanged.
            if dir.exists() {
                let store = open(&dir);
                assert_eq!(store.list(list_all()).await.unwrap().entries.len(), 1);
                store.close().await;
            }
        });
    };
    check(&|dir, _| fs::remove_dir_all(dir).unwrap(), "were removed");
    check(
        &|dir, _| fs::rename(dir, dir.with_file_name("moved")).unwrap(),
        "were removed",
    );
    check(
        &|dir, backup| {
            fs::rename(dir, dir.with_file_name("moved")).unwrap();
            fs::rename(backup, dir).unwrap();
        },
        "were replaced",
    );
    check(
        &|dir, backup| {
            fs::rename(backup.join("store.db-wal"), dir.join("store.db-wal")).unwrap();
        },
        "were replaced",
    );
}

#[test]
fn page_that_is_free_and_in_use_is_noticed() {
    run(async {
        let dir = TempDir::new().unwrap();
        let store = open(dir.path());
        let big = || Bytes::from(vec![b'x'; 30_000]);
        let revision = store.create("/r/a", big(), None).await.unwrap();
        let update = store.update_if("/r/a", revision, "1".into(), None).await;
        update.unwrap();
        let last = store.create("/r/b", "1".into(), None).await;
        store.compact(last.unwrap()).await.unwrap();
        let free = || {
            let connection = Connection::open(file(dir.path())).unwrap();
            let pages: i64 = connection
                .pragma_query_value(None, "freelist_count", |row| row.get(0))
                .unwrap();
            pages
        };
        wait_for(|| free() > 4).await;
        store.close().await;
        let connection = Connection::open(file(dir.path())).unwrap();
        let root: u32 = connection
            .query_row(
                "SELECT rootpage FROM sqlite_schema WHERE name = 'obj'",
                [],
                |row| row.get(0),
            )
            .unwrap();
        drop(connection);
        let mut bytes = fs::read(file(dir.path())).unwrap();
        let trunk = u32::from_be_bytes(bytes[32..36].try_into().unwrap()) as usize;
        let leaf = (trunk - 1) * 4096 + 8;
        bytes[leaf..leaf + 4].copy_from_slice(&root.to_be_bytes());
        fs::write(file(dir.path()), bytes).unwrap();
        let line = refusal(dir.path());
        assert!(
            line.contains(&format!("page {root} is in use by obj and on the list")),
            "{line}"
        );
    });
}

#[test]
fn path_that_is_no_directory_is_refused() {
    // The superuser may write everywhere, but not below a file.
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, "").unwrap();
    for path in [path.clone(), path.join("below")] {
        let line = refusal(&path);
        assert!(
            line.starts_with("cannot use") && line.contains("choose another directory"),
            "{line}"
        );
    }
}

#[test]
fn missing_directory_is_made_for_its_owner_alone() {
    run(async {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("a/b");
        open(&path).close().await;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&path), mode(&file(&path))), (0o700, 0o600));
        }
    });
}

#[test]
fn dropped_store_gives_up_its_directory() {
    run(async {
        let dir = TempDir::new().unwrap();
        let store = open(dir.path());
        store.create("/r/a", "1".into(), None).await.unwrap();
        drop(store);
        let begin = Instant::now();
        let store = loop {
            match Embedded::open(dir.path(), EmbeddedConfig::default()) {
                Ok(store) => break store,
                Err(OpenError::Locked { .. }) if begin.elapsed() < Duration::from_secs(30) => {
                    tokio::task::yield_now().await;
                }
                Err(error) => panic!("{error}"),
            }
        };
        assert!(store.get("/r/a").await.unwrap().0.is_some());
        store.close().await;
    });
}

#[test]
fn full_store_refuses_writes_and_goes_on_reading() {
    run(async {
        let dir = TempDir::new().unwrap();
        let config = EmbeddedConfig {
            max_bytes: Some(256 << 10),
            ..from_1()
        };
        let store = Embedded::open(dir.path(), config).unwrap();
        let mut written = 0;
        let error = loop {
            match store
                .create(&format!("/r/{written:03}"), vec![b'x'; 10_000].into(), None)
                .await
            {
                Ok(_) => written += 1,
                Err(error) => break error,
            }
        };
        assert!(
            matches!(&error, StorageError::Refused(text) if text.contains("full")),
            "{error}"
        );
        assert_eq!(store.health().await, Err(error));
        assert!(written > 10);
        assert_eq!(store.list(list_all()).await.unwrap().entries.len(), written);
        let revision = store.current_revision().await.unwrap();
        assert_eq!(revision, Revision(written as u64));
        store.close().await;

        let store = open(dir.path());
        assert_eq!(store.list(list_all()).await.unwrap().entries.len(), written);
        assert_eq!(
            store.create("/s/a", "1".into(), None).await.unwrap(),
            Revision(revision.0 + 1)
        );
        store.close().await;
    });
}

#[test]
fn log_of_sqlite_is_written_back_while_the_store_is_open() {
    run(async {
        let dir = TempDir::new().unwrap();
        let store = open(dir.path());
        let writers = (0..64).map(|writer| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for index in 0..10 {
                    let value = vec![b'x'; 16_000].into();
                    store
                        .create(&format!("/r/{writer}-{index}"), value, None)
                        .await
                        .unwrap();
                }
            })
        });
        for writer in writers.collect::<Vec<_>>() {
            writer.await.unwrap();
        }
        wait_for(|| fs::metadata(file(dir.path())).unwrap().len() > 2 << 20).await;
        store.close().await;
        assert!(!dir.path().join("store.db-wal").exists());
    });
}

#[test]
fn history_beyond_the_retention_is_removed_and_present_values_stay() {
    run(async {
        let dir = TempDir::new().unwrap();
        let retention = Retention {
            min_age: Duration::ZERO,
            min_revisions: 10,
            ..Retention::default()
        };
        let store = Embedded::open(
            dir.path(),
            EmbeddedConfig {
                retention,
                ..EmbeddedConfig::default()
            },
        )
        .unwrap();
        let kept = store.create("/r/kept", "kept".into(), None).await.unwrap();
        let mut revision = store.create("/r/a", "0".into(), None).await.unwrap();
        for value in 1..200 {
            revision = store
                .update_if("/r/a", revision, format!("{value}").into(), None)
                .await
                .unwrap();
        }
        let gone = store.create("/r/gone", "1".into(), None).await.unwrap();
        store.delete_if("/r/gone", gone).await.unwrap();
        wait_for(|| {
            let connection = Connection::open(file(dir.path())).unwrap();
            let rows: i64 = connection
                .query_row("SELECT count(*) FROM log", [], |row| row.get(0))
                .unwrap();
            rows <= 12
        })
        .await;
        let refused = store
            .watch("/r/", WatchStart::After(kept))
            .await
            .err()
            .unwrap();
        assert!(
            matches!(refused, StorageError::Compacted { .. }),
            "{refused}"
        );
        store.close().await;

        let store = open(dir.path());
        let entries = store.list(list_all()).await.unwrap().entries;
        let values: Vec<_> = entries.iter().map(|entry| &entry.value[..]).collect();
        assert_eq!(values, [b"199".as_slice(), b"kept"]);
        store.close().await;
    });
}

#[test]
fn history_grows_old_in_a_store_that_never_lives_long() {
    for is_killed in [false, true] {
        run(history_grows_old(is_killed));
    }
}

async fn history_grows_old(is_killed: bool) {
    let dir = TempDir::new().unwrap();
    let times = dir.path().join("store.times");
    let config = EmbeddedConfig {
        retention: Retention {
            min_age: Duration::from_secs(1),
            min_revisions: 0,
            ..Retention::default()
        },
        ..EmbeddedConfig::default()
    };
    let (mut first, mut lives) = (None, 0);
    let begin = Instant::now();
    loop {
        let store = Embedded::open(dir.path(), config).unwrap();
        let life = Instant::now();
        let written = store.create(&format!("/r/{lives}"), "1".into(), None).await;
        let first = *first.get_or_insert(written.unwrap());
        // A life of 100 ms leaves no sample.
        while life.elapsed() < Duration::from_millis(100) {
            tokio::task::yield_now().await;
        }
        let watched = store.watch("/r/", WatchStart::After(first)).await;
        let known = fs::read(&times).unwrap();
        store.close().await;
        if is_killed {
            // The sample at the end of this life is discarded.
            fs::write(&times, known).unwrap();
        }
        lives += 1;
        if matches!(watched.map(drop), Err(StorageError::Compacted { .. })) {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "{lives} lives");
    }
    assert!(begin.elapsed() >= config.retention.min_age, "not too early");
    assert!(lives > 1);
}

#[test]
fn history_that_grows_fast_is_bounded_before_the_next_look() {
    run(async {
        let dir = TempDir::new().unwrap();
        let store = Embedded::open(dir.path(), of_1_mib()).unwrap();
        let mut last = store.create("/r/a", kib_64(), None).await.unwrap();
        // Far more than the limit in less than the ten seconds after which a check is due in any case.
        let mut is_bounded = false;
        for number in 0..400 {
            last = store.update_if("/r/a", last, kib_64(), None).await.unwrap();
            if number < 60 {
                continue;
            }
            is_bounded = is_bounded || log_bytes(dir.path()) < 1_200 << 10;
            // Nothing within the limit is compacted.
            let recent = WatchStart::After(Revision(last.0 - 8));
            assert!(store.watch("/r/", recent).await.is_ok(), "{number}");
        }
        assert!(is_bounded);
        store.close().await;
    });
}

/// A configuration with history of at most 1 MiB.
fn of_1_mib() -> EmbeddedConfig {
    EmbeddedConfig {
        retention: Retention {
            max_bytes: 1 << 20,
            ..Retention::default()
        },
        ..EmbeddedConfig::default()
    }
}

fn kib_64() -> Bytes {
    Bytes::from(vec![b'x'; 64 << 10])
}

/// The total size of the values in the log of a store.
fn log_bytes(dir: &Path) -> i64 {
    let connection = Connection::open(file(dir)).unwrap();
    let sql = "SELECT sum(length(value)) FROM log";
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn history_is_bounded_by_bytes_and_so_after_a_restart() {
    run(async {
        let dir = TempDir::new().unwrap();
        let config = of_1_mib();
        let store = Embedded::open(dir.path(), config).unwrap();
        let first = store.create("/r/a", kib_64(), None).await.unwrap();
        let mut last = first;
        // Below the limit in each life, above it in all together; with and without watchers, with and without known
        // samples.
        for life in 0..12 {
            let store = match life {
                0 => Arc::clone(&store),
                _ => Embedded::open(dir.path(), config).unwrap(),
            };
            let watched = match life % 2 {
                0 => Some(store.watch("/r/", WatchStart::Now).await.unwrap()),
                _ => None,
            };
            for _ in 0..10 {
                last = store.update_if("/r/a", last, kib_64(), None).await.unwrap();
            }
            drop(watched);
            if life > 1 {
                wait_for(|| log_bytes(dir.path()) < 1_200 << 10).await;
                let refused = store.watch("/r/", WatchStart::After(first)).await.err();
                assert!(matches!(refused, Some(StorageError::Compacted { .. })));
                let recent = WatchStart::After(Revision(last.0 - 9));
                assert!(store.watch("/r/", recent).await.is_ok());
            }
            store.close().await;
            if life % 3 == 0 {
                fs::remove_file(dir.path().join("store.times")).unwrap();
            }
        }
        assert_eq!(Embedded::check(dir.path()).unwrap().damage, [""; 0]);
    });
}

#[test]
fn forgotten_history_leaves_one_row_per_object_and_the_newest() {
    run(async {
        let dir = TempDir::new().unwrap();
        let store = open(dir.path());
        let kept = store.create("/r/kept", "1".into(), None).await.unwrap();
        let kept = store
            .update_if("/r/kept", kept, "2".into(), None)
            .await
            .unwrap();
        let gone = store.create("/r/gone", "1".into(), None).await.unwrap();
        let last = store.delete_if("/r/gone", gone).await.unwrap();
        store.compact(last).await.unwrap();
        let rows = || {
            let connection = Connection::open(file(dir.path())).unwrap();
            let mut statement = connection
                .prepare("SELECT revision FROM log ORDER BY revision")
                .unwrap();
            let rows = statement.query_map([], |row| row.get::<_, i64>(0)).unwrap();
            rows.map(|row| Revision(row.unwrap() as u64))
                .collect::<Vec<_>>()
        };
        // The removal stays until a newer row follows: the revision continues from it.
        wait_for(|| rows() == [kept, gone, last]).await;
        let next = store.create("/r/next", "1".into(), None).await.unwrap();
        store.compact(next).await.unwrap();
        wait_for(|| rows() == [kept, next]).await;
        store.close().await;
    });
}

#[test]
fn damaged_value_is_never_served_and_is_named() {
    run(async {
        let (dir, store) =
            with_damage("UPDATE log SET value = 'o' || substr(value, 2) WHERE key = '/r/b'").await;
        let error = store.get("/r/b").await.unwrap_err();
        assert!(
            matches!(&error, StorageError::Corrupt(what) if what.contains("\"/r/b\"")),
            "{error}"
        );
        assert!(matches!(
            store.list(list_all()).await,
            Err(StorageError::Corrupt(_))
        ));
        assert!(store.get("/r/a").await.unwrap().0.is_some());
        let refused = store.create("/r/b", "3".into(), None).await.unwrap_err();
        assert!(matches!(refused, StorageError::Corrupt(_)), "{refused}");
        store.close().await;
        drop(dir);
    });
}

#[test]
fn damaged_value_may_be_overwritten_and_its_watchers_are_told() {
    run(async {
        let (dir, store) = with_damage("UPDATE log SET value = x'00' WHERE key = '/r/b'").await;
        let mut changes = store.watch("/r/", WatchStart::Now).await.unwrap();
        store
            .update_if("/r/b", Revision(2), "new".into(), None)
            .await
            .unwrap();
        let end = loop {
            match changes.next().await.unwrap() {
                Ok(WatchItem::Progress(_)) => {}
                end => break end,
            }
        };
        assert!(
            matches!(&end, Err(StorageError::Corrupt(what)) if what.contains("/r/b")),
            "{end:?}"
        );
        assert_eq!(store.get("/r/b").await.unwrap().0.unwrap().value, "new");
        store.close().await;
        drop(dir);
    });
}

#[test]
fn missing_row_of_the_log_is_noticed() {
    run(async {
        let (dir, store) = with_damage("DELETE FROM log WHERE revision = 2").await;
        let error = store.get("/r/b").await.unwrap_err();
        assert!(
            matches!(&error, StorageError::Corrupt(what) if what.contains("\"/r/b\"")),
            "{error}"
        );
        let mut changes = store
            .watch("/r/", WatchStart::After(Revision(0)))
            .await
            .unwrap();
        assert!(matches!(
            changes.next().await.unwrap(),
            Ok(WatchItem::Event(_))
        ));
        assert!(matches!(
            changes.next().await.unwrap(),
            Err(StorageError::Corrupt(_))
        ));
        let at = ListRequest {
            at: Some(Revision(1)),
            ..list_all()
        };
        assert!(matches!(
            store.list(at).await,
            Err(StorageError::Corrupt(_))
        ));
        store.close().await;
        drop(dir);
    });
}

#[test]
fn damaged_objects_are_noticed_at_open() {
    let check = |damage: &str| {
        run(async {
            let dir = TempDir::new().unwrap();
            fill(&open(dir.path())).await;
            Connection::open(file(dir.path()))
                .unwrap()
                .execute_batch(damage)
                .unwrap();
            let line = refusal(dir.path());
            assert!(line.contains("is damaged"), "{damage}: {line}");
        });
    };
    check("UPDATE obj SET expires = 9e18 WHERE key = '/r/b'");
    check("DELETE FROM obj WHERE key = '/r/b'");
    check("UPDATE obj SET key = '/r/x' WHERE key = '/r/b'");
    check("UPDATE obj SET revision = 1 WHERE key = '/r/b'");
    check("UPDATE obj SET expires = 1 WHERE key = '/r/b'");
    check("INSERT INTO obj VALUES ('/r/x', 1, NULL)");
    check("DELETE FROM log WHERE revision = (SELECT max(revision) FROM log)");
    check("UPDATE log SET digest = digest + 1");
    check("UPDATE meta SET value = 100");
}

#[test]
fn proof_in_the_background_names_what_is_damaged() {
    run(async {
        let dir = TempDir::new().unwrap();
        fill(&open(dir.path())).await;
        let damage = "UPDATE log SET value = x'00' WHERE key = '/r/b'";
        Connection::open(file(dir.path()))
            .unwrap()
            .execute_batch(damage)
            .unwrap();
        let config = EmbeddedConfig {
            verify_interval: Duration::from_millis(1),
            ..EmbeddedConfig::default()
        };
        let store = Embedded::open(dir.path(), config).unwrap();
        wait_for(|| store.damage().iter().any(|line| line.contains("\"/r/b\""))).await;
        assert!(
            store.damage().iter().all(|line| !line.contains("/r/a")),
            "{:?}",
            store.damage()
        );
        let health = store.health().await.unwrap_err();
        assert!(!health.to_string().contains("/r/b"), "{health}");
        store.close().await;
    });
}

/// Creates some objects; the newest row is a removal.
async fn fill(store: &Arc<Embedded>) {
    for key in ["/r/a", "/r/b", "/r/c"] {
        store
            .create(key, format!("value of {key}").into(), None)
            .await
            .unwrap();
    }
    store.close().await;
}

/// Opens a filled store whose file was changed by this SQL before.
async fn with_damage(sql: &str) -> (TempDir, Arc<Embedded>) {
    let dir = TempDir::new().unwrap();
    fill(&open(dir.path())).await;
    assert_eq!(
        Connection::open(file(dir.path()))
            .unwrap()
            .execute(sql, [])
            .unwrap(),
        1
    );
    let store = open(dir.path());
    (dir, store)
}

/// Copies the files that a killed process would leave.
fn copy(from: &Path, to: &Path) {
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

async fn wait_for(mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "what was waited for did not come"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
