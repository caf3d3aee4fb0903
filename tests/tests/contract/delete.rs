//! Delete of an object and of a collection.

use apiloom_meta::Time;
use serde_json::json;

use crate::*;

on_each_backend![
    c_092_a_delete_answers_with_a_status_without_code_or_with_the_object,
    c_093_options_in_the_body_replace_those_of_the_query,
    c_094_a_failed_precondition_names_the_kind,
    c_095_policies_that_contradict_or_do_not_exist_are_invalid,
    c_096_a_policy_is_a_finalizer_for_the_garbage_collector,
    c_097_another_policy_replaces_the_finalizer_of_the_first,
    c_098_deleting_again_changes_nothing,
    c_099_a_grace_period_is_only_shortened_and_zero_removes_after_an_update,
    c_100_only_an_old_option_is_answered_with_accepted,
    c_101_a_collection_is_deleted_by_selector_and_limit_and_listed,
    c_101_the_options_of_a_list_select_what_is_deleted,
    c_102_a_dry_delete_says_the_same_and_deletes_nothing,
    c_103_a_namespace_terminates_until_it_is_finalized,
    c_104_three_namespaces_cannot_be_deleted,
];

fn success(name: &str, uid: &Value) -> Value {
    let mut details = about(name);
    details["uid"] = uid.clone();
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

async fn c_092_a_delete_answers_with_a_status_without_code_or_with_the_object(on: Backend) {
    let (_server, client) = server_without_controllers(on);
    let object = created(&client, FLUNDERS, &flunder("a")).await;
    let item = format!("{FLUNDERS}/a");
    check(
        &client.delete(&item, &json!(null)).await,
        200,
        &success("a", &object["metadata"]["uid"]),
    );
    assert_eq!(client.delete(&item, &json!(null)).await.code, 404);
    // For namespaces the response is the object.
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gone"}});
    created(&client, "/api/v1/namespaces", &namespace).await;
    let mut answer = client
        .delete("/api/v1/namespaces/gone", &json!(null))
        .await
        .json();
    assert_eq!(
        (&answer["kind"], &answer["status"]["phase"]),
        (&json!("Namespace"), &json!("Terminating"))
    );
    answer["spec"] = json!({});
    let last = client
        .put("/api/v1/namespaces/gone/finalize", &answer)
        .await;
    assert_eq!(
        (last.code, &last.json()["kind"]),
        (200, &json!("Namespace"))
    );
    assert_eq!(client.get("/api/v1/namespaces/gone").await.code, 404);
}

async fn c_093_options_in_the_body_replace_those_of_the_query(on: Backend) {
    let (_server, client) = server(on);
    let object = created(&client, FLUNDERS, &flunder("a")).await;
    let query = "dryRun=All&propagationPolicy=Foreground&orphanDependents=x&gracePeriodSeconds=5";
    let item = format!("{FLUNDERS}/a?{query}");
    for (api_version, kind) in [("v1", "Options"), ("v2", "Options")] {
        let body = json!({"apiVersion": api_version, "kind": kind});
        let answer = client.delete(&item, &body).await;
        let message = answer.json()["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with("no kind "), "{message}");
        check_failure(&answer, 400, "BadRequest", &message, json!(null));
    }
    let body = json!({"apiVersion": "wardle.example.com/v1alpha1", "kind": "DeleteOptions"});
    let gone = success("a", &object["metadata"]["uid"]);
    check(&client.delete(&item, &body).await, 200, &gone);
    assert_eq!(client.get(&format!("{FLUNDERS}/a")).await.code, 404);
    // As in Kubernetes they are of no version.
    for options in [
        json!({"kind": "DeleteOptions", "apiVersion": "v1"}),
        json!({"kind": "DeleteOptions", "apiVersion": "v2"}),
        json!({}),
    ] {
        let object = created(&client, FLUNDERS, &flunder("a")).await;
        let gone = success("a", &object["metadata"]["uid"]);
        check(&client.delete(&item, &options).await, 200, &gone);
    }
}

async fn c_094_a_failed_precondition_names_the_kind(on: Backend) {
    let (_server, client) = server(on);
    let object = created(&client, FLUNDERS, &flunder("a")).await;
    let item = format!("{FLUNDERS}/a");
    let meta = &object["metadata"];
    let (uid, version) = (
        meta["uid"].as_str().unwrap(),
        meta["resourceVersion"].as_str().unwrap(),
    );
    let mut details = about("a");
    details["kind"] = json!("Flunder");
    for (preconditions, why) in [
        (
            json!({"uid": "zzz"}),
            format!(
                "the UID in the precondition (zzz) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
            ),
        ),
        (
            json!({"uid": uid, "resourceVersion": "1"}),
            format!(
                "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record ({version}). The object might have been modified"
            ),
        ),
    ] {
        let message =
            format!(r#"Operation cannot be fulfilled on Flunder.wardle.example.com "a": {why}"#);
        for options in [
            json!({"preconditions": preconditions}),
            json!({"preconditions": preconditions, "dryRun": ["All"]}),
            json!({"preconditions": preconditions, "propagationPolicy": "Foreground"}),
        ] {
            let answer = client.delete(&item, &options).await;
            check_failure(&answer, 409, "Conflict", &message, details.clone());
        }
    }
    check(&client.get(&item).await, 200, &object);
    let held = json!({"preconditions": {"uid": uid, "resourceVersion": version}});
    let gone = success("a", &json!(uid));
    check(&client.delete(&item, &held).await, 200, &gone);
}

async fn c_095_policies_that_contradict_or_do_not_exist_are_invalid(on: Backend) {
    let (_server, client) = server(on);
    let object = created(&client, FLUNDERS, &flunder("a")).await;
    let item = format!("{FLUNDERS}/a");
    for (query, options, reason, body) in [
        (
            "propagationPolicy=Orphan&orphanDependents=true",
            json!({"propagationPolicy": "Orphan", "orphanDependents": true}),
            "FieldValueInvalid",
            r#"Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set"#,
        ),
        (
            "propagationPolicy=X",
            json!({"propagationPolicy": "X"}),
            "FieldValueNotSupported",
            r#"Unsupported value: "X": supported values: "Foreground", "Background", "Orphan", "nil""#,
        ),
    ] {
        let message =
            format!(r#"DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: {body}"#);
        let details = json!({
            "group": "meta.k8s.io", "kind": "DeleteOptions",
            "causes": [{"reason": reason, "message": body, "field": "propagationPolicy"}],
        });
        let by_query = client
            .delete(&format!("{item}?{query}"), &json!(null))
            .await;
        let by_body = client.delete(&item, &options).await;
        let of_all = client
            .delete(&format!("{FLUNDERS}?{query}"), &json!(null))
            .await;
        for answer in [by_query, by_body, of_all] {
            check_failure(&answer, 422, "Invalid", &message, details.clone());
        }
    }
    check(&client.get(&item).await, 200, &object);
}

/// The path of pods, of a kind with grace periods.
const PODS: &str = "/api/v1/namespaces/default/pods";

/// A pod that a node runs, so that it gets time to end.
fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"nodeName": "first"}})
}

