//! What the tests of all families use.

use std::future::Future;
pub(super) use std::sync::Arc;
pub(super) use std::time::Duration;

pub(super) use bytes::Bytes;
pub(super) use futures_util::StreamExt;

pub(super) use crate::{
    Entry, Event, EventKind, ListRequest, Page, Revision, Storage, StorageError, WatchItem,
    WatchStart, WatchStream,
};

tokio::task_local! {
    /// Timeout of the running test for items that must arrive.
    static PATIENCE: Duration;
}

pub(super) fn patience() -> Duration {
    PATIENCE
        .try_with(|patience| *patience)
        .unwrap_or(USUAL_PATIENCE)
}

pub(super) const USUAL_PATIENCE: Duration = Duration::from_secs(30);

/// Maximum keys that the backend under test reads at a time. The suite lists more than twice as many, so that a backend
/// which reads lists in pieces needs several.
pub const MOST_READ_AT_ONCE: usize = 500;

/// A factory for the stores of one test.
#[expect(
    async_fn_in_trait,
    reason = "the tests run it on the thread that made it"
)]
pub trait Backend {
    /// How long a test waits for an item that must arrive before it fails: by default 30 s, far more than a local store
    /// needs on a busy machine.
    const PATIENCE: Duration = USUAL_PATIENCE;

    /// Creates an empty place for one test's store, such as a directory.
    async fn new() -> Self;

    /// Opens the store in that place. It is called again only after the store was closed. A backend that reads long
    /// lists in pieces must be configured to read at most [`MOST_READ_AT_ONCE`] keys at a time.
    async fn open(&self) -> Arc<dyn Storage>;
}

/// Runs one test with a timeout for items that must arrive; called by [`conformance_tests!`](crate::conformance_tests).
///
/// # Panics
/// When the test panics, or when no runtime can be created.
pub fn run_with_patience(patience: Duration, test: impl Future<Output = ()>) {
    run(PATIENCE.scope(patience, test));
}

/// Runs one test.
///
/// # Panics
/// When the test panics, or when no runtime can be created.
pub fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.expect("a test has a runtime").block_on(test);
}

/// Creates a key without a time to live.
pub(super) async fn create(store: &dyn Storage, key: &str, value: &str) -> Revision {
    store
        .create(key, Bytes::copy_from_slice(value.as_bytes()), None)
        .await
        .expect("created")
}

/// Updates a key without a time to live.
pub(super) async fn update(
    store: &dyn Storage,
    key: &str,
    expected: Revision,
    value: &str,
) -> Revision {
    store
        .update_if(
            key,
            expected,
            Bytes::copy_from_slice(value.as_bytes()),
            None,
        )
        .await
        .expect("updated")
}

pub(super) async fn delete(store: &dyn Storage, key: &str, expected: Revision) -> Revision {
    store.delete_if(key, expected).await.expect("deleted")
}

pub(super) async fn get(store: &dyn Storage, key: &str) -> Option<Entry> {
    store.get(key).await.expect("read").0
}

pub(super) fn entry(key: &str, value: &str, revision: Revision) -> Entry {
    Entry {
        key: key.to_owned(),
        value: Bytes::copy_from_slice(value.as_bytes()),
        revision,
    }
}

pub(super) async fn list(store: &dyn Storage, request: ListRequest) -> Page {
    store.list(request).await.expect("listed")
}

/// The entries below a prefix, as `key=value`.
pub(super) async fn state(store: &dyn Storage, prefix: &str, at: Option<Revision>) -> Vec<String> {
    let request = ListRequest {
        prefix: prefix.to_owned(),
        at,
        ..ListRequest::default()
    };
    texts(&list(store, request).await)
}

pub(super) fn texts(page: &Page) -> Vec<String> {
    page.entries
        .iter()
        .map(|entry| format!("{}={}", entry.key, String::from_utf8_lossy(&entry.value)))
        .collect()
}

pub(super) async fn watch(store: &dyn Storage, prefix: &str, start: WatchStart) -> WatchStream {
    store.watch(prefix, start).await.expect("watched")
}

/// The next item of a watch.
pub(super) async fn next(watch: &mut WatchStream) -> Option<Result<WatchItem, StorageError>> {
    tokio::time::timeout(patience(), watch.next())
        .await
        .expect("a watch delivers in time")
}

/// The next change of a watch.
pub(super) async fn next_event(watch: &mut WatchStream) -> Event {
    loop {
        match next(watch).await {
            Some(Ok(WatchItem::Event(event))) => return event,
            Some(Ok(WatchItem::Progress(_))) => {}
            ended => panic!("a watch goes on, but: {ended:?}"),
        }
    }
}

/// The changes before the first progress that reaches a revision.
pub(super) async fn events_until(watch: &mut WatchStream, revision: Revision) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        match next(watch).await {
            Some(Ok(WatchItem::Event(event))) => events.push(event),
            Some(Ok(WatchItem::Progress(reached))) if reached >= revision => return events,
            Some(Ok(WatchItem::Progress(_))) => {}
            ended => panic!("a watch goes on, but: {ended:?}"),
        }
    }
}

/// Creates keys in several tasks; returns the acknowledged revisions. Few tasks, since on a busy machine a request of each waits for those of
/// all others, and etcd answers none after 7 s.
pub(super) async fn write_many(
    store: &Arc<dyn Storage>,
    writers: usize,
    each: usize,
) -> Vec<Revision> {
    let writers = (0..writers).map(|writer| {
        let store = Arc::clone(store);
        tokio::spawn(async move {
            let mut revisions = Vec::new();
            for index in 0..each {
                revisions
                    .push(create(&*store, &format!("/r/{each}-{writer}-{index}"), "value").await);
            }
            revisions
        })
    });
    let mut revisions = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        revisions.extend(writer.await.expect("it ran"));
    }
    revisions
}

/// A change as `kind key=value`.
pub(super) fn text(event: &Event) -> String {
    let value = String::from_utf8_lossy(&event.value);
    match event.kind {
        EventKind::Deleted => format!("Deleted {}", event.key),
        kind => format!("{kind:?} {}={value}", event.key),
    }
}
