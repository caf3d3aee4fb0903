//! Writes with a concurrent write between their read and their write, and listers that lose their watch.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use apiloom_storage::{Entry, Layer, Revision, StorageError, WatchStart, WatchStream};
use futures_util::StreamExt as _;

use super::*;

/// Writes a label directly to the store, once, during validation.
struct Racer {
    store: Arc<Memory>,
    raced: AtomicBool,
}

#[async_trait]
impl Admission for Racer {
    fn name(&self) -> &'static str {
        "Racer"
    }
    async fn validate(&self, request: &AdmissionRequest<'_>) -> Result<(), ApiError> {
        if request.operation == Operation::Create || self.raced.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let (entry, _) = self.store.get(&key(request.name)).await.unwrap();
        let entry = entry.unwrap();
        let mut value: Value = serde_json::from_slice(&entry.value).unwrap();
        value["metadata"]["labels"] = json!({"racer": "was-here"});
        let bytes = value.to_string().into();
        let written = self
            .store
            .update_if(&entry.key, entry.revision, bytes, None);
        written.await.unwrap();
        Ok(())
    }
}

/// A registry whose next update or delete conflicts with another write.
async fn raced() -> (Fixture, Object) {
    let store = Memory::new();
    let mut builder = builder(&store);
    let racer = Racer {
        store: Arc::clone(&store),
        raced: AtomicBool::new(false),
    };
    builder.admission(move |_| Box::new(racer));
    let f = started(builder, store).await;
    let created = f.create(widget("a", json!({"color": "red"}))).await;
    (f, created.unwrap())
}

#[tokio::test]
async fn a_raced_patch_is_applied_to_what_is_there_now() {
    let (f, _) = raced().await;
    let after = f.merge("a", json!({"spec": {"size": 2}})).await.unwrap();
    assert_eq!(after.label("racer"), Some("was-here"));
    assert_eq!(at(&after, "/spec/size"), 2);
    assert_eq!(f.get("a").await.unwrap(), after);
}

#[tokio::test]
async fn a_raced_patch_with_a_resource_version_conflicts() {
    let (f, created) = raced().await;
    let version = created.resource_version();
    let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"size": 2}});
    let error = f.merge("a", patch).await.unwrap_err();
    assert_eq!(error.reason, Some(StatusReason::Conflict));
}

#[tokio::test]
async fn a_raced_update_with_a_resource_version_conflicts() {
    let (f, created) = raced().await;
    let mut changed = created.into_value();
    changed["spec"]["size"] = json!(2);
    let error = f.put("a", changed).await.unwrap_err();
    assert_eq!(error.reason, Some(StatusReason::Conflict));
    assert_eq!(f.get("a").await.unwrap().label("racer"), Some("was-here"));
}

#[tokio::test]
async fn a_raced_update_without_one_overwrites() {
    let (f, _) = raced().await;
    let after = f.put("a", widget("a", json!({"color": "blue"}))).await;
    assert_eq!(after.unwrap().label("racer"), None);
}

#[tokio::test]
async fn a_raced_delete_removes_what_is_there_now() {
    let (f, _) = raced().await;
    assert!(matches!(
        f.delete("a").await.unwrap(),
        DeleteResult::Gone(_)
    ));
    assert!(f.get("a").await.is_err());
}

#[tokio::test]
async fn a_raced_delete_checks_its_preconditions_again() {
    let (f, created) = raced().await;
    let preconditions = Preconditions {
        resource_version: Some(created.resource_version().to_owned()),
        uid: None,
    };
    let options = DeleteOptions {
        preconditions,
        ..DeleteOptions::default()
    };
    let error = f.widgets.writes().delete(&f.ctx, NS, "a", &options).await;
    assert_eq!(error.unwrap_err().reason, Some(StatusReason::Conflict));
    assert!(f.get("a").await.is_ok());
}

/// A store whose watches fail.
#[derive(Debug)]
struct Tampered {
    store: Arc<Memory>,
    tamper: fn(WatchStream) -> WatchStream,
}

/// Ends with an error after the first item.
fn breaking(watch: WatchStream) -> WatchStream {
    let broken = futures_util::stream::once(async { Err(StorageError::Lagged) });
    watch.take(1).chain(broken).boxed()
}

/// Delivers no items.
fn silent(_: WatchStream) -> WatchStream {
    futures_util::stream::pending().boxed()
}

#[async_trait]
impl Layer for Tampered {
    fn behind(&self) -> &dyn Storage {
        &*self.store
    }
    async fn watch(&self, prefix: &str, start: WatchStart) -> Result<WatchStream, StorageError> {
        self.store.watch(prefix, start).await.map(self.tamper)
    }
}

