//! Objects that the reference wrote, as a server takes them: they are those that the same JSON gives.

use apiloom::apis::{coordination, core, events};
use apiloom::meta::kind::Resource;
use apiloom::server::{self, Backend, Config, InProcess};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use prost_reflect::prost::Message as _;
use prost_reflect::prost::encoding;
use serde_json::{Value, json};

use super::kinds::WidgetType;
use super::{message_of, reference};

async fn server() -> InProcess {
    let mut config = Config::new("protobuf", "");
    config.backend = Backend::Memory;
    let builder = server::builder(config)
        .all_built_in()
        .kind::<wardle::v1alpha1::Fischer>()
        .kind::<WidgetType>();
    let built = builder.build().await;
    let built = built.unwrap_or_else(|problems| panic!("{problems}"));
    built.start().await.unwrap()
}

/// A request that must succeed; returns the object of its response.
async fn send(server: &InProcess, request: Request<Full<Bytes>>) -> Value {
    let shown = format!("{request:?}");
    let response = server.loopback().privileged().send(request).await;
    let code = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&body);
    assert!(code.is_success(), "{code} {shown}: {text}");
    serde_json::from_slice(&body).unwrap()
}

/// The message in the envelope of all bodies.
pub fn envelope(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let field = |number, content: &[u8]| {
        let mut out = Vec::new();
        encoding::bytes::encode(number, &content.to_vec(), &mut out);
        out
    };
    let type_meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &type_meta), field(2, message)].concat()
}

/// Creates the object in JSON and in Protobuf, and compares what the server has then.
async fn check<K: Resource>(server: &InProcess, namespace: &str, mut object: Value) {
    let def = K::definition();
    let prefix = match &*def.group {
        "" => format!("/api/{}", def.version),
        group => format!("/apis/{group}/{}", def.version),
    };
    let url = format!("{prefix}{namespace}/{}", def.plural);
    object["metadata"]["labels"] = json!({"a": "b", "c": ""});
    object["metadata"]["annotations"] = json!({"text": "\u{1f980}\n\"\\"});
    let mut found = Vec::new();
    for (format, media_type) in [
        ("json", "application/json"),
        ("protobuf", "application/vnd.kubernetes.protobuf"),
    ] {
        // The events of both groups are the same ones.
        let name = format!("{format}{}", def.group.replace('.', "-"));
        object["metadata"]["name"] = name.as_str().into();
        let body = if format == "json" {
            let mut object = object.clone();
            object["apiVersion"] = def.api_version().into();
            object["kind"] = def.kind.as_str().into();
            object.to_string().into_bytes()
        } else {
            let message = reference::message(&object, &message_of(&def)).unwrap();
            envelope(&def.api_version(), &def.kind, &message.encode_to_vec())
        };
        let request = Request::post(&url)
            .header("content-type", media_type)
            .header("user-agent", "test")
            .header("accept", "application/json");
        send(server, request.body(Full::from(body)).unwrap()).await;
        let get = Request::get(format!("{url}/{name}")).body(Full::default());
        let mut object = send(server, get.unwrap()).await;
        let metadata = object["metadata"].as_object_mut().unwrap();
        for name in ["name", "uid", "resourceVersion", "creationTimestamp"] {
            assert!(metadata.remove(name).is_some(), "{name}");
        }
        let labels = metadata["labels"].as_object_mut().unwrap();
        labels.remove("kubernetes.io/metadata.name");
        for entry in metadata["managedFields"].as_array_mut().unwrap() {
            assert!(entry.as_object_mut().unwrap().remove("time").is_some());
        }
        found.push(object);
    }
    assert_eq!(found[1], found[0], "{}", def.kind);
}

#[tokio::test]
async fn an_object_in_protobuf_is_the_one_in_json() {
    let server = server().await;
    let namespace = "/namespaces/default";
    check::<core::v1::Namespace>(&server, "", json!({"spec": {}, "status": {}})).await;
    check::<core::v1::ConfigMap>(
        &server,
        namespace,
        json!({"data": {"a": "b", "empty": ""}, "binaryData": {"c": "AP8="}, "immutable": false}),
    )
    .await;
    check::<core::v1::Secret>(
        &server,
        namespace,
        json!({"data": {"a": "AP8="}, "stringData": {"b": "text"}}),
    )
    .await;
    check::<core::v1::ServiceAccount>(
        &server,
        namespace,
        json!({"secrets": [{"name": "a"}, {"name": "b"}], "automountServiceAccountToken": false}),
    )
    .await;
    let object =
        json!({"kind": "ConfigMap", "namespace": "default", "name": "a", "apiVersion": "v1"});
    check::<core::v1::Event>(
        &server,
        namespace,
        json!({
            "involvedObject": object, "reason": "R", "message": "M", "type": "Normal", "count": 2, "source": {"component": "c"},
            "firstTimestamp": "2023-11-14T22:13:20Z", "lastTimestamp": "2023-11-14T22:13:20Z",
        }),
    )
    .await;
    check::<events::v1::Event>(
        &server,
        namespace,
        json!({
            "eventTime": "2023-11-14T22:13:20.000001Z", "reportingController": "example.com/c", "reportingInstance": "i",
            "action": "A", "reason": "R", "note": "N", "type": "Warning", "regarding": object, "related": object,
        }),
    )
    .await;
    check::<coordination::v1::Lease>(
        &server,
        namespace,
        json!({"spec": {
            "holderIdentity": "", "leaseDurationSeconds": 15, "leaseTransitions": 0,
            "acquireTime": "2023-11-14T22:13:20.123456Z", "renewTime": "1969-12-31T23:59:59.999999Z",
        }}),
    )
    .await;
    check::<wardle::v1alpha1::Fischer>(&server, "", json!({"disallowedFlunders": ["a", ""]})).await;
    check::<WidgetType>(
        &server,
        namespace,
        json!({
            "spec": {
                "text": "", "omitted": "x", "required": "r", "defaulted": 0,
                "numbers": {
                    "a": i64::MIN, "b": u32::MAX, "c": i64::MAX, "d": 0.25, "e": -1e300, "f": 65535, "g": false,
                },
                "list": [{"name": "a", "items": [{"name": "b", "items": [{"name": "c"}]}]}],
                "map": {"cpu": ["100m", "1Gi"]}, "data": "AAEC", "more": {"k": "/w=="}, "any": {"x": [1, null, "y"]},
                "word": "Z", "choice": {"two": {"size": -1}}, "times": ["2023-11-14T22:13:20Z"],
                "atMicro": "2023-11-14T22:13:20.000001Z", "port": "http", "timeout": "1h30m0s",
                "selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]},
                "matrix-of-data": [[1, 2], [-3]], "wrapped": {"w": {"name": "n"}},
            },
            "status": {},
        }),
    )
    .await;
}
