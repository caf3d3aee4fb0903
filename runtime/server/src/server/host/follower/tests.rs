//! A follower of namespaces over a store that fails when it is told to, in paused time.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use apiloom_kinds::core::v1::Namespace;
use apiloom_meta::{Resource as _, StatusReason};
use apiloom_storage::{
    Layer, ListRequest, Memory, Page, Storage, StorageError, WatchStart, WatchStream,
};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{once, select};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::*;

/// A store whose next lists fail, and whose present watch can be ended.
struct FaultyStore {
    store: Arc<Memory>,
    failures: AtomicUsize,
    end: Mutex<Option<oneshot::Sender<StorageError>>>,
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyStore").finish_non_exhaustive()
    }
}

#[async_trait]
impl Layer for FaultyStore {
    fn behind(&self) -> &dyn Storage {
        &*self.store
    }

    async fn list(&self, request: ListRequest) -> Result<Page, StorageError> {
        let take = |left: usize| left.checked_sub(1);
        let order = Ordering::SeqCst;
        match self.failures.fetch_update(order, order, take) {
            Ok(_) => Err(StorageError::Unavailable("by the test".into())),
            Err(_) => self.store.list(request).await,
        }
    }

    async fn watch(&self, prefix: &str, start: WatchStart) -> Result<WatchStream, StorageError> {
        let changes = self.store.watch(prefix, start).await?;
        let (end, ended) = oneshot::channel();
        *self.end.lock() = Some(end);
        let ended = once(ended).filter_map(async |error| error.ok().map(Err));
        Ok(select(changes, Box::pin(ended)).boxed())
    }
}

/// The key of a namespace in the store.
fn key(name: &str) -> String {
    format!("/registry/namespaces/{name}")
}

type NamespaceUpdate = Update<String, String>;

/// A follower, and the store of what it follows.
struct Fixture {
    store: Arc<FaultyStore>,
    endpoint: Arc<Endpoint>,
    follower: Follower<String, String>,
}

/// The name, and the name with the value of a label.
fn read(endpoint: &Endpoint, document: &Document) -> Option<(String, String)> {
    let json = document.json(endpoint.schema());
    let object: Namespace = serde_json::from_slice(json.whole()).ok()?;
    let name = object.metadata.name?;
    let state = object.metadata.labels.get("state");
    let shown = state.map_or_else(|| name.clone(), |state| format!("{name} {state}"));
    Some((name, shown))
}

