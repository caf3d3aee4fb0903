//! create.

use super::*;

fn uid_like(text: &str) -> bool {
    text.len() == 36 && text.as_bytes()[14] == b'4'
}

#[tokio::test]
async fn what_only_the_server_may_say_is_ignored_and_set() {
    let f = fixture().await;
    let input = json!({"metadata": {
        "name": "a", "uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "deletionTimestamp": "2001-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 5, "selfLink": "/x", "generation": 7,
        "managedFields": [{"manager": "m", "operation": "Update"}]}});
    let created = f.create(input).await.unwrap();
    assert!(uid_like(created.uid()), "{}", created.uid());
    assert_eq!(created.api_version(), "test.example.com/v1");
    assert_eq!(created.kind(), "Widget");
    assert_eq!(created.namespace(), "default");
    assert_eq!(at(&created, "/metadata/generation"), 1);
    assert!(created.meta_str("creationTimestamp") > "2026");
    for field in [
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "managedFields",
    ] {
        assert!(!created.meta().unwrap().contains_key(field), "{field}");
    }
    assert_eq!(f.get("a").await.unwrap(), created);
}

#[tokio::test]
async fn stored_bytes_are_the_storage_version_without_resource_version() {
    let f = fixture().await;
    let created = f
        .create(widget("a", json!({"color": "red"})))
        .await
        .unwrap();
    let (stored, revision) = f.stored(&key("a")).await.unwrap();
    assert_eq!(stored["apiVersion"], "test.example.com/v1alpha1");
    assert_eq!(stored["kind"], "Widget");
    assert_eq!(
        stored["spec"],
        json!({"colour": "red", "size": 1, "serial": 1})
    );
    assert_eq!(stored["metadata"].get("resourceVersion"), None);
    assert_eq!(created.resource_version(), revision.to_string());
}

#[tokio::test]
async fn a_resource_version_in_the_body_is_refused() {
    let f = fixture().await;
    let error = f
        .create(json!({"metadata": {"name": "a", "resourceVersion": "5"}}))
        .await
        .unwrap_err();
    assert_eq!(
        shown(&error),
        (
            None,
            "resourceVersion should not be set on objects to be created"
        )
    );
}

#[tokio::test]
async fn another_namespace_than_the_urls_is_refused() {
    let f = fixture().await;
    let error = f
        .create(json!({"metadata": {"name": "a", "namespace": "other"}}))
        .await
        .unwrap_err();
    let text =
        "the namespace of the provided object does not match the namespace sent on the request";
    assert_eq!(shown(&error), (Some("BadRequest"), text));
}

#[tokio::test]
async fn the_namespace_of_a_cluster_scoped_object_is_cleared() {
    let f = fixture().await;
    let input = object(json!({"metadata": {"name": "g", "namespace": "x"}}));
    let created = f
        .gadgets
        .writes()
        .create(&f.ctx, None, input, &CreateOptions::default())
        .await
        .unwrap();
    assert_eq!(created.namespace(), "");
    assert!(!created.meta().unwrap().contains_key("generation"));
    assert!(
        f.stored("/registry/test.example.com/gadgets/g")
            .await
            .is_some()
    );
}

#[tokio::test]
async fn a_name_is_generated() {
    let f = fixture().await;
    let created = f
        .create(json!({"metadata": {"generateName": "w-"}}))
        .await
        .unwrap();
    assert_eq!(created.name().len(), 7);
    assert!(created.name().starts_with("w-"));
    assert_eq!(created.meta_str("generateName"), "w-");
}

