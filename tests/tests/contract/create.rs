//! Create, and the options that all writes have.

use serde_json::json;

use crate::*;

on_each_backend![
    c_060_what_the_server_sets_cannot_be_sent,
    c_061_a_resource_version_is_refused,
    c_062_the_namespace_is_the_urls_and_means_nothing_to_cluster_scoped_kinds,
    c_063_a_generated_name_has_five_safe_characters_behind_at_most_58,
    c_064_a_name_is_required,
    c_065_the_namespace_must_exist_and_must_not_be_terminating,
    c_066_an_object_being_deleted_is_in_the_way_and_says_so,
    c_067_a_dry_run_leaves_nothing,
    c_068_field_validation_refuses_warns_or_ignores,
    c_069_field_validation_warns_by_default,
    c_070_invalid_options_are_named,
    an_empty_list_is_left_out_and_changes_nothing,
    a_body_that_hides_its_depth_ends_no_server,
];

async fn c_060_what_the_server_sets_cannot_be_sent(on: Backend) {
    let (_server, client) = server(on);
    let mut object = flunder("a");
    object["metadata"]["uid"] = json!("11111111-1111-1111-1111-111111111111");
    object["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    object["metadata"]["deletionTimestamp"] = json!("2001-01-01T00:00:00Z");
    object["metadata"]["deletionGracePeriodSeconds"] = json!(5);
    object["metadata"]["selfLink"] = json!("/somewhere");
    let answer = client.post(FLUNDERS, &object).await;
    let expected = json!({
        "apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder",
        "metadata": {"name": "a", "namespace": "default", "uid": "$UID", "creationTimestamp": "$TIME", "resourceVersion": "$RV",
            "generation": 1},
    });
    check(&answer, 201, &expected);
    let metadata = &answer.json()["metadata"];
    assert_ne!(metadata["uid"], object["metadata"]["uid"]);
    assert_ne!(
        metadata["creationTimestamp"],
        object["metadata"]["creationTimestamp"]
    );
}

async fn c_061_a_resource_version_is_refused(on: Backend) {
    let (_server, client) = server(on);
    let mut object = flunder("a");
    object["metadata"]["resourceVersion"] = json!("5");
    let message = "resourceVersion should not be set on objects to be created";
    check_failure(
        &client.post(FLUNDERS, &object).await,
        500,
        "",
        message,
        json!(null),
    );
}

async fn c_062_the_namespace_is_the_urls_and_means_nothing_to_cluster_scoped_kinds(on: Backend) {
    let (_server, client) = server(on);
    let mut object = flunder("a");
    object["metadata"]["namespace"] = json!("other");
    let message =
        "the namespace of the provided object does not match the namespace sent on the request";
    check_failure(
        &client.post(FLUNDERS, &object).await,
        400,
        "BadRequest",
        message,
        json!(null),
    );
    let fischer = json!({
        "apiVersion": "wardle.example.com/v1alpha1", "kind": "Fischer",
        "metadata": {"name": "f", "namespace": "other"}, "disallowedFlunders": ["x"],
    });
    let expected = json!({
        "apiVersion": "wardle.example.com/v1alpha1", "kind": "Fischer",
        "metadata": {"name": "f", "uid": "$UID", "creationTimestamp": "$TIME", "resourceVersion": "$RV", "generation": 1},
        "disallowedFlunders": ["x"],
    });
    check(&client.post(FISCHERS, &fischer).await, 201, &expected);
}

async fn c_063_a_generated_name_has_five_safe_characters_behind_at_most_58(on: Backend) {
    let (_server, client) = server(on);
    for (base, kept) in [("short-".to_owned(), 6), ("x".repeat(70), 58)] {
        let object = json!({
            "apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder", "metadata": {"generateName": base},
        });
        let object = created(&client, FLUNDERS, &object).await;
        let name = object["metadata"]["name"].as_str().unwrap();
        assert_eq!(&name[..kept], &base[..kept]);
        assert_eq!(name.len(), kept + 5);
        assert!(
            name[kept..]
                .chars()
                .all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c)),
            "{name}"
        );
        assert_eq!(
            object["metadata"]["generateName"], base,
            "it stays in the object"
        );
    }
    // With a name it has no effect.
    let object = json!({
        "apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder", "metadata": {"name": "own", "generateName": "g-"},
    });
    assert_eq!(
        created(&client, FLUNDERS, &object).await["metadata"]["name"],
        "own"
    );
}

