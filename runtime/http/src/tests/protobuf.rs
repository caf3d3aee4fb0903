//! Protobuf: objects of a kind with a description (Namespace), and the metadata of one without.

use std::collections::VecDeque;

use apiloom_kinds::core::v1::Namespace;
use apiloom_meta::codec::{InvalidText, PROTOBUF_PREFIX, ProtobufBody, append_protobuf_body};
use apiloom_meta::kind::protobuf::{PARTIAL_OBJECT_METADATA, STATUS};
use apiloom_meta::kind::{ProtobufField, ProtobufMessage, ProtobufType, Resource};
use serde_json::json;

use super::*;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const NAMESPACES: &str = "/api/v1/namespaces";
const METADATA: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

fn namespace() -> &'static ProtobufMessage {
    Namespace::definition().protobuf.expect("it is described")
}

/// A list of these messages, to read one.
static NAMESPACE_LIST: ProtobufMessage = ProtobufMessage::new("NamespaceList").fields(&[
    ProtobufField::new(
        1,
        "metadata",
        ProtobufType::Message(|| &apiloom_meta::kind::protobuf::LIST_META),
    ),
    ProtobufField::new(
        2,
        "items",
        ProtobufType::List(&ProtobufType::Message(namespace)),
    ),
]);

/// A document as a body.
fn body(message: &ProtobufMessage, json: &Value) -> Vec<u8> {
    let mut body = Vec::new();
    // `kind` comes first in documents of the API, but need not.
    append_protobuf_body(json.to_string().as_bytes(), message, &mut body).expect("is JSON");
    body
}

/// The JSON of a body.
fn json_of(message: &ProtobufMessage, body: &[u8]) -> Value {
    let body = ProtobufBody::parse(body).expect("is a body");
    let json = body.to_json(message, InvalidText::Refuse, 1 << 20);
    serde_json::from_slice(&json.expect("can be read")).expect("is JSON")
}

/// A response whose body is bytes.
struct Response {
    code: u16,
    content_type: String,
    body: Bytes,
}

impl Response {
    #[track_caller]
    fn read(&self, code: u16, message: &ProtobufMessage) -> Value {
        assert_eq!(
            (self.code, &*self.content_type),
            (code, PROTOBUF),
            "{:?}",
            self.body
        );
        json_of(message, &self.body)
    }
}

async fn send_bytes(
    api: &Api,
    (method, url): (&str, &str),
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> Response {
    let mut request = Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::from(body))).unwrap();
    let (parts, body) = open_with(api, request).await.into_parts();
    let content_type = parts.headers.get("content-type");
    Response {
        code: parts.status.as_u16(),
        content_type: content_type
            .map_or("", |value| value.to_str().unwrap())
            .to_owned(),
        body: body.collect().await.unwrap().to_bytes(),
    }
}

async fn get_protobuf(api: &Api, url: &str) -> Response {
    send_bytes(api, ("GET", url), &[("accept", PROTOBUF)], Vec::new()).await
}

async fn send_protobuf(api: &Api, to: (&str, &str), json: &Value) -> Response {
    let headers = [("accept", PROTOBUF), ("content-type", PROTOBUF)];
    send_bytes(api, to, &headers, body(namespace(), json)).await
}

fn named(name: &str) -> Value {
    json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name, "labels": {"a": "b"}}})
}

#[tokio::test]
async fn an_object_is_written_and_read_in_protobuf() {
    let api = api().await;
    let item = &format!("{NAMESPACES}/n");
    let created = send_protobuf(&api, ("POST", NAMESPACES), &named("n")).await;
    let created = created.read(201, namespace());
    let as_json = get(&api, item).await.expect(200);
    assert_eq!(created, as_json.json());
    assert_eq!(
        get_protobuf(&api, item).await.read(200, namespace()),
        created
    );

    let mut changed = created.clone();
    changed["metadata"]["labels"]["a"] = "c".into();
    let updated = send_protobuf(&api, ("PUT", item), &changed).await;
    let updated = updated.read(200, namespace());
    assert_eq!(updated["metadata"]["labels"]["a"], "c");
    // With the former resourceVersion it is a conflict, as a Status in Protobuf.
    changed["metadata"]["labels"]["a"] = "d".into();
    let conflict = send_protobuf(&api, ("PUT", item), &changed).await;
    let conflict = conflict.read(409, &STATUS);
    assert_eq!(
        (
            &conflict["kind"],
            &conflict["apiVersion"],
            &conflict["reason"],
            &conflict["details"]["name"]
        ),
        (
            &"Status".into(),
            &"v1".into(),
            &"Conflict".into(),
            &"n".into()
        )
    );

    // The response to a patch, and a dry run.
    let headers = [
        ("accept", PROTOBUF),
        ("content-type", "application/merge-patch+json"),
    ];
    let patch = br#"{"metadata":{"labels":{"a":"e"}}}"#.to_vec();
    let dry = &format!("{item}?dryRun=All");
    for url in [dry, item] {
        let patched = send_bytes(&api, ("PATCH", url), &headers, patch.clone()).await;
        assert_eq!(
            patched.read(200, namespace())["metadata"]["labels"]["a"],
            "e"
        );
        let now = get(&api, item).await.expect(200).at("/metadata/labels/a");
        assert_eq!(now, if url == dry { "c" } else { "e" });
    }
    let dry = send_protobuf(
        &api,
        ("POST", &format!("{NAMESPACES}?dryRun=All")),
        &named("m"),
    )
    .await;
    assert_eq!(dry.read(201, namespace())["metadata"]["name"], "m");
    get(&api, &format!("{NAMESPACES}/m")).await.expect(404);
}

