//! What every request has: its attributes for authorization, its methods, its deadline, its headers, and its errors.

use serde_json::json;

use crate::*;

on_each_backend![
    c_005_a_selected_name_is_the_name_that_is_authorized,
    c_006_a_collection_is_deleted_by_a_verb_of_its_own,
    c_007_head_and_options_are_refused,
    c_010_who_may_not_is_not_told_what_exists,
    c_011_the_prefix_watch_is_served_for_collections_and_objects,
    c_012_the_timeout_of_a_request_is_a_duration_and_ends_it,
    c_013_every_response_has_an_audit_id,
    c_052_seconds_to_retry_after_are_a_header_too,
    c_053_an_internal_error_has_no_reason,
    c_054_a_resource_version_that_is_none_has_a_code_for_each_verb,
    c_055_a_refusal_names_user_verb_resource_and_scope,
    c_057_who_is_not_known_is_told_no_more,
    c_058_too_many_requests_are_text,
    c_159_a_wrong_token_is_not_anonymous,
];

const NOT_ALLOWED: &str = "the server does not allow this method on the requested resource";

async fn c_005_a_selected_name_is_the_name_that_is_authorized(on: Backend) {
    let (_server, client) = server(on);
    let anonymous = client.anonymous();
    let refused = async |query: &str, name: Option<&str>, verb: &str| {
        let answer = anonymous.get(&format!("{FLUNDERS}?{query}")).await;
        let (subject, details) = match name {
            Some(name) => (format!("flunders.wardle.example.com {name:?}"), about(name)),
            None => (
                "flunders.wardle.example.com".to_owned(),
                json!({"group": "wardle.example.com", "kind": "flunders"}),
            ),
        };
        let message = format!(
            r#"{subject} is forbidden: User "system:anonymous" cannot {verb} resource "flunders" in API group "wardle.example.com" in the namespace "default""#
        );
        check_failure(&answer, 403, "Forbidden", &message, details);
    };
    refused("fieldSelector=metadata.name%3Dx", Some("x"), "list").await;
    refused(
        "fieldSelector=metadata.name%3Dx&watch=1",
        Some("x"),
        "watch",
    )
    .await;
    refused(
        "fieldSelector=metadata.name%3Dx,metadata.namespace%3Dy",
        Some("x"),
        "list",
    )
    .await;
    // Neither a name that is excluded nor a path is a name.
    refused("fieldSelector=metadata.name!%3Dx", None, "list").await;
    refused("fieldSelector=metadata.name%3Da%2Fb", None, "list").await;
}

async fn c_006_a_collection_is_deleted_by_a_verb_of_its_own(on: Backend) {
    let (_server, client) = server(on);
    let anonymous = client.clone().anonymous();
    let answer = anonymous.delete(FLUNDERS, &json!(null)).await;
    let message = r#"flunders.wardle.example.com is forbidden: User "system:anonymous" cannot deletecollection resource "flunders" in API group "wardle.example.com" in the namespace "default""#;
    let details = json!({"group": "wardle.example.com", "kind": "flunders"});
    check_failure(&answer, 403, "Forbidden", message, details);
    // The collection of all namespaces can only be read.
    let deleted = client.delete(ALL_FLUNDERS, &json!(null)).await;
    check_failure(&deleted, 405, "MethodNotAllowed", NOT_ALLOWED, json!({}));
    let posted = client.post(ALL_FLUNDERS, &flunder("a")).await;
    check_failure(&posted, 405, "MethodNotAllowed", NOT_ALLOWED, json!({}));
}

async fn c_007_head_and_options_are_refused(on: Backend) {
    let (server, client) = server(on);
    created(&client, FLUNDERS, &flunder("a")).await;
    let item = format!("{FLUNDERS}/a");
    let clients = [client, server.client_of_http1()];
    for client in &clients {
        for path in [FLUNDERS, ALL_FLUNDERS, &item, "/api/v1/namespaces"] {
            let answer = client.call("OPTIONS", path, &[], "").await;
            check_failure(&answer, 405, "MethodNotAllowed", NOT_ALLOWED, json!({}));
            // The response to a HEAD has the headers of the Status, and no body.
            let answer = client.call("HEAD", path, &[], "").await;
            assert_eq!((answer.code, &*answer.text()), (405, ""), "{path}");
            assert_eq!(answer.header("content-type"), "application/json");
        }
        // The connection is still good.
        assert_eq!(client.get(&item).await.code, 200);
    }
}