#[tokio::test]
async fn a_generated_name_that_is_taken_is_tried_eight_times() {
    let store = Memory::new();
    let mut builder = builder(&store);
    let tries = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&tries);
    builder.name_source(move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        "same0".to_owned()
    });
    let f = started(builder, store).await;
    f.create(json!({"metadata": {"generateName": "w-"}}))
        .await
        .unwrap();
    let error = f
        .create(json!({"metadata": {"generateName": "w-"}}))
        .await
        .unwrap_err();
    let text = "widgets.test.example.com \"w-same0\" already exists, the server was not able to generate a unique name for the object";
    assert_eq!(shown(&error), (Some("AlreadyExists"), text));
    assert_eq!(error.details.unwrap().retry_after_seconds, 1);
    assert_eq!(tries.load(std::sync::atomic::Ordering::SeqCst), 9);
}

#[tokio::test]
async fn a_name_is_required() {
    let f = fixture().await;
    let error = f.create(json!({"metadata": {}})).await.unwrap_err();
    let text = "Widget.test.example.com \"\" is invalid: metadata.name: Required value: name or generateName is required";
    assert_eq!(shown(&error), (Some("Invalid"), text));
}

#[tokio::test]
async fn an_owner_without_a_uid_is_refused_once() {
    let f = fixture().await;
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "x"});
    let object = json!({"metadata": {"name": "a", "ownerReferences": [owner]}});
    let error = f.create(object).await.unwrap_err();
    let text = "Widget.test.example.com \"a\" is invalid: metadata.ownerReferences.uid: Invalid value: \"\": must not be empty";
    assert_eq!(shown(&error), (Some("Invalid"), text));
}

#[tokio::test]
async fn a_taken_name_is_refused() {
    let f = fixture().await;
    f.create(widget("a", json!({}))).await.unwrap();
    let error = f.create(widget("a", json!({}))).await.unwrap_err();
    assert_eq!(
        shown(&error),
        (
            Some("AlreadyExists"),
            "widgets.test.example.com \"a\" already exists"
        )
    );
}

#[tokio::test]
async fn a_name_held_by_an_object_being_deleted_is_refused_with_the_reason() {
    let f = fixture().await;
    f.create(json!({"metadata": {"name": "a", "finalizers": ["example.com/f"]}}))
        .await
        .unwrap();
    f.delete("a").await.unwrap();
    let error = f.create(widget("a", json!({}))).await.unwrap_err();
    let text = "object is being deleted: widgets.test.example.com \"a\" already exists";
    assert_eq!(shown(&error), (Some("AlreadyExists"), text));
}

#[tokio::test]
async fn a_dry_run_writes_nothing_and_has_no_resource_version() {
    let f = fixture().await;
    let before = f.revision().await;
    let options = CreateOptions {
        dry_run: true,
        ..CreateOptions::default()
    };
    let input = object(json!({"metadata": {"generateName": "w-"}}));
    let created = f
        .widgets
        .writes()
        .create(&f.ctx, NS, input, &options)
        .await
        .unwrap();
    assert!(uid_like(created.uid()));
    assert!(created.name().starts_with("w-"));
    assert_eq!(created.resource_version(), "");
    assert_eq!(f.revision().await, before);
    f.create(widget("a", json!({}))).await.unwrap();
    let taken = f
        .widgets
        .writes()
        .create(&f.ctx, NS, object(widget("a", json!({}))), &options)
        .await
        .unwrap_err();
    assert_eq!(taken.reason, Some(StatusReason::AlreadyExists));
}

#[tokio::test]
async fn a_status_in_the_body_is_dropped() {
    let f = fixture().await;
    let created = f
        .create(json!({"metadata": {"name": "a"}, "status": {"ready": true}}))
        .await
        .unwrap();
    assert_eq!(at(&created, "/status"), Value::Null);
}

#[tokio::test]
async fn equal_owner_references_are_kept_once() {
    let f = fixture().await;
    let owner = json!({"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u1"});
    let other = json!({"apiVersion": "v1", "kind": "A", "name": "b", "uid": "u2"});
    let created = f
        .create(json!({"metadata": {"name": "a", "ownerReferences": [owner, other, owner, owner]}}))
        .await
        .unwrap();
    assert_eq!(
        at(&created, "/metadata/ownerReferences"),
        json!([owner, other])
    );
    let text = ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may \
                reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: u1, u1";
    assert_eq!(f.ctx.take_warnings(), [text]);
}

