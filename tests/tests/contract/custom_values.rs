//! Values of custom resources that are accepted or refused, and what is warned of.

use serde_json::json;

use crate::custom::*;
use crate::*;

on_each_backend![
    a_null_that_is_applied_is_a_value,
    violations_by_unchanged_values_are_warned_of,
    a_rule_sees_an_absent_old_value_and_computes_its_message,
    owners_of_fields_are_sorted_as_all_fields_are,
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

async fn a_rule_sees_an_absent_old_value_and_computes_its_message(on: Backend) {
    let (_server, client) = server(on);
    let properties = json!({
        "replicas": {"type": "integer", "x-kubernetes-validations": [{
            "rule": "self >= oldSelf.orValue(3)", "optionalOldSelf": true, "reason": "FieldValueForbidden",
            "messageExpression": "oldSelf.hasValue() ? 'must not shrink' : 'must be at least 3'", "message": "too few",
        }]},
        // An expression that fails is replaced by the message.
        "list": {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 5}, "x-kubernetes-validations": [
            {"rule": "self.size() > 1", "messageExpression": "'only ' + self[0]", "message": "too short"},
        ]},
    });
    establish(&client, &definition("foos", "Foo", &properties)).await;
    let refused = |answer: &Answer, causes: &Value| {
        assert_eq!(answer.code, 422, "{}", answer.text());
        assert_eq!(answer.json()["details"]["causes"], *causes);
    };
    let forbidden = |message: &str| json!([{"reason": "FieldValueForbidden", "message": format!("Forbidden: {message}"), "field": "spec.replicas"}]);
    let invalid = |message: &str| json!([{"reason": "FieldValueInvalid", "message": format!("Invalid value: {message}"), "field": "spec.list"}]);
    let few = client.post(FOOS, &foo("a", &json!({"replicas": 2}))).await;
    refused(&few, &forbidden("must be at least 3"));
    created(&client, FOOS, &foo("a", &json!({"replicas": 5}))).await;
    let path = format!("{FOOS}/a");
    let fewer = client.merge(&path, &json!({"spec": {"replicas": 4}})).await;
    refused(&fewer, &forbidden("must not shrink"));
    // Without an old value the rule is evaluated on an update too, which it would not be without optionalOldSelf.
    created(&client, FOOS, &foo("b", &json!({}))).await;
    let few = client
        .merge(&format!("{FOOS}/b"), &json!({"spec": {"replicas": 1}}))
        .await;
    refused(&few, &forbidden("must be at least 3"));
    let short = client.merge(&path, &json!({"spec": {"list": ["x"]}})).await;
    refused(&short, &invalid("only x"));
    let empty = client.merge(&path, &json!({"spec": {"list": []}})).await;
    refused(&empty, &invalid("too short"));
}

async fn owners_of_fields_are_sorted_as_all_fields_are(on: Backend) {
    let (_server, client) = with_foos(on).await;
    let first = "\"managedFields\":[{\"apiVersion\":\"ex.io/v1\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:spec\":{";
    let of_scale = "},\"manager\":\"scaler\",\"operation\":\"Apply\",\"subresource\":\"scale\"";
    let path = format!("{FOOS}/a");
    let made = client
        .post(FOOS, &foo("a", &json!({"note": "n", "replicas": 1})))
        .await;
    let merged = client.merge(&path, &json!({"spec": {"replicas": 2}})).await;
    let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": 3}});
    let headers = [("content-type", "application/apply-patch+yaml")];
    let url = format!("{path}/scale?fieldManager=scaler&force=true");
    let scaled = client
        .call("PATCH", &url, &headers, scale.to_string())
        .await;
    assert_eq!(scaled.code, 200, "{}", scaled.text());
    let shown = client.get(&path).await;
    let listed = client.get(FOOS).await;
    for answer in [&made, &merged] {
        assert!(answer.text().contains(first), "{}", answer.text());
    }
    for answer in [&shown, &listed] {
        assert!(answer.text().contains(of_scale), "{}", answer.text());
    }
}