async fn c_010_who_may_not_is_not_told_what_exists(on: Backend) {
    let (_server, client) = server(on);
    created(&client, FLUNDERS, &flunder("a")).await;
    let anonymous = client.anonymous();
    for path in [
        &*format!("{FLUNDERS}/a"),
        &*format!("{FLUNDERS}/missing"),
        "/apis/wardle.example.com/v1alpha1/nothing",
        "/apis/wardle.example.com/v9/flunders",
        "/apis/nothing.example.com/v1/namespaces/default/things/a",
        "/api/v1/namespaces/missing/pods",
    ] {
        let answer = anonymous.get(path).await;
        assert_eq!(answer.code, 403, "{path}: {}", answer.text());
        assert_eq!(answer.json()["reason"], "Forbidden");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
    }
    let answer = anonymous.get("/apis/nothing.example.com/v1").await;
    let message =
        r#"forbidden: User "system:anonymous" cannot get path "/apis/nothing.example.com/v1""#;
    check_failure(&answer, 403, "Forbidden", message, json!({}));
}

async fn c_011_the_prefix_watch_is_served_for_collections_and_objects(on: Backend) {
    let (_server, client) = server(on);
    let object = created(&client, FLUNDERS, &flunder("a")).await;
    let other = created(&client, FLUNDERS, &flunder("b")).await;
    let base = "/apis/wardle.example.com/v1alpha1/watch";
    for path in ["flunders", "namespaces/default/flunders"] {
        let mut watch = client.watch(&format!("{base}/{path}")).await;
        assert_eq!(watch.event().await["object"], object, "{path}");
        assert_eq!(watch.event().await["object"], other, "{path}");
    }
    for query in ["", "?fieldSelector=metadata.name%3Db", "?watch=0"] {
        let path = format!("{base}/namespaces/default/flunders/b{query}");
        let mut watch = client.watch(&path).await;
        assert_eq!(watch.event().await["object"], other, "{query}");
    }
    let path = format!("{base}/namespaces/default/flunders/b?fieldSelector=metadata.name%3Da");
    let message = "fieldSelector metadata.name doesn't match requested name";
    check_failure(
        &client.get(&path).await,
        400,
        "BadRequest",
        message,
        json!(null),
    );
}

async fn c_012_the_timeout_of_a_request_is_a_duration_and_ends_it(on: Backend) {
    let (_server, client) = server(on);
    let answer = client.get(&format!("{FLUNDERS}?timeout=zz")).await;
    let message = r#"invalid timeout specified in the request URL - time: invalid duration "zz""#;
    check_failure(&answer, 400, "BadRequest", message, json!(null));
    // A list of a state that does not exist yet waits for it, longer than the request may take.
    if is_cached() {
        let path = format!("{}&timeout=1ms", in_the_future(&client).await);
        let answer = client.get(&path).await;
        assert_eq!((answer.code, &*answer.text()), (504, OUT_OF_TIME));
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
    }
    // A watch has no deadline.
    let mut watch = client
        .watch(&format!("{FLUNDERS}?watch=1&timeout=1ms"))
        .await;
    let object = created(&client, FLUNDERS, &flunder("a")).await;
    assert_eq!(watch.event().await["object"], object);
}

async fn c_013_every_response_has_an_audit_id(on: Backend) {
    let (_server, client) = server(on);
    let anonymous = client.clone().anonymous();
    let wrong = client.clone().with_token("wrong");
    for (client, path, code) in [
        (&client, FLUNDERS, 200),
        (&client, "/nothing", 404),
        (&client, "/version", 200),
        (&anonymous, FLUNDERS, 403),
        (&wrong, FLUNDERS, 401),
    ] {
        let answer = client.get(path).await;
        assert_eq!(answer.code, code, "{path}");
        let own = answer.header("audit-id");
        assert!(is_uid(own), "{path}: {own:?}");
        let headers = [("Audit-ID", "of the client, 1")];
        let answer = client.call("GET", path, &headers, "").await;
        assert_eq!(answer.header("audit-id"), "of the client, 1", "{path}");
    }
}

async fn c_052_seconds_to_retry_after_are_a_header_too(on: Backend) {
    let (_server, client) = server(on);
    // Too large a resourceVersion, from the cache or from the store.
    let answer = client.get(&in_the_future(&client).await).await;
    assert_eq!(answer.code, 504, "{}", answer.text());
    let seconds = &answer.json()["details"]["retryAfterSeconds"];
    let header = answer.header("retry-after");
    match seconds.as_u64() {
        Some(seconds @ 1..) => assert_eq!(header, seconds.to_string()),
        _ => assert_eq!(header, "", "{seconds}"),
    }
    assert!(seconds.is_u64() || !is_cached(), "{seconds}");
    // An error without such seconds has no header.
    let answer = client.get(&format!("{FLUNDERS}/missing")).await;
    assert_eq!((answer.code, answer.header("retry-after")), (404, ""));
}

