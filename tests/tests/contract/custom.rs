//! Custom resources: kinds that CustomResourceDefinitions describe, and how they differ from Rust types.

use serde_json::json;

use crate::*;

on_each_backend![
    c_006_collections_of_custom_resources_have_other_paths,
    c_007_head_of_a_custom_resource_is_a_get,
    c_009_unknown_resources_of_a_group_of_definitions_are_unknown_paths,
    c_016_a_custom_resource_has_no_protobuf_form,
    c_024_items_of_custom_resources_have_their_kind,
    c_026_a_custom_resource_takes_no_strategic_merge_patch,
    c_029_a_protobuf_body_of_a_custom_resource_is_refused,
    c_030_options_of_a_delete_may_be_protobuf,
    c_031_the_body_of_a_custom_resource_names_its_kind,
    c_039_verbs_of_custom_resources_have_a_fixed_order,
    c_077_an_update_of_a_custom_resource_needs_a_version,
    c_107_a_custom_resource_without_replicas_has_no_scale,
    c_110_an_unknown_subresource_names_the_object,
    c_171_defaults_come_before_pruning,
    c_172_unchanged_values_are_tolerated,
    c_173_rules_wait_for_a_document_of_the_right_form,
    versions_convert_by_their_api_version,
    a_deprecated_version_warns,
    tables_and_field_selectors_follow_the_definition,
    fields_with_the_names_of_metadata_are_kept_apart,
    an_update_of_the_status_validates_the_status,
    finalizers_without_a_domain_are_warned_of,
];

pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const GROUP: &str = "/apis/ex.io/v1";
pub(crate) const FOOS: &str = "/apis/ex.io/v1/namespaces/default/foos";

/// The path of a definition.
pub(crate) fn path(plural: &str) -> String {
    format!("{CRDS}/{plural}.ex.io")
}

/// A definition in the group ex.io, with these properties of the spec.
pub(crate) fn definition(plural: &str, kind: &str, properties: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.ex.io")},
        "spec": {
            "group": "ex.io",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": properties},
                    "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                }}},
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
            }],
        },
    })
}

pub(crate) fn foos() -> Value {
    let properties = json!({
        "replicas": {"type": "integer", "maximum": 10},
        "color": {"type": "string", "enum": ["red", "blue"]},
        "size": {"type": "string", "default": "m", "pattern": "^[sml]$"},
        "note": {"type": "string"},
    });
    let mut foos = definition("foos", "Foo", &properties);
    foos["spec"]["names"]["shortNames"] = json!(["fo"]);
    foos["spec"]["names"]["categories"] = json!(["all"]);
    foos
}

pub(crate) fn foo(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "ex.io/v1", "kind": "Foo", "metadata": {"name": name}, "spec": spec})
}

pub(crate) fn about_foo(name: &str) -> Value {
    json!({"name": name, "group": "ex.io", "kind": "foos"})
}

/// A condition of a definition: status and reason.
pub(crate) fn condition(definition: &Value, of: &str) -> Option<(String, String)> {
    let mut conditions = definition["status"]["conditions"].as_array()?.iter();
    let found = conditions.find(|one| one["type"] == of)?;
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    Some((text("status"), text("reason")))
}

pub(crate) fn is_true(definition: &Value, of: &str) -> bool {
    condition(definition, of).is_some_and(|(status, _)| status == "True")
}

/// Creates a definition, and waits until its kind is served.
pub(crate) async fn establish(client: &Client, definition: &Value) -> Value {
    created(client, CRDS, definition).await;
    let path = format!(
        "{CRDS}/{}",
        definition["metadata"]["name"].as_str().unwrap()
    );
    let answer = until(client, &path, |answer| {
        is_true(&answer.json(), "Established")
    })
    .await;
    answer.json()
}

/// A server with foos.
pub(crate) async fn with_foos(on: Backend) -> (Cluster, Client) {
    let (cluster, client) = server(on);
    establish(&client, &foos()).await;
    (cluster, client)
}

/// Asserts the response to an unknown path.
#[track_caller]
pub(crate) fn check_unknown(answer: &Answer) {
    assert_eq!(
        (answer.code, answer.text().as_str()),
        (404, "404 page not found\n")
    );
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
}

