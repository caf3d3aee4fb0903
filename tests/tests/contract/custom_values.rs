//! Values of custom resources that are accepted or refused, and what is warned of.

use serde_json::json;

use crate::custom::*;
use crate::*;

on_each_backend![
    a_null_that_is_applied_is_a_value,
    violations_by_unchanged_values_are_warned_of,
];

async fn a_null_that_is_applied_is_a_value(on: Backend) {
    let (_server, client) = with_foos(on).await;
    created(&client, FOOS, &foo("a", &json!({"note": "n"}))).await;
    let applied = async |spec: &Value| {
        let headers = [("content-type", "application/apply-patch+yaml")];
        let path = format!("{FOOS}/a?fieldManager=m&force=true");
        let body = foo("a", spec).to_string();
        client.call("PATCH", &path, &headers, body).await
    };
    let refused = applied(&json!({"note": null})).await;
    let message = "Foo.ex.io \"a\" is invalid: spec.note: Invalid value: \"null\": spec.note in body must be of type string: \"null\"";
    assert_eq!(
        (refused.code, &refused.json()["message"]),
        (422, &json!(message))
    );
    // The body of another request is decoded, which drops the null.
    let merged = client
        .merge(&format!("{FOOS}/a"), &json!({"spec": {"note": null}}))
        .await;
    assert_eq!(merged.code, 200, "{}", merged.text());
    assert_eq!(
        applied(&json!({"note": "x"})).await.json()["spec"]["note"],
        "x"
    );
}

async fn violations_by_unchanged_values_are_warned_of(on: Backend) {
    let (_server, client) = with_foos(on).await;
    created(&client, FOOS, &foo("a", &json!({"replicas": 9}))).await;
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    let rules = json!([{"rule": "self < 5", "message": "too many"}]);
    let patch = json!([
        {"op": "add", "path": format!("{spec}/properties/replicas/x-kubernetes-validations"), "value": rules},
    ]);
    let changed = client.json_patch(&path("foos"), &patch).await;
    assert_eq!(changed.code, 200, "{}", changed.text());
    let other = foo("b", &json!({"replicas": 9}));
    let started = Instant::now();
    while client
        .post(&format!("{FOOS}?dryRun=All"), &other)
        .await
        .code
        != 422
    {
        assert!(
            started.elapsed() < Duration::from_secs(10),
            "the rule does not apply"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let kept = client
        .merge(&format!("{FOOS}/a"), &json!({"spec": {"note": "n"}}))
        .await;
    assert_eq!(kept.code, 200, "{}", kept.text());
    assert_eq!(
        kept.header("warning"),
        "299 - \"spec.replicas: Invalid value: 9: too many\""
    );
}
