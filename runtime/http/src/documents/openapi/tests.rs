//! The OpenAPI documents of compiled kinds.

use std::collections::BTreeSet;

use http::Method;

use super::*;
use crate::testing::{body, get, header, request, scale, wardle_sources};

const FLUNDER: &str = "com.example.wardle.v1alpha1.Flunder";

fn openapi() -> OpenApi {
    OpenApi::of(wardle_sources())
}

fn v1alpha1() -> Value {
    json!(wardle_sources()[2].v3())
}

fn v2() -> Value {
    json!(VersionSource::v2(wardle_sources().iter()))
}

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

/// `METHOD PATH operationId action` of every operation.
fn operations(document: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item
            .as_object()
            .unwrap()
            .iter()
            .filter(|(key, _)| *key != "parameters")
        {
            let text = |key: &str| operation[key].as_str().unwrap_or("-").to_owned();
            lines.push(format!(
                "{method} {path} {} {}",
                text("operationId"),
                text("x-kubernetes-action")
            ));
        }
    }
    lines
}

fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| match value.as_str() {
            Some(target) if key == "$ref" => drop(found.insert(target)),
            _ => references(value, found),
        }),
        Value::Array(all) => all.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn every_served_verb_is_an_operation_and_no_other() {
    let alpha = "/apis/wardle.example.com/v1alpha1";
    let expected = [
        format!("get {alpha}/ getWardleExampleComV1alpha1APIResources -"),
        format!("get {alpha}/fischers listWardleExampleComV1alpha1Fischer list"),
        format!("post {alpha}/fischers createWardleExampleComV1alpha1Fischer post"),
        format!("delete {alpha}/fischers/{{name}} deleteWardleExampleComV1alpha1Fischer delete"),
        format!("get {alpha}/fischers/{{name}} readWardleExampleComV1alpha1Fischer get"),
        format!("put {alpha}/fischers/{{name}} replaceWardleExampleComV1alpha1Fischer put"),
        format!("get {alpha}/flunders listWardleExampleComV1alpha1FlunderForAllNamespaces list"),
        format!(
            "delete {alpha}/namespaces/{{namespace}}/flunders deleteWardleExampleComV1alpha1CollectionNamespacedFlunder deletecollection"
        ),
        format!(
            "get {alpha}/namespaces/{{namespace}}/flunders listWardleExampleComV1alpha1NamespacedFlunder list"
        ),
        format!(
            "post {alpha}/namespaces/{{namespace}}/flunders createWardleExampleComV1alpha1NamespacedFlunder post"
        ),
        format!(
            "delete {alpha}/namespaces/{{namespace}}/flunders/{{name}} deleteWardleExampleComV1alpha1NamespacedFlunder delete"
        ),
        format!(
            "get {alpha}/namespaces/{{namespace}}/flunders/{{name}} readWardleExampleComV1alpha1NamespacedFlunder get"
        ),
        format!(
            "patch {alpha}/namespaces/{{namespace}}/flunders/{{name}} patchWardleExampleComV1alpha1NamespacedFlunder patch"
        ),
        format!(
            "put {alpha}/namespaces/{{namespace}}/flunders/{{name}} replaceWardleExampleComV1alpha1NamespacedFlunder put"
        ),
        format!(
            "get {alpha}/namespaces/{{namespace}}/flunders/{{name}}/status readWardleExampleComV1alpha1NamespacedFlunderStatus get"
        ),
        format!(
            "patch {alpha}/namespaces/{{namespace}}/flunders/{{name}}/status patchWardleExampleComV1alpha1NamespacedFlunderStatus patch"
        ),
        format!(
            "put {alpha}/namespaces/{{namespace}}/flunders/{{name}}/status replaceWardleExampleComV1alpha1NamespacedFlunderStatus put"
        ),
    ];
    assert_eq!(operations(&v1alpha1()), expected);
}

#[test]
fn namespaces_can_be_finalized_and_answer_deletions_with_themselves() {
    let core = json!(wardle_sources()[0].v3());
    assert!(operations(&core).contains(
        &"put /api/v1/namespaces/{name}/finalize replaceCoreV1NamespaceFinalize put".to_owned()
    ));
    let answer = &core["paths"]["/api/v1/namespaces/{name}"]["delete"]["responses"]["200"]["content"]
        ["application/json"];
    assert_eq!(
        answer["schema"]["$ref"],
        "#/components/schemas/io.k8s.api.core.v1.Namespace"
    );
}

