//! Several changes in one revision, as when keys expire together: readers and watchers see all of them or none.

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;

use super::super::fill;
use super::*;
use crate::{Entry, Event, EventKind, ListRequest, Page, WatchItem, WatchStart, WatchStream};

/// An empty store that delivers such changes.
#[derive(Debug)]
struct Script(Mutex<Vec<Event>>);

fn unknown<T>() -> Result<T, StorageError> {
    Err(StorageError::Unavailable(
        "it is not in the script".to_owned(),
    ))
}

#[async_trait]
impl Storage for Script {
    async fn get(&self, _: &str) -> Result<(Option<Entry>, Revision), StorageError> {
        unknown()
    }
    async fn list(&self, _: ListRequest) -> Result<Page, StorageError> {
        Ok(Page {
            revision: Revision(1),
            ..Page::default()
        })
    }
    async fn count(&self, _: &str) -> Result<u64, StorageError> {
        unknown()
    }
    async fn create(
        &self,
        _: &str,
        _: Bytes,
        _: Option<Duration>,
    ) -> Result<Revision, StorageError> {
        unknown()
    }
    async fn update_if(
        &self,
        _: &str,
        _: Revision,
        _: Bytes,
        _: Option<Duration>,
    ) -> Result<Revision, StorageError> {
        unknown()
    }
    async fn rewrite_if(&self, _: &str, _: Revision, _: Bytes) -> Result<Revision, StorageError> {
        unknown()
    }
    async fn delete_if(&self, _: &str, _: Revision) -> Result<Revision, StorageError> {
        unknown()
    }
    async fn watch(&self, _: &str, _: WatchStart) -> Result<WatchStream, StorageError> {
        let events = std::mem::take(&mut *self.0.lock());
        let events = events.into_iter().map(|event| Ok(WatchItem::Event(event)));
        Ok(stream::iter(events).chain(stream::pending()).boxed())
    }
    async fn request_progress(&self) -> Result<(), StorageError> {
        unknown()
    }
    async fn current_revision(&self) -> Result<Revision, StorageError> {
        unknown()
    }
    async fn compact(&self, _: Revision) -> Result<(), StorageError> {
        unknown()
    }
    async fn close(&self) {}
}

/// Creates this many keys together at each revision from 2 on.
fn together(revisions: u64, keys: usize) -> Vec<Event> {
    let event = |revision, key| Event {
        kind: EventKind::Created,
        key: format!("/r/{revision}-{key:03}"),
        value: "x".into(),
        previous: None,
        revision: Revision(revision),
    };
    (2..2 + revisions)
        .flat_map(|revision| (0..keys).map(move |key| event(revision, key)))
        .collect()
}

#[tokio::test]
async fn a_batch_has_all_changes_of_its_revisions() {
    let script = Script(Mutex::new(together(9, 50)));
    let start = WatchStart::After(Revision(1));
    let mut changes = script.watch(PREFIX, start).await.unwrap().peekable();
    for last in [4, 7, 10] {
        let (items, end) = fill::batch(&mut changes).await;
        assert_eq!((items.len(), end), (150, None));
        let Some(WatchItem::Event(event)) = items.last() else {
            panic!("{items:?}");
        };
        assert_eq!(event.revision, Revision(last));
    }
}

#[tokio::test]
async fn a_cursor_is_not_through_with_a_revision_of_which_it_left_something() {
    let script = Arc::new(Script(Mutex::new(together(1, 3))));
    let cache = WatchCache::new(script, PREFIX, Text, Budget::new(Budget::DEFAULT_BYTES));
    tokio::spawn(Arc::clone(&cache).run());
    assert!(cache.wait_for(Revision(2), LONG).await);
    let mut cursor = cache
        .watch(Interest::Everything, Some(Revision(1)))
        .unwrap();
    let mut taken = Vec::new();
    let reached = [2, 2].map(|most| cursor.take(most, &mut taken).unwrap());
    assert_eq!(reached, [Revision(1), Revision(2)]);
    assert_eq!(taken.len(), 3);
}
