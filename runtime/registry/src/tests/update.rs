//! update.

use super::*;

#[tokio::test]
async fn the_name_must_be_the_urls() {
    let f = fixture().await;
    let error = f.put("a", widget("b", json!({}))).await.unwrap_err();
    assert_eq!(
        shown(&error),
        (
            Some("BadRequest"),
            "the name of the object (b) does not match the name on the URL (a)"
        )
    );
    let error = f.put("a", json!({"metadata": {}})).await.unwrap_err();
    let text = "the name of the object (a based on URL) was undeterminable: name must be provided";
    assert_eq!(shown(&error), (Some("BadRequest"), text));
}

#[tokio::test]
async fn a_missing_object_is_not_found() {
    let f = fixture().await;
    let error = f.put("a", widget("a", json!({}))).await.unwrap_err();
    assert_eq!(
        shown(&error),
        (Some("NotFound"), "widgets.test.example.com \"a\" not found")
    );
}

#[tokio::test]
async fn a_kind_may_be_created_by_update() {
    let f = fixture().await;
    let options = UpdateOptions::default();
    let input = object(json!({"metadata": {"name": "g", "resourceVersion": "77"}}));
    let (created, was_created) = f
        .gadgets
        .writes()
        .update(WriteRequest::new(&f.ctx, None, "g").with(&options), input)
        .await
        .unwrap();
    assert!(was_created);
    assert!(!created.uid().is_empty());
    let input = object(json!({"metadata": {"name": "h", "uid": "u"}}));
    let error = f
        .gadgets
        .writes()
        .update(WriteRequest::new(&f.ctx, None, "h").with(&options), input)
        .await
        .unwrap_err();
    assert_eq!(error.reason, Some(StatusReason::Conflict));
}

#[tokio::test]
async fn update_with_stale_version_conflicts() {
    let f = fixture().await;
    let created = f.create(widget("a", json!({}))).await.unwrap();
    f.put("a", widget("a", json!({"color": "red"})))
        .await
        .unwrap();
    let mut stale = created.into_value();
    stale["spec"]["color"] = json!("blue");
    let error = f.put("a", stale).await.unwrap_err();
    let text = "Operation cannot be fulfilled on widgets.test.example.com \"a\": the object has been modified; please apply \
                your changes to the latest version and try again";
    assert_eq!(shown(&error), (Some("Conflict"), text));
}

#[tokio::test]
async fn c_085_plugins_mutate_before_versions_are_compared_and_validate_after() {
    let f = fixture().await;
    let created = f.create(widget("a", json!({}))).await.unwrap();
    f.put("a", widget("a", json!({"color": "red"})))
        .await
        .unwrap();
    let refused = async |label: &str, is_stale: bool| {
        let mut input = created.clone().into_value();
        input["metadata"]["labels"] = json!({label: ""});
        if !is_stale {
            input["metadata"]["resourceVersion"] = json!("");
        }
        f.put("a", input).await.unwrap_err().reason.unwrap()
    };
    assert_eq!(refused("refuse-early", true).await, StatusReason::Forbidden);
    assert_eq!(refused("refuse", true).await, StatusReason::Conflict);
    assert_eq!(
        refused("refuse-early", false).await,
        StatusReason::Forbidden
    );
    assert_eq!(refused("refuse", false).await, StatusReason::Forbidden);
}

#[tokio::test]
async fn an_unreadable_version_is_passed_through() {
    let f = fixture().await;
    f.create(widget("a", json!({}))).await.unwrap();
    let error = f
        .put(
            "a",
            json!({"metadata": {"name": "a", "resourceVersion": "zz"}}),
        )
        .await
        .unwrap_err();
    assert_eq!(
        shown(&error),
        (None, "strconv.ParseUint: parsing \"zz\": invalid syntax")
    );
}

