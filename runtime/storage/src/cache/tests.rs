//! Tests of the cache over a store. `model`: random histories; `interleavings`: random schedules of the writer with
//! readers and watchers; `threads`: real threads; `waits`: readers that wait for a revision.

mod encodings;
mod interleavings;
mod limits;
mod model;
mod revisions;
mod threads;
mod waits;

use super::*;
use crate::{Memory, Retention};

/// The objects are the stored text followed by the revision. The first letter is indexed, and so is its upper case in a
/// group that is not kept. `bad` cannot be decoded.
struct Text;

/// The only group of indexes whose values can be computed.
const DERIVED: u16 = 1;

impl Normalize for Text {
    type Object = String;

    fn normalize(&self, _: &str, stored: &Bytes, revision: Revision) -> Result<String, String> {
        let text = String::from_utf8_lossy(stored);
        if text == "bad" {
            return Err("it is bad".to_owned());
        }
        Ok(format!("{text}@{revision}"))
    }
    fn wire_bytes(&self, object: &String) -> usize {
        object.len()
    }
    fn heap_bytes(&self, object: &String) -> usize {
        object.len()
    }
    fn index(&self, object: &String, found: &mut dyn FnMut(u16, &str)) {
        found(0, &object[..1]);
    }
    fn derive_index(
        &self,
        item: &Arc<Item<String>>,
        group: u16,
        found: &mut dyn FnMut(u16, &str),
    ) -> bool {
        match &item.object {
            Ok(object) if group == DERIVED => {
                found(DERIVED * INDEX_GROUP, &object[..1].to_uppercase());
                true
            }
            _ => false,
        }
    }
}

const PREFIX: &str = "/r/";
const LONG: Duration = Duration::from_secs(20);

fn cache(store: &Arc<Memory>) -> Arc<WatchCache<Text>> {
    let store: Arc<dyn Storage> = Arc::clone(store) as _;
    let cache = WatchCache::new(store, PREFIX, Text, Budget::new(Budget::DEFAULT_BYTES));
    tokio::spawn(Arc::clone(&cache).run());
    cache
}

async fn following(cache: &Arc<WatchCache<Text>>) {
    let mut progress = cache.progress();
    let filled = progress.wait_for(|progress| progress.fill == Fill::Following);
    assert!(
        tokio::time::timeout(LONG, filled).await.is_ok(),
        "the cache fills"
    );
}

async fn caught_up(cache: &Arc<WatchCache<Text>>) {
    assert!(cache.wait_for_present(LONG).await.unwrap());
}

async fn put(store: &Memory, key: &str, value: &str) -> Revision {
    let (present, _) = store.get(key).await.unwrap();
    let value = Bytes::copy_from_slice(value.as_bytes());
    match present {
        None => store.create(key, value, None).await.unwrap(),
        Some(entry) => store
            .update_if(key, entry.revision, value, None)
            .await
            .unwrap(),
    }
}

async fn delete(store: &Memory, key: &str) -> Revision {
    let (present, _) = store.get(key).await.unwrap();
    store
        .delete_if(key, present.unwrap().revision)
        .await
        .unwrap()
}

/// A store whose first write gets revision 1.
fn memory() -> Arc<Memory> {
    Memory::beginning_after(Revision(0), Retention::default())
}

fn texts(snapshot: &Snapshot<String>, prefix: &str) -> Vec<String> {
    snapshot
        .range(prefix, "")
        .map(|item| item.object.clone().unwrap_or_else(|error| error))
        .collect()
}

#[tokio::test]
async fn what_was_there_before_and_what_comes_is_in_the_cache() {
    let store = memory();
    put(&store, "/r/a", "x").await;
    put(&store, "/other/a", "no").await;
    let cache = cache(&store);
    following(&cache).await;
    put(&store, "/r/b", "y").await;
    caught_up(&cache).await;
    assert_eq!(texts(&cache.snapshot(), PREFIX), ["x@1", "y@3"]);
    delete(&store, "/r/a").await;
    put(&store, "/r/b", "z").await;
    caught_up(&cache).await;
    assert_eq!(texts(&cache.snapshot(), PREFIX), ["z@5"]);
    assert_eq!(cache.snapshot().revision(), Revision(5));
}

