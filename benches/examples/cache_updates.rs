//! Benchmark of a watch cache that applies changes while others read it.
//!
//! `cargo run --release -p apiloom-benches --example cache_updates [CHANGES-A-SECOND [SECONDS]]`
//!
//! A store that only produces changes feeds 20,000 objects of 1.5 KiB, first alone, then beside threads that list all
//! of them without a pause, then beside watchers too. The delay of a change is the time from the moment at which it was
//! due until it is in the newest state; a reader that blocks the writer would increase it. Last, changes come as fast
//! as they are read.
#![expect(clippy::print_stdout, reason = "it is what this program is for")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use apiloom_storage::cache::{Budget, Fill, Interest, Normalize, WatchCache};
use apiloom_storage::{
    Entry, Event, EventKind, ListRequest, Page, Revision, Storage, StorageError, WatchItem,
    WatchStart, WatchStream,
};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};

type Failure = Box<dyn Error + Send + Sync>;

const OBJECTS: u64 = 20_000;
const VALUE_BYTES: usize = 1_536;
const READERS: usize = 2;
const WATCHERS: usize = 100;

/// Objects are copies of the stored bytes, since a real cache also allocates new objects.
struct Copied;

impl Normalize for Copied {
    type Object = Bytes;

    fn normalize(&self, _: &str, stored: &Bytes, _: Revision) -> Result<Bytes, String> {
        Ok(Bytes::copy_from_slice(stored))
    }
    fn wire_bytes(&self, object: &Bytes) -> usize {
        object.len()
    }
    fn heap_bytes(&self, object: &Bytes) -> usize {
        object.len() + 16
    }
    fn index(&self, object: &Bytes, found: &mut dyn FnMut(u16, &str)) {
        found(
            0,
            if object.first() == Some(&b'x') {
                "x"
            } else {
                "y"
            },
        );
    }
}

/// A source of changes, each delivered when it is due.
#[derive(Debug)]
struct Source {
    /// Changes per second; 0 for as fast as they are read.
    rate: u64,
    begin: Instant,
    end: Instant,
    made: Arc<AtomicU64>,
    value: Bytes,
}

fn key(index: u64) -> String {
    format!("/r/things/thing-{index:06}")
}

impl Source {
    fn due(&self) -> u64 {
        match self.rate {
            0 => u64::MAX,
            rate => (self.begin.elapsed().as_secs_f64() * rate as f64) as u64,
        }
    }
}

fn closed<T>() -> Result<T, StorageError> {
    Err(StorageError::Unavailable("it only tells changes".into()))
}

#[async_trait]
impl Storage for Source {
    async fn get(&self, _: &str) -> Result<(Option<Entry>, Revision), StorageError> {
        closed()
    }
    async fn list(&self, _: ListRequest) -> Result<Page, StorageError> {
        let entry = |index| Entry {
            key: key(index),
            value: self.value.clone(),
            revision: Revision(1),
        };
        Ok(Page {
            entries: (0..OBJECTS).map(entry).collect(),
            revision: Revision(1),
            more: false,
            remaining: None,
        })
    }
    async fn count(&self, _: &str) -> Result<u64, StorageError> {
        closed()
    }
    async fn create(
        &self,
        _: &str,
        _: Bytes,
        _: Option<Duration>,
    ) -> Result<Revision, StorageError> {
        closed()
    }
    async fn update_if(
        &self,
        _: &str,
        _: Revision,
        _: Bytes,
        _: Option<Duration>,
    ) -> Result<Revision, StorageError> {
        closed()
    }
    async fn rewrite_if(&self, _: &str, _: Revision, _: Bytes) -> Result<Revision, StorageError> {
        closed()
    }
    async fn delete_if(&self, _: &str, _: Revision) -> Result<Revision, StorageError> {
        closed()
    }
    async fn watch(&self, _: &str, _: WatchStart) -> Result<WatchStream, StorageError> {
        let source = Source {
            made: Arc::clone(&self.made),
            value: self.value.clone(),
            ..*self
        };
        Ok(stream::unfold(source, |source| async move {
            let number = source.made.load(Ordering::Relaxed);
            while source.due() <= number {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            if Instant::now() >= source.end {
                std::future::pending::<()>().await;
            }
            source.made.store(number + 1, Ordering::Relaxed);
            let event = Event {
                kind: EventKind::Updated,
                key: key(number.wrapping_mul(7_919) % OBJECTS),
                value: source.value.clone(),
                previous: None,
                revision: Revision(number + 2),
            };
            Some((Ok(WatchItem::Event(event)), source))
        })
        .boxed())
    }
    async fn request_progress(&self) -> Result<(), StorageError> {
        closed()
    }
    async fn current_revision(&self) -> Result<Revision, StorageError> {
        closed()
    }
    async fn compact(&self, _: Revision) -> Result<(), StorageError> {
        closed()
    }
    async fn close(&self) {}
}

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let rate: u64 = args.next().map_or(Ok(100_000), |rate| rate.parse())?;
    let seconds: u64 = args.next().map_or(Ok(5), |seconds| seconds.parse())?;
    println!(
        "beside                  changes/s   delay ms: p50     p99     max   lists/s   events/s"
    );
    for (readers, watchers) in [(0, 0), (READERS, 0), (READERS, WATCHERS)] {
        measure(rate, seconds, readers, watchers)?;
    }
    println!("as fast as they are taken:");
    for readers in [0, READERS] {
        measure(0, seconds, readers, 0)?;
    }
    Ok(())
}

