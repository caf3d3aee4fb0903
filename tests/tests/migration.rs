//! `apiloom store migrate`: stored objects are rewritten while clients write, over kills of the server.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use apiloom_storage::{ListRequest, Storage};
use apiloom_tests::wardle::{ALL_FLUNDERS, FLUNDERS};
use apiloom_tests::{Backend, Client, Cluster, Kubectl, Server, build};
use serde_json::{Value, json};
use tokio::task::JoinSet;

const STORED: &str = "wardle.example.com/v1alpha1";
const OTHER: &str = "wardle.example.com/v1beta1";

/// Number of objects: the migration of all of them takes long enough to be interrupted.
const OBJECTS: usize = 2_000;

/// Number of objects that clients write meanwhile.
const WRITTEN: usize = 40;

fn name(number: usize) -> String {
    format!("f{number:04}")
}

/// Runs `apiloom store migrate` on a server; to its end.
fn migrate(kubeconfig: &Path, args: &[&str]) -> Output {
    let kubectl = Kubectl::new("1.36", kubeconfig).command(&[]);
    let mut command = Command::new(build("apiloom"));
    command
        .args(["store", "migrate", "--kubeconfig"])
        .arg(kubeconfig)
        .arg("--kubectl")
        .arg(kubectl.get_program())
        .args(args);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The standard output of a migration that ended well.
fn migrated(kubeconfig: &Path, args: &[&str]) -> String {
    let output = migrate(kubeconfig, args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Puts flunders into a store in the version that is not the storage version, as a server of another release would.
async fn plant(store: &Arc<dyn Storage>, prefix: &str, count: usize) {
    for number in 0..count {
        let object = json!({
            "kind": "Flunder", "apiVersion": OTHER,
            "metadata": {"name": name(number), "namespace": "default", "uid": format!("u{number}"), "generation": 3,
                "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"flunderReference": "other", "referenceType": "Flunder"},
        });
        let key = format!(
            "{prefix}/registry/wardle.example.com/flunders/default/{}",
            name(number)
        );
        store
            .create(&key, object.to_string().into(), None)
            .await
            .unwrap();
    }
}

/// The number of stored flunders by `apiVersion`.
async fn stored_versions(store: &Arc<dyn Storage>, prefix: &str) -> BTreeMap<String, usize> {
    let request = ListRequest {
        prefix: format!("{prefix}/registry/wardle.example.com/flunders/"),
        ..ListRequest::default()
    };
    let mut versions = BTreeMap::new();
    for entry in store.list(request).await.unwrap().entries {
        let object: Value = serde_json::from_slice(&entry.value).unwrap();
        let version = object["apiVersion"].as_str().unwrap().to_owned();
        *versions.entry(version).or_default() += 1;
    }
    versions
}

/// Clients that count in objects, each in its own.
struct Writers {
    tasks: JoinSet<(String, u64)>,
    stop: Arc<AtomicBool>,
}

impl Writers {
    /// Starts them; a client counts on from the number in its object.
    fn start(client: &Client) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        for number in (0..OBJECTS).step_by(OBJECTS / WRITTEN) {
            let (client, stop) = (client.clone(), Arc::clone(&stop));
            tasks.spawn(async move {
                let path = format!("{FLUNDERS}/{}", name(number));
                let mut count = count_of(&client.get(&path).await.json());
                while !stop.load(Ordering::Relaxed) {
                    let patch =
                        json!({"metadata": {"annotations": {"count": (count + 1).to_string()}}});
                    let header = [("content-type", "application/merge-patch+json")];
                    // An error means that the server was killed.
                    let answer = client
                        .try_call("PATCH", &path, &header, patch.to_string())
                        .await;
                    let Ok(answer) = answer else { break };
                    assert_eq!(answer.code, 200, "{}", answer.text());
                    count += 1;
                }
                (name(number), count)
            });
        }
        Self { tasks, stop }
    }

    /// Stops them; returns what each has counted.
    async fn stop(self) -> Vec<(String, u64)> {
        self.stop.store(true, Ordering::Relaxed);
        self.tasks.join_all().await
    }
}

fn count_of(object: &Value) -> u64 {
    let count = object["metadata"]["annotations"]["count"].as_str();
    count.map_or(0, |count| count.parse().unwrap())
}

/// Checks that objects have what was counted, or one more: of a kill, the last write may have succeeded without an answer.
async fn check_counts(client: &Client, counted: &[(String, u64)], more: u64) {
    assert_eq!(counted.len(), WRITTEN);
    for (name, count) in counted {
        let object = client.get(&format!("{FLUNDERS}/{name}")).await.json();
        let stored = count_of(&object);
        assert!(
            (*count..=count + more).contains(&stored),
            "{name}: {stored}, counted {count}"
        );
        assert_eq!(object["metadata"]["generation"], 3, "{object}");
    }
}

async fn an_interrupted_migration_continues(backend: Backend) {
    let mut cluster = Cluster::start_alone(backend, &[]);
    let prefix = cluster.prefix().to_owned();
    cluster.stop();
    let store = cluster.store().await;
    plant(&store, &prefix, OBJECTS).await;
    store.close().await;
    drop(store);

    cluster.start_again();
    let before = cluster.client().list(ALL_FLUNDERS).await;
    let shown = migrated(cluster.server().kubeconfig(), &["--dry-run"]);
    let of_flunders = format!(
        "{OBJECTS} of {OBJECTS} objects to rewrite as v1alpha1; they were stored as v1beta1 ({OBJECTS})"
    );
    assert!(shown.contains(&of_flunders), "{shown}");

    // The server is killed when some objects are rewritten; the events of the watch are those of the migration or of
    // writers.
    let writers = Writers::start(&cluster.client());
    let revision = before["metadata"]["resourceVersion"].as_str().unwrap();
    let watched = format!("{ALL_FLUNDERS}?watch=1&resourceVersion={revision}");
    let mut events = cluster.client().watch(&watched).await;
    let kubeconfig = cluster.server().kubeconfig().to_owned();
    let running = tokio::task::spawn_blocking(move || migrate(&kubeconfig, &[]));
    let is_of_migration = |event: &Value| event["object"]["metadata"]["annotations"].is_null();
    let mut rewritten = 0;
    while rewritten < OBJECTS / 4 {
        rewritten += usize::from(is_of_migration(&events.event().await));
    }
    cluster.kill();
    let output = running.await.unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    let counted = writers.stop().await;

    let store = cluster.store().await;
    let versions = stored_versions(&store, &prefix).await;
    assert!(versions[STORED] >= OBJECTS / 4, "{versions:?}");
    assert!(versions[OTHER] > 0, "it was killed too late: {versions:?}");
    store.close().await;
    drop(store);

    cluster.start_again();
    check_counts(&cluster.client(), &counted, 1).await;
    let writers = Writers::start(&cluster.client());
    let replica = cluster.replica();
    let servers = [Some(cluster.server()), replica.as_ref()];
    let migrations = servers.into_iter().flatten().map(|server| {
        let kubeconfig = server.kubeconfig().to_owned();
        tokio::task::spawn_blocking(move || {
            migrated(&kubeconfig, &["--resource=flunders.wardle.example.com"])
        })
    });
    for migration in migrations.collect::<Vec<_>>() {
        let shown = migration.await.unwrap();
        assert!(
            shown.contains(&format!("of {OBJECTS} objects rewritten as v1alpha1")),
            "{shown}"
        );
    }
    let counted = writers.stop().await;
    check_counts(&cluster.client(), &counted, 0).await;
    let after = cluster.client().get(ALL_FLUNDERS).await.json();
    let without_versions = |list: &Value| {
        let mut items = list["items"].as_array().unwrap().clone();
        for item in &mut items {
            let metadata = item["metadata"].as_object_mut().unwrap();
            for field in ["resourceVersion", "annotations", "managedFields"] {
                metadata.remove(field);
            }
        }
        items
    };
    assert_eq!(without_versions(&before), without_versions(&after));
    let shown = migrated(cluster.server().kubeconfig(), &["--dry-run"]);
    assert!(
        shown.contains(&format!("0 of {OBJECTS} objects to rewrite")),
        "{shown}"
    );
    drop(replica);
    cluster.stop();
    let store = cluster.store().await;
    assert_eq!(
        stored_versions(&store, &prefix).await,
        [(STORED.to_owned(), OBJECTS)].into()
    );
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_migration_of_the_embedded_store_continues() {
    an_interrupted_migration_continues(Backend::Embedded).await;
}

#[cfg(feature = "etcd")]
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_migration_over_etcd_continues() {
    an_interrupted_migration_continues(Backend::Etcd).await;
}

/// A changed `--storage-media-type` makes all objects stale that it stores in another format.
async fn a_migration_changes_the_storage_media_type(backend: Backend) {
    let [json_type, protobuf_type] = ["json", "vnd.kubernetes.protobuf"]
        .map(|of| format!("--storage-media-type=application/{of}"));
    let mut cluster = Cluster::start_alone(backend, &[&json_type]);
    for number in 0..3 {
        let flunder = json!({"metadata": {"name": name(number)}, "spec": {"reference": "x"}});
        assert_eq!(cluster.client().post(FLUNDERS, &flunder).await.code, 201);
    }
    let before = cluster.client().list(ALL_FLUNDERS).await;
    for (media_type, is_protobuf) in [(&protobuf_type, true), (&json_type, false)] {
        cluster.restart_with(media_type);
        let kubeconfig = cluster.server().kubeconfig().to_owned();
        for rewritten in [3, 0] {
            let shown = migrated(&kubeconfig, &["--resource=flunders.wardle.example.com"]);
            let line = format!(
                "{rewritten} of 3 objects rewritten as v1alpha1; they were stored as v1alpha1 (3)"
            );
            assert!(shown.contains(&line), "{shown}");
        }
        let after = cluster.client().get(ALL_FLUNDERS).await.json();
        let items = |list: &Value| {
            let mut items = list["items"].clone();
            for item in items.as_array_mut().unwrap() {
                item["metadata"]["resourceVersion"] = Value::Null;
            }
            items
        };
        assert_eq!(items(&before), items(&after));
        cluster.stop();
        let store = cluster.store().await;
        let request = ListRequest {
            prefix: format!("{}/registry/wardle.example.com/flunders/", cluster.prefix()),
            ..ListRequest::default()
        };
        for entry in store.list(request).await.unwrap().entries {
            assert_eq!(
                entry.value.starts_with(b"k8s\0"),
                is_protobuf,
                "{:?}",
                entry.value
            );
        }
        store.close().await;
        drop(store);
        cluster.start_again();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_changes_the_storage_media_type_of_the_embedded_store() {
    a_migration_changes_the_storage_media_type(Backend::Embedded).await;
}

#[cfg(feature = "etcd")]
#[tokio::test(flavor = "multi_thread")]
async fn a_migration_changes_the_storage_media_type_in_etcd() {
    a_migration_changes_the_storage_media_type(Backend::Etcd).await;
}

#[tokio::test]
async fn only_who_may_post_there_migrates() {
    let server = Server::start(&["--storage-backend=memory"]);
    let path = "/storage/migrate";
    assert_eq!(server.client().post(path, &json!({})).await.code, 200);
    let refused = server.client().anonymous().post(path, &json!({})).await;
    assert_eq!(refused.code, 403);
    let message = "forbidden: User \"system:anonymous\" cannot post path \"/storage/migrate\"";
    assert_eq!(refused.json()["message"], message);
}

#[tokio::test]
async fn a_server_that_refuses_or_is_gone_is_an_error() {
    let server = Server::start(&["--storage-backend=memory"]);
    let kubeconfig = server.kubeconfig().to_owned();
    let check = |args: &[&str], expected: &str| {
        let output = migrate(&kubeconfig, args);
        assert_eq!(output.status.code(), Some(1));
        let shown = text(&output.stderr);
        assert!(shown.contains(expected), "{shown}");
    };
    let unknown = "no objects of the resource \"nothing.example.com\" are stored";
    check(&["--resource=nothing.example.com"], unknown);
    check(&["--context=none"], "context \"none\" does not exist");
    let _dir = server.stop();
    check(&[], "connection to the server");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_ends_a_migration() {
    let mut cluster = Cluster::start(Backend::Embedded);
    cluster.stop();
    let store = cluster.store().await;
    plant(&store, "", 10).await;
    store.close().await;
    drop(store);
    cluster.start_again();
    let list = cluster.client().list(ALL_FLUNDERS).await;
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{ALL_FLUNDERS}?watch=1&resourceVersion={revision}");
    let mut events = cluster.client().watch(&path).await;
    let kubeconfig = cluster.server().kubeconfig().to_owned();
    let slow = ["--max-writes-per-second=1"];
    let running = tokio::task::spawn_blocking(move || migrate(&kubeconfig, &slow));
    events.event().await;
    cluster.stop();
    let output = running.await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let shown = text(&output.stderr);
    assert!(shown.contains("run it again to continue"), "{shown}");
    let store = cluster.store().await;
    let versions = stored_versions(&store, "").await;
    assert!(
        versions.contains_key(OTHER),
        "the stop waited for all of it: {versions:?}"
    );
    store.close().await;
}
