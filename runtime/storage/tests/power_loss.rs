//! Power loss: every acknowledged write survives, and no write is there in part.
//!
//! The test starts itself as a process that writes, with a preloaded library that records every write and every sync
//! (`tests/powerloss/record.c`). From the record it rebuilds possible contents of the disk at hundreds of moments:
//! everything that was synced, and of the rest nothing, everything, or a random half of its blocks of 4 KiB. Each image
//! is opened, compared with the writes acknowledged by then, verified and written to. The same is done for a store that
//! syncs nothing, which must lose writes: otherwise the test would detect nothing.
//!
//! It assumes that names of files reach the disk at once, and that blocks of 4 KiB are written completely or not at
//! all.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

mod random;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use apiloom_storage::{
    Embedded, EmbeddedConfig, ListRequest, Retention, Revision, Storage, StorageError, WatchItem,
    WatchStart,
};
use futures_util::StreamExt;
use futures_util::future::join_all;
use random::Random;

/// Moments of each kind; each gives four images.
const MOMENTS: usize = 36;
const BLOCK: usize = 4096;
const WRITERS: usize = 6;
/// The writing process runs three times, the second time on the files that the first has left without closing; each
/// writer writes this many keys in a round, and rounds until the log was written back: about 2,500 writes in all.
const RUNS: u64 = 3;
const KEYS: u64 = 32;

/// Environment variables that tell the writing process where its store is, and whether it syncs.
const DIR: &str = "POWERLOSS_DIR";
const LOG: &str = "POWERLOSS_LOG";
const SYNCS: &str = "APILOOM_TEST_SYNCS";
const RUN: &str = "APILOOM_TEST_RUN";
const ACKNOWLEDGED: &str = "acknowledged";

#[test]
fn power_loss_keeps_what_was_acknowledged() {
    if std::env::var_os(DIR).is_some() {
        return write_all();
    }
    let (images, bad) = lose_power("power_loss_keeps_what_was_acknowledged", true, MOMENTS);
    assert!(images >= 400, "{images} images");
    assert_eq!(bad, [""; 0]);
}

#[test]
fn power_loss_without_syncs_shows() {
    if std::env::var_os(DIR).is_some() {
        return write_all();
    }
    let (images, bad) = lose_power("power_loss_without_syncs_shows", false, MOMENTS / 4);
    assert!(bad.len() * 4 > images, "{} of {images}: {bad:?}", bad.len());
}

/// Records a process that writes, simulates power loss at many moments, and returns the number of images and the bad
/// ones.
fn lose_power(test: &str, syncs: bool, moments: usize) -> (usize, Vec<String>) {
    let scratch = tempfile::tempdir().unwrap();
    let library = compile(scratch.path());
    let (dir, log) = (scratch.path().join("store"), scratch.path().join("log"));
    fs::create_dir(&dir).unwrap();
    for run in 0..RUNS {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture"])
            .env("LD_PRELOAD", &library)
            .env(DIR, &dir)
            .env(LOG, &log)
            .env(SYNCS, syncs.to_string())
            .env(RUN, run.to_string())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "run {run} failed: {text}");
    }
    let records = records(&fs::read(&log).unwrap());
    assert!(
        !syncs || checkpoints(&records) > 4,
        "{}: SQLite's log is written back while the store is in use, too",
        checkpoints(&records)
    );
    let mut moments = choose(&records, moments);
    moments.sort_unstable();
    let bad = std::thread::scope(|scope| {
        let halves = moments.chunks(moments.len().div_ceil(2));
        let workers: Vec<_> = halves
            .map(|moments| scope.spawn(|| examine(&records, moments)))
            .collect();
        let bad = workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap());
        bad.collect::<Vec<_>>()
    });
    (moments.len() * 4, bad)
}

