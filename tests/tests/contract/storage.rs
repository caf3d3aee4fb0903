//! Keys and values in the store. The tests read the store itself, after the server has ended.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::process::Command;

use apiloom::meta::kind::Resource as _;
use apiloom_meta::codec::{InvalidText, ProtobufBody};
use apiloom_storage::{Embedded, EmbeddedConfig, ListRequest, Storage as _};
use apiloom_tests::build;
use serde_json::json;

use crate::*;

on_each_backend![
    c_141_keys_are_registry_resource_namespace_name,
    c_142_stored_bytes_hold_no_resource_version_which_is_the_revision_of_the_write,
    c_142_values_are_stored_in_the_storage_media_type_and_read_by_their_prefix,
    c_142_replicas_with_different_storage_media_types_read_and_watch_each_other,
    c_142_history_and_times_to_live_do_not_depend_on_the_storage_media_type,
];

#[tokio::test(flavor = "multi_thread")]
async fn c_142_a_store_with_both_media_types_is_checked_exported_and_imported() {
    a_mixed_store_is_moved().await;
}

/// The flags for the two media types.
const MEDIA_TYPES: [&str; 2] = [
    "--storage-media-type=application/json",
    "--storage-media-type=application/vnd.kubernetes.protobuf",
];

/// The first bytes of a value in Protobuf: the envelope with the type of a stored flunder.
const PROTOBUF: &[u8] = b"k8s\0\x0a\x26\x0a\x1bwardle.example.com/v1alpha1\x12\x07Flunder\x12";

/// The JSON of a stored value of wardle.
fn json_of(value: &[u8]) -> Value {
    if let Ok(json) = serde_json::from_slice(value) {
        return json;
    }
    let body = ProtobufBody::parse(value).unwrap();
    let def = match (&*body.api_version, &*body.kind) {
        ("wardle.example.com/v1alpha1", "Flunder") => wardle::v1alpha1::Flunder::definition(),
        ("wardle.example.com/v1alpha1", "Fischer") => wardle::v1alpha1::Fischer::definition(),
        ("v1", "Namespace") => apiloom::apis::core::v1::Namespace::definition(),
        other => panic!("{other:?} was not stored"),
    };
    let json = body.to_json(def.protobuf.unwrap(), InvalidText::Refuse, 1 << 20);
    serde_json::from_slice(&json.unwrap()).unwrap()
}

/// The stored values below a prefix, by the last part of their keys.
async fn values(cluster: &Cluster, prefix: &str) -> BTreeMap<String, Vec<u8>> {
    let store = cluster.store().await;
    let request = ListRequest {
        prefix: prefix.to_owned(),
        ..ListRequest::default()
    };
    let page = store.list(request).await.unwrap();
    store.close().await;
    let entries = page.entries.iter();
    let name = |key: &str| key.rsplit('/').next().unwrap().to_owned();
    entries
        .map(|entry| (name(&entry.key), entry.value.to_vec()))
        .collect()
}

/// Runs a server with its own store, writes objects, stops it, and returns every stored key with its value.
async fn stored(on: Backend) -> (Vec<Value>, Vec<(String, u64, Value)>) {
    let mut cluster = Cluster::start_alone(on, &[]);
    let client = cluster.client();
    let mut objects = vec![created(&client, FLUNDERS, &flunder("a")).await];
    let fischer = json!({"metadata": {"name": "f"}, "disallowedFlunders": []});
    objects.push(created(&client, FISCHERS, &fischer).await);
    objects.push(created(&client, FLUNDERS_BETA, &flunder_beta("b")).await);
    cluster.stop();
    let store = cluster.store().await;
    let request = ListRequest {
        prefix: "/registry/".to_owned(),
        ..ListRequest::default()
    };
    let page = store.list(request).await.unwrap();
    // The lease of servers that share a store is not an object, and the server makes APIServices itself.
    let others = ["/registry/apiloom/", "/registry/apiregistration.k8s.io/"];
    let is_other = |key: &str| others.iter().any(|prefix| key.starts_with(prefix));
    let entries = page.entries.iter().filter(|entry| !is_other(&entry.key));
    let found = entries
        .map(|entry| (entry.key.clone(), entry.revision.0, json_of(&entry.value)))
        .collect();
    store.close().await;
    (objects, found)
}

