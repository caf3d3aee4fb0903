//! The garbage collector: one DELETE for each object in any order of events, and kinds that come and go.

mod kinds;
mod lagging;
mod servers;
mod stores;
mod unreadable;

use std::time::{Duration, Instant};

use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use apiloom::meta::GroupResource;
use apiloom::prelude::*;
use apiloom::server::registry::CatalogChange;

use super::BuiltIns;

/// Shelf holds things.
#[apiloom::resource(group = "kitchen.example.com", version = "v1", namespaced)]
pub struct Shelf {
    pub metadata: ObjectMeta,
}

const SHELVES: &str = "/apis/kitchen.example.com/v1/namespaces/default/shelves";

/// Objects in a chain.
const LENGTH: usize = 30;

/// Number of dependents: half in a fan, half in chains. Without `APILOOM_GARBAGE_OBJECTS`, 600.
fn dependents() -> usize {
    let number = std::env::var("APILOOM_GARBAGE_OBJECTS");
    number.map_or(600, |number| number.parse().unwrap())
}

/// Creates an object; returns the reference of a dependent to it.
async fn create_kind(
    server: &BuiltIns,
    kind: &str,
    plural: &str,
    name: &str,
    owners: &[Value],
) -> Value {
    let object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "ownerReferences": owners}});
    let (code, created) = server.send("POST", plural, &object).await;
    assert_eq!(code, 201, "{created}");
    json!({"apiVersion": "v1", "kind": kind, "name": name, "uid": created["metadata"]["uid"],
        "blockOwnerDeletion": true})
}

/// Creates a ConfigMap; returns the reference of a dependent to it.
async fn create(server: &BuiltIns, name: &str, owners: &[Value]) -> Value {
    create_kind(server, "ConfigMap", "configmaps", name, owners).await
}

async fn delete(server: &BuiltIns, path: &str, policy: &str) {
    let options = json!({"propagationPolicy": policy});
    let (code, answer) = server.send("DELETE", path, &options).await;
    assert_eq!(code, 200, "{answer}");
}

/// Waits until the collector has collected an object whose owner was deleted after all earlier requests.
async fn settle(server: &BuiltIns) {
    let owner = create_kind(server, "Secret", "secrets", "settled", &[]).await;
    create_kind(server, "Secret", "secrets", "settles", &[owner]).await;
    delete(server, "secrets/settled", "Background").await;
    until_gone(server, "secrets/settles").await;
}

/// The metrics of a server.
async fn metrics(server: &BuiltIns) -> String {
    let request = http::Request::get("/metrics").body(http_body_util::Empty::<&[u8]>::new());
    let response = server.loopback.send(request.unwrap()).await;
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

/// Number of requests with a verb for a resource so far.
async fn requests(server: &BuiltIns, verb: &str, resource: &str) -> usize {
    let text = metrics(server).await;
    let labels = [
        format!("verb=\"{verb}\""),
        format!("resource=\"{resource}\""),
    ];
    let lines = text.lines().filter(|line| {
        line.starts_with("apiserver_request_total{")
            && labels.iter().all(|label| line.contains(label))
    });
    lines
        .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() as usize)
        .sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_dependent_is_deleted_once() {
    let fanned = dependents() / 2;
    let chains = fanned / LENGTH;
    for policy in ["Background", "Foreground"] {
        let server = BuiltIns::new().await;
        let root = create(&server, "root", &[]).await;
        for i in 0..fanned {
            create(&server, &format!("fan-{i}"), std::slice::from_ref(&root)).await;
        }
        for i in 0..chains {
            let mut owner = root.clone();
            for k in 0..LENGTH {
                owner = create(&server, &format!("chain-{i}-{k}"), &[owner]).await;
            }
        }
        delete(&server, "configmaps/root", policy).await;
        let started = Instant::now();
        loop {
            let (_, list) = server.send("GET", "configmaps?limit=1", &Value::Null).await;
            if list["items"] == json!([]) {
                break;
            }
            assert!(
                started.elapsed() < Duration::from_secs(300),
                "{policy}: {list}"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(
            requests(&server, "DELETE", "configmaps").await,
            1 + fanned + chains * LENGTH,
            "{policy}"
        );
        server.server.stop().await;
    }
}

/// Waits until an object is gone.
async fn until_gone(server: &BuiltIns, path: &str) {
    let started = Instant::now();
    while server.send("GET", path, &Value::Null).await.0 != 404 {
        assert!(started.elapsed() < Duration::from_secs(60), "{path}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_that_come_and_go_are_followed() {
    let server = BuiltIns::new().await;
    let change = async |change: CatalogChange| server.server.registry.change(change).await.unwrap();
    let shelf =
        json!({"apiVersion": "kitchen.example.com/v1", "kind": "Shelf", "metadata": {"name": "a"}});
    let reference = |shelf: &Value| json!({"apiVersion": "kitchen.example.com/v1", "kind": "Shelf", "name": "a", "uid": shelf["metadata"]["uid"]});
    for round in ["first", "again"] {
        change(CatalogChange::new().kind::<Shelf>()).await;
        let (code, owner) = server.send("POST", SHELVES, &shelf).await;
        assert_eq!(code, 201, "{round}: {owner}");
        create(&server, "in-shelf", &[reference(&owner)]).await;
        server
            .send("DELETE", &format!("{SHELVES}/a"), &Value::Null)
            .await;
        until_gone(&server, "configmaps/in-shelf").await;
        // While its kind is not served, nothing is known about an owner; and nothing else waits for that.
        let (_, owner) = server.send("POST", SHELVES, &shelf).await;
        create(&server, "kept", &[reference(&owner)]).await;
        let shelves = GroupResource::new("kitchen.example.com", "shelves");
        change(CatalogChange::new().remove(shelves)).await;
        let other = create(&server, "other", &[]).await;
        create(&server, "of-other", &[other]).await;
        server
            .send("DELETE", "configmaps/other", &Value::Null)
            .await;
        until_gone(&server, "configmaps/of-other").await;
        assert_eq!(
            server.send("GET", "configmaps/kept", &Value::Null).await.0,
            200
        );
        change(CatalogChange::new().kind::<Shelf>()).await;
        server
            .send("DELETE", &format!("{SHELVES}/a"), &Value::Null)
            .await;
        until_gone(&server, "configmaps/kept").await;
        let shelves = GroupResource::new("kitchen.example.com", "shelves");
        change(CatalogChange::new().remove(shelves)).await;
    }
    server.server.stop().await;
}