#[test]
fn a_subresource_of_another_kind_takes_and_answers_that() {
    let mut source = wardle_sources().remove(2);
    Arc::make_mut(&mut source.kinds[0].def).subresources = vec![scale()];
    let document = json!(source.v3());
    let path = "/apis/wardle.example.com/v1alpha1/namespaces/{namespace}/flunders/{name}/scale";
    let put = &document["paths"][path]["put"];
    let expected = "#/components/schemas/io.k8s.api.autoscaling.v1.Scale";
    for part in [&put["requestBody"], &put["responses"]["200"]] {
        assert_eq!(
            part["content"]["application/json"]["schema"]["$ref"],
            expected
        );
    }
    assert_eq!(document["paths"][path]["patch"], Value::Null);
}

#[test]
fn a_watch_is_a_stream_of_events() {
    let document = v1alpha1();
    let list = &document["paths"]["/apis/wardle.example.com/v1alpha1/flunders"]["get"]["responses"]
        ["200"]["content"];
    let schema = |format: &str| {
        list[format]["schema"]["$ref"]
            .as_str()
            .unwrap()
            .rsplit('.')
            .next()
            .unwrap()
    };
    assert_eq!(schema("application/json"), "FlunderList");
    assert_eq!(schema("application/json;stream=watch"), "WatchEvent");
}

