//! A disk that is full, read-only or broken: writes fail with errors, reads still work, and when the disk accepts
//! writes again so does the store, without losing an acknowledged write.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on panics, and says where"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use apiloom_storage::conformance::run;
use apiloom_storage::{
    Embedded, EmbeddedConfig, Entry, ListRequest, Retention, Storage, StorageError, WatchItem,
    WatchStart,
};
use futures_util::StreamExt;

const DIR: &str = "DENY_DIR";
const FILE: &str = "DENY_FILE";
const READ: &str = "DENY_READ";

const EIO: i32 = 5;
const EACCES: i32 = 13;
const EMFILE: i32 = 24;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;
const EDQUOT: i32 = 122;

/// A library that is preloaded into this test, run as a child, makes system calls fail.
#[test]
fn store_outlives_refused_writes() {
    if let Some(dir) = std::env::var_os(DIR) {
        for number in [ENOSPC, EROFS, EIO, EDQUOT] {
            let deny = PathBuf::from(std::env::var_os(FILE).unwrap());
            let dir = Path::new(&dir).join(number.to_string());
            run(async {
                let refuse = || fs::write(&deny, number.to_string()).unwrap();
                let allow = || fs::remove_file(&deny).unwrap();
                // The text for a disk that may recover, and for one that will not by itself.
                let expected = match number {
                    EIO => None,
                    EROFS => Some("the store cannot be written: the disk is read-only"),
                    EDQUOT => Some("the store cannot be written: the quota of the disk is used up"),
                    _ => Some("the store cannot be written: the disk is full"),
                };
                outlive(&dir, refuse, allow, expected).await;
                start_while_refused(&dir, &deny, number).await;
            });
        }
        let unreadable = PathBuf::from(std::env::var_os(READ).unwrap());
        run(start_while_unreadable(
            &Path::new(&dir).join("read"),
            &unreadable,
        ));
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/powerloss/deny.c");
    let library = scratch.path().join("deny.so");
    let compiled = Command::new("cc")
        .args(["-O1", "-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(source)
        .arg("-ldl")
        .status();
    assert!(compiled.expect("a C compiler").success());
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["store_outlives_refused_writes", "--exact", "--nocapture"])
        .env("LD_PRELOAD", library)
        .env(DIR, scratch.path().join("stores"))
        .env(FILE, scratch.path().join("deny"))
        .env(READ, scratch.path().join("deny-read"))
        .output()
        .unwrap();
    let told = [&*output.stderr, &*output.stdout].map(String::from_utf8_lossy);
    assert!(output.status.success(), "{}", told.concat());
}

/// A real disk of 4 MiB that is full, if this process may mount one.
#[test]
fn store_outlives_a_full_disk() {
    let disk = tempfile::tempdir().unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"])
        .arg(disk.path())
        .output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        eprintln!("no file system can be mounted here: the errors are simulated only");
        return;
    }
    let mounted = Mounted(disk.path());
    run(async {
        let filler = disk.path().join("filler");
        let fill = || {
            // This fails when the disk is full.
            let _ = fs::write(&filler, vec![b'x'; 8 << 20]);
        };
        let allow = || fs::remove_file(&filler).unwrap();
        let expected = Some("the store cannot be written: the disk is full");
        outlive(&disk.path().join("store"), fill, allow, expected).await;
    });
    drop(mounted);
}

struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
    }
}

