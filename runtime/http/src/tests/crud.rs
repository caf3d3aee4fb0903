//! Writes: success codes, bodies, options, warnings.

use super::*;

fn item(name: &str) -> String {
    format!("{FLUNDERS}/{name}")
}

#[tokio::test]
async fn create_get_update_patch_delete_answer_with_their_codes() {
    let api = api().await;
    create_flunder(&api, "a").await;
    let updated = put(
        &api,
        &item("a"),
        r#"{"metadata":{"name":"a"},"spec":{"reference":"x"}}"#,
    )
    .await
    .expect(200);
    assert_eq!(updated.at("/metadata/generation"), 2);
    let patched = merge_patch(&api, &item("a"), r#"{"spec":{"reference":"y"}}"#)
        .await
        .expect(200);
    assert_eq!(patched.at("/spec/reference"), "y");
    let uid = patched.at("/metadata/uid");
    let deleted = delete(&api, &item("a"), "").await.expect(200);
    assert_eq!(
        deleted.body,
        format!(
            "{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{{}},\"status\":\"Success\",\"details\":{{\"name\":\"a\",\"group\":\"wardle.example.com\",\"kind\":\"flunders\",\"uid\":{uid}}}}}\n"
        )
    );
    delete(&api, &item("a"), "").await.expect(404);
}

#[tokio::test]
async fn a_deletion_is_never_converted() {
    let api = api().await;
    create_flunder(&api, "a").await;
    let table = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let answer = send(&api, "DELETE", &item("a"), &table, "")
        .await
        .expect(200);
    assert_eq!(answer.at("/kind"), "Status");
}

#[tokio::test]
async fn writes_are_converted_like_reads() {
    let api = api().await;
    let partial = [(
        "accept",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    )];
    let answer = send(
        &api,
        "POST",
        FLUNDERS,
        &partial,
        r#"{"metadata":{"name":"a"}}"#,
    )
    .await
    .expect(201);
    assert_eq!(answer.at("/kind"), "PartialObjectMetadata");
}

#[tokio::test]
async fn bodies_come_as_json_or_yaml() {
    let api = api().await;
    let yaml = [("content-type", "application/yaml")];
    send(
        &api,
        "POST",
        FLUNDERS,
        &yaml,
        "metadata:\n  name: a\nspec:\n  reference: x\n",
    )
    .await
    .expect(201);
    let xml = [("content-type", "application/xml")];
    assert_eq!(
        send(&api, "POST", FLUNDERS, &xml, "<a/>")
            .await
            .expect(415)
            .body,
        failure(
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
            "UnsupportedMediaType",
            None,
            415
        )
    );
    let smp = [("content-type", "application/strategic-merge-patch+json")];
    assert_eq!(
        send(&api, "PATCH", &item("a"), &smp, "{}")
            .await
            .expect(415)
            .body,
        failure(
            "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            "UnsupportedMediaType",
            None,
            415
        )
    );
}

#[tokio::test]
async fn a_body_over_three_mebibytes_is_refused() {
    let body = format!(
        r#"{{"metadata":{{"name":"a"}},"spec":{{"reference":"{}"}}}}"#,
        "x".repeat(3 << 20)
    );
    assert_eq!(
        post(&api().await, FLUNDERS, &body).await.expect(413).body,
        failure(
            "Request entity too large: limit is 3145728",
            "RequestEntityTooLarge",
            None,
            413
        )
    );
}

#[tokio::test]
async fn an_empty_body_is_unrecognized() {
    let message = post(&api().await, FLUNDERS, "").await.expect(400).message();
    assert!(
        message.contains(
            "couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)"
        ),
        "{message}"
    );
}

#[tokio::test]
async fn unknown_fields_are_dropped_warned_about_or_refused() {
    let api = api().await;
    let body =
        |name: &str| format!(r#"{{"metadata":{{"name":"{name}","foo":1}},"spec":{{"bogus":1}}}}"#);
    let warned = post(&api, FLUNDERS, &body("a")).await.expect(201);
    assert_eq!(
        warned.warnings(),
        [
            r#"299 - "unknown field \"metadata.foo\"""#,
            r#"299 - "unknown field \"spec.bogus\"""#
        ]
    );
    let ignored = post(
        &api,
        &format!("{FLUNDERS}?fieldValidation=Ignore"),
        &body("b"),
    )
    .await
    .expect(201);
    assert_eq!(ignored.warnings(), [""; 0]);
    assert_eq!(
        post(
            &api,
            &format!("{FLUNDERS}?fieldValidation=Strict"),
            &body("c")
        )
        .await
        .expect(400)
        .message(),
        "Flunder in version \"v1alpha1\" cannot be handled as a Flunder: strict decoding error: unknown field \"metadata.foo\", unknown field \"spec.bogus\""
    );
}

#[tokio::test]
async fn every_answer_about_a_deprecated_version_warns() {
    let api = api().await;
    let text = r#"299 - "wardle.example.com/v1alpha1 Fischer is deprecated in v1.3+, unavailable in v1.10+; use wardle.example.com/v1 Fischer""#;
    assert_eq!(get(&api, FISCHERS).await.expect(200).warnings(), [text]);
    assert_eq!(
        get(&api, &format!("{FISCHERS}/a"))
            .await
            .expect(404)
            .warnings(),
        [text]
    );
    assert_eq!(get(&api, FLUNDERS).await.expect(200).warnings(), [""; 0]);
}

#[tokio::test]
async fn bad_options_are_invalid() {
    let api = api().await;
    let check = async |method: &str, url: String, message: &str| {
        let json = [(
            "content-type",
            if method == "PATCH" {
                "application/merge-patch+json"
            } else {
                "application/json"
            },
        )];
        assert_eq!(
            send(&api, method, &url, &json, r#"{"metadata":{"name":"a"}}"#)
                .await
                .expect(422)
                .message(),
            message,
            "{method} {url}"
        );
    };
    check(
        "POST",
        format!("{FLUNDERS}?dryRun=Foo"),
        "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Foo\"]: supported values: \"All\"",
    )
    .await;
    check(
        "PUT",
        format!("{}?fieldValidation=Foo", item("a")),
        "UpdateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"Foo\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"",
    )
    .await;
    check(
        "PATCH",
        format!("{}?force=true", item("a")),
        "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch",
    )
    .await;
}

#[tokio::test]
async fn a_dry_run_leaves_nothing() {
    let api = api().await;
    let answer = post(
        &api,
        &format!("{FLUNDERS}?dryRun=All"),
        r#"{"metadata":{"name":"a"}}"#,
    )
    .await
    .expect(201);
    assert_eq!(answer.at("/metadata/resourceVersion"), Value::Null);
    get(&api, &item("a")).await.expect(404);
}

#[tokio::test]
async fn patches_that_do_not_fit_are_refused() {
    let api = api().await;
    create_flunder(&api, "a").await;
    let generic = failure(
        "the server rejected our request due to an error in our request",
        "Invalid",
        Some("{}"),
        422,
    );
    let failing = r#"[{"op":"test","path":"/spec/reference","value":"other"}]"#;
    assert_eq!(
        json_patch(&api, &item("a"), failing).await.expect(422).body,
        generic
    );
    let missing = r#"[{"op":"remove","path":"/spec/nothing"}]"#;
    assert_eq!(
        json_patch(&api, &item("a"), missing).await.expect(422).body,
        generic
    );
    let malformed = json_patch(&api, &item("a"), "{")
        .await
        .expect(400)
        .message();
    assert!(
        malformed.starts_with("error decoding patch: "),
        "{malformed}"
    );
    let many = format!(
        "[{}]",
        vec![r#"{"op":"add","path":"/x","value":1}"#; 10_001].join(",")
    );
    assert_eq!(
        json_patch(&api, &item("a"), &many)
            .await
            .expect(413)
            .message(),
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    );
    merge_patch(&api, &item("none"), "{}").await.expect(404);
}

#[tokio::test]
async fn status_is_written_apart() {
    let api = api().await;
    create_flunder(&api, "a").await;
    let status = format!("{}/status", item("a"));
    let answer = merge_patch(
        &api,
        &status,
        r#"{"spec":{"reference":"no"},"status":{"phase":"Ready"}}"#,
    )
    .await
    .expect(200);
    assert_eq!(
        (answer.at("/spec/reference"), answer.at("/status/phase")),
        ("r-a".into(), "Ready".into())
    );
    assert_eq!(
        get(&api, &status).await.expect(200).at("/status/phase"),
        "Ready"
    );
}

#[tokio::test]
async fn a_delete_reads_its_body_before_its_query() {
    let api = api().await;
    create_flunder(&api, "a").await;
    let url = format!("{}?dryRun=Foo", item("a"));
    delete(&api, &url, "").await.expect(422);
    let wrong = delete(&api, &url, r#"{"kind":"Pod","apiVersion":"v1"}"#)
        .await
        .expect(400)
        .message();
    assert!(
        wrong.starts_with("no kind \"Pod\" is registered for version \"v1\""),
        "{wrong}"
    );
    delete(
        &api,
        &url,
        r#"{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}"#,
    )
    .await
    .expect(200);
    delete(&api, &url, r#"{"kind":"DeleteOptions","apiVersion":"v1"}"#)
        .await
        .expect(200);
    get(&api, &item("a")).await.expect(404);
}

#[tokio::test]
async fn a_pending_deletion_is_202_only_when_dependents_are_to_go() {
    let api = api().await;
    let body = r#"{"metadata":{"name":"a","finalizers":["example.com/x"]}}"#;
    post(&api, FLUNDERS, body).await.expect(201);
    let pending = delete(&api, &item("a"), "").await.expect(200);
    assert_eq!(pending.at("/metadata/deletionGracePeriodSeconds"), 0);
    delete(&api, &format!("{}?orphanDependents=false", item("a")), "")
        .await
        .expect(202);
    let gone = merge_patch(&api, &item("a"), r#"{"metadata":{"finalizers":null}}"#)
        .await
        .expect(200);
    assert_eq!(gone.at("/metadata/name"), "a");
    get(&api, &item("a")).await.expect(404);
}

#[tokio::test]
async fn deleting_a_collection_lists_what_was_there() {
    let api = api().await;
    for name in ["a", "b"] {
        create_flunder(&api, name).await;
    }
    let answer = delete(&api, FLUNDERS, "").await.expect(200);
    assert_eq!(
        (answer.at("/kind"), answer.at("/items/1/metadata/name")),
        ("FlunderList".into(), "b".into())
    );
    assert_eq!(
        get(&api, FLUNDERS).await.at("/items"),
        Value::Array(Vec::new())
    );
}

#[tokio::test]
async fn a_namespace_ends_through_finalize() {
    let api = api().await;
    post(&api, "/api/v1/namespaces", r#"{"metadata":{"name":"n"}}"#)
        .await
        .expect(201);
    let terminating = delete(&api, "/api/v1/namespaces/n", "").await.expect(200);
    assert_eq!(terminating.at("/status/phase"), "Terminating");
    put(
        &api,
        "/api/v1/namespaces/n/finalize",
        r#"{"metadata":{"name":"n"},"spec":{"finalizers":[]}}"#,
    )
    .await
    .expect(200);
    get(&api, "/api/v1/namespaces/n").await.expect(404);
}

#[tokio::test]
async fn a_namespace_may_come_as_protobuf() {
    const BODY: &str = "k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x09\x0a\x07\x0a\x05proto";
    let api = api().await;
    let protobuf = [("content-type", "application/vnd.kubernetes.protobuf")];
    let namespaces = "/api/v1/namespaces";
    let created = send(&api, "POST", namespaces, &protobuf, BODY)
        .await
        .expect(201);
    assert_eq!(created.at("/metadata/name"), "proto");
    send(&api, "POST", FLUNDERS, &protobuf, BODY)
        .await
        .expect(400);
    let flunder = BODY.replace("Namespace", "FlunderXX");
    send(&api, "POST", FLUNDERS, &protobuf, &flunder)
        .await
        .expect(415);
}