async fn c_064_a_name_is_required(on: Backend) {
    let (_server, client) = server(on);
    let body = "Required value: name or generateName is required";
    let message = format!(r#"Flunder.wardle.example.com "" is invalid: metadata.name: {body}"#);
    let details = invalid("", &[("FieldValueRequired", body, "metadata.name")]);
    let object =
        json!({"apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder", "metadata": {}});
    check_failure(
        &client.post(FLUNDERS, &object).await,
        422,
        "Invalid",
        &message,
        details,
    );
}

async fn c_065_the_namespace_must_exist_and_must_not_be_terminating(on: Backend) {
    let (_server, client) = server(on);
    let path =
        |namespace| format!("/apis/wardle.example.com/v1alpha1/namespaces/{namespace}/flunders");
    let answer = client.post(&path("none"), &flunder("a")).await;
    check_failure(
        &answer,
        404,
        "NotFound",
        r#"namespaces "none" not found"#,
        json!({"name": "none", "kind": "namespaces"}),
    );

    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "term1"}});
    created(&client, "/api/v1/namespaces", &namespace).await;
    let answer = client
        .delete("/api/v1/namespaces/term1", &json!(null))
        .await;
    let expected = json!({
        "kind": "Namespace", "apiVersion": "v1",
        "metadata": {"name": "term1", "uid": "$UID", "resourceVersion": "$RV", "creationTimestamp": "$TIME",
            "deletionTimestamp": "$TIME", "labels": {"kubernetes.io/metadata.name": "term1"}},
        "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Terminating"},
    });
    check(&answer, 200, &expected);
    let answer = client.post(&path("term1"), &flunder("a")).await;
    let message = r#"flunders.wardle.example.com "a" is forbidden: unable to create new content in namespace term1 because it is being terminated"#;
    let mut details = about("a");
    details["causes"] = json!([{"reason": "NamespaceTerminating", "message": "namespace term1 is being terminated", "field": "metadata.namespace"}]);
    check_failure(&answer, 403, "Forbidden", message, details);
}

async fn c_066_an_object_being_deleted_is_in_the_way_and_says_so(on: Backend) {
    let (_server, client) = server(on);
    created(&client, FLUNDERS, &flunder("a")).await;
    let message = r#"flunders.wardle.example.com "a" already exists"#;
    check_failure(
        &client.post(FLUNDERS, &flunder("a")).await,
        409,
        "AlreadyExists",
        message,
        about("a"),
    );
    client
        .merge(
            &format!("{FLUNDERS}/a"),
            &json!({"metadata": {"finalizers": ["example.com/hold"]}}),
        )
        .await;
    assert_eq!(
        client
            .delete(&format!("{FLUNDERS}/a"), &json!(null))
            .await
            .code,
        200
    );
    let message = r#"object is being deleted: flunders.wardle.example.com "a" already exists"#;
    check_failure(
        &client.post(FLUNDERS, &flunder("a")).await,
        409,
        "AlreadyExists",
        message,
        about("a"),
    );
}

async fn c_067_a_dry_run_leaves_nothing(on: Backend) {
    let (_server, client) = server(on);
    let before = client.get(FLUNDERS).await.json()["metadata"]["resourceVersion"].clone();
    let mut watch = client
        .watch(&format!(
            "{FLUNDERS}?watch=1&resourceVersion={}",
            before.as_str().unwrap()
        ))
        .await;
    let expected = json!({
        "apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder",
        "metadata": {"name": "a", "namespace": "default", "uid": "$UID", "creationTimestamp": "$TIME", "generation": 1},
    });
    check(
        &client
            .post(&format!("{FLUNDERS}?dryRun=All"), &flunder("a"))
            .await,
        201,
        &expected,
    );
    let message = r#"flunders.wardle.example.com "a" not found"#;
    check_failure(
        &client.get(&format!("{FLUNDERS}/a")).await,
        404,
        "NotFound",
        message,
        about("a"),
    );
    // The next event is that of the next real write.
    let object = created(&client, FLUNDERS, &flunder("b")).await;
    assert_eq!(
        watch.event().await,
        json!({"type": "ADDED", "object": object})
    );
    // A dry run detects that the object exists.
    let message = r#"flunders.wardle.example.com "b" already exists"#;
    let answer = client
        .post(&format!("{FLUNDERS}?dryRun=All"), &flunder("b"))
        .await;
    check_failure(&answer, 409, "AlreadyExists", message, about("b"));
}

