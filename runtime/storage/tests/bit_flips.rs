//! Damaged files: no wrong object is served and none is missing, or an error says where.
//!
//! Every file of a store, as left by a clean stop and by a kill, is damaged in hundreds of ways: single bits, runs of
//! bytes, sectors of zeros, a torn last page, a truncated file; in pages with values and in pages without. Each image
//! is opened, read in every way, written to, read again, closed and opened again. The same is then done with
//! verification switched off, which must find wrong answers: otherwise the test would detect nothing.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

mod random;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use apiloom_storage::{
    Embedded, EmbeddedConfig, Entry, Event, ListRequest, Revision, Storage, StorageError,
    WatchItem, WatchStart,
};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::join_all;
use random::Random;

/// Damaged images of each of the three states.
const IMAGES: u64 = 150;
const PAGE: usize = 4096;

#[test]
fn damage_is_noticed() {
    let summary = damage_all(EmbeddedConfig::default(), IMAGES);
    assert_eq!(summary.wrong, [""; 0]);
    assert_eq!(summary.unnamed, [""; 0], "errors that do not say where");
    assert!(
        summary.noticed > IMAGES / 2 && summary.harmless > 10,
        "{} noticed, {} harmless: the damage does not hit what matters",
        summary.noticed,
        summary.harmless
    );
}

#[test]
fn damage_is_served_without_proofs() {
    let mut config = EmbeddedConfig::default();
    config.safety.verifies_reads = false;
    let summary = damage_all(config, IMAGES / 2);
    assert!(
        summary.wrong.len() > IMAGES as usize / 10,
        "{} of {} were served: {:?}",
        summary.wrong.len(),
        IMAGES,
        summary.wrong
    );
}

#[derive(Default)]
struct Summary {
    noticed: u64,
    harmless: u64,
    /// Answers that were wrong.
    wrong: Vec<String>,
    /// Errors that name neither a key nor a page.
    unnamed: Vec<String>,
}

fn damage_all(config: EmbeddedConfig, images: u64) -> Summary {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let mut summary = Summary::default();
    for (name, original) in runtime.block_on(originals()) {
        let mut random = Random(7);
        for number in 0..images {
            let dir = tempfile::tempdir().unwrap();
            let what = damage(&original.files, dir.path(), number, &mut random);
            let what = format!("{name}, image {number}: {what}");
            let mut examined = Examined::new(&original);
            runtime.block_on(async {
                let examining = examined.run(dir.path(), config);
                let done = tokio::time::timeout(Duration::from_secs(60), examining).await;
                if done.is_err() {
                    examined.wrong.push("it hangs".into());
                }
            });
            summary.wrong.extend(
                examined
                    .wrong
                    .iter()
                    .map(|wrong| format!("{what}: {wrong}")),
            );
            if examined.errors.is_empty() {
                summary.harmless += 1;
            } else {
                summary.noticed += 1;
            }
            let unnamed = examined.errors.iter().find(|error| !says_where(error));
            summary
                .unnamed
                .extend(unnamed.map(|error| format!("{what}: {error}")));
        }
    }
    summary
}

/// Whether an error names a key, or the file with a page. The header, which identifies the file, is page 1.
fn says_where(error: &str) -> bool {
    error.contains("key \"")
        || error.contains("store.db")
            && ["age ", "has format", "is not an apiloom store"]
                .iter()
                .any(|place| error.contains(place))
}

/// The files of a store and its expected content.
struct Original {
    files: BTreeMap<String, Vec<u8>>,
    entries: Vec<Entry>,
    revision: Revision,
    compacted: Revision,
    at_compacted: Vec<Entry>,
    events: Vec<Event>,
}

