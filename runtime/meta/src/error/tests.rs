//! Errors and the texts of their causes.

use super::*;
use crate::field::FieldPath;

fn flunders() -> GroupResource {
    GroupResource::new("wardle.example.com", "flunders")
}

/// Compares the Status of an error, from the message on.
#[track_caller]
fn check(error: &ApiError, json: &str) {
    let status = serde_json::to_string(&Status::failure(error)).unwrap();
    let expected = format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure",{json}}}"#
    );
    assert_eq!(status, expected);
}

#[test]
fn errors_about_an_object_name_resource_group_and_object() {
    let details = r#""details":{"name":"a","group":"wardle.example.com","kind":"flunders"}"#;
    check(
        &ApiError::not_found(&flunders(), "a"),
        &format!(
            r#""message":"flunders.wardle.example.com \"a\" not found","reason":"NotFound",{details}"#
        ),
    );
    check(
        &ApiError::already_exists(&flunders(), "a"),
        &format!(
            r#""message":"flunders.wardle.example.com \"a\" already exists","reason":"AlreadyExists",{details}"#
        ),
    );
    check(
        &ApiError::conflict(&flunders(), "a", "why"),
        &format!(
            r#""message":"Operation cannot be fulfilled on flunders.wardle.example.com \"a\": why","reason":"Conflict",{details}"#
        ),
    );
    check(
        &ApiError::forbidden(&flunders(), "a", "why"),
        &format!(
            r#""message":"flunders.wardle.example.com \"a\" is forbidden: why","reason":"Forbidden",{details}"#
        ),
    );
}

#[test]
fn the_core_group_and_missing_names_are_left_out() {
    check(
        &ApiError::not_found(&GroupResource::new("", "namespaces"), "none"),
        r#""message":"namespaces \"none\" not found","reason":"NotFound","details":{"name":"none","kind":"namespaces"}"#,
    );
    check(
        &ApiError::forbidden(&flunders(), "", "why"),
        r#""message":"flunders.wardle.example.com is forbidden: why","reason":"Forbidden","details":{"group":"wardle.example.com","kind":"flunders"}"#,
    );
    check(
        &ApiError::forbidden(&GroupResource::default(), "", "why"),
        r#""message":"forbidden: why","reason":"Forbidden","details":{}"#,
    );
}

#[test]
fn errors_about_a_resource_name_no_object() {
    check(
        &ApiError::method_not_supported(&flunders(), "patch"),
        r#""message":"patch is not supported on resources of kind \"flunders.wardle.example.com\"","reason":"MethodNotAllowed","details":{"group":"wardle.example.com","kind":"flunders"}"#,
    );
    check(
        &ApiError::no_such_resource(),
        r#""message":"the server could not find the requested resource","reason":"NotFound","details":{}"#,
    );
}

#[test]
fn a_bad_request_has_no_details() {
    check(
        &ApiError::bad_request("why"),
        r#""message":"why","reason":"BadRequest""#,
    );
}

#[test]
fn an_internal_error_has_its_text_as_a_cause() {
    check(
        &ApiError::internal("why"),
        r#""message":"Internal error occurred: why","reason":"InternalError","details":{"causes":[{"message":"why"}]}"#,
    );
}

#[test]
fn an_internal_error_says_once_that_it_is_one() {
    let inner = ApiError::internal("why");
    assert_eq!(ApiError::internal(inner.message.clone()), inner);
}

