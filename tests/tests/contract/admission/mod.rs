//! Admission webhooks: when they are asked, what they are sent, and what their answers do.

mod hook;

use std::sync::Arc;

use self::hook::{Hook, Reply, base64 as base64_of};
use crate::*;

on_each_backend![
    c_163_mutating_webhooks_run_in_order_with_one_more_round_and_validating_ones_at_once,
    c_164_a_denial_keeps_its_code_and_a_failure_is_500_or_ignored,
    c_165_a_dry_run_is_refused_by_a_webhook_with_side_effects,
    a_review_has_the_write_with_both_objects,
    webhooks_are_asked_about_what_their_rules_match,
    a_write_in_another_version_is_shown_in_that_of_the_rule,
    conditions_and_selectors_decide_before_a_webhook_is_asked,
    what_a_webhook_answers_wrong_is_told,
    configurations_apply_at_once_and_are_exempt,
    custom_resources_are_reviewed_and_changed,
];

const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

/// A webhook about all writes of flunders.
fn webhook(hook: &Hook, path: &str) -> Value {
    json!({
        "name": format!("{}.example.com", path.trim_start_matches('/').replace('/', ".") + ".hook"),
        "clientConfig": hook.config(path),
        "rules": [{"operations": ["*"], "apiGroups": ["wardle.example.com"], "apiVersions": ["*"], "resources": ["flunders"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    })
}

/// The same with other fields.
fn with(mut webhook: Value, fields: &Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        webhook[name] = value.clone();
    }
    webhook
}

async fn configure(client: &Client, path: &str, name: &str, webhooks: &[Value]) {
    let kind = if path == MUTATING {
        "MutatingWebhookConfiguration"
    } else {
        "ValidatingWebhookConfiguration"
    };
    let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": name}, "webhooks": webhooks});
    let answer = client.post(path, &object).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
}

async fn unconfigure(client: &Client, path: &str, name: &str) {
    let answer = client.delete(&format!("{path}/{name}"), &json!({})).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
}

#[track_caller]
fn check_message(answer: &Answer, code: u16, message: &str) {
    let body = answer.json();
    assert_eq!(
        (answer.code, body["message"].as_str()),
        (code, Some(message)),
        "{body}"
    );
}

/// Adds a label, and the number of labels that it sees as an annotation.
fn labels(name: &'static str) -> Reply {
    Reply::patch(move |request| {
        let labels = &request["object"]["metadata"]["labels"];
        let mut steps = Vec::new();
        if labels.is_null() {
            steps.push(json!({"op": "add", "path": "/metadata/labels", "value": {}}));
        }
        steps
            .push(json!({"op": "add", "path": format!("/metadata/labels/{name}"), "value": "yes"}));
        steps.into()
    })
}

async fn c_163_mutating_webhooks_run_in_order_with_one_more_round_and_validating_ones_at_once(
    on: Backend,
) {
    let (_cluster, client) = server(on);
    let hook = Hook::start().await;
    hook.reply("/first", labels("first"));
    hook.reply("/second", labels("second"));
    hook.reply("/third", Reply::allow());
    let first = with(
        webhook(&hook, "/first"),
        &json!({"reinvocationPolicy": "IfNeeded"}),
    );
    let third = with(
        webhook(&hook, "/third"),
        &json!({"reinvocationPolicy": "IfNeeded"}),
    );
    // In the order of names of the configurations, then in that of the list.
    configure(&client, MUTATING, "b", &[webhook(&hook, "/second"), third]).await;
    configure(&client, MUTATING, "a", &[first]).await;
    let answer = client.post(FLUNDERS, &flunder("one")).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    assert_eq!(
        answer.json()["metadata"]["labels"],
        json!({"first": "yes", "second": "yes"})
    );
    let calls = hook.calls();
    let paths: Vec<&str> = calls.iter().map(|(path, _)| path.as_str()).collect();
    // The second one changed the object after the first, which is asked again; the third saw it as it stayed.
    assert_eq!(paths, ["/first", "/second", "/third", "/first"]);
    let seen = |at: usize| &calls[at].1["request"]["object"]["metadata"]["labels"];
    assert_eq!(seen(0), &Value::Null);
    assert_eq!(seen(1), &json!({"first": "yes"}));
    assert_eq!(seen(3), &json!({"first": "yes", "second": "yes"}));
    unconfigure(&client, MUTATING, "a").await;
    unconfigure(&client, MUTATING, "b").await;

    // Each answers only when both are asked.
    let both = Arc::new(tokio::sync::Barrier::new(2));
    hook.reply("/one", Reply::Together(Arc::clone(&both)));
    hook.reply("/two", Reply::Together(both));
    configure(
        &client,
        VALIDATING,
        "a",
        &[webhook(&hook, "/one"), webhook(&hook, "/two")],
    )
    .await;
    let answer = client.post(FLUNDERS, &flunder("two")).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    let mut paths = hook.paths();
    paths.sort_unstable();
    assert_eq!(paths, ["/one", "/two"]);
}

async fn c_164_a_denial_keeps_its_code_and_a_failure_is_500_or_ignored(on: Backend) {
    let (_cluster, client) = server(on);
    let hook = Hook::start().await;
    configure(&client, VALIDATING, "a", &[webhook(&hook, "/check")]).await;
    let denied = "admission webhook \"check.hook.example.com\" denied the request";
    let explained = format!("{denied}: too red");
    for (status, code, reason, message) in [
        (
            json!({"code": 403, "message": "too red", "reason": "Forbidden"}),
            403,
            json!("Forbidden"),
            explained.clone(),
        ),
        (
            json!({"code": 418, "message": "too red", "reason": "Teapot"}),
            418,
            json!("Teapot"),
            explained.clone(),
        ),
        (
            json!({"code": 200, "status": "Success", "message": "too red"}),
            400,
            Value::Null,
            explained.clone(),
        ),
        (
            json!({"message": "too red", "metadata": {}, "details": {"name": "x", "causes": [{"field": "f", "message": "m"}]}}),
            400,
            Value::Null,
            explained,
        ),
        (
            json!({"reason": "Conflict", "code": 409}),
            409,
            json!("Conflict"),
            format!("{denied}: Conflict"),
        ),
        (
            Value::Null,
            400,
            Value::Null,
            format!("{denied} without explanation"),
        ),
    ] {
        hook.reply("/check", Reply::Deny(status.clone()));
        let answer = client.post(FLUNDERS, &flunder("no")).await;
        check_message(&answer, code, &message);
        let body = answer.json();
        assert_eq!(
            (&body["reason"], &body["status"], &body["code"]),
            (&reason, &json!("Failure"), &json!(code)),
            "{body}"
        );
        assert_eq!(body["details"]["causes"], status["details"]["causes"]);
    }
    let absent = client.get(&format!("{FLUNDERS}/no")).await;
    assert_eq!(absent.code, 404);

    let fails = async |reply: Reply| {
        hook.reply("/check", reply);
        client.post(FLUNDERS, &flunder("no")).await
    };
    let begin = "Internal error occurred: failed calling webhook \"check.hook.example.com\": failed to call webhook: ";
    let answer = fails(Reply::Text(500, "out of paint".to_owned())).await;
    check_message(
        &answer,
        500,
        &format!(
            "{begin}an error on the server (\"out of paint\") has prevented the request from succeeding"
        ),
    );
    assert_eq!(answer.json()["reason"], "InternalError");
    unconfigure(&client, VALIDATING, "a").await;

    let slow = with(webhook(&hook, "/check"), &json!({"timeoutSeconds": 1}));
    configure(&client, VALIDATING, "a", std::slice::from_ref(&slow)).await;
    let answer = fails(Reply::Hang).await;
    let url = format!("https://{}/check?timeout=1s", hook.address);
    check_message(
        &answer,
        500,
        &format!("{begin}Post \"{url}\": context deadline exceeded"),
    );
    unconfigure(&client, VALIDATING, "a").await;

    let ignored = with(slow, &json!({"failurePolicy": "Ignore"}));
    configure(&client, VALIDATING, "a", std::slice::from_ref(&ignored)).await;
    configure(&client, MUTATING, "a", &[ignored]).await;
    let answer = client.post(FLUNDERS, &flunder("yes")).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    // A denial is none of the failures that are ignored.
    hook.reply("/check", Reply::Deny(json!({"message": "no"})));
    let answer = client.post(FLUNDERS, &flunder("no")).await;
    check_message(&answer, 400, &format!("{denied}: no"));
    let metrics = client.get("/metrics").await.text();
    for line in [
        r#"apiserver_admission_webhook_fail_open_count{name="check.hook.example.com",type="validating"} 1"#,
        r#"apiserver_admission_webhook_fail_open_count{name="check.hook.example.com",type="admit"} 1"#,
        r#"apiserver_admission_webhook_rejection_count{name="check.hook.example.com",type="validating",operation="CREATE",error_type="no_error",rejection_code="418"} 1"#,
        r#"apiserver_admission_webhook_request_total{name="check.hook.example.com",type="validating",operation="CREATE",code="503",rejected="true"} 1"#,
    ] {
        assert!(
            has_replicas() || metrics.contains(line),
            "{line}\n{metrics}"
        );
    }
}

async fn c_165_a_dry_run_is_refused_by_a_webhook_with_side_effects(on: Backend) {
    let (_cluster, client) = server(on);
    let hook = Hook::start().await;
    let clean = with(
        webhook(&hook, "/clean"),
        &json!({"sideEffects": "NoneOnDryRun"}),
    );
    configure(&client, VALIDATING, "a", &[clean]).await;
    let answer = client
        .post(&format!("{FLUNDERS}?dryRun=All"), &flunder("a"))
        .await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    let [(_, review)] = &hook.calls()[..] else {
        panic!("one call")
    };
    assert_eq!(review["request"]["dryRun"], true);
    assert_eq!(review["request"]["options"]["dryRun"], json!(["All"]));
    // One with side effects cannot be configured; it could have been before Kubernetes 1.16.
    let unclean = with(webhook(&hook, "/unclean"), &json!({"sideEffects": "Some"}));
    let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "b"}, "webhooks": [unclean]});
    let answer = client.post(VALIDATING, &object).await;
    check_message(
        &answer,
        422,
        "ValidatingWebhookConfiguration.admissionregistration.k8s.io \"b\" is invalid: webhooks[0].sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\"",
    );
}