#[tokio::test]
async fn unknown_fields_are_never_an_error_in_protobuf() {
    let api = api().await;
    let mut raw = body(namespace(), &named("n"));
    // A field 99 of the object: its message is the part before the last two fields, which are empty.
    let end = raw.split_off(raw.len() - 4);
    let length = raw.iter().position(|byte| *byte == 0x12).expect("the kind");
    let length = length + 2 + raw[length + 1] as usize + 1;
    raw[length] += 3;
    raw.extend([0x98, 0x06, 0x01]);
    raw.extend(end);
    let strict = format!("{NAMESPACES}?fieldValidation=Strict");
    let headers = [("content-type", PROTOBUF), ("accept", PROTOBUF)];
    let created = send_bytes(&api, ("POST", &strict), &headers, raw).await;
    assert_eq!(created.read(201, namespace())["metadata"]["name"], "n");
}

#[tokio::test]
async fn lists_have_the_length_of_all_their_items() {
    let api = api().await;
    // More than is sent in one piece.
    let long = "x".repeat(40_000);
    for number in 0..12 {
        let mut object = named(&format!("n{number:02}"));
        object["metadata"]["annotations"] = json!({"long": long, "short": "<\n"});
        let created = send_protobuf(&api, ("POST", NAMESPACES), &object).await;
        assert_eq!(created.code, 201);
    }
    for query in ["", "?limit=5", "?labelSelector=a%3Db"] {
        let url = format!("{NAMESPACES}{query}");
        let list = get_protobuf(&api, &url).await.read(200, &NAMESPACE_LIST);
        let mut expected = get(&api, &url).await.expect(200).json();
        assert_eq!(list, expected.take(), "{query}");
    }
    // The size of an object is that of its present state.
    let patch = json!({"metadata": {"annotations": {"long": null}}});
    let url = format!("{NAMESPACES}/n03");
    let headers = [("content-type", "application/merge-patch+json")];
    let patch = patch.to_string().into_bytes();
    let patched = send_bytes(&api, ("PATCH", &url), &headers, patch).await;
    assert_eq!(patched.code, 200);
    let list = get_protobuf(&api, NAMESPACES).await;
    let mut expected = get(&api, NAMESPACES).await.expect(200).json();
    assert_eq!(list.read(200, &NAMESPACE_LIST), expected.take());
    let none = format!("{NAMESPACES}?labelSelector=none");
    let none = get_protobuf(&api, &none).await;
    let raw = ProtobufBody::parse(&none.body)
        .expect("a body")
        .message
        .to_vec();
    assert!(raw.starts_with(b"\x0a\x04\x12\x02"), "{raw:?}");
}

#[tokio::test]
async fn a_kind_without_a_description_has_its_metadata_in_protobuf() {
    let api = api().await;
    create_flunder(&api, "a").await;
    create_flunder(&api, "b").await;
    let one = METADATA.replace("MetadataList", "Metadata");
    let item = &format!("{FLUNDERS}/a");
    let partial = send_bytes(&api, ("GET", item), &[("accept", &one)], Vec::new()).await;
    let partial = partial.read(200, &PARTIAL_OBJECT_METADATA);
    let whole = get(&api, item).await.expect(200);
    assert_eq!(
        partial,
        json!({
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": whole.at("/metadata"),
        })
    );
    let list = send_bytes(&api, ("GET", FLUNDERS), &[("accept", METADATA)], Vec::new()).await;
    let list = list.read(
        200,
        &apiloom_meta::kind::protobuf::PARTIAL_OBJECT_METADATA_LIST,
    );
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["items"][0]["metadata"], whole.at("/metadata"));
    assert_eq!(list["items"].as_array().map(Vec::len), Some(2));

    // The object itself is JSON, if the client takes that.
    let both = format!("{PROTOBUF},application/json");
    let whole = send_bytes(&api, ("GET", item), &[("accept", &both)], Vec::new()).await;
    assert_eq!(
        (whole.code, &*whole.content_type),
        (200, "application/json")
    );
    // Errors are in Protobuf for every kind.
    let missing = send_bytes(
        &api,
        ("GET", &format!("{item}x")),
        &[("accept", &both)],
        Vec::new(),
    )
    .await;
    assert_eq!(missing.read(404, &STATUS)["reason"], "NotFound");
}