fn measure(rate: u64, seconds: u64, readers: usize, watchers: usize) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let begin = Instant::now() + Duration::from_millis(300);
    let end = begin + Duration::from_secs(seconds);
    let made = Arc::new(AtomicU64::new(0));
    let source: Arc<dyn Storage> = Arc::new(Source {
        rate,
        begin,
        end,
        made: Arc::clone(&made),
        value: "x".repeat(VALUE_BYTES).into(),
    });
    let cache = WatchCache::new(source, "/r/", Copied, Budget::new(Budget::DEFAULT_BYTES));
    runtime.spawn(Arc::clone(&cache).run());
    runtime.block_on(async {
        let mut progress = cache.progress();
        progress
            .wait_for(|progress| progress.fill == Fill::Following)
            .await
            .map(|_| ())
    })?;
    let events = Arc::new(AtomicU64::new(0));
    for _ in 0..watchers {
        runtime.spawn(watch(Arc::clone(&cache), Arc::clone(&events)));
    }
    let over = Arc::new(AtomicBool::new(false));
    let lists = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..readers)
        .map(|_| {
            let (cache, lists, over) = (Arc::clone(&cache), Arc::clone(&lists), Arc::clone(&over));
            std::thread::spawn(move || read(&cache, &lists, &over))
        })
        .collect();
    let mut delays = Vec::new();
    while Instant::now() < end {
        std::thread::sleep(Duration::from_micros(200));
        let taken = cache.snapshot().revision().0.saturating_sub(1);
        if rate > 0 && begin.elapsed() > Duration::ZERO {
            // How long ago the first missing change was due.
            let due = begin + Duration::from_secs_f64((taken + 1) as f64 / rate as f64);
            delays.push(due.elapsed());
        }
    }
    over.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().map_err(|_| "a reader failed")?;
    }
    delays.sort();
    let millis = |share: f64| {
        let at = (delays.len() as f64 * share) as usize;
        let delay = delays.get(at.min(delays.len().saturating_sub(1)));
        delay.map_or(0.0, |delay| delay.as_secs_f64() * 1e3)
    };
    let per_second = |count: u64| count as f64 / seconds as f64;
    println!(
        "{readers} readers, {watchers:>3} watchers  {:>9.0}       {:>8.2} {:>7.2} {:>7.2} {:>9.0} {:>10.0}",
        per_second(cache.snapshot().revision().0 - 1),
        millis(0.5),
        millis(0.99),
        millis(1.0),
        per_second(lists.load(Ordering::Relaxed)),
        per_second(events.load(Ordering::Relaxed)),
    );
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(())
}

/// Lists everything repeatedly.
fn read(cache: &WatchCache<Copied>, lists: &AtomicU64, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        let state = cache.snapshot();
        let bytes: usize = state
            .range("/r/", "")
            .filter_map(|item| Some(item.object.as_ref().ok()?.len()))
            .sum();
        assert_eq!(bytes, state.len() * VALUE_BYTES);
        lists.fetch_add(1, Ordering::Relaxed);
    }
}

/// Takes every change.
async fn watch(cache: Arc<WatchCache<Copied>>, events: Arc<AtomicU64>) {
    let Ok(mut cursor) = cache.watch(Interest::Everything, None) else {
        return;
    };
    let mut taken = Vec::new();
    while cursor.take(64, &mut taken).is_ok() {
        events.fetch_add(taken.len() as u64, Ordering::Relaxed);
        taken.clear();
        cursor.changed().await;
    }
}
