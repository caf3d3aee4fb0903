//! Kinds that come, change and go while the server runs; clients of other kinds notice nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use apiloom::meta::kind::{ResourceDef, SchemaSource};
use apiloom::meta::schema::Schema;
use apiloom::meta::{GroupResource, JsonPath};
use apiloom::prelude::*;
use apiloom::server::Loopback;
use apiloom::server::registry::CatalogChange;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::in_process::{event, open, read, serve};
use super::{KETTLES, STOVES};

/// Pot cooks soup.
#[apiloom::resource(
    group = "kitchen.example.com",
    version = "v1",
    namespaced,
    shortname = "po"
)]
pub struct Pot {
    pub metadata: ObjectMeta,
    pub spec: PotSpec,
}

#[apiloom::api]
pub struct PotSpec {
    #[api(min = 1)]
    pub litres: i32,
}

/// The same kind as it is later: with a lid.
mod later {
    use super::*;

    #[apiloom::resource(group = "kitchen.example.com", version = "v1", namespaced)]
    pub struct Pot {
        pub metadata: ObjectMeta,
        pub spec: PotSpec,
    }

    #[apiloom::api]
    pub struct PotSpec {
        #[api(min = 2)]
        pub litres: i32,
        #[api(default = "glass")]
        pub lid: String,
    }
}

const POTS: &str = "/apis/kitchen.example.com/v1/namespaces/default/pots";

const DISCOVERY: &str = "/apis/kitchen.example.com/v1";

fn pots() -> GroupResource {
    GroupResource::new("kitchen.example.com", "pots")
}

fn named(kind: &str, name: &str, spec: &Value) -> String {
    let api_version = "kitchen.example.com/v1";
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec})
        .to_string()
}

async fn get(loopback: &Loopback, url: &str) -> (u16, Value) {
    let (code, text) = read(open(loopback, "GET", url, "").await).await;
    (
        code,
        serde_json::from_str(&text).unwrap_or(Value::String(text)),
    )
}

async fn post(loopback: &Loopback, url: &str, body: &str) -> (u16, Value) {
    let (code, text) = read(open(loopback, "POST", url, body).await).await;
    (code, serde_json::from_str(&text).unwrap())
}