async fn c_006_collections_of_custom_resources_have_other_paths(on: Backend) {
    let (_server, client) = with_foos(on).await;
    check_unknown(
        &client
            .post("/apis/ex.io/v1/foos", &foo("a", &json!({})))
            .await,
    );
    check_unknown(&client.delete("/apis/ex.io/v1/foos", &json!(null)).await);
    created(&client, FOOS, &foo("a", &json!({}))).await;
    assert_eq!(
        names(&client.get("/apis/ex.io/v1/foos").await.json()),
        ["a"]
    );
    assert_eq!(client.delete(FOOS, &json!(null)).await.code, 200);
    assert_eq!(client.get(&format!("{FOOS}/a")).await.code, 404);
}

async fn c_007_head_of_a_custom_resource_is_a_get(on: Backend) {
    let (_server, client) = with_foos(on).await;
    created(&client, FOOS, &foo("a", &json!({}))).await;
    for path in [FOOS.to_owned(), format!("{FOOS}/a")] {
        let answer = client.call("HEAD", &path, &[], "").await;
        assert_eq!((answer.code, answer.body.len()), (200, 0), "{path}");
        let answer = client.call("OPTIONS", &path, &[], "").await;
        assert_eq!(answer.code, 405, "{path}");
    }
    assert_eq!(client.call("HEAD", FLUNDERS, &[], "").await.code, 405);
}

async fn c_009_unknown_resources_of_a_group_of_definitions_are_unknown_paths(on: Backend) {
    let (_server, client) = with_foos(on).await;
    check_unknown(&client.get("/apis/ex.io/v1/bars").await);
    check_unknown(&client.get("/apis/ex.io/v2/foos").await);
    check_unknown(&client.get("/apis/ex.io/v1/namespaces/default/bars/a").await);
    let known = client.get("/apis/wardle.example.com/v1beta1/bars").await;
    assert_eq!(known.json()["details"], json!({}));
}

async fn c_016_a_custom_resource_has_no_protobuf_form(on: Backend) {
    let (_server, client) = with_foos(on).await;
    created(&client, FOOS, &foo("a", &json!({}))).await;
    let path = format!("{FOOS}/a");
    let get_as = async |accept: &str| client.call("GET", &path, &[("accept", accept)], "").await;
    let refused = get_as("application/vnd.kubernetes.protobuf").await;
    assert_eq!(refused.code, 406, "{}", refused.text());
    let json = get_as("application/vnd.kubernetes.protobuf, application/json").await;
    assert_eq!(
        (json.code, json.header("content-type")),
        (200, "application/json")
    );
    let metadata =
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let metadata = get_as(metadata).await;
    assert_eq!(metadata.code, 200);
    assert!(metadata.body.starts_with(b"k8s\0"));
}

async fn c_024_items_of_custom_resources_have_their_kind(on: Backend) {
    let (_server, client) = with_foos(on).await;
    created(&client, FOOS, &foo("a", &json!({"note": "n"}))).await;
    let list = client.get(FOOS).await.json();
    assert_eq!(
        (&list["kind"], &list["apiVersion"]),
        (&json!("FooList"), &json!("ex.io/v1"))
    );
    assert_eq!(list["metadata"]["continue"], "");
    let item = &list["items"][0];
    assert_eq!(
        (&item["kind"], &item["apiVersion"]),
        (&json!("Foo"), &json!("ex.io/v1"))
    );
    assert_eq!(item["spec"], json!({"note": "n", "size": "m"}));
    let flunders = client.get(FLUNDERS).await.json();
    assert_eq!(flunders["metadata"].get("continue"), None);
}

async fn c_026_a_custom_resource_takes_no_strategic_merge_patch(on: Backend) {
    let (_server, client) = with_foos(on).await;
    created(&client, FOOS, &foo("a", &json!({}))).await;
    let path = format!("{FOOS}/a");
    let patch = json!({"spec": {"note": "n"}});
    let refused = client.strategic(&path, &patch).await;
    let message = "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
    check_failure(&refused, 415, "UnsupportedMediaType", message, json!(null));
    let merged = client.merge(&path, &patch).await;
    assert_eq!(merged.json()["spec"]["note"], "n");
    let patch = json!([{"op": "replace", "path": "/spec/note", "value": "o"}]);
    let patched = client.json_patch(&path, &patch).await;
    assert_eq!(patched.json()["spec"]["note"], "o");
    let applied = foo("a", &json!({"color": "red"})).to_string();
    let headers = [("content-type", "application/apply-patch+yaml")];
    let applied = client
        .call(
            "PATCH",
            &format!("{path}?fieldManager=me"),
            &headers,
            applied,
        )
        .await;
    assert_eq!(applied.code, 200, "{}", applied.text());
    assert_eq!(
        applied.json()["spec"],
        json!({"color": "red", "note": "o", "size": "m"})
    );
    assert_eq!(applied.json()["metadata"]["generation"], 4);
}