async fn a_review_has_the_write_with_both_objects(on: Backend) {
    let (_cluster, client) = server(on);
    let hook = Hook::start().await;
    configure(&client, VALIDATING, "a", &[webhook(&hook, "/check")]).await;
    let mut object = flunder("a");
    object["metadata"]["labels"] = json!({"color": "blue"});
    let made = client.post(FLUNDERS, &object).await.json();
    let mut changed = made.clone();
    changed["metadata"]["labels"] = json!({"color": "red"});
    let put = client.put(&format!("{FLUNDERS}/a"), &changed).await;
    assert_eq!(put.code, 200, "{}", put.text());
    let deleted = client.delete(&format!("{FLUNDERS}/a"), &json!({})).await;
    assert_eq!(deleted.code, 200);
    let calls = hook.calls();
    let [(_, create), (_, update), (_, delete)] = &calls[..] else {
        panic!("{calls:?}")
    };
    assert_eq!(create["query"], "timeout=10s");
    assert_eq!(create["apiVersion"], "admission.k8s.io/v1");
    let request = &create["request"];
    let gvk = json!({"group": "wardle.example.com", "version": "v1alpha1", "kind": "Flunder"});
    let gvr = json!({"group": "wardle.example.com", "version": "v1alpha1", "resource": "flunders"});
    for (field, value) in [
        ("kind", &gvk),
        ("requestKind", &gvk),
        ("resource", &gvr),
        ("requestResource", &gvr),
        ("name", &json!("a")),
        ("namespace", &json!("default")),
        ("operation", &json!("CREATE")),
        ("dryRun", &json!(false)),
        ("oldObject", &Value::Null),
        ("subResource", &Value::Null),
    ] {
        assert_eq!(&request[field], value, "{field}");
    }
    assert_eq!(request["uid"].as_str().unwrap().len(), 36);
    assert_eq!(
        request["options"],
        json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"})
    );
    assert!(
        request["userInfo"]["groups"]
            .as_array()
            .unwrap()
            .contains(&json!("system:masters")),
        "{request}"
    );
    let object = &request["object"];
    assert_eq!(
        (&object["apiVersion"], &object["kind"]),
        (&json!("wardle.example.com/v1alpha1"), &json!("Flunder"))
    );
    assert_eq!(object["metadata"]["uid"], made["metadata"]["uid"]);
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries[0]["fieldsType"], "FieldsV1");
    assert!(entries[0]["fieldsV1"].is_object());
    let request = &update["request"];
    assert_eq!(request["operation"], "UPDATE");
    assert_eq!(request["options"]["kind"], "UpdateOptions");
    assert_eq!(
        request["object"]["metadata"]["labels"],
        json!({"color": "red"})
    );
    assert_eq!(request["oldObject"], made);
    let request = &delete["request"];
    assert_eq!(
        (&request["operation"], &request["object"]),
        (&json!("DELETE"), &Value::Null)
    );
    assert_eq!(
        request["oldObject"]["metadata"]["labels"],
        json!({"color": "red"})
    );
    assert_eq!(request["options"]["kind"], "DeleteOptions");
}

