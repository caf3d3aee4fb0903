//! What the conditions of CustomResourceDefinitions say: conflicts of names, approvals, the steps of a deletion.

use serde_json::json;

use crate::custom::*;
use crate::*;

on_each_backend![
    each_name_that_another_kind_has_is_a_conflict,
    of_several_conflicts_the_last_is_told,
    a_group_of_kubernetes_needs_an_approval,
    the_steps_of_a_deletion_are_conditions,
    a_deletion_says_each_step_once_while_clients_write,
    objects_go_with_a_definition_that_is_still_installed,
    a_deletion_that_fails_is_tried_again,
    a_create_waits_for_nothing_once_its_kind_is_established,
];

/// A condition of a definition: status, reason and message.
fn told(definition: &Value, of: &str) -> Option<[String; 3]> {
    let mut conditions = definition["status"]["conditions"].as_array()?.iter();
    let found = conditions.find(|one| one["type"] == of)?;
    Some(["status", "reason", "message"].map(|field| found[field].as_str().unwrap().to_owned()))
}

/// A definition of bars with names in place of its own.
fn bars_named(names: &Value) -> Value {
    let mut bars = definition("bars", "Bar", &json!({}));
    for (field, name) in names.as_object().unwrap() {
        bars["spec"]["names"][field] = name.clone();
    }
    bars
}

/// Creates a definition of bars beside that of foos; returns it when its names were judged, after it was deleted.
async fn judged(client: &Client, bars: &Value) -> Value {
    created(client, CRDS, bars).await;
    let answer = until(client, &path("bars"), |answer| {
        condition(&answer.json(), "NamesAccepted").is_some()
    })
    .await;
    let answer = answer.json();
    assert_eq!(client.delete(&path("bars"), &json!(null)).await.code, 200);
    until(client, &path("bars"), |answer| answer.code == 404).await;
    answer
}

async fn each_name_that_another_kind_has_is_a_conflict(on: Backend) {
    let (_server, client) = with_foos(on).await;
    // Plurals, singulars and short names are one set of names, kinds and those of lists another.
    for (names, reason, name) in [
        (json!({"singular": "foos"}), "SingularConflict", "foos"),
        (json!({"singular": "fo"}), "SingularConflict", "fo"),
        (json!({"shortNames": ["foo"]}), "ShortNamesConflict", "foo"),
        (json!({"kind": "Foo"}), "KindConflict", "Foo"),
        (json!({"kind": "FooList"}), "KindConflict", "FooList"),
        (json!({"listKind": "Foo"}), "ListKindConflict", "Foo"),
        (
            json!({"listKind": "FooList"}),
            "ListKindConflict",
            "FooList",
        ),
    ] {
        let mut bars = bars_named(&names);
        // Its default would be a conflict too.
        if names["kind"] == "Foo" {
            bars["spec"]["names"]["listKind"] = json!("Bars");
            bars["spec"]["names"]["singular"] = json!("bar");
        }
        let bars = judged(&client, &bars).await;
        let message = format!("{name:?} is already in use");
        let expected = ["False", reason, &message].map(str::to_owned);
        assert_eq!(told(&bars, "NamesAccepted").unwrap(), expected, "{names}");
        let expected = ["False", "NotAccepted", "not all names are accepted"];
        assert_eq!(told(&bars, "Established").unwrap(), expected, "{names}");
        let accepted = &bars["status"]["acceptedNames"];
        for (field, refused) in names.as_object().unwrap() {
            assert_ne!(accepted[field], *refused, "{accepted}");
        }
        assert_eq!(accepted["plural"], "bars");
    }
    // A plural can be in use as another name.
    let mut foos = foos();
    foos["spec"]["names"]["shortNames"] = json!(["bars"]);
    assert_eq!(client.delete(&path("foos"), &json!(null)).await.code, 200);
    until(&client, &path("foos"), |answer| answer.code == 404).await;
    establish(&client, &foos).await;
    let bars = judged(&client, &definition("bars", "Bar", &json!({}))).await;
    let expected = ["False", "PluralConflict", "\"bars\" is already in use"];
    assert_eq!(told(&bars, "NamesAccepted").unwrap(), expected);
    assert_eq!(bars["status"]["acceptedNames"]["plural"], "");
}

async fn of_several_conflicts_the_last_is_told(on: Backend) {
    let (_server, client) = with_foos(on).await;
    let told_of = async |names: Value| {
        let bars = judged(&client, &bars_named(&names)).await;
        let [_, reason, message] = told(&bars, "NamesAccepted").unwrap();
        (reason, message)
    };
    let short = (
        "ShortNamesConflict",
        "[\"fo\" is already in use, \"foos\" is already in use]",
    );
    let both = told_of(json!({"singular": "foo", "shortNames": ["fo", "b", "foos"]})).await;
    assert_eq!((&*both.0, &*both.1), short);
    let all = told_of(json!({"singular": "foo", "shortNames": ["fo"], "kind": "Foo"})).await;
    assert_eq!(&*all.0, "ListKindConflict");
}

