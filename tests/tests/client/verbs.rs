//! Every verb of a typed client, in process and over TLS.

use std::time::Duration;

use apiloom::testing::TestServer;
use apiloom_client::client::{Deletion, FieldValidation, Scale, VersionMatch};
use apiloom_client::discovery::Mapper;
use apiloom_client::{Client, DynamicObject, Error, HasMetadata as _, Patch, WatchEvent};
use futures_util::{StreamExt as _, TryStreamExt as _};
use serde_json::json;
use wardle::v1alpha1::{Fischer, Flunder};
use workload_kinds::v1::{Workload, WorkloadSpec, WorkloadStatus};

use super::{flunder, server};

/// A resourceVersion that no server has reached.
const FUTURE: &str = "9000000000000000000";

/// Uses every verb; the server is empty before and afterwards.
pub(super) async fn every_verb(client: &Client) {
    let flunders = client.namespaced::<Flunder>("default");
    let everywhere = client.all_namespaces::<Flunder>();
    let begin = everywhere.list().await.unwrap();
    assert!(begin.items.is_empty());
    let watch = everywhere.watch().from(begin.resource_version());
    let mut events = watch.bookmarks().await.unwrap();

    let dry = flunders.create(&flunder("a")).dry_run().await.unwrap();
    assert_eq!(dry.resource_version(), "");
    let created = flunders
        .create(&flunder("a"))
        .field_manager("me")
        .await
        .unwrap();
    assert_eq!((created.name(), created.namespace()), ("a", "default"));
    let again = flunders.create(&flunder("a")).await.unwrap_err();
    assert!(again.is_already_exists(), "{again}");
    assert_eq!(flunders.get("a").await.unwrap(), created);
    assert_eq!(flunders.get("none").optional().await.unwrap(), None);

    let mut stale = created.clone();
    stale
        .metadata
        .labels
        .insert("stale".to_owned(), "true".to_owned());
    let relabel = |flunder: &mut Flunder| {
        flunder
            .metadata
            .labels
            .insert("seen".to_owned(), "true".to_owned());
    };
    let updated = flunders.update_with("a", relabel).await.unwrap();
    assert_eq!(updated.label("seen"), Some("true"));
    let conflict = flunders.update(&stale).await.unwrap_err();
    assert!(conflict.is_conflict(), "{conflict}");
    let patched = flunders
        .patch(
            "a",
            Patch::merge(&json!({"metadata": {"labels": {"seen": null}}})),
        )
        .await;
    assert_eq!(patched.unwrap().label("seen"), None);
    let test = json!([{"op": "test", "path": "/metadata/name", "value": "b"}]);
    let failed = flunders.patch("a", Patch::json(&test)).await.unwrap_err();
    assert!(failed.is_invalid(), "{failed}");
    let status = json!({"status": {}});
    flunders
        .patch_status("a", Patch::merge(&status))
        .await
        .unwrap();
    flunders.update_status_with("a", |_| ()).await.unwrap();

    let unknown = Patch::merge(&json!({"spec": {"bogus": 1}}));
    let strict = flunders
        .patch("a", unknown)
        .field_validation(FieldValidation::Strict);
    let error = strict.await.unwrap_err();
    assert!(error.to_string().contains("spec.bogus"), "{error}");
    let mut invalid = flunder("b");
    invalid.metadata.name = Some("No Name".to_owned());
    let error = flunders.create(&invalid).await.unwrap_err();
    assert!(error.is_invalid() && !error.causes().is_empty(), "{error}");

    let configuration =
        |name: &str| json!({"metadata": {"name": name}, "spec": {"reference": "mine"}});
    let conflict = flunders
        .apply(&configuration("a"), "other")
        .await
        .unwrap_err();
    let conflicts: Vec<_> = conflict.conflicts().collect();
    assert_eq!(
        (conflicts[0].field, conflicts[0].manager),
        (".spec.reference", "me")
    );
    let forced = flunders
        .apply(&configuration("a"), "other")
        .force()
        .await
        .unwrap();
    assert_eq!(forced.spec.unwrap().reference.as_deref(), Some("mine"));
    flunders
        .apply(&configuration("applied"), "other")
        .await
        .unwrap();

    for name in ["c", "d", "e"] {
        flunders.create(&flunder(name)).await.unwrap();
    }
    let pages: Vec<_> = everywhere
        .list()
        .limit(2)
        .pages()
        .try_collect()
        .await
        .unwrap();
    let counts: Vec<usize> = pages.iter().map(|page| page.items.len()).collect();
    assert_eq!(counts, [2, 2, 1]);
    let all = everywhere.list().limit(2).all().await.unwrap();
    assert_eq!(all.items.len(), 5);
    let some = flunders
        .list()
        .labels("app in (c,d)")
        .fields("metadata.name!=c");
    let names: Vec<String> = some
        .stream()
        .map_ok(|f| f.name().to_owned())
        .try_collect()
        .await
        .unwrap();
    assert_eq!(names, ["d"]);
    let exact = flunders.list().resource_version(all.resource_version());
    let exact = exact.version_match(VersionMatch::Exact).await.unwrap();
    assert_eq!(exact.items.len(), 5);

    let deleted = flunders.delete("c").uid("other").await.unwrap_err();
    assert!(deleted.is_conflict(), "{deleted}");
    let deletion = flunders.delete("c").await.unwrap();
    assert!(matches!(deletion, Deletion::Done(_)), "{deletion:?}");
    assert!(flunders.delete("c").await.unwrap_err().is_not_found());
    let rest = flunders.delete_collection().labels("app=d").await.unwrap();
    assert_eq!(rest.items.len(), 1);
    flunders.delete_collection().await.unwrap();

    let mut found = Vec::new();
    while found.last().is_none_or(|last| last != "-e") {
        let event = tokio::time::timeout(Duration::from_secs(20), events.next());
        found.push(match event.await.unwrap().unwrap().unwrap() {
            WatchEvent::Added(flunder) => format!("+{}", flunder.name()),
            WatchEvent::Deleted(flunder) => format!("-{}", flunder.name()),
            WatchEvent::Modified(_) | WatchEvent::Bookmark(_) => continue,
            WatchEvent::Undecodable(other) => panic!("{}", other.error),
        });
    }
    found.sort();
    assert_eq!(
        found,
        [
            "+a", "+applied", "+c", "+d", "+e", "-a", "-applied", "-c", "-d", "-e"
        ]
    );
    let late = everywhere.watch().from(FUTURE).await.unwrap();
    drop(late);

    let fischers = client.cluster::<Fischer>();
    let created = fischers.create(&Fischer::default_named("f")).await.unwrap();
    assert_eq!(created.namespace(), "");
    fischers.delete("f").await.unwrap();
}