/// A body with two unknown fields and a duplicate one, in this order.
const SLOPPY: &str = r#"{"apiVersion":"wardle.example.com/v1alpha1","kind":"Flunder",
    "metadata":{"name":"a","foo":1},"spec":{"reference":"x","reference":"y"},"bogus":true}"#;

async fn c_068_field_validation_refuses_warns_or_ignores(on: Backend) {
    let (_server, client) = server(on);
    let json = [("content-type", "application/json")];
    let problems = [
        r#"unknown field "metadata.foo""#,
        r#"duplicate field "spec.reference""#,
        r#"unknown field "bogus""#,
    ];
    let strict = client
        .call(
            "POST",
            &format!("{FLUNDERS}?fieldValidation=Strict"),
            &json,
            SLOPPY,
        )
        .await;
    let message = format!(
        r#"Flunder in version "v1alpha1" cannot be handled as a Flunder: strict decoding error: {}"#,
        problems.join(", ")
    );
    check_failure(&strict, 400, "BadRequest", &message, json!(null));

    let mut expected = json!({
        "apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder",
        "metadata": {"name": "a", "namespace": "default", "uid": "$UID", "creationTimestamp": "$TIME", "generation": 1},
        "spec": {"reference": "y", "referenceType": "Flunder"},
    });
    let warn = client
        .call(
            "POST",
            &format!("{FLUNDERS}?fieldValidation=Warn&dryRun=All"),
            &json,
            SLOPPY,
        )
        .await;
    check(&warn, 201, &expected);
    let warnings = problems.map(|problem| format!("299 - \"{}\"", problem.replace('"', "\\\"")));
    assert_eq!(warn.header_all("warning"), warnings);

    expected["metadata"]["resourceVersion"] = json!("$RV");
    let ignore = client
        .call(
            "POST",
            &format!("{FLUNDERS}?fieldValidation=Ignore"),
            &json,
            SLOPPY,
        )
        .await;
    check(&ignore, 201, &expected);
    assert!(ignore.header_all("warning").is_empty());
}