async fn c_029_a_protobuf_body_of_a_custom_resource_is_refused(on: Backend) {
    let (_server, client) = with_foos(on).await;
    let headers = [("content-type", "application/vnd.kubernetes.protobuf")];
    let body = b"k8s\0\x0a\x0f\x0a\x08ex.io/v1\x12\x03Foo".to_vec();
    let refused = client.call("POST", FOOS, &headers, body).await;
    assert_eq!(refused.code, 415, "{}", refused.text());
}

async fn c_030_options_of_a_delete_may_be_protobuf(on: Backend) {
    let (_server, client) = with_foos(on).await;
    created(&client, FOOS, &foo("a", &json!({}))).await;
    // DeleteOptions with the field propagationPolicy.
    let mut body =
        b"k8s\0\x0a\x13\x0a\x02v1\x12\x0dDeleteOptions\x12\x0c\x22\x0aBackground".to_vec();
    body.extend([0x1a, 0, 0x22, 0]);
    let headers = [("content-type", "application/vnd.kubernetes.protobuf")];
    let answer = client
        .call("DELETE", &format!("{FOOS}/a"), &headers, body)
        .await;
    assert_eq!(answer.code, 200, "{}", answer.text());
}

async fn c_031_the_body_of_a_custom_resource_names_its_kind(on: Backend) {
    let (_server, client) = with_foos(on).await;
    let without = |field: &str| {
        let mut body = foo("a", &json!({}));
        body.as_object_mut().unwrap().remove(field);
        body
    };
    let refused = client.post(FOOS, &without("kind")).await;
    assert_eq!(refused.code, 400);
    let message = refused.json()["message"].as_str().unwrap().to_owned();
    let start =
        "the object provided is unrecognized (must be of type Foo): Object 'Kind' is missing in '{";
    assert!(message.starts_with(start), "{message}");
    let refused = client.post(FOOS, &without("apiVersion")).await;
    let message =
        "the API version in the data () does not match the expected API version (ex.io/v1)";
    assert_eq!(
        (refused.code, &refused.json()["message"]),
        (400, &json!(message))
    );
    let mut other = foo("a", &json!({}));
    other["kind"] = json!("Bar");
    let refused = client.post(FOOS, &other).await;
    let message = "Bar.ex.io \"a\" is invalid: kind: Invalid value: \"Bar\": must be Foo";
    assert_eq!(
        (refused.code, &refused.json()["message"]),
        (422, &json!(message))
    );
    other["apiVersion"] = json!("ex.io/v9");
    let refused = client.post(FOOS, &other).await;
    let message =
        "the API version in the data (ex.io/v9) does not match the expected API version (ex.io/v1)";
    assert_eq!(
        (refused.code, &refused.json()["message"]),
        (400, &json!(message))
    );
}

async fn c_039_verbs_of_custom_resources_have_a_fixed_order(on: Backend) {
    let (_server, client) = with_foos(on).await;
    let resource = |name: &str, kind: &str| json!({"name": name, "singularName": "", "namespaced": true, "kind": kind, "verbs": ["get", "patch", "update"]});
    let mut foos = resource("foos", "Foo");
    foos["singularName"] = json!("foo");
    foos["verbs"] = json!([
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "create",
        "update",
        "watch"
    ]);
    foos["shortNames"] = json!(["fo"]);
    foos["categories"] = json!(["all"]);
    let list = client.get(GROUP).await.json();
    foos["storageVersionHash"] = list["resources"][0]["storageVersionHash"].clone();
    let mut scale = resource("foos/scale", "Scale");
    (scale["group"], scale["version"]) = (json!("autoscaling"), json!("v1"));
    let expected = json!([foos, resource("foos/status", "Foo"), scale]);
    assert_eq!(list["resources"], expected);
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let groups = client
        .call("GET", "/apis", &[("accept", aggregated)], "")
        .await
        .json();
    let groups = groups["items"].as_array().unwrap().clone();
    let group = groups
        .iter()
        .find(|group| group["metadata"]["name"] == "ex.io")
        .unwrap();
    let kind = &group["versions"][0]["resources"][0]["responseKind"];
    assert_eq!(
        *kind,
        json!({"group": "ex.io", "version": "v1", "kind": "Foo"})
    );
}