/// A registry over a store with other writers.
async fn tampered(store: &Arc<Memory>, tamper: fn(WatchStream) -> WatchStream) -> Fixture {
    let tampered = Tampered {
        store: Arc::clone(store),
        tamper,
    };
    started(builder_over(Arc::new(tampered)), Arc::clone(store)).await
}

#[tokio::test(start_paused = true)]
async fn an_object_that_another_server_wrote_is_not_missed() {
    let other = fixture().await;
    let f = tampered(&other.store, silent).await;
    let namespace = object(json!({"metadata": {"name": "new"}}));
    let options = CreateOptions::default();
    let created = other
        .namespaces
        .writes()
        .create(&other.ctx, None, namespace, &options);
    created.await.unwrap();

    let input = object(json!({"metadata": {"name": "a"}}));
    let inside = f
        .widgets
        .writes()
        .create(&f.ctx, Some("new"), input.clone(), &options);
    inside.await.unwrap();
    let nowhere = f
        .widgets
        .writes()
        .create(&f.ctx, Some("none"), input, &options);
    let error = nowhere.await.unwrap_err();
    assert_eq!(
        shown(&error),
        (Some("NotFound"), "namespaces \"none\" not found")
    );
}

#[tokio::test(start_paused = true)]
async fn a_write_of_this_server_is_never_missed() {
    let store = Memory::new();
    let f = tampered(&store, silent).await;
    f.create(widget("a", json!({}))).await.unwrap();
    let input = json!({"metadata": {"name": "b", "labels": {"count": "me"}}});
    let error = f.create(input).await.unwrap_err();
    assert!(
        error.message.ends_with("not yet ready to handle request"),
        "rather than a list without the first one: {}",
        error.message
    );
}

