//! The life of CustomResourceDefinitions: names, conditions, versions, deletion.

use serde_json::json;

use crate::custom::*;
use crate::*;

on_each_backend![
    c_169_a_kind_is_served_when_its_names_are_accepted,
    c_170_a_definition_goes_after_its_objects,
    c_174_versions_that_were_stored_stay,
    c_176_a_changed_schema_has_another_document,
    c_178_a_rust_type_comes_before_a_definition,
    the_status_and_the_rest_of_a_definition_are_written_apart,
    a_restarted_server_serves_definitions_when_it_is_ready,
    a_change_of_a_definition_ends_its_watches_alone,
    every_server_over_a_store_serves_what_one_was_told,
    a_new_definition_has_no_conditions,
    unknown_keywords_of_a_schema_are_unknown_fields,
    a_definition_has_the_form_of_its_type,
];

/// A patch that adds version v2, in which objects are stored.
fn second_version(client_version: &Value) -> Value {
    let mut second = client_version.clone();
    second["name"] = json!("v2");
    json!([
        {"op": "replace", "path": "/spec/versions/0/storage", "value": false},
        {"op": "add", "path": "/spec/versions/-", "value": second},
    ])
}

async fn c_169_a_kind_is_served_when_its_names_are_accepted(on: Backend) {
    let (_server, client) = server(on);
    let first = establish(&client, &foos()).await;
    assert_eq!(first["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(
        first["status"]["acceptedNames"],
        json!({"plural": "foos", "singular": "foo", "shortNames": ["fo"], "kind": "Foo", "listKind": "FooList", "categories": ["all"]})
    );
    let accepted = condition(&first, "NamesAccepted").unwrap();
    assert_eq!(accepted, ("True".to_owned(), "NoConflicts".to_owned()));
    let established = condition(&first, "Established").unwrap();
    assert_eq!(established.1, "InitialNamesAccepted");

    let mut second = definition("bars", "Bar", &json!({}));
    second["spec"]["names"]["shortNames"] = json!(["fo"]);
    created(&client, CRDS, &second).await;
    let refused = until(&client, &path("bars"), |answer| {
        condition(&answer.json(), "NamesAccepted").is_some()
    })
    .await
    .json();
    let conditions = refused["status"]["conditions"].as_array().unwrap();
    let shown: Vec<_> = conditions
        .iter()
        .map(|one| {
            (
                one["type"].as_str().unwrap(),
                one["reason"].as_str().unwrap(),
                one["message"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            (
                "NamesAccepted",
                "ShortNamesConflict",
                "\"fo\" is already in use"
            ),
            ("Established", "NotAccepted", "not all names are accepted"),
        ]
    );
    check_unknown(&client.get("/apis/ex.io/v1/bars").await);
    // The names are free when the first is gone.
    assert_eq!(client.delete(&path("foos"), &json!(null)).await.code, 200);
    until(&client, &path("bars"), |answer| {
        is_true(&answer.json(), "Established")
    })
    .await;
    assert_eq!(client.get("/apis/ex.io/v1/bars").await.code, 200);
}

async fn c_170_a_definition_goes_after_its_objects(on: Backend) {
    let (_server, client) = with_foos(on).await;
    let mut held = foo("held", &json!({}));
    held["metadata"]["finalizers"] = json!(["ex.io/hold"]);
    created(&client, FOOS, &held).await;
    created(&client, FOOS, &foo("free", &json!({}))).await;
    let deleted = client.delete(&path("foos"), &json!(null)).await;
    let deleted = deleted.json();
    assert_eq!(
        deleted["metadata"]["finalizers"],
        json!(["customresourcecleanup.apiextensions.k8s.io"])
    );
    until(&client, &format!("{FOOS}/free"), |answer| {
        answer.code == 404
    })
    .await;
    let refused = client.post(FOOS, &foo("late", &json!({}))).await;
    let message = "foos.ex.io \"late\" is forbidden: create not allowed while custom resource definition is terminating";
    check_failure(&refused, 403, "Forbidden", message, about_foo("late"));
    let verbs = client.get(GROUP).await.json()["resources"][0]["verbs"].clone();
    assert_eq!(
        verbs,
        json!(["delete", "deletecollection", "get", "list", "watch"])
    );
    let present = client.get(&path("foos")).await.json();
    assert_eq!(
        condition(&present, "Terminating").unwrap(),
        ("True".to_owned(), "InstanceDeletionInProgress".to_owned())
    );
    let freed = client
        .merge(
            &format!("{FOOS}/held"),
            &json!({"metadata": {"finalizers": null}}),
        )
        .await;
    assert_eq!(freed.code, 200, "{}", freed.text());
    until(&client, &path("foos"), |answer| answer.code == 404).await;
    until(&client, FOOS, |answer| answer.code == 404).await;
    // Another definition of the same name finds no objects.
    establish(&client, &foos()).await;
    assert_eq!(names(&client.get(FOOS).await.json()), Vec::<&str>::new());
}

async fn c_174_versions_that_were_stored_stay(on: Backend) {
    let (_server, client) = with_foos(on).await;
    created(&client, FOOS, &foo("a", &json!({"note": "n"}))).await;
    let patch = second_version(&foos()["spec"]["versions"][0]);
    let changed = client.json_patch(&path("foos"), &patch).await;
    assert_eq!(changed.code, 200, "{}", changed.text());
    let changed = changed.json();
    assert_eq!(changed["status"]["storedVersions"], json!(["v1", "v2"]));
    assert_eq!(changed["metadata"]["generation"], 2);
    let patch = json!([{"op": "remove", "path": "/spec/versions/0"}]);
    let refused = client.json_patch(&path("foos"), &patch).await;
    let message = "CustomResourceDefinition.apiextensions.k8s.io \"foos.ex.io\" is invalid: status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions";
    assert_eq!(
        (refused.code, &refused.json()["message"]),
        (422, &json!(message))
    );
    until(
        &client,
        "/apis/ex.io/v2/namespaces/default/foos/a",
        |answer| answer.code == 200,
    )
    .await;
    // After a migration the version may go.
    let status = format!("{}/status", path("foos"));
    let patch = json!([{"op": "replace", "path": "/status/storedVersions", "value": ["v2"]}]);
    let migrated = client.json_patch(&status, &patch).await;
    assert_eq!(migrated.code, 200, "{}", migrated.text());
    let patch = json!([{"op": "remove", "path": "/spec/versions/0"}]);
    assert_eq!(client.json_patch(&path("foos"), &patch).await.code, 200);
    until(&client, "/apis/ex.io/v1/foos", |answer| answer.code == 404).await;
}

async fn c_176_a_changed_schema_has_another_document(on: Backend) {
    let (_server, client) = with_foos(on).await;
    let url = async || {
        let index = client.get("/openapi/v3").await.json();
        let url = &index["paths"]["apis/ex.io/v1"]["serverRelativeURL"];
        url.as_str().map(str::to_owned)
    };
    let before = url().await.unwrap();
    let document = client.get(&before).await;
    assert_eq!(document.header("cache-control"), "public, immutable");
    let properties = |document: &Value| {
        document["components"]["schemas"]["io.ex.v1.Foo"]["properties"]["spec"]["properties"]
            .clone()
    };
    assert!(properties(&document.json())["color"].is_object());
    let field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/weight";
    let patch = json!([{"op": "add", "path": field, "value": {"type": "integer"}}]);
    assert_eq!(client.json_patch(&path("foos"), &patch).await.code, 200);
    let started = Instant::now();
    let after = loop {
        let after = url().await.unwrap();
        if after != before {
            break after;
        }
        assert!(started.elapsed() < Duration::from_secs(2));
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert!(properties(&client.get(&after).await.json())["weight"].is_object());
    let old = client.get(&before).await;
    assert_eq!((old.code, old.header("location")), (301, after.as_str()));
    client.delete(&path("foos"), &json!(null)).await;
    until(&client, "/openapi/v3", |answer| {
        answer.json()["paths"].get("apis/ex.io/v1").is_none()
    })
    .await;
}

async fn c_178_a_rust_type_comes_before_a_definition(on: Backend) {
    let (_server, client) = server(on);
    let mut flunders = definition("flunders", "Flunder", &json!({}));
    flunders["metadata"]["name"] = json!("flunders.wardle.example.com");
    flunders["spec"]["group"] = json!("wardle.example.com");
    let kept = created(&client, FLUNDERS, &flunder("a")).await;
    created(&client, CRDS, &flunders).await;
    let item = format!("{CRDS}/flunders.wardle.example.com");
    until(&client, &item, |answer| {
        is_true(&answer.json(), "Established")
    })
    .await;
    // The Rust type is served as before.
    let shown = client.get(&format!("{FLUNDERS}/a")).await.json();
    assert_eq!(shown["metadata"]["uid"], kept["metadata"]["uid"]);
    let (code, _) = {
        let deleted = client.delete(&item, &json!(null)).await;
        (deleted.code, deleted)
    };
    assert_eq!(code, 200);
    until(&client, &item, |answer| answer.code == 404).await;
    assert_eq!(client.get(&format!("{FLUNDERS}/a")).await.code, 200);
}

async fn the_status_and_the_rest_of_a_definition_are_written_apart(on: Backend) {
    let (_server, client) = server(on);
    let first = establish(&client, &foos()).await;
    let item = path("foos");
    let mut sent = first.clone();
    sent["metadata"]["annotations"] = json!({"a": "b"});
    sent["status"] = json!({"storedVersions": ["v1"], "conditions": [], "acceptedNames": {"plural": "bars", "kind": "Bar"}});
    let put = client.put(&item, &sent).await;
    assert_eq!(put.code, 200, "{}", put.text());
    let put = put.json();
    assert_eq!(put["status"], first["status"]);
    assert_eq!(put["metadata"]["annotations"], json!({"a": "b"}));

    let mut sent = put.clone();
    sent["metadata"]["annotations"] = json!({"a": "c"});
    sent["metadata"]["labels"] = json!({"tier": "one"});
    sent["spec"]["names"]["shortNames"] = json!(["other"]);
    let status = client.put(&format!("{item}/status"), &sent).await;
    assert_eq!(status.code, 200, "{}", status.text());
    let shown = status.json();
    assert_eq!(shown["spec"], put["spec"]);
    // As the strategy of kube-apiserver, this endpoint writes metadata too.
    let metadata = &shown["metadata"];
    assert_eq!(metadata["annotations"], json!({"a": "c"}));
    assert_eq!(metadata["labels"], json!({"tier": "one"}));
    assert_eq!(metadata["generation"], put["metadata"]["generation"]);
    let mut entries = metadata["managedFields"].as_array().unwrap().iter();
    let is_own = |entry: &&Value| !entry["fieldsV1"]["f:metadata"]["f:labels"].is_null();
    assert_eq!(entries.find(is_own).unwrap()["subresource"], "status");

    // Its conditions have no required fields.
    let conditions = json!([{"message": "m"}]);
    let patch = json!([{"op": "replace", "path": "/status/conditions", "value": conditions}]);
    let patched = client.json_patch(&format!("{item}/status"), &patch).await;
    assert_eq!(patched.code, 200, "{}", patched.text());
    let first = &patched.json()["status"]["conditions"][0];
    assert_eq!(first, &json!({"type": "", "status": "", "message": "m"}));
}

async fn a_restarted_server_serves_definitions_when_it_is_ready(on: Backend) {
    let (mut cluster, client) = with_foos(on).await;
    created(&client, FOOS, &foo("a", &json!({}))).await;
    cluster.stop();
    cluster.start_again();
    let client = cluster.client();
    // The very first request finds the kind, whose cache may still be filled.
    assert_eq!(names(&client.list(FOOS).await), ["a"]);
    assert!(is_true(
        &client.get(&path("foos")).await.json(),
        "Established"
    ));
}

async fn a_change_of_a_definition_ends_its_watches_alone(on: Backend) {
    let (_server, client) = with_foos(on).await;
    establish(&client, &definition("bars", "Bar", &json!({}))).await;
    let mut foos = client.watch(&format!("{FOOS}?watch=1")).await;
    let mut bars = client.watch("/apis/ex.io/v1/bars?watch=1").await;
    let note = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/description";
    let patch = json!([{"op": "add", "path": note, "value": "What is wanted."}]);
    assert_eq!(client.json_patch(&path("foos"), &patch).await.code, 200);
    assert_eq!(foos.next().await, None);
    let bar = json!({"apiVersion": "ex.io/v1", "kind": "Bar", "metadata": {"name": "b"}});
    created(&client, "/apis/ex.io/v1/namespaces/default/bars", &bar).await;
    assert_eq!(bars.event().await["object"]["metadata"]["name"], "b");
    // A change of the status alone ends no watch.
    let mut foos = client.watch(&format!("{FOOS}?watch=1")).await;
    let patch = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(client.merge(&path("foos"), &patch).await.code, 200);
    created(&client, FOOS, &foo("a", &json!({}))).await;
    assert_eq!(foos.event().await["object"]["metadata"]["name"], "a");
}

async fn every_server_over_a_store_serves_what_one_was_told(on: Backend) {
    let (cluster, client) = server(on);
    let (replica, other) = another(&cluster, &client);
    let established = establish(&client, &foos()).await;
    // The other one serves the kind by then, so that a create need not be delayed.
    if replica.is_some() {
        let since = |of: &str| {
            let mut conditions = established["status"]["conditions"]
                .as_array()
                .unwrap()
                .iter();
            let found = conditions.find(|one| one["type"] == of).unwrap();
            let at = found["lastTransitionTime"].as_str().unwrap();
            at.parse::<apiloom_meta::Time>().unwrap()
        };
        let installed = since("Established").duration_since(since("NamesAccepted"));
        assert!(installed >= Duration::from_secs(5), "{established}");
    }
    created(&other, FOOS, &foo("a", &json!({}))).await;
    assert_eq!(names(&client.get(FOOS).await.json()), ["a"]);
    assert_eq!(client.delete(&path("foos"), &json!(null)).await.code, 200);
    until(&other, FOOS, |answer| answer.code == 404).await;
    until(&other, &path("foos"), |answer| answer.code == 404).await;
}

async fn a_new_definition_has_no_conditions(on: Backend) {
    let (_server, client) = server(on);
    let made = client.post(&format!("{CRDS}?dryRun=All"), &foos()).await;
    let text = made.text();
    let status = "\"status\":{\"conditions\":null,\"acceptedNames\":{\"plural\":\"\",\"kind\":\"\"},\"storedVersions\":[\"v1\"]}";
    assert!(made.code == 201 && text.contains(status), "{text}");
}

async fn unknown_keywords_of_a_schema_are_unknown_fields(on: Backend) {
    let (_server, client) = server(on);
    let mut foos = foos();
    let schema = &mut foos["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"]["note"]["const"] = json!("n");
    schema["x-mine"] = json!({});
    // The types of kube-apiserver for items decode themselves, and never strictly.
    let list = json!({"type": "array", "items": {"type": "string", "const": "n"}});
    schema["properties"]["spec"]["properties"]["list"] = list;
    let strict = client
        .post(&format!("{CRDS}?fieldValidation=Strict"), &foos)
        .await;
    let path = "spec.versions[0].schema.openAPIV3Schema";
    let (one, other) = (
        format!("unknown field \"{path}.properties.spec.properties.note.const\""),
        format!("unknown field \"{path}.x-mine\""),
    );
    let message = format!(
        "CustomResourceDefinition in version \"v1\" cannot be handled as a CustomResourceDefinition: strict decoding error: {one}, {other}"
    );
    assert_eq!(
        (strict.code, &strict.json()["message"]),
        (400, &json!(message))
    );
    let made = client.post(CRDS, &foos).await;
    assert_eq!(made.code, 201, "{}", made.text());
    assert_eq!(
        made.header_all("warning").len(),
        2,
        "{:?}",
        made.header_all("warning")
    );
    let kept = &made.json()["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    assert_eq!(
        kept["properties"]["spec"]["properties"]["note"],
        json!({"type": "string"})
    );
    let list = json!({"type": "array", "items": {"type": "string"}});
    assert_eq!(kept["properties"]["spec"]["properties"]["list"], list);
    assert_eq!(kept.get("x-mine"), None);
}

/// The answers are those of Kubernetes 1.36 to the same requests.
async fn a_definition_has_the_form_of_its_type(on: Backend) {
    let (_server, client) = server_without_controllers(on);
    let mut lamps = definition("lamps", "Lamp", &json!({}));
    lamps["spec"]["preserveUnknownFields"] = json!(false);
    let version = &mut lamps["spec"]["versions"][0];
    version["deprecated"] = json!(false);
    version["additionalPrinterColumns"] = json!([]);
    version["subresources"] = json!({"scale": {}});
    version.as_object_mut().unwrap().remove("served");
    version["schema"]["openAPIV3Schema"] = json!({"type": "object", "description": "", "properties": {
        "spec": {"type": "object", "properties": {}, "required": [], "enum": [], "nullable": false, "additionalProperties": null}}});
    let refused = client.post(CRDS, &lamps).await;
    assert_eq!(refused.code, 422, "{}", refused.text());
    let causes = refused.json()["details"]["causes"].clone();
    let fields: Vec<_> = causes
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["field"].clone())
        .collect();
    let [spec, status] =
        ["spec", "status"].map(|of| format!("spec.subresources.scale.{of}ReplicasPath"));
    assert_eq!(fields, [spec, status]);
    lamps["spec"]["versions"][0]["subresources"] = json!({});
    let created = created(&client, CRDS, &lamps).await;
    assert_eq!(
        created["spec"]["versions"],
        json!([{"name": "v1", "served": false, "storage": true, "subresources": {}, "schema": {"openAPIV3Schema":
            {"type": "object", "properties": {"spec": {"type": "object"}}}}}])
    );
    assert!(created["spec"].get("preserveUnknownFields").is_none());
    assert_eq!(
        created["metadata"]["managedFields"][0]["fieldsV1"],
        json!({"f:spec": {
            "f:conversion": {".": {}, "f:strategy": {}}, "f:group": {}, "f:scope": {}, "f:versions": {},
            "f:names": {"f:kind": {}, "f:listKind": {}, "f:plural": {}, "f:singular": {}}}})
    );
    let deleted = client
        .delete(&path("lamps"), &json!({"gracePeriodSeconds": 30}))
        .await;
    let metadata = &deleted.json()["metadata"];
    assert_eq!(metadata["generation"], 1);
    assert!(metadata.get("deletionGracePeriodSeconds").is_none());
    assert!(metadata["deletionTimestamp"].is_string());
}
