//! Watches, watchers, reflectors and controllers, over restarts of the server.

use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{
    DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::core::PartialObjectMeta;
use kube::runtime::controller::{Action, Controller};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::watcher::{self, Event, watcher};
use kube::runtime::{WatchStreamExt as _, finalizer, reflector};
use kube::{Api, Error, Resource, ResourceExt};
use serde_json::json;

use crate::{Fixture, config_map, item};

/// Timeout for what has to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// Changes one object, creates one and deletes one.
async fn change(maps: &Api<ConfigMap>) {
    let patch = Patch::Merge(json!({"data": {"i": "changed"}}));
    let params = PatchParams::default();
    maps.patch(&item(3), &params, &patch).await.unwrap();
    let last = config_map("last", &json!({}));
    maps.create(&PostParams::default(), &last).await.unwrap();
    let params = DeleteParams::default();
    maps.delete(&item(4), &params).await.unwrap();
}

/// A watch that its reader resumes at the last version when it breaks.
#[tokio::test(flavor = "multi_thread")]
async fn watches_are_resumed_after_a_restart() {
    let mut fixture = Fixture::start().await;
    let maps = fixture.config_maps();
    let list = maps.list(&ListParams::default()).await.unwrap();
    let mut version = list.metadata.resource_version.unwrap();
    let mut expected: Vec<String> = (0..10).map(|i| format!("added {}", item(i))).collect();
    expected.extend(
        [
            "changed item-003",
            "added last",
            "deleted item-004",
            "deleted last",
        ]
        .map(String::from),
    );
    let (api, count) = (maps.clone(), expected.len());
    let events = tokio::spawn(async move {
        let mut events: Vec<String> = Vec::new();
        while events.len() < count {
            let stream = match api.watch(&WatchParams::default(), &version).await {
                Ok(stream) => stream,
                // Before the server is ready, and while it is down.
                Err(Error::Api(status)) => {
                    assert!(matches!(status.code, 429 | 500 | 503), "{status:?}");
                    continue;
                }
                Err(_) => continue,
            };
            let mut stream = std::pin::pin!(stream);
            while events.len() < count {
                let (kind, object) = match stream.next().await {
                    Some(Ok(WatchEvent::Added(object))) => ("added", object),
                    Some(Ok(WatchEvent::Modified(object))) => ("changed", object),
                    Some(Ok(WatchEvent::Deleted(object))) => ("deleted", object),
                    Some(Ok(WatchEvent::Bookmark(bookmark))) => {
                        version = bookmark.metadata.resource_version;
                        continue;
                    }
                    Some(Ok(WatchEvent::Error(status))) => panic!("{status:?}"),
                    Some(Err(_)) | None => break,
                };
                version = object.resource_version().unwrap();
                events.push(format!("{kind} {}", object.name_any()));
            }
        }
        events
    });
    fixture.fill(10).await;
    fixture.server.restart();
    change(&maps).await;
    fixture.server.kill();
    maps.delete("last", &DeleteParams::default()).await.unwrap();
    let events = tokio::time::timeout(PATIENCE, events).await;
    assert_eq!(events.expect("events come").unwrap(), expected);
}

/// Collects the events of a watcher up to the deletion of `last`, without errors, and counts the lists that are complete.
fn read<K: Resource + Send + 'static>(
    stream: impl Stream<Item = watcher::Result<Event<K>>> + Send + 'static,
    listed: tokio::sync::watch::Sender<usize>,
) -> tokio::task::JoinHandle<Vec<String>> {
    tokio::spawn(async move {
        let mut stream = std::pin::pin!(stream.default_backoff());
        let mut events = Vec::new();
        while events.last().is_none_or(|last| last != "deleted last") {
            let event = match stream.next().await.expect("a watcher does not end") {
                Ok(Event::Init) => "init".to_owned(),
                Ok(Event::InitApply(object)) => format!("initial {}", object.name_any()),
                Ok(Event::InitDone) => {
                    listed.send_modify(|count| *count += 1);
                    "complete".to_owned()
                }
                Ok(Event::Apply(object)) => format!("applied {}", object.name_any()),
                Ok(Event::Delete(object)) => format!("deleted {}", object.name_any()),
                Err(_) => continue,
            };
            events.push(event);
        }
        events
    })
}

/// A watcher lists once, in either way, and resumes without a second list.
#[tokio::test(flavor = "multi_thread")]
async fn watchers_resume_with_and_without_streaming_lists() {
    let mut fixture = Fixture::start().await;
    let maps = fixture.config_maps();
    fixture.fill(10).await;
    let (listed, mut lists) = tokio::sync::watch::channel(0);
    let pages = watcher::Config::default().page_size(3);
    let streaming = watcher::Config::default().streaming_lists();
    let metadata: Api<PartialObjectMeta<ConfigMap>> =
        Api::default_namespaced(fixture.client.clone());
    let readers = [
        read(watcher(maps.clone(), pages), listed.clone()),
        read(watcher(maps.clone(), streaming.clone()), listed.clone()),
        read(watcher(metadata, streaming), listed),
    ];
    let all_listed = tokio::time::timeout(PATIENCE, lists.wait_for(|count| *count == 3)).await;
    all_listed.expect("lists are complete").unwrap();
    fixture.server.restart();
    change(&maps).await;
    fixture.server.kill();
    maps.delete("last", &DeleteParams::default()).await.unwrap();
    let mut expected = vec!["init".to_owned()];
    expected.extend((0..10).map(|i| format!("initial {}", item(i))));
    expected.extend(
        [
            "complete",
            "applied item-003",
            "applied last",
            "deleted item-004",
            "deleted last",
        ]
        .map(String::from),
    );
    for reader in readers {
        let events = tokio::time::timeout(PATIENCE, reader).await;
        assert_eq!(events.expect("events come").unwrap(), expected);
    }
}