async fn c_141_keys_are_registry_resource_namespace_name(on: Backend) {
    let (_, stored) = stored(on).await;
    let keys: Vec<&str> = stored.iter().map(|(key, ..)| key.as_str()).collect();
    let expected = [
        "/registry/namespaces/default",
        "/registry/namespaces/kube-node-lease",
        "/registry/namespaces/kube-public",
        "/registry/namespaces/kube-system",
        "/registry/wardle.example.com/fischers/f",
        "/registry/wardle.example.com/flunders/default/a",
        "/registry/wardle.example.com/flunders/default/b",
    ];
    assert_eq!(keys, expected);
    // A namespace is not confused with one whose name has it as a prefix.
    let (_server, client) = server(on);
    for name in ["ns", "ns2"] {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        created(&client, "/api/v1/namespaces", &namespace).await;
        created(
            &client,
            &format!("/apis/wardle.example.com/v1alpha1/namespaces/{name}/flunders"),
            &flunder(name),
        )
        .await;
    }
    let answer = client
        .get("/apis/wardle.example.com/v1alpha1/namespaces/ns/flunders")
        .await;
    assert_eq!(answer.json()["items"].as_array().unwrap().len(), 1);
}

async fn c_142_stored_bytes_hold_no_resource_version_which_is_the_revision_of_the_write(
    on: Backend,
) {
    let (objects, stored) = stored(on).await;
    for object in objects {
        let name = object["metadata"]["name"].as_str().unwrap();
        let (_, at, value) = stored
            .iter()
            .find(|(key, ..)| key.ends_with(&format!("/{name}")))
            .unwrap();
        assert!(
            value["metadata"].get("resourceVersion").is_none(),
            "{value:#}"
        );
        assert_eq!(
            revision(&object),
            *at,
            "resourceVersion is the revision of the write"
        );
        assert_eq!(
            value["apiVersion"], "wardle.example.com/v1alpha1",
            "stored in the storage version"
        );
        assert_eq!(value["metadata"]["uid"], object["metadata"]["uid"]);
    }
}

async fn c_142_values_are_stored_in_the_storage_media_type_and_read_by_their_prefix(on: Backend) {
    const STORED: &str = "/registry/wardle.example.com/flunders/";
    let [json_type, protobuf_type] = MEDIA_TYPES;
    let mut cluster = Cluster::start_alone(on, &[json_type]);
    let mut of_red = flunder("a");
    of_red["metadata"]["labels"] = json!({"color": "red"});
    of_red["spec"] = json!({"reference": "b", "referenceType": "Fischer"});
    let mut expected = BTreeMap::new();
    // The name of an object says in which format it was written. Each server creates one, and reads all.
    let rounds = [
        (json_type, "a"),
        (protobuf_type, "b"),
        (json_type, "c"),
        (protobuf_type, "d"),
    ];
    for (round, (media_type, name)) in rounds.into_iter().enumerate() {
        if round > 0 {
            cluster.restart_with(media_type);
        }
        let client = cluster.client();
        let listed = revision(&client.get(FLUNDERS).await.json());
        of_red["metadata"]["name"] = name.into();
        expected.insert(name, created(&client, FLUNDERS, &of_red).await);
        let all: Vec<Value> = expected.values().cloned().collect();
        let without_type = all.iter().map(|object| {
            let mut item = object.clone();
            item.as_object_mut().unwrap().remove("kind");
            item.as_object_mut().unwrap().remove("apiVersion");
            item
        });
        let items = Value::Array(without_type.collect());
        for query in ["", "?labelSelector=color%3Dred", "?resourceVersion=0"] {
            let answer = client.get(&format!("{FLUNDERS}{query}")).await;
            assert_eq!(answer.json()["items"], items, "{round} {query}");
        }
        for object in &all {
            let name = object["metadata"]["name"].as_str().unwrap();
            assert_eq!(
                client.get(&format!("{FLUNDERS}/{name}")).await.json(),
                *object
            );
            let beta = client.get(&format!("{FLUNDERS_BETA}/{name}")).await.json();
            assert_eq!(beta["spec"]["fischerReference"], "b", "{beta}");
        }
        let selected = format!("{FLUNDERS}?watch=1&resourceVersion={listed}&labelSelector=color");
        let mut watch = client.watch(&selected).await;
        assert_eq!(watch.event().await["object"], expected[name]);
        cluster.kill();
        for (name, value) in values(&cluster, STORED).await {
            let is_protobuf = matches!(&*name, "b" | "d");
            assert_eq!(
                value.starts_with(PROTOBUF),
                is_protobuf,
                "{name}: {value:?}"
            );
            let mut object = expected[&*name].clone();
            object["metadata"]
                .as_object_mut()
                .unwrap()
                .remove("resourceVersion");
            assert_eq!(json_of(&value), object);
        }
        cluster.start_again();
    }
    // A write without a change stores the object in the format of the server, as kube-apiserver does.
    let client = cluster.client();
    for name in ["a", "b"] {
        let path = format!("{FLUNDERS}/{name}");
        let answer = client.put(&path, &expected[name]).await;
        assert_eq!(answer.code, 200, "{}", answer.text());
        let is_rewritten = revision(&answer.json()) > revision(&expected[name]);
        assert_eq!(is_rewritten, name == "a", "{name}");
    }
    let deleted = client.delete(&format!("{FLUNDERS}/c"), &Value::Null).await;
    assert_eq!(deleted.code, 200, "{}", deleted.text());
    cluster.stop();
    let values = values(&cluster, STORED).await;
    assert_eq!(values.keys().collect::<Vec<_>>(), ["a", "b", "d"]);
    for (name, value) in values {
        assert!(value.starts_with(PROTOBUF), "{name}: {value:?}");
    }
}

