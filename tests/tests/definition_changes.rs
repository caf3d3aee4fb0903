//! Definitions that come, change and go all the time: discovery and OpenAPI follow within a second, and readers of other kinds
//! pay nothing for it. Alone in its process: it counts the CPU time of readers. What else runs on the machine changes neither
//! result: the second is one in which a thread that never waits has a processor.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on panics, and says where"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use apiloom::server::{self, Backend, Config, Loopback};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use tokio::sync::oneshot;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// How long after a change of a definition documents may be old.
const FRESH: Duration = Duration::from_secs(1);

/// Definitions that are there all the time.
const PRESENT: usize = 30;

/// Time between two changes: 500 in a minute.
const BETWEEN: Duration = Duration::from_millis(120);

/// The time for which a thread that never waits had a processor: beside other processes it goes slower, as what is timed does.
struct BusyClock {
    nanoseconds: Arc<AtomicU64>,
}

impl BusyClock {
    /// Starts the thread, which ends with the clock.
    fn start() -> Self {
        let nanoseconds = Arc::new(AtomicU64::new(0));
        let shown = Arc::downgrade(&nanoseconds);
        std::thread::spawn(move || {
            while let Some(shown) = shown.upgrade() {
                let time = cpu_time().as_nanos() as u64;
                shown.store(time, Ordering::Relaxed);
            }
        });
        Self { nanoseconds }
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed))
    }
}

/// A client in process: its requests run in the task of the caller.
#[derive(Clone)]
struct Client(Loopback);

impl Client {
    async fn send(&self, method: &str, url: &str, body: &Value) -> (u16, Value) {
        let text = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let request = Request::builder().method(method).uri(url);
        let request = request.header("content-type", "application/json");
        let request = request.body(Full::new(Bytes::from(text))).unwrap();
        let response = self.0.send(request).await;
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn get(&self, url: &str) -> Value {
        self.send("GET", url, &Value::Null).await.1
    }

    async fn write(&self, method: &str, url: &str, body: &Value) {
        let (code, answer) = self.send(method, url, body).await;
        assert!(code < 300, "{method} {url}: {answer}");
    }

    /// Waits until the documents are as wanted, and returns when those that were had been asked for.
    async fn until(&self, clock: &BusyClock, is_seen: impl AsyncFn(&Self) -> bool) -> Duration {
        let started = clock.now();
        loop {
            let asked = clock.now() - started;
            if is_seen(self).await {
                return asked;
            }
            assert!(asked < 20 * FRESH);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// A definition in a group of its own, with one field.
fn definition(number: usize, field: &str) -> Value {
    let group = format!("g{number}.example.com");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {field: {"type": "string"}}}},
            }}}],
        },
    })
}

fn path(number: usize) -> String {
    format!("{CRDS}/things.g{number}.example.com")
}

/// The fields of things in a schema of OpenAPI.
fn has_field(schemas: &Value, number: usize, field: &str) -> bool {
    let thing = &schemas[format!("com.example.g{number}.v1.Thing")];
    thing["properties"]["spec"]["properties"][field].is_object()
}

