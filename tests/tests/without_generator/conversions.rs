//! Kinds of two versions that convert by each of the methods: what is written in one version is read, listed, watched and
//! patched in the other; and what clients are told when a converter fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use apiloom::meta::kind::{
    Conversion, ConversionMethod, Converter, InMemoryConversion, ResourceDef, SchemaSource,
};
use apiloom::meta::schema::Schema;
use apiloom::meta::{GroupVersion, Resource as _};
use apiloom::prelude::async_trait;
use apiloom::server::Loopback;
use apiloom::server::http::Body;
use apiloom::server::registry::CatalogChange;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

use super::changes::Pot;
use super::in_process::{Served, event, open, read, serve};

const GROUP: &str = "/apis/kitchen.example.com";

/// Spoons of v1 have a color, those of v2 a colour.
fn renamed(mut object: Value, from: &str, to: &str) -> Value {
    if let Some(spec) = object["spec"].as_object_mut()
        && let Some(color) = spec.remove(from)
    {
        spec.insert(to.to_owned(), color);
    }
    object
}

fn spoon(version: &str, color: &str, conversion: Option<ConversionMethod>) -> ResourceDef {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer"},
            color: {"type": "string", "default": "plain"},
        }},
    }});
    ResourceDef {
        version: version.into(),
        kind: "Spoon".into(),
        list_kind: "SpoonList".into(),
        plural: "spoons".into(),
        singular: "spoon".into(),
        short_names: Vec::new(),
        place: None,
        protobuf: None,
        store_path: None,
        storage: conversion.is_none(),
        conversion: conversion.map(|method| Conversion {
            hub_version: "v1".into(),
            hub_kind: "Spoon".into(),
            hub_resource: None,
            method,
        }),
        schema: SchemaSource::Document(Arc::new(Schema::of_resource(&schema).unwrap())),
        ..Pot::definition()
    }
}

/// A server with spoons whose v2 converts by this method; the color of v2 is called so.
async fn serve_spoons(method: ConversionMethod, color: &str) -> Served {
    let server = serve(|builder| builder).await;
    let change = CatalogChange::new()
        .definition(spoon("v1", "color", None))
        .definition(spoon("v2", color, Some(method)));
    server.registry.change(change).await.unwrap();
    server
}

fn url(version: &str, rest: &str) -> String {
    format!("{GROUP}/{version}/namespaces/default/spoons{rest}")
}

/// Sends a request; a patch is a merge patch.
async fn call(loopback: &Loopback, method: &str, url: &str, body: &Value) -> (u16, Value) {
    let request = Request::builder().method(method).uri(url).header(
        "content-type",
        match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        },
    );
    let request = if url.contains("table") {
        request.header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
    } else {
        request
    };
    let body = match body {
        Value::Null => Bytes::new(),
        body => body.to_string().into(),
    };
    let response = loopback.send(request.body(Full::new(body)).unwrap()).await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap())
}

fn named(name: &str, spec: &Value) -> Value {
    json!({"metadata": {"name": name}, "spec": spec})
}

/// The deletion that ends what a watch is sent; events that wait come in one piece.
async fn last_event(watch: &mut Body) -> Value {
    loop {
        let frame = watch.frame().await.unwrap().unwrap();
        let events = serde_json::Deserializer::from_slice(frame.data_ref().unwrap()).into_iter();
        let mut events = events.map(|event: Result<Value, _>| event.unwrap());
        if let Some(deleted) = events.find(|event| event["type"] == "DELETED") {
            return deleted;
        }
    }
}

/// Converts colors, or not quite.
#[derive(Debug)]
struct Painter {
    mistake: &'static str,
    calls: AtomicUsize,
    documents: AtomicUsize,
}

impl Painter {
    fn new(mistake: &'static str) -> Arc<Self> {
        Arc::new(Self {
            mistake,
            calls: AtomicUsize::new(0),
            documents: AtomicUsize::new(0),
        })
    }

    /// How many calls there were since the last time, and of how many documents.
    fn taken(&self) -> (usize, usize) {
        let take = |counter: &AtomicUsize| counter.swap(0, Ordering::AcqRel);
        (take(&self.calls), take(&self.documents))
    }
}

