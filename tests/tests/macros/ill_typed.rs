//! Objects stored by another tool with members of the wrong type: reads give the same result with and without the watch
//! cache, in every version and format, by get, list and watch.

use std::sync::Arc;

use apiloom::meta::codec::Encoder;
use apiloom::meta::schema::Schema;
use apiloom::meta::{GroupDef, Object, Resource};

use apiloom::server::{self, Config, InProcess};
use apiloom::storage::{Memory, Storage};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

use super::conversion::{odd, v1, v1alpha1};
use super::wardle;

/// A server over the common store, with or without the cache.
struct Server {
    server: InProcess,
}

impl Server {
    async fn start(store: &Arc<Memory>, cached: bool) -> Self {
        let mut config = Config::new("ill-typed", "");
        config.watch_cache_history_bytes = cached.then_some(1 << 20);
        let built = server::builder(config)
            .storage(Arc::clone(store) as Arc<dyn Storage>)
            .group(GroupDef {
                name: "example.com".into(),
                versions: vec!["v1".into(), "v1alpha1".into()].into(),
                release: None,
                place: None,
            })
            .group(GroupDef {
                name: "wardle.example.com".into(),
                versions: vec!["v1beta1".into(), "v1alpha1".into()].into(),
                release: None,
                place: None,
            })
            .kind::<v1::Box>()
            .kind::<v1alpha1::Box>()
            .kind::<odd::hub::Odd>()
            .kind::<odd::Odd>()
            .kind::<wardle::v1beta1::Flunder>()
            .kind::<wardle::v1alpha1::Flunder>()
            .build()
            .await
            .expect("the kinds are well-formed");
        let server = built.start().await.expect("memory can be read");
        Self { server }
    }

    /// The code and the body of a response; for a watch its initial events, or the first event when it resumes.
    async fn get(&self, url: &str, accept: &str) -> (u16, String) {
        let request = Request::get(url).header("accept", accept);
        let request = request.body(Full::new(Bytes::new())).unwrap();
        let loopback = self.server.loopback().privileged();
        let response = loopback.send(request).await;
        let code = response.status().as_u16();
        let mut body = response.into_body();
        let mut text = String::new();
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                text.push_str("(cut off)");
                break;
            };
            text.push_str(&String::from_utf8_lossy(frame.data_ref().unwrap()));
            let is_over = text.contains("\"BOOKMARK\"") || text.contains("\"ERROR\"");
            if url.contains("watch=true") && (is_over || url.contains("&resourceVersion=")) {
                break;
            }
        }
        (code, text)
    }
}

const FORMS: [&str; 4] = [
    "application/json",
    "application/yaml",
    "application/json;as=Table;g=meta.k8s.io;v=v1,application/json",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
];

/// A kind with two versions and an object of it, as stored.
struct Stored {
    group: &'static str,
    plural: &'static str,
    versions: [&'static str; 2],
    schema: Schema,
    object: Value,
}

fn stored() -> [Stored; 5] {
    let meta = json!({"namespace": "default", "uid": "u", "creationTimestamp": "2026-01-02T03:04:05Z", "generation": 1,
        "labels": {"l": "v"}, "annotations": {"a": "v"}, "finalizers": ["x/y"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u"}]});
    let inner = json!({"nested": {"zulu": "z", "alfa": -1}, "alfa": 1});
    [
        Stored {
            group: "example.com",
            plural: v1alpha1::Box::PLURAL,
            schema: Schema::for_resource::<v1alpha1::Box>().unwrap(),
            versions: ["v1alpha1", "v1"],
            object: json!({"apiVersion": "example.com/v1alpha1", "kind": "Box", "metadata": meta,
                "spec": {"minutes": 2, "oldName": "n", "forgotten": 3, "mode": "Odd"},
                "parts": [{"size": "1"}], "byName": {"k": {"size": "2"}}, "maybe": {"size": "3"}, "comment": "c"}),
        },
        Stored {
            group: "example.com",
            plural: odd::Odd::PLURAL,
            schema: Schema::for_resource::<odd::Odd>().unwrap(),
            versions: ["v1alpha1", "v1"],
            object: json!({"apiVersion": "example.com/v1alpha1", "kind": "Odd", "metadata": meta,
                "choice": {"inner": inner}, "large": 7, "double": 1.5, "at": "2023-11-14T22:08:20Z", "either": 80,
                "size": "1", "free": {"a": [1]}, "ordered": {"a": 1}, "hashed": {"k": inner}, "alpha": [inner],
                "zeta": inner}),
        },
        Stored {
            group: "wardle.example.com",
            plural: wardle::v1alpha1::Flunder::PLURAL,
            schema: Schema::for_resource::<wardle::v1alpha1::Flunder>().unwrap(),
            versions: ["v1alpha1", "v1beta1"],
            object: json!({"apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder", "metadata": meta,
                "spec": {"reference": "a", "referenceType": "Flunder"}, "status": {}}),
        },
        // In the version that this server does not store.
        Stored {
            group: "example.com",
            plural: v1::Box::PLURAL,
            schema: Schema::for_resource::<v1::Box>().unwrap(),
            versions: ["v1alpha1", "v1"],
            object: json!({"apiVersion": "example.com/v1", "kind": "Box", "metadata": meta,
                "spec": {"seconds": 120, "newName": "n", "onlyHere": false, "lost": "l", "mode": "Odd"},
                "parts": [{"size": 1}], "byName": {"k": {"size": 2}}, "maybe": {"size": 3}, "note": "c"}),
        },
        Stored {
            group: "wardle.example.com",
            plural: wardle::v1beta1::Flunder::PLURAL,
            schema: Schema::for_resource::<wardle::v1beta1::Flunder>().unwrap(),
            versions: ["v1alpha1", "v1beta1"],
            object: json!({"apiVersion": "wardle.example.com/v1beta1", "kind": "Flunder", "metadata": meta,
                "spec": {"flunderReference": "a", "referenceType": "Flunder"}, "status": {}}),
        },
    ]
}

/// The paths of all values inside a value.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    let mut below = |name: &str, value: &Value| {
        let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        pointers(value, &at, found);
        found.push(at);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| below(name, value)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(at, value)| below(&at.to_string(), value)),
        _ => {}
    }
}

/// Values of the wrong type for most members.
fn wrong_values() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(5),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!("x"),
        json!([]),
        json!([5, "x"]),
        json!({}),
        json!({"resourceVersion": "77", "x": {"y": 5}}),
        json!({"$serde_json::private::RawValue": "[1]"}),
        json!({"$serde_json::private::Number": "1"}),
        json!(-0.0),
        json!(["x", "Flunder"]),
    ]
}