/// Whether all documents show a definition with this field, or no definition.
async fn is_shown(client: &Client, number: usize, field: Option<&str>) -> bool {
    let group = format!("g{number}.example.com");
    let groups = client.get("/apis").await;
    let mut groups = groups["groups"].as_array().unwrap().iter();
    let in_groups = groups.any(|one| one["name"] == *group);
    let resources = client.get(&format!("/apis/{group}/v1")).await;
    let in_resources = resources["resources"][0]["name"] == "things";
    let index = client.get("/openapi/v3").await;
    let url = &index["paths"][format!("apis/{group}/v1")]["serverRelativeURL"];
    let v2 = client.get("/openapi/v2").await;
    let Some(field) = field else {
        let kind = &v2["definitions"][format!("com.example.g{number}.v1.Thing")];
        return !in_groups && !in_resources && url.is_null() && kind.is_null();
    };
    let Some(url) = url.as_str() else {
        return false;
    };
    let v3 = client.get(url).await;
    in_groups
        && in_resources
        && has_field(&v3["components"]["schemas"], number, field)
        && has_field(&v2["definitions"], number, field)
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// CPU time of one GET of an object of another kind: the median of parts, in which a reader on a thread of its own does `count`.
fn cost_of_gets(client: &Client, parts: usize, count: u32) -> Duration {
    let client = client.clone();
    let reader = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(async {
            let mut costs = Vec::new();
            for _ in 0..parts {
                let before = cpu_time();
                for _ in 0..count {
                    let (code, _) = client
                        .send("GET", "/api/v1/namespaces/default", &Value::Null)
                        .await;
                    assert_eq!(code, 200);
                }
                costs.push((cpu_time() - before) / count);
                // So that the reader is there during many changes.
                tokio::time::sleep(BETWEEN / 2).await;
            }
            costs.sort();
            costs[costs.len() / 2]
        })
    });
    reader.join().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_follow_definitions_and_readers_pay_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::new("definitions", dir.path());
    config.backend = Backend::Memory;
    let server = server::builder(config).all_built_in();
    let server = server.build().await.unwrap().start().await.unwrap();
    let client = Client(server.loopback().privileged());
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(async { drop(stopped.await) }));
    for number in 0..PRESENT {
        client
            .write("POST", CRDS, &definition(number, "first"))
            .await;
    }
    let clock = BusyClock::start();
    let last = async |client: &Client| is_shown(client, PRESENT - 1, Some("first")).await;
    client.until(&clock, last).await;

    // One after the other comes, changes and goes, while others stay.
    let mut delays = Vec::new();
    for number in PRESENT..PRESENT + 10 {
        client
            .write("POST", CRDS, &definition(number, "first"))
            .await;
        let came = async |client: &Client| is_shown(client, number, Some("first")).await;
        delays.push(client.until(&clock, came).await);
        let mut present = client.get(&path(number)).await;
        present["spec"] = definition(number, "second")["spec"].clone();
        client.write("PUT", &path(number), &present).await;
        let changed = async |client: &Client| is_shown(client, number, Some("second")).await;
        delays.push(client.until(&clock, changed).await);
        client.write("DELETE", &path(number), &Value::Null).await;
        let went = async |client: &Client| is_shown(client, number, None).await;
        delays.push(client.until(&clock, went).await);
    }
    drop(clock);
    delays.sort();
    let (median, slowest) = (delays[delays.len() / 2], delays[delays.len() - 1]);
    println!("documents are new after {median:?}, at most {slowest:?}");
    assert!(median < FRESH, "{delays:?}");
    // A single wait may be longer than the clock's thread knows.
    assert!(slowest < 5 * FRESH, "{delays:?}");

    // 500 changes a minute, while another thread reads.
    let reader = client.clone();
    let cost = |client: Client| tokio::task::spawn_blocking(move || cost_of_gets(&client, 30, 100));
    let idle = cost(reader.clone()).await.unwrap();
    let is_done = AtomicBool::new(false);
    let changes = async {
        let mut count = 0;
        let mut ticks = tokio::time::interval(BETWEEN);
        while !is_done.load(Ordering::Relaxed) {
            ticks.tick().await;
            let number = count % PRESENT;
            let mut present = client.get(&path(number)).await;
            let field = format!("field{count}");
            present["spec"] = definition(number, &field)["spec"].clone();
            client.write("PUT", &path(number), &present).await;
            count += 1;
        }
        count
    };
    let read = async {
        let cost = cost(reader).await.unwrap();
        is_done.store(true, Ordering::Relaxed);
        cost
    };
    let (count, busy) = tokio::join!(changes, read);
    println!("a GET costs {idle:?} of CPU, and {busy:?} during {count} changes");
    assert!(count > 10);
    assert!(
        busy < idle * 2,
        "{idle:?} without changes, {busy:?} with {count}"
    );
    drop(stop);
    serving.await.unwrap();
}
