//! What the tenant tries: one attack after the other, chosen at random. Any answer is right that comes; what is measured is the
//! server and its other user.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use apiloom_tests::wardle::{ALL_FLUNDERS, FISCHERS, FLUNDERS};
use bytes::Bytes;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use super::random::Random;
use super::rogue::{Rogue, SERVICE};
use crate::definitions::CRDS;
use crate::process;
use crate::stored_work::TABLE;
use crate::wire::{Answered, CLOSED, Call, Http2, OPEN, Target, Tls, Unread};
use apiloom_tests::frames::{self, CANCEL, END_HEADERS, END_STREAM, HEADERS, PING, RST_STREAM};

pub(super) const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const JSON: &str = "application/json";

/// How long an attack may take before the tenant tries the next.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connections that the tenant holds; the oldest is closed for a new one.
const HELD: usize = 40;

/// Definitions, APIServices and objects of which the tenant deletes one before it makes another. The server has to bound what is smaller.
const KEPT: usize = 30;

/// Documents of a crowd, and the items of each, which have two bytes.
const CROWD: usize = 30;
const CROWD_ITEMS: usize = 600_000;

/// How often each attack was answered with each code; `0` counts those without an answer.
pub(super) type Tried = BTreeMap<(&'static str, u16), usize>;

/// The sum over all workers.
pub(super) fn sum(all: Vec<Tried>) -> Tried {
    let mut sum = Tried::new();
    for (tried, count) in all.into_iter().flatten() {
        *sum.entry(tried).or_default() += count;
    }
    sum
}

/// What a connection that is held consists of.
enum Held {
    Raw {
        _stream: Box<Tls>,
    },
    Http2 {
        _http2: Box<Http2>,
        _unread: Option<Unread>,
    },
}

#[derive(Clone, Copy, Debug)]
enum Attack {
    Definition,
    WebhookDefinition,
    Service,
    Request,
    Object,
    Document,
    Crowd,
    Selector,
    Silence,
    Unread,
    Frames,
}

const ATTACKS: &[Attack] = &[
    Attack::Definition,
    Attack::WebhookDefinition,
    Attack::Service,
    Attack::Request,
    Attack::Object,
    Attack::Document,
    Attack::Crowd,
    Attack::Selector,
    Attack::Silence,
    Attack::Unread,
    Attack::Frames,
];

impl Attack {
    fn name(self) -> &'static str {
        match self {
            Self::Definition => "definition",
            Self::WebhookDefinition => "definition with a webhook",
            Self::Service => "APIService",
            Self::Request => "request to what was made",
            Self::Object => "object",
            Self::Document => "document",
            Self::Crowd => "crowd of documents",
            Self::Selector => "selector",
            Self::Silence => "silence",
            Self::Unread => "unread answer",
            Self::Frames => "frames",
        }
    }
}

/// A worker of the tenant.
pub(super) struct Tenant {
    target: Target,
    webhook: Value,
    bundle: String,
    worker: u64,
    random: Random,
    made: usize,
    /// The paths of what exists, oldest first.
    kept: Vec<String>,
    /// The collections of the kinds of its definitions and APIServices.
    collections: Vec<String>,
    held: Vec<Held>,
    tried: Tried,
}