/// Number of wrong values per member.
const PER_MEMBER: usize = 2;

/// Documents with one member of the wrong type each.
fn ill_typed(object: &Value) -> Vec<Value> {
    let mut paths = Vec::new();
    pointers(object, "", &mut paths);
    let kept = |path: &String| !matches!(path.as_str(), "/apiVersion" | "/kind" | "/metadata");
    let mut documents = vec![object.clone()];
    // A sample: all combinations would be too many, and many errors are alike.
    let wrong_values = wrong_values();
    for (number, path) in paths.iter().filter(|path| kept(path)).enumerate() {
        for wrong in
            (0..PER_MEMBER).map(|step| &wrong_values[(number + step * 5) % wrong_values.len()])
        {
            let mut document = object.clone();
            *document.pointer_mut(path).expect("the path exists") = wrong.clone();
            documents.push(document);
        }
    }
    documents
}

#[tokio::test]
async fn ill_typed_members_read_alike_with_and_without_the_cache() {
    let store = Arc::new(Memory::new());
    let kinds = stored();
    let mut objects = Vec::new();
    for kind in &kinds {
        for mut document in ill_typed(&kind.object) {
            // With sorted keys, as another tool may write it, and as this server would.
            for spelling in ["sorted", "own"] {
                let name = format!("o{}-{spelling}", 1000 + objects.len());
                document["metadata"]["name"] = json!(name);
                let key = format!("/registry/{}/{}/default/{name}", kind.group, kind.plural);
                let bytes = match spelling {
                    "own" => Encoder::of(&kind.schema)
                        .object(&Object::from_value(document.clone()).unwrap()),
                    _ => document.to_string().into(),
                };
                let revision = store.create(&key, bytes, None).await.unwrap();
                objects.push((kind, name, document.clone(), revision.0));
            }
        }
    }
    let servers = [
        Server::start(&store, false).await,
        Server::start(&store, true).await,
    ];
    let mut differing = Vec::new();
    let mut read = 0;
    for (kind, name, document, revision) in &objects {
        for version in kind.versions {
            let mut answers = Vec::new();
            let all = format!(
                "/apis/{}/{version}/namespaces/default/{}",
                kind.group, kind.plural
            );
            let named = format!("{all}?fieldSelector=metadata.name%3D{name}");
            let initial = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
            let urls = [
                format!("{all}/{name}"),
                named.clone(),
                format!("{named}&{initial}"),
                format!(
                    "{named}&watch=true&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion={}",
                    revision - 1
                ),
            ];
            for url in &urls {
                for form in FORMS {
                    let [without, with] = [
                        servers[0].get(url, form).await,
                        servers[1].get(url, form).await,
                    ];
                    if without != with {
                        differing.push(format!(
                            "{document}\n{url} as {form}\n without: {without:?}\n with:    {with:?}"
                        ));
                    }
                    answers.push((url, form, with));
                }
            }
            // If a get fails, a list and a watch must fail too, in every format. Watches have no YAML.
            let is_refused =
                |answer: &(u16, String)| answer.0 == 500 || answer.1.contains("\"ERROR\"");
            let refused = is_refused(&answers[0].2);
            for (url, form, answer) in answers {
                if answer.0 != 406 && is_refused(&answer) != refused {
                    differing.push(format!(
                        "{document}\n{url} as {form}\n get: {refused}\n this: {answer:?}"
                    ));
                }
            }
            read += usize::from(!refused);
        }
    }
    assert!(
        read > objects.len() / 2,
        "{read} answers of {}",
        objects.len()
    );
    let shown: Vec<&str> = differing.iter().take(40).map(String::as_str).collect();
    assert!(
        shown.is_empty(),
        "{} differ:\n{}",
        differing.len(),
        shown.join("\n")
    );
}
