//! Server-side apply and managedFields.

use serde_json::json;

use crate::*;

on_each_backend![
    c_073_defaulted_fields_are_owned_by_the_creator,
    c_074_an_object_with_nothing_but_its_identity_has_no_managed_fields,
    c_151_an_apply_needs_a_manager_and_a_document_of_the_kind,
    c_152_conflicts_name_managers_and_fields_and_force_takes_them,
    c_153_applying_again_changes_nothing_and_equal_values_are_shared,
    c_154_fields_that_are_dropped_go_unless_others_own_them,
    c_155_entries_may_be_cleared_and_not_broken,
    c_156_the_oldest_updates_are_merged,
    c_157_lists_are_owned_by_key_by_value_or_as_a_whole,
    c_158_status_is_not_owned_through_the_main_path,
    a_path_owns_nothing_else_in_other_versions_either,
];

const APPLY: [(&str, &str); 1] = [("content-type", "application/apply-patch+yaml")];

async fn apply(client: &Client, query: &str, document: &Value) -> Answer {
    let path = format!("{FLUNDERS}/a?{query}");
    client
        .call("PATCH", &path, &APPLY, document.to_string())
        .await
}

async fn applied(client: &Client, manager: &str, document: &Value) -> Value {
    let answer = apply(client, &format!("fieldManager={manager}"), document).await;
    assert!(matches!(answer.code, 200 | 201), "{}", answer.text());
    answer.json()
}

fn with_spec(spec: Value) -> Value {
    let mut object = flunder("a");
    object["spec"] = spec;
    object
}

/// Manager, operation, subresource and fields of each entry.
fn owners(object: &Value) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().cloned();
    let entries = entries.unwrap_or_default();
    let entry = |entry: &Value| {
        json!([
            entry["manager"],
            entry["operation"],
            entry["subresource"],
            entry["fieldsV1"]
        ])
    };
    entries.iter().map(entry).collect()
}

async fn c_073_defaulted_fields_are_owned_by_the_creator(on: Backend) {
    let (_server, client) = server(on);
    let object = with_spec(json!({"reference": "x"}));
    let path = format!("{FLUNDERS}?fieldManager=one");
    let answer = client.call("POST", &path, &[], object.to_string()).await;
    let created = answer.json();
    // The type of the reference is a default.
    assert_eq!(created["spec"]["referenceType"], "Flunder");
    let fields = json!({"f:spec": {".": {}, "f:reference": {}, "f:referenceType": {}}});
    assert_eq!(
        owners(&created),
        json!([["one", "Update", null, fields]]),
        "{created:#}"
    );
    let entry = &created["metadata"]["managedFields"][0];
    assert_eq!(entry["apiVersion"], "wardle.example.com/v1alpha1");
    assert_eq!(entry["fieldsType"], "FieldsV1");
    assert!(is_time(entry["time"].as_str().unwrap()));
}

async fn c_074_an_object_with_nothing_but_its_identity_has_no_managed_fields(on: Backend) {
    let (_server, client) = server(on);
    let object = json!({"apiVersion": "wardle.example.com/v1alpha1", "kind": "Fischer", "metadata": {"name": "a"}});
    let created = created(&client, FISCHERS, &object).await;
    assert_eq!(
        created["metadata"].get("managedFields"),
        None,
        "{created:#}"
    );
}