#[test]
fn every_patch_says_its_kind_and_takes_the_parameters_that_kubectl_looks_for() {
    let document = v1alpha1();
    for path in document["paths"]
        .as_object()
        .unwrap()
        .values()
        .filter_map(|item| item.get("patch"))
    {
        let kind =
            json!({ "group": "wardle.example.com", "version": "v1alpha1", "kind": "Flunder" });
        assert_eq!(path["x-kubernetes-group-version-kind"], kind);
        let names: Vec<&str> = path["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p["name"].as_str().unwrap())
            .collect();
        assert_eq!(
            names,
            ["dryRun", "fieldManager", "fieldValidation", "force"]
        );
        assert_eq!(
            keys(&path["requestBody"]["content"]),
            [
                "application/apply-patch+yaml",
                "application/json-patch+json",
                "application/merge-patch+json"
            ]
        );
    }
}

#[test]
fn nothing_is_referred_to_that_is_not_there() {
    for (document, schemas, prefix) in [
        (v1alpha1(), "/components/schemas", "#/components/schemas/"),
        (v2(), "/definitions", "#/definitions/"),
    ] {
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        let known: BTreeSet<String> = keys(document.pointer(schemas).unwrap())
            .iter()
            .map(|key| format!("{prefix}{key}"))
            .collect();
        let missing: Vec<&&str> = found
            .iter()
            .filter(|target| !known.contains(**target))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}

#[test]
fn a_kind_refers_to_its_metadata_and_says_what_it_is() {
    let document = v1alpha1();
    let schema = &document["components"]["schemas"][FLUNDER];
    assert_eq!(
        schema["properties"]["metadata"]["allOf"],
        json!([{ "$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" }])
    );
    let gvk = json!([{ "group": "wardle.example.com", "version": "v1alpha1", "kind": "Flunder" }]);
    assert_eq!(schema["x-kubernetes-group-version-kind"], gvk);
    assert_eq!(
        schema["x-kubernetes-selectable-fields"],
        json!([{ "fieldPath": "spec.referenceType" }])
    );
    assert_eq!(schema.get("required"), None);
    let list = &document["components"]["schemas"]["com.example.wardle.v1alpha1.FlunderList"];
    assert_eq!(
        list["properties"]["items"]["items"]["$ref"],
        format!("#/components/schemas/{FLUNDER}")
    );
    assert_eq!(list["required"], json!(["items"]));
}

#[test]
fn every_field_of_the_meta_types_is_described() {
    let document = v2();
    let definitions = document["definitions"].as_object().unwrap();
    for (name, schema) in definitions
        .iter()
        .filter(|(name, _)| names::meta_type(name).is_some())
    {
        assert!(schema["description"].is_string(), "{name}");
        for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
            assert!(schema["description"].is_string(), "{name}.{field}");
            assert!(
                schema.get("nullable").is_none() && schema.get("default").is_none(),
                "{name}.{field}"
            );
        }
    }
    let meta =
        &document["definitions"]["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]["properties"];
    assert_eq!(
        meta["ownerReferences"]["x-kubernetes-list-map-keys"],
        json!(["uid"])
    );
    assert_eq!(meta["generation"]["format"], "int64");
    let time = "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.Time";
    assert_eq!(meta["creationTimestamp"]["$ref"], time);
}

#[test]
fn v2_says_what_it_can() {
    let document = v2();
    assert_eq!(document["swagger"], "2.0");
    let spec = &document["definitions"][FLUNDER]["properties"]["spec"]["properties"];
    assert_eq!(spec["extra"], json!({}));
    assert_eq!(spec["port"], json!({ "x-kubernetes-int-or-string": true }));
    assert_eq!(
        spec["reference"],
        json!({ "type": "string", "maxLength": 253, "description": "Name of another." })
    );
    let item = &document["paths"]["/apis/wardle.example.com/v1alpha1/namespaces/{namespace}/flunders/{name}"];
    assert_eq!(
        item["parameters"][0],
        json!({ "name": "name", "in": "path", "required": true, "type": "string", "uniqueItems": true, "description": "The name of the Flunder." })
    );
    let put = &item["put"];
    let schema = json!({ "$ref": format!("#/definitions/{FLUNDER}") });
    assert_eq!(
        put["parameters"][0],
        json!({ "in": "body", "name": "body", "required": true, "schema": schema })
    );
    assert_eq!(
        put["consumes"],
        json!(["application/json", "application/yaml"])
    );
    assert_eq!(
        put["produces"],
        json!(["application/json", "application/yaml"])
    );
    assert_eq!(
        put["responses"]["201"],
        json!({ "description": "Created", "schema": schema })
    );
}

#[test]
fn the_index_leads_to_documents_that_never_change() {
    let openapi = openapi();
    let index: Value =
        serde_json::from_str(&body(openapi.respond_to(&get("/openapi/v3", &[])).unwrap())).unwrap();
    assert_eq!(
        keys(&index["paths"]),
        [
            "api/v1",
            "apis/wardle.example.com/v1alpha1",
            "apis/wardle.example.com/v1beta1"
        ]
    );
    let url = index["paths"]["apis/wardle.example.com/v1alpha1"]["serverRelativeURL"]
        .as_str()
        .unwrap();
    let response = openapi.respond_to(&get(url, &[])).unwrap();
    assert_eq!(header(&response, "cache-control"), "public, immutable");
    assert!(header(&response, "expires").ends_with(" GMT"));
    let text = body(response);
    assert!(url.ends_with(&format!(
        "?hash={}",
        crate::response::static_doc::sha512_hex(text.as_bytes())
    )));
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), v1alpha1());
}

#[test]
fn a_wrong_hash_leads_to_the_right_one() {
    let response = openapi()
        .respond_to(&get("/openapi/v3/api/v1?hash=AB&timeout=32s", &[]))
        .unwrap();
    assert_eq!(response.status(), StatusCode::MOVED_PERMANENTLY);
    assert!(header(&response, "location").starts_with("/openapi/v3/api/v1?hash="));
}

