//! delete and deletecollection.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use apiloom_storage::{Layer, Revision, StorageError};

use super::*;

fn pending(deleted: DeleteResult) -> Object {
    match deleted {
        DeleteResult::Pending(object) => object,
        other => panic!("not pending: {other:?}"),
    }
}

fn policy(policy: PropagationPolicy) -> DeleteOptions {
    DeleteOptions {
        propagation_policy: Some(policy),
        ..DeleteOptions::default()
    }
}

#[tokio::test]
async fn what_nothing_holds_back_is_gone() {
    let f = fixture().await;
    let created = f.create(widget("a", json!({}))).await.unwrap();
    let DeleteResult::Gone(details) = f.delete("a").await.unwrap() else {
        panic!("it has no finalizer")
    };
    assert_eq!(
        (
            details.name.as_str(),
            details.group.as_str(),
            details.kind.as_str()
        ),
        ("a", GROUP, "widgets")
    );
    assert_eq!(details.uid, created.uid());
    let error = f.delete("a").await.unwrap_err();
    assert_eq!(
        shown(&error),
        (Some("NotFound"), "widgets.test.example.com \"a\" not found")
    );
}

#[tokio::test]
async fn finalizers_hold_an_object_back() {
    let f = fixture().await;
    f.create(json!({"metadata": {"name": "a", "finalizers": ["example.com/x"]}}))
        .await
        .unwrap();
    let marked = pending(f.delete("a").await.unwrap());
    assert!(marked.is_deleting());
    assert_eq!(at(&marked, "/metadata/deletionGracePeriodSeconds"), 0);
    assert_eq!(at(&marked, "/metadata/generation"), 2);
    assert_eq!(f.get("a").await.unwrap(), marked);
}

#[tokio::test]
async fn deleting_again_changes_nothing() {
    let f = fixture().await;
    f.create(json!({"metadata": {"name": "a", "finalizers": ["example.com/x"]}}))
        .await
        .unwrap();
    let marked = pending(f.delete("a").await.unwrap());
    let before = f.revision().await;
    assert_eq!(pending(f.delete("a").await.unwrap()), marked);
    assert_eq!(f.revision().await, before);
}

#[tokio::test]
async fn the_policy_puts_its_finalizer_last() {
    let f = fixture().await;
    f.create(json!({"metadata": {"name": "a", "finalizers": ["orphan", "example.com/x"]}}))
        .await
        .unwrap();
    let delete = async |options| {
        pending(
            f.widgets
                .writes()
                .delete(&f.ctx, NS, "a", &options)
                .await
                .unwrap(),
        )
    };
    let kept = delete(DeleteOptions::default()).await;
    assert_eq!(kept.finalizers(), ["example.com/x", "orphan"]);
    assert_eq!(
        delete(policy(PropagationPolicy::Foreground))
            .await
            .finalizers(),
        ["example.com/x", "foregroundDeletion"]
    );
    assert_eq!(
        delete(policy(PropagationPolicy::Orphan)).await.finalizers(),
        ["example.com/x", "orphan"]
    );
    assert_eq!(
        delete(policy(PropagationPolicy::Background))
            .await
            .finalizers(),
        ["example.com/x"]
    );
}

#[tokio::test]
async fn background_frees_an_object_held_by_its_collector_only() {
    let f = fixture().await;
    f.create(widget("a", json!({}))).await.unwrap();
    pending(
        f.widgets
            .writes()
            .delete(&f.ctx, NS, "a", &policy(PropagationPolicy::Foreground))
            .await
            .unwrap(),
    );
    let deleted = f
        .widgets
        .writes()
        .delete(&f.ctx, NS, "a", &policy(PropagationPolicy::Background))
        .await
        .unwrap();
    assert!(matches!(deleted, DeleteResult::Gone(_)));
}