#[tokio::test]
async fn a_long_list_is_filled_in_pages_of_one_state() {
    let store = memory();
    for number in 0..12_000 {
        put(&store, &format!("/r/{number:05}"), "x").await;
    }
    let cache = cache(&store);
    following(&cache).await;
    assert_eq!(
        (cache.snapshot().len(), cache.size().wire_bytes),
        (12_000, 12_000 * 2 + 58_894 - 10_000)
    );
}

#[tokio::test]
async fn the_cache_moves_on_with_writes_of_others() {
    let store = memory();
    let cache = cache(&store);
    following(&cache).await;
    let newest = put(&store, "/other/a", "no").await;
    caught_up(&cache).await;
    assert_eq!(cache.snapshot().revision(), newest);
}

#[tokio::test]
async fn a_range_begins_at_a_key_and_ends_with_its_prefix() {
    let store = memory();
    for key in ["/r/a/1", "/r/a/2", "/r/b/1", "/r/b/2"] {
        put(&store, key, "x").await;
    }
    let cache = cache(&store);
    following(&cache).await;
    let snapshot = cache.snapshot();
    let keys = |prefix: &str, start: &str| -> Vec<String> {
        snapshot
            .range(prefix, start)
            .map(|item| item.key.to_string())
            .collect()
    };
    assert_eq!(keys("/r/a/", ""), ["/r/a/1", "/r/a/2"]);
    assert_eq!(keys("/r/a/", "/r/a/1\0"), ["/r/a/2"]);
    assert_eq!(keys("/r/a/", "/r/b/1"), [""; 0]);
    assert_eq!(keys("/r/", "/r/a/2"), ["/r/a/2", "/r/b/1", "/r/b/2"]);
}

#[tokio::test]
async fn an_index_finds_objects_by_value() {
    let store = memory();
    let cache = cache(&store);
    following(&cache).await;
    for (key, value) in [("/r/c", "xc"), ("/r/a", "xa"), ("/r/b", "yb")] {
        put(&store, key, value).await;
    }
    put(&store, "/r/c", "yc").await;
    delete(&store, "/r/b").await;
    caught_up(&cache).await;
    let snapshot = cache.snapshot();
    let found = |value: &str| -> Vec<&str> {
        snapshot
            .indexed(0, value)
            .map(|item| item.key.as_ref())
            .collect()
    };
    assert_eq!(
        (found("x"), found("y"), found("z")),
        (vec!["/r/a"], vec!["/r/c"], vec![])
    );
}

#[tokio::test]
async fn what_is_no_object_hides_no_other() {
    let store = memory();
    put(&store, "/r/a", "bad").await;
    put(&store, "/r/b", "x").await;
    let cache = cache(&store);
    following(&cache).await;
    assert_eq!(texts(&cache.snapshot(), PREFIX), ["it is bad", "x@2"]);
}

#[tokio::test]
async fn a_cache_with_undecodable_values_can_be_filled_again() {
    let store = memory();
    put(&store, "/r/a", "x").await;
    let cache = cache(&store);
    following(&cache).await;
    let mut cursor = cache
        .watch(Interest::Everything, Some(Revision(1)))
        .unwrap();
    assert!(!cache.refill_unreadable(), "all can be read");
    put(&store, "/r/b", "bad").await;
    caught_up(&cache).await;
    let mut changes = Vec::new();
    cursor.take(usize::MAX, &mut changes).unwrap();
    assert!(cache.refill_unreadable());
    let ended = async {
        while cursor.take(usize::MAX, &mut changes).is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended)
        .await
        .unwrap();
    following(&cache).await;
    assert_eq!(texts(&cache.snapshot(), PREFIX), ["x@1", "it is bad"]);
}