#[tokio::test]
async fn a_table_has_no_protobuf() {
    let api = api().await;
    let table = "as=Table;g=meta.k8s.io;v=v1";
    let accept = format!("{PROTOBUF};{table},application/json;{table}");
    let table = get_as(&api, &accept, NAMESPACES).await.expect(200);
    assert_eq!(table.at("/kind"), "Table");
    let only = get_as(
        &api,
        &format!("{PROTOBUF};as=Table;g=meta.k8s.io;v=v1"),
        NAMESPACES,
    )
    .await;
    only.expect(406);
}

#[tokio::test]
async fn a_deletion_takes_options_and_answers_in_protobuf() {
    let api = api().await;
    create_flunder(&api, "a").await;
    let options = json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "preconditions": {"uid": "no"}});
    let options = body(&apiloom_meta::kind::protobuf::DELETE_OPTIONS, &options);
    let item = &format!("{FLUNDERS}/a");
    let headers = [
        ("content-type", PROTOBUF),
        ("accept", &*format!("{PROTOBUF},application/json")),
    ];
    let refused = send_bytes(&api, ("DELETE", item), &headers, options).await;
    assert_eq!(refused.read(409, &STATUS)["reason"], "Conflict");
    send_protobuf(&api, ("POST", NAMESPACES), &named("n"))
        .await
        .read(201, namespace());
    let options =
        json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
    let options = body(&apiloom_meta::kind::protobuf::DELETE_OPTIONS, &options);
    let deleted = send_bytes(
        &api,
        ("DELETE", &format!("{NAMESPACES}/n")),
        &headers,
        options,
    )
    .await;
    let deleted = deleted.read(200, namespace());
    assert_eq!(deleted["status"]["phase"], "Terminating");
}

/// A watch in Protobuf: frames with a length.
struct Frames {
    body: Body,
    bytes: VecDeque<u8>,
}

/// What a watch sends, as a message.
static WATCH_EVENT: ProtobufMessage = ProtobufMessage::new("WatchEvent").fields(&[
    ProtobufField::new(1, "type", ProtobufType::Text),
    ProtobufField::new(2, "object", ProtobufType::Message(|| &RAW)),
]);
static RAW: ProtobufMessage = ProtobufMessage::new("RawExtension").fields(&[ProtobufField::new(
    1,
    "raw",
    ProtobufType::Bytes,
)]);

impl Frames {
    async fn open(api: &Api, accept: &str, url: &str) -> Self {
        let response = open(api, "GET", url, &[("accept", accept)], "").await;
        assert_eq!(response.status(), 200);
        assert_eq!(
            response.headers()["content-type"],
            "application/vnd.kubernetes.protobuf;stream=watch"
        );
        Self {
            body: response.into_body(),
            bytes: VecDeque::new(),
        }
    }

    async fn take(&mut self, len: usize) -> Vec<u8> {
        while self.bytes.len() < len {
            let frame = self.body.frame().await.expect("goes on").unwrap();
            self.bytes.extend(frame.into_data().unwrap());
        }
        self.bytes.drain(..len).collect()
    }

    /// The type and the object of the next event.
    async fn event(&mut self, message: &ProtobufMessage) -> (String, Value) {
        let length = self.take(4).await.try_into().expect("four bytes");
        let event = self.take(u32::from_be_bytes(length) as usize).await;
        assert!(!event.starts_with(PROTOBUF_PREFIX));
        let event = ProtobufBody {
            message: &event,
            ..ProtobufBody::default()
        };
        let event = event
            .to_json(&WATCH_EVENT, InvalidText::Refuse, 1 << 20)
            .expect("an event");
        let event: Value = serde_json::from_slice(&event).expect("is JSON");
        let raw = event["object"]["raw"].as_str().expect("an object");
        let object = apiloom_meta::bytes::decode(raw).expect("base64");
        let kind = event["type"].as_str().expect("a type").to_owned();
        (kind, json_of(message, &object))
    }
}

