//! What documents of OpenAPI v3 become, and what is refused of them.

use serde_json::{Map, Value, json};

use super::super::{imported_kinds, openapi_differences};

/// A document with the kind Thing, which is the component Thing, beside these.
fn document(components: Value) -> Value {
    let kind = json!({ "group": "example.com", "version": "v1", "kind": "Thing" });
    let mut schemas = components;
    schemas["Thing"]["x-kubernetes-group-version-kind"] = json!([kind]);
    schemas["Thing"]["type"] = "object".into();
    let operation = |action: &str| json!({ "x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind });
    json!({
        "openapi": "3.0.0",
        "paths": {
            "/apis/example.com/v1/namespaces/{namespace}/things": {
                "get": operation("list"), "post": operation("post"), "delete": operation("deletecollection"),
            },
            "/apis/example.com/v1/namespaces/{namespace}/things/{name}": {
                "get": operation("get"), "put": operation("put"), "patch": operation("patch"), "delete": operation("delete"),
            },
        },
        "components": { "schemas": schemas },
    })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// A document whose kind has these properties, beside other components.
fn with(properties: Value, mut components: Value) -> Value {
    components["Thing"] = json!({ "properties": properties });
    document(components)
}

/// Checks that the code has these lines, in this order, without losses.
#[track_caller]
fn check(document: &Value, lines: &[&str]) {
    let imported =
        imported_kinds(std::slice::from_ref(document)).unwrap_or_else(|error| panic!("{error}"));
    let code = &imported[0].modules[0].1;
    let mut rest = code.lines().map(str::trim);
    for line in lines {
        assert!(rest.any(|found| found == *line), "{line} in\n{code}");
    }
    assert_eq!(imported[0].lost, [""; 0]);
}

#[track_caller]
fn refuses(document: &Value, expected: &str) {
    let error = imported_kinds(std::slice::from_ref(document)).expect_err("it is refused");
    assert!(error.contains(expected), "{error}");
}

#[test]
fn components_are_types_of_their_last_word() {
    let part = json!({ "type": "object", "description": "A part.", "properties": { "size": { "type": "integer", "format": "int32" } } });
    check(
        &with(
            json!({ "first": reference("com.example.Part"),
                "second": { "allOf": [reference("com.example.Part")], "default": {}, "description": "The second." },
                "mode": { "allOf": [reference("com.example.Mode")], "default": "Fast" } }),
            json!({ "com.example.Part": part, "com.example.Mode": { "type": "string", "enum": ["Fast", "Slow"] } }),
        ),
        &[
            "pub first: Option<Part>,",
            "#[api(default = Mode::Fast)]",
            "pub mode: Mode,",
            "/// The second.",
            "pub second: Option<Part>,",
            "pub struct Part {",
            "pub enum Mode {",
        ],
    );
    let other = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    check(
        &with(
            json!({ "a": reference("com.a.Part"), "b": reference("com.b.Part") }),
            json!({ "com.a.Part": part, "com.b.Part": other }),
        ),
        &["pub a: Option<APart>,", "pub b: Option<BPart>,"],
    );
}

#[test]
fn components_that_contain_themselves_are_boxed() {
    let node = json!({ "type": "object", "properties": {
        "next": reference("Node"),
        "list": { "type": "array", "items": reference("Node") },
        "map": { "type": "object", "additionalProperties": reference("Node") },
        "other": reference("Other"),
    } });
    let other = json!({ "type": "object", "required": ["node"], "properties": { "node": reference("Node") } });
    check(
        &with(
            json!({ "root": reference("Node"), "other": reference("Other") }),
            json!({ "Node": node, "Other": other }),
        ),
        &[
            "pub other: Option<Other>,",
            "pub root: Option<Node>,",
            "pub struct Other {",
            "pub node: Node,",
            "pub struct Node {",
            "#[api(each(preserve_unknown))]",
            "pub list: Vec<Node>,",
            "pub map: BTreeMap<String, Node>,",
            "#[api(preserve_unknown)]",
            "pub next: Option<Box<Node>>,",
            "pub other: Option<Box<Other>>,",
        ],
    );
    // The kind itself is no part of another object.
    check(
        &with(json!({ "child": reference("Thing") }), json!({})),
        &["pub child: Option<BTreeMap<String, Value>>,"],
    );
}

#[test]
fn components_of_meta_v1_are_types_of_the_prelude() {
    let meta = |name: &str| reference(&format!("io.k8s.apimachinery.pkg.apis.meta.v1.{name}"));
    check(
        &with(
            json!({ "a": meta("ObjectMeta"), "b": meta("Time"), "c": meta("MicroTime"), "d": meta("Condition"),
                "e": meta("LabelSelector"), "f": meta("OwnerReference"), "g": meta("Duration"),
                "h": reference("io.k8s.apimachinery.pkg.util.intstr.IntOrString"),
                "i": reference("io.k8s.apimachinery.pkg.api.resource.Quantity"),
                "j": reference("io.k8s.apimachinery.pkg.runtime.RawExtension") }),
            json!({}),
        ),
        &[
            "pub a: Option<ObjectMeta>,",
            "pub b: Option<Time>,",
            "pub c: Option<MicroTime>,",
            "pub d: Option<Condition>,",
            "pub e: Option<LabelSelector>,",
            "pub f: Option<OwnerReference>,",
            "pub g: Option<Duration>,",
            "pub h: Option<IntOrString>,",
            "pub i: Option<Quantity>,",
            "pub j: BTreeMap<String, Value>,",
        ],
    );
}

#[test]
fn zero_defaults_of_go_say_nothing() {
    let mut thing = with(
        json!({ "name": { "type": "string", "default": "" },
            "words": { "type": "array", "items": { "type": "string", "default": "" } },
            "size": { "type": "integer", "format": "int32", "default": 0 } }),
        json!({}),
    );
    thing["components"]["schemas"]["Thing"]["required"] = json!(["name"]);
    check(
        &thing,
        &[
            "pub name: String,",
            "#[api(default = 0)]",
            "pub size: i32,",
            "pub words: Vec<String>,",
        ],
    );
}

#[test]
fn paths_tell_scope_verbs_and_subresources() {
    let mut thing = with(
        json!({ "status": { "type": "object", "properties": { "replicas": { "type": "integer" } } },
            "spec": { "type": "object", "properties": { "replicas": { "type": "integer" } } } }),
        json!({}),
    );
    let paths = &mut thing["paths"];
    let of_one = "/apis/example.com/v1/namespaces/{namespace}/things/{name}";
    for name in ["status", "scale", "log", "proxy/{path}"] {
        paths[format!("{of_one}/{name}")] = json!({ "get": { "x-kubernetes-action": "get" } });
    }
    paths[of_one]["put"] = json!({});
    paths[of_one]["patch"]["requestBody"]["content"]["application/strategic-merge-patch+json"] =
        json!({});
    let imported = imported_kinds(&[thing]).unwrap_or_else(|error| panic!("{error}"));
    let code = &imported[0].modules[0].1;
    for part in [
        "namespaced",
        "status",
        "scale(spec = spec.replicas, status = status.replicas)",
        "strategic_merge_patch",
        "verbs(only = [create, delete, delete_collection, get, list, patch, watch])",
    ] {
        assert!(code.contains(part), "{part} in\n{code}");
    }
    assert_eq!(
        imported[0].lost,
        [
            "v1: the paths of the subresource scale are taken to be .spec.replicas and .status.replicas, since documents of OpenAPI do not tell them",
            "v1: the subresource log is left out; write subresource(..) or connect(..)",
            "v1: the subresource proxy is left out; write subresource(..) or connect(..)",
        ]
    );
}

#[test]
fn documents_of_several_versions_are_one_kind() {
    let v1 = with(json!({ "a": { "type": "string" } }), json!({}));
    let text = v1.to_string().replace("/v1/", "/v1beta1/");
    let mut beta: Value = serde_json::from_str(&text).unwrap_or_default();
    let rename = |value: &mut Value| value["version"] = "v1beta1".into();
    rename(&mut beta["components"]["schemas"]["Thing"]["x-kubernetes-group-version-kind"][0]);
    for (_, methods) in beta["paths"].as_object_mut().into_iter().flatten() {
        for (_, operation) in methods.as_object_mut().into_iter().flatten() {
            rename(&mut operation["x-kubernetes-group-version-kind"]);
        }
    }
    let both = imported_kinds(&[beta, v1.clone()]).unwrap_or_else(|error| panic!("{error}"));
    let versions: Vec<_> = both[0]
        .modules
        .iter()
        .map(|(version, _)| &**version)
        .collect();
    assert_eq!(versions, ["v1", "v1beta1"]);
    assert_eq!(
        both[0].lost,
        ["v1: is taken to be the stored version, which documents of OpenAPI do not tell"]
    );
    let twice = imported_kinds(&[v1.clone(), v1]).expect_err("it is there twice");
    assert!(
        twice.starts_with("things.example.com v1 is in the document and in the document"),
        "{twice}"
    );
}

#[test]
fn documents_without_kinds_are_refused() {
    refuses(
        &json!({ "openapi": "3.0.0" }),
        "the document has no kinds\n  help: each version of a group",
    );
    refuses(
        &json!({ "openapi": "4.0" }),
        "the version of OpenAPI is \"4.0\", not 3",
    );
    refuses(
        &json!({ "swagger": "2.0", "definitions": {} }),
        "this is a document of OpenAPI v2.0, which leaves out parts of schemas\n  help: import the documents of v3",
    );
    let mut nameless = with(json!({}), json!({}));
    nameless["components"] = json!({});
    refuses(
        &nameless,
        "the paths have the kind Thing, and no component is its schema",
    );
    let namespaces = with(json!({}), json!({}))
        .to_string()
        .replace("example.com", "")
        .replace("/apis//", "/api/")
        .replace("Thing", "Namespace");
    refuses(
        &serde_json::from_str(&namespaces).unwrap_or_default(),
        "the document has no kinds",
    );
}

#[test]
fn references_that_lead_nowhere_are_refused() {
    refuses(
        &with(
            json!({ "a": { "type": "object", "properties": { "b": reference("None") } } }),
            json!({}),
        ),
        "component Thing: the document has no component \"None\"",
    );
    for remote in [
        "https://example.com/a.json#/A",
        "#/definitions/A",
        "other.json",
    ] {
        refuses(
            &with(json!({ "a": { "$ref": remote } }), json!({})),
            &format!(
                "component Thing: $ref {remote:?} does not begin with \"#/components/schemas/\""
            ),
        );
    }
    refuses(
        &with(
            json!({ "a": reference("A") }),
            json!({ "A": reference("B"), "B": { "allOf": [reference("A")] } }),
        ),
        "the component \"A\" refers to itself and says nothing else",
    );
    refuses(
        &with(json!({ "a": 1 }), json!({})),
        "component Thing: the schema 1 is no object",
    );
}

#[test]
fn hostile_documents_are_refused_in_time() {
    // Each component has the next one twice, so the whole doubles with each.
    let mut doubling = Map::new();
    for at in 0..40 {
        let next = reference(&format!("C{}", at + 1));
        doubling.insert(
            format!("C{at}"),
            json!({ "type": "object", "properties": { "a": next, "b": next } }),
        );
    }
    doubling.insert("C40".to_owned(), json!({ "type": "string" }));
    refuses(
        &with(json!({ "a": reference("C0") }), doubling.into()),
        "the kinds have more than 200000 schemas",
    );

    let mut chain = Map::new();
    for at in 0..2000 {
        let next = reference(&format!("C{}", at + 1));
        chain.insert(
            format!("C{at}"),
            json!({ "type": "object", "properties": { "a": next } }),
        );
    }
    chain.insert("C2000".to_owned(), json!({ "type": "string" }));
    refuses(
        &with(json!({ "a": reference("C0") }), chain.into()),
        "the schema has more than 100 levels",
    );

    let mut aliases = Map::new();
    for at in 0..100_000 {
        aliases.insert(format!("C{at}"), reference(&format!("C{}", at + 1)));
    }
    refuses(
        &with(json!({ "a": reference("C0") }), aliases.into()),
        "the schema has more than 100 levels",
    );

    let mut nested = json!({ "type": "string" });
    for _ in 0..200 {
        nested = json!({ "type": "string", "allOf": [{ "not": nested }] });
    }
    refuses(
        &with(json!({ "a": nested }), json!({})),
        "the schema has more than 100 levels",
    );
}

#[test]
fn differences_of_documents_are_told_by_kind() {
    let a = with(json!({ "a": { "type": "string" } }), json!({}));
    let b = with(
        json!({ "a": reference("A") }),
        json!({ "A": { "type": "string", "description": "A text." } }),
    );
    assert_eq!(
        openapi_differences(std::slice::from_ref(&a), &[b]),
        Ok(Vec::new())
    );
    let mut c = with(json!({ "a": { "type": "integer" } }), json!({}));
    c["paths"]["/apis/example.com/v1/namespaces/{namespace}/things/{name}"]["put"] = json!({});
    assert_eq!(
        openapi_differences(&[a], &[c]),
        Ok(vec![
            "things.example.com: verbs: None became Some([\"create\", \"delete\", \"delete_collection\", \"get\", \"list\", \"patch\", \"watch\"])"
                .to_owned(),
            "things.example.com: v1: a: type \"string\" became \"integer\"".to_owned(),
        ])
    );
}

/// The document of a kind as Kubernetes publishes it of a Go type, with these properties beside the metadata.
fn native(mut properties: Value, mut components: Value) -> Value {
    let meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    properties["metadata"] = json!({ "allOf": [reference(meta)], "default": {} });
    components[meta] = json!({ "type": "object" });
    let mut document = with(properties, components);
    let of_one = "/apis/example.com/v1/namespaces/{namespace}/things/{name}";
    document["paths"][format!("{of_one}/status")] =
        json!({ "get": { "x-kubernetes-action": "get" } });
    document
}

#[test]
fn kinds_of_kubernetes_have_the_zero_values_of_go() {
    let empty = |name: &str| json!({ "allOf": [reference(name)], "default": {} });
    let number = json!({ "type": "integer", "format": "int32", "default": 0 });
    let text = json!({ "type": "string", "default": "" });
    let mut document = native(
        json!({ "spec": empty("Spec"), "status": empty("Status"), "revision": number, "name": text }),
        json!({
            "Spec": { "type": "object", "required": ["selector", "port", "paused", "template"], "properties": {
                "selector": text, "port": number, "paused": { "type": "boolean", "default": false },
                "template": empty("Template"), "options": empty("Options") } },
            "Template": { "type": "object", "required": ["containers"], "properties": {
                "containers": { "type": "array", "items": { "type": "string", "default": "" } } } },
            "Options": { "type": "object", "properties": { "fast": { "type": "boolean" } } },
            "Status": { "type": "object", "required": ["ready", "conditions", "phase", "mode"], "properties": {
                "ready": number, "phase": text,
                "mode": { "type": "string", "default": "", "enum": ["Fast", "Slow"] },
                "conditions": { "type": "array", "items": empty("State"), "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"] } } },
            "State": { "type": "object", "required": ["type", "status"], "properties": { "type": text, "status": text } },
        }),
    );
    document["components"]["schemas"]["Thing"]["required"] = json!(["revision", "name"]);
    check(
        &document,
        &[
            "subresource(name = \"status\", writes = with_metadata(status))",
            "pub name: String,",
            "#[api(default = 0)]",
            "pub revision: i32,",
            "pub spec: Spec,",
            "#[api(default = {})]",
            "pub status: Option<Status>,",
            "pub struct Spec {",
            "#[api(default = {})]",
            "pub options: Options,",
            "#[api(default = false)]",
            "pub paused: bool,",
            "pub port: i32,",
            "pub selector: String,",
            "pub template: Template,",
            "pub struct Status {",
            "#[api(list = map(type_), duplicates)]",
            "pub conditions: Vec<State>,",
            "pub mode: Option<StatusMode>,",
            "#[api(default = \"\")]",
            "pub phase: String,",
            "#[api(default = 0)]",
            "pub ready: i32,",
            "pub struct Template {",
            "#[api(present)]",
            "pub containers: Vec<String>,",
            "pub struct State {",
            "#[api(default = \"\")]",
            "pub status: String,",
            "#[api(default = \"\")]",
            "pub type_: String,",
        ],
    );
}

#[test]
fn merged_lists_of_known_types_have_their_key() {
    let condition = reference("io.k8s.apimachinery.pkg.apis.meta.v1.Condition");
    let list = |key: &str, items: Value| {
        json!({ "type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key],
            "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": key })
    };
    check(
        &with(
            json!({ "conditions": list("type", condition),
                "free": { "type": "array", "items": {}, "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "a" } }),
            json!({}),
        ),
        &[
            "#[api(list = map(type), patch(merge, key = type))]",
            "pub conditions: Vec<Condition>,",
            "pub free: Vec<Value>,",
        ],
    );
}
