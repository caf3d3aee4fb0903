//! Patch: JSON patches, merge patches and strategic merge patches.

use serde_json::json;

use crate::*;

on_each_backend![
    c_086_a_kind_that_declares_no_strategic_patches_refuses_them,
    c_086_a_json_patch_that_does_not_apply_is_invalid_and_a_malformed_one_is_bad,
    c_086_a_strategic_patch_merges_lists_and_refuses_what_cannot_be_merged,
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
        json!([{"op": "replace", "path": "/spec/missing/below", "value": 1}]),
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

/// Asserts the answer to a patch that cannot be applied.
#[track_caller]
fn check_rejected(answer: &Answer) {
    let message = "the server rejected our request due to an error in our request";
    check_failure(answer, 422, "Invalid", message, json!({}));
}

async fn c_086_a_kind_that_declares_no_strategic_patches_refuses_them(on: Backend) {
    let (_server, client) = server(on);
    let (object, item) = with_a(&client).await;
    let answer = client
        .strategic(&item, &json!({"spec": {"reference": "y"}}))
        .await;
    assert_eq!(answer.code, 415, "{}", answer.text());
    check(&client.get(&item).await, 200, &object);
}

async fn c_086_a_strategic_patch_merges_lists_and_refuses_what_cannot_be_merged(on: Backend) {
    let (_server, client) = server(on);
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "merged"}});
    let mut expected = created(&client, "/api/v1/namespaces", &namespace).await;
    let item = "/api/v1/namespaces/merged";
    expected["metadata"]["resourceVersion"] = json!("$RV");
    let patch = json!({"metadata": {"labels": {"a": "1"}, "finalizers": ["example.com/a", "example.com/b"]}});
    expected["metadata"]["labels"]["a"] = json!("1");
    expected["metadata"]["finalizers"] = json!(["example.com/a", "example.com/b"]);
    check(&client.strategic(item, &patch).await, 200, &expected);
    let patch = json!({"metadata": {"labels": {"a": null}, "finalizers": ["example.com/c"],
        "$deleteFromPrimitiveList/finalizers": ["example.com/a"],
        "$setElementOrder/finalizers": ["example.com/b", "example.com/c"]}});
    expected["metadata"]["labels"]
        .as_object_mut()
        .unwrap()
        .remove("a");
    expected["metadata"]["finalizers"] = json!(["example.com/b", "example.com/c"]);
    let answer = client.strategic(item, &patch).await;
    check(&answer, 200, &expected);
    // Applied again it changes nothing.
    check(&client.strategic(item, &patch).await, 200, &answer.json());
    let condition = |name: &str, status: &str| json!({"type": name, "status": status, "reason": "Tested", "message": "text"});
    let status = format!("{item}/status");
    for (patch, conditions) in [
        (
            json!([condition("A", "True"), condition("B", "True")]),
            json!([condition("A", "True"), condition("B", "True")]),
        ),
        (
            json!([{"type": "B", "status": "False"}, {"type": "A", "$patch": "delete"}]),
            json!([condition("B", "False")]),
        ),
        (
            json!([{"$patch": "replace"}, condition("C", "True")]),
            json!([condition("C", "True")]),
        ),
    ] {
        let patch = json!({"status": {"conditions": patch}});
        expected["status"]["conditions"] = conditions;
        check(&client.strategic(&status, &patch).await, 200, &expected);
    }
    // An unknown directive is an error of the server, here as there.
    for (patch, map) in [
        (json!({"$patch": "bogus"}), "map[$patch:bogus]"),
        (
            json!({"conditions": [{"type": "A", "$patch": "bogus"}]}),
            "map[$patch:bogus type:A]",
        ),
    ] {
        let answer = client.strategic(&status, &json!({"status": patch})).await;
        let message = format!("unknown patch type: bogus in map: {map}");
        check_failure(&answer, 500, "", &message, json!(null));
    }
    // A patch that cannot be merged is invalid, without the reason.
    for patch in [
        json!([{"status": "True"}]),
        json!([{"status": "True", "$patch": "delete"}]),
        json!([{"type": "A", "$patch": "merge"}]),
    ] {
        let patch = json!({"status": {"conditions": patch}});
        check_rejected(&client.strategic(&status, &patch).await);
    }
    let unordered = json!({"$setElementOrder/conditions": [{"type": "A"}, {"type": "B"}],
        "conditions": [condition("B", "True"), condition("A", "True")]});
    let unordered = json!({"status": unordered});
    check_rejected(&client.strategic(&status, &unordered).await);
    for (patch, message) in [
        (
            json!({"$retainKeys": "phase"}),
            "invalid patch format of retainKeys",
        ),
        (
            json!({"conditions": ["A"]}),
            "list element types are not identical: [[map[message:text reason:Tested status:True type:C]] [A]]",
        ),
    ] {
        let answer = client.strategic(&status, &json!({"status": patch})).await;
        check_failure(&answer, 400, "BadRequest", message, json!(null));
    }
    let answer = client
        .strategic(item, &json!({"metadata": {"labels": {"a": 5}}}))
        .await;
    let status = answer.json();
    let body = status["details"]["causes"][0]["message"].as_str().unwrap();
    assert!(
        body.starts_with(
            r#"Invalid value: "map[metadata:map[labels:map[a:5]]]": json: cannot unmarshal number"#
        ),
        "{body}"
    );
    let details =
        json!({"causes": [{"reason": "FieldValueInvalid", "message": body, "field": "patch"}]});
    let message = format!(r#" "" is invalid: patch: {body}"#);
    check_failure(&answer, 422, "Invalid", &message, details);
    let answer = client
        .call(
            "PATCH",
            item,
            &[("content-type", "application/strategic-merge-patch+json")],
            "{",
        )
        .await;
    let message = "unexpected end of JSON input";
    check_failure(&answer, 400, "BadRequest", message, json!(null));
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