async fn c_151_an_apply_needs_a_manager_and_a_document_of_the_kind(on: Backend) {
    let (_server, client) = server(on);
    let object = with_spec(json!({"reference": "x"}));
    let answer = apply(&client, "", &object).await;
    let why = "Required value: is required for apply patch";
    let message = format!(r#"PatchOptions.meta.k8s.io "" is invalid: fieldManager: {why}"#);
    let cause = json!({"reason": "FieldValueRequired", "message": why, "field": "fieldManager"});
    let details = json!({"group": "meta.k8s.io", "kind": "PatchOptions", "causes": [cause]});
    check_failure(&answer, 422, "Invalid", &message, details);
    let mut managed = object.clone();
    managed["metadata"]["managedFields"] = json!([{"manager": "x"}]);
    let mut other = object.clone();
    other["kind"] = json!("Fischer");
    for (document, message) in [
        (managed, "metadata.managedFields must be nil"),
        (
            other,
            "invalid object type: wardle.example.com/v1alpha1, Kind=Fischer",
        ),
    ] {
        let answer = apply(&client, "fieldManager=m", &document).await;
        check_failure(&answer, 400, "BadRequest", message, json!(null));
    }
    let unknown = with_spec(json!({"bogus": 1}));
    let answer = apply(&client, "fieldManager=m&fieldValidation=Ignore", &unknown).await;
    let message = "failed to create typed patch object (/a; wardle.example.com/v1alpha1, Kind=Flunder): .spec.bogus: \
                   field not declared in schema";
    check_failure(&answer, 500, "", message, json!(null));
    let path = format!("{FLUNDERS}/a?fieldManager=m");
    let answer = client.call("PATCH", &path, &APPLY, "a: [").await;
    assert_eq!(answer.code, 400, "{}", answer.text());
    let text = answer.json()["message"].as_str().unwrap().to_owned();
    assert!(text.starts_with("error decoding YAML: "), "{text}");
    assert_eq!(client.get(&format!("{FLUNDERS}/a")).await.code, 404);
}

async fn c_152_conflicts_name_managers_and_fields_and_force_takes_them(on: Backend) {
    let (_server, client) = server(on);
    let mut first = with_spec(json!({"reference": "x"}));
    first["metadata"]["labels"] = json!({"b": "1", "a": "1"});
    applied(&client, "one", &first).await;
    let item = format!("{FLUNDERS}/a");
    let patch = json!({"spec": {"referenceType": "Fischer"}});
    let path = format!("{item}?fieldManager=two");
    assert_eq!(client.merge(&path, &patch).await.code, 200);
    let mut other = with_spec(json!({"reference": "y", "referenceType": "Flunder"}));
    other["metadata"]["labels"] = json!({"b": "2", "a": "2"});
    let answer = apply(&client, "fieldManager=three", &other).await;
    let one = r#"conflict with "one""#;
    let two = r#"conflict with "two" using wardle.example.com/v1alpha1"#;
    let cause = |message: &str, field: &str| json!({"reason": "FieldManagerConflict", "message": message, "field": field});
    let causes = [
        cause(one, ".metadata.labels.a"),
        cause(one, ".metadata.labels.b"),
        cause(one, ".spec.reference"),
        cause(two, ".spec.referenceType"),
    ];
    let message = "Apply failed with 4 conflicts: conflicts with \"one\":\n- .metadata.labels.a\n- .metadata.labels.b\n\
                   - .spec.reference\nconflicts with \"two\" using wardle.example.com/v1alpha1:\n- .spec.referenceType";
    let details = json!({"causes": causes});
    check_failure(&answer, 409, "Conflict", message, details);
    let mut one_field = with_spec(json!({"reference": "y"}));
    one_field["metadata"]["labels"] = json!({"a": "1"});
    let answer = apply(&client, "fieldManager=three", &one_field).await;
    let message = r#"Apply failed with 1 conflict: conflict with "one": .spec.reference"#;
    let details = json!({"causes": [cause(one, ".spec.reference")]});
    check_failure(&answer, 409, "Conflict", message, details);
    let answer = apply(&client, "fieldManager=three&force=true", &other).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    let forced = answer.json();
    assert_eq!(forced["spec"], other["spec"]);
    let fields = json!({"f:metadata": {"f:labels": {"f:a": {}, "f:b": {}}},
        "f:spec": {"f:reference": {}, "f:referenceType": {}}});
    assert_eq!(owners(&forced), json!([["three", "Apply", null, fields]]));
}

async fn c_153_applying_again_changes_nothing_and_equal_values_are_shared(on: Backend) {
    let (_server, client) = server(on);
    let object = with_spec(json!({"reference": "x"}));
    let first = applied(&client, "one", &object).await;
    assert_eq!(applied(&client, "one", &object).await, first);
    let shared = applied(&client, "two", &object).await;
    assert!(revision(&shared) > revision(&first));
    let fields = json!({"f:spec": {"f:reference": {}}});
    assert_eq!(
        owners(&shared),
        json!([
            ["two", "Apply", null, fields],
            ["one", "Apply", null, fields]
        ])
    );
    // The value did not change, so there is no time of a change.
    assert_eq!(shared["metadata"]["managedFields"][0].get("time"), None);
}

async fn c_154_fields_that_are_dropped_go_unless_others_own_them(on: Backend) {
    let (_server, client) = server(on);
    let mut object = with_spec(json!({"reference": "x"}));
    object["metadata"]["labels"] = json!({"a": "1", "b": "1"});
    applied(&client, "one", &object).await;
    let mut shared = flunder("a");
    shared["metadata"]["labels"] = json!({"a": "1"});
    applied(&client, "two", &shared).await;
    let after = applied(&client, "one", &flunder("a")).await;
    assert_eq!(after["metadata"]["labels"], json!({"a": "1"}));
    assert_eq!(after["spec"].get("reference"), None);
    let after = applied(&client, "two", &flunder("a")).await;
    assert_eq!(after["metadata"].get("labels"), None, "{after:#}");
    assert_eq!(owners(&after), json!([]));
}

async fn c_155_entries_may_be_cleared_and_not_broken(on: Backend) {
    let (_server, client) = server(on);
    let object = with_spec(json!({"reference": "x"}));
    let first = applied(&client, "one", &object).await;
    let item = format!("{FLUNDERS}/a");
    let broken = json!({"metadata": {"managedFields": [{"operation": "Nothing"}]}});
    let after = client.merge(&item, &broken).await.json();
    assert_eq!(owners(&after), owners(&first));
    let cleared = json!({"metadata": {"managedFields": [{}]}});
    let after = client.merge(&item, &cleared).await.json();
    assert_eq!(owners(&after), json!([]));
    let change = json!({"metadata": {"labels": {"a": "1"}}});
    let after = client.merge(&item, &change).await.json();
    assert_eq!(owners(&after), json!([]));
    let after = applied(&client, "one", &object).await;
    let entries = after["metadata"]["managedFields"].as_array().unwrap();
    let names: Vec<&Value> = entries.iter().map(|entry| &entry["manager"]).collect();
    assert_eq!(names, ["one", "before-first-apply"]);
}

async fn c_156_the_oldest_updates_are_merged(on: Backend) {
    let (_server, client) = server(on);
    created(&client, FLUNDERS, &with_spec(json!({"reference": "x"}))).await;
    let mut last = Value::Null;
    for number in 0..11 {
        let path = format!("{FLUNDERS}/a?fieldManager=m{number}");
        let patch = json!({"metadata": {"labels": {format!("l{number}"): "x"}}});
        last = client.merge(&path, &patch).await.json();
    }
    let entries = last["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 10, "{last:#}");
    let merged: Vec<&Value> = entries
        .iter()
        .filter(|entry| entry["manager"] == "ancient-changes")
        .collect();
    assert_eq!(merged.len(), 1, "{last:#}");
}

async fn c_157_lists_are_owned_by_key_by_value_or_as_a_whole(on: Backend) {
    let (_server, client) = server(on);
    let document = json!({"apiVersion": "wardle.example.com/v1alpha1", "kind": "Fischer",
        "metadata": {"name": "a", "finalizers": ["example.com/x"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u"}]},
        "disallowedFlunders": ["a", "b"]});
    let path = format!("{FISCHERS}/a?fieldManager=one");
    let answer = client
        .call("PATCH", &path, &APPLY, document.to_string())
        .await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    let fields = json!({
        "f:metadata": {
            "f:finalizers": {"v:\"example.com/x\"": {}},
            "f:ownerReferences": {"k:{\"uid\":\"u\"}": {}}},
        "f:disallowedFlunders": {}});
    assert_eq!(
        owners(&answer.json()),
        json!([["one", "Apply", null, fields]])
    );
}

async fn c_158_status_is_not_owned_through_the_main_path(on: Backend) {
    let (_server, client) = server(on);
    let mut object = with_spec(json!({"reference": "x"}));
    object["status"] = json!({});
    let after = applied(&client, "one", &object).await;
    let spec = json!({"f:spec": {"f:reference": {}}});
    assert_eq!(owners(&after), json!([["one", "Apply", null, spec]]));
    let path = format!("{FLUNDERS}/a/status?fieldManager=one");
    let answer = client
        .call("PATCH", &path, &APPLY, object.to_string())
        .await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    let status = json!({"f:status": {}});
    assert_eq!(
        owners(&answer.json()),
        json!([
            ["one", "Apply", null, spec],
            ["one", "Apply", "status", status]
        ])
    );
}

async fn a_path_owns_nothing_else_in_other_versions_either(on: Backend) {
    let cluster = Cluster::start_binary(on, "workload-kinds-server");
    let client = cluster.client();
    let path = |version: &str, rest: &str| {
        format!("/apis/work.example.com/{version}/namespaces/default/workloads{rest}")
    };
    let object = json!({"apiVersion": "work.example.com/v1", "kind": "Workload", "metadata": {"name": "a"},
        "spec": {"image": "first"}});
    let created = created(&client, &path("v1", "?fieldManager=user"), &object).await;
    // Two managers write in the other version: the status, and, by an apply, a field of the spec.
    let status = json!({"status": {"size": 1}});
    let answer = client
        .merge(
            &path("v1beta1", "/a/status?fieldManager=controller"),
            &status,
        )
        .await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    let applied =
        json!({"apiVersion": "work.example.com/v1beta1", "kind": "Workload", "spec": {"size": 3}});
    let answer = client
        .call(
            "PATCH",
            &path("v1beta1", "/a?fieldManager=applier"),
            &APPLY,
            applied.to_string(),
        )
        .await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    let owned = |object: &Value, manager: &str| -> Value {
        let entries = object["metadata"]["managedFields"]
            .as_array()
            .unwrap()
            .iter();
        let mut of_manager = entries.filter(|entry| entry["manager"] == manager);
        of_manager
            .next()
            .map_or(Value::Null, |entry| entry["fieldsV1"].clone())
    };
    // A replace without the status, through the first version: the status stays, and so does its owner.
    let mut sent = answer.json();
    sent["apiVersion"] = created["apiVersion"].clone();
    sent["spec"] = json!({"image": "second", "replicas": 3});
    sent.as_object_mut().unwrap().remove("status");
    let replaced = client.put(&path("v1", "/a?fieldManager=user"), &sent).await;
    assert_eq!(replaced.code, 200, "{}", replaced.text());
    let replaced = replaced.json();
    assert_eq!(replaced["status"]["replicas"], 1);
    assert_eq!(
        owned(&replaced, "controller"),
        json!({"f:status": {".": {}, "f:size": {}}})
    );
    // A status with an old spec, through the first version: the spec stays, and so does its owner.
    let mut sent = replaced.clone();
    sent["spec"] = json!({"image": "third", "replicas": 9});
    sent["status"]["replicas"] = json!(2);
    let written = client
        .put(&path("v1", "/a/status?fieldManager=other"), &sent)
        .await;
    assert_eq!(written.code, 200, "{}", written.text());
    let written = written.json();
    assert_eq!(
        (&written["spec"]["replicas"], &written["status"]["replicas"]),
        (&json!(3), &json!(2))
    );
    assert_eq!(
        owned(&written, "applier"),
        json!({"f:spec": {"f:size": {}}})
    );
}