async fn webhooks_are_asked_about_what_their_rules_match(on: Backend) {
    let (_cluster, client) = server(on);
    let hook = Hook::start().await;
    let rules = |rules: Value| json!({"rules": [rules]});
    let all =
        json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]});
    let cases = [
        (
            "/creates",
            with(all.clone(), &json!({"operations": ["CREATE"]})),
        ),
        (
            "/updates",
            with(all.clone(), &json!({"operations": ["UPDATE", "DELETE"]})),
        ),
        (
            "/statuses",
            with(all.clone(), &json!({"resources": ["*/status"]})),
        ),
        (
            "/fischers",
            with(all.clone(), &json!({"resources": ["fischers"]})),
        ),
        ("/cluster", with(all.clone(), &json!({"scope": "Cluster"}))),
        ("/core", with(all.clone(), &json!({"apiGroups": [""]}))),
        ("/other", with(all.clone(), &json!({"apiVersions": ["v7"]}))),
    ];
    let webhooks: Vec<Value> = cases
        .iter()
        .map(|(path, rule)| with(webhook(&hook, path), &rules(rule.clone())))
        .collect();
    configure(&client, VALIDATING, "a", &webhooks).await;
    let sorted = || {
        let mut paths = hook.paths();
        paths.sort_unstable();
        paths
    };
    let made = client.post(FLUNDERS, &flunder("a")).await.json();
    assert_eq!(sorted(), ["/creates"]);
    let answer = client.put(&format!("{FLUNDERS}/a/status"), &made).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    assert_eq!(sorted(), ["/statuses"]);
    client.delete(&format!("{FLUNDERS}/a"), &json!({})).await;
    assert_eq!(sorted(), ["/updates"]);
    client.get(&format!("{FLUNDERS}/a")).await;
    assert_eq!(sorted(), [""; 0]);
    let fischer = json!({"apiVersion": "wardle.example.com/v1alpha1", "kind": "Fischer", "metadata": {"name": "f"}});
    let answer = client.post(FISCHERS, &fischer).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    assert_eq!(sorted(), ["/cluster", "/creates", "/fischers"]);
    // A namespace is of the cluster, and the reviews of tokens and permissions are never asked about.
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    let answer = client.post("/api/v1/namespaces", &namespace).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    let paths = sorted();
    assert!(
        ["/cluster", "/core", "/creates"]
            .iter()
            .all(|path| paths.contains(&(*path).to_owned())),
        "{paths:?}"
    );
}