async fn resources(loopback: &Loopback) -> Vec<String> {
    let (_, list) = get(loopback, DISCOVERY).await;
    let names = list["resources"].as_array().unwrap().iter();
    names
        .map(|resource| resource["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_comes_changes_and_goes_while_others_are_served() {
    let server = serve(|builder| builder).await;
    let loopback = server.loopback.privileged();

    // Clients of kettles, all the time: a list after the other, and a watch that must see every kettle.
    let done = Arc::new(AtomicBool::new(false));
    let lists = tokio::spawn({
        let (loopback, done) = (loopback.clone(), Arc::clone(&done));
        async move {
            let mut answers = 0;
            while !done.load(Ordering::Acquire) {
                let (code, list) = get(&loopback, KETTLES).await;
                assert_eq!(code, 200, "{list}");
                answers += 1;
                // A failed assertion of the test can end this loop only where it waits.
                tokio::task::yield_now().await;
            }
            answers
        }
    });
    let watch = open(&loopback, "GET", &format!("{KETTLES}?watch=1"), "").await;
    let mut kettles = watch.into_body();
    let mut expected = Vec::new();
    let mut put_kettle = async |name: &str| {
        let (code, _) = post(
            &loopback,
            KETTLES,
            &named("Kettle", name, &json!({"litres": 2})),
        )
        .await;
        assert_eq!(code, 201);
        expected.push(name.to_owned());
    };

    assert_eq!(get(&loopback, POTS).await.0, 404);
    assert_eq!(
        resources(&loopback).await,
        ["kettles", "stoves", "stoves/status"]
    );
    put_kettle("before").await;

    let added = server.registry.change(CatalogChange::new().kind::<Pot>());
    added.await.unwrap();
    assert_eq!(
        resources(&loopback).await,
        ["kettles", "stoves", "stoves/status", "pots"]
    );
    let (_, openapi) = get(&loopback, "/openapi/v3/apis/kitchen.example.com/v1").await;
    let schema = "com.example.kitchen.v1.Pot";
    assert!(openapi["components"]["schemas"][schema].is_object());
    let (code, small) = post(
        &loopback,
        POTS,
        &named("Pot", "small", &json!({"litres": 1})),
    )
    .await;
    assert_eq!((code, &small["spec"]), (201, &json!({"litres": 1})));
    let watch = open(&loopback, "GET", &format!("{POTS}?watch=1"), "").await;
    let mut watch = watch.into_body();
    assert_eq!(event(&mut watch).await.unwrap()["type"], "ADDED");
    put_kettle("with-pots").await;

    let changed = server
        .registry
        .change(CatalogChange::new().kind::<later::Pot>());
    changed.await.unwrap();
    assert_eq!(
        event(&mut watch).await,
        None,
        "a watch of the old kind ends"
    );
    let url = format!("{POTS}/small");
    let (code, small) = get(&loopback, &url).await;
    let spec = json!({"litres": 1, "lid": "glass"});
    assert_eq!(
        (code, &small["spec"]),
        (200, &spec),
        "stored objects are read by the new schema"
    );
    let (code, refused) = post(
        &loopback,
        POTS,
        &named("Pot", "tiny", &json!({"litres": 1})),
    )
    .await;
    assert_eq!(code, 422, "{refused}");
    let watch = open(&loopback, "GET", &format!("{POTS}?watch=1"), "").await;
    let mut watch = watch.into_body();
    assert_eq!(event(&mut watch).await.unwrap()["object"]["spec"], spec);
    put_kettle("with-lids").await;

    let removed = server.registry.change(CatalogChange::new().remove(pots()));
    removed.await.unwrap();
    assert_eq!(event(&mut watch).await, None);
    assert_eq!(get(&loopback, &url).await.0, 404);
    assert_eq!(
        resources(&loopback).await,
        ["kettles", "stoves", "stoves/status"]
    );
    let (_, openapi) = get(&loopback, "/openapi/v3/apis/kitchen.example.com/v1").await;
    assert!(openapi["components"]["schemas"].get(schema).is_none());
    let (code, _) = get(&loopback, STOVES).await;
    assert_eq!(code, 200);
    put_kettle("after").await;

    let again = server.registry.change(CatalogChange::new().kind::<Pot>());
    again.await.unwrap();
    let (_, list) = get(&loopback, POTS).await;
    assert_eq!(
        list["items"][0]["metadata"]["name"], "small",
        "its objects stay in the store"
    );

    let mut seen = Vec::new();
    while seen.len() < expected.len() {
        // Events that wait come in one piece.
        let frame = kettles.frame().await.unwrap().unwrap();
        let events = serde_json::Deserializer::from_slice(frame.data_ref().unwrap()).into_iter();
        let name = |event: Value| {
            event["object"]["metadata"]["name"]
                .as_str()
                .map(str::to_owned)
        };
        seen.extend(events.filter_map(|event| name(event.unwrap())));
    }
    assert_eq!(seen, expected);
    done.store(true, Ordering::Release);
    assert!(lists.await.unwrap() > 0);
    drop(kettles);
    server.stop().await;
}

#[tokio::test]
async fn a_change_that_cannot_be_made_changes_nothing() {
    let server = serve(|builder| builder).await;
    let loopback = server.loopback.privileged();
    let before = server.registry.generation();
    let namespaces = GroupResource::new("", "namespaces");
    let refused = server
        .registry
        .change(CatalogChange::new().remove(pots()).remove(namespaces))
        .await
        .unwrap_err();
    assert_eq!(
        refused,
        [
            "pots.kitchen.example.com cannot be removed: it is not registered",
            "namespaces cannot be removed: the server itself serves it"
        ]
    );
    let twice = CatalogChange::new().kind::<Pot>().kind::<Pot>();
    let refused = server.registry.change(twice).await.unwrap_err();
    assert!(refused[0].ends_with("is registered twice"), "{refused:?}");
    assert_eq!(server.registry.generation(), before);
    assert_eq!(get(&loopback, POTS).await.0, 404);
    server.stop().await;
}

#[tokio::test]
async fn watches_that_open_while_a_kind_goes_end_too() {
    let server = serve(|builder| builder).await;
    let loopback = server.loopback.privileged();
    for _ in 0..20 {
        let change = CatalogChange::new().kind::<Pot>();
        server.registry.change(change).await.unwrap();
        let watches = (0..8).map(|_| {
            let loopback = loopback.clone();
            tokio::spawn(async move {
                let watch = open(&loopback, "GET", &format!("{POTS}?watch=1"), "").await;
                if watch.status() == 404 {
                    return;
                }
                assert_eq!(watch.status(), 200);
                assert_eq!(event(&mut watch.into_body()).await, None);
            })
        });
        let watches: Vec<_> = watches.collect();
        let change = CatalogChange::new().remove(pots());
        server.registry.change(change).await.unwrap();
        for watch in watches {
            watch.await.unwrap();
        }
    }
    let (code, _) = get(&loopback, KETTLES).await;
    assert_eq!(code, 200);
    server.stop().await;
}

const LADLES: &str = "/apis/kitchen.example.com/v1/namespaces/default/ladles";

/// A kind that has no Rust type, with the schema of a document.
fn ladles(schema: &Value) -> ResourceDef {
    ResourceDef {
        kind: "Ladle".into(),
        list_kind: "LadleList".into(),
        plural: "ladles".into(),
        singular: "ladle".into(),
        short_names: vec!["la".into()],
        description: "Ladle serves soup.".into(),
        place: None,
        protobuf: None,
        store_path: None,
        schema: SchemaSource::Document(Arc::new(Schema::of_resource(schema).unwrap())),
        ..Pot::definition()
    }
}

/// The document of a schema whose spec has a size, and another field.
fn ladle_schema(name: &str, other: &Value) -> Value {
    json!({"type": "object", "required": ["spec"], "properties": {
        "spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "format": "int32", "minimum": 1, "description": "How much it takes."},
            name: other,
        }},
    }})
}

