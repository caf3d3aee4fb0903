//! Writers and a watch over a store with faults, and the check that nothing was lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use apiloom_storage::{
    Event, EventKind, Key, ListRequest, Revision, Storage, StorageError, WatchItem, WatchStart,
    WatchStream,
};
use apiloom_tests::Progress;
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

/// Timeout for expected events: longer than any fault takes to be detected.
pub(super) const PATIENCE: Duration = Duration::from_secs(90);

const WRITERS: usize = 8;

/// A load on a store without other writers.
pub(super) struct Load {
    store: Arc<dyn Storage>,
    start: Revision,
    stop: watch::Sender<bool>,
    pub(super) progress: Progress,
    seen: watch::Receiver<Revision>,
    writers: JoinSet<Vec<(Key, Revision)>>,
    watcher: JoinHandle<Vec<Event>>,
    end: watch::Sender<Option<Revision>>,
}

impl Load {
    pub(super) async fn start(store: &Arc<dyn Storage>) -> Self {
        let start = store.current_revision().await.unwrap();
        let (seen_sender, seen) = watch::channel(start);
        let end = watch::Sender::new(None);
        // The watch begins before any fault.
        let changes = store.watch("/registry/", WatchStart::After(start)).await;
        let watcher = tokio::spawn(follow(
            Arc::clone(store),
            changes.unwrap(),
            seen_sender,
            end.subscribe(),
        ));
        let stop = watch::Sender::new(false);
        let progress = Progress::new(PATIENCE);
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let store = Arc::clone(store);
            writers.spawn(write(store, writer, stop.subscribe(), progress.clone()));
        }
        Self {
            store: Arc::clone(store),
            start,
            stop,
            progress,
            seen,
            writers,
            watcher,
            end,
        }
    }

    /// The newest revision that the watch has delivered.
    pub(super) fn seen(&self) -> Revision {
        *self.seen.borrow()
    }

    /// Stops the writers and checks that every revision was delivered once and in order, that all acknowledged writes
    /// are among them, and that the store holds their result.
    pub(super) async fn finish(mut self) {
        self.stop.send_replace(true);
        let mut acknowledged = Vec::new();
        while let Some(written) = timeout(PATIENCE, self.writers.join_next()).await.unwrap() {
            acknowledged.extend(written.unwrap());
        }
        let last = self.store.current_revision().await.unwrap();
        self.end.send_replace(Some(last));
        let events = timeout(PATIENCE, self.watcher)
            .await
            .expect("the watch goes on")
            .unwrap();
        // There are no other writers, so every revision is one event.
        let revisions: Vec<u64> = events.iter().map(|event| event.revision.0).collect();
        let expected: Vec<u64> = (self.start.0 + 1..=last.0).collect();
        assert_eq!(revisions, expected);
        for (key, revision) in &acknowledged {
            let event = &events[(revision.0 - self.start.0 - 1) as usize];
            assert_eq!(&event.key, key, "at {revision}");
        }
        let mut state: BTreeMap<Key, (Bytes, Revision)> = BTreeMap::new();
        for event in events {
            let before = match event.kind {
                EventKind::Deleted => state.remove(&event.key),
                _ => state.insert(event.key.clone(), (event.value, event.revision)),
            };
            assert_eq!(
                event.previous, before,
                "{} at {}",
                event.key, event.revision
            );
        }
        // At that revision: a write that was given up may be executed later.
        let request = ListRequest {
            prefix: "/registry/".to_owned(),
            at: Some(last),
            ..ListRequest::default()
        };
        let page = self.store.list(request).await.unwrap();
        let stored = page.entries.into_iter();
        let stored = stored.map(|entry| (entry.key, (entry.value, entry.revision)));
        assert_eq!(stored.collect::<BTreeMap<_, _>>(), state);
    }
}

/// Creates, updates and deletes its own keys until it is stopped; returns the acknowledged writes.
async fn write(
    store: Arc<dyn Storage>,
    writer: usize,
    stop: watch::Receiver<bool>,
    progress: Progress,
) -> Vec<(Key, Revision)> {
    let mut acknowledged = Vec::new();
    let mut told = |key: &str, answer: Result<Revision, StorageError>| match answer {
        Ok(revision) => {
            acknowledged.push((key.to_owned(), revision));
            progress.acknowledge();
            Some(revision)
        }
        Err(StorageError::Unavailable(_)) => {
            progress.fail();
            None
        }
        Err(error) => panic!("{key}: {error}"),
    };
    for index in 0.. {
        if *stop.borrow() {
            break;
        }
        let key = format!("/registry/w{writer}/{index}");
        let created = told(&key, store.create(&key, "1".into(), None).await);
        // After a failed create it is unknown whether the key exists.
        let Some(created) = created else { continue };
        if index % 2 == 0 {
            continue;
        }
        let updated = told(&key, store.update_if(&key, created, "2".into(), None).await);
        let Some(updated) = updated else { continue };
        if index % 4 == 1 {
            told(&key, store.delete_if(&key, updated).await);
        }
    }
    acknowledged
}

/// Runs one watch until it has delivered everything up to the end.
async fn follow(
    store: Arc<dyn Storage>,
    mut changes: WatchStream,
    seen: watch::Sender<Revision>,
    mut end: watch::Receiver<Option<Revision>>,
) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        let item = tokio::select! {
            item = changes.next() => item,
            _ = end.changed() => {
                // Requests progress so that the end is reached without further changes; regular progress would do too.
                let _ = store.request_progress().await;
                continue;
            }
        };
        let reached = match item.expect("the watch goes on").expect("the watch goes on") {
            WatchItem::Event(event) => {
                let revision = event.revision;
                events.push(event);
                revision
            }
            WatchItem::Progress(revision) => revision,
        };
        seen.send_replace(reached);
        if end.borrow().is_some_and(|end| reached >= end) {
            return events;
        }
    }
}