async fn c_142_replicas_with_different_storage_media_types_read_and_watch_each_other(on: Backend) {
    let [json_type, protobuf_type] = MEDIA_TYPES;
    let mut cluster = Cluster::start_alone(on, &[json_type]);
    let one = cluster.client();
    let Some(replica) = cluster.replica_with(protobuf_type) else {
        // An embedded store has one server at a time: the next one has the other setting.
        let written = created(&one, FLUNDERS, &flunder("a")).await;
        cluster.restart_with(protobuf_type);
        let other = cluster.client();
        assert_eq!(other.get(&format!("{FLUNDERS}/a")).await.json(), written);
        return;
    };
    let other = replica.client();
    let listed = revision(&one.get(FLUNDERS).await.json());
    let watched = format!("{FLUNDERS}?watch=1&resourceVersion={listed}");
    let mut watches = [one.watch(&watched).await, other.watch(&watched).await];
    for (name, writer) in [("a", &one), ("b", &other)] {
        let path = format!("{FLUNDERS}/{name}");
        let written = created(writer, FLUNDERS, &flunder(name)).await;
        let patch = json!({"metadata": {"labels": {"name": name}}});
        for reader in [&one, &other] {
            assert_eq!(reader.get(&path).await.json(), written);
        }
        let patched = one.merge(&path, &patch).await.json();
        for watch in &mut watches {
            for expected in [&written, &patched] {
                assert_eq!(watch.event().await["object"], *expected);
            }
        }
        let patched_again = other
            .merge(&path, &json!({"spec": {"reference": name}}))
            .await;
        let patched_again = patched_again.json();
        assert_eq!(one.get(&path).await.json(), patched_again);
        for watch in &mut watches {
            assert_eq!(watch.event().await["object"], patched_again);
        }
    }
}

