//! Memory for CustomResourceDefinitions: of idle ones, and of those that come and go. One test, alone in its process: the
//! allocator counts what all threads have.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

use std::alloc::System;
use std::time::{Duration, Instant};

use apiloom::server::{Backend, Config, Loopback, Server};
use bytes::Bytes;
use cap::Cap;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Most memory of an idle definition, beyond the JSON of its schema: less than a second copy of that, or its tree.
const BESIDE_JSON: usize = 32 * 1024;

/// A client in process.
struct Client(Loopback);

impl Client {
    async fn send(&self, method: &str, url: &str, body: &Value) -> (u16, Value) {
        let text = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let request = Request::builder().method(method).uri(url);
        let request = request.body(Full::new(Bytes::from(text))).unwrap();
        let response = self.0.send(request).await;
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// The names of all definitions, those that are established first.
    async fn definitions(&self) -> (usize, usize) {
        let (_, list) = self.send("GET", CRDS, &Value::Null).await;
        let items = list["items"].as_array().unwrap();
        let is_established = |item: &&Value| {
            let conditions = item["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|one| one["type"] == "Established" && one["status"] == "True")
        };
        (items.len(), items.iter().filter(is_established).count())
    }

    /// Waits until there are this many definitions, all established.
    async fn until(&self, count: usize) {
        let started = Instant::now();
        while self.definitions().await != (count, count) {
            assert!(started.elapsed() < Duration::from_secs(120));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn create(&self, numbers: std::ops::Range<usize>, schema: &Value) {
        for number in numbers.clone() {
            let (code, made) = self.send("POST", CRDS, &definition(number, schema)).await;
            assert_eq!(code, 201, "{made}");
        }
        self.until(numbers.len()).await;
    }

    async fn delete(&self, numbers: std::ops::Range<usize>) {
        for number in numbers {
            let url = format!("{CRDS}/kinds{number}.ex.io");
            let (code, answer) = self.send("DELETE", &url, &Value::Null).await;
            assert_eq!(code, 200, "{answer}");
        }
        self.until(0).await;
    }
}

fn definition(number: usize, schema: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("kinds{number}.ex.io")},
        "spec": {
            "group": "ex.io", "scope": "Namespaced",
            "names": {"plural": format!("kinds{number}"), "kind": format!("Kind{number}")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

/// A schema with this many fields, each with a description, about 160 bytes each.
fn schema(fields: usize) -> Value {
    let description = "What this field is for, in a sentence or two, as authors of definitions write it for their users.";
    let fields: Map<String, Value> = (0..fields)
        .map(|number| {
            let field =
                json!({"type": "string", "description": description, "maxLength": number + 1});
            (format!("field{number}"), field)
        })
        .collect();
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}})
}

/// The memory that is used when the server is at rest.
async fn at_rest() -> usize {
    let mut least = ALLOCATOR.allocated();
    let mut since = Instant::now();
    while since.elapsed() < Duration::from_millis(1500) {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = ALLOCATOR.allocated();
        if now < least {
            (least, since) = (now, Instant::now());
        }
    }
    least
}

/// The number of rounds in which definitions come and go, and how many do.
fn rounds() -> (usize, usize) {
    let rounds = std::env::var("APILOOM_DEFINITION_ROUNDS").ok();
    rounds.map_or((4, 25), |rounds| (rounds.parse().unwrap(), 100))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn definitions_need_little_memory_and_leave_none() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::new("definitions", dir.path());
    // Neither the store nor the history of the watch cache is measured.
    config.backend = Backend::Embedded;
    config.watch_cache_history_bytes = Some(64 * 1024);
    let server = Server::builder(config).all_built_in();
    let server = server.build().await.unwrap().start().await.unwrap();
    let client = Client(server.loopback().privileged());
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(async { drop(stopped.await) }));

    let idle = 30;
    let large = schema(315);
    let json = large.to_string().len();
    assert!((45_000..55_000).contains(&json), "{json}");
    client.create(0..2, &large).await;
    client.delete(0..2).await;
    let before = at_rest().await;
    client.create(0..idle, &large).await;
    let each = (at_rest().await - before) / idle;
    println!("an idle definition with a schema of {json} bytes: {each} bytes");
    assert!(
        each < json + BESIDE_JSON,
        "{each} bytes with {json} of JSON"
    );
    client.delete(0..idle).await;

    let small = schema(20);
    let (rounds, count) = rounds();
    let mut after = Vec::new();
    for _ in 0..rounds {
        client.create(0..count, &small).await;
        client.delete(0..count).await;
        after.push(at_rest().await);
    }
    println!("after rounds of {count} definitions: {after:?} bytes");
    // The first round fills what has a limit.
    let (first, last) = (after[1], after[rounds - 1]);
    assert!(last < first + first / 10, "{after:?}");
    drop(stop);
    serving.await.unwrap();
}
