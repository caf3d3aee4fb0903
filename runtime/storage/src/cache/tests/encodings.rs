//! Encodings that the watchers of a change share.

use std::cell::Cell;

use super::*;
use crate::cache::EncodingKey;

const KEY: EncodingKey = EncodingKey(1, 2);

async fn changes(cache: &Arc<WatchCache<Text>>, count: usize) -> Vec<Arc<Change<String>>> {
    let mut cursor = cache
        .watch(Interest::Everything, Some(Revision(0)))
        .unwrap();
    let mut changes = Vec::new();
    cursor.take(count, &mut changes).unwrap();
    assert_eq!(changes.len(), count);
    changes
}

#[tokio::test(start_paused = true)]
async fn a_change_is_encoded_once_for_each_key() {
    let store = memory();
    let cache = cache(&store);
    following(&cache).await;
    put(&store, "/r/a", "x").await;
    put(&store, "/r/b", "y").await;
    caught_up(&cache).await;
    let [a, b] = <[_; 2]>::try_from(changes(&cache, 2).await).unwrap();
    let made = Cell::new(0_u8);
    let get = |change, key, max_age| {
        let make = || {
            made.set(made.get() + 1);
            vec![made.get()]
        };
        cache.encoding(change, key, max_age, make)[0]
    };
    assert_eq!((get(&a, KEY, None), get(&a, KEY, None)), (1, 1));
    assert_eq!(get(&b, KEY, None), 2);
    assert_eq!(get(&a, EncodingKey(1, 3), None), 3);
    assert_eq!(get(&a, EncodingKey(0, 2), None), 4);
    // One that is too old is made anew, and is then everyone's.
    let second = Duration::from_secs(1);
    assert_eq!(get(&a, KEY, Some(second)), 1);
    tokio::time::advance(second).await;
    assert_eq!((get(&a, KEY, Some(second)), get(&a, KEY, None)), (5, 5));
    // The oldest of many makes room.
    for number in 10..17 {
        get(&a, EncodingKey(0, number), None);
    }
    made.set(100);
    assert_eq!(get(&a, KEY, None), 5);
    assert_eq!(get(&a, EncodingKey(1, 3), None), 101);
}

#[tokio::test(start_paused = true)]
async fn encodings_count_in_the_budget_until_they_are_released() {
    let store = memory();
    let budget = Budget::new(100_000);
    let storage: Arc<dyn Storage> = Arc::clone(&store) as _;
    let cache = WatchCache::new(storage, PREFIX, Text, Arc::clone(&budget));
    let running = tokio::spawn(Arc::clone(&cache).run());
    following(&cache).await;
    for number in 0..20 {
        put(&store, "/r/a", &number.to_string()).await;
    }
    caught_up(&cache).await;
    let before = (budget.used(), cache.size().history_bytes);
    let changes = changes(&cache, 20).await;
    let encode = |change: &Arc<Change<String>>, length| {
        let made = Cell::new(false);
        cache.encoding(change, KEY, None, || {
            made.set(true);
            vec![0; length]
        });
        made.get()
    };
    assert!(changes.iter().all(|change| encode(change, 10_000)));
    let used = budget.used() - before.0;
    assert!((60_000..100_000).contains(&used), "{used}");
    assert_eq!(cache.size().history_bytes - before.1, used);
    // The newest ones are kept, also one that is larger than the budget.
    assert!(!encode(&changes[19], 1) && encode(&changes[0], 200_000));
    assert!(!encode(&changes[0], 1) && encode(&changes[19], 1));
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert_eq!(budget.used(), before.0, "they are released after a while");
    assert!(encode(&changes[19], 10));
    running.abort();
    let _ = running.await;
    drop(cache);
    assert_eq!(budget.used(), 0);
}
