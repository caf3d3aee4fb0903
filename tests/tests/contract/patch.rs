//! Patch: JSON patches and merge patches.

use serde_json::json;

use crate::*;

on_each_backend![
    c_086_a_json_patch_that_does_not_apply_is_invalid_and_a_malformed_one_is_bad,
    c_087_a_negative_index_counts_from_the_end_and_operations_are_bounded,
    c_088_merge_patches_never_conflict_unless_they_say_of_what,
    c_089_a_result_that_cannot_be_decoded_is_invalid_without_a_name,
    c_090_force_is_for_apply,
    c_091_a_missing_object_cannot_be_patched,
];

async fn with_a(client: &Client) -> (Value, String) {
    let mut object = flunder("a");
    object["spec"] = json!({"reference": "x"});
    object["metadata"]["finalizers"] = json!(["example.com/1", "example.com/2"]);
    (
        created(client, FLUNDERS, &object).await,
        format!("{FLUNDERS}/a"),
    )
}

async fn c_086_a_json_patch_that_does_not_apply_is_invalid_and_a_malformed_one_is_bad(on: Backend) {
    let (_server, client) = server(on);
    let (object, item) = with_a(&client).await;
    let message = "the server rejected our request due to an error in our request";
    for patch in [
        json!([{"op": "test", "path": "/spec/reference", "value": "y"}]),
        json!([{"op": "remove", "path": "/spec/missing"}]),
        json!([{"op": "replace", "path": "/spec/missing", "value": 1}]),
        json!([{"op": "add", "path": "/missing/parent", "value": 1}]),
        json!([{"op": "replace", "path": "/metadata/finalizers/7", "value": "x"}]),
    ] {
        check_failure(
            &client.json_patch(&item, &patch).await,
            422,
            "Invalid",
            message,
            json!({}),
        );
    }
    for (media_type, body) in [
        ("application/json-patch+json", "{"),
        ("application/json-patch+json", r#"{"op":"add"}"#),
        ("application/merge-patch+json", "{"),
    ] {
        let answer = client
            .call("PATCH", &item, &[("content-type", media_type)], body)
            .await;
        let status = answer.json();
        let message = status["message"].as_str().unwrap();
        assert!(message.starts_with("error decoding patch: "), "{message}");
        check_failure(&answer, 400, "BadRequest", message, json!(null));
    }
    check(&client.get(&item).await, 200, &object);
}

async fn c_087_a_negative_index_counts_from_the_end_and_operations_are_bounded(on: Backend) {
    let (_server, client) = server(on);
    let (object, item) = with_a(&client).await;
    let patch =
        json!([{"op": "replace", "path": "/metadata/finalizers/-1", "value": "example.com/last"}]);
    let mut expected = object.clone();
    expected["metadata"]["finalizers"][1] = json!("example.com/last");
    expected["metadata"]["resourceVersion"] = json!("$RV");
    check(&client.json_patch(&item, &patch).await, 200, &expected);
    let operation = json!({"op": "test", "path": "/spec/reference", "value": "x"});
    let patch = json!(vec![operation; 10_001]);
    let message = "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001";
    check_failure(
        &client.json_patch(&item, &patch).await,
        413,
        "RequestEntityTooLarge",
        message,
        json!(null),
    );
}

async fn c_088_merge_patches_never_conflict_unless_they_say_of_what(on: Backend) {
    let (_server, client) = server(on);
    let (object, item) = with_a(&client).await;
    let mut patches = tokio::task::JoinSet::new();
    for writer in 0..20 {
        let (client, item) = (client.clone(), item.clone());
        patches.spawn(async move {
            let answer = client
                .merge(
                    &item,
                    &json!({"metadata": {"labels": {format!("w{writer}"): "yes"}}}),
                )
                .await;
            assert_eq!(answer.code, 200, "{}", answer.text());
        });
    }
    while let Some(done) = patches.join_next().await {
        done.unwrap();
    }
    let labels = client.get(&item).await.json()["metadata"]["labels"].clone();
    assert_eq!(
        labels.as_object().unwrap().len(),
        20,
        "no patch is lost: {labels}"
    );
    let stale = object["metadata"]["resourceVersion"].clone();
    let patch = json!({"metadata": {"resourceVersion": stale, "labels": {"late": "yes"}}});
    let message = r#"Operation cannot be fulfilled on flunders.wardle.example.com "a": the object has been modified; please apply your changes to the latest version and try again"#;
    check_failure(
        &client.merge(&item, &patch).await,
        409,
        "Conflict",
        message,
        about("a"),
    );
}

async fn c_089_a_result_that_cannot_be_decoded_is_invalid_without_a_name(on: Backend) {
    let (_server, client) = server(on);
    let (_, item) = with_a(&client).await;
    let answer = client
        .merge(&item, &json!({"spec": {"reference": 7}}))
        .await;
    let status = answer.json();
    let cause = &status["details"]["causes"][0];
    let body = cause["message"].as_str().unwrap();
    assert!(
        body.starts_with(r#"Invalid value: "{"#) && body.contains(r#"\"reference\":7"#),
        "{body}"
    );
    let details =
        json!({"causes": [{"reason": "FieldValueInvalid", "message": body, "field": "patch"}]});
    check_failure(
        &answer,
        422,
        "Invalid",
        &format!(r#" "" is invalid: patch: {body}"#),
        details,
    );
}

async fn c_090_force_is_for_apply(on: Backend) {
    let (_server, client) = server(on);
    let (_, item) = with_a(&client).await;
    let body = "Forbidden: may not be specified for non-apply patch";
    let message = format!(r#"PatchOptions.meta.k8s.io "" is invalid: force: {body}"#);
    let details = json!({
        "group": "meta.k8s.io", "kind": "PatchOptions",
        "causes": [{"reason": "FieldValueForbidden", "message": body, "field": "force"}],
    });
    let answer = client
        .merge(&format!("{item}?force=true"), &json!({}))
        .await;
    check_failure(&answer, 422, "Invalid", &message, details);
}

async fn c_091_a_missing_object_cannot_be_patched(on: Backend) {
    let (_server, client) = server(on);
    let item = format!("{FLUNDERS}/missing");
    let message = r#"flunders.wardle.example.com "missing" not found"#;
    check_failure(
        &client.merge(&item, &json!({})).await,
        404,
        "NotFound",
        message,
        about("missing"),
    );
    check_failure(
        &client.json_patch(&item, &json!([])).await,
        404,
        "NotFound",
        message,
        about("missing"),
    );
}