async fn a_write_in_another_version_is_shown_in_that_of_the_rule(on: Backend) {
    let (_cluster, client) = server(on);
    let hook = Hook::start().await;
    let rule = |policy: &str| {
        json!({"matchPolicy": policy, "rules": [{"operations": ["CREATE"],
        "apiGroups": ["wardle.example.com"], "apiVersions": ["v1beta1"], "resources": ["flunders"]}]})
    };
    let reference = |request: &Value| {
        let value = request["object"]["spec"]["fischerReference"].clone();
        json!([{"op": "replace", "path": "/spec/fischerReference", "value": format!("{}-changed", value.as_str().unwrap())}])
    };
    hook.reply("/equivalent", Reply::patch(reference));
    configure(
        &client,
        MUTATING,
        "a",
        &[
            with(webhook(&hook, "/equivalent"), &rule("Equivalent")),
            with(webhook(&hook, "/exact"), &rule("Exact")),
        ],
    )
    .await;
    let mut object = flunder("a");
    object["spec"] = json!({"reference": "x", "referenceType": "Fischer"});
    let answer = client.post(FLUNDERS, &object).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    // It comes back in the version of the request.
    assert_eq!(answer.json()["apiVersion"], "wardle.example.com/v1alpha1");
    assert_eq!(answer.json()["spec"]["reference"], "x-changed");
    let calls = hook.calls();
    let [(path, review)] = &calls[..] else {
        panic!("{calls:?}")
    };
    assert_eq!(path, "/equivalent");
    let request = &review["request"];
    assert_eq!(
        (
            &request["kind"]["version"],
            &request["requestKind"]["version"]
        ),
        (&json!("v1beta1"), &json!("v1alpha1"))
    );
    assert_eq!(
        (
            &request["resource"]["version"],
            &request["requestResource"]["version"]
        ),
        (&json!("v1beta1"), &json!("v1alpha1"))
    );
    assert_eq!(
        request["object"]["apiVersion"],
        "wardle.example.com/v1beta1"
    );
    let mut beta = json!({"apiVersion": "wardle.example.com/v1beta1", "kind": "Flunder", "metadata": {"name": "b"}});
    beta["spec"] = json!({"fischerReference": "y", "referenceType": "Fischer"});
    let answer = client.post(FLUNDERS_BETA, &beta).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    assert_eq!(answer.json()["spec"]["fischerReference"], "y-changed");
    assert_eq!(hook.paths(), ["/equivalent", "/exact"]);
}