fn namespace(name: &str, state: &str) -> Bytes {
    let labels = format!(r#"{{"state": "{state}"}}"#);
    let metadata = format!(r#"{{"name": "{name}", "uid": "{name}", "labels": {labels}}}"#);
    format!(r#"{{"apiVersion": "v1", "kind": "Namespace", "metadata": {metadata}}}"#).into()
}

impl Fixture {
    /// Over a store with namespaces of these names, whose state is `new`.
    async fn new(names: &[&str]) -> Self {
        let store = Arc::new(FaultyStore {
            store: Memory::new(),
            failures: AtomicUsize::new(0),
            end: Mutex::default(),
        });
        let mut builder = apiloom_kinds::registry(Arc::clone(&store) as Arc<dyn Storage>);
        builder.watch_cache(None);
        let registry = builder.build().unwrap();
        let endpoint = registry.endpoint(Namespace::GROUP, Namespace::VERSION, Namespace::PLURAL);
        let endpoint = endpoint.unwrap();
        let fixture = Self {
            store,
            follower: Follower::new(Arc::clone(&endpoint), read),
            endpoint,
        };
        for name in names {
            fixture.put(name, namespace(name, "new")).await;
        }
        fixture
    }

    async fn put(&self, name: &str, value: Bytes) {
        let key = key(name);
        let store = &self.store.store;
        match store.get(&key).await.unwrap().0 {
            None => store.create(&key, value, None).await.unwrap(),
            Some(present) => {
                let updated = store.update_if(&key, present.revision, value, None);
                updated.await.unwrap()
            }
        };
    }

    async fn delete(&self, name: &str) {
        let key = key(name);
        let present = self.store.store.get(&key).await.unwrap().0.unwrap();
        let deleted = self.store.store.delete_if(&key, present.revision);
        deleted.await.unwrap();
    }

    /// Ends the watch.
    fn end(&self, error: StorageError) {
        let end = self.store.end.lock().take().expect("a watch");
        end.send(error).expect("a watch that is open");
    }

    /// The next update that tells of anything.
    async fn next(&mut self) -> NamespaceUpdate {
        loop {
            match self.follower.next().await {
                Update::Alive => {}
                update => return update,
            }
        }
    }

    /// Reads a list.
    async fn list(&mut self, expected: &[&str]) {
        assert_eq!(self.next().await, Update::Begun);
        let mut shown = Vec::new();
        let listed = loop {
            assert!(!self.follower.is_complete());
            match self.next().await {
                Update::Added(object) => shown.push(object),
                Update::Complete(listed) => break listed,
                other => panic!("{other:?} in a list"),
            }
        };
        assert_eq!(shown, expected);
        assert_eq!(listed.len(), expected.len());
        let names = expected.iter().map(|shown| shown.split(' ').next());
        assert!(names.flatten().all(|name| listed.contains(name)));
        assert!(self.follower.is_complete());
    }
}

fn added(shown: &str) -> NamespaceUpdate {
    Update::Added(shown.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_list_is_followed_by_changes() {
    let mut fixture = Fixture::new(&["a", "b"]).await;
    fixture.list(&["a new", "b new"]).await;
    fixture.put("c", namespace("c", "new")).await;
    assert_eq!(fixture.next().await, added("c new"));
    fixture.put("a", namespace("a", "old")).await;
    assert_eq!(fixture.next().await, Update::Modified("a old".to_owned()));
    fixture.delete("b").await;
    assert_eq!(fixture.next().await, Update::Deleted("b".to_owned()));
    assert!(fixture.follower.is_complete());
    assert!(fixture.follower.delivered().is_some());
}

#[tokio::test(start_paused = true)]
async fn what_was_deleted_between_two_watches_is_not_in_the_next_list() {
    let mut fixture = Fixture::new(&["a", "b"]).await;
    fixture.list(&["a new", "b new"]).await;
    fixture.end(StorageError::Compacted {
        requested: Revision(1),
        compacted: Revision(2),
    });
    let Update::Ended(Some(error)) = fixture.next().await else {
        panic!("the watch goes on");
    };
    assert_eq!(error.reason, Some(StatusReason::Expired));
    assert!(!fixture.follower.is_complete());
    assert_eq!(fixture.follower.delivered(), None);
    fixture.delete("a").await;
    fixture.put("c", namespace("c", "new")).await;
    let ended = Instant::now();
    fixture.list(&["b new", "c new"]).await;
    assert_eq!(ended.elapsed(), RETRY);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_was_too_slow_begins_again_without_an_error() {
    let mut fixture = Fixture::new(&["a"]).await;
    fixture.list(&["a new"]).await;
    fixture.end(StorageError::Lagged);
    assert_eq!(fixture.next().await, Update::Ended(None));
    fixture.list(&["a new"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_is_asked_again_after_a_while() {
    let mut fixture = Fixture::new(&["a"]).await;
    let retry = Duration::from_millis(100);
    fixture.follower = Follower::new(Arc::clone(&fixture.endpoint), read).retry_after(retry);
    fixture.store.failures.store(3, Ordering::SeqCst);
    let start = Instant::now();
    for failure in 0..3 {
        assert_eq!(fixture.next().await, Update::Begun);
        assert_eq!(start.elapsed(), retry * failure);
        let update = fixture.next().await;
        assert!(matches!(update, Update::Ended(Some(_))), "{update:?}");
        assert!(!fixture.follower.is_complete());
        // A wait for other things neither shortens nor prolongs it.
        let other = timeout(retry / 3, fixture.next()).await;
        assert!(other.is_err(), "{other:?}");
    }
    fixture.list(&["a new"]).await;
    assert_eq!(start.elapsed(), retry * 3);
}

#[tokio::test(start_paused = true)]
async fn a_watch_begins_again_when_it_is_told_to() {
    let mut fixture = Fixture::new(&["a"]).await;
    fixture.list(&["a new"]).await;
    fixture.follower.begin_again();
    assert!(!fixture.follower.is_complete());
    let start = Instant::now();
    fixture.list(&["a new"]).await;
    assert_eq!(start.elapsed(), RETRY);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_keeps_no_other_from_being_followed() {
    let mut fixture = Fixture::new(&["a", "c"]).await;
    fixture.put("b", Bytes::from_static(b"{damaged")).await;
    fixture.list(&["a new", "c new"]).await;
    assert!(fixture.follower.unreadable().is_some());
    fixture.put("c", namespace("c", "old")).await;
    assert_eq!(fixture.next().await, Update::Modified("c old".to_owned()));
    fixture.delete("b").await;
    fixture.put("b", namespace("b", "new")).await;
    assert_eq!(fixture.next().await, added("b new"));
    assert_eq!(fixture.follower.unreadable(), None);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_passed_over_is_in_no_list() {
    let mut fixture = Fixture::new(&["a", "b"]).await;
    fixture.follower = Follower::new(Arc::clone(&fixture.endpoint), |endpoint, document| {
        read(endpoint, document).filter(|(name, _)| name != "a")
    });
    fixture.list(&["b new"]).await;
    fixture.put("a", namespace("a", "old")).await;
    assert_eq!(fixture.follower.next().await, Update::Alive);
}