#[tokio::test]
async fn a_watch_has_frames_with_a_length() {
    let api = api().await;
    let existing = get(&api, &format!("{NAMESPACES}/default"))
        .await
        .expect(200)
        .json();
    let url = format!(
        "{NAMESPACES}?watch=1&allowWatchBookmarks=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan"
    );
    let mut watches = Vec::new();
    for _ in 0..2 {
        watches
            .push(Frames::open(&api, &format!("{PROTOBUF};stream=watch,{PROTOBUF}"), &url).await);
    }
    for watch in &mut watches {
        let event = watch.event(namespace()).await;
        assert_eq!(event, ("ADDED".to_owned(), existing.clone()));
        let (kind, bookmark) = watch.event(namespace()).await;
        assert_eq!(kind, "BOOKMARK");
        assert_eq!(
            bookmark["metadata"]["annotations"],
            json!({"k8s.io/initial-events-end": "true"})
        );
        assert_eq!(
            (&bookmark["kind"], &bookmark["apiVersion"]),
            (&"Namespace".into(), &"v1".into())
        );
    }
    // A large object, and a small one.
    for length in [100_000, 10] {
        let mut object = named(&format!("n{length}"));
        object["metadata"]["annotations"] = json!({"a": "x".repeat(length)});
        let created = send_protobuf(&api, ("POST", NAMESPACES), &object).await;
        let created = created.read(201, namespace());
        for watch in &mut watches {
            assert_eq!(
                watch.event(namespace()).await,
                ("ADDED".to_owned(), created.clone())
            );
        }
    }
}

#[tokio::test]
async fn the_metadata_of_every_kind_is_watched() {
    let api = api().await;
    create_flunder(&api, "a").await;
    let accept = METADATA.replace("MetadataList", "Metadata");
    let url = format!("{FLUNDERS}?watch=1");
    let mut watch = Frames::open(&api, &accept, &url).await;
    let (kind, object) = watch.event(&PARTIAL_OBJECT_METADATA).await;
    assert_eq!(
        (&*kind, &object["kind"]),
        ("ADDED", &"PartialObjectMetadata".into())
    );
    assert_eq!(object["metadata"]["name"], "a");
    let future = format!(
        "{url}&resourceVersion=9007199254740991&sendInitialEvents=1&resourceVersionMatch=NotOlderThan"
    );
    let mut watch = Frames::open(&api, &accept, &future).await;
    let (kind, status) = watch.event(&STATUS).await;
    assert_eq!(
        (&*kind, &status["kind"], &status["code"]),
        ("ERROR", &"Status".into(), &504.into())
    );
    // The object itself has no Protobuf; a watch of JSON has lines.
    let only = get_as(&api, &format!("{PROTOBUF};stream=watch"), &url).await;
    only.expect(406);
}

/// A kind without numbers and with the subresource scale.
fn scaled(registry: &mut RegistryBuilder) {
    registry.kind::<kinds::Scaled>();
}

#[tokio::test]
async fn a_scale_has_protobuf_also_if_its_object_has_none() {
    let api = api_of(scaled).await;
    let scale_message = apiloom_kinds::autoscaling::v1::Scale::definition();
    let scale_message = scale_message.protobuf.expect("it is described");
    let objects = "/apis/wardle.example.com/v1alpha1/namespaces/default/scaleds";
    let object = json!({"apiVersion": "wardle.example.com/v1alpha1", "kind": "Scaled", "metadata": {"name": "a"}, "spec": {"replicas": 1}});
    send(&api, "POST", objects, &[], &object.to_string())
        .await
        .expect(201);
    let path = &format!("{objects}/a/scale");
    let read = get_protobuf(&api, path).await.read(200, scale_message);
    assert_eq!(read, get(&api, path).await.expect(200).json());
    assert_eq!(
        (&read["kind"], &read["spec"]["replicas"]),
        (&"Scale".into(), &1.into())
    );

    let mut changed = read.clone();
    changed["spec"]["replicas"] = 3.into();
    let headers = [("accept", PROTOBUF), ("content-type", PROTOBUF)];
    let put = |message, json: &Value| {
        let body = body(message, json);
        send_bytes(&api, ("PUT", path), &headers, body)
    };
    let updated = put(scale_message, &changed).await.read(200, scale_message);
    assert_eq!(updated["spec"]["replicas"], 3);
    let object = get(&api, &format!("{objects}/a")).await.expect(200);
    assert_eq!(object.at("/spec/replicas"), 3);
    // Another kind of body is refused by its name, also one of a described kind.
    let refused = put(namespace(), &named("a")).await.read(400, &STATUS);
    assert_eq!(
        refused["message"],
        "Namespace in version \"v1\" cannot be handled as a Scale: converting (v1.Namespace) to (autoscaling.Scale): unknown conversion"
    );
    // The object itself has no Protobuf form still.
    let refused = get_protobuf(&api, &format!("{objects}/a")).await;
    assert_eq!(refused.code, 406);
    let refused = put_to(&api, &format!("{objects}/a"), body(scale_message, &changed)).await;
    assert_eq!(refused.code, 400);
}

async fn put_to(api: &Api, path: &str, body: Vec<u8>) -> Response {
    send_bytes(api, ("PUT", path), &[("content-type", PROTOBUF)], body).await
}
