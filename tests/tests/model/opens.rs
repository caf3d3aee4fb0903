//! Watchers that are opened while objects are written: repeatedly the first one of an index.
//!
//! The possible errors happen between two steps of the cache's writer, once in thousands of openings. Over HTTP so many
//! would take too long, so this property is checked on the cache itself, with threads.

use std::sync::Arc;
use std::time::Instant;

use apiloom_storage::cache::{Budget, Interest, Normalize, WatchCache};
use apiloom_storage::{Memory, Revision, Storage};
use bytes::Bytes;

use crate::PATIENCE;

/// Number of watches that are opened.
const OPENINGS: usize = 12_000;

const KEY: &str = "/r/n/a";

/// The object is its text, which is indexed as a whole.
struct Text;

impl Normalize for Text {
    type Object = String;

    fn normalize(&self, _: &str, stored: &Bytes, _: Revision) -> Result<String, String> {
        String::from_utf8(stored.to_vec()).map_err(|error| error.to_string())
    }
    fn wire_bytes(&self, object: &String) -> usize {
        object.len()
    }
    fn heap_bytes(&self, object: &String) -> usize {
        object.len()
    }
    fn index(&self, object: &String, found: &mut dyn FnMut(u16, &str)) {
        found(0, object);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_watcher_by_an_index_misses_no_change() {
    let store = Memory::new();
    let over = Arc::clone(&store) as Arc<dyn Storage>;
    let cache = WatchCache::new(over, "/r/", Text, Budget::new(Budget::DEFAULT_BYTES));
    let following = tokio::spawn(Arc::clone(&cache).run());
    let first = store.create(KEY, "x".into(), None).await.unwrap();
    assert!(cache.wait_for(first, PATIENCE).await);
    let writing = tokio::spawn(write(Arc::clone(&store), Arc::clone(&cache), first));
    let opened = Arc::clone(&cache);
    let opening =
        tokio::task::spawn_blocking(move || (0..OPENINGS).try_for_each(|_| open(&opened)));
    let opened = opening.await;
    writing.abort();
    following.abort();
    if let Err(missed) = opened.unwrap() {
        panic!("{missed}");
    }
}

/// Changes the object without a pause, until it is aborted.
async fn write(store: Arc<Memory>, cache: Arc<WatchCache<Text>>, mut present: Revision) {
    loop {
        let written = store.update_if(KEY, present, "x".into(), None).await;
        present = written.unwrap();
        // Writing further ahead would not show more.
        cache.wait_for(present, PATIENCE).await;
    }
}

/// Opens a watch by the index and waits for changes.
///
/// # Errors
/// When it does not get all of them.
fn open(cache: &Arc<WatchCache<Text>>) -> Result<(), String> {
    let interest = Interest::Indexed {
        index: 0,
        value: "x".into(),
        below: None,
    };
    let (state, mut cursor) = cache.watch_with_state(interest, None).unwrap();
    let from = state.revision().0;
    let (begin, mut taken) = (Instant::now(), Vec::new());
    while begin.elapsed() < PATIENCE {
        let reached = cursor.take(usize::MAX, &mut taken).unwrap().0;
        if reached > from {
            // Every revision of this store changes the object.
            let told: Vec<u64> = taken.iter().map(|change| change.revision.0).collect();
            let happened: Vec<u64> = (from + 1..=reached).collect();
            return if told == happened {
                Ok(())
            } else {
                Err(format!(
                    "after {from} it was told of {told:?} up to {reached}"
                ))
            };
        }
        std::hint::spin_loop();
    }
    Err(format!("nothing happens after {from}"))
}