#[test]
fn documents_are_sent_once() {
    let openapi = openapi();
    for path in ["/openapi/v3/api/v1", "/openapi/v2"] {
        let first = openapi
            .respond_to(&get(path, &[("accept-encoding", "gzip")]))
            .unwrap();
        assert_eq!(header(&first, "content-encoding"), "gzip");
        let etag = header(&first, "etag").to_owned();
        let second = openapi
            .respond_to(&get(path, &[("if-none-match", &etag)]))
            .unwrap();
        assert_eq!(second.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(body(second), "");
    }
    let since = header(
        &openapi.respond_to(&get("/openapi/v2", &[])).unwrap(),
        "last-modified",
    )
    .to_owned();
    let unmodified = openapi
        .respond_to(&get("/openapi/v2", &[("if-modified-since", &since)]))
        .unwrap();
    assert_eq!(unmodified.status(), StatusCode::NOT_MODIFIED);
    let other = [
        ("if-modified-since", since.as_str()),
        ("if-none-match", "\"AB\""),
    ];
    assert_eq!(
        openapi
            .respond_to(&get("/openapi/v2", &other))
            .unwrap()
            .status(),
        StatusCode::OK
    );
}

#[test]
fn codes_without_a_body() {
    let check = |path: &str, accept: &str, code: StatusCode| {
        let response = openapi()
            .respond_to(&request(Method::GET, path, &[("accept", accept)]))
            .unwrap();
        assert_eq!(response.status(), code, "{path} {accept}");
        assert!(
            code == StatusCode::OK || body(response).is_empty(),
            "{path}"
        );
    };
    check("/openapi/v2", "application/json", StatusCode::OK);
    check("/openapi/v2", "*/*", StatusCode::OK);
    check("/openapi/v2", "text/html", StatusCode::NOT_ACCEPTABLE);
    check(
        "/openapi/v3/api/v1",
        "text/html",
        StatusCode::NOT_ACCEPTABLE,
    );
    check(
        "/openapi/v3/apis/nope/v1",
        "application/json",
        StatusCode::NOT_FOUND,
    );
    check(
        "/openapi/v3/api/v1",
        "application/x+protobuf, application/json",
        StatusCode::OK,
    );
    assert!(openapi().respond_to(&get("/openapi/v4", &[])).is_none());
    assert!(openapi().respond_to(&get("/openapi", &[])).is_none());
}

#[test]
fn client_go_gets_v2_as_protobuf() {
    let asked = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let openapi = openapi();
    let response = openapi
        .respond_to(&get("/openapi/v2", &[("accept", asked)]))
        .unwrap();
    assert_eq!(header(&response, "content-type"), PROTOBUF);
    let etag = header(&response, "etag").to_owned();
    let json = openapi
        .respond_to(&get(
            "/openapi/v2",
            &[("accept", &format!("application/json,{asked}"))],
        ))
        .unwrap();
    assert_eq!(header(&json, "content-type"), JSON);
    assert_ne!(header(&json, "etag"), etag);
}

#[test]
fn v3_is_protobuf_with_the_hash_of_its_json() {
    let openapi = openapi();
    let get = |accept: &str| {
        let request = get("/openapi/v3/api/v1", &[("accept", accept)]);
        openapi.respond_to(&request).unwrap()
    };
    let json = get("application/json");
    for spelling in ["@v1.0", ".v1.0"] {
        let asked = format!("application/com.github.proto-openapi.spec.v3{spelling}+protobuf");
        let response = get(&asked);
        assert_eq!(header(&response, "content-type"), V3_PROTOBUF);
        assert_eq!(header(&response, "etag"), header(&json, "etag"));
        let bytes = crate::testing::bytes(response);
        assert!(bytes.starts_with(b"\x0a\x053.0.0"), "{bytes:?}");
    }
    let both = get("application/json,application/com.github.proto-openapi.spec.v3@v1.0+protobuf");
    assert_eq!(header(&both, "content-type"), JSON);
}

#[test]
fn a_registry_documents_its_namespaces() {
    let openapi = OpenApi::new(&crate::testing::bare_registry().catalog());
    let document: Value = serde_json::from_str(&body(
        openapi.respond_to(&get("/openapi/v3/api/v1", &[])).unwrap(),
    ))
    .unwrap();
    let namespace = &document["components"]["schemas"]["io.k8s.api.core.v1.Namespace"];
    assert_eq!(
        namespace["properties"]["metadata"]["allOf"][0]["$ref"],
        names::OBJECT_META
    );
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    let missing = |target: &&&str| document.pointer(target.trim_start_matches('#')).is_none();
    assert_eq!(found.iter().find(missing), None);
}

#[test]
fn two_builds_give_the_same_bytes() {
    assert_eq!(v1alpha1().to_string(), v1alpha1().to_string());
    assert_eq!(v2().to_string(), v2().to_string());
}