async fn c_077_an_update_of_a_custom_resource_needs_a_version(on: Backend) {
    let (_server, client) = with_foos(on).await;
    created(&client, FOOS, &foo("a", &json!({}))).await;
    let refused = client
        .put(&format!("{FOOS}/a"), &foo("a", &json!({})))
        .await;
    let message = "foos.ex.io \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    assert_eq!(
        (refused.code, &refused.json()["message"]),
        (422, &json!(message))
    );
    assert_eq!(refused.json()["details"]["kind"], "foos");
}

async fn c_107_a_custom_resource_without_replicas_has_no_scale(on: Backend) {
    let (_server, client) = with_foos(on).await;
    created(&client, FOOS, &foo("a", &json!({}))).await;
    let scale = format!("{FOOS}/a/scale");
    let message =
        "Internal error occurred: the spec replicas field \".spec.replicas\" does not exist";
    let missing = client.get(&scale).await;
    assert_eq!(
        (missing.code, &missing.json()["message"]),
        (500, &json!(message))
    );
    client
        .merge(&format!("{FOOS}/a"), &json!({"spec": {"replicas": 2}}))
        .await;
    let status = json!({"status": {"replicas": 1}});
    client.merge(&format!("{FOOS}/a/status"), &status).await;
    let shown = client.get(&scale).await.json();
    assert_eq!(
        (&shown["spec"]["replicas"], &shown["status"]["replicas"]),
        (&json!(2), &json!(1))
    );
    let scaled = client
        .merge(&scale, &json!({"spec": {"replicas": 3}}))
        .await;
    assert_eq!(scaled.json()["spec"]["replicas"], 3);
    let whole = client.get(&format!("{FOOS}/a")).await.json();
    assert_eq!(
        (&whole["spec"]["replicas"], &whole["metadata"]["generation"]),
        (&json!(3), &json!(3))
    );
}

async fn c_110_an_unknown_subresource_names_the_object(on: Backend) {
    let (_server, client) = with_foos(on).await;
    let answer = client.get(&format!("{FOOS}/f1/bogus")).await;
    check_failure(
        &answer,
        404,
        "NotFound",
        "foos.ex.io \"f1\" not found",
        about_foo("f1"),
    );
}

async fn c_171_defaults_come_before_pruning(on: Backend) {
    let (_server, client) = with_foos(on).await;
    let spec = json!({"size": null, "note": null, "bogus": 1});
    let answer = client
        .post(&format!("{FOOS}?fieldValidation=Warn"), &foo("a", &spec))
        .await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    assert_eq!(answer.json()["spec"], json!({"size": "m"}));
    assert_eq!(
        answer.header_all("warning"),
        ["299 - \"unknown field \\\"spec.bogus\\\"\""]
    );
    let refused = client
        .post(&format!("{FOOS}?fieldValidation=Strict"), &foo("b", &spec))
        .await;
    assert_eq!(refused.code, 400);
}

async fn c_172_unchanged_values_are_tolerated(on: Backend) {
    let (_server, client) = with_foos(on).await;
    created(&client, FOOS, &foo("a", &json!({"replicas": 9}))).await;
    // A stricter schema.
    let limit =
        "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/replicas/maximum";
    let patch = json!([{"op": "replace", "path": limit, "value": 5}]);
    let changed = client.json_patch(&path("foos"), &patch).await;
    assert_eq!(changed.code, 200, "{}", changed.text());
    until(&client, FOOS, |answer| answer.code == 200).await;
    let dry_run = format!("{FOOS}?dryRun=All");
    let nine = foo("b", &json!({"replicas": 9}));
    let create = async || client.post(&dry_run, &nine).await;
    let limit = Duration::from_secs(10);
    let refused = until_answered(&dry_run, limit, create, |answer| answer.code == 422).await;
    let message = "Foo.ex.io \"b\" is invalid: spec.replicas: Invalid value: 9: spec.replicas in body should be less than or equal to 5";
    assert_eq!(refused.json()["message"], message);
    let item = format!("{FOOS}/a");
    let kept = client.merge(&item, &json!({"spec": {"note": "n"}})).await;
    assert_eq!(kept.code, 200, "{}", kept.text());
    let refused = client.merge(&item, &json!({"spec": {"replicas": 8}})).await;
    assert_eq!(refused.code, 422, "{}", refused.text());
    let allowed = client.merge(&item, &json!({"spec": {"replicas": 4}})).await;
    assert_eq!(allowed.code, 200, "{}", allowed.text());
}