/// A store with every kind of content, as its files look after a kill soon after it was created, after a clean stop,
/// and after a later kill.
async fn originals() -> [(&'static str, Original); 3] {
    let dir = tempfile::tempdir().unwrap();
    let store = Embedded::open(dir.path(), EmbeddedConfig::default()).unwrap();
    let begin = store.current_revision().await.unwrap();
    write(&*store, "first", 110).await;
    let mut young = original(&*store, begin).await;
    young.files = files(dir.path());
    assert_eq!(free_pages(dir.path()), 0);
    // These deletes leave free pages.
    for index in 0..12 {
        let key = format!("/large/{index}");
        let value = Bytes::from(vec![index; 40_000]);
        let revision = store.create(&key, value, None).await.unwrap();
        store.delete_if(&key, revision).await.unwrap();
    }
    write(&*store, "second", 25).await;
    let compacted = store.current_revision().await.unwrap();
    store.compact(compacted).await.unwrap();
    write(&*store, "third", 25).await;
    let begin = Instant::now();
    while free_pages(dir.path()) < 40 {
        assert!(begin.elapsed() < Duration::from_secs(30), "nothing is free");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut stopped = original(&*store, compacted).await;
    store.close().await;
    stopped.files = files(dir.path());
    assert!(!stopped.files.contains_key("store.db-wal"));

    let store = Embedded::open(dir.path(), EmbeddedConfig::default()).unwrap();
    write(&*store, "fourth", 25).await;
    let mut killed = original(&*store, compacted).await;
    killed.files = files(dir.path());
    assert!(killed.files["store.db-wal"].len() > 20 * PAGE);
    store.close().await;
    [("young", young), ("stopped", stopped), ("killed", killed)]
}

/// Creates small and large objects, with and without a time to live, and updates and deletes some.
async fn write(store: &dyn Storage, name: &str, count: usize) {
    for index in 0..count {
        let key = format!(
            "/registry/wardle.example.com/flunders/{}/{name}-{index:03}",
            "long-name-of-a-namespace".repeat(3)
        );
        let value = |seed: usize, bytes: usize| {
            Bytes::from_iter((0..bytes).map(|at| (at * 7 + seed * 31) as u8))
        };
        let large = if index % 11 == 0 { 12_000 } else { 0 };
        let ttl = (index % 5 == 0).then(|| Duration::from_secs(3_600 + index as u64));
        let value_0 = value(index, 200 + large + index * 9);
        let mut revision = store.create(&key, value_0, ttl).await.unwrap();
        if index % 3 == 0 {
            let value_1 = value(index + 1, 500);
            revision = store.update_if(&key, revision, value_1, ttl).await.unwrap();
        }
        if index % 4 == 1 {
            store.delete_if(&key, revision).await.unwrap();
        }
    }
}

fn free_pages(dir: &Path) -> u32 {
    rusqlite::Connection::open(dir.join("store.db"))
        .and_then(|file| file.pragma_query_value(None, "freelist_count", |row| row.get(0)))
        .unwrap()
}

async fn original(store: &dyn Storage, compacted: Revision) -> Original {
    let page = store.list(ListRequest::default()).await.unwrap();
    let at = ListRequest {
        at: Some(compacted),
        ..ListRequest::default()
    };
    Original {
        files: BTreeMap::new(),
        entries: page.entries,
        revision: page.revision,
        compacted,
        at_compacted: store.list(at).await.unwrap().entries,
        events: changes(store, compacted).await.unwrap(),
    }
}

/// Every change after a revision, up to the first progress.
async fn changes(store: &dyn Storage, after: Revision) -> Result<Vec<Event>, StorageError> {
    let mut changes = store.watch("", WatchStart::After(after)).await?;
    let mut events = Vec::new();
    loop {
        match changes.next().await.unwrap()? {
            WatchItem::Event(event) => events.push(event),
            WatchItem::Progress(_) => return Ok(events),
        }
    }
}

fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(dir)
        .unwrap()
        .map(|file| {
            let file = file.unwrap();
            let name = file.file_name().into_string().unwrap();
            (name, fs::read(file.path()).unwrap())
        })
        .collect()
}

/// Writes an image with one damage; returns its description.
fn damage(
    files: &BTreeMap<String, Vec<u8>>,
    dir: &Path,
    number: u64,
    random: &mut Random,
) -> String {
    let names: Vec<_> = files
        .keys()
        .filter(|name| !files[*name].is_empty())
        .collect();
    // Mostly the file and its log, sometimes the small files.
    let name = match number % 10 {
        0 => names[random.below(names.len())],
        1..4 if files.contains_key("store.db-wal") => "store.db-wal",
        _ => "store.db",
    };
    let mut bytes = files[name].clone();
    let what = damage_file(&mut bytes, number, random);
    for (other, content) in files {
        let content = if other == name { &bytes } else { content };
        fs::write(dir.join(other), content).unwrap();
    }
    format!("{name}, {what}")
}

fn damage_file(bytes: &mut Vec<u8>, number: u64, random: &mut Random) -> String {
    let pages = bytes.len().div_ceil(PAGE);
    match number % 20 {
        17 => {
            let length = random.below(bytes.len());
            bytes.truncate(length);
            format!("cut to {length} bytes")
        }
        18 => {
            let last = (pages - 1) * PAGE;
            let from = (last + 512 * random.below(8)).min(bytes.len());
            bytes[from..].fill(0);
            format!("last page torn at {from}")
        }
        19 => {
            let at = random.below(bytes.len()) / 512 * 512;
            let end = (at + 512).min(bytes.len());
            bytes[at..end].fill(0);
            format!("zeros from {at}")
        }
        15 | 16 => {
            let at = random.below(bytes.len());
            let end = (at + 2 + random.below(60)).min(bytes.len());
            bytes[at..end].fill_with(|| random.next() as u8);
            format!("noise from {at} to {end}")
        }
        // Structure: the beginnings of pages, where SQLite keeps its trees, and the file's header.
        kind @ 0..9 => {
            let page = if kind == 0 { 0 } else { random.below(pages) };
            let span = if kind == 0 { 112 } else { 48 };
            flip(bytes, page * PAGE + random.below(span), random)
        }
        _ => {
            let at = random.below(bytes.len());
            flip(bytes, at, random)
        }
    }
}

fn flip(bytes: &mut [u8], at: usize, random: &mut Random) -> String {
    let at = at.min(bytes.len() - 1);
    let bit = random.below(8);
    bytes[at] ^= 1 << bit;
    format!("bit {bit} of byte {at} (page {})", at / PAGE + 1)
}

/// The result of examining an image.
struct Examined<'a> {
    original: &'a Original,
    /// The expected entries; `None` if an error left open whether a write was executed.
    expected: BTreeMap<String, Option<Entry>>,
    uncertain: bool,
    errors: Vec<String>,
    wrong: Vec<String>,
}