async fn c_069_field_validation_warns_by_default(on: Backend) {
    let (_server, client) = server(on);
    for query in ["", "?fieldValidation="] {
        let body = r#"{"metadata":{"generateName":"a-"},"bogus":1}"#;
        let answer = client
            .call(
                "POST",
                &format!("{FLUNDERS}{query}"),
                &[("content-type", "application/json")],
                body,
            )
            .await;
        assert_eq!(answer.code, 201, "{}", answer.text());
        assert_eq!(
            answer.header_all("warning"),
            [r#"299 - "unknown field \"bogus\"""#]
        );
    }
}

async fn c_070_invalid_options_are_named(on: Backend) {
    let (_server, client) = server(on);
    created(&client, FLUNDERS, &flunder("a")).await;
    let item = format!("{FLUNDERS}/a");
    let details = |kind: &str, reason: &str, body: &str, field: &str| json!({"group": "meta.k8s.io", "kind": kind, "causes": [{"reason": reason, "message": body, "field": field}]});
    let text = |kind: &str, field: &str, body: &str| {
        format!(r#"{kind}.meta.k8s.io "" is invalid: {field}: {body}"#)
    };

    let body = r#"Unsupported value: ["Foo"]: supported values: "All""#;
    let answer = client
        .post(&format!("{FLUNDERS}?dryRun=Foo"), &flunder("b"))
        .await;
    let expected = details("CreateOptions", "FieldValueNotSupported", body, "dryRun");
    check_failure(
        &answer,
        422,
        "Invalid",
        &text("CreateOptions", "dryRun", body),
        expected,
    );

    let body = r#"Unsupported value: "Foo": supported values: "", "Ignore", "Strict", "Warn""#;
    let answer = client
        .put(&format!("{item}?fieldValidation=Foo"), &flunder("a"))
        .await;
    let expected = details(
        "UpdateOptions",
        "FieldValueNotSupported",
        body,
        "fieldValidation",
    );
    check_failure(
        &answer,
        422,
        "Invalid",
        &text("UpdateOptions", "fieldValidation", body),
        expected,
    );

    let body = "Too long: may not be more than 128 bytes";
    let answer = client
        .merge(
            &format!("{item}?fieldManager={}", "m".repeat(129)),
            &json!({}),
        )
        .await;
    let expected = details("PatchOptions", "FieldValueTooLong", body, "fieldManager");
    check_failure(
        &answer,
        422,
        "Invalid",
        &text("PatchOptions", "fieldManager", body),
        expected,
    );

    let body =
        r#"Unsupported value: "X": supported values: "Foreground", "Background", "Orphan", "nil""#;
    let answer = client
        .delete(&item, &json!({"propagationPolicy": "X"}))
        .await;
    let expected = details(
        "DeleteOptions",
        "FieldValueNotSupported",
        body,
        "propagationPolicy",
    );
    check_failure(
        &answer,
        422,
        "Invalid",
        &text("DeleteOptions", "propagationPolicy", body),
        expected,
    );

    let body = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided";
    let answer = client
        .get(&format!("{FLUNDERS}?resourceVersionMatch=Exact"))
        .await;
    let expected = details(
        "ListOptions",
        "FieldValueForbidden",
        body,
        "resourceVersionMatch",
    );
    check_failure(
        &answer,
        422,
        "Invalid",
        &text("ListOptions", "resourceVersionMatch", body),
        expected,
    );
}

async fn an_empty_list_is_left_out_and_changes_nothing(on: Backend) {
    let (_server, client) = server(on);
    let mut fischer = json!({
        "apiVersion": "wardle.example.com/v1alpha1", "kind": "Fischer", "metadata": {"name": "f"}, "disallowedFlunders": [],
    });
    let expected = json!({
        "apiVersion": "wardle.example.com/v1alpha1", "kind": "Fischer",
        "metadata": {"name": "f", "uid": "$UID", "creationTimestamp": "$TIME", "resourceVersion": "$RV", "generation": 1},
    });
    let answer = client.post(FISCHERS, &fischer).await;
    check(&answer, 201, &expected);
    let path = format!("{FISCHERS}/f");
    let add = json!([{"op": "add", "path": "/disallowedFlunders", "value": []}]);
    for again in [
        client.put(&path, &fischer).await,
        client
            .merge(&path, &json!({"disallowedFlunders": []}))
            .await,
        client.json_patch(&path, &add).await,
    ] {
        check(&again, 200, &expected);
        assert_eq!(revision(&again.json()), revision(&answer.json()));
    }
    // An emptied list is absent, also after it is emptied again.
    fischer["disallowedFlunders"] = json!(["x"]);
    let filled = client.put(&path, &fischer).await.json();
    assert_eq!(filled["disallowedFlunders"], json!(["x"]));
    let emptied = client
        .merge(&path, &json!({"disallowedFlunders": []}))
        .await;
    assert_eq!(emptied.json()["disallowedFlunders"], Value::Null);
    assert!(revision(&emptied.json()) > revision(&filled));
}

// The server is built without optimization here, as by `apiloom run`.
async fn a_body_that_hides_its_depth_ends_no_server(on: Backend) {
    let (_server, client) = server(on);
    let yaml = [("content-type", "application/yaml")];
    let json = [("content-type", "application/json")];
    let patch = [("content-type", "application/merge-patch+json")];
    let json_patch = [("content-type", "application/json-patch+json")];
    created(&client, FLUNDERS, &flunder("a")).await;
    let item = format!("{FLUNDERS}/a");
    let nest = |open: &str, close: &str, levels: usize| {
        format!("{}1{}", open.repeat(levels), close.repeat(levels))
    };
    for levels in [100, 125, 200, 2_000] {
        let covered = format!("x: {}1{}", "[\"]\",".repeat(levels), "]".repeat(levels));
        let lines: String = (0..levels.min(400))
            .map(|level| format!("{}a:\r", " ".repeat(level)))
            .collect();
        let deep = format!("{{\"x\":{}}}", nest("[", "]", levels));
        let deep_map = format!("{{\"spec\":{}}}", nest("{\"a\":", "}", levels));
        let operation = format!(
            "[{{\"op\":\"add\",\"path\":\"/spec\",\"value\":{}}}]",
            nest("[", "]", levels)
        );
        let requests = [
            ("POST", FLUNDERS, &yaml, &covered),
            ("POST", FLUNDERS, &yaml, &lines),
            ("PUT", item.as_str(), &yaml, &covered),
            ("POST", FLUNDERS, &json, &deep),
            ("POST", FLUNDERS, &json, &deep_map),
            ("PATCH", item.as_str(), &patch, &deep_map),
            ("PATCH", item.as_str(), &json_patch, &operation),
            ("DELETE", FLUNDERS, &yaml, &covered),
        ];
        for (method, path, content_type, body) in requests {
            let answer = client.call(method, path, content_type, body.clone()).await;
            assert!(
                [200, 400, 404, 422].contains(&answer.code),
                "{method} {levels}: {}",
                answer.text()
            );
        }
    }
    assert_eq!(client.get("/livez").await.code, 200);
}