#[tokio::test]
async fn a_kind_with_the_schema_of_a_document_comes_changes_and_goes() {
    let server = serve(|builder| builder).await;
    let loopback = server.loopback.privileged();
    let change = async |def| {
        let change = CatalogChange::new().definition(def);
        server.registry.change(change).await
    };
    let openapi = async || {
        let (_, openapi) = get(&loopback, "/openapi/v3/apis/kitchen.example.com/v1").await;
        openapi["components"]["schemas"]["com.example.kitchen.v1.Ladle"].clone()
    };
    let put =
        async |name: &str, spec: Value| post(&loopback, LADLES, &named("Ladle", name, &spec)).await;

    let metal = json!({"type": "string", "enum": ["steel", "tin"], "default": "steel"});
    change(ladles(&ladle_schema("metal", &metal)))
        .await
        .unwrap();
    let (code, made) = put("a", json!({"size": 2, "bogus": true})).await;
    assert_eq!(
        (code, &made["spec"]),
        (201, &json!({"size": 2, "metal": "steel"}))
    );
    let (code, refused) = put("b", json!({"size": 0, "metal": "gold"})).await;
    assert_eq!(code, 422);
    assert_eq!(
        refused["message"],
        "Ladle.kitchen.example.com \"b\" is invalid: [spec.metal: Unsupported value: \"gold\": supported values: \"steel\", \
         \"tin\", spec.size: Invalid value: 0: must be greater than or equal to 1]"
    );
    let spec = openapi().await["properties"]["spec"].clone();
    assert_eq!(spec["properties"]["metal"]["default"], "steel");
    assert_eq!(
        spec["properties"]["size"]["description"],
        "How much it takes."
    );

    let holes = json!({"type": "integer", "default": 7});
    change(ladles(&ladle_schema("holes", &holes)))
        .await
        .unwrap();
    let url = format!("{LADLES}/a");
    let (_, read) = get(&loopback, &url).await;
    assert_eq!(read["spec"], json!({"size": 2, "holes": 7}));
    let spec = openapi().await["properties"]["spec"].clone();
    assert!(spec["properties"]["holes"].is_object() && spec["properties"]["metal"].is_null());

    let unknown = ResourceDef {
        selectable: vec![JsonPath::new(["spec", "metal"]).into()],
        ..ladles(&ladle_schema("holes", &holes))
    };
    assert_eq!(
        change(unknown).await.unwrap_err(),
        [
            "Ladle of kitchen.example.com/v1: a selectable field is at .spec.metal, which the schema does not know"
        ]
    );
    let ladles = GroupResource::new("kitchen.example.com", "ladles");
    let removed = server.registry.change(CatalogChange::new().remove(ladles));
    removed.await.unwrap();
    assert_eq!(get(&loopback, &url).await.0, 404);
    assert!(openapi().await.is_null());
    server.stop().await;
}