async fn c_173_rules_wait_for_a_document_of_the_right_form(on: Backend) {
    let (_server, client) = server(on);
    let mut ruled = foos();
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    let schema = ruled.pointer_mut(spec).unwrap();
    schema["required"] = json!(["color"]);
    schema["x-kubernetes-validations"] = json!([
        {"rule": "!has(self.replicas) || self.replicas < 5 || self.color == 'red'", "message": "many are red"},
        {"rule": "self.color == oldSelf.color", "fieldPath": ".color", "reason": "FieldValueForbidden"},
    ]);
    schema["properties"]["note"]["maxLength"] = json!(20);
    establish(&client, &ruled).await;

    let causes = |answer: &Answer| -> Vec<(String, String)> {
        let answer = answer.json();
        let causes = answer["details"]["causes"].as_array().cloned();
        let text = |cause: &Value, field: &str| cause[field].as_str().unwrap().to_owned();
        let pairs = causes.iter().flatten();
        pairs
            .map(|cause| (text(cause, "field"), text(cause, "message")))
            .collect()
    };
    let many = ("spec", "Invalid value: many are red");
    let not_checked = (
        "<nil>",
        "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
    );
    for (spec, is_checked) in [
        (json!({"color": "blue", "replicas": 7}), true),
        // A pattern says nothing about the form.
        (json!({"color": "blue", "replicas": 7, "size": "xxl"}), true),
        (json!({"replicas": 7}), false),
        (json!({"color": "green", "replicas": 7}), false),
        (json!({"color": 1, "replicas": 7}), false),
        (
            json!({"color": "blue", "replicas": 7, "note": "n".repeat(21)}),
            false,
        ),
    ] {
        let answer = client.post(FOOS, &foo("a", &spec)).await;
        assert_eq!(answer.code, 422, "{spec}: {}", answer.text());
        let causes = causes(&answer);
        let has = |(field, message): (&str, &str)| {
            causes.contains(&(field.to_owned(), message.to_owned()))
        };
        let expected = (is_checked, !is_checked);
        assert_eq!(
            (has(many), has(not_checked)),
            expected,
            "{spec}: {causes:?}"
        );
    }

    created(
        &client,
        FOOS,
        &foo("a", &json!({"color": "red", "replicas": 7})),
    )
    .await;
    let item = format!("{FOOS}/a");
    let blue = json!({"spec": {"color": "blue", "replicas": 1}});
    let painted = client.merge(&item, &blue).await;
    assert_eq!(painted.code, 422, "{}", painted.text());
    let changed = "Forbidden: failed rule: self.color == oldSelf.color";
    assert_eq!(
        causes(&painted),
        [("spec.color".to_owned(), changed.to_owned())]
    );
    let fewer = client.merge(&item, &json!({"spec": {"replicas": 1}})).await;
    assert_eq!(fewer.code, 200, "{}", fewer.text());

    // A rule that does not fit the schema, and one that may cost too much, are refused with the definition.
    let mut wrong = definition(
        "bars",
        "Bar",
        &json!({"list": {"type": "array", "items": {"type": "string"}}}),
    );
    let schema = wrong.pointer_mut(spec).unwrap();
    schema["x-kubernetes-validations"] = json!([
        {"rule": "self.missing > 0"},
        {"rule": "self.list.all(a, self.list.all(b, self.list.all(c, a + b != c)))"},
    ]);
    let refused = client.post(CRDS, &wrong).await;
    assert_eq!(refused.code, 422, "{}", refused.text());
    let text = refused.json()["message"].as_str().unwrap().to_owned();
    for part in [
        "properties[spec].x-kubernetes-validations[0].rule: Invalid value: ",
        "undefined field 'missing'",
        "properties[spec].x-kubernetes-validations[1].rule: Forbidden: estimated rule cost exceeds budget by factor of",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

async fn versions_convert_by_their_api_version(on: Backend) {
    let (_server, client) = server(on);
    let mut both = foos();
    let mut second = both["spec"]["versions"][0].clone();
    second["name"] = json!("v2beta1");
    second["storage"] = json!(false);
    second["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["extra"] =
        json!({"type": "string", "default": "x"});
    both["spec"]["versions"]
        .as_array_mut()
        .unwrap()
        .push(second);
    establish(&client, &both).await;
    created(&client, FOOS, &foo("a", &json!({"note": "n"}))).await;
    let beta = "/apis/ex.io/v2beta1/namespaces/default/foos";
    let shown = client.get(&format!("{beta}/a")).await.json();
    assert_eq!(shown["apiVersion"], "ex.io/v2beta1");
    // Defaults are those of the stored version alone.
    assert_eq!(shown["spec"], json!({"note": "n", "size": "m"}));
    let listed = client.get(beta).await.json();
    assert_eq!(listed["items"][0], shown);
    let mut changed = shown.clone();
    changed["spec"]["note"] = json!("o");
    assert_eq!(client.put(&format!("{beta}/a"), &changed).await.code, 200);
    let stored = client.get(&format!("{FOOS}/a")).await.json();
    assert_eq!(stored["spec"], json!({"note": "o", "size": "m"}));
    let group = client.get("/apis/ex.io").await.json();
    assert_eq!(group["preferredVersion"]["version"], "v1");
}

async fn a_deprecated_version_warns(on: Backend) {
    let (_server, client) = server(on);
    let mut old = foos();
    let mut second = old["spec"]["versions"][0].clone();
    second["name"] = json!("v1beta1");
    second["storage"] = json!(false);
    second["deprecated"] = json!(true);
    old["spec"]["versions"].as_array_mut().unwrap().push(second);
    establish(&client, &old).await;
    let listed = client.get("/apis/ex.io/v1beta1/foos").await;
    assert_eq!(
        listed.header("warning"),
        "299 - \"ex.io/v1beta1 Foo is deprecated; use ex.io/v1 Foo\""
    );
    assert_eq!(
        client.get("/apis/ex.io/v1/foos").await.header("warning"),
        ""
    );
}

async fn tables_and_field_selectors_follow_the_definition(on: Backend) {
    let (_server, client) = server(on);
    let mut columns = foos();
    columns["spec"]["versions"][0]["additionalPrinterColumns"] = json!([
        {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
        {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas", "priority": 1},
    ]);
    columns["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
    establish(&client, &columns).await;
    created(&client, FOOS, &foo("a", &json!({"color": "red"}))).await;
    created(
        &client,
        FOOS,
        &foo("b", &json!({"color": "blue", "replicas": 2})),
    )
    .await;
    let accept = [("accept", "application/json;as=Table;g=meta.k8s.io;v=v1")];
    let table = client.call("GET", FOOS, &accept, "").await.json();
    let cells: Vec<&Value> = table["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["cells"])
        .collect();
    assert_eq!(
        cells,
        [&json!(["a", "red", null]), &json!(["b", "blue", 2])]
    );
    assert_eq!(
        table["columnDefinitions"][1]["description"],
        "Custom resource definition column (in JSONPath format): .spec.color"
    );
    let selected = client
        .get(&format!("{FOOS}?fieldSelector=spec.color%3Dblue"))
        .await
        .json();
    assert_eq!(names(&selected), ["b"]);
    let mut watch = client
        .watch(&format!("{FOOS}?watch=1&fieldSelector=spec.color%3Dred"))
        .await;
    assert_eq!(watch.event().await["object"]["metadata"]["name"], "a");
    client
        .merge(&format!("{FOOS}/a"), &json!({"spec": {"color": "blue"}}))
        .await;
    assert_eq!(watch.event().await["type"], "DELETED");
}

async fn fields_with_the_names_of_metadata_are_kept_apart(on: Backend) {
    let (_server, client) = server(on);
    let mut bars = definition("bars", "Bar", &json!({}));
    let properties = &mut bars["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    properties["data"] = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut second = bars["spec"]["versions"][0].clone();
    (second["name"], second["storage"]) = (json!("v2"), json!(false));
    bars["spec"]["versions"]
        .as_array_mut()
        .unwrap()
        .push(second);
    establish(&client, &bars).await;
    let collection = "/apis/ex.io/v1/namespaces/default/bars";
    let mut bar = json!({"apiVersion": "ex.io/v1", "kind": "Bar", "metadata": {
        "name": "b", "annotations": {"resourceVersion": "5"}, "labels": {"resourceVersion": "6", "uid": "7"}}});
    bar["data"] = json!({"metadata": {"name": "other", "resourceVersion": "8"}, "kind": "x"});
    let made = created(&client, collection, &bar).await;
    let item = format!("{collection}/b");
    let shown = client.get(&item).await.json();
    assert_eq!(shown, made);
    assert_eq!(shown["data"], bar["data"]);
    let changed = client
        .merge(&item, &json!({"metadata": {"labels": {"a": "b"}}}))
        .await
        .json();
    assert_ne!(
        changed["metadata"]["resourceVersion"],
        made["metadata"]["resourceVersion"]
    );
    assert_eq!(
        changed["metadata"]["annotations"],
        json!({"resourceVersion": "5"})
    );
    assert_eq!(client.get(&item).await.json(), changed);
    let other = client
        .get("/apis/ex.io/v2/namespaces/default/bars/b")
        .await
        .json();
    let mut expected = changed.clone();
    expected["apiVersion"] = json!("ex.io/v2");
    assert_eq!(other, expected);
    let mut watch = client.watch("/apis/ex.io/v2/bars?watch=1").await;
    assert_eq!(watch.event().await["object"], expected);
    let metadata = [(
        "accept",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    )];
    let partial = client.call("GET", &item, &metadata, "").await.json();
    assert_eq!(partial["metadata"], changed["metadata"]);
    assert_eq!(client.delete(&item, &json!(null)).await.code, 200);
    assert_eq!(watch.event().await["type"], "DELETED");
}

async fn an_update_of_the_status_validates_the_status(on: Backend) {
    let (_server, client) = server(on);
    let mut both = foos();
    let first = &mut both["spec"]["versions"][0];
    let schema = &mut first["schema"]["openAPIV3Schema"];
    schema["properties"]["status"]["properties"]["phase"] = json!({"type": "string"});
    let mut second = first.clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    second["schema"]["openAPIV3Schema"]["required"] = json!(["spec"]);
    both["spec"]["versions"]
        .as_array_mut()
        .unwrap()
        .push(second);
    establish(&client, &both).await;
    let mut bare = foo("a", &json!({}));
    bare.as_object_mut().unwrap().remove("spec");
    created(&client, FOOS, &bare).await;
    let item = "/apis/ex.io/v2/namespaces/default/foos/a";
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let refused = client.merge(item, &label).await;
    let message = "Foo.ex.io \"a\" is invalid: spec: Required value";
    assert_eq!(
        (refused.code, &refused.json()["message"]),
        (422, &json!(message))
    );
    // The rest of the object is not validated with its status.
    let status = format!("{item}/status");
    let changed = client
        .merge(&status, &json!({"status": {"phase": "p"}}))
        .await;
    assert_eq!(changed.code, 200, "{}", changed.text());
    assert_eq!(changed.json()["status"], json!({"phase": "p"}));
    let refused = client
        .merge(&status, &json!({"status": {"phase": 1}}))
        .await;
    let message = "Foo.ex.io \"a\" is invalid: status.phase: Invalid value: \"integer\": phase in body must be of type string: \"integer\"";
    assert_eq!(
        (refused.code, &refused.json()["message"]),
        (422, &json!(message))
    );
}

async fn finalizers_without_a_domain_are_warned_of(on: Backend) {
    let (_server, client) = with_foos(on).await;
    let mut held = foo("a", &json!({}));
    held["metadata"]["finalizers"] = json!(["hold", "ex.io/hold"]);
    let made = client.post(FOOS, &held).await;
    assert_eq!(made.code, 201, "{}", made.text());
    let warning = |name: &str| {
        format!(
            "299 - \"metadata.finalizers: \\\"{name}\\\": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers\""
        )
    };
    assert_eq!(made.header("warning"), warning("hold"));
    let item = format!("{FOOS}/a");
    let finalizers = json!({"metadata": {"finalizers": ["hold", "more"]}});
    let changed = client.merge(&item, &finalizers).await;
    assert_eq!(changed.code, 200, "{}", changed.text());
    assert_eq!(changed.header("warning"), warning("more"));
    // A Rust type has the rules of a built-in kind.
    let mut flunder = flunder("a");
    flunder["metadata"]["finalizers"] = json!(["hold"]);
    assert_eq!(client.post(FLUNDERS, &flunder).await.code, 422);
}
