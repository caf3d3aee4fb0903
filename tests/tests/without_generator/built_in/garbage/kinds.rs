//! Kinds that lack verbs, that are not served, and that come and go.

use std::sync::Arc;
use std::time::{Duration, Instant};

use apiloom::meta::GroupResource;
use apiloom::prelude::*;
use apiloom::server::registry::CatalogChange;
use serde_json::{Value, json};

use super::super::BuiltIns;
use super::{SHELVES, Shelf, create, requests, settle, until_gone};

/// Jar can be read by lists only, and written by replacing it.
#[apiloom::resource(group = "kitchen.example.com", version = "v1", namespaced, verbs(skip = [get, patch]))]
pub struct Jar {
    pub metadata: ObjectMeta,
}

/// Label can neither be deleted nor watched.
#[apiloom::resource(group = "kitchen.example.com", version = "v1", namespaced, verbs(only = [create, get, list]))]
pub struct Label {
    pub metadata: ObjectMeta,
}

const JARS: &str = "/apis/kitchen.example.com/v1/namespaces/default/jars";
const LABELS: &str = "/apis/kitchen.example.com/v1/namespaces/default/labels";

/// Creates an object of the kitchen; returns the reference of a dependent to it.
async fn create_in_kitchen(
    server: &BuiltIns,
    kind: &str,
    path: &str,
    name: &str,
    owners: &[Value],
) -> Value {
    let object = json!({"apiVersion": "kitchen.example.com/v1", "kind": kind,
        "metadata": {"name": name, "ownerReferences": owners}});
    let (code, created) = server.send("POST", path, &object).await;
    assert_eq!(code, 201, "{created}");
    json!({"apiVersion": "kitchen.example.com/v1", "kind": kind, "name": name,
        "uid": created["metadata"]["uid"], "blockOwnerDeletion": true})
}

async fn delete(server: &BuiltIns, path: &str, policy: &str) {
    let options = json!({"propagationPolicy": policy});
    let (code, answer) = server.send("DELETE", path, &options).await;
    assert_eq!(code, 200, "{answer}");
}

/// The owners of the jars with their names.
async fn jars(server: &BuiltIns) -> Value {
    let (code, list) = server.send("GET", JARS, &Value::Null).await;
    assert_eq!(code, 200, "{list}");
    let items = list["items"].as_array().unwrap().iter();
    let jars = items.map(|jar| {
        let owners = jar["metadata"]["ownerReferences"].as_array();
        let owners: Vec<&Value> = owners.into_iter().flatten().map(|o| &o["name"]).collect();
        json!([jar["metadata"]["name"], owners])
    });
    jars.collect()
}

