//! The deletion of namespaces with their content, by the server's own controller.

use crate::*;

on_each_backend![
    the_content_of_a_deleted_namespace_goes_first,
    conditions_say_what_a_namespace_waits_for,
    a_deletion_goes_on_after_a_restart,
    the_status_of_a_namespace_is_written_with_its_metadata,
];

const NAMESPACES: &str = "/api/v1/namespaces";

async fn create_namespace(client: &Client, name: &str) -> Value {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    created(client, NAMESPACES, &namespace).await
}

fn config_maps(namespace: &str) -> String {
    format!("{NAMESPACES}/{namespace}/configmaps")
}

fn config_map(name: &str, finalizers: &[&str]) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "finalizers": finalizers}})
}

async fn the_content_of_a_deleted_namespace_goes_first(on: Backend) {
    let (_server, client) = server(on);
    create_namespace(&client, "full").await;
    create_namespace(&client, "other").await;
    for i in 0..600 {
        created(
            &client,
            &config_maps("full"),
            &config_map(&format!("a-{i}"), &[]),
        )
        .await;
    }
    let flunders = "/apis/wardle.example.com/v1beta1/namespaces/full/flunders";
    created(&client, flunders, &flunder_beta("a")).await;
    created(&client, &config_maps("other"), &config_map("a", &[])).await;
    let mut watch = client
        .watch(&format!(
            "{}?watch=1&resourceVersion=0",
            config_maps("full")
        ))
        .await;
    let path = format!("{NAMESPACES}/full");
    let deleted = client.delete(&path, &Value::Null).await;
    assert_eq!(deleted.code, 200);
    assert_eq!(deleted.json()["status"]["phase"], "Terminating");
    until(&client, &path, |answer| answer.code == 404).await;
    for path in [&*config_maps("full"), flunders] {
        assert_eq!(client.get(path).await.json()["items"], json!([]));
    }
    let mut deletions = 0;
    while deletions < 600 {
        let event = watch.event().await;
        deletions += usize::from(event["type"] == "DELETED");
    }
    assert_eq!(
        client
            .get(&format!("{}/a", config_maps("other")))
            .await
            .code,
        200
    );
    // The name can be used again.
    create_namespace(&client, "full").await;
    created(&client, &config_maps("full"), &config_map("a", &[])).await;
}

async fn conditions_say_what_a_namespace_waits_for(on: Backend) {
    let (_server, client) = server(on);
    create_namespace(&client, "held").await;
    let held = format!("{NAMESPACES}/held");
    created(
        &client,
        &config_maps("held"),
        &config_map("a", &["example.com/hold"]),
    )
    .await;
    created(
        &client,
        &config_maps("held"),
        &config_map("b", &["example.com/hold", "example.com/too"]),
    )
    .await;
    created(&client, &config_maps("held"), &config_map("c", &[])).await;
    client.delete(&held, &Value::Null).await;
    let conditions = |answer: &Answer| answer.json()["status"]["conditions"].clone();
    let waiting = until(&client, &held, |answer| conditions(answer).is_array()).await;
    let told: Vec<Value> = conditions(&waiting)
        .as_array()
        .unwrap()
        .iter()
        .map(|condition| {
            assert!(condition["lastTransitionTime"].is_string());
            json!([
                condition["type"],
                condition["status"],
                condition["reason"],
                condition["message"]
            ])
        })
        .collect();
    let expected = json!([
        [
            "NamespaceDeletionDiscoveryFailure",
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered"
        ],
        [
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed"
        ],
        [
            "NamespaceDeletionContentFailure",
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization"
        ],
        [
            "NamespaceContentRemaining",
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 2 resource instances"
        ],
        [
            "NamespaceFinalizersRemaining",
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: example.com/hold in 2 resource instances, example.com/too in 1 resource instances"
        ],
    ]);
    assert_eq!(Value::from(told), expected);
    // Nothing new comes in, and what has a finalizer goes when that is removed.
    let refused = client
        .post(&config_maps("held"), &config_map("d", &[]))
        .await;
    assert_eq!(refused.code, 403, "{}", refused.text());
    for name in ["a", "b"] {
        let path = format!("{}/{name}", config_maps("held"));
        assert_eq!(
            client.get(&held).await.json()["status"]["phase"],
            "Terminating"
        );
        client
            .merge(&path, &json!({"metadata": {"finalizers": null}}))
            .await;
    }
    until(&client, &held, |answer| answer.code == 404).await;
}

async fn a_deletion_goes_on_after_a_restart(on: Backend) {
    let (mut cluster, client) = server(on);
    create_namespace(&client, "held").await;
    let path = format!("{}/a", config_maps("held"));
    created(
        &client,
        &config_maps("held"),
        &config_map("a", &["example.com/hold"]),
    )
    .await;
    let held = format!("{NAMESPACES}/held");
    client.delete(&held, &Value::Null).await;
    cluster.kill();
    cluster.start_again();
    let client = cluster.client();
    until(&client, &path, |answer| {
        answer.json()["metadata"]["deletionTimestamp"].is_string()
    })
    .await;
    client
        .merge(&path, &json!({"metadata": {"finalizers": null}}))
        .await;
    until(&client, &held, |answer| answer.code == 404).await;
}

async fn the_status_of_a_namespace_is_written_with_its_metadata(on: Backend) {
    let (_server, client) = server(on);
    let made = create_namespace(&client, "a").await;
    // The label with the name is owned by the creator.
    let owned = json!({"f:metadata": {"f:labels": {".": {}, "f:kubernetes.io/metadata.name": {}}}});
    let entries = made["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 1, "{made}");
    assert_eq!(entries[0]["fieldsV1"], owned);

    let mut sent = made.clone();
    sent["metadata"]["labels"]["tier"] = json!("one");
    sent["metadata"]["annotations"] = json!({"note": "n"});
    sent["spec"]["finalizers"] = json!(["kubernetes", "ex.io/other"]);
    let condition = json!({"message": "m"});
    sent["status"]["conditions"] = json!([condition]);
    let path = format!("{NAMESPACES}/a/status");
    let written = client.put(&path, &sent).await;
    assert_eq!(written.code, 200, "{}", written.text());
    let written = written.json();
    assert_eq!(written["metadata"]["labels"]["tier"], "one");
    assert_eq!(written["metadata"]["annotations"]["note"], "n");
    assert_eq!(written["metadata"]["uid"], made["metadata"]["uid"]);
    assert_eq!(written["spec"], made["spec"]);
    let conditions = json!([{"type": "", "status": "", "message": "m"}]);
    assert_eq!(written["status"]["conditions"], conditions);
}
