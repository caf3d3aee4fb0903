//! Paths of requests, and the verbs that they mean.

use serde_json::json;

use crate::*;

on_each_backend![
    c_001_a_namespace_is_a_resource_and_a_scope,
    c_002_status_and_finalize_are_subresources_of_the_namespace,
    c_003_watch_is_a_boolean_that_may_be_empty,
    c_004_watch_means_nothing_on_an_item,
    c_008_an_unknown_group_is_text_and_an_unknown_resource_is_a_status,
];

async fn c_001_a_namespace_is_a_resource_and_a_scope(on: Backend) {
    let (_server, client) = server(on);
    // The namespace itself: core/v1, cluster-scoped, found by its name.
    let answer = client.get("/api/v1/namespaces/default").await;
    let namespace = json!({
        "kind": "Namespace", "apiVersion": "v1",
        "metadata": {"name": "default", "uid": "$UID", "resourceVersion": "$RV", "creationTimestamp": "$TIME",
            "labels": {"kubernetes.io/metadata.name": "default"}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    });
    check(&answer, 200, &namespace);
    // Before another resource the same word is its scope.
    created(&client, FLUNDERS, &flunder("a")).await;
    let answer = client.get(&format!("{FLUNDERS}/a")).await;
    assert_eq!(answer.json()["metadata"]["namespace"], "default");
    // The message for the user has the same terms.
    let anonymous = client.clone().anonymous();
    let answer = anonymous.get("/api/v1/namespaces/x").await;
    let message = r#"namespaces "x" is forbidden: User "system:anonymous" cannot get resource "namespaces" in API group "" in the namespace "x""#;
    check_failure(
        &answer,
        403,
        "Forbidden",
        message,
        json!({"name": "x", "kind": "namespaces"}),
    );
    let answer = anonymous.get("/api/v1/namespaces/x/pods").await;
    let message = r#"pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" in the namespace "x""#;
    check_failure(&answer, 403, "Forbidden", message, json!({"kind": "pods"}));
}

async fn c_002_status_and_finalize_are_subresources_of_the_namespace(on: Backend) {
    let (_server, client) = server(on);
    let anonymous = client.clone().anonymous();
    for subresource in ["status", "finalize"] {
        let answer = anonymous
            .get(&format!("/api/v1/namespaces/x/{subresource}"))
            .await;
        let message = format!(
            r#"namespaces "x" is forbidden: User "system:anonymous" cannot get resource "namespaces/{subresource}" in API group "" in the namespace "x""#
        );
        check_failure(
            &answer,
            403,
            "Forbidden",
            &message,
            json!({"name": "x", "kind": "namespaces"}),
        );
    }
    let answer = client.get("/api/v1/namespaces/default/status").await;
    assert_eq!(
        (answer.code, answer.json()["kind"].as_str()),
        (200, Some("Namespace"))
    );
}

async fn c_003_watch_is_a_boolean_that_may_be_empty(on: Backend) {
    let (_server, client) = server(on);
    let object = created(&client, FLUNDERS, &flunder("a")).await;
    for query in ["watch=1", "watch=true", "watch="] {
        let mut watch = client
            .watch(&format!("{FLUNDERS}?{query}&timeoutSeconds=20"))
            .await;
        let event = watch.event().await;
        assert_eq!(event, json!({"type": "ADDED", "object": object}), "{query}");
    }
    for query in ["watch=0", "watch=false", "watch=False", ""] {
        let answer = client.get(&format!("{FLUNDERS}?{query}")).await;
        let mut item = object.clone();
        item.as_object_mut()
            .unwrap()
            .retain(|key, _| key != "kind" && key != "apiVersion");
        let list = json!({
            "kind": "FlunderList", "apiVersion": "wardle.example.com/v1alpha1",
            "metadata": {"resourceVersion": "$RV"}, "items": [item],
        });
        check(&answer, 200, &list);
    }
}

async fn c_004_watch_means_nothing_on_an_item(on: Backend) {
    let (_server, client) = server(on);
    let object = created(&client, FLUNDERS, &flunder("a")).await;
    for query in ["watch=1", "watch=true", "watch="] {
        check(
            &client.get(&format!("{FLUNDERS}/a?{query}")).await,
            200,
            &object,
        );
    }
}

async fn c_008_an_unknown_group_is_text_and_an_unknown_resource_is_a_status(on: Backend) {
    let (_server, client) = server(on);
    for path in [
        "/apis/nothing.example.com",
        "/apis/nothing.example.com/v1/things",
        "/nothing",
    ] {
        let answer = client.get(path).await;
        assert_eq!(
            (answer.code, answer.text().as_str()),
            (404, "404 page not found\n"),
            "{path}"
        );
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
    }
    let message = "the server could not find the requested resource";
    for path in [
        "/apis/wardle.example.com/v1alpha1/things",
        "/apis/wardle.example.com/v1alpha1/namespaces/default/things/a",
        "/apis/wardle.example.com/v9/flunders",
        "/api/v1/pods",
        &format!("{FLUNDERS}/a/nothing"),
        "/apis/wardle.example.com/v1alpha1/flunders/a",
    ] {
        check_failure(&client.get(path).await, 404, "NotFound", message, json!({}));
    }
}