impl<'a> Examined<'a> {
    fn new(original: &'a Original) -> Self {
        let present = original.entries.iter();
        Self {
            original,
            expected: present
                .map(|entry| (entry.key.clone(), Some(entry.clone())))
                .collect(),
            uncertain: false,
            errors: Vec::new(),
            wrong: Vec::new(),
        }
    }

    async fn run(&mut self, dir: &Path, config: EmbeddedConfig) {
        let Some(store) = self.open(dir, config) else {
            return;
        };
        self.read(&*store).await;
        self.read_history(&*store).await;
        self.write(&*store).await;
        self.read(&*store).await;
        store.close().await;
        if let Some(store) = self.open(dir, config) {
            self.read(&*store).await;
            store.close().await;
        }
    }

    fn open(&mut self, dir: &Path, config: EmbeddedConfig) -> Option<Arc<Embedded>> {
        match Embedded::open(dir, config) {
            Ok(store) => Some(store),
            Err(error) => {
                self.errors.push(error.to_string());
                None
            }
        }
    }

    /// Returns the value of an answer; records an error.
    fn noted<T>(&mut self, answer: Result<T, StorageError>) -> Option<T> {
        answer
            .inspect_err(|error| self.errors.push(error.to_string()))
            .ok()
    }

    fn must(&mut self, holds: bool, what: &str) {
        if !holds {
            self.wrong.push(what.to_owned());
        }
    }

    async fn read(&mut self, store: &dyn Storage) {
        if let Some(page) = self.noted(store.list(ListRequest::default()).await) {
            let is_uncertain = |key: &String| self.expected.get(key).is_some_and(Option::is_none);
            let listed: Vec<_> = page
                .entries
                .iter()
                .filter(|entry| !is_uncertain(&entry.key))
                .collect();
            let is_right = listed.into_iter().eq(self.expected.values().flatten());
            self.must(is_right, "the list is not what was written");
        }
        for (key, expected) in self.expected.clone() {
            if let Some((found, _)) = self.noted(store.get(&key).await) {
                let is_right = expected.is_none() || found == expected;
                self.must(is_right, &format!("{key} is not what was written"));
            }
        }
        if let Some(count) = self.noted(store.count("").await) {
            let is_right = self.uncertain || count == self.expected.len() as u64;
            self.must(is_right, "the count is wrong");
        }
    }

    async fn read_history(&mut self, store: &dyn Storage) {
        let original = self.original;
        if let Some(revision) = self.noted(store.current_revision().await) {
            self.must(revision == original.revision, "the revision is wrong");
        }
        let at = ListRequest {
            at: Some(original.compacted),
            ..ListRequest::default()
        };
        if let Some(page) = self.noted(store.list(at).await) {
            self.must(
                page.entries == original.at_compacted,
                "the past is not what was written",
            );
        }
        if let Some(events) = self.noted(changes(store, original.compacted).await) {
            self.must(
                events == original.events,
                "the history is not what was written",
            );
        }
    }

    /// Writes, so that pages that the damage may have marked as free are used again.
    async fn write(&mut self, store: &dyn Storage) {
        let creates = (0..24_u8).map(async |index| {
            let key = format!("/new/{index}-{}", "x".repeat(200));
            let value = Bytes::from(vec![index; 2_000 + 300 * usize::from(index)]);
            let written = store.create(&key, value.clone(), None).await;
            (key, Some(value), written)
        });
        let present = self.original.entries.iter().step_by(9).enumerate();
        let changes = present.map(async |(index, entry)| {
            let key = entry.key.clone();
            if index % 2 == 0 {
                let value = Bytes::from_static(b"updated");
                let update = store.update_if(&key, entry.revision, value.clone(), None);
                (key.clone(), Some(value), update.await)
            } else {
                let written = store.delete_if(&key, entry.revision).await;
                (key, None, written)
            }
        });
        for (key, value, written) in join_all(creates)
            .await
            .into_iter()
            .chain(join_all(changes).await)
        {
            self.written(key, value, written);
        }
    }

    fn written(
        &mut self,
        key: String,
        value: Option<Bytes>,
        written: Result<Revision, StorageError>,
    ) {
        match (self.noted(written), value) {
            (Some(revision), Some(value)) => {
                let entry = Entry {
                    key: key.clone(),
                    value,
                    revision,
                };
                self.expected.insert(key, Some(entry));
            }
            (Some(_), None) => drop(self.expected.remove(&key)),
            (None, _) => {
                self.uncertain = true;
                self.expected.insert(key, None);
            }
        }
    }
}