async fn c_053_an_internal_error_has_no_reason(on: Backend) {
    let (_server, client) = server(on);
    let mut object = flunder("a");
    object["metadata"]["resourceVersion"] = json!("1");
    let message = "resourceVersion should not be set on objects to be created";
    let answer = client.post(FLUNDERS, &object).await;
    check_failure(&answer, 500, "", message, json!(null));
}

async fn c_054_a_resource_version_that_is_none_has_a_code_for_each_verb(on: Backend) {
    let (_server, client) = server(on);
    created(&client, FLUNDERS, &flunder("a")).await;
    let parsed = r#"strconv.ParseUint: parsing "zz": invalid syntax"#;
    let message = format!(r#"resourceVersion: Invalid value: "zz": {parsed}"#);
    let answer = client
        .get(&format!("{FLUNDERS}/a?resourceVersion=zz"))
        .await;
    check_failure(&answer, 500, "", &message, json!(null));
    let path = format!("{FLUNDERS}?watch=1&resourceVersion=zz");
    let answer = client.get(&path).await;
    check_failure(&answer, 500, "", &message, json!(null));
    let answer = client.get(&format!("{FLUNDERS}?resourceVersion=zz")).await;
    let message =
        format!("invalid resource version: resourceVersion: Invalid value: \"zz\": {parsed}");
    check_failure(&answer, 400, "BadRequest", &message, json!(null));
}

async fn c_055_a_refusal_names_user_verb_resource_and_scope(on: Backend) {
    let (_server, client) = server(on);
    let client = client.anonymous();
    let user = r#"User "system:anonymous" cannot"#;
    let group = r#"in API group "wardle.example.com""#;
    let cases = [
        (
            format!("{FLUNDERS}/a"),
            format!(
                r#"flunders.wardle.example.com "a" is forbidden: {user} get resource "flunders" {group} in the namespace "default""#
            ),
        ),
        (
            format!("{FLUNDERS}/a/status"),
            format!(
                r#"flunders.wardle.example.com "a" is forbidden: {user} get resource "flunders/status" {group} in the namespace "default""#
            ),
        ),
        (
            FISCHERS.to_owned(),
            format!(
                r#"fischers.wardle.example.com is forbidden: {user} list resource "fischers" {group} at the cluster scope"#
            ),
        ),
        // What a client writes is not markup in what the authorizer says.
        (
            "/nothing/%3Cb%3E&".to_owned(),
            format!(r#"forbidden: {user} get path "/nothing/&lt;b&gt;&amp;""#),
        ),
    ];
    for (path, message) in cases {
        let answer = client.get(&path).await;
        assert_eq!(answer.code, 403);
        assert_eq!(answer.json()["message"], *message);
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
    }
}

async fn c_057_who_is_not_known_is_told_no_more(on: Backend) {
    let (_server, client) = server(on);
    let answer = client.with_token("wrong").get(FLUNDERS).await;
    check_failure(&answer, 401, "Unauthorized", "Unauthorized", json!(null));
    assert_eq!(answer.header("www-authenticate"), "");
}

async fn c_058_too_many_requests_are_text(on: Backend) {
    if !is_cached() {
        // Nothing waits; the limit is the same.
        return;
    }
    let server = Cluster::start_alone(on, &["--max-requests-inflight=1"]);
    let client = server.client();
    let path = in_the_future(&client).await;
    let other = client.clone();
    let waiting = tokio::spawn(async move {
        loop {
            // The other request may be the one in flight.
            match other.get(&path).await.code {
                429 => tokio::task::yield_now().await,
                code => break code,
            }
        }
    });
    let refused = loop {
        let answer = client.get(FLUNDERS).await;
        if answer.code == 429 {
            break answer;
        }
        assert!(!waiting.is_finished(), "it was not in flight");
    };
    let text = "Too many requests, please try again later.\n";
    assert_eq!(refused.text(), text);
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(refused.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(waiting.await.unwrap(), 504);
    assert_eq!(client.get(FLUNDERS).await.code, 200);
}

async fn c_159_a_wrong_token_is_not_anonymous(on: Backend) {
    let (_server, client) = server(on);
    // Readable by all.
    let path = "/version";
    assert_eq!(client.clone().anonymous().get(path).await.code, 200);
    let answer = client.clone().with_token("wrong").get(path).await;
    check_failure(&answer, 401, "Unauthorized", "Unauthorized", json!(null));
    let answer = client.anonymous().get(FLUNDERS).await;
    assert_eq!(answer.code, 403);
    let message = answer.json()["message"].to_string();
    assert!(message.contains("system:anonymous"), "{message}");
}