#[tokio::test]
async fn a_kind_may_require_the_version() {
    let f = fixture().await;
    let input = || object(json!({"metadata": {"name": "g"}}));
    let options = UpdateOptions::default();
    f.gadgets
        .writes()
        .update(WriteRequest::new(&f.ctx, None, "g").with(&options), input())
        .await
        .unwrap();
    let error = f
        .gadgets
        .writes()
        .update(WriteRequest::new(&f.ctx, None, "g").with(&options), input())
        .await
        .unwrap_err();
    let text = "gadgets.test.example.com \"g\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    assert_eq!(shown(&error), (Some("Invalid"), text));
}

#[tokio::test]
async fn another_uid_is_a_failed_precondition() {
    let f = fixture().await;
    let uid = f
        .create(widget("a", json!({})))
        .await
        .unwrap()
        .uid()
        .to_owned();
    let error = f
        .put("a", json!({"metadata": {"name": "a", "uid": "X"}}))
        .await
        .unwrap_err();
    let text = format!(
        "Operation cannot be fulfilled on widgets.test.example.com \"a\": StorageError: invalid object, Code: 4, Key: \
         /registry/test.example.com/widgets/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in \
         precondition: X, UID in object meta: {uid}"
    );
    assert_eq!(shown(&error), (Some("Conflict"), text.as_str()));
}

#[tokio::test]
async fn an_update_that_changes_nothing_writes_nothing() {
    let f = fixture().await;
    let created = f
        .create(widget("a", json!({"color": "red"})))
        .await
        .unwrap();
    let before = f.revision().await;
    assert_eq!(
        f.put("a", created.clone().into_value()).await.unwrap(),
        created
    );
    assert_eq!(
        f.put("a", widget("a", json!({"color": "red"})))
            .await
            .unwrap(),
        created
    );
    assert_eq!(f.revision().await, before);
}

#[tokio::test]
async fn generation_counts_changes_of_spec_only() {
    let f = fixture().await;
    f.create(widget("a", json!({}))).await.unwrap();
    let labelled =
        json!({"metadata": {"name": "a", "labels": {"x": "y"}, "generation": 9}, "spec": {}});
    assert_eq!(
        at(
            &f.put("a", labelled.clone()).await.unwrap(),
            "/metadata/generation"
        ),
        1
    );
    assert_eq!(
        at(
            &f.put_status(
                "a",
                json!({"metadata": {"name": "a"}, "status": {"ready": true}})
            )
            .await
            .unwrap(),
            "/metadata/generation"
        ),
        1
    );
    assert_eq!(
        at(
            &f.put("a", widget("a", json!({"color": "red"})))
                .await
                .unwrap(),
            "/metadata/generation"
        ),
        2
    );
}