/// A pod whose deletion has begun, with this grace period.
fn ending(pod: &Value, seconds: i64) -> Value {
    let mut expected = pod.clone();
    expected["metadata"]["deletionTimestamp"] = json!("$TIME");
    expected["metadata"]["deletionGracePeriodSeconds"] = json!(seconds);
    expected["metadata"]["generation"] = json!(2);
    expected["metadata"]["resourceVersion"] = json!("$RV");
    expected
}

/// Seconds from now to the deletionTimestamp of an object.
fn seconds_left(object: &Value) -> i64 {
    let end: Time = object["metadata"]["deletionTimestamp"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    end.unix_seconds() - Time::now().unix_seconds()
}

async fn c_099_a_grace_period_is_only_shortened_and_zero_removes_after_an_update(on: Backend) {
    let mut cluster = Cluster::start_binary(on, "core-kinds-server");
    let client = cluster.client();
    let created = created(&client, PODS, &pod("a")).await;
    let item = format!("{PODS}/a");
    let seconds = |seconds: i64| json!({"gracePeriodSeconds": seconds});
    // A dry run shows what would be.
    let dry = client
        .delete(
            &format!("{item}?dryRun=All&gracePeriodSeconds=7"),
            &json!(null),
        )
        .await;
    let mut unwritten = ending(&created, 7);
    unwritten["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    check(&dry, 200, &unwritten);
    check(&client.get(&item).await, 200, &created);
    // Without a wish it is the default of the kind.
    let first = client.delete(&item, &json!(null)).await;
    check(&first, 200, &ending(&created, 30));
    let first = first.json();
    let left = seconds_left(&first);
    assert!((20..=30).contains(&left), "{left} s are left");
    // The same, a longer one or none change nothing, with any policy. The old option is still answered with 202.
    for (options, code) in [
        (json!(null), 200),
        (seconds(30), 200),
        (seconds(3600), 200),
        (json!({"propagationPolicy": "Foreground"}), 200),
        (json!({"orphanDependents": false}), 202),
    ] {
        check(&client.delete(&item, &options).await, code, &first);
    }
    // Another server, and the same one after a restart, know the deletion.
    {
        let (_replica, other) = another(&cluster, &client);
        let shorter = other.delete(&item, &seconds(20)).await;
        check(&shorter, 200, &ending(&created, 20));
        assert!((left - 20..=left - 10).contains(&seconds_left(&shorter.json())));
    }
    cluster.kill();
    cluster.start_again();
    let client = cluster.client();
    let shortest = client.delete(&item, &seconds(-1)).await;
    check(&shortest, 200, &ending(&created, 1));
    // An update can neither change nor end it.
    let changed = json!({"metadata": {"deletionGracePeriodSeconds": 60}});
    assert_eq!(client.merge(&item, &changed).await.code, 422);
    let labeled = client
        .merge(&item, &json!({"metadata": {"labels": {"a": "b"}}}))
        .await;
    let labeled = labeled.json();
    assert_eq!(labeled["metadata"]["deletionGracePeriodSeconds"], 1);
    // Only a client removes it, even when the period is over.
    let from = revision(&labeled);
    let mut watch = client
        .watch(&format!("{PODS}?watch=1&resourceVersion={from}"))
        .await;
    let version = labeled["metadata"]["resourceVersion"].clone();
    let stale = json!({"gracePeriodSeconds": 0, "preconditions": {"resourceVersion": "1"}});
    assert_eq!(client.delete(&item, &stale).await.code, 409);
    let last = json!({"gracePeriodSeconds": 0, "preconditions": {"resourceVersion": version}});
    let last = client.delete(&item, &last).await;
    let mut expected = ending(&labeled, 0);
    check(&last, 200, &expected);
    let (update, removal) = (watch.event().await, watch.event().await);
    assert_eq!(
        (&update["type"], &removal["type"]),
        (&json!("MODIFIED"), &json!("DELETED"))
    );
    assert!(revision(&update["object"]) < revision(&removal["object"]));
    for event in [&update, &removal] {
        expected["metadata"]["managedFields"] = json!([]);
        assert!(matches(&expected, &event["object"]), "{event:#}");
    }
    assert_eq!(last.json(), removal["object"]);
    assert_eq!(client.get(&item).await.code, 404);
    // A collection: what no node runs is gone at once, the other pods get their time.
    let own = |name: &str, spec: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec});
    for pod in [
        own("b", json!({})),
        own(
            "c",
            json!({"nodeName": "first", "terminationGracePeriodSeconds": 50}),
        ),
    ] {
        assert_eq!(client.post(PODS, &pod).await.code, 201);
    }
    let deleted = client.delete(PODS, &json!(null)).await.json();
    assert_eq!(deleted["items"].as_array().map(Vec::len), Some(2));
    let left = client.get(PODS).await.json();
    assert_eq!(left["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        left["items"][0]["metadata"]["deletionGracePeriodSeconds"],
        50
    );
    assert_eq!(client.delete(PODS, &seconds(0)).await.code, 200);
    assert_eq!(client.get(PODS).await.json()["items"], json!([]));
    // Finalizers hold it after the grace period.
    let mut held = pod("held");
    held["metadata"]["finalizers"] = json!(["example.com/x"]);
    let held = apiloom_tests::created(&client, PODS, &held).await;
    let item = format!("{PODS}/held");
    check(
        &client.delete(&item, &seconds(10)).await,
        200,
        &ending(&held, 10),
    );
    let answer = client.delete(&item, &seconds(0)).await;
    check(&answer, 200, &ending(&held, 0));
    check(
        &client.delete(&item, &seconds(0)).await,
        200,
        &answer.json(),
    );
    let freed = client
        .merge(&item, &json!({"metadata": {"finalizers": null}}))
        .await;
    assert_eq!(freed.code, 200);
    assert_eq!(client.get(&item).await.code, 404);
}

/// An object that was marked for deletion with these finalizers.
fn marked(object: &Value, finalizers: Value) -> Value {
    let mut expected = object.clone();
    expected["metadata"]["deletionTimestamp"] = json!("$TIME");
    expected["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    expected["metadata"]["generation"] = json!(2);
    expected["metadata"]["resourceVersion"] = json!("$RV");
    expected["metadata"]["finalizers"] = finalizers;
    expected
}

async fn c_096_a_policy_is_a_finalizer_for_the_garbage_collector(on: Backend) {
    let (_server, client) = server_without_controllers(on);
    for (name, options, finalizer) in [
        (
            "a",
            json!({"propagationPolicy": "Foreground"}),
            "foregroundDeletion",
        ),
        ("b", json!({"propagationPolicy": "Orphan"}), "orphan"),
        ("c", json!({"orphanDependents": true}), "orphan"),
    ] {
        let object = created(&client, FLUNDERS, &flunder(name)).await;
        let item = format!("{FLUNDERS}/{name}");
        let expected = marked(&object, json!([finalizer]));
        let mut dry = options.clone();
        dry["dryRun"] = json!(["All"]);
        let mut unwritten = expected.clone();
        unwritten["metadata"]["resourceVersion"] = object["metadata"]["resourceVersion"].clone();
        check(&client.delete(&item, &dry).await, 200, &unwritten);
        check(&client.get(&item).await, 200, &object);
        let answer = client.delete(&item, &options).await;
        check(&answer, 200, &expected);
        // Without a policy the finalizer is kept.
        check(
            &client.delete(&item, &json!(null)).await,
            200,
            &answer.json(),
        );
    }
    // Events have no dependents, so policies have no effect on them, in both of their groups.
    let events = "/api/v1/namespaces/default/events";
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"},
        "involvedObject": {"namespace": "default"}});
    for path in [events, "/apis/events.k8s.io/v1/namespaces/default/events"] {
        for policy in ["Foreground", "Orphan"] {
            created(&client, events, &event).await;
            let options = json!({"propagationPolicy": policy});
            let answer = client.delete(&format!("{path}/e"), &options).await;
            assert_eq!(
                (answer.code, &answer.json()["kind"]),
                (200, &json!("Status")),
                "{path}"
            );
            assert_eq!(client.get(&format!("{path}/e")).await.code, 404);
        }
    }
}

