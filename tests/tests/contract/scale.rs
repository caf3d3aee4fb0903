//! The subresource scale.

use serde_json::json;

use crate::*;

on_each_backend![
    c_040_status_and_scale_are_read_patched_and_updated,
    c_107_an_object_without_replicas_has_no_scale,
    c_108_a_scale_writes_only_replicas,
    c_110_an_unknown_subresource_is_not_found,
    scale_has_preconditions_and_texts,
    scale_is_patched_in_every_format,
    scale_owns_replicas_in_the_terms_of_the_object,
    scale_of_another_version_has_its_own_paths,
    scale_of_a_dry_run_writes_nothing,
];

const GROUP: &str = "/apis/work.example.com/v1";
const WORKLOADS: &str = "/apis/work.example.com/v1/namespaces/default/workloads";
const BETA: &str = "/apis/work.example.com/v1beta1/namespaces/default/workloads";
const ITEM: &str = "/apis/work.example.com/v1/namespaces/default/workloads/a";
const SCALE: &str = "/apis/work.example.com/v1/namespaces/default/workloads/a/scale";

fn start(on: Backend) -> (Cluster, Client) {
    let cluster = Cluster::start_binary(on, "workload-kinds-server");
    let client = cluster.client();
    (cluster, client)
}

fn workload(spec: &Value) -> Value {
    json!({"apiVersion": "work.example.com/v1", "kind": "Workload", "metadata": {"name": "a"}, "spec": spec})
}

fn scale(replicas: i64) -> Value {
    json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": replicas}})
}

/// The Scale in a response.
fn shown(object: &Value, spec: &Value, status: &Value) -> Value {
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {"name": "a", "namespace": "default", "uid": object["metadata"]["uid"], "resourceVersion": "$RV",
            "creationTimestamp": object["metadata"]["creationTimestamp"]},
        "spec": spec, "status": status,
    })
}

fn about_workload(name: &str) -> Value {
    json!({"name": name, "group": "work.example.com", "kind": "workloads"})
}

async fn c_040_status_and_scale_are_read_patched_and_updated(on: Backend) {
    let (_server, client) = start(on);
    let list = client.get(GROUP).await.json();
    let entry = |name: &str| {
        let mut entries = list["resources"].as_array().unwrap().iter();
        entries.find(|entry| entry["name"] == name).unwrap().clone()
    };
    let verbs = json!(["get", "patch", "update"]);
    assert_eq!(
        entry("workloads/scale"),
        json!({"name": "workloads/scale", "singularName": "", "namespaced": true, "group": "autoscaling",
            "version": "v1", "kind": "Scale", "verbs": verbs})
    );
    assert_eq!(
        entry("workloads/status"),
        json!({"name": "workloads/status", "singularName": "", "namespaced": true, "kind": "Workload", "verbs": verbs})
    );
}

async fn c_107_an_object_without_replicas_has_no_scale(on: Backend) {
    let (_server, client) = start(on);
    created(&client, WORKLOADS, &workload(&json!({"image": "x"}))).await;
    let message =
        r#"Internal error occurred: the spec replicas field ".spec.replicas" does not exist"#;
    let why = r#"the spec replicas field ".spec.replicas" does not exist"#;
    let details = json!({"causes": [{"message": why}]});
    let answer = client.get(SCALE).await;
    check_failure(&answer, 500, "InternalError", message, details);
    // A patch that sets none is refused, a write that sets one gives it a Scale.
    let answer = client
        .merge(SCALE, &json!({"metadata": {"labels": {"a": "b"}}}))
        .await;
    let message = r#"the spec replicas field ".spec.replicas" cannot be empty"#;
    check_failure(&answer, 400, "BadRequest", message, json!(null));
    let answer = client.put(SCALE, &scale(2)).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    assert_eq!(
        client.get(SCALE).await.json()["spec"],
        json!({"replicas": 2})
    );
}