async fn a_group_of_kubernetes_needs_an_approval(on: Backend) {
    let (_server, client) = server(on);
    let of = |plural: &str, approval: Option<&str>| {
        let kind = plural.to_uppercase();
        let mut made = definition(plural, &kind, &json!({}));
        made["metadata"]["name"] = json!(format!("{plural}.test.k8s.io"));
        made["spec"]["group"] = json!("test.k8s.io");
        if let Some(approval) = approval {
            let annotation = json!({"api-approved.kubernetes.io": approval});
            made["metadata"]["annotations"] = annotation;
        }
        made
    };
    let url = "https://github.com/kubernetes/enhancements/pull/1";
    for (plural, approval, expected) in [
        (
            "as",
            url,
            ["True", "ApprovedAnnotation", &*format!("approved in {url}")],
        ),
        (
            "bs",
            "unapproved, for a test",
            [
                "False",
                "UnapprovedAnnotation",
                "not approved: \"unapproved, for a test\"",
            ],
        ),
    ] {
        let made = establish(&client, &of(plural, Some(approval))).await;
        let shown = told(&made, "KubernetesAPIApprovalPolicyConformant");
        assert_eq!(shown.unwrap(), expected);
    }
    let text = "metadata.annotations[api-approved.kubernetes.io]: ";
    for (approval, problem) in [
        (
            None,
            "Required value: protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111",
        ),
        (
            Some("maybe"),
            "Invalid value: \"maybe\": protected groups must have approval annotation \"api-approved.kubernetes.io\" with either a URL or a reason starting with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111",
        ),
    ] {
        let refused = client.post(CRDS, &of("cs", approval)).await;
        let message = format!(
            "CustomResourceDefinition.apiextensions.k8s.io \"cs.test.k8s.io\" is invalid: {text}{problem}"
        );
        assert_eq!(
            (refused.code, &refused.json()["message"]),
            (422, &json!(message))
        );
    }
    // A definition of another group has no such condition.
    let foos = establish(&client, &foos()).await;
    assert_eq!(told(&foos, "KubernetesAPIApprovalPolicyConformant"), None);
}

/// Deletes a definition; returns what the condition Terminating said until it was gone.
async fn steps_of_deletion(client: &Client, item: &str) -> Vec<[String; 3]> {
    let present = client.get(item).await.json();
    let name = present["metadata"]["name"].as_str().unwrap();
    let (from, selector) = (revision(&present), format!("metadata.name%3D{name}"));
    let url = format!("{CRDS}?watch=1&resourceVersion={from}&fieldSelector={selector}");
    let mut events = client.watch(&url).await;
    assert_eq!(client.delete(item, &json!(null)).await.code, 200);
    let mut steps: Vec<[String; 3]> = Vec::new();
    loop {
        let event = events.event().await;
        if let Some(step) = told(&event["object"], "Terminating")
            && steps.last() != Some(&step)
        {
            steps.push(step);
        }
        if event["type"] == "DELETED" {
            return steps;
        }
    }
}

async fn the_steps_of_a_deletion_are_conditions(on: Backend) {
    let (_server, client) = with_foos(on).await;
    let pending = [
        "True",
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    ];
    // The name of foos is in use, so there can be no objects.
    created(&client, CRDS, &bars_named(&json!({"shortNames": ["fo"]}))).await;
    until(&client, &path("bars"), |answer| {
        condition(&answer.json(), "NamesAccepted").is_some()
    })
    .await;
    let never = [
        "False",
        "NeverEstablished",
        "resource was never established",
    ];
    assert_eq!(
        steps_of_deletion(&client, &path("bars")).await,
        [pending, never]
    );

    created(&client, FOOS, &foo("a", &json!({}))).await;
    let began = [
        "True",
        "InstanceDeletionInProgress",
        "CustomResource deletion is in progress",
    ];
    let ended = [
        "False",
        "InstanceDeletionCompleted",
        "removed all instances",
    ];
    assert_eq!(
        steps_of_deletion(&client, &path("foos")).await,
        [pending, began, ended]
    );

    let mut flunders = definition("flunders", "Flunder", &json!({}));
    flunders["metadata"]["name"] = json!("flunders.wardle.example.com");
    flunders["spec"]["group"] = json!("wardle.example.com");
    created(&client, FLUNDERS, &flunder("a")).await;
    establish(&client, &flunders).await;
    let overlaps = [
        "False",
        "OverlappingBuiltInResource",
        "instances overlap with built-in resources in storage",
    ];
    let item = format!("{CRDS}/flunders.wardle.example.com");
    assert_eq!(steps_of_deletion(&client, &item).await, [pending, overlaps]);
    assert_eq!(client.get(&format!("{FLUNDERS}/a")).await.code, 200);
}