async fn c_097_another_policy_replaces_the_finalizer_of_the_first(on: Backend) {
    let (_server, client) = server_without_controllers(on);
    let mut object = flunder("a");
    object["metadata"]["finalizers"] = json!(["foregroundDeletion", "example.com/x"]);
    let object = created(&client, FLUNDERS, &object).await;
    let item = format!("{FLUNDERS}/a");
    let with = |policy: &str| json!({"propagationPolicy": policy});
    // The chosen finalizer is the last one.
    for (policy, finalizers) in [
        ("Orphan", json!(["example.com/x", "orphan"])),
        ("Foreground", json!(["example.com/x", "foregroundDeletion"])),
        ("Background", json!(["example.com/x"])),
        ("Orphan", json!(["example.com/x", "orphan"])),
    ] {
        let answer = client.delete(&item, &with(policy)).await;
        check(&answer, 200, &marked(&object, finalizers));
    }
    let released = json!({"metadata": {"finalizers": ["orphan"]}});
    assert_eq!(client.merge(&item, &released).await.code, 200);
    let gone = success("a", &object["metadata"]["uid"]);
    check(&client.delete(&item, &with("Background")).await, 200, &gone);
    assert_eq!(client.get(&item).await.code, 404);
}

async fn c_098_deleting_again_changes_nothing(on: Backend) {
    let (_server, client) = server(on);
    let mut object = flunder("a");
    object["metadata"]["finalizers"] = json!(["example.com/x"]);
    let object = created(&client, FLUNDERS, &object).await;
    let item = format!("{FLUNDERS}/a");
    let first = client.delete(&item, &json!(null)).await;
    let mut expected = object.clone();
    expected["metadata"]["deletionTimestamp"] = json!("$TIME");
    expected["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    expected["metadata"]["generation"] = json!(2);
    expected["metadata"]["resourceVersion"] = json!("$RV");
    check(&first, 200, &expected);
    let first = first.json();
    let mut watch = client
        .watch(&format!(
            "{FLUNDERS}?watch=1&resourceVersion={}",
            revision(&first)
        ))
        .await;
    check(&client.delete(&item, &json!(null)).await, 200, &first);
    let next = created(&client, FLUNDERS, &flunder("b")).await;
    assert_eq!(
        watch.event().await,
        json!({"type": "ADDED", "object": next}),
        "nothing happened in between"
    );
}

async fn c_100_only_an_old_option_is_answered_with_accepted(on: Backend) {
    let (_server, client) = server(on);
    let mut held = flunder("held");
    held["metadata"]["finalizers"] = json!(["example.com/x"]);
    let object = created(&client, FLUNDERS, &held).await;
    let expected = marked(&object, json!(["example.com/x"]));
    let item = format!("{FLUNDERS}/held");
    for (query, code) in [
        ("propagationPolicy=Background", 200),
        ("orphanDependents=false", 202),
        ("", 200),
    ] {
        let answer = client
            .delete(&format!("{item}?{query}"), &json!(null))
            .await;
        check(&answer, code, &expected);
    }
    let object = created(&client, FLUNDERS, &flunder("free")).await;
    let gone = success("free", &object["metadata"]["uid"]);
    let item = format!("{FLUNDERS}/free?orphanDependents=false");
    check(&client.delete(&item, &json!(null)).await, 200, &gone);
}

async fn c_103_a_namespace_terminates_until_it_is_finalized(on: Backend) {
    let (_server, client) = server_without_controllers(on);
    let item = "/api/v1/namespaces/ending";
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ending"}});
    let mut expected = created(&client, "/api/v1/namespaces", &namespace).await;
    expected["metadata"]["deletionTimestamp"] = json!("$TIME");
    expected["metadata"]["resourceVersion"] = json!("$RV");
    expected["status"]["phase"] = json!("Terminating");
    let answer = client.delete(item, &json!(null)).await;
    check(&answer, 200, &expected);
    // Deleting again changes nothing, with any policy.
    let with_policy = format!("{item}?propagationPolicy=Orphan");
    let again = client.delete(&with_policy, &json!(null)).await;
    check(&again, 200, &answer.json());
    let mut finalized = answer.json();
    finalized["spec"] = json!({});
    let last = client.put(&format!("{item}/finalize"), &finalized).await;
    assert_eq!(last.code, 200, "{}", last.text());
    assert_eq!(client.get(item).await.code, 404);
}

async fn c_104_three_namespaces_cannot_be_deleted(on: Backend) {
    let (_server, client) = server(on);
    for name in ["default", "kube-system", "kube-public"] {
        let item = format!("/api/v1/namespaces/{name}");
        let message =
            format!(r#"namespaces "{name}" is forbidden: this namespace may not be deleted"#);
        let details = json!({"name": name, "kind": "namespaces"});
        for query in ["", "?dryRun=All"] {
            let answer = client.delete(&format!("{item}{query}"), &json!(null)).await;
            check_failure(&answer, 403, "Forbidden", &message, details.clone());
        }
        assert_eq!(client.get(&item).await.json()["status"]["phase"], "Active");
    }
}

async fn c_101_a_collection_is_deleted_by_selector_and_limit_and_listed(on: Backend) {
    let (_server, client) = server(on);
    for (name, tier) in [
        ("a", "front"),
        ("b", "back"),
        ("c", "front"),
        ("d", "front"),
    ] {
        let mut object = flunder(name);
        object["metadata"]["labels"] = json!({"tier": tier});
        created(&client, FLUNDERS, &object).await;
    }
    let item = |name: &str, tier: &str, generation: u64| {
        json!({"metadata": {"name": name, "namespace": "default", "uid": "$UID", "resourceVersion": "$RV",
            "creationTimestamp": "$TIME", "generation": generation, "labels": {"tier": tier}}})
    };
    let list = |items: Vec<Value>| {
        json!({"kind": "FlunderList", "apiVersion": "wardle.example.com/v1alpha1", "metadata": {"resourceVersion": "$RV"},
            "items": items})
    };
    let answer = client
        .delete(
            &format!("{FLUNDERS}?labelSelector=tier%3Dback"),
            &json!(null),
        )
        .await;
    check(&answer, 200, &list(vec![item("b", "back", 1)]));
    let answer = client
        .delete(&format!("{FLUNDERS}?limit=1"), &json!(null))
        .await;
    let mut expected = list(vec![item("a", "front", 1)]);
    expected["metadata"]["continue"] = answer.json()["metadata"]["continue"].clone();
    expected["metadata"]["remainingItemCount"] = json!(2);
    check(&answer, 200, &expected);
    check(
        &client.get(FLUNDERS).await,
        200,
        &list(vec![item("c", "front", 1), item("d", "front", 1)]),
    );
    let answer = client.delete(FLUNDERS, &json!(null)).await;
    check(
        &answer,
        200,
        &list(vec![item("c", "front", 1), item("d", "front", 1)]),
    );
    check(&client.get(FLUNDERS).await, 200, &list(vec![]));
}

async fn c_102_a_dry_delete_says_the_same_and_deletes_nothing(on: Backend) {
    let (_server, client) = server(on);
    let object = created(&client, FLUNDERS, &flunder("a")).await;
    let item = format!("{FLUNDERS}/a");
    let expected = success("a", &object["metadata"]["uid"]);
    check(
        &client
            .delete(&format!("{item}?dryRun=All"), &json!(null))
            .await,
        200,
        &expected,
    );
    check(
        &client.delete(&item, &json!({"dryRun": ["All"]})).await,
        200,
        &expected,
    );
    check(&client.get(&item).await, 200, &object);
}

async fn c_101_the_options_of_a_list_select_what_is_deleted(on: Backend) {
    let (_server, client) = server(on);
    let names = ["a", "b", "c", "d", "e"];
    for name in names {
        created(&client, FLUNDERS, &flunder(name)).await;
    }
    // What a list refuses is refused, in the same words.
    for query in [
        "labelSelector=a%3D%3D%3Db",
        "fieldSelector=spec.nothing%3Dx",
        "fieldSelector=a",
        "limit=x",
        "resourceVersion=x",
        "resourceVersionMatch=Exact",
        "resourceVersion=1&resourceVersionMatch=Some",
        "continue=x",
        "sendInitialEvents=true",
    ] {
        let path = format!("{FLUNDERS}?{query}");
        let (listed, deleted) = (
            client.get(&path).await,
            client.delete(&path, &json!(null)).await,
        );
        assert!(
            matches!(listed.code, 400 | 422),
            "{query}: {}",
            listed.text()
        );
        assert_eq!(
            (deleted.code, deleted.json()),
            (listed.code, listed.json()),
            "{query}"
        );
    }
    let listed = async |query: &str| {
        let list = client.get(&format!("{FLUNDERS}?{query}")).await.json();
        let items = list["items"].as_array().unwrap().iter();
        let names = items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned());
        (
            names.collect::<Vec<_>>(),
            list["metadata"]["continue"].as_str().map(str::to_owned),
        )
    };
    assert_eq!(listed("").await.0, names);
    let delete = async |query: &str, options: Value| {
        let answer = client
            .delete(&format!("{FLUNDERS}?{query}"), &options)
            .await;
        assert_eq!(answer.code, 200, "{query}: {}", answer.text());
    };
    // A dry run, and a precondition that holds for one object at most, with the options in the body.
    delete(
        "fieldSelector=metadata.name%3Da",
        json!({"dryRun": ["All"]}),
    )
    .await;
    assert_eq!(listed("").await.0, names);
    let other = json!({"preconditions": {"uid": "another"}});
    let refused = client.delete(&format!("{FLUNDERS}?limit=1"), &other).await;
    assert_eq!(refused.code, 409, "{}", refused.text());
    // In the query a resourceVersion is a precondition as well, and a uid is one.
    for query in ["resourceVersion=0", "uid=another"] {
        let path = format!("{FLUNDERS}?limit=1&{query}");
        let refused = client.delete(&path, &json!(null)).await;
        assert_eq!(refused.code, 409, "{query}: {}", refused.text());
    }
    // A delete watches nothing.
    delete("fieldSelector=metadata.name%3Da&watch=1", json!(null)).await;
    assert_eq!(listed("").await.0, names[1..]);
    // The second page.
    let (first, token) = listed("limit=2").await;
    assert_eq!(first, ["b", "c"]);
    delete(&format!("limit=1&continue={}", token.unwrap()), json!(null)).await;
    assert_eq!(listed("").await.0, ["b", "c", "e"]);
}
