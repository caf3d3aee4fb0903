//! Delete of an object and of a collection.

use serde_json::json;

use crate::*;

on_each_backend![
    c_092_a_delete_answers_with_a_status_without_code_or_with_the_object,
    c_098_deleting_again_changes_nothing,
    c_101_a_collection_is_deleted_by_selector_and_limit_and_listed,
    c_102_a_dry_delete_says_the_same_and_deletes_nothing,
];

fn success(name: &str, uid: &Value) -> Value {
    let mut details = about(name);
    details["uid"] = uid.clone();
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

async fn c_092_a_delete_answers_with_a_status_without_code_or_with_the_object(on: Backend) {
    let (_server, client) = server(on);
    let object = created(&client, FLUNDERS, &flunder("a")).await;
    let item = format!("{FLUNDERS}/a");
    check(
        &client.delete(&item, &json!(null)).await,
        200,
        &success("a", &object["metadata"]["uid"]),
    );
    assert_eq!(client.delete(&item, &json!(null)).await.code, 404);
    // For namespaces the response is the object.
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gone"}});
    created(&client, "/api/v1/namespaces", &namespace).await;
    let mut answer = client
        .delete("/api/v1/namespaces/gone", &json!(null))
        .await
        .json();
    assert_eq!(
        (&answer["kind"], &answer["status"]["phase"]),
        (&json!("Namespace"), &json!("Terminating"))
    );
    answer["spec"] = json!({});
    let last = client
        .put("/api/v1/namespaces/gone/finalize", &answer)
        .await;
    assert_eq!(
        (last.code, &last.json()["kind"]),
        (200, &json!("Namespace"))
    );
    assert_eq!(client.get("/api/v1/namespaces/gone").await.code, 404);
}

async fn c_098_deleting_again_changes_nothing(on: Backend) {
    let (_server, client) = server(on);
    let mut object = flunder("a");
    object["metadata"]["finalizers"] = json!(["example.com/x"]);
    let object = created(&client, FLUNDERS, &object).await;
    let item = format!("{FLUNDERS}/a");
    let first = client.delete(&item, &json!(null)).await;
    let mut expected = object.clone();
    expected["metadata"]["deletionTimestamp"] = json!("$TIME");
    expected["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    expected["metadata"]["generation"] = json!(2);
    expected["metadata"]["resourceVersion"] = json!("$RV");
    check(&first, 200, &expected);
    let first = first.json();
    let mut watch = client
        .watch(&format!(
            "{FLUNDERS}?watch=1&resourceVersion={}",
            revision(&first)
        ))
        .await;
    check(&client.delete(&item, &json!(null)).await, 200, &first);
    let next = created(&client, FLUNDERS, &flunder("b")).await;
    assert_eq!(
        watch.event().await,
        json!({"type": "ADDED", "object": next}),
        "nothing happened in between"
    );
}

async fn c_101_a_collection_is_deleted_by_selector_and_limit_and_listed(on: Backend) {
    let (_server, client) = server(on);
    for (name, tier) in [
        ("a", "front"),
        ("b", "back"),
        ("c", "front"),
        ("d", "front"),
    ] {
        let mut object = flunder(name);
        object["metadata"]["labels"] = json!({"tier": tier});
        created(&client, FLUNDERS, &object).await;
    }
    let item = |name: &str, tier: &str, generation: u64| {
        json!({"metadata": {"name": name, "namespace": "default", "uid": "$UID", "resourceVersion": "$RV",
            "creationTimestamp": "$TIME", "generation": generation, "labels": {"tier": tier}}})
    };
    let list = |items: Vec<Value>| {
        json!({"kind": "FlunderList", "apiVersion": "wardle.example.com/v1alpha1", "metadata": {"resourceVersion": "$RV"},
            "items": items})
    };
    let answer = client
        .delete(
            &format!("{FLUNDERS}?labelSelector=tier%3Dback"),
            &json!(null),
        )
        .await;
    check(&answer, 200, &list(vec![item("b", "back", 1)]));
    let answer = client
        .delete(&format!("{FLUNDERS}?limit=1"), &json!(null))
        .await;
    let mut expected = list(vec![item("a", "front", 1)]);
    expected["metadata"]["continue"] = answer.json()["metadata"]["continue"].clone();
    expected["metadata"]["remainingItemCount"] = json!(2);
    check(&answer, 200, &expected);
    check(
        &client.get(FLUNDERS).await,
        200,
        &list(vec![item("c", "front", 1), item("d", "front", 1)]),
    );
    let answer = client.delete(FLUNDERS, &json!(null)).await;
    check(
        &answer,
        200,
        &list(vec![item("c", "front", 1), item("d", "front", 1)]),
    );
    check(&client.get(FLUNDERS).await, 200, &list(vec![]));
}

async fn c_102_a_dry_delete_says_the_same_and_deletes_nothing(on: Backend) {
    let (_server, client) = server(on);
    let object = created(&client, FLUNDERS, &flunder("a")).await;
    let item = format!("{FLUNDERS}/a");
    let expected = success("a", &object["metadata"]["uid"]);
    check(
        &client
            .delete(&format!("{item}?dryRun=All"), &json!(null))
            .await,
        200,
        &expected,
    );
    check(
        &client.delete(&item, &json!({"dryRun": ["All"]})).await,
        200,
        &expected,
    );
    check(&client.get(&item).await, 200, &object);
}
