//! Errors: the Status object, its reason, message and details.

use serde_json::json;

use crate::*;

on_each_backend![
    c_048_not_found_names_the_resource_and_the_object,
    c_049_invalid_names_the_kind,
    c_050_several_field_errors_stand_in_brackets_and_causes_keep_duplicates,
    c_051_details_are_absent_or_empty_as_the_catalogue_says,
];

async fn c_048_not_found_names_the_resource_and_the_object(on: Backend) {
    let (_server, client) = server(on);
    let message = r#"flunders.wardle.example.com "missing" not found"#;
    let item = format!("{FLUNDERS}/missing");
    check_failure(
        &client.get(&item).await,
        404,
        "NotFound",
        message,
        about("missing"),
    );
    check_failure(
        &client.delete(&item, &json!(null)).await,
        404,
        "NotFound",
        message,
        about("missing"),
    );
    check_failure(
        &client.put(&item, &flunder("missing")).await,
        404,
        "NotFound",
        message,
        about("missing"),
    );
    let answer = client.get("/api/v1/namespaces/missing").await;
    check_failure(
        &answer,
        404,
        "NotFound",
        r#"namespaces "missing" not found"#,
        json!({"name": "missing", "kind": "namespaces"}),
    );
}

async fn c_049_invalid_names_the_kind(on: Backend) {
    let (_server, client) = server(on);
    let mut object = flunder("a");
    object["spec"] = json!({"referenceType": "Other"});
    let body = r#"Invalid value: "Other": must be Flunder or Fischer"#;
    let message =
        format!(r#"Flunder.wardle.example.com "a" is invalid: spec.referenceType: {body}"#);
    let details = invalid("a", &[("FieldValueInvalid", body, "spec.referenceType")]);
    check_failure(
        &client.post(FLUNDERS, &object).await,
        422,
        "Invalid",
        &message,
        details,
    );
}

async fn c_050_several_field_errors_stand_in_brackets_and_causes_keep_duplicates(on: Backend) {
    let (_server, client) = server(on);
    let mut object = flunder("a");
    object["metadata"]["labels"] = json!({"a": "-x"});
    object["metadata"]["finalizers"] = json!(["plain", "plain"]);
    let answer = client.post(FLUNDERS, &object).await;
    assert_eq!(answer.code, 422);
    let status = answer.json();
    let causes = status["details"]["causes"].as_array().unwrap();
    let texts: Vec<String> = causes
        .iter()
        .map(|c| {
            format!(
                "{}: {}",
                c["field"].as_str().unwrap(),
                c["message"].as_str().unwrap()
            )
        })
        .collect();
    let mut distinct = texts.clone();
    distinct.dedup();
    assert!(causes.len() >= 3, "{status:#}");
    let message = format!(
        r#"Flunder.wardle.example.com "a" is invalid: [{}]"#,
        distinct.join(", ")
    );
    assert_eq!(status["message"], message);
    // A single error is not in brackets.
    let mut object = flunder("a");
    object["metadata"]["labels"] = json!({"a": "-x"});
    let status = client.post(FLUNDERS, &object).await.json();
    let cause = &status["details"]["causes"][0];
    let message = format!(
        r#"Flunder.wardle.example.com "a" is invalid: metadata.labels: {}"#,
        cause["message"].as_str().unwrap()
    );
    assert_eq!(
        (
            status["message"].as_str().unwrap(),
            status["details"]["causes"].as_array().unwrap().len()
        ),
        (message.as_str(), 1)
    );
}

async fn c_051_details_are_absent_or_empty_as_the_catalogue_says(on: Backend) {
    let (_server, client) = server(on);
    // Absent: Unauthorized, BadRequest, NotAcceptable.
    let answer = client.clone().with_token("wrong").get(FLUNDERS).await;
    check_failure(&answer, 401, "Unauthorized", "Unauthorized", json!(null));
    let answer = client.get(&format!("{FLUNDERS}?labelSelector=a%20b")).await;
    let message = "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt";
    check_failure(&answer, 400, "BadRequest", message, json!(null));
    // Empty: the router's own refusals.
    let message = "the server could not find the requested resource";
    check_failure(
        &client.get("/api/v1/nothing").await,
        404,
        "NotFound",
        message,
        json!({}),
    );
    let message = "the server does not allow this method on the requested resource";
    let answer = client.call("OPTIONS", FLUNDERS, &[], "").await;
    check_failure(&answer, 405, "MethodNotAllowed", message, json!({}));
}