#[tokio::test]
async fn every_state_of_the_window_can_be_had() {
    let store = memory();
    put(&store, "/r/a", "1").await;
    let cache = cache(&store);
    following(&cache).await;
    put(&store, "/r/b", "2").await;
    put(&store, "/r/a", "3").await;
    delete(&store, "/r/b").await;
    caught_up(&cache).await;
    let check = |revision: u64, expected: &[&str]| {
        let snapshot = cache.snapshot_at(Revision(revision)).unwrap();
        assert_eq!(texts(&snapshot, PREFIX), expected, "at {revision}");
        assert_eq!(snapshot.revision(), Revision(revision));
        let indexed = snapshot.indexed(0, "1").count();
        assert_eq!(
            indexed,
            usize::from(revision < 3),
            "the index is of the same state"
        );
    };
    check(1, &["1@1"]);
    check(2, &["1@1", "2@2"]);
    check(3, &["3@3", "2@2"]);
    check(4, &["3@3"]);
    assert_eq!(
        cache.snapshot_at(Revision(5)).unwrap_err(),
        OutsideWindow::Future {
            requested: Revision(5),
            current: Revision(4)
        }
    );
    assert_eq!(
        cache.snapshot_at(Revision(0)).unwrap_err(),
        OutsideWindow::TooOld {
            requested: Revision(0),
            oldest: Revision(1)
        }
    );
}

/// The changes that a cursor returns now, as `key=object` or `key-`.
fn taken(cursor: &mut Cursor<Text>) -> Result<Vec<String>, CursorEnd> {
    let mut changes = Vec::new();
    cursor.take(usize::MAX, &mut changes)?;
    let text = |change: &Arc<Change<String>>| match &change.new {
        Some(item) => format!("{}={}", change.key, item.object.as_ref().unwrap()),
        None => format!("{}-", change.key),
    };
    Ok(changes.iter().map(text).collect())
}

#[tokio::test]
async fn a_cursor_gives_changes_after_its_start_once() {
    let store = memory();
    let cache = cache(&store);
    following(&cache).await;
    put(&store, "/r/a", "1").await;
    put(&store, "/r/a", "2").await;
    caught_up(&cache).await;
    let mut cursor = cache
        .watch(Interest::Everything, Some(Revision(1)))
        .unwrap();
    assert_eq!(taken(&mut cursor).unwrap(), ["/r/a=2@2"]);
    assert_eq!(taken(&mut cursor).unwrap(), [""; 0]);
    delete(&store, "/r/a").await;
    caught_up(&cache).await;
    assert_eq!(taken(&mut cursor).unwrap(), ["/r/a-"]);
}

#[tokio::test]
async fn a_cursor_that_takes_little_at_a_time_misses_nothing() {
    let store = memory();
    let cache = cache(&store);
    following(&cache).await;
    for number in 0..10 {
        put(&store, "/r/a", &number.to_string()).await;
    }
    caught_up(&cache).await;
    let mut cursor = cache
        .watch(Interest::Everything, Some(Revision(0)))
        .unwrap();
    let mut all = Vec::new();
    let mut reached = Vec::new();
    while all.len() < 10 {
        cursor.changed().await;
        reached.push(cursor.take(3, &mut all).unwrap().0);
    }
    let revisions: Vec<u64> = all.iter().map(|change| change.revision.0).collect();
    assert_eq!(revisions, (1..=10).collect::<Vec<_>>());
    assert_eq!(reached, [3, 6, 9, 10]);
}

#[tokio::test]
async fn a_start_in_the_future_waits_for_it() {
    let store = memory();
    let cache = cache(&store);
    following(&cache).await;
    let mut cursor = cache
        .watch(Interest::Everything, Some(Revision(2)))
        .unwrap();
    for value in ["1", "2", "3"] {
        put(&store, "/r/a", value).await;
    }
    caught_up(&cache).await;
    assert_eq!(taken(&mut cursor).unwrap(), ["/r/a=3@3"]);
}

fn indexed(value: &str, below: Option<&str>) -> Interest {
    Interest::Indexed {
        index: 0,
        value: value.into(),
        below: below.map(Into::into),
    }
}

#[tokio::test]
async fn an_interest_by_index_keeps_to_its_prefix() {
    let store = Memory::new();
    let cache = cache(&store);
    following(&cache).await;
    let mut cursor = cache.watch(indexed("q", Some("/r/n/")), None).unwrap();
    for key in ["/r/n/a", "/r/m/a", "/r/n/b"] {
        put(&store, key, "q").await;
    }
    caught_up(&cache).await;
    assert_eq!(taken(&mut cursor).unwrap(), ["/r/n/a=q@1", "/r/n/b=q@3"]);
}

