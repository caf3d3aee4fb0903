//! Objects that kube-apiserver stored in etcd, in its layout of keys and of bytes, with fields that this server does not
//! know: they are read, listed, watched and changed.

use apiloom::apis::{coordination, core};
use apiloom::meta::kind::{Resource, ResourceDef};
use apiloom_tests::etcd::Etcd;
use apiloom_tests::{Client, Server, revision};
use prost_reflect::Kind;
use prost_reflect::prost::Message as _;
use prost_reflect::prost::encoding;
use serde_json::{Value, json};

use super::served::envelope;
use super::{message_of, reference};

const PROTOBUF: &str = "--storage-media-type=application/vnd.kubernetes.protobuf";

/// The text of a field that no message of ours has.
const UNKNOWN: &str = "a field of a later release";

fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encoding::bytes::encode(number, &content.to_vec(), &mut out);
    out
}

/// An object and where it is stored and served.
struct Stored {
    def: ResourceDef,
    key: String,
    list: String,
    path: String,
    object: Value,
}

impl Stored {
    /// An object with all texts of ObjectMeta, as kube-apiserver writes them also if they are empty.
    fn new<K: Resource>(namespace: &str, content: Value) -> Self {
        let def = K::definition();
        let prefix = match &*def.group {
            "" => format!("/api/{}", def.version),
            group => format!("/apis/{group}/{}", def.version),
        };
        let mut object = content;
        object["metadata"] = json!({
            "name": "stored", "generateName": "", "namespace": namespace, "selfLink": "", "resourceVersion": "",
            "uid": "8f6d5ad5-21c1-4d1e-9e1a-0a2b3c4d5e6f", "generation": 0, "creationTimestamp": "2023-11-14T22:13:20Z",
            "labels": {"color": "red"},
            "managedFields": [{
                "manager": "kubectl-create", "operation": "Update", "apiVersion": def.api_version(), "subresource": "",
                "time": "2023-11-14T22:13:20Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {"f:color": {}}}},
            }],
        });
        if namespace.is_empty() {
            // Of every namespace, by default.
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = "stored".into();
        }
        let (folder, parent) = match namespace {
            "" => (String::new(), String::new()),
            namespace => (format!("{namespace}/"), format!("/namespaces/{namespace}")),
        };
        let list = format!("{prefix}{parent}/{}", def.plural);
        Self {
            key: format!("/registry/{}/{folder}stored", def.plural),
            path: format!("{list}/stored"),
            list,
            def,
            object,
        }
    }

    /// The bytes that kube-apiserver stores, with unknown fields in the object and in its metadata.
    fn bytes(&self) -> Vec<u8> {
        let of = message_of(&self.def);
        let Kind::Message(of_meta) = of.get_field_by_name("metadata").unwrap().kind() else {
            panic!("the metadata is a message");
        };
        let mut content = self.object.clone();
        let meta = content.as_object_mut().unwrap().remove("metadata").unwrap();
        let meta = reference::message(&meta, &of_meta).unwrap().encode_to_vec();
        let unknown = field(1000, UNKNOWN.as_bytes());
        let message = [
            field(1, &[meta, unknown.clone()].concat()),
            reference::message(&content, &of).unwrap().encode_to_vec(),
            unknown,
        ];
        let envelope = envelope(&self.def.api_version(), &self.def.kind, &message.concat());
        // The content encoding and the content type, which are empty.
        [envelope, field(3, b""), field(4, b"")].concat()
    }

    /// Asserts that an object is served as it was stored, with this color.
    #[track_caller]
    fn check(&self, found: &Value, color: &str) {
        let mut expected = self.object.clone();
        expected["metadata"]["labels"]["color"] = color.into();
        let metadata = expected["metadata"].as_object_mut().unwrap();
        metadata.retain(|_, value| *value != json!("") && *value != json!(0));
        metadata["managedFields"][0]
            .as_object_mut()
            .unwrap()
            .remove("subresource");
        metadata.insert(
            "resourceVersion".to_owned(),
            found["metadata"]["resourceVersion"].clone(),
        );
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(found[name], *value, "{name} of {found:#}");
        }
        assert!(revision(found) > 0);
    }
}