async fn conditions_and_selectors_decide_before_a_webhook_is_asked(on: Backend) {
    let (_cluster, client) = server(on);
    let hook = Hook::start().await;
    let condition = |text: &str| json!({"matchConditions": [{"name": "c", "expression": text}]});
    configure(
        &client,
        VALIDATING,
        "a",
        &[
            with(
                webhook(&hook, "/named"),
                &condition("object != null && object.metadata.name.startsWith('a')"),
            ),
            with(
                webhook(&hook, "/deleting"),
                &condition("request.operation == 'DELETE' && oldObject.metadata.name == 'a'"),
            ),
            with(
                webhook(&hook, "/masters"),
                &condition(
                    "request.userInfo.groups.exists(g, g == 'system:masters') && object == null",
                ),
            ),
            with(
                webhook(&hook, "/labelled"),
                &json!({"objectSelector": {"matchLabels": {"color": "red"}}}),
            ),
            with(
                webhook(&hook, "/in-red"),
                &json!({"namespaceSelector": {"matchLabels": {"color": "red"}}}),
            ),
        ],
    )
    .await;
    let sorted = || {
        let mut paths = hook.paths();
        paths.sort_unstable();
        paths
    };
    client.post(FLUNDERS, &flunder("b")).await;
    assert_eq!(sorted(), [""; 0]);
    client.post(FLUNDERS, &flunder("a")).await;
    assert_eq!(sorted(), ["/named"]);
    let patch = json!({"metadata": {"labels": {"color": "red"}}});
    let answer = client.merge(&format!("{FLUNDERS}/b"), &patch).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    assert_eq!(sorted(), ["/labelled"]);
    // The object that has the label no longer had it before.
    let patch = json!({"metadata": {"labels": null}});
    client.merge(&format!("{FLUNDERS}/b"), &patch).await;
    assert_eq!(sorted(), ["/labelled"]);
    client.delete(&format!("{FLUNDERS}/a"), &json!({})).await;
    assert_eq!(sorted(), ["/deleting", "/masters"]);
    let answer = client
        .merge(
            "/api/v1/namespaces/default",
            &json!({"metadata": {"labels": {"color": "red"}}}),
        )
        .await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    client.post(FLUNDERS, &flunder("c")).await;
    assert_eq!(sorted(), ["/in-red"]);
    unconfigure(&client, VALIDATING, "a").await;

    // One that cannot be evaluated refuses the write, or leaves the webhook out.
    let broken = with(
        webhook(&hook, "/broken"),
        &condition("object.spec.nothing == 1"),
    );
    configure(&client, VALIDATING, "a", std::slice::from_ref(&broken)).await;
    let answer = client.post(FLUNDERS, &flunder("d")).await;
    check_message(
        &answer,
        403,
        "flunders.wardle.example.com \"d\" is forbidden: expression 'object.spec.nothing == 1' resulted in error: no such key: spec",
    );
    unconfigure(&client, VALIDATING, "a").await;
    configure(
        &client,
        VALIDATING,
        "a",
        &[with(broken, &json!({"failurePolicy": "Ignore"}))],
    )
    .await;
    let answer = client.post(FLUNDERS, &flunder("d")).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    assert_eq!(sorted(), [""; 0]);
}