#[tokio::test]
async fn a_cursor_is_told_of_its_interest_alone() {
    let store = memory();
    let cache = cache(&store);
    following(&cache).await;
    let interests = [
        Interest::Key("/r/n/a".into()),
        Interest::Below("/r/n/".into()),
        indexed("q", None),
        indexed("q", Some("/r/n/")),
        Interest::Everything,
    ];
    let mut cursors = interests.map(|interest| {
        let mut cursor = cache.watch(interest, None).unwrap();
        taken(&mut cursor).unwrap();
        cursor
    });
    let mut check = async |key: &str, value: &str, told: [bool; 5]| {
        put(&store, key, value).await;
        caught_up(&cache).await;
        let got = cursors
            .each_mut()
            .map(|cursor| !taken(cursor).unwrap().is_empty());
        assert_eq!(got, told, "{key}={value}");
    };
    check("/r/n/b", "x", [false, true, false, false, true]).await;
    check("/r/n/a", "x", [true, true, false, false, true]).await;
    check("/r/m/a", "q", [false, false, true, false, true]).await;
    // An object that leaves the index is delivered as well.
    check("/r/m/a", "x", [false, false, true, false, true]).await;
    check("/r/m/a", "y", [false, false, false, false, true]).await;
    check("/r/n/a", "q", [true, true, true, true, true]).await;
    check("/r/n/a", "y", [true, true, true, true, true]).await;
}

#[tokio::test]
async fn a_cursor_of_a_quiet_object_outlives_the_window() {
    let store = memory();
    let small: Arc<dyn Storage> = Arc::clone(&store) as _;
    let cache = WatchCache::new(small, PREFIX, Text, Budget::new(2_000));
    tokio::spawn(Arc::clone(&cache).run());
    following(&cache).await;
    let mut quiet = cache.watch(Interest::Key("/r/q".into()), None).unwrap();
    let mut slow = cache.watch(Interest::Everything, None).unwrap();
    for number in 0..100 {
        put(&store, "/r/a", &number.to_string()).await;
    }
    caught_up(&cache).await;
    assert!(cache.size().changes < 20, "the budget bounds the window");
    put(&store, "/r/q", "1").await;
    caught_up(&cache).await;
    assert_eq!(taken(&mut quiet).unwrap(), ["/r/q=1@101"]);
    assert_eq!(taken(&mut slow).unwrap_err(), CursorEnd::Lagged);
}

#[tokio::test]
async fn history_that_leaves_the_budget_gives_it_back() {
    let store = memory();
    let budget = Budget::new(2_000);
    let small: Arc<dyn Storage> = Arc::clone(&store) as _;
    let cache = WatchCache::new(small, PREFIX, Text, Arc::clone(&budget));
    let running = tokio::spawn(Arc::clone(&cache).run());
    following(&cache).await;
    for number in 0..50 {
        put(&store, "/r/a", &number.to_string()).await;
    }
    caught_up(&cache).await;
    assert!(budget.used() > 0 && budget.used() <= 2_000);
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    drop(cache);
    assert_eq!(budget.used(), 0);
}

#[tokio::test]
async fn a_store_that_forgot_fills_the_cache_anew_and_ends_its_cursors() {
    let store = memory();
    put(&store, "/r/a", "1").await;
    let cache = cache(&store);
    following(&cache).await;
    let mut cursor = cache.watch(Interest::Everything, None).unwrap();
    // The writer is one step behind: changes that it has not seen are compacted before it reads them.
    cache.refill_for_test().await;
    assert_eq!(taken(&mut cursor).unwrap_err(), CursorEnd::Lost);
    let mut cursor = cache.watch(Interest::Everything, None).unwrap();
    put(&store, "/r/a", "2").await;
    caught_up(&cache).await;
    assert_eq!(taken(&mut cursor).unwrap(), ["/r/a=2@2"]);
}

#[tokio::test]
async fn a_closed_store_is_said_and_what_is_known_stays() {
    let store = memory();
    put(&store, "/r/a", "1").await;
    let cache = cache(&store);
    following(&cache).await;
    store.close().await;
    let mut progress = cache.progress();
    let behind = progress.wait_for(|progress| matches!(progress.fill, Fill::Behind(_)));
    assert!(tokio::time::timeout(LONG, behind).await.is_ok());
    assert!(cache.wait_for_present(LONG).await.is_err());
    assert_eq!(texts(&cache.snapshot(), PREFIX), ["1@1"]);
}