async fn c_108_a_scale_writes_only_replicas(on: Backend) {
    let (_server, client) = start(on);
    let object = workload(&json!({"image": "x", "replicas": 1}));
    let object = created(&client, WORKLOADS, &object).await;
    let status = json!({"status": {"replicas": 1, "selector": "app=a"}});
    let answer = client.merge(&format!("{ITEM}/status"), &status).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    let present = json!({"replicas": 1, "selector": "app=a"});
    let expected = shown(&object, &json!({"replicas": 1}), &present);
    check(&client.get(SCALE).await, 200, &expected);
    let mut sent = scale(3);
    sent["metadata"]["labels"] = json!({"lost": "yes"});
    sent["status"] = json!({"replicas": 7, "selector": "lost=yes"});
    let expected = shown(&object, &json!({"replicas": 3}), &present);
    check(&client.put(SCALE, &sent).await, 200, &expected);
    let now = client.get(ITEM).await.json();
    assert_eq!(now["spec"], json!({"image": "x", "replicas": 3}));
    assert_eq!(now["status"], json!({"replicas": 1, "selector": "app=a"}));
    assert_eq!(now["metadata"]["labels"], json!(null));
    assert_eq!(now["metadata"]["generation"], 2);
    // The same number again is no change.
    let before = revision(&now);
    check(&client.put(SCALE, &scale(3)).await, 200, &expected);
    assert_eq!(revision(&client.get(ITEM).await.json()), before);
    // Zero is left out, as in kube-apiserver.
    let expected = shown(&object, &json!({}), &present);
    check(&client.put(SCALE, &scale(0)).await, 200, &expected);
    assert_eq!(client.get(ITEM).await.json()["spec"]["replicas"], 0);
}

async fn c_110_an_unknown_subresource_is_not_found(on: Backend) {
    let (_server, client) = start(on);
    let object = workload(&json!({"image": "x", "replicas": 1}));
    created(&client, WORKLOADS, &object).await;
    let path = format!("{ITEM}/nothing");
    let message = "the server could not find the requested resource";
    for answer in [client.get(&path).await, client.put(&path, &scale(1)).await] {
        check_failure(&answer, 404, "NotFound", message, json!({}));
    }
    // A known one of an unknown object names the object.
    let path = format!("{WORKLOADS}/b/scale");
    let message = r#"workloads.work.example.com "b" not found"#;
    let mut sent = scale(1);
    sent["metadata"]["name"] = "b".into();
    for answer in [client.get(&path).await, client.put(&path, &sent).await] {
        check_failure(&answer, 404, "NotFound", message, about_workload("b"));
    }
    let answer = client.post(&format!("{ITEM}/scale"), &scale(1)).await;
    assert_eq!(answer.code, 405, "{}", answer.text());
}