#[tokio::test]
async fn broken_rules_are_reported_together_with_paths() {
    let f = fixture().await;
    let error = f
        .create(widget("A_b", json!({"weight": 11})))
        .await
        .unwrap_err();
    assert_eq!(error.reason, Some(StatusReason::Invalid));
    let details = error.details.unwrap();
    assert_eq!(
        (details.kind.as_str(), details.name.as_str()),
        ("Widget", "A_b")
    );
    let fields: Vec<&str> = details
        .causes
        .iter()
        .map(|cause| cause.field.as_str())
        .collect();
    assert_eq!(fields, ["metadata.name", "spec.weight"]);
}

#[tokio::test]
async fn the_kinds_rules_prepare_judge_and_warn() {
    let f = fixture().await;
    let created = f
        .create(widget("a", json!({"color": "pink"})))
        .await
        .unwrap();
    assert_eq!(at(&created, "/spec/serial"), 1);
    assert_eq!(f.ctx.take_warnings(), ["pink fades"]);
    let mut refused = widget("c", json!({"color": "pink"}));
    refused["metadata"]["labels"] = json!({"refuse": "me"});
    let error = f.create(refused).await.unwrap_err();
    assert_eq!(error.reason, Some(StatusReason::Forbidden));
    // As in kube-apiserver: the rules warn before admission plugins judge.
    assert_eq!(f.ctx.take_warnings(), ["pink fades"]);
    let error = f
        .create(widget("b", json!({"color": "bad"})))
        .await
        .unwrap_err();
    let text = "Widget.test.example.com \"b\" is invalid: spec.color: Invalid value: \"bad\": must be good";
    assert_eq!(shown(&error), (Some("Invalid"), text));
}

#[tokio::test]
async fn the_kinds_rules_default_after_the_schema() {
    let f = fixture().await;
    let created = f.create(widget("a", json!({"weight": 2}))).await.unwrap();
    assert_eq!(
        at(&created, "/spec"),
        json!({"weight": 2, "color": "gray", "size": 1, "serial": 1})
    );
}

#[tokio::test]
async fn plugins_refuse_and_their_other_errors_become_refusals() {
    let f = fixture().await;
    let error = f.create(widget("forbidden", json!({}))).await.unwrap_err();
    let text = "widgets.test.example.com \"forbidden\" is forbidden: not this one";
    assert_eq!(shown(&error), (Some("Forbidden"), text));
    let error = f.create(widget("broken", json!({}))).await.unwrap_err();
    let text = "widgets.test.example.com \"broken\" is forbidden: the judge is ill";
    assert_eq!(shown(&error), (Some("Forbidden"), text));
    assert!(f.get("broken").await.is_err());
}

#[tokio::test]
async fn plugins_change_objects_and_list_what_was_acknowledged() {
    let f = fixture().await;
    for (i, name) in ["a", "b", "c"].into_iter().enumerate() {
        let input = json!({"metadata": {"name": name, "labels": {"count": "me"}}});
        let created = f.create(input).await.unwrap();
        assert_eq!(created.label("count"), Some(i.to_string().as_str()));
    }
}

#[tokio::test]
async fn owner_references_that_a_plugin_doubles_are_kept_once() {
    let f = fixture().await;
    for owned in ["twice", "by-taking"] {
        let input = json!({"metadata": {"name": owned, "labels": {"owned": owned}}});
        let created = f.create(input).await.unwrap();
        let owners = at(&created, "/metadata/ownerReferences");
        assert_eq!(owners.as_array().unwrap().len(), 1, "{owned}");
        let prefix = ".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server";
        let warnings = f.ctx.take_warnings();
        assert!(warnings[0].starts_with(prefix), "{warnings:?}");
    }
}