impl Tenant {
    pub(super) fn new(target: Target, rogue: &Rogue, worker: u64, random: Random) -> Self {
        let url = format!("https://{}/convert", rogue.address);
        let webhook = json!({"strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"url": url, "caBundle": rogue.bundle},
        }});
        Self {
            target,
            webhook,
            bundle: rogue.bundle.clone(),
            worker,
            random,
            made: 0,
            kept: Vec::new(),
            collections: Vec::new(),
            held: Vec::new(),
            tried: Tried::new(),
        }
    }

    /// Attacks until this time, or until the server with this process has ended.
    pub(super) async fn attack_until(mut self, end: Instant, server: u32) -> Tried {
        while Instant::now() < end && !process::has_ended(server) {
            let attack = self.pick(ATTACKS);
            let code = tokio::time::timeout(PATIENCE, self.attack(attack)).await;
            let code = code.ok().flatten().unwrap_or_default();
            *self.tried.entry((attack.name(), code)).or_default() += 1;
        }
        self.tried
    }

    fn pick<T: Copy>(&mut self, some: &[T]) -> T {
        some[self.random.below(some.len())]
    }

    /// The code of the answer, if there is one.
    async fn attack(&mut self, attack: Attack) -> Option<u16> {
        match attack {
            Attack::Definition => {
                let schema = self.schema();
                let mut version = version("v1", true, &schema);
                version["additionalPrinterColumns"] = self.columns();
                self.define(json!([version]), json!({"strategy": "None"}))
                    .await
            }
            Attack::WebhookDefinition => {
                let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
                let versions = json!([version("v1", true, &any), version("v2", false, &any)]);
                self.define(versions, self.webhook.clone()).await
            }
            Attack::Service => self.register().await,
            Attack::Request => self.request().await,
            Attack::Object => self.object().await,
            Attack::Document => self.document().await,
            Attack::Crowd => self.crowd().await,
            Attack::Selector => self.selector().await,
            Attack::Silence => self.silence().await,
            Attack::Unread => self.unread().await,
            Attack::Frames => self.frames().await,
        }
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: String,
    ) -> Option<u16> {
        let call = Call::new(method, path).with_body(content_type, Bytes::from(body));
        self.code(call).await
    }

    async fn code(&self, call: Call<'_>) -> Option<u16> {
        let answer: Answered = self.target.call(call).await.ok()?;
        Some(answer.code)
    }

    /// Deletes the oldest of what was made, if there is too much of it.
    async fn make_room(&mut self) {
        if self.kept.len() < KEPT {
            return;
        }
        let path = self.kept.remove(0);
        self.code(Call::new("DELETE", &path)).await;
    }

    fn group(&mut self) -> String {
        self.made += 1;
        format!("w{}x{}.soak.example.com", self.worker, self.made)
    }

    /// Creates a definition of the kind `Thing`.
    async fn define(&mut self, versions: Value, conversion: Value) -> Option<u16> {
        self.make_room().await;
        let group = self.group();
        let name = format!("things.{group}");
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
            "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
                "versions": versions, "conversion": conversion},
        });
        let code = self
            .send("POST", CRDS, JSON, definition.to_string())
            .await?;
        if code == 201 {
            self.kept.push(format!("{CRDS}/{name}"));
            for version in versions.as_array().into_iter().flatten() {
                let version = version["name"].as_str().unwrap();
                self.note_collection(format!("/apis/{group}/{version}/namespaces/default/things"));
            }
        }
        Some(code)
    }

    /// Columns that all show the same part of an object.
    fn columns(&mut self) -> Value {
        let count = self.pick(&[0, 1000]);
        (0..count)
            .map(|at| json!({"name": format!("c{at}"), "type": "string", "jsonPath": ".spec"}))
            .collect()
    }

    /// A schema that costs more than it looks.
    fn schema(&mut self) -> Value {
        let many = self.pick(&[10, 200, 5000]);
        let properties = |of: &dyn Fn(usize) -> Value| {
            let properties: serde_json::Map<_, _> = (0..many)
                .map(|index| (format!("p{index}"), of(index)))
                .collect();
            json!({"type": "object", "properties": properties})
        };
        let spec = match self.random.below(9) {
            0 => properties(
                &|index| json!({"type": "string", "pattern": format!("^(a|b{index}){{1,200}}[\\pL]{{0,100}}$")}),
            ),
            1 => json!({"type": "array", "items": {"type": "string", "enum":
                (0..many * 20).map(|index| format!("value-{index}")).collect::<Vec<_>>()}}),
            2 => properties(&|index| {
                let rule = format!("self.matches('^(x|y{index})+$') && self.size() < {index}");
                json!({"type": "string", "maxLength": 100, "x-kubernetes-validations": [{"rule": rule}]})
            }),
            3 => {
                let mut nested = json!({"type": "string"});
                for _ in 0..many.min(300) {
                    nested = json!({"type": "object", "properties": {"a": nested}});
                }
                nested
            }
            4 => properties(&|_| json!({"type": "string", "default": "x".repeat(200)})),
            5 => properties(&|index| {
                json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string", "default": format!("{index}")}}}})
            }),
            6 => json!({"type": "array", "items": {"type": "array", "items": {"type": "string"},
                "x-kubernetes-validations": [{"rule": "self.all(x, self.all(y, self.all(z, x + y != z)))"}]}}),
            7 => {
                json!({"type": "array", "maxItems": 1000, "items": {"type": "string", "maxLength": 20},
                "x-kubernetes-validations": [{"rule": "self.all(x, self.exists_one(y, x == y))"}]})
            }
            _ => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "allOf": (0..many).map(|index| json!({"not": {"required": [format!("p{index}")]}})).collect::<Vec<_>>()}),
        };
        json!({"type": "object", "properties": {"spec": spec}})
    }

    async fn register(&mut self) -> Option<u16> {
        self.make_room().await;
        let group = self.group();
        let name = format!("v1.{group}");
        let service = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name},
            "spec": {"group": group, "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 10,
                "caBundle": self.bundle, "service": {"namespace": "default", "name": SERVICE}},
        });
        let code = self
            .send("POST", SERVICES, JSON, service.to_string())
            .await?;
        if code == 201 {
            self.kept.push(format!("{SERVICES}/{name}"));
            self.note_collection(format!("/apis/{group}/v1/things"));
        }
        Some(code)
    }

    /// Notes a collection for requests; the oldest is forgotten, since its kind is gone.
    fn note_collection(&mut self, path: String) {
        if self.collections.len() >= KEPT {
            self.collections.remove(0);
        }
        self.collections.push(path);
    }

    /// A request for a kind of its definitions and APIServices, which may be gone.
    async fn request(&mut self) -> Option<u16> {
        let paths = ["/apis", "/openapi/v2", "/openapi/v3"];
        if self.collections.is_empty() || self.random.below(8) == 0 {
            let path = self.pick(&paths);
            return self.code(Call::new("GET", path)).await;
        }
        let index = self.random.below(self.collections.len());
        let collection = self.collections[index].clone();
        match self.random.below(4) {
            0 => {
                let accept = self.pick(&[JSON, TABLE]);
                let list = Call::new("GET", &collection).with_header("accept", accept);
                self.code(list).await
            }
            1 => {
                let watch = format!("{collection}?watch=1&timeoutSeconds=1");
                self.code(Call::new("GET", &watch)).await
            }
            2 => self.code(Call::new("DELETE", &collection)).await,
            _ => {
                let mut parts = collection.split('/').skip(2);
                let api_version = format!("{}/{}", parts.next()?, parts.next()?);
                let spec = self.spec();
                let object = json!({"apiVersion": api_version, "kind": "Thing", "metadata": {"generateName": "t-"}, "spec": spec});
                self.send("POST", &collection, JSON, object.to_string())
                    .await
            }
        }
    }

    /// A spec for any of the schemas.
    fn spec(&mut self) -> Value {
        let many = self.pick(&[1, 100, 20_000]);
        match self.random.below(5) {
            0 => (0..many)
                .map(|index| (format!("p{index}"), json!("a".repeat(100))))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            1 => (0..many)
                .map(|index| json!(format!("value-{index}")))
                .collect::<Vec<_>>()
                .into(),
            2 => (0..many / 10)
                .map(|_| json!(["a", "b", "c"]))
                .collect::<Vec<_>>()
                .into(),
            3 => json!("x".repeat(many * 50)),
            _ => {
                let mut nested = json!("x");
                for _ in 0..many.min(300) {
                    nested = json!({"a": nested});
                }
                nested
            }
        }
    }

    async fn object(&mut self) -> Option<u16> {
        self.make_room().await;
        self.made += 1;
        let name = format!("soak-{}-{}", self.worker, self.made);
        let fill = self.pick(&[100, 50_000, 250_000]);
        let object = json!({"apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder",
            "metadata": {"name": name, "annotations": {"a": "x".repeat(fill)}}});
        let path = format!("{FLUNDERS}/{name}");
        let code = if self.random.below(2) == 0 {
            self.send("POST", FLUNDERS, JSON, object.to_string()).await
        } else {
            let apply = format!(
                "{path}?fieldManager=m{}&force=true",
                self.random.below(1000)
            );
            self.send(
                "PATCH",
                &apply,
                "application/apply-patch+yaml",
                object.to_string(),
            )
            .await
        };
        if matches!(code, Some(200 | 201)) && !self.kept.contains(&path) {
            self.kept.push(path);
        }
        code
    }

    /// A document that is deep, wide or wrong everywhere.
    async fn document(&mut self) -> Option<u16> {
        let many = self.pick(&[1000, 100_000]);
        let list = |item: &str| vec![item; many].join(",");
        let flunders = format!("{FLUNDERS}?dryRun=All");
        let fischers = format!("{FISCHERS}?dryRun=All");
        let of_metadata =
            |members: String| format!(r#"{{"metadata":{{"generateName":"d-",{members}}}}}"#);
        let (path, content_type, body) = match self.random.below(8) {
            0 => (
                &flunders,
                JSON,
                of_metadata(format!(r#""finalizers":[{}]"#, list("\"!\""))),
            ),
            1 => (
                &flunders,
                JSON,
                of_metadata(format!(r#""ownerReferences":[{}]"#, list("{}"))),
            ),
            2 => (
                &fischers,
                JSON,
                format!(
                    r#"{{"metadata":{{"generateName":"d-"}},"disallowedFlunders":[{}]}}"#,
                    list("1")
                ),
            ),
            3 => (&flunders, JSON, "[".repeat(many)),
            4 => (
                &flunders,
                JSON,
                of_metadata(format!(
                    r#""managedFields":[{}]"#,
                    list("{\"fieldsV1\":{\"f:a\":{}}}")
                )),
            ),
            5 => (
                &flunders,
                "application/yaml",
                format!("a: &a [{}]\nb: [{}]", list("x"), vec!["*a"; 1000].join(",")),
            ),
            6 => (
                &flunders,
                "application/yaml",
                format!("metadata: {{generateName: d-}}\n{}", "? ".repeat(many)),
            ),
            _ => (
                &flunders,
                JSON,
                format!(
                    r#"{{"metadata":{{"generateName":"d-"}},{}}}"#,
                    list(r#""unknown":1"#)
                ),
            ),
        };
        self.send("POST", path, content_type, body).await
    }

    /// Large documents at the same time: each is allowed, and their sum is too much. The code is the highest of them.
    async fn crowd(&mut self) -> Option<u16> {
        let path = format!("{FISCHERS}?dryRun=All");
        let wrong = vec!["1"; CROWD_ITEMS].join(",");
        let body =
            format!(r#"{{"metadata":{{"generateName":"c-"}},"disallowedFlunders":[{wrong}]}}"#);
        let body = Bytes::from(body);
        let http2 = self.target.http2(OPEN).await.ok()?;
        let call = || http2.call(Call::new("POST", &path).with_body(JSON, body.clone()));
        let answers = join_all((0..CROWD).map(|_| call())).await;
        answers
            .into_iter()
            .flatten()
            .map(|answer| answer.code)
            .max()
    }

    async fn selector(&mut self) -> Option<u16> {
        let many = self.pick(&[10, 1000, 6000]);
        let terms: Vec<_> = (0..many).map(|index| format!("k{index}!=v")).collect();
        let path = match self.random.below(4) {
            0 => format!("{ALL_FLUNDERS}?labelSelector={}", terms.join(",")),
            1 => format!(
                "{ALL_FLUNDERS}?labelSelector=k+in+({})",
                terms.join(",").replace("!=", ".")
            ),
            2 => format!("{ALL_FLUNDERS}?fieldSelector={}", terms.join(",")),
            _ => format!("{ALL_FLUNDERS}?limit=1&continue={}", "e".repeat(many)),
        };
        self.code(Call::new("GET", &path)).await
    }

    fn hold(&mut self, held: Held) {
        if self.held.len() >= HELD {
            self.held.remove(0);
        }
        self.held.push(held);
    }

    /// A connection that says half of something.
    async fn silence(&mut self) -> Option<u16> {
        let preface = frames::preface();
        let half_request = self
            .target
            .head("POST", FLUNDERS, &[("content-length", "1000000")]);
        let (protocol, bytes) = match self.random.below(5) {
            0 => ("h2", &preface[..10]),
            1 => ("h2", &preface[..]),
            2 => ("http/1.1", &half_request[..20]),
            3 => ("http/1.1", &half_request[..]),
            _ => ("http/1.1", &[][..]),
        };
        let mut stream = self.target.tls(protocol).await.ok()?;
        stream.write_all(bytes).await.ok()?;
        stream.flush().await.ok()?;
        self.hold(Held::Raw {
            _stream: Box::new(stream),
        });
        None
    }

    /// A list or a watch that is not read.
    async fn unread(&mut self) -> Option<u16> {
        let path = match self.random.below(4) {
            0 => ALL_FLUNDERS.to_owned(),
            1 => format!("{ALL_FLUNDERS}?watch=1&resourceVersion=0"),
            2 => "/openapi/v2".to_owned(),
            _ => format!("{ALL_FLUNDERS}?watch=1"),
        };
        let http2 = self.target.http2(CLOSED).await.ok()?;
        let unread = http2.open(Call::new("GET", &path)).await.ok()?;
        let code = unread.code;
        self.hold(Held::Http2 {
            _http2: Box::new(http2),
            _unread: Some(unread),
        });
        Some(code)
    }

    /// Many frames at once.
    async fn frames(&mut self) -> Option<u16> {
        let mut bytes = frames::preface();
        let block = self.target.block("GET", "/openapi/v2");
        let is_reset = self.random.below(2) == 0;
        for index in 0..500 {
            if is_reset {
                let stream = 2 * index + 1;
                frames::push(
                    &mut bytes,
                    HEADERS,
                    END_STREAM | END_HEADERS,
                    stream,
                    &block,
                );
                frames::push(&mut bytes, RST_STREAM, 0, stream, &CANCEL);
            } else {
                frames::push(
                    &mut bytes,
                    PING,
                    u8::try_from(index % 2).unwrap_or(0),
                    0,
                    &[0; 8],
                );
            }
        }
        let mut stream = self.target.tls_of_slow_reader("h2").await.ok()?;
        stream.write_all(&bytes).await.ok()?;
        let idle = self.target.http2(OPEN).await.ok()?;
        self.hold(Held::Raw {
            _stream: Box::new(stream),
        });
        self.hold(Held::Http2 {
            _http2: Box::new(idle),
            _unread: None,
        });
        None
    }
}

/// A version of a definition.
fn version(name: &str, is_stored: bool, schema: &Value) -> Value {
    json!({"name": name, "served": true, "storage": is_stored, "schema": {"openAPIV3Schema": schema}})
}