#[tokio::test]
async fn the_object_and_its_status_are_written_apart() {
    let f = fixture().await;
    f.create(widget("a", json!({"color": "red"})))
        .await
        .unwrap();
    let both = json!({"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"color": "blue"}, "status": {"ready": true}});
    let after = f.put_status("a", both.clone()).await.unwrap();
    assert_eq!(
        (at(&after, "/spec/color"), at(&after, "/status/ready")),
        (json!("red"), json!(true))
    );
    assert_eq!(after.label("x"), None);
    let unready =
        json!({"metadata": {"name": "a"}, "spec": {"color": "blue"}, "status": {"ready": false}});
    let after = f.put("a", unready).await.unwrap();
    assert_eq!(
        (at(&after, "/spec/color"), at(&after, "/status/ready")),
        (json!("blue"), json!(true))
    );
}

#[tokio::test]
async fn no_finalizer_is_added_to_an_object_being_deleted() {
    let f = fixture().await;
    f.create(json!({"metadata": {"name": "a", "finalizers": ["example.com/x"]}}))
        .await
        .unwrap();
    f.delete("a").await.unwrap();
    let error = f
        .put(
            "a",
            json!({"metadata": {"name": "a", "finalizers": ["example.com/x", "example.com/y"]}}),
        )
        .await
        .unwrap_err();
    let text = "Widget.test.example.com \"a\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the \
                object is being deleted, found new finalizers []string{\"example.com/y\"}";
    assert_eq!(shown(&error), (Some("Invalid"), text));
}

#[tokio::test]
async fn removing_the_last_finalizer_of_a_deleted_object_removes_it() {
    let f = fixture().await;
    f.create(json!({"metadata": {"name": "a", "finalizers": ["example.com/x"]}}))
        .await
        .unwrap();
    let DeleteResult::Pending(pending) = f.delete("a").await.unwrap() else {
        panic!("it has a finalizer")
    };
    let mut released = pending.clone();
    released.meta_mut().remove("finalizers");
    let after = f.put("a", released.into_value()).await.unwrap();
    assert_eq!(after.resource_version(), pending.resource_version());
    assert_eq!(
        f.get("a").await.unwrap_err().reason,
        Some(StatusReason::NotFound)
    );
    assert!(f.revision().await > pending.resource_version().parse().unwrap());
}

#[tokio::test]
async fn a_dry_run_changes_nothing() {
    let f = fixture().await;
    f.create(widget("a", json!({}))).await.unwrap();
    let before = f.revision().await;
    let options = UpdateOptions {
        dry_run: true,
        ..UpdateOptions::default()
    };
    let input = object(widget("a", json!({"color": "red"})));
    let (after, _) = f
        .widgets
        .writes()
        .update(WriteRequest::new(&f.ctx, NS, "a").with(&options), input)
        .await
        .unwrap();
    assert_eq!(at(&after, "/spec/color"), "red");
    assert_eq!(f.revision().await, before);
}

#[tokio::test]
async fn the_kinds_rules_see_the_old_object() {
    let f = fixture().await;
    f.create(widget("a", json!({"color": "red"})))
        .await
        .unwrap();
    assert_eq!(
        at(
            &f.put("a", widget("a", json!({"color": "red", "size": 2})))
                .await
                .unwrap(),
            "/spec/serial"
        ),
        1
    );
    assert_eq!(
        at(
            &f.put("a", widget("a", json!({"color": "blue", "size": 2})))
                .await
                .unwrap(),
            "/spec/serial"
        ),
        2
    );
}

#[tokio::test]
async fn unconditional_updates_never_conflict() {
    let f = Arc::new(fixture().await);
    f.create(widget("a", json!({}))).await.unwrap();
    let writers = (0..8).map(|i| {
        let f = Arc::clone(&f);
        tokio::spawn(async move { f.put("a", widget("a", json!({"size": i + 100}))).await })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap().unwrap();
    }
    assert_eq!(at(&f.get("a").await.unwrap(), "/metadata/generation"), 9);
}

#[tokio::test]
async fn a_subresource_that_the_kind_does_not_have_is_not_there() {
    let f = fixture().await;
    f.create(widget("a", json!({}))).await.unwrap();
    let input = object(widget("a", json!({})));
    let options = UpdateOptions::default();
    let error = f
        .widgets
        .writes()
        .update(
            WriteRequest::new(&f.ctx, NS, "a")
                .at("finalize")
                .with(&options),
            input,
        )
        .await;
    let text = "the server could not find the requested resource";
    assert_eq!(shown(&error.unwrap_err()), (Some("NotFound"), text));
}

#[tokio::test]
async fn plugins_that_judge_what_is_written_come_after_the_version_is_compared() {
    let f = fixture().await;
    let created = f.create(widget("keep", json!({}))).await.unwrap();
    let version = created.resource_version().to_owned();
    f.put("keep", widget("keep", json!({"size": 2})))
        .await
        .unwrap();
    let stale = json!({"metadata": {"name": "keep", "resourceVersion": version, "labels": {"refuse": "me"}}});
    let error = f.put("keep", stale).await.unwrap_err();
    assert_eq!(error.reason, Some(StatusReason::Conflict));
    let fresh = json!({"metadata": {"name": "keep", "labels": {"refuse": "me"}}});
    let error = f.put("keep", fresh).await.unwrap_err();
    assert_eq!(error.reason, Some(StatusReason::Forbidden));
}
