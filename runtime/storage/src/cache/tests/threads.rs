//! Real threads: readers and watchers must see exactly the history of the store while others write.

use std::collections::BTreeMap;

use futures_util::StreamExt;

use super::*;
use crate::{WatchItem, WatchStart};

const WRITES: u64 = 1_500;
const WRITERS: u64 = 3;

/// A state as a reader saw it: the keys with the revisions that wrote them.
type Seen = (Revision, Vec<(String, Revision)>);

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_and_watchers_see_what_happened() {
    let store = memory();
    let cache = cache(&store);
    following(&cache).await;
    let interests = [
        Interest::Everything,
        Interest::Key("/r/1/3".into()),
        Interest::Below("/r/0/".into()),
    ];
    let last = Revision(WRITERS * WRITES);
    let watchers =
        interests.map(|interest| tokio::spawn(watch(Arc::clone(&cache), interest, last)));
    let readers = [0, 1].map(|_| tokio::spawn(read(Arc::clone(&cache), last)));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| tokio::spawn(write(Arc::clone(&store), writer)))
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let happened = happened(&store, last).await;
    for watcher in watchers {
        let (interest, told) = watcher.await.unwrap();
        let expected = happened.iter().filter(|(_, key, _)| interest.covers(key));
        assert_eq!(told, expected.cloned().collect::<Vec<_>>(), "{interest:?}");
    }
    let mut seen = Vec::new();
    for reader in readers {
        seen.extend(reader.await.unwrap());
    }
    check_seen(seen, &happened);
}

/// Writes to keys that no other task uses, so that no write conflicts.
async fn write(store: Arc<Memory>, writer: u64) {
    for number in 0..WRITES {
        let key = format!("/r/{writer}/{}", number % 7);
        match number % 21 {
            20 => drop(delete(&store, &key).await),
            _ => drop(put(&store, &key, "x").await),
        }
        tokio::task::yield_now().await;
    }
}

/// A revision, a key, and whether it is present then.
type Told = (Revision, String, bool);

async fn watch(
    cache: Arc<WatchCache<Text>>,
    interest: Interest,
    last: Revision,
) -> (Interest, Vec<Told>) {
    let after = Some(Revision(0));
    let mut cursor = cache.watch(interest.clone(), after).unwrap();
    let (mut taken, mut told) = (Vec::new(), Vec::new());
    while cursor.take(3, &mut taken).unwrap() < last {
        told.extend(taken.drain(..).map(|change| {
            let key = change.key.to_string();
            (change.revision, key, change.new.is_some())
        }));
        // A cursor of one key is not woken when the others end.
        let _ = tokio::time::timeout(Duration::from_millis(20), cursor.changed()).await;
    }
    let rest = taken.drain(..);
    told.extend(rest.map(|change| {
        (
            change.revision,
            change.key.to_string(),
            change.new.is_some(),
        )
    }));
    (interest, told)
}

async fn read(cache: Arc<WatchCache<Text>>, last: Revision) -> Vec<Seen> {
    let mut seen: Vec<Seen> = Vec::new();
    loop {
        let state = cache.snapshot();
        let revision = state.revision();
        assert!(seen.last().is_none_or(|(before, _)| *before <= revision));
        let items = state.range(PREFIX, "");
        seen.push((
            revision,
            items.map(|i| (i.key.to_string(), i.revision)).collect(),
        ));
        // A recent past state, made by undoing the changes since.
        let past = Revision(revision.0.saturating_sub(20));
        if let Ok(state) = cache.snapshot_at(past) {
            let items = state.range(PREFIX, "");
            let items = items.map(|i| (i.key.to_string(), i.revision)).collect();
            seen.insert(seen.len() - 1, (past, items));
        }
        if revision >= last {
            return seen;
        }
        tokio::task::yield_now().await;
    }
}

async fn happened(store: &Memory, last: Revision) -> Vec<Told> {
    let start = WatchStart::After(Revision(0));
    let mut changes = store.watch(PREFIX, start).await.unwrap();
    let mut happened = Vec::new();
    while happened
        .last()
        .is_none_or(|(revision, _, _)| *revision < last)
    {
        if let WatchItem::Event(event) = changes.next().await.unwrap().unwrap() {
            let is_there = event.kind != crate::EventKind::Deleted;
            happened.push((event.revision, event.key, is_there));
        }
    }
    happened
}

fn check_seen(mut seen: Vec<Seen>, happened: &[Told]) {
    seen.sort();
    let mut state: BTreeMap<&str, Revision> = BTreeMap::new();
    let mut happened = happened.iter().peekable();
    for (at, found) in seen {
        while let Some((revision, key, is_there)) =
            happened.next_if(|(revision, ..)| *revision <= at)
        {
            if *is_there {
                state.insert(key, *revision)
            } else {
                state.remove(key.as_str())
            };
        }
        let expected: Vec<(String, Revision)> = state
            .iter()
            .map(|(key, at)| ((*key).to_owned(), *at))
            .collect();
        assert_eq!(found, expected, "at {at}");
    }
}