async fn scale_has_preconditions_and_texts(on: Backend) {
    let (_server, client) = start(on);
    let object = workload(&json!({"image": "x", "replicas": 1}));
    let object = created(&client, WORKLOADS, &object).await;
    let mut sent = scale(2);
    sent["metadata"]["resourceVersion"] = object["metadata"]["resourceVersion"].clone();
    sent["metadata"]["uid"] = object["metadata"]["uid"].clone();
    assert_eq!(client.put(SCALE, &sent).await.code, 200);
    let message = r#"Operation cannot be fulfilled on workloads.work.example.com "a": the object has been modified; please apply your changes to the latest version and try again"#;
    sent["spec"]["replicas"] = 5.into();
    let answer = client.put(SCALE, &sent).await;
    check_failure(&answer, 409, "Conflict", message, about_workload("a"));
    let old = json!({"metadata": {"resourceVersion": object["metadata"]["resourceVersion"]}, "spec": {"replicas": 5}});
    let answer = client.merge(SCALE, &old).await;
    check_failure(&answer, 409, "Conflict", message, about_workload("a"));
    let mut other = scale(5);
    other["metadata"]["uid"] = "another".into();
    let answer = client.put(SCALE, &other).await;
    assert_eq!(answer.code, 409, "{}", answer.text());
    assert!(answer.text().contains("UID in precondition: another"));
    let mut other = scale(5);
    other["metadata"]["name"] = "b".into();
    let message = "the name of the object (b) does not match the name on the URL (a)";
    let answer = client.put(SCALE, &other).await;
    check_failure(&answer, 400, "BadRequest", message, json!(null));
    let invalid = |causes: &[(&str, &str)]| {
        let causes: Vec<Value> = causes
            .iter()
            .map(|(message, field)| json!({"reason": "FieldValueInvalid", "message": message, "field": field}))
            .collect();
        json!({"name": "a", "group": "work.example.com", "kind": "Workload", "causes": causes})
    };
    let why = "Invalid value: -1: should be a non-negative integer";
    let message = format!(r#"Workload.work.example.com "a" is invalid: .spec.replicas: {why}"#);
    let details = invalid(&[(why, ".spec.replicas")]);
    let answer = client.put(SCALE, &scale(-1)).await;
    check_failure(&answer, 422, "Invalid", &message, details.clone());
    // The rule is the object's, so every path has it.
    let answer = client.merge(ITEM, &json!({"spec": {"replicas": -1}})).await;
    check_failure(&answer, 422, "Invalid", &message, details);
    let why = "Invalid value: 101: must be less than or equal to 100";
    let message = format!(r#"Workload.work.example.com "a" is invalid: spec.replicas: {why}"#);
    let details = invalid(&[(why, "spec.replicas")]);
    let answer = client.put(SCALE, &scale(101)).await;
    check_failure(&answer, 422, "Invalid", &message, details);
    let answer = client.put(SCALE, &scale(3_000_000_000)).await;
    assert_eq!(answer.code, 400, "{}", answer.text());
    // Another kind of body, and unknown fields.
    let answer = client.put(SCALE, &workload(&json!({"image": "x"}))).await;
    assert_eq!(answer.code, 400, "{}", answer.text());
    let mut unknown = scale(4);
    unknown["spec"]["size"] = 1.into();
    let answer = client
        .put(&format!("{SCALE}?fieldValidation=Strict"), &unknown)
        .await;
    let message = r#"Scale in version "v1" cannot be handled as a Scale: strict decoding error: unknown field "spec.size""#;
    check_failure(&answer, 400, "BadRequest", message, json!(null));
    assert_eq!(client.get(ITEM).await.json()["spec"]["replicas"], 2);
}

async fn scale_is_patched_in_every_format(on: Backend) {
    let (_server, client) = start(on);
    let object = workload(&json!({"image": "x", "replicas": 1}));
    created(&client, WORKLOADS, &object).await;
    let replicas = |answer: Answer| {
        assert_eq!(answer.code, 200, "{}", answer.text());
        answer.json()["spec"]["replicas"].clone()
    };
    let merge = json!({"spec": {"replicas": 2}});
    assert_eq!(replicas(client.merge(SCALE, &merge).await), 2);
    let strategic = json!({"spec": {"replicas": 3}});
    assert_eq!(replicas(client.strategic(SCALE, &strategic).await), 3);
    let json_patch = json!([{"op": "test", "path": "/spec/replicas", "value": 3},
        {"op": "replace", "path": "/spec/replicas", "value": 4}]);
    assert_eq!(replicas(client.json_patch(SCALE, &json_patch).await), 4);
    let headers = [("content-type", "application/apply-patch+yaml")];
    let path = format!("{SCALE}?fieldManager=hpa&force=true");
    let answer = client
        .call("PATCH", &path, &headers, scale(5).to_string())
        .await;
    assert_eq!(replicas(answer), 5);
    let object = client.get(ITEM).await.json();
    assert_eq!(object["metadata"]["generation"], 5);
    assert_eq!(object["spec"]["replicas"], 5);
}

/// Manager, operation, version, subresource and fields of each entry.
fn owners(object: &Value) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().cloned();
    let entry = |entry: &Value| {
        json!([
            entry["manager"],
            entry["operation"],
            entry["apiVersion"],
            entry["subresource"],
            entry["fieldsV1"]
        ])
    };
    entries.unwrap_or_default().iter().map(entry).collect()
}

async fn scale_owns_replicas_in_the_terms_of_the_object(on: Backend) {
    let (_server, client) = start(on);
    let apply = [("content-type", "application/apply-patch+yaml")];
    let object = workload(&json!({"image": "x", "replicas": 1}));
    let path = format!("{ITEM}?fieldManager=owner");
    let answer = client
        .call("PATCH", &path, &apply, object.to_string())
        .await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    // Another manager's apply conflicts in the terms of the Scale.
    let path = format!("{SCALE}?fieldManager=hpa");
    let answer = client
        .call("PATCH", &path, &apply, scale(2).to_string())
        .await;
    let message = r#"Apply failed with 1 conflict: conflict with "owner": .spec.replicas"#;
    let causes = json!([{"reason": "FieldManagerConflict", "message": "conflict with \"owner\"", "field": ".spec.replicas"}]);
    check_failure(&answer, 409, "Conflict", message, json!({"causes": causes}));
    let answer = client
        .call(
            "PATCH",
            &format!("{path}&force=true"),
            &apply,
            scale(2).to_string(),
        )
        .await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    let image = json!({"f:spec": {"f:image": {}}});
    let replicas = json!({"f:spec": {"f:replicas": {}}});
    let version = "work.example.com/v1";
    assert_eq!(
        owners(&client.get(ITEM).await.json()),
        json!([
            ["hpa", "Apply", version, "scale", replicas],
            ["owner", "Apply", version, null, image]
        ])
    );
    // A request without the field gives it up nowhere else; an update takes it.
    let path = format!("{SCALE}?fieldManager=scaler");
    let answer = client.call("PUT", &path, &[], scale(3).to_string()).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    let taken = json!([
        ["owner", "Apply", version, null, image],
        ["scaler", "Update", version, "scale", replicas]
    ]);
    assert_eq!(owners(&client.get(ITEM).await.json()), taken);
    // The same number by another one changes no owner.
    let path = format!("{SCALE}?fieldManager=third");
    let answer = client.call("PUT", &path, &[], scale(3).to_string()).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    assert_eq!(owners(&client.get(ITEM).await.json()), taken);
    // Equal values are shared.
    let path = format!("{SCALE}?fieldManager=hpa");
    let answer = client
        .call("PATCH", &path, &apply, scale(3).to_string())
        .await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    assert_eq!(
        owners(&client.get(ITEM).await.json()),
        json!([
            ["hpa", "Apply", version, "scale", replicas],
            ["owner", "Apply", version, null, image],
            ["scaler", "Update", version, "scale", replicas]
        ])
    );
}

async fn scale_of_another_version_has_its_own_paths(on: Backend) {
    let (_server, client) = start(on);
    let object = workload(&json!({"image": "x", "replicas": 1}));
    created(&client, WORKLOADS, &object).await;
    let path = format!("{BETA}/a/scale?fieldManager=old");
    let answer = client.call("PUT", &path, &[], scale(2).to_string()).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    assert_eq!(answer.json()["spec"], json!({"replicas": 2}));
    let object = client.get(ITEM).await.json();
    assert_eq!(object["spec"], json!({"image": "x", "replicas": 2}));
    assert_eq!(object["metadata"]["generation"], 2);
    let entries = owners(&object);
    let size = json!({"f:spec": {"f:size": {}}});
    let entry = json!(["old", "Update", "work.example.com/v1beta1", "scale", size]);
    assert!(entries.as_array().unwrap().contains(&entry), "{entries:#}");
    // A Scale in the other version takes it from that entry.
    let path = format!("{SCALE}?fieldManager=new");
    let answer = client.call("PUT", &path, &[], scale(3).to_string()).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    let entries = owners(&client.get(ITEM).await.json());
    assert!(!entries.as_array().unwrap().contains(&entry), "{entries:#}");
    let message = r#"Internal error occurred: the spec replicas field ".spec.size" does not exist"#;
    client
        .merge(ITEM, &json!({"spec": {"replicas": null}}))
        .await;
    let answer = client.get(&format!("{BETA}/a/scale")).await;
    assert_eq!(
        (answer.code, answer.json()["message"].as_str()),
        (500, Some(message))
    );
}

async fn scale_of_a_dry_run_writes_nothing(on: Backend) {
    let (_server, client) = start(on);
    let object = workload(&json!({"image": "x", "replicas": 1}));
    let object = created(&client, WORKLOADS, &object).await;
    let answer = client.put(&format!("{SCALE}?dryRun=All"), &scale(9)).await;
    let expected = shown(&object, &json!({"replicas": 9}), &json!({"replicas": 0}));
    check(&answer, 200, &expected);
    check(&client.get(ITEM).await, 200, &object);
    let headers = [("accept", "application/json;as=Table;g=meta.k8s.io;v=v1")];
    let table = client.call("GET", SCALE, &headers, "").await.json();
    let row = &table["rows"][0]["cells"];
    assert_eq!(
        (&row[0], &row[1], &row[2]),
        (&json!("a"), &json!(1), &json!(0))
    );
}
