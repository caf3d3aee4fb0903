//! A process that is killed while it writes loses no acknowledged write, fifty times in a row; `APILOOM_KILLS=500` sets
//! another number.
//!
//! The test starts itself as that process: the child opens the store, writes with several tasks, watches, and prints
//! every acknowledgement and every change that its watcher sees. The parent kills it at some moment, checks a copy of
//! the directory, and starts the child again on the original.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use apiloom_storage::{
    Embedded, EmbeddedConfig, Event, EventKind, ListRequest, OpenError, Revision, Storage,
    WatchItem, WatchStart,
};
use futures_util::StreamExt;

/// Environment variables that tell a child the directory of its store, and from where its watcher resumes.
const DIR: &str = "APILOOM_TEST_STORE_OF_WRITER";
const WATCHED: &str = "APILOOM_TEST_WATCHED";
const WRITERS: usize = 8;
const TOTAL: usize = 10_000;

#[test]
fn killed_writers_lose_nothing_acknowledged() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    if let Some(dir) = std::env::var_os(DIR) {
        runtime.block_on(write_for_ever(&reopen(dir.as_ref())));
    }
    let dir = tempfile::tempdir().unwrap();
    let mut parent = Parent::default();
    let kills = std::env::var("APILOOM_KILLS").map_or(52, |number| number.parse().unwrap());
    for round in 0..kills {
        parent.write_and_kill(dir.path(), 180 + round * 37 % 90);
        let copy = tempfile::tempdir().unwrap();
        for file in fs::read_dir(dir.path()).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
        }
        runtime.block_on(parent.compare(copy.path()));
    }
    assert!(parent.total > TOTAL, "{} acknowledged", parent.total);
    // The files left by the last kill are as good as their copy.
    runtime.block_on(parent.compare(dir.path()));
}

/// A line of a child's output.
enum Said {
    /// A key, the revision of its write, and its value; `None` after a delete.
    Acknowledged(String, Revision, Option<String>),
    /// The revision of a change that its watcher saw.
    Saw(Revision),
}

/// The expected content of the store.
#[derive(Default)]
struct Parent {
    /// The last acknowledged state of each key.
    state: BTreeMap<String, (Revision, Option<String>)>,
    newest: Revision,
    total: usize,
    /// The newest change that a watcher in a child saw.
    watched: Revision,
    /// The state after the changes up to a revision, as the watches of this process saw them.
    replayed: BTreeMap<String, (Revision, bytes::Bytes)>,
    deleted: BTreeMap<String, Revision>,
    replayed_to: Revision,
}

impl Parent {
    /// Runs the child until it has acknowledged this many writes, and kills it with more in progress.
    fn write_and_kill(&mut self, dir: &Path, writes: u64) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "killed_writers_lose_nothing_acknowledged",
                "--exact",
                "--nocapture",
            ])
            .env(DIR, dir)
            .env(WATCHED, self.watched.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let before = self.newest;
        let mut acknowledged = 0;
        for said in lines.filter_map(|line| parse(&line.unwrap())) {
            match said {
                Said::Acknowledged(key, revision, value) => {
                    assert!(revision > before, "revisions never go back");
                    self.newest = self.newest.max(revision);
                    let old = self.state.insert(key, (revision, value));
                    assert!(old.is_none_or(|(old, _)| old < revision));
                    acknowledged += 1;
                    if acknowledged == writes {
                        child.kill().unwrap();
                    }
                }
                Said::Saw(revision) => {
                    assert_eq!(
                        revision,
                        Revision(self.watched.0 + 1),
                        "the watch resumes where it was"
                    );
                    self.watched = revision;
                }
            }
        }
        // Lines that it still printed count too: the loop ended when the child did.
        assert!(
            acknowledged >= writes,
            "the writer wrote until it was killed"
        );
        self.total += acknowledged as usize;
        child.wait().unwrap();
    }

    /// Opens the store and checks that it holds every acknowledged write: each key at that revision or at a later one,
    /// which was in progress when the process was killed. A watch that resumes where the last one ended sees every
    /// revision once and ends in the same state.
    async fn compare(&mut self, dir: &Path) {
        let store = reopen(dir);
        let page = store.list(ListRequest::default()).await.unwrap();
        assert!(page.revision >= self.newest);
        assert!(page.revision >= self.watched, "only what is kept was seen");
        let mut changes = store
            .watch("", WatchStart::After(self.replayed_to))
            .await
            .unwrap();
        while let WatchItem::Event(event) = changes.next().await.unwrap().unwrap() {
            self.replay(event);
        }
        assert_eq!(self.replayed_to, page.revision);
        let listed = page
            .entries
            .iter()
            .map(|entry| (&entry.key, (entry.revision, &entry.value)));
        let replayed = self
            .replayed
            .iter()
            .map(|(key, (revision, value))| (key, (*revision, value)));
        assert!(replayed.eq(listed), "history ends in what is present");
        for (key, (revision, value)) in &self.state {
            match (self.replayed.get(key), value) {
                (Some((present, bytes)), Some(value)) if present == revision => {
                    assert_eq!(*bytes, value.as_bytes());
                }
                (Some((present, bytes)), _) => {
                    assert!(present > revision, "{key} is older than acknowledged");
                    assert!(is_whole(bytes), "{key} is half-written");
                }
                (None, _) => assert!(self.deleted.get(key) >= Some(revision), "{key} is lost"),
            }
        }
        store.close().await;
    }

    fn replay(&mut self, event: Event) {
        assert_eq!(
            event.revision,
            Revision(self.replayed_to.0 + 1),
            "history has every revision once"
        );
        self.replayed_to = event.revision;
        if event.kind == EventKind::Deleted {
            self.replayed.remove(&event.key);
            self.deleted.insert(event.key, event.revision);
        } else {
            assert!(is_whole(&event.value), "{} is half-written", event.key);
            self.replayed
                .insert(event.key, (event.revision, event.value));
        }
    }
}