/// A definition of lids in two versions, of at most this many millimetres.
fn lids(most: u32) -> Value {
    let version = |name: &str, is_stored: bool| {
        json!({
            "name": name, "served": true, "storage": is_stored,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"width": {"type": "integer", "maximum": most}}},
            }}},
            "additionalPrinterColumns": [{"name": "Width", "type": "integer", "jsonPath": ".spec.width"}],
        })
    };
    json!({"spec": {
        "group": "lids.example.com",
        "scope": "Namespaced",
        "names": {"plural": "lids", "kind": "Lid"},
        "versions": [version("v1beta1", false), version("v1", true)],
    }})
}

#[tokio::test]
async fn a_kind_from_a_document_comes_changes_and_goes() {
    let server = serve(|builder| builder).await;
    let loopback = server.loopback.privileged();
    let path = |version: &str| format!("/apis/lids.example.com/{version}/namespaces/default/lids");
    let lid = |width: u32| {
        json!({"apiVersion": "lids.example.com/v1", "kind": "Lid", "metadata": {"generateName": "l-"}, "spec": {"width": width}}).to_string()
    };
    let change = |document: &Value| CatalogChange::new().document(document).unwrap();
    let kettles = open(&loopback, "GET", &format!("{KETTLES}?watch=1"), "").await;

    server.registry.change(change(&lids(30))).await.unwrap();
    let (_, group) = get(&loopback, "/apis/lids.example.com").await;
    assert_eq!(group["preferredVersion"]["version"], "v1");
    let (code, made) = post(&loopback, &path("v1"), &lid(30)).await;
    assert_eq!(code, 201, "{made}");
    let (_, beta) = get(&loopback, &path("v1beta1")).await;
    assert_eq!(beta["items"][0]["apiVersion"], "lids.example.com/v1beta1");
    let watch = open(&loopback, "GET", &format!("{}?watch=1", path("v1")), "").await;
    let mut watch = watch.into_body();
    assert_eq!(event(&mut watch).await.unwrap()["type"], "ADDED");

    server.registry.change(change(&lids(20))).await.unwrap();
    assert_eq!(event(&mut watch).await, None);
    let (code, refused) = post(&loopback, &path("v1"), &lid(30)).await;
    assert_eq!(code, 422, "{refused}");

    let gone = CatalogChange::new().remove(GroupResource::new("lids.example.com", "lids"));
    server.registry.change(gone).await.unwrap();
    assert_eq!(get(&loopback, &path("v1")).await.0, 404);
    // The watch of another kind noticed nothing.
    let mut kettles = kettles.into_body();
    let (code, _) = post(
        &loopback,
        KETTLES,
        &named("Kettle", "k", &json!({"litres": 2})),
    )
    .await;
    assert_eq!(code, 201);
    assert_eq!(event(&mut kettles).await.unwrap()["type"], "ADDED");

    let wrong = CatalogChange::new().document(&json!({"spec": {"group": "x"}}));
    assert!(
        wrong
            .unwrap_err()
            .iter()
            .any(|line| line.starts_with("spec.names.kind: "))
    );
    drop(kettles);
    server.stop().await;
}

#[test]
fn the_example_adds_changes_and_removes_a_kind() {
    let example = apiloom_tests::build("examples/document_kinds");
    let output = std::process::Command::new(example).output().unwrap();
    let (shown, problems) = (output.stdout, output.stderr);
    let shown = String::from_utf8(shown).unwrap();
    let problems = String::from_utf8_lossy(&problems);
    assert!(output.status.success(), "{shown}{problems}");
    let lines: Vec<&str> = shown.lines().collect();
    let [early, bulb, bright, late] = lines[..] else {
        panic!("{shown}");
    };
    assert_eq!(early, "too-early: 404 Not Found 404 page not found");
    assert!(
        bulb.starts_with("bulb: 201 Created {\"apiVersion\":\"example.com/v1\""),
        "{bulb}"
    );
    assert!(
        bright.starts_with("too-bright: 422 Unprocessable Entity {"),
        "{bright}"
    );
    assert!(
        bright.contains("spec.watts in body should be less than or equal to 10"),
        "{bright}"
    );
    assert_eq!(late, "too-late: 404 Not Found 404 page not found");
}