#[tokio::test]
async fn preconditions_must_hold() {
    let f = fixture().await;
    let created = f.create(widget("a", json!({}))).await.unwrap();
    let delete = async |uid: Option<&str>, version: Option<&str>| {
        let preconditions = Preconditions {
            uid: uid.map(str::to_owned),
            resource_version: version.map(str::to_owned),
        };
        f.widgets
            .writes()
            .delete(
                &f.ctx,
                NS,
                "a",
                &DeleteOptions {
                    preconditions,
                    ..DeleteOptions::default()
                },
            )
            .await
    };
    let text = format!(
        "Operation cannot be fulfilled on Widget.test.example.com \"a\": the UID in the precondition (zzz) does not match the \
         UID in record ({}). The object might have been deleted and then recreated",
        created.uid()
    );
    assert_eq!(
        shown(&delete(Some("zzz"), None).await.unwrap_err()),
        (Some("Conflict"), text.as_str())
    );
    let text = format!(
        "Operation cannot be fulfilled on Widget.test.example.com \"a\": the ResourceVersion in the precondition (1) does not \
         match the ResourceVersion in record ({}). The object might have been modified",
        created.resource_version()
    );
    assert_eq!(
        shown(&delete(None, Some("1")).await.unwrap_err()),
        (Some("Conflict"), text.as_str())
    );
    delete(Some(created.uid()), Some(created.resource_version()))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_dry_run_deletes_nothing() {
    let f = fixture().await;
    f.create(widget("a", json!({}))).await.unwrap();
    f.create(json!({"metadata": {"name": "b", "finalizers": ["example.com/x"]}}))
        .await
        .unwrap();
    let before = f.revision().await;
    let options = DeleteOptions {
        dry_run: true,
        ..DeleteOptions::default()
    };
    assert!(matches!(
        f.widgets
            .writes()
            .delete(&f.ctx, NS, "a", &options)
            .await
            .unwrap(),
        DeleteResult::Gone(_)
    ));
    assert!(
        pending(
            f.widgets
                .writes()
                .delete(&f.ctx, NS, "b", &options)
                .await
                .unwrap()
        )
        .is_deleting()
    );
    assert_eq!(f.revision().await, before);
}

#[tokio::test]
async fn plugins_may_refuse_a_deletion() {
    let f = fixture().await;
    f.create(widget("keep", json!({}))).await.unwrap();
    let error = f.delete("keep").await.unwrap_err();
    assert_eq!(
        shown(&error),
        (
            Some("Forbidden"),
            "widgets.test.example.com \"keep\" is forbidden: it is kept"
        )
    );
}

#[tokio::test]
async fn a_collection_is_deleted_by_selector_and_listed_as_it_was() {
    let f = fixture().await;
    for name in ["a", "b", "c"] {
        f.create(json!({"metadata": {"name": name, "labels": {"app": if name == "c" { "y" } else { "x" }}}})).await.unwrap();
    }
    let listed = f
        .widgets
        .delete_collection(&f.ctx, NS, &labels("app=x"), &DeleteOptions::default())
        .await
        .unwrap();
    assert_eq!(names(&listed), ["a", "b"]);
    assert_eq!(
        names(&f.list(&ListOptions::default()).await.unwrap()),
        ["c"]
    );
}

#[tokio::test]
async fn a_limit_deletes_one_page() {
    let f = fixture().await;
    for name in ["a", "b", "c"] {
        f.create(widget(name, json!({}))).await.unwrap();
    }
    let page = ListOptions {
        limit: 2,
        ..ListOptions::default()
    };
    let listed = f
        .widgets
        .delete_collection(&f.ctx, NS, &page, &DeleteOptions::default())
        .await
        .unwrap();
    assert_eq!(names(&listed), ["a", "b"]);
    assert_eq!(
        names(&f.list(&ListOptions::default()).await.unwrap()),
        ["c"]
    );
}

#[tokio::test]
async fn a_collection_is_judged_object_by_object() {
    let f = fixture().await;
    f.create(widget("keep", json!({}))).await.unwrap();
    let all = ListOptions::default();
    let error = f
        .widgets
        .delete_collection(&f.ctx, NS, &all, &DeleteOptions::default())
        .await
        .unwrap_err();
    assert_eq!(error.reason, Some(StatusReason::Forbidden));
}

/// A store that counts deletes in flight.
#[derive(Debug)]
struct Counting {
    store: Arc<Memory>,
    now: AtomicUsize,
    most: Arc<AtomicUsize>,
}

#[async_trait]
impl Layer for Counting {
    fn behind(&self) -> &dyn Storage {
        &*self.store
    }
    async fn delete_if(&self, key: &str, expected: Revision) -> Result<Revision, StorageError> {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        // Others get their turn before this one ends.
        tokio::task::yield_now().await;
        let deleted = self.store.delete_if(key, expected).await;
        self.now.fetch_sub(1, Ordering::SeqCst);
        deleted
    }
}

#[tokio::test]
async fn a_collection_is_deleted_by_so_many_workers() {
    let check = async |workers: usize, expected: usize| {
        let (store, most) = (Memory::new(), Arc::new(AtomicUsize::new(0)));
        let mut builder = builder_over(Arc::new(Counting {
            store: Arc::clone(&store),
            now: AtomicUsize::new(0),
            most: Arc::clone(&most),
        }));
        builder.delete_collection_workers(NonZeroUsize::new(workers).unwrap());
        let f = started(builder, store).await;
        for i in 0..7 {
            f.create(widget(&format!("w{i}"), json!({}))).await.unwrap();
        }
        let all = ListOptions::default();
        let options = DeleteOptions::default();
        let deleted = f.widgets.delete_collection(&f.ctx, NS, &all, &options);
        assert_eq!(names(&deleted.await.unwrap()).len(), 7);
        assert_eq!(names(&f.list(&all).await.unwrap()), [""; 0]);
        assert_eq!(most.load(Ordering::SeqCst), expected, "{workers} workers");
    };
    check(1, 1).await;
    check(3, 3).await;
    check(100, 7).await;
}