#[async_trait]
impl Converter for Painter {
    async fn convert(
        &self,
        documents: Vec<Bytes>,
        to: &GroupVersion,
    ) -> Result<Vec<Bytes>, String> {
        self.calls.fetch_add(1, Ordering::AcqRel);
        self.documents.fetch_add(documents.len(), Ordering::AcqRel);
        // A converter is far away.
        match self.mistake {
            "slow" => tokio::time::sleep(Duration::from_millis(50)).await,
            _ => tokio::task::yield_now().await,
        }
        let convert = |document: &Bytes| {
            let object: Value = serde_json::from_slice(document).unwrap();
            assert_ne!(object["apiVersion"], to.to_string(), "nothing to convert");
            let mut object = match &*to.version {
                "v2" => renamed(object, "color", "colour"),
                _ => renamed(object, "colour", "color"),
            };
            object["apiVersion"] = to.to_string().into();
            object["metadata"]["labels"]["painted"] = "yes".into();
            object["metadata"]["generation"] = 77.into();
            // What is stored converts well, so that there is something to read.
            if &*to.version == "v2" {
                match self.mistake {
                    "name" => object["metadata"]["name"] = "other".into(),
                    "uid" => object["metadata"]["uid"] = "other".into(),
                    "kind" => object["kind"] = "Fork".into(),
                    "version" => object["apiVersion"] = "kitchen.example.com/v3".into(),
                    "labels" => object["metadata"]["labels"] = json!({"painted": 1}),
                    _ => {}
                }
            }
            Bytes::from(object.to_string())
        };
        match self.mistake {
            "fails" if &*to.version == "v2" => return Err("no paint left".to_owned()),
            "count" if &*to.version == "v2" => return Ok(Vec::new()),
            _ => {}
        }
        Ok(documents.iter().map(convert).collect())
    }
}

/// Every operation in a version that is not stored.
async fn check(server: &Served, color: &str) {
    let loopback = &server.loopback.privileged();
    let none = Value::Null;
    let red = json!({"size": 2, color: "red"});
    let (code, made) = call(loopback, "POST", &url("v2", ""), &named("a", &red)).await;
    assert_eq!((code, &made["spec"]), (201, &red), "{made}");
    assert_eq!(made["apiVersion"], "kitchen.example.com/v2");
    let (code, _) = call(
        loopback,
        "POST",
        &url("v1", ""),
        &named("b", &json!({"color": "tin"})),
    )
    .await;
    assert_eq!(code, 201);

    let (_, stored) = call(loopback, "GET", &url("v1", "/a"), &none).await;
    let (_, got) = call(loopback, "GET", &url("v2", "/a"), &none).await;
    assert_eq!(
        (&got["apiVersion"], &got["spec"]),
        (&made["apiVersion"], &red)
    );
    for field in ["uid", "resourceVersion", "creationTimestamp", "generation"] {
        assert_eq!(got["metadata"][field], stored["metadata"][field], "{field}");
    }
    let (_, list) = call(loopback, "GET", &url("v2", ""), &none).await;
    let items = list["items"].as_array().unwrap();
    assert_eq!((items.len(), &items[0]["spec"]), (2, &red));
    let (_, page) = call(loopback, "GET", &url("v2", "?limit=1"), &none).await;
    assert_eq!(page["items"][0]["spec"], red);
    assert_eq!(page["metadata"]["remainingItemCount"], 1);
    let (_, table) = call(loopback, "GET", &url("v2", "?table=1"), &none).await;
    assert_eq!(
        (&table["kind"], &table["rows"][1]["cells"][0]),
        (&json!("Table"), &json!("b"))
    );

    let watch = open(
        loopback,
        "GET",
        &url("v2", "?watch=1&fieldSelector=metadata.name%3Da"),
        "",
    )
    .await;
    let mut watch = watch.into_body();
    let added = event(&mut watch).await.unwrap();
    assert_eq!(
        (&added["type"], &added["object"]["spec"]),
        (&json!("ADDED"), &red)
    );
    let blue = json!({"size": 2, color: "blue"});
    let patch = json!({"spec": {color: "blue"}, "metadata": {"finalizers": ["a.b/c"]}});
    let (code, patched) = call(loopback, "PATCH", &url("v2", "/a"), &patch).await;
    assert_eq!((code, &patched["spec"]), (200, &blue), "{patched}");
    let changed = event(&mut watch).await.unwrap();
    assert_eq!(
        (&changed["type"], &changed["object"]["spec"]),
        (&json!("MODIFIED"), &blue)
    );
    let (_, again) = call(loopback, "PATCH", &url("v2", "/a"), &patch).await;
    assert_eq!(
        again["metadata"]["resourceVersion"],
        patched["metadata"]["resourceVersion"]
    );

    let mut put = patched.clone();
    put["spec"]["size"] = 3.into();
    let (code, put) = call(loopback, "PUT", &url("v2", "/a"), &put).await;
    assert_eq!(
        (code, &put["spec"]),
        (200, &json!({"size": 3, color: "blue"}))
    );
    let (code, deleted) = call(loopback, "DELETE", &url("v2", "/a"), &none).await;
    assert_eq!(
        (code, &deleted["spec"]),
        (200, &put["spec"]),
        "it has a finalizer"
    );
    let (code, _) = call(
        loopback,
        "PATCH",
        &url("v2", "/a"),
        &json!({"metadata": {"finalizers": null}}),
    )
    .await;
    assert_eq!(code, 200);
    let last = last_event(&mut watch).await;
    assert_eq!(
        (&last["type"], &last["object"]["spec"]),
        (&json!("DELETED"), &put["spec"])
    );
}

