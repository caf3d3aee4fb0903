//! A kind with an object that cannot be read: the rest of the server goes on without it, and the kind can be deleted.

use std::time::Duration;

use apiloom_storage::{Memory, Storage as _};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::super::super::in_process::{open, read};
use super::super::BuiltIns;
use super::{create, delete};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/jugs.ex.io";
const CHECK: &str = "/healthz/garbage-collector-controller";

/// A definition whose objects are stored in v1.
fn jugs() -> Value {
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {"type": "object"}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "jugs.ex.io"},
        "spec": {
            "group": "ex.io", "scope": "Namespaced", "names": {"plural": "jugs", "kind": "Jug"},
            "versions": [version("v1", true), version("v2", false)],
        },
    })
}

/// Waits, in paused time, until a GET has an answer; returns it.
async fn until(server: &BuiltIns, path: &str, is_met: impl Fn(u16, &str) -> bool) -> String {
    let started = Instant::now();
    loop {
        let (code, text) = read(open(&server.loopback, "GET", path, "").await).await;
        if is_met(code, &text) {
            return text;
        }
        assert!(
            started.elapsed() < Duration::from_secs(120),
            "{path}: {code} {text}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn patch(server: &BuiltIns, path: &str, patch: &Value) -> Value {
    let request = http::Request::patch(path).header("content-type", "application/json-patch+json");
    let body = http_body_util::Full::new(bytes::Bytes::from(patch.to_string()));
    let response = server.loopback.send(request.body(body).unwrap()).await;
    let (code, text) = read(response).await;
    assert_eq!(code, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

async fn make_namespace(server: &BuiltIns, name: &str) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let (code, made) = server.send("POST", "/api/v1/namespaces", &namespace).await;
    assert_eq!(code, 201, "{made}");
}

/// A server with a jug whose stored version left its definition.
async fn with_an_unreadable_jug_in(namespace: &str) -> BuiltIns {
    let server = BuiltIns::new().await;
    if namespace != "default" {
        make_namespace(&server, namespace).await;
    }
    let (code, made) = server.send("POST", CRDS, &jugs()).await;
    assert_eq!(code, 201, "{made}");
    until(&server, "/apis/ex.io/v1/jugs", |code, _| code == 200).await;
    let jug = json!({"apiVersion": "ex.io/v1", "kind": "Jug", "metadata": {"name": "a", "finalizers": ["ex.io/held"]}});
    let path = format!("/apis/ex.io/v1/namespaces/{namespace}/jugs");
    let (code, made) = server.send("POST", &path, &jug).await;
    assert_eq!(code, 201, "{made}");
    let (first, second) = ("/spec/versions/0", "/spec/versions/1/storage");
    let stored = json!([
        {"op": "replace", "path": format!("{first}/storage"), "value": false},
        {"op": "replace", "path": second, "value": true},
    ]);
    patch(&server, DEFINITION, &stored).await;
    let forgotten = json!([{"op": "replace", "path": "/status/storedVersions", "value": ["v2"]}]);
    patch(&server, &format!("{DEFINITION}/status"), &forgotten).await;
    patch(
        &server,
        DEFINITION,
        &json!([{"op": "remove", "path": first}]),
    )
    .await;
    until(&server, "/apis/ex.io/v2/jugs", |code, _| code == 500).await;
    server
}

#[tokio::test(start_paused = true)]
async fn foreground_deletions_go_on_without_an_object_that_cannot_be_read() {
    let server = with_an_unreadable_jug_in("default").await;
    let owner = create(&server, "owner", &[]).await;
    create(&server, "owned", &[owner]).await;
    let began = Instant::now();
    delete(&server, "configmaps/owner", "Foreground").await;
    let path = "/api/v1/namespaces/default/configmaps/owner";
    until(&server, path, |code, _| code == 404).await;
    // An object of a version that another server knows already can be read by then.
    assert!(
        began.elapsed() > Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    let text = until(&server, CHECK, |code, _| code == 500).await;
    assert!(text.contains("jugs.ex.io"), "{text}");
    let whole = until(&server, "/healthz?verbose", |_, _| true).await;
    assert!(
        whole.contains("[!]garbage-collector-controller failed, not counted"),
        "{whole}"
    );
    assert!(whole.ends_with("healthz check passed\n"), "{whole}");
    let events = "/apis/events.k8s.io/v1/namespaces/default/events";
    let reported = until(&server, events, |_, text| {
        text.contains("UnreadableObjects")
    })
    .await;
    let reported: Value = serde_json::from_str(&reported).unwrap();
    let mut events = reported["items"].as_array().unwrap().iter();
    let event = events.find(|event| event["reason"] == "UnreadableObjects");
    assert_eq!(
        event.unwrap()["regarding"]["kind"],
        "CustomResourceDefinition"
    );
    assert_eq!(event.unwrap()["regarding"]["name"], "jugs.ex.io");
    // The next ones do not wait.
    let began = Instant::now();
    create(&server, "next", &[]).await;
    delete(&server, "configmaps/next", "Foreground").await;
    let path = "/api/v1/namespaces/default/configmaps/next";
    until(&server, path, |code, _| code == 404).await;
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_definition_is_deleted_with_objects_that_cannot_be_read() {
    let server = with_an_unreadable_jug_in("default").await;
    let readable = json!({"apiVersion": "ex.io/v2", "kind": "Jug", "metadata": {"name": "b"}});
    let path = "/apis/ex.io/v2/namespaces/default/jugs";
    let (code, made) = server.send("POST", path, &readable).await;
    assert_eq!(code, 201, "{made}");
    delete(&server, DEFINITION, "Background").await;
    until(&server, DEFINITION, |code, _| code == 404).await;
    // Nothing is left for a definition of the same name.
    let mut again = jugs();
    again["spec"]["versions"][0]["storage"] = json!(false);
    again["spec"]["versions"][1]["storage"] = json!(true);
    let (code, made) = server.send("POST", CRDS, &again).await;
    assert_eq!(code, 201, "{made}");
    let left = until(&server, "/apis/ex.io/v2/jugs", |code, _| code == 200).await;
    let left: Value = serde_json::from_str(&left).unwrap();
    assert_eq!(left["items"], json!([]));
    until(&server, CHECK, |code, _| code == 200).await;
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_tells_what_it_cannot_delete_and_deletes_the_rest() {
    let server = with_an_unreadable_jug_in("full").await;
    let other = "/api/v1/namespaces/other";
    make_namespace(&server, "other").await;
    delete(&server, other, "Background").await;
    until(&server, other, |code, _| code == 404).await;
    let (full, map) = (
        "/api/v1/namespaces/full",
        "/api/v1/namespaces/full/configmaps",
    );
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rest"}});
    assert_eq!(server.send("POST", map, &object).await.0, 201);
    delete(&server, full, "Background").await;
    until(&server, &format!("{map}/rest"), |code, _| code == 404).await;
    let failed = |_, text: &str| {
        let namespace: Value = serde_json::from_str(text).unwrap();
        let conditions = namespace["status"]["conditions"].as_array().cloned();
        conditions.into_iter().flatten().any(|one| {
            let (of, is_true) = (&one["type"], &one["status"]);
            (of, is_true) == (&json!("NamespaceDeletionContentFailure"), &json!("True"))
        })
    };
    until(&server, full, failed).await;
    // With the definition the object goes, and with that the namespace.
    delete(&server, DEFINITION, "Background").await;
    until(&server, full, |code, _| code == 404).await;
    server.stop().await;
}

/// Stored values that are no objects, of the kinds that the server itself follows.
#[tokio::test(start_paused = true)]
async fn the_start_and_the_other_objects_do_not_wait_for_a_damaged_one() {
    let store = Memory::new();
    for key in [
        "apiextensions.k8s.io/customresourcedefinitions/damaged.ex.io",
        // The server keeps one of this name.
        "apiregistration.k8s.io/apiservices/v1.coordination.k8s.io",
        "namespaces/damaged",
    ] {
        let key = format!("/registry/{key}");
        store.create(&key, "{}".into(), None).await.unwrap();
    }
    let server = BuiltIns::of(|builder| builder.all_built_in().storage(store)).await;
    until(&server, "/readyz", |code, _| code == 200).await;
    let (code, made) = server.send("POST", CRDS, &jugs()).await;
    assert_eq!(code, 201, "{made}");
    until(&server, "/apis/ex.io/v1/jugs", |code, _| code == 200).await;
    make_namespace(&server, "other").await;
    let other = "/api/v1/namespaces/other";
    delete(&server, other, "Background").await;
    until(&server, other, |code, _| code == 404).await;
    server.stop().await;
}
