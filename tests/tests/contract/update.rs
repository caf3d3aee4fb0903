//! Update: names, resource versions, generation, subresources.

use serde_json::json;

use crate::*;

on_each_backend![
    c_075_the_name_in_the_body_is_the_urls,
    c_076_a_stale_resource_version_conflicts_and_none_overwrites,
    c_077_a_lease_needs_a_resource_version_in_an_update,
    c_079_a_change_that_changes_nothing_writes_nothing,
    c_080_generation_counts_changes_of_the_spec,
    c_081_status_and_the_rest_are_written_apart,
    c_082_no_finalizer_is_added_to_an_object_being_deleted,
    c_083_the_last_finalizer_takes_the_object_with_it,
    c_084_an_update_of_a_missing_lease_creates_it,
];

async fn c_075_the_name_in_the_body_is_the_urls(on: Backend) {
    let (_server, client) = server(on);
    created(&client, FLUNDERS, &flunder("a")).await;
    let item = format!("{FLUNDERS}/a");
    let message = "the name of the object (b) does not match the name on the URL (a)";
    check_failure(
        &client.put(&item, &flunder("b")).await,
        400,
        "BadRequest",
        message,
        json!(null),
    );
    let message =
        "the name of the object (a based on URL) was undeterminable: name must be provided";
    let nameless =
        json!({"apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder", "metadata": {}});
    check_failure(
        &client.put(&item, &nameless).await,
        400,
        "BadRequest",
        message,
        json!(null),
    );
}

async fn c_076_a_stale_resource_version_conflicts_and_none_overwrites(on: Backend) {
    let (_server, client) = server(on);
    let first = created(&client, FLUNDERS, &flunder("a")).await;
    let item = format!("{FLUNDERS}/a");
    let mut change = flunder("a");
    change["spec"] = json!({"reference": "x"});
    let answer = client.put(&item, &change).await;
    let expected = json!({
        "apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder",
        "metadata": {"name": "a", "namespace": "default", "uid": first["metadata"]["uid"], "resourceVersion": "$RV",
            "creationTimestamp": first["metadata"]["creationTimestamp"], "generation": 2},
        "spec": {"reference": "x", "referenceType": "Flunder"},
    });
    check(&answer, 200, &expected);
    assert!(revision(&answer.json()) > revision(&first));
    change["metadata"]["resourceVersion"] = first["metadata"]["resourceVersion"].clone();
    let message = r#"Operation cannot be fulfilled on flunders.wardle.example.com "a": the object has been modified; please apply your changes to the latest version and try again"#;
    check_failure(
        &client.put(&item, &change).await,
        409,
        "Conflict",
        message,
        about("a"),
    );
}

async fn c_079_a_change_that_changes_nothing_writes_nothing(on: Backend) {
    let (_server, client) = server(on);
    let object = created(&client, FLUNDERS, &flunder("a")).await;
    let item = format!("{FLUNDERS}/a");
    let mut watch = client
        .watch(&format!(
            "{FLUNDERS}?watch=1&resourceVersion={}",
            revision(&object)
        ))
        .await;
    check(&client.put(&item, &object).await, 200, &object);
    check(&client.put(&item, &flunder("a")).await, 200, &object);
    check(&client.merge(&item, &json!({})).await, 200, &object);
    check(
        &client
            .merge(&item, &json!({"metadata": {"labels": null}}))
            .await,
        200,
        &object,
    );
    check(&client.json_patch(&item, &json!([])).await, 200, &object);
    let next = created(&client, FLUNDERS, &flunder("b")).await;
    assert_eq!(
        watch.event().await,
        json!({"type": "ADDED", "object": next}),
        "nothing happened in between"
    );
}

async fn c_080_generation_counts_changes_of_the_spec(on: Backend) {
    let (_server, client) = server(on);
    created(&client, FLUNDERS, &flunder("a")).await;
    let item = format!("{FLUNDERS}/a");
    let generation = async |patch: Value| {
        let answer = client.merge(&item, &patch).await;
        assert_eq!(answer.code, 200, "{}", answer.text());
        answer.json()["metadata"]["generation"].clone()
    };
    assert_eq!(
        generation(json!({"metadata": {"labels": {"a": "b"}}})).await,
        1
    );
    assert_eq!(generation(json!({"spec": {"reference": "x"}})).await, 2);
    assert_eq!(generation(json!({"spec": {"reference": "x"}})).await, 2);
    assert_eq!(generation(json!({"metadata": {"generation": 9}})).await, 2);
    let answer = client
        .merge(&format!("{item}/status"), &json!({"status": {}}))
        .await;
    assert_eq!(
        (answer.code, &answer.json()["metadata"]["generation"]),
        (200, &json!(2))
    );
}

async fn c_081_status_and_the_rest_are_written_apart(on: Backend) {
    let (_server, client) = server(on);
    let mut object = flunder("a");
    object["spec"] = json!({"reference": "x"});
    object["status"] = json!({});
    let created = created(&client, FLUNDERS, &object).await;
    assert!(
        created.get("status").is_none(),
        "create drops status: {created:#}"
    );
    let item = format!("{FLUNDERS}/a");
    // The main endpoint does not change the status.
    let mut change = created.clone();
    change["status"] = json!({});
    check(&client.put(&item, &change).await, 200, &created);
    // The status endpoint does not change the rest, metadata included.
    let mut change = created.clone();
    change["spec"] = json!({"reference": "changed"});
    change["metadata"]["labels"] = json!({"changed": "yes"});
    change["status"] = json!({});
    let answer = client.put(&format!("{item}/status"), &change).await;
    let mut expected = created.clone();
    expected["status"] = json!({});
    expected["metadata"]["resourceVersion"] = json!("$RV");
    check(&answer, 200, &expected);
    assert!(revision(&answer.json()) > revision(&created));
    check(
        &client.get(&format!("{item}/status")).await,
        200,
        &answer.json(),
    );
    // Now that there is a status, the main endpoint cannot remove it.
    let mut change = answer.json();
    change.as_object_mut().unwrap().remove("status");
    check(&client.put(&item, &change).await, 200, &answer.json());
}