#[tokio::test]
async fn kinds_convert_in_memory() {
    let functions = InMemoryConversion {
        to_hub: |object| Ok(renamed(object, "colour", "color")),
        from_hub: |object| Ok(renamed(object, "color", "colour")),
        json: None,
    };
    let server = serve_spoons(ConversionMethod::InMemory(functions), "colour").await;
    check(&server, "colour").await;
    server.stop().await;
}

#[tokio::test]
async fn kinds_convert_by_another_api_version() {
    let server = serve_spoons(ConversionMethod::Rename, "color").await;
    check(&server, "color").await;
    server.stop().await;

    // Each version has its own fields, and a read the defaults of the stored one, as in kube-apiserver.
    let server = serve_spoons(ConversionMethod::Rename, "colour").await;
    let loopback = &server.loopback.privileged();
    call(
        loopback,
        "POST",
        &url("v1", ""),
        &named("a", &json!({"color": "red", "size": 1})),
    )
    .await;
    let (_, got) = call(loopback, "GET", &url("v2", "/a"), &Value::Null).await;
    assert_eq!(got["spec"], json!({"size": 1}));
    server.stop().await;
}

#[tokio::test]
async fn kinds_convert_asynchronously() {
    let painter = Painter::new("");
    let method = ConversionMethod::Asynchronous(Arc::clone(&painter) as _);
    let server = serve_spoons(method, "colour").await;
    check(&server, "colour").await;
    let loopback = &server.loopback.privileged();
    for name in ["c", "d", "e"] {
        call(loopback, "POST", &url("v1", ""), &named(name, &json!({}))).await;
    }
    painter.taken();
    let (_, list) = call(loopback, "GET", &url("v2", ""), &Value::Null).await;
    assert_eq!(painter.taken(), (1, 4), "a list is one batch");
    assert_eq!(list["items"][1]["spec"], json!({"colour": "plain"}));
    assert_eq!(
        list["items"][1]["metadata"]["labels"],
        json!({"painted": "yes"})
    );
    assert_eq!(
        list["items"][1]["metadata"]["generation"], 1,
        "other metadata stays"
    );
    call(loopback, "GET", &url("v1", ""), &Value::Null).await;
    assert_eq!(painter.taken(), (0, 0), "nothing to convert");
    server.stop().await;
}

/// Stores v2 of the spoons from now on.
async fn store_v2(server: &Served, painter: &Arc<Painter>) {
    let v1 = ResourceDef {
        storage: false,
        ..spoon("v1", "color", None)
    };
    let method = ConversionMethod::Asynchronous(Arc::clone(painter) as _);
    let v2 = ResourceDef {
        storage: true,
        ..spoon("v2", "colour", Some(method))
    };
    let change = CatalogChange::new().definition(v1).definition(v2);
    server.registry.change(change).await.unwrap();
}