async fn a_deletion_says_each_step_once_while_clients_write(on: Backend) {
    let (_server, client) = server(on);
    // Of several servers, each waits some seconds for objects that others may create.
    let rounds = if has_replicas() { 3 } else { 10 };
    for _ in 0..rounds {
        establish(&client, &foos()).await;
        let item = path("foos");
        let label = async {
            let mut number = 0;
            loop {
                number += 1;
                let patch = json!({"metadata": {"labels": {"number": number.to_string()}}});
                client.merge(&item, &patch).await;
            }
        };
        let steps = tokio::select! {
            steps = steps_of_deletion(&client, &item) => steps,
            () = label => unreachable!("labels are written until the deletion ends"),
        };
        let mut reasons: Vec<&str> = steps.iter().map(|step| &*step[1]).collect();
        reasons.retain(|reason| *reason != "InstanceDeletionPending");
        assert_eq!(
            reasons,
            ["InstanceDeletionInProgress", "InstanceDeletionCompleted"]
        );
    }
}

async fn objects_go_with_a_definition_that_is_still_installed(on: Backend) {
    let (cluster, client) = server(on);
    // Of several servers, each serves the kind some seconds before it is established.
    let _other = cluster.replica();
    created(&client, CRDS, &foos()).await;
    let create = async || client.post(FOOS, &foo("a", &json!({}))).await;
    until_answered(FOOS, Duration::from_secs(30), create, |answer| {
        answer.code == 201
    })
    .await;
    assert_eq!(client.delete(&path("foos"), &json!(null)).await.code, 200);
    until(&client, &path("foos"), |answer| answer.code == 404).await;
    // A server that still looks for objects of the first leaves the second alone.
    let again = establish(&client, &foos()).await;
    assert_eq!(told(&again, "Terminating"), None);
    assert!(names(&client.get(FOOS).await.json()).is_empty());
}

async fn a_deletion_that_fails_is_tried_again(on: Backend) {
    let (_server, client) = with_foos(on).await;
    // Without a finalizer, an object that cannot be read is deleted by its key.
    let mut held = foo("a", &json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    created(&client, FOOS, &held).await;
    // What is stored in the first version can no longer be read in the second: no webhook has this address.
    let mut second = foos()["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    let webhook = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/convert"},
    }});
    let patch = json!([
        {"op": "replace", "path": "/spec/versions/0/storage", "value": false},
        {"op": "add", "path": "/spec/versions/-", "value": second},
        {"op": "add", "path": "/spec/conversion", "value": webhook},
    ]);
    let changed = client.json_patch(&path("foos"), &patch).await;
    assert_eq!(changed.code, 200, "{}", changed.text());
    let second = "/apis/ex.io/v2/namespaces/default/foos/a";
    until(&client, second, |answer| answer.code == 500).await;
    assert_eq!(client.delete(&path("foos"), &json!(null)).await.code, 200);
    let failed = until(&client, &path("foos"), |answer| {
        told(&answer.json(), "Terminating").unwrap()[1] == "InstanceDeletionFailed"
    })
    .await;
    let [status, _, message] = told(&failed.json(), "Terminating").unwrap();
    assert_eq!(status, "True");
    let expected = "could not delete instances of foos.ex.io: conversion webhook for ex.io/v1, Kind=Foo failed: ";
    assert!(message.starts_with(expected), "{message}");
    // It goes on when the objects can be converted.
    let patch =
        json!([{"op": "replace", "path": "/spec/conversion", "value": {"strategy": "None"}}]);
    let changed = client.json_patch(&path("foos"), &patch).await;
    assert_eq!(changed.code, 200, "{}", changed.text());
    let object = format!("{FOOS}/a");
    let is_being_deleted =
        |answer: &Answer| answer.json()["metadata"]["deletionTimestamp"].is_string();
    until(&client, &object, is_being_deleted).await;
    let released = json!({"metadata": {"finalizers": null}});
    let released = client.merge(&object, &released).await;
    assert_eq!(released.code, 200, "{}", released.text());
    until(&client, &path("foos"), |answer| answer.code == 404).await;
}

async fn a_create_waits_for_nothing_once_its_kind_is_established(on: Backend) {
    let (_server, client) = server(on);
    // kube-apiserver delays each of them by two seconds. A busy machine may delay some of these.
    for attempt in 1.. {
        let (plural, kind) = (format!("foos{attempt}"), format!("Foo{attempt}"));
        establish(&client, &definition(&plural, &kind, &json!({}))).await;
        let object = json!({"apiVersion": "ex.io/v1", "kind": kind, "metadata": {"name": "a"}});
        let established = Instant::now();
        created(
            &client,
            &format!("/apis/ex.io/v1/namespaces/default/{plural}"),
            &object,
        )
        .await;
        if established.elapsed() < Duration::from_secs(1) {
            return;
        }
        assert!(attempt < 10, "creates are delayed");
    }
}