/// Writes until the disk refuses, reads meanwhile, and writes again when the disk allows it.
/// `expected` is the error if retrying does not help.
async fn outlive(dir: &Path, refuse: impl Fn(), allow: impl Fn(), expected: Option<&str>) {
    let is_told = |error: &StorageError| match expected {
        None => matches!(error, StorageError::Unavailable(_)),
        Some(text) => *error == StorageError::Refused(text.to_owned()),
    };
    let config = EmbeddedConfig {
        // Maintenance meets the refusals too.
        retention: Retention {
            min_age: Duration::ZERO,
            min_revisions: 20,
            ..Retention::default()
        },
        ..EmbeddedConfig::default()
    };
    let store = Embedded::open(dir, config).unwrap();
    for index in 0..20 {
        create(&store, index).await.unwrap();
    }
    for round in 1..4 {
        refuse();
        let error = refused(&store).await;
        assert!(is_told(&error), "{error}");
        // The failure is noticed without a write, and so is its end.
        assert!(store.health().await.is_err());
        let kept = store.list(ListRequest::default()).await.unwrap();
        let entry = store.get("/r/0007").await.unwrap().0;
        assert_eq!(entry.as_ref().map(|entry| &*entry.key), Some("/r/0007"));
        assert_eq!(store.current_revision().await, Ok(kept.revision));
        let first = entry.unwrap();
        let update = store.update_if(&first.key, first.revision, "2".into(), None);
        assert!(is_told(&update.await.unwrap_err()));
        let delete = store.delete_if(&first.key, first.revision).await;
        assert!(is_told(&delete.unwrap_err()));
        let mut changes = store.watch("/r/", WatchStart::Now).await.unwrap();
        assert_eq!(store.list(ListRequest::default()).await, Ok(kept.clone()));

        allow();
        let begin = Instant::now();
        while let Err(error) = store.health().await {
            assert!(begin.elapsed().as_secs() < 30, "{error}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let revision = create(&store, 1_000 * round + 500).await.unwrap().revision;
        assert_eq!(revision.0, kept.revision.0 + 1, "what failed took nothing");
        let event = loop {
            match changes.next().await.unwrap().unwrap() {
                WatchItem::Event(event) => break event,
                WatchItem::Progress(_) => {}
            }
        };
        assert_eq!(event.revision, revision, "what failed is no change");
        let now = store.list(ListRequest::default()).await.unwrap();
        assert_eq!(now.entries.len(), kept.entries.len() + 1);
        // Make room for the next round.
        for entry in now.entries.iter().skip(20) {
            store.delete_if(&entry.key, entry.revision).await.unwrap();
        }
    }
    let last = store.list(ListRequest::default()).await.unwrap();
    store.close().await;
    assert_eq!(Embedded::check(dir).unwrap().damage, [""; 0]);
    let store = Embedded::open(dir, config).unwrap();
    assert_eq!(store.list(ListRequest::default()).await, Ok(last));
    store.close().await;
}

/// Writes until a write is refused; returns the error.
async fn refused(store: &Arc<Embedded>) -> StorageError {
    for index in 100..2_000 {
        if let Err(error) = create(store, index).await {
            return error;
        }
    }
    panic!("the disk takes everything");
}

async fn create(store: &Arc<Embedded>, index: u32) -> Result<Entry, StorageError> {
    let (key, value) = (
        format!("/r/{index:04}"),
        bytes::Bytes::from(vec![b'v'; 10_000]),
    );
    let revision = store.create(&key, value.clone(), None).await?;
    Ok(Entry {
        key,
        value,
        revision,
    })
}

/// A store that is opened meanwhile reports the disk's error in one line, and stays intact.
async fn start_while_refused(dir: &Path, deny: &Path, number: i32) {
    fs::write(deny, number.to_string()).unwrap();
    let error = Embedded::open(dir, EmbeddedConfig::default());
    let line = error.map(drop).unwrap_err().to_string();
    assert!(
        line.starts_with("cannot use") && !line.contains('\n'),
        "{line}"
    );
    fs::remove_file(deny).unwrap();
    let store = Embedded::open(dir, EmbeddedConfig::default()).unwrap();
    assert_eq!(store.count("/r/").await, Ok(20));
    store.close().await;
}

/// Opens a store while one access to its files after the other fails: the error is reported as an I/O error, not as
/// damage.
async fn start_while_unreadable(dir: &Path, deny: &Path) {
    let store = Embedded::open(dir, EmbeddedConfig::default()).unwrap();
    for index in 0..20 {
        create(&store, index).await.unwrap();
    }
    store.close().await;
    for number in [EIO, EACCES, EMFILE] {
        let (mut failed, mut unneeded) = (0, 0);
        for which in 1.. {
            fs::write(deny, format!("{number} {which}")).unwrap();
            let opened = Embedded::open(dir, EmbeddedConfig::default());
            fs::remove_file(deny).unwrap();
            match opened {
                Err(error) => {
                    let line = error.to_string();
                    assert!(
                        line.starts_with("cannot use") && !line.contains('\n'),
                        "errno {number}, {which}: {line}"
                    );
                    failed += 1;
                    unneeded = 0;
                }
                Ok(store) => {
                    assert_eq!(store.count("/r/").await, Ok(20), "errno {number}, {which}");
                    let damage = store.damage();
                    store.close().await;
                    assert_eq!(damage, [""; 0]);
                    // Some accesses are not needed to open; this many in a row mean that all were tried.
                    unneeded += 1;
                    if unneeded > 15 {
                        break;
                    }
                }
            }
        }
        assert!(failed > 10, "errno {number}: {failed}");
    }
    assert_eq!(Embedded::check(dir).unwrap().damage, [""; 0]);
}