/// The collector looks at its progress more often than this converter answers.
#[tokio::test]
async fn the_garbage_collector_waits_for_a_slow_conversion() {
    let painter = Painter::new("slow");
    let method = ConversionMethod::Asynchronous(Arc::clone(&painter) as _);
    let server = serve_spoons(method, "colour").await;
    let loopback = &server.loopback.privileged();
    for name in ["a", "b", "c", "d", "e"] {
        let (code, _) = call(loopback, "POST", &url("v1", ""), &named(name, &json!({}))).await;
        assert_eq!(code, 201);
    }
    store_v2(&server, &painter).await;
    let foreground = json!({"propagationPolicy": "Foreground"});
    let (code, _) = call(loopback, "DELETE", &url("v2", "/a"), &foreground).await;
    assert_eq!(code, 200);
    let started = Instant::now();
    while call(loopback, "GET", &url("v2", "/a"), &Value::Null)
        .await
        .0
        != 404
    {
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "the collector does not get on"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn stored_objects_of_another_version_are_converted_by_their_readers() {
    let painter = Painter::new("");
    let method = ConversionMethod::Asynchronous(Arc::clone(&painter) as _);
    let server = serve_spoons(method, "colour").await;
    let loopback = &server.loopback.privileged();
    call(
        loopback,
        "POST",
        &url("v1", ""),
        &named("a", &json!({"color": "red"})),
    )
    .await;
    store_v2(&server, &painter).await;
    for (version, color) in [("v1", "color"), ("v2", "colour")] {
        let (_, got) = call(loopback, "GET", &url(version, "/a"), &Value::Null).await;
        assert_eq!(got["spec"], json!({color: "red"}));
        let (_, list) = call(loopback, "GET", &url(version, ""), &Value::Null).await;
        assert_eq!(list["items"][0]["spec"], json!({color: "red"}));
    }
    let (code, patched) = call(
        loopback,
        "PATCH",
        &url("v1", "/a"),
        &json!({"spec": {"size": 1}}),
    )
    .await;
    assert_eq!(
        (code, &patched["spec"]),
        (200, &json!({"color": "red", "size": 1}))
    );
    server.stop().await;
}

#[tokio::test]
async fn what_a_converter_does_wrong_is_told_as_kubernetes_tells_it() {
    let begin = "conversion webhook for kitchen.example.com/v1, Kind=Spoon";
    for (mistake, why) in [
        ("fails", "failed: no paint left"),
        ("count", "returned 0 objects, expected 1"),
        (
            "name",
            "returned invalid object: must have the same name: a != other",
        ),
        (
            "uid",
            "returned invalid object: must have the same UID: UID != other",
        ),
        (
            "kind",
            "returned invalid object at index 0: invalid kind (expected Spoon, received Fork)",
        ),
        (
            "version",
            "returned invalid object at index 0: invalid groupVersion (expected kitchen.example.com/v2, received \
             kitchen.example.com/v3)",
        ),
        (
            "labels",
            "returned invalid metadata: metadata.labels[painted] must be a string, but is int64 in converted object",
        ),
    ] {
        let method = ConversionMethod::Asynchronous(Painter::new(mistake));
        let server = serve_spoons(method, "colour").await;
        let loopback = &server.loopback.privileged();
        let (code, made) = call(loopback, "POST", &url("v1", ""), &named("a", &json!({}))).await;
        assert_eq!(code, 201, "{made}");
        let uid = made["metadata"]["uid"].as_str().unwrap();
        let text = format!("{begin} {}", why.replace("UID !=", &format!("{uid} !=")));
        for rest in ["/a", ""] {
            let (code, failure) = call(loopback, "GET", &url("v2", rest), &Value::Null).await;
            assert_eq!(
                (code, failure["message"].as_str()),
                (500, Some(&*text)),
                "{mistake}"
            );
        }
        let watch = open(loopback, "GET", &url("v2", "?watch=1"), "").await;
        assert_eq!(watch.status(), 200);
        let mut watch = watch.into_body();
        let error = event(&mut watch).await.unwrap();
        assert_eq!(
            (&error["type"], error["object"]["message"].as_str()),
            (&json!("ERROR"), Some(&*text))
        );
        assert_eq!(event(&mut watch).await, None, "an error ends the watch");
        drop(watch);
        let (code, text) = read(open(loopback, "GET", &url("v1", "/a"), "").await).await;
        assert_eq!(code, 200, "{text}");
        server.stop().await;
    }
}

#[tokio::test]
async fn versions_of_a_kind_convert_in_one_way() {
    let server = serve(|builder| builder).await;
    let change = CatalogChange::new()
        .definition(spoon("v1", "color", None))
        .definition(spoon("v2", "color", Some(ConversionMethod::Rename)))
        .definition(spoon(
            "v3",
            "color",
            Some(ConversionMethod::Asynchronous(Painter::new(""))),
        ));
    let change = server.registry.change(change).await;
    // Only the first version is stored.
    let problems = change.unwrap_err();
    let text = "Spoon of kitchen.example.com/v2 and Spoon of kitchen.example.com/v3 convert in different ways";
    assert_eq!(problems, [text]);
    server.stop().await;
}