async fn c_082_no_finalizer_is_added_to_an_object_being_deleted(on: Backend) {
    let (_server, client) = server(on);
    let mut object = flunder("a");
    object["metadata"]["finalizers"] = json!(["example.com/x"]);
    created(&client, FLUNDERS, &object).await;
    let item = format!("{FLUNDERS}/a");
    assert_eq!(client.delete(&item, &json!(null)).await.code, 200);
    let answer = client
        .merge(
            &item,
            &json!({"metadata": {"finalizers": ["example.com/x", "example.com/y"]}}),
        )
        .await;
    let body = r#"Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/y"}"#;
    let message =
        format!(r#"Flunder.wardle.example.com "a" is invalid: metadata.finalizers: {body}"#);
    let details = invalid("a", &[("FieldValueForbidden", body, "metadata.finalizers")]);
    check_failure(&answer, 422, "Invalid", &message, details);
}

async fn c_083_the_last_finalizer_takes_the_object_with_it(on: Backend) {
    let (_server, client) = server(on);
    let mut object = flunder("a");
    object["metadata"]["finalizers"] = json!(["example.com/x"]);
    created(&client, FLUNDERS, &object).await;
    let item = format!("{FLUNDERS}/a");
    let deleting = client.delete(&item, &json!(null)).await.json();
    let mut watch = client
        .watch(&format!(
            "{FLUNDERS}?watch=1&resourceVersion={}",
            revision(&deleting)
        ))
        .await;
    let answer = client
        .merge(&item, &json!({"metadata": {"finalizers": null}}))
        .await;
    let mut expected = deleting.clone();
    expected["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("finalizers");
    check(&answer, 200, &expected);
    let event = watch.event().await;
    assert_eq!(event["type"], "DELETED");
    assert!(
        revision(&event["object"]) > revision(&deleting),
        "{event:#}"
    );
    assert_eq!(client.get(&item).await.code, 404);
}

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

fn lease(name: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name, "namespace": "default"},
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15},
    })
}

async fn c_077_a_lease_needs_a_resource_version_in_an_update(on: Backend) {
    let (_server, client) = server(on);
    let object = created(&client, LEASES, &lease("a")).await;
    let item = format!("{LEASES}/a");
    let mut changed = lease("a");
    changed["spec"]["holderIdentity"] = "you".into();
    let message = "must be specified for an update";
    for unset in [json!(null), json!(""), json!("0")] {
        changed["metadata"]["resourceVersion"] = unset;
        let answer = client.put(&item, &changed).await;
        let details = json!({
            "name": "a", "group": "coordination.k8s.io", "kind": "leases",
            "causes": [{"reason": "FieldValueInvalid", "message": format!("Invalid value: 0: {message}"), "field": "metadata.resourceVersion"}],
        });
        let text = format!(
            r#"leases.coordination.k8s.io "a" is invalid: metadata.resourceVersion: Invalid value: 0: {message}"#
        );
        check_failure(&answer, 422, "Invalid", &text, details);
    }
    check(&client.get(&item).await, 200, &object);
    changed["metadata"]["resourceVersion"] = object["metadata"]["resourceVersion"].clone();
    let updated = client.put(&item, &changed).await;
    assert_eq!(
        (updated.code, &updated.json()["spec"]["holderIdentity"]),
        (200, &json!("you"))
    );
    // A patch is of the present object.
    let patched = client
        .merge(&item, &json!({"spec": {"holderIdentity": "they"}}))
        .await;
    assert_eq!(patched.code, 200, "{}", patched.text());
}

async fn c_084_an_update_of_a_missing_lease_creates_it(on: Backend) {
    let (_server, client) = server(on);
    let item = format!("{LEASES}/a");
    // The resourceVersion is ignored, a uid is that of another object.
    let mut object = lease("a");
    object["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000".into();
    let answer = client.put(&item, &object).await;
    assert_eq!(
        (answer.code, &answer.json()["reason"]),
        (409, &json!("Conflict")),
        "{}",
        answer.text()
    );
    assert_eq!(client.get(&item).await.code, 404);
    object["metadata"] = json!({"name": "a", "resourceVersion": "7"});
    let dry = client.put(&format!("{item}?dryRun=All"), &object).await;
    assert_eq!(dry.code, 201, "{}", dry.text());
    assert_eq!(client.get(&item).await.code, 404);
    let made = client.put(&item, &object).await;
    let expected = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "a", "namespace": "default", "uid": "$UID", "resourceVersion": "$RV", "creationTimestamp": "$TIME"},
        "spec": object["spec"],
    });
    check(&made, 201, &expected);
    check(&client.get(&item).await, 200, &made.json());
    // Other names than that of the path, and other kinds, are not created.
    let other = client.put(&format!("{LEASES}/b"), &object).await;
    assert_eq!(other.code, 400, "{}", other.text());
    let missing = client
        .put(&format!("{FLUNDERS}/missing"), &flunder("missing"))
        .await;
    let message = r#"flunders.wardle.example.com "missing" not found"#;
    check_failure(&missing, 404, "NotFound", message, about("missing"));
    let anonymous = client.anonymous();
    assert_eq!(
        anonymous
            .put(&format!("{LEASES}/c"), &lease("c"))
            .await
            .code,
        403
    );
}