/// Events of the past have the previous values, in Protobuf too: from the cache, and from the store by a server that did not
/// write them. Objects that expire end as they do in JSON.
async fn c_142_history_and_times_to_live_do_not_depend_on_the_storage_media_type(on: Backend) {
    const EVENTS: &str = "/api/v1/namespaces/default/events";
    let [_, protobuf_type] = MEDIA_TYPES;
    let flags = [
        "--event-ttl=3s",
        protobuf_type,
        "--watch-cache-history-bytes=1000000",
    ];
    let mut cluster = Cluster::start_alone(on, &flags);
    let client = cluster.client();
    let listed = revision(&client.get(FLUNDERS).await.json());
    let mut red = flunder("a");
    red["metadata"]["labels"] = json!({"color": "red"});
    let red = created(&client, FLUNDERS, &red).await;
    let path = format!("{FLUNDERS}/a");
    let green = json!({"metadata": {"labels": {"color": "green"}}});
    let green = client.merge(&path, &green).await.json();
    assert_eq!(client.delete(&path, &Value::Null).await.code, 200);
    let check = async |client: &Client| {
        let watched = |color: &str| {
            format!("{FLUNDERS}?watch=1&resourceVersion={listed}&labelSelector=color%3D{color}")
        };
        for (color, content) in [("red", &red), ("green", &green)] {
            let mut watch = client.watch(&watched(color)).await;
            let added = watch.event().await;
            assert_eq!(
                (&added["type"], &added["object"]),
                (&json!("ADDED"), content)
            );
            let deleted = watch.event().await;
            assert_eq!(deleted["type"], "DELETED", "{deleted}");
            let of = |object: &Value| {
                let mut object = object.clone();
                object["metadata"]["resourceVersion"] = Value::Null;
                object
            };
            assert_eq!(of(&deleted["object"]), of(content));
        }
    };
    check(&client).await;

    let event = json!({"metadata": {"name": "brief"}, "reason": "Tested", "involvedObject": {"namespace": "default"}});
    let event = created(&client, EVENTS, &event).await;
    let watched = format!("{EVENTS}?watch=1&resourceVersion={}", revision(&event));
    let key = format!("{}/registry/events/default/brief", cluster.prefix());
    // Then from the store, unless all servers of this run do so.
    let last = if is_cached() {
        "--watch-cache=false"
    } else {
        flags[2]
    };
    cluster.restart_with(last);
    let client = cluster.client();
    check(&client).await;
    let mut watch = client.watch(&watched).await;
    let deleted = watch.event().await;
    assert_eq!(deleted["type"], "DELETED");
    assert_eq!(deleted["object"]["reason"], event["reason"]);
    assert_eq!(
        deleted["object"]["metadata"]["uid"],
        event["metadata"]["uid"]
    );
    cluster.stop();
    let store = cluster.store().await;
    assert!(store.get(&key).await.unwrap().0.is_none());
    store.close().await;
}

/// Runs `apiloom store`; returns its standard output.
fn store_tool(command: &str, dir: &Path, input: Option<File>) -> Vec<u8> {
    let mut tool = Command::new(build("apiloom"));
    tool.args(["store", command]).arg(dir);
    if let Some(input) = input {
        tool.stdin(input);
    }
    let output = tool.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {errors}");
    output.stdout
}

async fn a_mixed_store_is_moved() {
    const STORED: &str = "/registry/wardle.example.com/flunders/";
    let [json_type, protobuf_type] = MEDIA_TYPES;
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [from, to] = dirs.each_ref().map(|dir| dir.path().join("data"));
    let start = |data: &Path, media_type| Server::start_in(data, &[media_type]);
    let mut listed = Value::Null;
    for (name, media_type) in [("a", json_type), ("b", protobuf_type)] {
        let server = start(&from, media_type);
        created(&server.client(), FLUNDERS, &flunder(name)).await;
        listed = server.client().get(FLUNDERS).await.json()["items"].clone();
        drop(server);
    }
    let checked = store_tool("check", &from.join("store"), None);
    let checked = String::from_utf8(checked).unwrap();
    assert!(checked.contains("no damage"), "{checked}");
    let lines = dirs[0].path().join("lines");
    std::fs::write(&lines, store_tool("export", &from.join("store"), None)).unwrap();
    store_tool(
        "import",
        &to.join("store"),
        Some(File::open(&lines).unwrap()),
    );
    let mut values = Vec::new();
    for dir in [&from, &to] {
        let store = Embedded::open(dir.join("store"), EmbeddedConfig::default()).unwrap();
        let request = ListRequest {
            prefix: STORED.to_owned(),
            ..ListRequest::default()
        };
        let page = store.list(request).await.unwrap();
        store.close().await;
        let entries = page.entries.into_iter();
        values.push(
            entries
                .map(|entry| (entry.key, entry.value))
                .collect::<Vec<_>>(),
        );
    }
    assert_eq!(values[0], values[1]);
    let is_protobuf = values[0]
        .iter()
        .map(|(_, value)| value.starts_with(PROTOBUF));
    assert_eq!(is_protobuf.collect::<Vec<_>>(), [false, true]);
    let server = start(&to, json_type);
    let items = server.client().get(FLUNDERS).await.json()["items"].clone();
    let without_revisions = |items: &Value| {
        let mut items = items.clone();
        for item in items.as_array_mut().unwrap() {
            item["metadata"]["resourceVersion"] = Value::Null;
        }
        items
    };
    assert_eq!(without_revisions(&items), without_revisions(&listed));
}
