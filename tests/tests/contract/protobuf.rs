//! Protobuf on the wire, of kinds that have a form in it and of those that have only their metadata in it. Bytes are read
//! here by their numbers, with another implementation.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;
use prost_reflect::prost::encoding::{DecodeContext, encode_key, encode_varint};
use prost_reflect::prost::encoding::{WireType, bytes, decode_key, decode_varint, skip_field};
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use crate::*;

on_each_backend![
    c_016_a_kind_without_protobuf_is_not_sent_in_it,
    c_017_the_metadata_of_every_kind_is_sent_in_protobuf,
    c_018_a_table_in_protobuf_is_skipped,
    c_029_a_body_without_the_prefix_is_malformed_and_a_kind_without_protobuf_is_refused,
    c_030_every_kind_takes_delete_options_in_protobuf,
    c_135_an_event_in_protobuf_begins_with_its_length,
    an_event_in_protobuf_is_a_binary_message_of_a_websocket,
    an_error_is_in_protobuf_wherever_it_arises,
    all_options_of_a_deletion_are_read_in_protobuf,
    a_definition_lives_in_protobuf,
];

/// The kind of hello, which has no numbers of fields.
const GREETINGS: &str = "/apis/hello.example.com/v1/namespaces/default/greetings";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const STREAM: &str = "application/vnd.kubernetes.protobuf;stream=watch";
/// What client-go's metadata client accepts for one object.
const METADATA: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const TABLE: &str = "as=Table;g=meta.k8s.io;v=v1";

/// A hello-server, whose kind has no Protobuf, and a client.
fn hello(on: Backend) -> (Cluster, Client) {
    let cluster = Cluster::start_binary(on, "hello-server");
    let client = cluster.client();
    (cluster, client)
}

