//! Keys and values in the store. The tests read the store itself, after the server has ended.

use apiloom_storage::ListRequest;
use serde_json::json;

use crate::*;

on_each_backend![
    c_141_keys_are_registry_resource_namespace_name,
    c_142_stored_bytes_hold_no_resource_version_which_is_the_revision_of_the_write,
];

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
    let entries = page.entries.iter();
    let found = entries
        .map(|entry| {
            (
                entry.key.clone(),
                entry.revision.0,
                serde_json::from_slice(&entry.value).unwrap(),
            )
        })
        .collect();
    store.close().await;
    (objects, found)
}

async fn c_141_keys_are_registry_resource_namespace_name(on: Backend) {
    let (_, stored) = stored(on).await;
    let keys: Vec<&str> = stored.iter().map(|(key, ..)| key.as_str()).collect();
    let expected = [
        "/registry/namespaces/default",
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