async fn what_a_webhook_answers_wrong_is_told(on: Backend) {
    let (_cluster, client) = server(on);
    let hook = Hook::start().await;
    configure(&client, MUTATING, "a", &[webhook(&hook, "/hook")]).await;
    let failed = "Internal error occurred: failed calling webhook \"hook.hook.example.com\": ";
    let invalid = format!("{failed}received invalid webhook response: ");
    let patch =
        base64_of("[{\"op\": \"add\", \"path\": \"/metadata/labels\", \"value\": {\"a\": \"b\"}}]");
    let with_patch = |patch: String| {
        Reply::Allow(Arc::new(
            move |_| json!({"patchType": "JSONPatch", "patch": patch}),
        ))
    };
    for (reply, message) in [
        (
            Reply::Text(200, "{}".to_owned()),
            format!("{invalid}webhook response was absent"),
        ),
        (
            Reply::Allow(Arc::new(|_| json!({"patch": "W10="}))),
            format!("{invalid}webhook returned response.patch but not response.patchType"),
        ),
        (
            Reply::Allow(Arc::new(|_| json!({"patchType": "JSONPatch"}))),
            format!("{invalid}webhook returned response.patchType but not response.patch"),
        ),
        (with_patch(base64_of("{\"a\": 1}")), String::new()),
        (with_patch("%".to_owned()), String::new()),
        (
            with_patch(base64_of(
                "[{\"op\": \"remove\", \"path\": \"/spec/nothing\"}]",
            )),
            String::new(),
        ),
        (
            with_patch(base64_of(
                "[{\"op\": \"add\", \"path\": \"/spec/reference\", \"value\": 7}]",
            )),
            String::new(),
        ),
        (
            with_patch(base64_of(
                "[{\"op\": \"replace\", \"path\": \"/kind\", \"value\": \"Fischer\"}]",
            )),
            String::new(),
        ),
    ] {
        hook.reply("/hook", reply);
        let answer = client.post(FLUNDERS, &flunder("a")).await;
        assert_eq!(answer.code, 500, "{message}: {}", answer.text());
        if !message.is_empty() {
            check_message(&answer, 500, &message);
        }
    }
    hook.reply(
        "/hook",
        Reply::Response(json!({"uid": "other", "allowed": true})),
    );
    let answer = client.post(FLUNDERS, &flunder("a")).await;
    let message = answer.json()["message"].as_str().unwrap().to_owned();
    assert!(
        message.starts_with(&format!("{invalid}expected response.uid=\""))
            && message.ends_with("\", got \"other\""),
        "{message}"
    );
    // The fields that no schema knows are dropped, and warnings are passed on.
    hook.reply("/hook", Reply::Allow(Arc::new(|_| {
        json!({"patchType": "JSONPatch", "warnings": ["it is painted"],
            "patch": base64_of("[{\"op\": \"add\", \"path\": \"/unknown\", \"value\": 1}, {\"op\": \"add\", \"path\": \"/metadata/labels\", \"value\": {\"a\": \"b\"}}]")})
    })));
    let answer = client.post(FLUNDERS, &flunder("a")).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    assert_eq!(answer.header("warning"), "299 - \"it is painted\"");
    assert_eq!(answer.json()["unknown"], Value::Null);
    assert_eq!(answer.json()["metadata"]["labels"], json!({"a": "b"}));
    // What a webhook makes of an object is validated as what a client sends.
    hook.reply(
        "/hook",
        with_patch(base64_of(
            "[{\"op\": \"add\", \"path\": \"/metadata/labels\", \"value\": {\"a\": \"?\"}}]",
        )),
    );
    let answer = client.post(FLUNDERS, &flunder("b")).await;
    assert_eq!(answer.code, 422, "{}", answer.text());
    // A deletion has no object that could be changed.
    hook.reply("/hook", with_patch(patch));
    let answer = client.delete(&format!("{FLUNDERS}/a"), &json!({})).await;
    check_message(
        &answer,
        500,
        "Internal error occurred: admission webhook \"hook.hook.example.com\" attempted to modify the object, which is not supported for this operation",
    );
}