fn greeting(name: &str) -> Value {
    json!({"apiVersion": "hello.example.com/v1", "kind": "Greeting", "metadata": {"name": name}, "spec": {"to": "you"}})
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

async fn get_as(client: &Client, path: &str, accept: &str) -> Answer {
    client.call("GET", path, &[("accept", accept)], "").await
}

/// The fields of a message with a length, by their numbers.
type Fields = BTreeMap<u32, Vec<Vec<u8>>>;

#[track_caller]
fn fields(mut message: &[u8]) -> Fields {
    let mut fields = Fields::new();
    while !message.is_empty() {
        let (number, wire_type) = decode_key(&mut message).unwrap();
        if wire_type == WireType::LengthDelimited {
            let mut field = Vec::new();
            bytes::merge(
                wire_type,
                &mut field,
                &mut message,
                DecodeContext::default(),
            )
            .unwrap();
            fields.entry(number).or_default().push(field);
        } else {
            skip_field(wire_type, number, &mut message, DecodeContext::default()).unwrap();
        }
    }
    fields
}

/// The first field of a number, as text.
#[track_caller]
fn text(fields: &Fields, number: u32) -> String {
    String::from_utf8(fields[&number][0].clone()).unwrap()
}

/// The `apiVersion`, the kind and the message of a body.
#[track_caller]
fn opened(body: &[u8]) -> (String, String, Fields) {
    let envelope = body.strip_prefix(b"k8s\0").expect("the prefix");
    let envelope = fields(envelope);
    // The encoding and the type of the content are written though they are empty.
    assert_eq!(envelope[&3], [b""]);
    assert_eq!(envelope[&4], [b""]);
    let kind = fields(&envelope[&1][0]);
    (text(&kind, 1), text(&kind, 2), fields(&envelope[&2][0]))
}

/// A message of strings and messages by their numbers.
fn message(texts: &[(u32, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, text) in texts {
        encode_key(*number, WireType::LengthDelimited, &mut out);
        encode_varint(text.len() as u64, &mut out);
        out.extend_from_slice(text);
    }
    out
}

/// A body of strings by their numbers.
fn body(api_version: &str, kind: &str, texts: &[(u32, &[u8])]) -> Vec<u8> {
    let kind = message(&[(1, api_version.as_bytes()), (2, kind.as_bytes())]);
    let envelope = message(&[(1, &kind), (2, &message(texts)), (3, b""), (4, b"")]);
    [b"k8s\0", &*envelope].concat()
}

/// The reason and the code of a Status in Protobuf.
#[track_caller]
fn failure(answer: &Answer) -> (String, u64) {
    assert_eq!(answer.header("content-type"), PROTOBUF, "{}", answer.text());
    let (api_version, kind, status) = opened(&answer.body);
    assert_eq!((&*api_version, &*kind), ("v1", "Status"));
    let envelope = fields(&answer.body[4..]);
    let mut message = &*envelope[&2][0];
    let mut code = 0;
    while !message.is_empty() {
        let (number, wire_type) = decode_key(&mut message).unwrap();
        if number == 6 {
            code = decode_varint(&mut message).unwrap();
        } else {
            skip_field(wire_type, number, &mut message, DecodeContext::default()).unwrap();
        }
    }
    (text(&status, 4), code)
}

async fn c_016_a_kind_without_protobuf_is_not_sent_in_it(on: Backend) {
    let (_server, client) = hello(on);
    let object = created(&client, GREETINGS, &greeting("a")).await;
    let item = format!("{GREETINGS}/a");
    let message = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf";
    for path in [GREETINGS, &item] {
        let refused = get_as(&client, path, PROTOBUF).await;
        check_failure(&refused, 406, "NotAcceptable", message, json!(null));
    }
    let watched = get_as(&client, &format!("{GREETINGS}?watch=1"), STREAM).await;
    assert_eq!(watched.code, 406, "{}", watched.text());
    let both = format!("{PROTOBUF}, application/json");
    check(&get_as(&client, &item, &both).await, 200, &object);
    let list = get_as(&client, GREETINGS, &both).await;
    assert_eq!(list.header("content-type"), "application/json");
    assert_eq!(names(&list.json()), ["a"]);
    // A write is refused before it changes anything.
    let headers = [("accept", PROTOBUF), ("content-type", "application/json")];
    let posted = client.call("POST", GREETINGS, &headers, greeting("b").to_string());
    assert_eq!(posted.await.code, 406);
    assert_eq!(client.get(&format!("{GREETINGS}/b")).await.code, 404);
}

async fn c_017_the_metadata_of_every_kind_is_sent_in_protobuf(on: Backend) {
    let (_server, client) = hello(on);
    let mut objects = Vec::new();
    for name in ["a", "b"] {
        objects.push(created(&client, GREETINGS, &greeting(name)).await);
    }
    let accept = METADATA.replace("PartialObjectMetadata", "PartialObjectMetadataList");
    let list = get_as(&client, GREETINGS, &accept).await;
    assert_eq!(
        (list.code, list.header("content-type")),
        (200, PROTOBUF),
        "{}",
        list.text()
    );
    let (api_version, kind, message) = opened(&list.body);
    assert_eq!(
        (&*api_version, &*kind),
        ("meta.k8s.io/v1", "PartialObjectMetadataList")
    );
    let resource_version = text(&fields(&message[&1][0]), 2);
    assert!(resource_version.parse::<u64>().unwrap() >= revision(&objects[1]));
    assert_eq!(message[&2].len(), objects.len());
    for (item, object) in message[&2].iter().zip(&objects) {
        let item = fields(item);
        assert_eq!(item.keys().collect::<Vec<_>>(), [&1], "only the metadata");
        let metadata = fields(&item[&1][0]);
        for (number, name) in [
            (1, "name"),
            (3, "namespace"),
            (5, "uid"),
            (6, "resourceVersion"),
        ] {
            assert_eq!(text(&metadata, number), object["metadata"][name], "{name}");
        }
    }
    // One object, and what a change shows.
    let item = format!("{GREETINGS}/a");
    let headers = [
        ("accept", METADATA),
        ("content-type", "application/merge-patch+json"),
    ];
    let patch = json!({"metadata": {"labels": {"c": "d"}}}).to_string();
    let patched = client.call("PATCH", &item, &headers, patch).await;
    let (api_version, kind, message) = opened(&patched.body);
    assert_eq!(
        (&*api_version, &*kind),
        ("meta.k8s.io/v1", "PartialObjectMetadata")
    );
    let label = fields(&fields(&message[&1][0])[&11][0]);
    assert_eq!((&*text(&label, 1), &*text(&label, 2)), ("c", "d"));
    assert_eq!(get_as(&client, &item, METADATA).await.body, patched.body);
}

async fn c_018_a_table_in_protobuf_is_skipped(on: Backend) {
    let (_server, client) = server(on);
    created(&client, CONFIG_MAPS, &config_map("a")).await;
    let skipped = format!("{PROTOBUF};{TABLE}");
    let table = get_as(
        &client,
        CONFIG_MAPS,
        &format!("{skipped},application/json;{TABLE}"),
    )
    .await;
    assert_eq!(
        (table.code, table.header("content-type")),
        (200, "application/json")
    );
    assert_eq!(table.json()["kind"], "Table");
    let list = get_as(&client, CONFIG_MAPS, &format!("{skipped},{PROTOBUF}")).await;
    assert_eq!(opened(&list.body).1, "ConfigMapList");
    let refused = get_as(&client, CONFIG_MAPS, &skipped).await;
    let message = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf";
    assert_eq!(
        (refused.code, refused.json()["message"].as_str()),
        (406, Some(message))
    );
}

async fn c_029_a_body_without_the_prefix_is_malformed_and_a_kind_without_protobuf_is_refused(
    on: Backend,
) {
    let (_server, client) = hello(on);
    let namespaces = "/api/v1/namespaces";
    let post = async |path: &str, body: Vec<u8>| {
        let headers = [("content-type", PROTOBUF)];
        client.call("POST", path, &headers, body).await
    };
    for malformed in [&b"{\"metadata\":{\"name\":\"a\"}}"[..], b"", b"k8", b"k8s"] {
        let answer = post(namespaces, malformed.to_vec()).await;
        let status = answer.json();
        assert_eq!(
            (answer.code, &status["reason"]),
            (400, &json!("BadRequest"))
        );
        let message = status["message"].as_str().unwrap();
        let expected = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
        assert!(message.contains(expected), "{message}");
    }
    let metadata = |name: &str| {
        // ObjectMeta is field 1 of every kind, and the name is its field 1.
        let name = name.as_bytes();
        [&[10, u8::try_from(name.len()).unwrap()], name].concat()
    };
    let object = body("hello.example.com/v1", "Greeting", &[(1, &metadata("a"))]);
    let message = "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf";
    for (method, path) in [("POST", GREETINGS), ("PUT", &format!("{GREETINGS}/a"))] {
        let headers = [("content-type", PROTOBUF)];
        let answer = client.call(method, path, &headers, object.clone()).await;
        check_failure(&answer, 415, "UnsupportedMediaType", message, json!(null));
    }
    // The server is well.
    let created = post(namespaces, body("v1", "Namespace", &[(1, &metadata("n"))])).await;
    assert_eq!(created.code, 201, "{}", created.text());
    assert_eq!(created.json()["metadata"]["name"], "n");
}

async fn c_030_every_kind_takes_delete_options_in_protobuf(on: Backend) {
    let (_server, client) = hello(on);
    let both = format!("{PROTOBUF},application/json");
    for (api_version, name) in [("v1", "a"), ("meta.k8s.io/v1", "b")] {
        let objects = [
            (GREETINGS, greeting(name)),
            ("/api/v1/namespaces", json!({"metadata": {"name": name}})),
        ];
        for (path, object) in objects {
            let item = format!("{path}/{name}");
            let uid = created(&client, path, &object).await["metadata"]["uid"].clone();
            let delete = async |uid: &str| {
                // `preconditions` is field 2, and its `uid` field 1.
                let preconditions =
                    [&[10, u8::try_from(uid.len()).unwrap()], uid.as_bytes()].concat();
                let options = body(api_version, "DeleteOptions", &[(2, &preconditions)]);
                let headers = [("content-type", PROTOBUF), ("accept", &*both)];
                client.call("DELETE", &item, &headers, options).await
            };
            let (reason, code) = failure(&delete("another").await);
            assert_eq!((&*reason, code), ("Conflict", 409), "{item} {api_version}");
            assert_eq!(client.get(&item).await.code, 200);
            let deleted = delete(uid.as_str().unwrap()).await;
            assert_eq!(
                deleted.code,
                200,
                "{item} {api_version}: {}",
                deleted.text()
            );
            // The answer is in the format of the kind's objects.
            if path == GREETINGS {
                assert_eq!(deleted.json()["status"], "Success");
            } else {
                assert_eq!(opened(&deleted.body).1, "Namespace");
            }
        }
    }
}

/// The type of an event, and the kind and the name of its object.
#[track_caller]
fn event(message: &[u8]) -> (String, String, String) {
    let event = fields(message);
    // The object is the raw bytes of an extension: a body of its own.
    let (_, kind, object) = opened(&fields(&event[&2][0])[&1][0]);
    let metadata = fields(&object[&1][0]);
    (text(&event, 1), kind, text(&metadata, 1))
}

fn of(kind: &str, object: &str, name: &str) -> (String, String, String) {
    (kind.to_owned(), object.to_owned(), name.to_owned())
}

async fn c_135_an_event_in_protobuf_begins_with_its_length(on: Backend) {
    let (_server, client) = server(on);
    for name in ["a", "b"] {
        created(&client, CONFIG_MAPS, &config_map(name)).await;
    }
    let path = format!("{CONFIG_MAPS}?watch=1&allowWatchBookmarks=true");
    for (accept, kind) in [
        (
            format!("{STREAM}, application/json;stream=watch"),
            "ConfigMap",
        ),
        (METADATA.to_owned(), "PartialObjectMetadata"),
    ] {
        let mut watch = client.watch_as(&path, &accept).await;
        assert_eq!(watch.header("content-type"), STREAM);
        for name in ["a", "b"] {
            assert_eq!(
                event(&watch.frame().await.unwrap()),
                of("ADDED", kind, name)
            );
        }
        let bookmark = fields(&watch.frame().await.unwrap());
        assert_eq!(text(&bookmark, 1), "BOOKMARK");
        let (_, marked, object) = opened(&fields(&bookmark[&2][0])[&1][0]);
        let resource_version = text(&fields(&object[&1][0]), 6);
        assert_eq!(marked, kind);
        // A large object, a change and a deletion.
        let mut large = config_map("large");
        large["data"]["a"] = "\u{e4}\n".repeat(50_000).into();
        created(&client, CONFIG_MAPS, &large).await;
        let item = format!("{CONFIG_MAPS}/large");
        let patched = client.merge(&item, &json!({"data": {"a": null}})).await;
        assert_eq!(patched.code, 200);
        assert_eq!(client.delete(&item, &json!(null)).await.code, 200);
        let from_there = format!("{path}&resourceVersion={resource_version}");
        let mut later = client.watch_as(&from_there, &accept).await;
        for kind_of_event in ["ADDED", "MODIFIED", "DELETED"] {
            let message = watch.frame().await.unwrap();
            assert_eq!(event(&message), of(kind_of_event, kind, "large"));
            assert_eq!(later.frame().await.unwrap(), message);
        }
    }
    // An error is an event too, with a Status.
    let future = revision(&client.get(CONFIG_MAPS).await.json()) + 1_000_000;
    let path = format!(
        "{path}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion={future}"
    );
    let mut watch = client.watch_as(&path, STREAM).await;
    let error = fields(&watch.frame().await.unwrap());
    assert_eq!(text(&error, 1), "ERROR");
    let (api_version, kind, status) = opened(&fields(&error[&2][0])[&1][0]);
    assert_eq!(
        (&*api_version, &*kind, &*text(&status, 2)),
        ("v1", "Status", "Failure")
    );
    assert_eq!(watch.frame().await, None, "the watch ends");
}

async fn an_event_in_protobuf_is_a_binary_message_of_a_websocket(on: Backend) {
    let (cluster, client) = server(on);
    created(&client, CONFIG_MAPS, &config_map("a")).await;
    let http1 = cluster.client_of_http1();
    let path = format!("{CONFIG_MAPS}?watch=1");
    let (code, _, socket) = http1.websocket(&path, &[("accept", STREAM)]).await;
    assert_eq!(code, 101);
    let mut socket = socket.unwrap();
    for name in ["a", "b"] {
        if name == "b" {
            created(&client, CONFIG_MAPS, &config_map(name)).await;
        }
        let message = tokio::time::timeout(std::time::Duration::from_secs(30), socket.next()).await;
        let message = message.expect("no message in time").unwrap().unwrap();
        let Message::Binary(message) = message else {
            panic!("{message:?}");
        };
        // The message has a length already, so there is no other one.
        assert_eq!(event(&message), of("ADDED", "ConfigMap", name));
    }
}

async fn an_error_is_in_protobuf_wherever_it_arises(on: Backend) {
    let (_server, client) = server(on);
    let anonymous = client.clone().anonymous();
    let unknown = client.clone().with_token("unknown");
    let far = format!("{CONFIG_MAPS}?limit=x");
    let accept = format!("{PROTOBUF}, application/json");
    for (client, method, path, expected) in [
        (&unknown, "GET", CONFIG_MAPS, ("Unauthorized", 401)),
        (&anonymous, "GET", CONFIG_MAPS, ("Forbidden", 403)),
        (&anonymous, "GET", "/nothing", ("Forbidden", 403)),
        (&client, "GET", "/api/v1/nothing", ("NotFound", 404)),
        (&client, "POST", "/api", ("MethodNotAllowed", 405)),
        (&client, "OPTIONS", CONFIG_MAPS, ("MethodNotAllowed", 405)),
        (&client, "GET", &far, ("BadRequest", 400)),
        (&client, "POST", CONFIG_MAPS, ("BadRequest", 400)),
    ] {
        let headers = [("accept", &*accept)];
        let answer = client.call(method, path, &headers, "").await;
        let (reason, code) = failure(&answer);
        let got = (&*reason, code);
        assert_eq!(got, expected, "{method} {path}");
        assert_eq!(u64::from(answer.code), code, "{method} {path}");
    }
    // No patch is in Protobuf.
    created(&client, CONFIG_MAPS, &config_map("a")).await;
    let headers = [("accept", &*accept), ("content-type", PROTOBUF)];
    let item = format!("{CONFIG_MAPS}/a");
    let patched = client.call("PATCH", &item, &headers, body("v1", "ConfigMap", &[]));
    let refused = failure(&patched.await);
    assert_eq!(refused, ("UnsupportedMediaType".to_owned(), 415));
}

async fn all_options_of_a_deletion_are_read_in_protobuf(on: Backend) {
    let (_server, client) = server_without_controllers(on);
    let item = format!("{CONFIG_MAPS}/a");
    let object = created(&client, CONFIG_MAPS, &config_map("a")).await;
    let delete = async |path: &str, options: &[(u32, &[u8])]| {
        let headers = [("content-type", PROTOBUF)];
        let options = body("v1", "DeleteOptions", options);
        client.call("DELETE", path, &headers, options).await
    };
    // `dryRun` is field 5, `propagationPolicy` field 4.
    assert_eq!(delete(&item, &[(5, b"All")]).await.code, 200);
    check(&client.get(&item).await, 200, &object);
    for wrong in [(5, &b"Some"[..]), (4, b"Somehow")] {
        let refused = delete(&item, &[wrong]).await;
        let reason = refused.json()["reason"].clone();
        assert_eq!((refused.code, reason), (422, json!("Invalid")));
    }
    let kept = delete(&item, &[(4, b"Foreground")]).await;
    assert_eq!(kept.code, 200);
    let finalizers = client.get(&item).await.json()["metadata"]["finalizers"].clone();
    assert_eq!(finalizers, json!(["foregroundDeletion"]));
    // Those of a collection.
    created(&client, CONFIG_MAPS, &config_map("b")).await;
    assert_eq!(delete(CONFIG_MAPS, &[(5, b"All")]).await.code, 200);
    assert_eq!(names(&client.get(CONFIG_MAPS).await.json()), ["a", "b"]);
    assert_eq!(delete(CONFIG_MAPS, &[]).await.code, 200);
    assert_eq!(names(&client.get(CONFIG_MAPS).await.json()), ["a"]);
    // What is no such message is refused.
    let headers = [("content-type", PROTOBUF)];
    for wrong in [
        body("v1", "ConfigMap", &[]),
        body("v2", "ConfigMap", &[]),
        b"k8s\0\x12\x7f".to_vec(),
    ] {
        let refused = client.call("DELETE", &item, &headers, wrong).await;
        assert_eq!(refused.code, 400, "{}", refused.text());
    }
}

/// A definition of wides in a group, whose spec keeps what no schema knows.
fn wides(group: &str) -> Vec<u8> {
    let names = message(&[(1, b"wides"), (4, b"Wide")]);
    let mut kept = message(&[(5, b"object")]);
    encode_key(38, WireType::Varint, &mut kept);
    encode_varint(1, &mut kept);
    let spec = message(&[(1, b"spec"), (2, &kept)]);
    let schema = message(&[(5, b"object"), (29, &spec)]);
    let mut version = message(&[(1, b"v1"), (4, &message(&[(1, &schema)]))]);
    // Served and stored.
    for number in [2, 3] {
        encode_key(number, WireType::Varint, &mut version);
        encode_varint(1, &mut version);
    }
    let spec = [
        (1, group.as_bytes()),
        (3, &names),
        (4, b"Cluster"),
        (7, &version),
    ];
    let name = format!("wides.{group}");
    let metadata = message(&[(1, name.as_bytes())]);
    let fields = [(1, &*metadata), (2, &message(&spec))];
    body(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        &fields,
    )
}

async fn a_definition_lives_in_protobuf(on: Backend) {
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (_server, client) = server(on);
    let headers = [("content-type", PROTOBUF), ("accept", PROTOBUF)];
    let mut watch = client
        .watch_as(&format!("{DEFINITIONS}?watch=1"), STREAM)
        .await;
    let answer = client.call("POST", DEFINITIONS, &headers, wides("p.io"));
    let answer = answer.await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    let (api_version, kind, object) = opened(&answer.body);
    assert_eq!(api_version, "apiextensions.k8s.io/v1");
    assert_eq!(kind, "CustomResourceDefinition");
    assert_eq!(text(&fields(&object[&1][0]), 1), "wides.p.io");
    // What it defaults to, and the schema, in both forms.
    let spec = fields(&object[&2][0]);
    assert_eq!(text(&fields(&spec[&3][0]), 5), "WideList");
    let version = fields(&spec[&7][0]);
    let schema = fields(&fields(&version[&4][0])[&1][0]);
    assert_eq!(text(&schema, 5), "object");
    let item = format!("{DEFINITIONS}/wides.p.io");
    let json = client.get(&item).await.json();
    assert_eq!(
        json["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
        json!({"type": "object", "properties": {
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    );
    // Each event has the whole object.
    let frame = watch.frame().await.expect("an event");
    let of_event = fields(&frame);
    assert_eq!(text(&of_event, 1), "ADDED");
    let shown = &fields(&of_event[&2][0])[&1][0];
    let (_, kind, shown) = opened(shown);
    assert_eq!(kind, "CustomResourceDefinition");
    assert_eq!(text(&fields(&shown[&1][0]), 1), "wides.p.io");
    // A list has them as its items.
    let list = get_as(&client, DEFINITIONS, PROTOBUF).await;
    let (_, kind, list) = opened(&list.body);
    assert_eq!(
        (&*kind, list[&2].len()),
        ("CustomResourceDefinitionList", 1)
    );
    // An error says what it is about.
    let again = client.call("POST", DEFINITIONS, &headers, wides("p.io"));
    assert_eq!(failure(&again.await), ("AlreadyExists".to_owned(), 409));
    let bad = client.call("POST", DEFINITIONS, &headers, wides("P"));
    let bad = bad.await;
    assert_eq!(failure(&bad), ("Invalid".to_owned(), 422));
    let details = fields(&opened(&bad.body).2[&5][0]);
    assert_eq!(text(&details, 3), "CustomResourceDefinition");
    let deleted = client.call(
        "DELETE",
        &item,
        &headers,
        body("v1", "DeleteOptions", &[(4, b"Background")]),
    );
    let deleted = deleted.await;
    assert_eq!(deleted.code, 200, "{}", deleted.text());
    assert_eq!(opened(&deleted.body).1, "CustomResourceDefinition");
}