async fn until_jars_are(server: &BuiltIns, expected: Value) {
    let started = Instant::now();
    loop {
        let found = jars(server).await;
        if found == expected {
            return;
        }
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{found} is not {expected}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_without_get_and_patch_are_collected_orphaned_and_deleted_in_the_foreground() {
    let server = BuiltIns::of(|builder| builder.all_built_in().kind::<Jar>()).await;
    let owner = create(&server, "owner", &[]).await;
    let other = create(&server, "other", &[]).await;
    create_in_kitchen(&server, "Jar", JARS, "a", std::slice::from_ref(&owner)).await;
    create_in_kitchen(&server, "Jar", JARS, "b", &[owner, other]).await;
    delete(&server, "configmaps/owner", "Background").await;
    until_jars_are(&server, json!([["b", ["other"]]])).await;
    delete(&server, "configmaps/other", "Orphan").await;
    until_gone(&server, "configmaps/other").await;
    assert_eq!(jars(&server).await, json!([["b", []]]));
    let jar = create_in_kitchen(&server, "Jar", JARS, "c", &[]).await;
    create_in_kitchen(&server, "Jar", JARS, "d", std::slice::from_ref(&jar)).await;
    create(&server, "in-jar", &[jar]).await;
    delete(&server, &format!("{JARS}/c"), "Foreground").await;
    until_jars_are(&server, json!([["b", []]])).await;
    assert_eq!(
        server
            .send("GET", "configmaps/in-jar", &Value::Null)
            .await
            .0,
        404
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_of_kinds_that_are_not_served_or_not_followed_cost_no_repeated_requests() {
    let server = BuiltIns::of(|builder| builder.all_built_in().kind::<Label>()).await;
    let label = create_in_kitchen(&server, "Label", LABELS, "a", &[]).await;
    let mut unknown = label.clone();
    unknown["kind"] = json!("Shelf");
    const OBJECTS: usize = 100;
    let started = Instant::now();
    for i in 0..OBJECTS {
        create(
            &server,
            &format!("labeled-{i}"),
            std::slice::from_ref(&label),
        )
        .await;
        create(
            &server,
            &format!("shelved-{i}"),
            std::slice::from_ref(&unknown),
        )
        .await;
    }
    // With retries after 5, 10, 20 ms and so on there would be eight for each object by then.
    while started.elapsed() < Duration::from_secs(2) {
        settle(&server).await;
    }
    let sent = requests(&server, "GET", "configmaps").await;
    assert!(sent <= 2 * 2 * OBJECTS, "{sent} requests");
    let list = server.send("GET", "configmaps", &Value::Null).await.1;
    assert_eq!(list["items"].as_array().unwrap().len(), 2 * OBJECTS);
    // Once the kind is served, it is known that there is no such owner.
    let change = CatalogChange::new().kind::<Shelf>();
    server.server.registry.change(change).await.unwrap();
    for i in 0..OBJECTS {
        until_gone(&server, &format!("configmaps/shelved-{i}")).await;
    }
    settle(&server).await;
    let list = server.send("GET", "configmaps", &Value::Null).await.1;
    assert_eq!(list["items"].as_array().unwrap().len(), OBJECTS);
    server.stop().await;
}

/// While a kind comes and goes, objects of it and of other kinds are created and deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_comes_and_goes_under_load_loses_no_object_and_leaves_none() {
    let server = BuiltIns::new().await;
    let registry = Arc::clone(&server.server.registry);
    let kept = create(&server, "kept", &[]).await;
    let changes = tokio::spawn(async move {
        let appear = async || {
            let shelves = CatalogChange::new().kind::<Shelf>();
            registry.change(shelves).await.unwrap();
        };
        for _ in 0..15 {
            appear().await;
            tokio::time::sleep(Duration::from_millis(30)).await;
            let shelves = GroupResource::new("kitchen.example.com", "shelves");
            let change = CatalogChange::new().remove(shelves);
            registry.change(change).await.unwrap();
        }
        appear().await;
    });
    let mut made = Vec::new();
    for number in 0.. {
        if changes.is_finished() {
            break;
        }
        tokio::task::yield_now().await;
        let name = format!("a-{number}");
        let shelf = json!({"apiVersion": "kitchen.example.com/v1", "kind": "Shelf", "metadata": {"name": name}});
        let (code, shelf) = server.send("POST", SHELVES, &shelf).await;
        if code != 201 {
            continue;
        }
        let owner = json!({"apiVersion": "kitchen.example.com/v1", "kind": "Shelf", "name": name, "uid": shelf["metadata"]["uid"]});
        let of_shelf = std::slice::from_ref(&owner);
        create(&server, &format!("of-shelf-{number}"), of_shelf).await;
        create(
            &server,
            &format!("of-both-{number}"),
            &[owner, kept.clone()],
        )
        .await;
        made.push(number);
    }
    changes.await.unwrap();
    assert!(!made.is_empty());
    // Each second shelf goes, with what only it owns.
    for number in &made {
        if number % 2 == 0 {
            delete(&server, &format!("{SHELVES}/a-{number}"), "Background").await;
        }
    }
    for number in made.iter().filter(|number| *number % 2 == 0) {
        until_gone(&server, &format!("configmaps/of-shelf-{number}")).await;
    }
    settle(&server).await;
    for number in &made {
        let (code, _) = server
            .send(
                "GET",
                &format!("configmaps/of-shelf-{number}"),
                &Value::Null,
            )
            .await;
        assert_eq!(code, if number % 2 == 0 { 404 } else { 200 }, "{number}");
        let both = format!("configmaps/of-both-{number}");
        assert_eq!(server.send("GET", &both, &Value::Null).await.0, 200);
    }
    server.stop().await;
}