trait Named {
    fn default_named(name: &str) -> Self;
}

impl Named for Fischer {
    fn default_named(name: &str) -> Self {
        Self {
            metadata: apiloom_meta::ObjectMeta {
                name: Some(name.to_owned()),
                ..Default::default()
            },
            disallowed_flunders: Vec::new(),
        }
    }
}

#[tokio::test]
async fn every_verb_works_in_process() {
    let server = server().await;
    every_verb(&server.client()).await;
    server.stop().await;
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark() {
    let server = server().await;
    let flunders = server.client().namespaced::<Flunder>("default");
    flunders.create(&flunder("a")).await.unwrap();
    let mut events = flunders.watch().initial_events().await.unwrap();
    let first = events.next().await.unwrap().unwrap();
    assert!(matches!(first, WatchEvent::Added(_)));
    let WatchEvent::Bookmark(end) = events.next().await.unwrap().unwrap() else {
        panic!("no bookmark after the object");
    };
    assert!(end.ends_initial_events && !end.resource_version.is_empty());
    drop(events);
    server.stop().await;
}

#[tokio::test]
async fn a_watch_ends_when_the_server_stops() {
    let server = server().await;
    let flunders = server.client().namespaced::<Flunder>("default");
    let mut events = flunders.watch().await.unwrap();
    // The server waits for its clients to read to the end.
    let (end, ()) = tokio::join!(events.next(), server.stop());
    assert!(end.is_none(), "{end:?}");
}

#[tokio::test]
async fn a_version_of_the_future_is_too_large() {
    let server = server().await;
    let flunders = server.client().namespaced::<Flunder>("default");
    let future = flunders
        .list()
        .resource_version(FUTURE)
        .without_retry()
        .await;
    assert!(future.unwrap_err().is_too_large_resource_version());
    server.stop().await;
}

#[tokio::test]
async fn an_anonymous_client_is_refused() {
    let server = server().await;
    let other = server
        .client()
        .rebuild()
        .header("authorization", "Bearer wrong");
    let error = other
        .build()
        .unwrap()
        .all_namespaces::<Flunder>()
        .list()
        .await;
    let error: Error = error.unwrap_err();
    assert!(error.is_unauthorized(), "{error}");
    server.stop().await;
}

#[tokio::test]
async fn objects_without_a_rust_type_are_found_read_and_written() {
    let server = server().await;
    let mapper = Mapper::new(server.client());
    let found = mapper.resource("fl").await.unwrap();
    assert!(found.is_namespaced && found.has_verb("watch"));
    assert_eq!(found.subresources, ["status"]);
    let fischer = mapper.kind("wardle.example.com", Some("v1alpha1"), "Fischer");
    assert!(!fischer.await.unwrap().is_namespaced);
    assert!(mapper.resource("none").await.is_err());

    let flunders = server
        .client()
        .dynamic_in("default", found.resource.clone());
    let mut object = DynamicObject::new(&found.resource, "a");
    object.data.insert("spec".to_owned(), json!({}));
    let created = flunders.create(&object).await.unwrap();
    assert_eq!(created.kind, "Flunder");
    assert_eq!(flunders.get("a").await.unwrap(), created);
    let mut item = flunders.list().await.unwrap().items.remove(0);
    item.metadata
        .labels
        .insert("seen".to_owned(), "true".to_owned());
    flunders.update(&item).await.unwrap();

    let metadata = flunders.metadata_only();
    let mut events = metadata.watch().initial_events().await.unwrap();
    let WatchEvent::Added(added) = events.next().await.unwrap().unwrap() else {
        panic!("no object first");
    };
    assert_eq!((added.name(), added.label("seen")), ("a", Some("true")));
    assert!(!added.metadata.managed_fields.is_empty());
    assert_eq!(
        metadata.list().await.unwrap().items,
        std::slice::from_ref(&added)
    );
    assert_eq!(metadata.get("a").await.unwrap(), added);
    drop(events);
    server.stop().await;
}

#[tokio::test]
async fn the_scale_of_an_object_is_read_and_written() {
    let server = TestServer::builder().install(workload_kinds::generated::install);
    let server = server.build().await.unwrap();
    let workloads = server.client().namespaced::<Workload>("default");
    let workload = Workload {
        metadata: apiloom_meta::ObjectMeta {
            name: Some("a".to_owned()),
            ..Default::default()
        },
        spec: WorkloadSpec {
            replicas: Some(2),
            image: "shop".to_owned(),
        },
        status: None,
    };
    let mut created = workloads.create(&workload).await.unwrap();
    created.status = Some(WorkloadStatus {
        replicas: Some(1),
        selector: Some("app=shop".to_owned()),
    });
    workloads.update_status(&created).await.unwrap();

    let mut scale = workloads.scale().get("a").await.unwrap();
    assert_eq!((scale.spec.replicas, scale.status.replicas), (2, 1));
    assert_eq!(scale.status.selector, "app=shop");
    assert_eq!(scale.metadata.uid, created.metadata.uid);
    let stale = scale.clone();
    scale.spec.replicas = 5;
    let written = workloads.scale().update("a", &scale).await.unwrap();
    assert_eq!((written.spec.replicas, written.status.replicas), (5, 1));
    assert_eq!(workloads.get("a").await.unwrap().spec.replicas, Some(5));

    let conflict = workloads.scale().update("a", &stale).await.unwrap_err();
    assert!(conflict.is_conflict(), "{conflict}");
    // Without a resourceVersion the last one wins.
    let dry = workloads.scale().update("a", &Scale::new("a", 7)).dry_run();
    assert_eq!(dry.await.unwrap().spec.replicas, 7);
    let patch = Patch::merge(&json!({"spec": {"replicas": 6}}));
    let patched = workloads.scale().patch("a", patch).await.unwrap();
    assert_eq!(patched.spec.replicas, 6);
    let refused = workloads.scale().update("a", &Scale::new("a", 101)).await;
    assert!(refused.unwrap_err().is_invalid());
    let missing = workloads.scale().get("none").await.unwrap_err();
    assert!(missing.is_not_found(), "{missing}");
    // The other version has the same numbers in other fields.
    let older = server.client();
    let older = older.namespaced::<workload_kinds::v1beta1::Workload>("default");
    assert_eq!(older.scale().get("a").await.unwrap().spec.replicas, 6);
    server.stop().await;
}