#[test]
fn an_internal_text_is_passed_through_bare() {
    check(&ApiError::internal_text("why"), r#""message":"why""#);
}

#[test]
fn names_are_quoted_as_go_quotes() {
    let error = ApiError::not_found(&GroupResource::new("", "pods"), "a\"\n");
    assert_eq!(error.message, r#"pods "a\"\n" not found"#);
    assert_eq!(error.details.unwrap().name, "a\"\n");
}

#[test]
fn one_field_error_stands_bare() {
    let kind = GroupKind::new("ex.io", "Foo");
    let error = FieldError::required(
        &FieldPath::new("metadata.name"),
        "name or generateName is required",
    );
    check(
        &ApiError::invalid(&kind, "", &[error]),
        r#""message":"Foo.ex.io \"\" is invalid: metadata.name: Required value: name or generateName is required","reason":"Invalid","details":{"group":"ex.io","kind":"Foo","causes":[{"reason":"FieldValueRequired","message":"Required value: name or generateName is required","field":"metadata.name"}]}"#,
    );
}

#[test]
fn equal_field_errors_stand_once_in_the_message_and_twice_in_the_causes() {
    let kind = GroupKind::new("", "ConfigMap");
    let path = FieldPath::new("data");
    let errors = [
        FieldError::required(&path, ""),
        FieldError::duplicate(&path, 1),
        FieldError::required(&path, ""),
    ];
    let invalid = ApiError::invalid(&kind, "a", &errors);
    assert_eq!(
        invalid.message,
        r#"ConfigMap "a" is invalid: [data: Required value, data: Duplicate value: 1]"#
    );
    assert_eq!(invalid.details.unwrap().causes.len(), 3);
    let same = ApiError::invalid(&kind, "a", &[errors[0].clone(), errors[2].clone()]);
    assert_eq!(
        same.message,
        r#"ConfigMap "a" is invalid: data: Required value"#
    );
}

#[test]
fn field_errors_are_told_in_few_bytes() {
    let long = "\u{1}é".repeat(1_000_000);
    let key = FieldPath::new("data").key(&long);
    let errors = vec![FieldError::invalid(&key, &long, &long); 2_000];
    let size = |errors: &[FieldError]| {
        let error = ApiError::invalid(&GroupKind::default(), "", errors);
        let causes = error.details.unwrap().causes;
        let causes = causes
            .iter()
            .map(|cause| cause.message.len() + cause.field.len());
        error.message.len() + causes.sum::<usize>()
    };
    assert!(
        (1..64 * 1024).contains(&size(&errors[..1])),
        "{}",
        size(&errors[..1])
    );
    assert!(
        (1..512 * 1024).contains(&size(&errors)),
        "{}",
        size(&errors)
    );
    assert!(errors[0].to_string().starts_with("data[\u{1}é\u{1}é"));
    let listed = FieldError::invalid(&FieldPath::new("a"), vec![1; 100_000], "is long");
    assert!(listed.body.starts_with("Invalid value: [1,1,"), "{listed}");
    assert!(listed.body.ends_with("1...: is long"), "{listed}");
}

#[test]
fn a_thousand_field_errors_are_told() {
    let error = FieldError::required(&FieldPath::new("a"), "");
    let invalid = ApiError::invalid(&GroupKind::default(), "", &vec![error; 2_000]);
    assert_eq!(invalid.details.unwrap().causes.len(), MAX_CAUSES);
}

#[track_caller]
fn check_status(status: &Status, json: &str) {
    assert_eq!(serde_json::to_string(status).unwrap(), json);
    assert_eq!(serde_json::from_str::<Status>(json).unwrap(), *status);
}

#[test]
fn a_failure_prints_in_the_order_of_the_api() {
    let error = ApiError::not_found(&GroupResource::new("wardle.example.com", "flunders"), "a");
    check_status(
        &Status {
            code: Some(404),
            ..Status::failure(&error)
        },
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"flunders.wardle.example.com \"a\" not found","reason":"NotFound","details":{"name":"a","group":"wardle.example.com","kind":"flunders"},"code":404}"#,
    );
}

#[test]
fn an_internal_text_has_no_reason_and_no_details() {
    check_status(
        &Status::failure(&ApiError::internal_text("boom")),
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"boom"}"#,
    );
}

#[test]
fn empty_details_print_as_an_empty_object() {
    check_status(
        &Status::failure(&ApiError::no_such_resource()),
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","details":{}}"#,
    );
}

#[test]
fn a_continue_token_stands_in_the_metadata() {
    let mut error = ApiError::new(StatusReason::Expired, "too old");
    error.continue_token = Some("t".to_owned());
    check_status(
        &Status::failure(&error),
        r#"{"kind":"Status","apiVersion":"v1","metadata":{"continue":"t"},"status":"Failure","message":"too old","reason":"Expired"}"#,
    );
}