fn parse(line: &str) -> Option<Said> {
    let mut words = line.split(' ');
    let said = match words.next()? {
        "acknowledged" => {
            let key = words.next()?.to_owned();
            let revision = Revision(words.next()?.parse().ok()?);
            let value = words.next()?;
            Said::Acknowledged(key, revision, (value != "-").then(|| value.to_owned()))
        }
        "saw" => Said::Saw(Revision(words.next()?.parse().ok()?)),
        _ => return None,
    };
    // The kill may have truncated the last line.
    words.next().filter(|end| *end == ".")?;
    Some(said)
}

fn value(n: u64, round: u64) -> String {
    format!("{n}-{}-end", "v".repeat(400 + (round % 7) as usize * 300))
}

fn is_whole(value: &[u8]) -> bool {
    let text = std::str::from_utf8(value).unwrap();
    text.strip_suffix("-end")
        .and_then(|text| text.split_once('-'))
        .is_some_and(|(_, middle)| middle.len() % 300 == 100)
}

/// Watches; creates, updates twice, and deletes one in four, over and over.
async fn write_for_ever(store: &Arc<Embedded>) {
    let watched = Revision(std::env::var(WATCHED).unwrap().parse().unwrap());
    let mut changes = store.watch("", WatchStart::After(watched)).await.unwrap();
    tokio::spawn(async move {
        while let Some(item) = changes.next().await {
            if let WatchItem::Event(event) = item.unwrap() {
                say(format_args!("saw {}", event.revision));
            }
        }
    });
    let start = store.current_revision().await.unwrap().0;
    let writers = (0..WRITERS).map(|writer| {
        let store = Arc::clone(store);
        tokio::spawn(async move {
            for round in 0_u64.. {
                let key = format!("/r/{start}-{writer}-{round}");
                let first = value(0, round);
                let mut revision = store
                    .create(&key, first.clone().into(), None)
                    .await
                    .unwrap();
                acknowledge(&key, revision, &first);
                for n in 1..3 {
                    let next = value(n, round);
                    revision = store
                        .update_if(&key, revision, next.clone().into(), None)
                        .await
                        .unwrap();
                    acknowledge(&key, revision, &next);
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
    say(format_args!("acknowledged {key} {revision} {value}"));
}

fn say(what: std::fmt::Arguments<'_>) {
    // The parent may have stopped reading: it is about to kill this process.
    let _ = writeln!(std::io::stdout().lock(), "{what} .");
}

/// Opens the store again. The lock of the killed process may stay for a moment.
fn reopen(dir: &Path) -> Arc<Embedded> {
    let begin = Instant::now();
    loop {
        // Revisions are counted from 1 on.
        let config = EmbeddedConfig {
            begin_after: Some(Revision(0)),
            ..EmbeddedConfig::default()
        };
        match Embedded::open(dir, config) {
            Ok(store) => return store,
            Err(OpenError::Locked { .. }) if begin.elapsed() < Duration::from_secs(30) => {
                std::thread::yield_now();
            }
            Err(error) => panic!("{error}"),
        }
    }
}