fn compile(scratch: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/powerloss/record.c");
    let library = scratch.join("record.so");
    let status = Command::new("cc")
        .args(["-O1", "-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(source)
        .arg("-ldl")
        .status();
    assert!(status.expect("a C compiler").success());
    library
}

/// One recorded action of the writing process.
enum Record {
    Name(u64, String),
    Create(u64),
    Write(u64, usize, Vec<u8>),
    Truncate(u64, usize),
    SyncBegins(u64, u64),
    SyncEnds(u64, u64),
    Unlink(u64),
    Rename(u64, u64),
}

/// Bytes of the header of a record.
const HEADER: usize = 40;

fn records(log: &[u8]) -> Vec<Record> {
    let mut records = Vec::new();
    let mut rest = log;
    // The process may end while another thread is in the middle of its last record.
    while let Some((header, behind)) = rest.split_at_checked(HEADER) {
        let word =
            |index: usize| u64::from_le_bytes(header[index * 8..index * 8 + 8].try_into().unwrap());
        let (kind, file, offset, length, thread) =
            (word(0) as u8, word(1), word(2), word(3) as usize, word(4));
        let Some((content, behind)) = behind.split_at_checked(length) else {
            break;
        };
        let content = content.to_vec();
        rest = behind;
        records.push(match kind {
            b'n' => Record::Name(file, String::from_utf8(content).unwrap()),
            b'o' => Record::Create(file),
            b'c' => Record::Truncate(file, 0),
            b'w' => Record::Write(file, offset as usize, content),
            b't' => Record::Truncate(file, offset as usize),
            b'b' => Record::SyncBegins(file, thread),
            b'e' => Record::SyncEnds(file, thread),
            b'u' => Record::Unlink(file),
            b'r' => Record::Rename(file, offset),
            kind => panic!("a record of kind {kind}"),
        });
    }
    records
}

/// Number of syncs of the store's file itself.
fn checkpoints(records: &[Record]) -> usize {
    let (mut store, mut count) = (0, 0);
    for record in records {
        match record {
            Record::Name(file, name) if name.ends_with("store.db") => store = *file,
            Record::Name(file, _) if *file == store => store = 0,
            Record::SyncEnds(file, _) if *file == store => count += 1,
            _ => {}
        }
    }
    count
}

/// Random moments, moments right after acknowledgements, and moments right before a sync ends: each as a number of
/// records.
fn choose(records: &[Record], moments: usize) -> Vec<usize> {
    let mut random = Random(11);
    let mut acknowledged_file = 0;
    let (mut acknowledgements, mut syncs) = (Vec::new(), Vec::new());
    for (index, record) in records.iter().enumerate() {
        match record {
            Record::Name(file, name) if name.ends_with(ACKNOWLEDGED) => acknowledged_file = *file,
            // Each run numbers its files from the beginning.
            Record::Name(file, _) if *file == acknowledged_file => acknowledged_file = 0,
            Record::Write(file, ..) if *file == acknowledged_file => {
                acknowledgements.push(index + 1);
            }
            Record::SyncEnds(..) => syncs.push(index),
            _ => {}
        }
    }
    assert!(acknowledgements.len() > 2_000 && records.len() > 4_000);
    let mut chosen = Vec::new();
    for _ in 0..moments {
        chosen.push(random.below(records.len()));
        chosen.push(acknowledgements[random.below(acknowledgements.len())]);
        chosen.push(match syncs.len() {
            0 => random.below(records.len()),
            count => syncs[random.below(count)],
        });
    }
    chosen
}

/// The synced content of a file, and the writes since its last sync.
#[derive(Clone, Default)]
struct OnDisk {
    exists: bool,
    synced: Vec<u8>,
    /// Each with its number, which tells whether it came before or after the start of a sync.
    pending: Vec<(usize, Pending)>,
}

#[derive(Clone)]
enum Pending {
    Write(usize, Arc<[u8]>),
    Truncate(usize),
}

impl Pending {
    fn apply(&self, content: &mut Vec<u8>, mut is_kept: impl FnMut() -> bool) {
        match self {
            Pending::Write(offset, bytes) => {
                // Split at the blocks of the file, not of the write.
                let mut from = 0;
                while from < bytes.len() {
                    let at = offset + from;
                    let to = bytes.len().min(from + BLOCK - at % BLOCK);
                    if is_kept() {
                        let end = offset + to;
                        content.resize(content.len().max(end), 0);
                        content[at..end].copy_from_slice(&bytes[from..to]);
                    }
                    from = to;
                }
            }
            Pending::Truncate(length) => {
                if is_kept() {
                    content.resize(*length, 0);
                }
            }
        }
    }
}

/// The content of the disk, and the acknowledged writes.
#[derive(Default)]
struct Machine {
    /// By the numbers of the run that writes.
    names: BTreeMap<u64, String>,
    files: BTreeMap<String, OnDisk>,
    syncing: BTreeMap<(u64, u64), usize>,
    acknowledged: String,
}

impl Machine {
    fn step(&mut self, number: usize, record: &Record) {
        match record {
            Record::Name(file, name) => {
                let name = Path::new(name).file_name().unwrap().to_str().unwrap();
                self.names.insert(*file, name.to_owned());
            }
            Record::Write(file, _, bytes) if self.names[file] == ACKNOWLEDGED => {
                self.acknowledged
                    .push_str(std::str::from_utf8(bytes).unwrap());
            }
            Record::Create(file) => self.file(*file).exists = true,
            Record::Write(file, offset, bytes) => {
                let pending = Pending::Write(*offset, Arc::from(&bytes[..]));
                self.file(*file).pending.push((number, pending));
            }
            Record::Truncate(file, length) => {
                let pending = Pending::Truncate(*length);
                self.file(*file).pending.push((number, pending));
            }
            Record::SyncBegins(file, thread) => {
                self.syncing.insert((*file, *thread), number);
            }
            Record::SyncEnds(file, thread) => {
                let begun = self.syncing.remove(&(*file, *thread)).unwrap();
                let file = self.file(*file);
                for (written, pending) in std::mem::take(&mut file.pending) {
                    if written < begun {
                        pending.apply(&mut file.synced, || true);
                    } else {
                        file.pending.push((written, pending));
                    }
                }
            }
            Record::Unlink(file) => *self.file(*file) = OnDisk::default(),
            Record::Rename(from, to) => {
                let moved = std::mem::take(self.file(*from));
                *self.file(*to) = moved;
            }
        }
    }

    fn file(&mut self, file: u64) -> &mut OnDisk {
        self.files.entry(self.names[&file].clone()).or_default()
    }

    /// Writes a possible content of the disk after a power loss at this moment.
    fn image(&self, dir: &Path, mut is_kept: impl FnMut() -> bool) {
        for (name, file) in &self.files {
            if file.exists && name != ACKNOWLEDGED {
                let mut content = file.synced.clone();
                for (_, pending) in &file.pending {
                    pending.apply(&mut content, &mut is_kept);
                }
                fs::write(dir.join(name), content).unwrap();
            }
        }
    }
}

/// Simulates power loss at each of these moments, in four ways; returns the problems.
fn examine(records: &[Record], moments: &[usize]) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let mut machine = Machine::default();
    let mut done = 0;
    let mut bad = Vec::new();
    for moment in moments {
        for (number, record) in records.iter().enumerate().take(*moment).skip(done) {
            machine.step(number, record);
        }
        done = *moment;
        let expected = Expected::of(&machine.acknowledged);
        for (way, seed) in [("nothing", 0), ("everything", 0), ("half", 1), ("half", 2)] {
            let dir = scratch();
            let mut random = Random(seed + *moment as u64);
            machine.image(dir.path(), || match way {
                "nothing" => false,
                "everything" => true,
                _ => random.below(2) == 0,
            });
            if let Err(what) = runtime.block_on(open_and_compare(dir.path(), &expected)) {
                bad.push(format!(
                    "record {moment}, {way} of what is not synced: {what}"
                ));
            }
        }
    }
    bad
}

/// A directory in memory, if there is one: hundreds of images are written.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// The acknowledged writes: for each key its last step, with the revision.
#[derive(Default)]
struct Expected {
    keys: BTreeMap<String, (u64, Revision)>,
    newest: Revision,
}

impl Expected {
    fn of(acknowledged: &str) -> Self {
        let mut expected = Self::default();
        for line in acknowledged.lines() {
            let mut words = line.split(' ');
            let key = words.next().unwrap().to_owned();
            let step = words.next().unwrap().parse().unwrap();
            let revision = Revision(words.next().unwrap().parse().unwrap());
            expected.newest = expected.newest.max(revision);
            expected.keys.insert(key, (step, revision));
        }
        expected
    }
}

async fn open_and_compare(dir: &Path, expected: &Expected) -> Result<(), String> {
    let mut config = EmbeddedConfig::default();
    // The examined image is not subject to power loss.
    config.safety.syncs = false;
    let store = Embedded::open(dir, config).map_err(|error| error.to_string())?;
    let compared = compare(&*store, expected).await;
    store.close().await;
    compared?;
    let damage = Embedded::check(dir)
        .map_err(|error| error.to_string())?
        .damage;
    if damage.is_empty() {
        Ok(())
    } else {
        Err(format!("damage: {damage:?}"))
    }
}

async fn compare(store: &dyn Storage, expected: &Expected) -> Result<(), String> {
    let told = |error: StorageError| error.to_string();
    let page = store.list(ListRequest::default()).await.map_err(told)?;
    if page.revision < expected.newest {
        return Err(format!("{} is behind {}", page.revision, expected.newest));
    }
    let present: BTreeMap<_, _> = page
        .entries
        .iter()
        .map(|entry| (entry.key.as_str(), entry))
        .collect();
    for (key, (step, revision)) in &expected.keys {
        let entry = present.get(key.as_str());
        // The write after the last acknowledged one was in progress.
        let fits = [*step, step + 1].into_iter().any(|at| {
            let same_revision = at > *step || entry.is_none_or(|entry| entry.revision == *revision);
            same_revision && entry.map(|entry| &entry.value[..]) == value(key, at).as_deref()
        });
        if !fits {
            return Err(format!("key {key} is not at step {step} or the next"));
        }
    }
    for (key, entry) in &present {
        let is_known = expected.keys.contains_key(*key);
        if !is_known && Some(&entry.value[..]) != value(key, 0).as_deref() {
            return Err(format!("key {key} is half-written"));
        }
    }
    history(store, page.revision).await?;
    let next = store
        .create("/after", "1".into(), None)
        .await
        .map_err(told)?;
    if next.0 != page.revision.0 + 1 {
        return Err(format!("revision {next} follows {}", page.revision));
    }
    Ok(())
}

/// Checks that every revision since the compaction exists once.
async fn history(store: &dyn Storage, newest: Revision) -> Result<(), String> {
    let told = |error: StorageError| error.to_string();
    let mut reached = Revision(0);
    let mut changes = match store.watch("", WatchStart::After(reached)).await {
        Err(StorageError::Compacted { compacted, .. }) => {
            reached = compacted;
            store.watch("", WatchStart::After(compacted)).await
        }
        changes => changes,
    }
    .map_err(told)?;
    while let WatchItem::Event(event) = changes.next().await.unwrap().map_err(told)? {
        if event.revision.0 != reached.0 + 1 {
            return Err(format!("revision {} follows {reached}", event.revision));
        }
        reached = event.revision;
    }
    if reached == newest {
        Ok(())
    } else {
        Err(format!("history ends at {reached}, the store at {newest}"))
    }
}

/// The value of a key after a step: each key is created, updated three times, and one in three is then deleted.
fn value(key: &str, step: u64) -> Option<Vec<u8>> {
    let seed = crc(key);
    if step > 3 && seed.is_multiple_of(3) {
        return None;
    }
    let step = step.min(3);
    let length =
        300 + (seed + step * 1_103) % 6_000 + if seed.is_multiple_of(17) { 12_000 } else { 0 };
    let text = format!("{key} {step} ");
    let value = text.repeat(1 + length as usize / text.len());
    Some(value.into_bytes())
}

fn crc(key: &str) -> u64 {
    u64::from(crc32fast::hash(key.as_bytes()))
}

/// The writing process: it acknowledges each write in a file that is recorded like the store's own.
fn write_all() {
    let dir = PathBuf::from(std::env::var_os(DIR).unwrap());
    let mut config = EmbeddedConfig {
        // History is compacted and removed all the time.
        retention: Retention {
            min_age: Duration::ZERO,
            min_revisions: 60,
            ..Retention::default()
        },
        ..EmbeddedConfig::default()
    };
    config.safety.syncs = std::env::var(SYNCS).unwrap() == "true";
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let run: u64 = std::env::var(RUN).unwrap().parse().unwrap();
        let store = Embedded::open(&dir, config).unwrap();
        write_key(&*store, &dir, &format!("/r/00/{run}-first")).await;
        let begun = log_number(&dir);
        let writers = (0..WRITERS).map(|writer| {
            let (store, dir) = (Arc::clone(&store), dir.clone());
            tokio::spawn(async move {
                for round in 0.. {
                    for index in 0..KEYS {
                        let key = format!("/r/{:02}/{run}-{writer}-{round}", index * 37 % KEYS);
                        write_key(&*store, &dir, &key).await;
                    }
                    // How many writes a log holds depends on how many of them are committed together.
                    if log_number(&dir) != begun {
                        break;
                    }
                }
            })
        });
        for written in join_all(writers.collect::<Vec<_>>()).await {
            written.unwrap();
        }
        if run == 1 {
            store.close().await;
        }
        // Nothing else is closed, as in a power loss.
        std::mem::forget(store);
    });
    runtime.shutdown_background();
}

/// The number in the header of SQLite's log, which changes when the log begins anew after all of it was written back.
fn log_number(dir: &Path) -> [u8; 4] {
    let mut number = [0; 4];
    let log = fs::File::open(dir.join("store.db-wal")).unwrap();
    log.read_exact_at(&mut number, 12).unwrap();
    number
}

async fn write_key(store: &dyn Storage, dir: &Path, key: &str) {
    let next = |step| value(key, step).map(bytes::Bytes::from);
    let created = next(0).unwrap();
    let mut revision = store.create(key, created, None).await.unwrap();
    acknowledge(dir, key, 0, revision);
    for step in 1..=3 {
        let updated = next(step).unwrap();
        revision = store.update_if(key, revision, updated, None).await.unwrap();
        acknowledge(dir, key, step, revision);
    }
    if next(4).is_none() {
        revision = store.delete_if(key, revision).await.unwrap();
        acknowledge(dir, key, 4, revision);
    }
}

fn acknowledge(dir: &Path, key: &str, step: u64, revision: Revision) {
    let line = format!("{key} {step} {revision}\n");
    fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(dir.join(ACKNOWLEDGED))
        .and_then(|mut file| file.write_all(line.as_bytes()))
        .unwrap();
}
