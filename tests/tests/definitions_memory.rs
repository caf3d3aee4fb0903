//! Memory for CustomResourceDefinitions: of idle ones, and of those that come and go. One test, alone in its process: the
//! allocator counts what all threads have.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

use std::alloc::System;
use std::time::{Duration, Instant};

use apiloom::server::{self, Backend, Config, Loopback};
use bytes::Bytes;
use cap::Cap;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Most memory of an idle definition, beyond the JSON of its schema. About 11.5 KB were measured; the history of the watch cache
/// has one object of 50 KB more or less.
const BESIDE_JSON: usize = 14 * 1024;

/// Most memory that all definitions together leave when they are gone: what has a limit, and room in tables.
const LEFT_OVER: usize = 128 * 1024;

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

    /// Waits until a GET of each definition has an answer that is expected.
    async fn until(
        &self,
        numbers: std::ops::Range<usize>,
        is_expected: impl Fn(u16, &Value) -> bool,
    ) {
        let started = Instant::now();
        for number in numbers {
            loop {
                let (code, answer) = self.send("GET", &path(number), &Value::Null).await;
                if is_expected(code, &answer) {
                    break;
                }
                assert!(started.elapsed() < Duration::from_secs(120), "{answer}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    async fn create(&self, numbers: std::ops::Range<usize>, schema: &Value) {
        for number in numbers.clone() {
            let (code, made) = self.send("POST", CRDS, &definition(number, schema)).await;
            assert_eq!(code, 201, "{made}");
        }
        self.until(numbers, |_, answer| is_established(answer))
            .await;
    }

    async fn delete(&self, numbers: std::ops::Range<usize>) {
        for number in numbers.clone() {
            let (code, answer) = self.send("DELETE", &path(number), &Value::Null).await;
            assert_eq!(code, 200, "{answer}");
        }
        self.until(numbers, |code, _| code == 404).await;
    }
}

fn path(number: usize) -> String {
    format!("{CRDS}/kinds{number}.ex.io")
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| one["type"] == "Established" && one["status"] == "True")
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
async fn at_rest(client: &Client) -> usize {
    let mut least = usize::MAX;
    let mut since = Instant::now();
    while since.elapsed() < Duration::from_millis(1500) {
        let now = used(client).await;
        if now < least {
            (least, since) = (now, Instant::now());
        }
    }
    least
}

/// The memory that is used now. The server drops what it made for requests of an earlier catalog with the first request for
/// the present one.
async fn used(client: &Client) -> usize {
    client.send("GET", "/version", &Value::Null).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    ALLOCATOR.allocated()
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
    let server = server::builder(config).all_built_in();
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
    let before = at_rest(&client).await;
    client.create(0..idle, &large).await;
    let each = (at_rest(&client).await - before) / idle;
    println!("an idle definition with a schema of {json} bytes: {each} bytes");
    assert!(
        each < json + BESIDE_JSON,
        "{each} bytes with {json} of JSON"
    );
    client.delete(0..idle).await;

    let small = schema(20);
    let (rounds, count) = rounds();
    // The first round fills what has a limit.
    client.create(0..count, &small).await;
    client.delete(0..count).await;
    let before = at_rest(&client).await;
    for _ in 1..rounds {
        client.create(0..count, &small).await;
        client.delete(0..count).await;
    }
    let definitions = (rounds - 1) * count;
    let started = Instant::now();
    loop {
        let left = used(&client).await.saturating_sub(before);
        if left < LEFT_OVER {
            println!("{definitions} definitions left {left} bytes");
            break;
        }
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "{definitions} definitions left {left} bytes"
        );
    }
    drop(stop);
    serving.await.unwrap();
}