/// The store of a reflector is what a list shows.
#[tokio::test(flavor = "multi_thread")]
async fn reflectors_hold_what_a_list_shows() {
    let mut fixture = Fixture::start().await;
    let maps = fixture.config_maps();
    fixture.fill(10).await;
    let (store, writer) = reflector::store();
    let stream = watcher(maps.clone(), watcher::Config::default().streaming_lists());
    let stream = reflector(writer, stream.default_backoff());
    tokio::spawn(stream.for_each(|_| ready(())));
    let ready = tokio::time::timeout(PATIENCE, store.wait_until_ready()).await;
    ready.expect("the store is filled").unwrap();
    fixture.server.kill();
    change(&maps).await;
    let listed = maps.list(&ListParams::default()).await.unwrap();
    let versions =
        |objects: &mut dyn Iterator<Item = &ConfigMap>| -> BTreeMap<String, Option<String>> {
            objects
                .map(|object| (object.name_any(), object.resource_version()))
                .collect()
        };
    let listed = versions(&mut listed.items.iter());
    let same = async {
        while versions(&mut store.state().iter().map(Arc::as_ref)) != listed {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, same)
        .await
        .expect("the store follows");
}

const FINALIZER: &str = "example.com/copies";

/// A secret with the data of a config map, which owns it.
fn copy_of(map: &ConfigMap) -> serde_json::Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": map.name_any(), "ownerReferences": [map.controller_owner_ref(&()).unwrap()]},
        "stringData": map.data,
    })
}

/// Keeps a secret for each config map by applying it, and deletes it at the end.
async fn reconcile(
    map: Arc<ConfigMap>,
    client: Arc<kube::Client>,
) -> Result<Action, finalizer::Error<Error>> {
    let namespace = map.namespace().unwrap();
    let maps: Api<ConfigMap> = Api::namespaced((*client).clone(), &namespace);
    let secrets: Api<Secret> = Api::namespaced((*client).clone(), &namespace);
    finalizer::finalizer(&maps, FINALIZER, map, async |event| match event {
        finalizer::Event::Apply(map) => {
            let params = PatchParams::apply("copies").force();
            secrets
                .patch(&map.name_any(), &params, &Patch::Apply(copy_of(&map)))
                .await?;
            Ok(Action::await_change())
        }
        finalizer::Event::Cleanup(map) => {
            secrets
                .delete(&map.name_any(), &DeleteParams::default())
                .await?;
            Ok(Action::await_change())
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn controllers_reconcile_over_restarts() {
    let mut fixture = Fixture::start().await;
    let maps = fixture.config_maps();
    let secrets: Api<Secret> = Api::default_namespaced(fixture.client.clone());
    fixture.fill(5).await;
    let controller = Controller::new(maps.clone(), watcher::Config::default())
        .owns(secrets.clone(), watcher::Config::default());
    let retry = |_: Arc<ConfigMap>, _: &finalizer::Error<Error>, _: Arc<kube::Client>| {
        Action::requeue(Duration::from_millis(50))
    };
    let client = Arc::new(fixture.client.clone());
    let running = controller
        .run(reconcile, retry, client)
        .for_each(|_| ready(()));
    let running = tokio::spawn(running);
    let copied = |data: &'static str| {
        move |secret: Option<&Secret>| {
            let data_of = |secret: &Secret| secret.data.as_ref()?.get("i").cloned();
            secret
                .and_then(data_of)
                .is_some_and(|found| found.0 == data.as_bytes())
        }
    };
    let wait = async |name: &str, data: &'static str| {
        let copied = await_condition(secrets.clone(), name, copied(data));
        let copied = tokio::time::timeout(PATIENCE, copied).await;
        copied
            .unwrap_or_else(|_| panic!("{name} is copied"))
            .unwrap();
    };
    for (i, data) in ["0", "1", "2", "3", "4"].into_iter().enumerate() {
        wait(&item(i), data).await;
    }
    fixture.server.restart();
    let patch = Patch::Merge(json!({"data": {"i": "changed"}}));
    maps.patch(&item(3), &PatchParams::default(), &patch)
        .await
        .unwrap();
    wait(&item(3), "changed").await;
    // What is deleted is made again, since the controller watches it.
    let lost = secrets
        .delete(&item(2), &DeleteParams::default())
        .await
        .unwrap();
    let lost = lost.either(
        |secret| secret.metadata.uid,
        |status| status.details.map(|details| details.uid),
    );
    let lost = lost.unwrap();
    let is_new =
        |secret: Option<&Secret>| secret.is_some_and(|secret| secret.uid().as_ref() != Some(&lost));
    let new =
        tokio::time::timeout(PATIENCE, await_condition(secrets.clone(), &item(2), is_new)).await;
    new.expect("it is made again").unwrap();
    fixture.server.kill();
    // The controller has to remove its finalizer before an object is gone.
    let going = maps.get(&item(0)).await.unwrap();
    maps.delete(&item(0), &DeleteParams::default())
        .await
        .unwrap();
    let uid = going.uid().unwrap();
    let name = item(0);
    let gone = await_condition(maps.clone(), &name, conditions::is_deleted(&uid));
    tokio::time::timeout(PATIENCE, gone)
        .await
        .expect("it is deleted")
        .unwrap();
    let left = secrets.list(&ListParams::default()).await.unwrap();
    let left: BTreeSet<String> = left.items.iter().map(ResourceExt::name_any).collect();
    assert_eq!(left, (1..5).map(item).collect());
    running.abort();
}