async fn configurations_apply_at_once_and_are_exempt(on: Backend) {
    let (_cluster, client) = server(on);
    let hook = Hook::start().await;
    hook.reply(
        "/all",
        Reply::Deny(json!({"code": 403, "message": "nothing"})),
    );
    let everything = json!({"rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]});
    for round in 0..5 {
        configure(
            &client,
            VALIDATING,
            "all",
            &[with(webhook(&hook, "/all"), &everything)],
        )
        .await;
        configure(
            &client,
            MUTATING,
            "all",
            &[with(webhook(&hook, "/all"), &everything)],
        )
        .await;
        let answer = client.post(FLUNDERS, &flunder("no")).await;
        assert_eq!(answer.code, 403, "{round}: {}", answer.text());
        // What says who may write can always be repaired.
        unconfigure(&client, MUTATING, "all").await;
        unconfigure(&client, VALIDATING, "all").await;
        let name = format!("yes-{round}");
        let answer = client.post(FLUNDERS, &flunder(&name)).await;
        assert_eq!(answer.code, 201, "{round}: {}", answer.text());
    }
}

async fn custom_resources_are_reviewed_and_changed(on: Backend) {
    let (_cluster, client) = server(on);
    let hook = Hook::start().await;
    custom::establish(
        &client,
        &custom::definition(
            "foos",
            "Foo",
            &json!({"color": {"type": "string", "maxLength": 3}}),
        ),
    )
    .await;
    let rule = json!({"rules": [{"operations": ["CREATE"], "apiGroups": ["ex.io"], "apiVersions": ["*"], "resources": ["foos"]}]});
    hook.reply("/paint", Reply::patch(|request| json!([
        {"op": "add", "path": "/spec/color", "value": request["object"]["metadata"]["name"]},
        {"op": "add", "path": "/spec/unknown", "value": 1},
    ])));
    configure(
        &client,
        MUTATING,
        "a",
        &[with(webhook(&hook, "/paint"), &rule)],
    )
    .await;
    let foos = "/apis/ex.io/v1/namespaces/default/foos";
    let named = |name: &str| json!({"apiVersion": "ex.io/v1", "kind": "Foo", "metadata": {"name": name}, "spec": {}});
    let answer = client.post(foos, &named("red")).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    assert_eq!(answer.json()["spec"], json!({"color": "red"}));
    let answer = client.post(foos, &named("yellow")).await;
    assert_eq!(answer.code, 422, "{}", answer.text());
    assert!(
        answer.text().contains("spec.color: Too long"),
        "{}",
        answer.text()
    );
}
