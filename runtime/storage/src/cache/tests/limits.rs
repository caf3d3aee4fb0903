//! The limits of the history.

use super::*;

fn limited(store: &Arc<Memory>, prefix: &str, limits: impl Into<Limits>) -> Arc<WatchCache<Text>> {
    let store: Arc<dyn Storage> = Arc::clone(store) as _;
    let cache = WatchCache::new(store, prefix, Text, limits);
    tokio::spawn(Arc::clone(&cache).run());
    cache
}

async fn put_many(store: &Memory, key: &str, count: usize) {
    for number in 0..count {
        put(store, key, &number.to_string()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_window_shrinks_when_nothing_happens_any_more() {
    let store = memory();
    let cache = cache(&store);
    following(&cache).await;
    put_many(&store, "/r/a", 1_000).await;
    caught_up(&cache).await;
    let capacity = cache.size().capacity;
    assert_eq!((capacity.changes, capacity.increases), (1_600, 4));
    tokio::time::sleep(Duration::from_secs(70)).await;
    assert_eq!(cache.size().changes, 1_000, "nothing is older than 75 s");
    tokio::time::sleep(Duration::from_secs(9)).await;
    let size = cache.size();
    assert_eq!((size.changes, size.capacity.changes), (100, 400));
    assert_eq!(size.capacity.decreases, 2);
    assert!(cache.snapshot_at(Revision(900)).is_ok());
    assert!(cache.snapshot_at(Revision(899)).is_err());
}

#[tokio::test]
async fn a_size_bounds_the_changes() {
    let store = memory();
    let limits = |most_changes| Limits {
        budget: Budget::new(Budget::DEFAULT_BYTES),
        most_changes,
    };
    let caches = [150, 7].map(|most| limited(&store, PREFIX, limits(most)));
    for cache in &caches {
        following(cache).await;
    }
    put_many(&store, "/r/a", 300).await;
    for cache in &caches {
        caught_up(cache).await;
    }
    let changes = caches.map(|cache| (cache.size().changes, cache.size().capacity.changes));
    assert_eq!(changes, [(150, 150), (7, 7)]);
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_keeps_much_gives_to_one_that_keeps_little() {
    let store = memory();
    let budget = Budget::new(40_000);
    let busy = limited(&store, "/r/", Arc::clone(&budget));
    let other = limited(&store, "/s/", Arc::clone(&budget));
    following(&busy).await;
    following(&other).await;
    put_many(&store, "/r/a", 500).await;
    caught_up(&busy).await;
    let alone = busy.size().changes;
    assert!(budget.used() <= 40_000 && alone > 50, "{alone}");
    put_many(&store, "/s/a", 50).await;
    caught_up(&other).await;
    assert_eq!(other.size().changes, 50);
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(budget.used() <= 40_000, "the busy one gave");
    assert_eq!(other.size().changes, 50);
}

#[tokio::test]
async fn watchers_that_take_nothing_are_counted_however_they_end() {
    let store = memory();
    let cache = limited(&store, PREFIX, Budget::new(2_000));
    following(&cache).await;
    let watch = |interest| cache.watch(interest, None).unwrap();
    let quiet = watch(Interest::Key("/r/q".into()));
    let cut_off = watch(Interest::Everything);
    let mut told = watch(Interest::Everything);
    put_many(&store, "/r/a", 50).await;
    caught_up(&cache).await;
    drop((quiet, cut_off));
    assert_eq!(cache.counts().ended_watchers, 1);
    assert_eq!(taken(&mut told), Err(CursorEnd::Lagged));
    drop(told);
    assert_eq!(cache.counts().ended_watchers, 2);
}

#[tokio::test]
async fn bytes_are_those_of_what_is_there() {
    let store = memory();
    let cache = cache(&store);
    following(&cache).await;
    let empty = cache.size();
    assert_eq!(
        (empty.wire_bytes, empty.object_bytes, empty.history_bytes),
        (0, 0, 0)
    );
    put(&store, "/r/a", "x").await;
    put(&store, "/r/b", "y").await;
    caught_up(&cache).await;
    let two = cache.size();
    assert_eq!(two.wire_bytes, "x@1".len() + "y@2".len());
    put(&store, "/r/a", "z").await;
    delete(&store, "/r/b").await;
    caught_up(&cache).await;
    let one = cache.size();
    assert_eq!(one.wire_bytes, "z@3".len());
    assert_eq!(one.object_bytes * 2, two.object_bytes);
    assert!(one.history_bytes > two.history_bytes);
    delete(&store, "/r/a").await;
    caught_up(&cache).await;
    assert_eq!((cache.size().wire_bytes, cache.size().object_bytes), (0, 0));
}
