//! patch.

use apiloom_meta::patch::Patch;

use super::*;

#[tokio::test]
async fn a_merge_patch_changes_what_it_names() {
    let f = fixture().await;
    f.create(widget("a", json!({"color": "red", "size": 2})))
        .await
        .unwrap();
    let after = f
        .merge("a", json!({"spec": {"color": "blue", "size": null}}))
        .await
        .unwrap();
    assert_eq!(
        at(&after, "/spec"),
        json!({"color": "blue", "size": 1, "serial": 2})
    );
    assert_eq!(at(&after, "/metadata/generation"), 2);
}

#[tokio::test]
async fn a_json_patch_is_applied_in_the_version_of_the_request() {
    let f = fixture().await;
    f.create(widget("a", json!({"color": "red"})))
        .await
        .unwrap();
    let patch =
        Patch::parse_json(br#"[{"op":"replace","path":"/spec/colour","value":"blue"}]"#).unwrap();
    let after = f
        .alpha
        .writes()
        .patch(
            WriteRequest::new(&f.ctx, NS, "a").with(&PatchOptions::default()),
            &patch,
        )
        .await
        .unwrap();
    assert_eq!(at(&after, "/spec/colour"), "blue");
    assert_eq!(at(&f.get("a").await.unwrap(), "/spec/color"), "blue");
}

#[tokio::test]
async fn a_patch_without_effect_writes_nothing() {
    let f = fixture().await;
    let created = f.create(widget("a", json!({}))).await.unwrap();
    let before = f.revision().await;
    assert_eq!(f.merge("a", json!({})).await.unwrap(), created);
    assert_eq!(
        f.merge("a", json!({"spec": {"size": 1}})).await.unwrap(),
        created
    );
    assert_eq!(f.revision().await, before);
}

#[tokio::test]
async fn a_failed_operation_is_a_generic_refusal() {
    let f = fixture().await;
    f.create(widget("a", json!({}))).await.unwrap();
    for patch in [
        json!([{"op": "test", "path": "/spec/size", "value": 9}]),
        json!([{"op": "remove", "path": "/spec/none"}]),
    ] {
        let error = f.json_patch("a", patch).await.unwrap_err();
        let text = "the server rejected our request due to an error in our request";
        assert_eq!(shown(&error), (Some("Invalid"), text));
        assert_eq!(error.details, Some(Box::default()));
    }
}

#[tokio::test]
async fn a_missing_object_is_not_found() {
    let f = fixture().await;
    let error = f.merge("a", json!({})).await.unwrap_err();
    assert_eq!(
        shown(&error),
        (Some("NotFound"), "widgets.test.example.com \"a\" not found")
    );
}

#[tokio::test]
async fn a_result_of_the_wrong_type_is_refused_with_the_document() {
    let f = fixture().await;
    f.create(widget("a", json!({}))).await.unwrap();
    let error = f
        .merge("a", json!({"spec": {"color": 5}}))
        .await
        .unwrap_err();
    assert!(
        error
            .message
            .starts_with(" \"\" is invalid: patch: Invalid value: \"{\\\"apiVersion\\\":"),
        "{}",
        error.message
    );
    assert!(
        error
            .message
            .contains("json: cannot unmarshal number into Go struct field"),
        "{}",
        error.message
    );
    let details = error.details.unwrap();
    assert_eq!(
        (
            details.kind.as_str(),
            details.name.as_str(),
            details.causes[0].field.as_str()
        ),
        ("", "", "patch")
    );
}

#[tokio::test]
async fn strict_refuses_unknown_fields_of_the_result() {
    let f = fixture().await;
    f.create(widget("a", json!({}))).await.unwrap();
    let patch = Patch::parse_merge(br#"{"spec":{"zip":1}}"#).unwrap();
    let options = PatchOptions {
        field_validation: FieldValidation::Strict,
        ..PatchOptions::default()
    };
    let error = f
        .widgets
        .writes()
        .patch(WriteRequest::new(&f.ctx, NS, "a").with(&options), &patch)
        .await
        .unwrap_err();
    assert!(
        error
            .message
            .ends_with(": strict decoding error: unknown field \"spec.zip\""),
        "{}",
        error.message
    );
    assert_eq!(error.reason, Some(StatusReason::Invalid));
    f.merge("a", json!({"spec": {"zip": 1}})).await.unwrap();
    assert_eq!(f.ctx.take_warnings(), ["unknown field \"spec.zip\""]);
}

#[tokio::test]
async fn strict_refuses_what_the_patch_says_twice() {
    let f = fixture().await;
    f.create(widget("a", json!({}))).await.unwrap();
    let patch = async |patch: Patch, field_validation| {
        let options = PatchOptions {
            field_validation,
            ..PatchOptions::default()
        };
        f.widgets
            .writes()
            .patch(WriteRequest::new(&f.ctx, NS, "a").with(&options), &patch)
            .await
    };
    let check = async |change: Patch, problems: &[&str]| {
        let error = patch(change.clone(), FieldValidation::Strict)
            .await
            .unwrap_err();
        let end = format!(": strict decoding error: {}", problems.join(", "));
        assert!(error.message.ends_with(&end), "{}", error.message);
        assert!(
            error
                .message
                .starts_with(" \"\" is invalid: patch: Invalid value: "),
            "{}",
            error.message
        );
        patch(change.clone(), FieldValidation::Warn).await.unwrap();
        assert_eq!(f.ctx.take_warnings(), problems);
        patch(change, FieldValidation::Ignore).await.unwrap();
        assert_eq!(f.ctx.take_warnings(), [""; 0]);
    };
    check(
        Patch::parse_merge(br#"{"spec":{"color":"red","zip":1,"color":"blue"}}"#).unwrap(),
        &[
            r#"duplicate field "spec.color""#,
            r#"unknown field "spec.zip""#,
        ],
    )
    .await;
    check(
        Patch::parse_json(
            br#"[{"op":"add","path":"/spec/color","path":"/spec/zip","value":1,"foo":2}]"#,
        )
        .unwrap(),
        &[
            r#"json patch duplicate field "[0].path""#,
            r#"json patch unknown field "[0].foo""#,
            r#"unknown field "spec.zip""#,
        ],
    )
    .await;
}

#[tokio::test]
async fn a_resource_version_in_the_patch_is_a_precondition() {
    let f = fixture().await;
    let created = f.create(widget("a", json!({}))).await.unwrap();
    let stale = created.resource_version().to_owned();
    f.merge(
        "a",
        json!({"metadata": {"resourceVersion": stale}, "spec": {"size": 2}}),
    )
    .await
    .unwrap();
    let error = f
        .merge(
            "a",
            json!({"metadata": {"resourceVersion": stale}, "spec": {"size": 3}}),
        )
        .await
        .unwrap_err();
    assert_eq!(error.reason, Some(StatusReason::Conflict));
}

#[tokio::test]
async fn name_namespace_and_uid_cannot_be_patched() {
    let f = fixture().await;
    f.create(widget("a", json!({}))).await.unwrap();
    let error = f
        .merge("a", json!({"metadata": {"name": "b"}}))
        .await
        .unwrap_err();
    assert_eq!(
        shown(&error),
        (
            Some("BadRequest"),
            "the name of the object (b) does not match the name on the URL (a)"
        )
    );
    let error = f
        .merge("a", json!({"metadata": {"namespace": "b"}}))
        .await
        .unwrap_err();
    assert_eq!(error.reason, Some(StatusReason::BadRequest));
    let error = f
        .merge("a", json!({"metadata": {"uid": "u"}}))
        .await
        .unwrap_err();
    let text = "Widget.test.example.com \"a\" is invalid: metadata.uid: Invalid value: \"u\": field is immutable";
    assert_eq!(shown(&error), (Some("Invalid"), text));
}

#[tokio::test]
async fn a_patch_of_status_changes_only_status() {
    let f = fixture().await;
    f.create(widget("a", json!({"color": "red"})))
        .await
        .unwrap();
    let patch =
        Patch::parse_merge(br#"{"spec":{"color":"blue"},"status":{"ready":true}}"#).unwrap();
    let after = f
        .widgets
        .writes()
        .patch(
            WriteRequest::new(&f.ctx, NS, "a")
                .at("status")
                .with(&PatchOptions::default()),
            &patch,
        )
        .await
        .unwrap();
    assert_eq!(
        (at(&after, "/spec/color"), at(&after, "/status/ready")),
        (json!("red"), json!(true))
    );
}

#[tokio::test]
async fn concurrent_patches_are_all_applied() {
    let f = Arc::new(fixture().await);
    f.create(widget("a", json!({}))).await.unwrap();
    let writers = (0..8).map(|i| {
        let f = Arc::clone(&f);
        tokio::spawn(async move {
            f.merge("a", json!({"metadata": {"labels": {format!("l{i}"): "x"}}}))
                .await
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap().unwrap();
    }
    assert_eq!(
        at(&f.get("a").await.unwrap(), "/metadata/labels")
            .as_object()
            .unwrap()
            .len(),
        8
    );
}