#[tokio::test(start_paused = true)]
async fn a_lister_that_loses_its_watch_lists_again() {
    let store = Memory::new();
    let f = tampered(&store, breaking).await;
    for i in 0..5 {
        let input = json!({"metadata": {"name": format!("w{i}"), "labels": {"count": "me"}}});
        let created = f.create(input).await.unwrap();
        assert_eq!(created.label("count"), Some(i.to_string().as_str()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_plugin_whose_lister_never_starts_refuses() {
    let store = Memory::new();
    let registry = builder(&store).build().unwrap();
    let create = async |(version, plural), namespace, input| {
        let endpoint = registry.endpoint(version, "v1", plural).unwrap();
        let (ctx, options) = (RequestContext::default(), CreateOptions::default());
        endpoint
            .writes()
            .create(&ctx, namespace, object(input), &options)
            .await
    };
    let namespace = json!({"metadata": {"name": "default"}});
    create(("", "namespaces"), None, namespace).await.unwrap();
    let input = json!({"metadata": {"name": "a", "labels": {"count": "me"}}});
    let error = create((GROUP, "widgets"), NS, input).await;
    let text = "widgets.test.example.com \"a\" is forbidden: not yet ready to handle request";
    assert_eq!(shown(&error.unwrap_err()), (Some("Forbidden"), text));
}

/// A registry whose watch cache has the old objects `a` and `b`, and a registry through which they were changed: `a`
/// is blue, `b` is deleted, and `c` is new.
async fn behind() -> (Fixture, Fixture) {
    let now = fixture().await;
    for name in ["a", "b"] {
        now.create(widget(name, json!({"color": "red"})))
            .await
            .unwrap();
    }
    let behind = tampered(&now.store, silent).await;
    now.merge("a", json!({"spec": {"color": "blue"}}))
        .await
        .unwrap();
    now.delete("b").await.unwrap();
    now.create(widget("c", json!({}))).await.unwrap();
    (behind, now)
}

#[tokio::test]
async fn a_patch_is_applied_to_what_is_stored_and_not_to_what_the_cache_has() {
    let (behind, _) = behind().await;
    let after = behind.merge("a", json!({"spec": {"size": 2}})).await;
    assert_eq!(at(&after.unwrap(), "/spec/color"), "blue");
    behind
        .merge("c", json!({"spec": {"size": 2}}))
        .await
        .unwrap();
}

#[tokio::test]
async fn an_update_is_not_refused_for_what_the_cache_has() {
    let (behind, now) = behind().await;
    let mut present = now.get("a").await.unwrap().into_value();
    present["spec"]["size"] = json!(2);
    behind.put("a", present).await.unwrap();
}

#[tokio::test]
async fn an_update_to_what_the_cache_has_is_written() {
    let (behind, now) = behind().await;
    behind
        .put("a", widget("a", json!({"color": "red"})))
        .await
        .unwrap();
    assert_eq!(at(&now.get("a").await.unwrap(), "/spec/color"), "red");
}

#[tokio::test]
async fn an_update_to_what_is_stored_writes_nothing_although_the_cache_has_another() {
    let (behind, now) = behind().await;
    let before = now.get("a").await.unwrap();
    let after = behind.put("a", widget("a", json!({"color": "blue"}))).await;
    assert_eq!(after.unwrap(), before);
    assert_eq!(now.get("a").await.unwrap(), before);
}

#[tokio::test]
async fn a_dry_run_shows_what_is_stored() {
    let (behind, _) = behind().await;
    let options = PatchOptions {
        dry_run: true,
        ..PatchOptions::default()
    };
    let patch = apiloom_meta::patch::Patch::parse_merge(br#"{"spec": {"size": 2}}"#).unwrap();
    let tried = behind
        .widgets
        .writes()
        .patch(
            WriteRequest::new(&behind.ctx, NS, "a").with(&options),
            &patch,
        )
        .await;
    assert_eq!(at(&tried.unwrap(), "/spec/color"), "blue");
}

#[tokio::test]
async fn what_is_gone_is_not_found_although_the_cache_has_it() {
    let (behind, _) = behind().await;
    let gone = Some(StatusReason::NotFound);
    let patched = behind.merge("b", json!({"spec": {"size": 2}})).await;
    assert_eq!(patched.unwrap_err().reason, gone);
    let put = behind.put("b", widget("b", json!({}))).await;
    assert_eq!(put.unwrap_err().reason, gone);
    assert_eq!(behind.delete("b").await.unwrap_err().reason, gone);
}

#[tokio::test]
async fn a_deletion_is_judged_by_what_is_stored() {
    let (behind, now) = behind().await;
    let present = now.get("a").await.unwrap().resource_version().to_owned();
    let cached = behind
        .widgets
        .writes()
        .commit
        .present(&key("a"), "get")
        .await
        .unwrap();
    let stale = cached.unwrap().revision().to_string();
    for (version, expected) in [(stale, Some(StatusReason::Conflict)), (present, None)] {
        let options = DeleteOptions {
            preconditions: Preconditions {
                resource_version: Some(version),
                uid: None,
            },
            ..DeleteOptions::default()
        };
        let deleted = behind
            .widgets
            .writes()
            .delete(&behind.ctx, NS, "a", &options)
            .await;
        assert_eq!(deleted.err().and_then(|error| error.reason), expected);
    }
}

/// A store that counts the objects that are read from it.
#[derive(Debug)]
struct CountedReads {
    store: Arc<Memory>,
    reads: AtomicUsize,
    is_shared: bool,
}

#[async_trait]
impl Layer for CountedReads {
    fn behind(&self) -> &dyn Storage {
        &*self.store
    }
    async fn get(&self, key: &str) -> Result<(Option<Entry>, Revision), StorageError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.store.get(key).await
    }
    fn is_shared(&self) -> bool {
        self.is_shared
    }
}

/// Counts the updates that are validated.
struct CountedUpdates(Arc<AtomicUsize>);

#[async_trait]
impl Admission for CountedUpdates {
    fn name(&self) -> &'static str {
        "CountedUpdates"
    }
    async fn validate(&self, request: &AdmissionRequest<'_>) -> Result<(), ApiError> {
        if request.operation == Operation::Update {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_write_without_a_change_is_confirmed_by_the_cache_where_no_other_process_writes() {
    for (is_shared, expected) in [(false, 0), (true, 1)] {
        let store = Memory::new();
        let counted = Arc::new(CountedReads {
            store: Arc::clone(&store),
            reads: AtomicUsize::new(0),
            is_shared,
        });
        let updates = Arc::new(AtomicUsize::new(0));
        let mut builder = builder_over(Arc::clone(&counted) as Arc<dyn Storage>);
        let counts = CountedUpdates(Arc::clone(&updates));
        builder.admission(move |_| Box::new(counts));
        let f = started(builder, store).await;
        let created = f
            .create(widget("a", json!({"color": "red"})))
            .await
            .unwrap();
        let before = f.revision().await;
        // Until the cache has the object, it is read from the store.
        caught_up(&f.widgets).await;
        counted.reads.store(0, Ordering::SeqCst);
        let put = f.put("a", created.as_value().clone()).await;
        assert_eq!(put.unwrap(), created);
        assert_eq!(
            counted.reads.load(Ordering::SeqCst),
            expected,
            "{is_shared}"
        );
        assert_eq!(updates.load(Ordering::SeqCst), 1, "it is not judged twice");
        assert_eq!(f.revision().await, before);
    }
}
