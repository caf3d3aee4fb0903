//! A process that is killed while it writes loses nothing that it was told is written.
//!
//! The test starts itself as that process: the child opens the store, writes with several tasks and prints every
//! acknowledgement; the parent kills it at some moment and compares.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use apiloom_storage::{
    Embedded, EmbeddedConfig, EventKind, ListRequest, OpenError, Revision, Storage, WatchItem,
    WatchStart,
};
use futures_util::StreamExt;

const DIR: &str = "APILOOM_TEST_STORE_OF_WRITER";
const ROUNDS: u64 = 6;
const WRITERS: usize = 8;

#[test]
fn killed_writers_lose_nothing_acknowledged() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    if let Some(dir) = std::env::var_os(DIR) {
        runtime.block_on(write_for_ever(
            &Embedded::open(dir, EmbeddedConfig::default()).unwrap(),
        ));
    }
    let dir = tempfile::tempdir().unwrap();
    // The last acknowledged state of each key, and all acknowledged revisions.
    let mut state = BTreeMap::new();
    let mut newest = Revision(0);
    for round in 0..ROUNDS {
        let acknowledged = write_and_kill(dir.path(), 100 + round * 37);
        assert!(
            acknowledged
                .iter()
                .all(|(_, revision, _)| *revision > newest),
            "revisions never go back"
        );
        for (key, revision, value) in acknowledged {
            newest = newest.max(revision);
            state.insert(key, (revision, value));
        }
        runtime.block_on(compare(dir.path(), &state, newest));
    }
}

/// A key, the revision of its write, and its value; `None` after a delete.
type Acknowledged = (String, Revision, Option<String>);

/// Runs the writing process until it has acknowledged so many writes, and kills it with more under way.
fn write_and_kill(dir: &std::path::Path, writes: u64) -> Vec<Acknowledged> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "killed_writers_lose_nothing_acknowledged",
            "--exact",
            "--nocapture",
        ])
        .env(DIR, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(|line| line.unwrap());
    let mut acknowledged: Vec<_> = lines
        .by_ref()
        .filter_map(|line| parse(&line))
        .take(writes as usize)
        .collect();
    assert_eq!(
        acknowledged.len() as u64,
        writes,
        "the writer wrote until it was killed"
    );
    child.kill().unwrap();
    // What it managed to print counts.
    acknowledged.extend(lines.filter_map(|line| parse(&line)));
    child.wait().unwrap();
    acknowledged
}

fn parse(line: &str) -> Option<Acknowledged> {
    let mut words = line.strip_prefix("acknowledged ")?.split(' ');
    let key = words.next()?.to_owned();
    let revision = Revision(words.next()?.parse().ok()?);
    let value = words.next()?;
    // The kill may have cut the last line short.
    words.next().filter(|end| *end == ".")?;
    Some((key, revision, (value != "-").then(|| value.to_owned())))
}

/// Creates, updates twice, and deletes one in four, over and over.
async fn write_for_ever(store: &Arc<Embedded>) {
    let start = store.current_revision().await.unwrap().0;
    let writers = (0..WRITERS).map(|writer| {
        let store = Arc::clone(store);
        tokio::spawn(async move {
            for round in 0_u64.. {
                let key = format!("/r/{start}-{writer}-{round}");
                let value =
                    |n: u64| format!("{n}-{}", "v".repeat(400 + (round % 7) as usize * 300));
                let mut revision = store.create(&key, value(0).into(), None).await.unwrap();
                acknowledge(&key, revision, &value(0));
                for n in 1..3 {
                    revision = store
                        .update_if(&key, revision, value(n).into(), None)
                        .await
                        .unwrap();
                    acknowledge(&key, revision, &value(n));
                }
                if round % 4 == 0 {
                    revision = store.delete_if(&key, revision).await.unwrap();
                    acknowledge(&key, revision, "-");
                }
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
}

fn acknowledge(key: &str, revision: Revision, value: &str) {
    // The parent may have stopped reading: it is about to kill us.
    let _ = writeln!(
        std::io::stdout().lock(),
        "acknowledged {key} {revision} {value} ."
    );
}

/// Opens the store and proves that it holds what was acknowledged: each key at that revision or at a later one, which was
/// under way when the process was killed. A watch from the beginning sees every revision once and ends in the same state.
async fn compare(
    dir: &std::path::Path,
    state: &BTreeMap<String, (Revision, Option<String>)>,
    newest: Revision,
) {
    let store = reopen(dir);
    let page = store.list(ListRequest::default()).await.unwrap();
    assert!(page.revision >= newest);
    let present: BTreeMap<_, _> = page
        .entries
        .into_iter()
        .map(|entry| (entry.key.clone(), entry))
        .collect();
    let mut changes = store
        .watch("", WatchStart::After(Revision(0)))
        .await
        .unwrap();
    let (mut replayed, mut deleted, mut last) = (BTreeMap::new(), BTreeMap::new(), Revision(0));
    while let WatchItem::Event(event) = changes.next().await.unwrap().unwrap() {
        assert_eq!(
            event.revision,
            Revision(last.0 + 1),
            "history has every revision once"
        );
        last = event.revision;
        if event.kind == EventKind::Deleted {
            replayed.remove(&event.key);
            deleted.insert(event.key, event.revision);
        } else {
            replayed.insert(event.key, (event.revision, event.value));
        }
    }
    assert_eq!(last, page.revision);
    let listed = present
        .values()
        .map(|entry| (entry.key.clone(), (entry.revision, entry.value.clone())));
    assert!(
        replayed.into_iter().eq(listed),
        "history ends in what is present"
    );
    for (key, (revision, value)) in state {
        match (present.get(key), value) {
            (Some(entry), Some(value)) if entry.revision == *revision => {
                assert_eq!(entry.value, value.as_bytes());
            }
            (Some(entry), _) => assert!(
                entry.revision > *revision,
                "{key} is older than acknowledged"
            ),
            (None, _) => assert!(deleted.get(key) >= Some(revision), "{key} is lost"),
        }
    }
    store.close().await;
}

/// The lock is gone when the killed process is, which may take a moment.
fn reopen(dir: &std::path::Path) -> Arc<Embedded> {
    let begin = Instant::now();
    loop {
        match Embedded::open(dir, EmbeddedConfig::default()) {
            Ok(store) => return store,
            Err(OpenError::Locked { .. }) if begin.elapsed() < Duration::from_secs(10) => {
                std::thread::yield_now();
            }
            Err(error) => panic!("{error}"),
        }
    }
}