fn all() -> [Stored; 6] {
    let about =
        json!({"kind": "ConfigMap", "namespace": "default", "name": "a", "apiVersion": "v1"});
    [
        Stored::new::<core::v1::Namespace>(
            "",
            json!({"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}),
        ),
        Stored::new::<core::v1::ConfigMap>(
            "default",
            json!({"data": {"a": "b"}, "binaryData": {"c": "AP8="}}),
        ),
        Stored::new::<core::v1::Secret>(
            "default",
            json!({"data": {"a": "AP8="}, "type": "Opaque"}),
        ),
        Stored::new::<core::v1::ServiceAccount>("default", json!({"secrets": [{"name": "a"}]})),
        Stored::new::<core::v1::Event>(
            "default",
            json!({"involvedObject": about, "reason": "R", "message": "M", "type": "Normal", "count": 2, "source": {"component": "c"}}),
        ),
        Stored::new::<coordination::v1::Lease>(
            "default",
            json!({"spec": {"holderIdentity": "h", "leaseDurationSeconds": 15, "renewTime": "2023-11-14T22:13:20.123456Z"}}),
        ),
    ]
}

/// The objects of a list with a selector.
async fn selected(client: &Client, stored: &Stored) -> (Vec<Value>, u64) {
    let answer = client
        .get(&format!("{}?labelSelector=color", stored.list))
        .await;
    let list = answer.json();
    (list["items"].as_array().unwrap().clone(), revision(&list))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_kube_apiserver_stored_is_read_listed_watched_and_changed() {
    let etcd = Etcd::start(Etcd::NEWEST);
    let url = etcd.url();
    for (flags, is_protobuf) in [
        (&[PROTOBUF][..], true),
        (&[PROTOBUF, "--watch-cache=false"], true),
        (&["--storage-media-type=application/json"], false),
    ] {
        for stored in all() {
            etcd.put_bytes(&stored.key, &stored.bytes());
        }
        let args = [&["--etcd-servers", &url][..], flags].concat();
        let server = Server::start(&args);
        let client = server.client();
        for mut stored in all() {
            stored.check(&client.get(&stored.path).await.json(), "red");
            let (items, listed) = selected(&client, &stored).await;
            assert_eq!(items.len(), 1, "{items:?}");
            stored.check(&items[0], "red");
            let watched = format!(
                "{}?watch=1&resourceVersion={listed}&labelSelector=color",
                stored.list
            );
            let mut watch = client.watch(&watched).await;
            // kube-apiserver writes it again.
            stored.object["metadata"]["labels"]["color"] = "green".into();
            etcd.put_bytes(&stored.key, &stored.bytes());
            let event = watch.event().await;
            assert_eq!(event["type"], "MODIFIED");
            stored.check(&event["object"], "green");
            // Here it is stored in the format of this server, without the fields that it does not know.
            let patch = json!({"metadata": {"labels": {"more": "x"}}});
            let patched = client.merge(&stored.path, &patch).await;
            assert_eq!(patched.code, 200, "{}", patched.text());
            let patched = patched.json();
            let labels = &patched["metadata"]["labels"];
            assert_eq!(
                (&labels["color"], &labels["more"]),
                (&json!("green"), &json!("x"))
            );
            assert_eq!(watch.event().await["object"], patched);
            assert_eq!(client.get(&stored.path).await.json(), patched);
            let value = etcd.value(&stored.key);
            assert_eq!(value.starts_with(b"k8s\0"), is_protobuf, "{value:?}");
            assert!(
                !String::from_utf8_lossy(&value).contains(UNKNOWN),
                "{value:?}"
            );
        }
    }
}
