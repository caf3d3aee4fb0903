//! Work on documents that would take long: it ends soon after its deadline, and after its client has left (point 3 of the bounds).

use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::runtime::Runtime;

use crate::arena;
use crate::definitions::{Attacked, MUCH_ROOM};
use crate::process;
use crate::wire::{Answered, Call, Http2, OPEN, Target};

/// How long the requests may take. Each of them would take several times as long.
const TIMEOUT: &str = "timeout=100ms";

/// What the server may spend on a request with that timeout: the parts of the work before its deadline is seen, in a build without
/// optimization.
pub(crate) const SPENT: Duration = Duration::from_secs(4);

/// How much processor time the rest of some work may take, and how long the beginning of some work.
const PATIENCE: Duration = Duration::from_secs(60);

const JSON: &str = "application/json";

/// Waits until the server does nothing. What goes on without an end is noticed by its processor time: on a busy machine the rest of the
/// work may take long.
pub(crate) async fn until_idle(pid: u32) {
    let started = process::cpu(pid);
    loop {
        let before = process::cpu(pid);
        tokio::time::sleep(Duration::from_millis(300)).await;
        // Caches, leases and timers take less than a tick of ten milliseconds now and then. Work that waits for a core takes none.
        let now = process::cpu(pid);
        if now - before <= Duration::from_millis(20) && !process::is_runnable(pid) {
            return;
        }
        assert!(now - started < PATIENCE, "the work does not end");
    }
}

/// Waits until the server has worked for some time on what was sent to it.
pub(crate) async fn until_busy(pid: u32) {
    let (started, before) = (Instant::now(), process::cpu(pid));
    while process::cpu(pid) - before < Duration::from_millis(300) {
        assert!(started.elapsed() < PATIENCE, "no work has begun");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Sends a request, resets its stream when the server works on it, and waits until that ends.
pub(crate) async fn reset_when_busy(pid: u32, http2: &Http2, call: Call<'_>) {
    let (answer, mut stream) = http2.send(call).await.unwrap();
    until_busy(pid).await;
    stream.send_reset(h2::Reason::CANCEL);
    drop((answer, stream));
    until_idle(pid).await;
}

/// A text without an order, so that an automaton has another state after each of its characters.
fn text(length: usize) -> String {
    let mut state = 1_u64;
    let next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        if state >> 63 == 0 { 'a' } else { 'b' }
    };
    std::iter::repeat_with(next).take(length).collect()
}

fn spec(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": schema}})
}

fn object(number: usize, spec: &Value) -> Value {
    json!({"apiVersion": "ex.io/v1", "kind": format!("Kind{number}"), "metadata": {"name": "a"}, "spec": spec})
}

/// A definition, and the request that makes long work of it.
struct Long {
    name: &'static str,
    schema: Value,
    method: &'static str,
    content_type: &'static str,
    body: fn(usize) -> Value,
}

/// The work of each of these takes several seconds, or minutes.
fn long_works() -> Vec<Long> {
    let create = |name, schema, body| Long {
        name,
        schema,
        method: "POST",
        content_type: JSON,
        body,
    };
    let named =
        json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let list = |items: &Value| json!({"type": "array", "items": items});
    let keyed = json!({"type": "array", "items": named, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]});
    vec![
        create(
            "a pattern",
            json!({"type": "string", "pattern": "[ab]*a[ab]{900}c"}),
            |number| object(number, &json!(text(2_900_000))),
        ),
        create(
            "patterns of items",
            list(&json!({"type": "string", "pattern": "[ab]*a[ab]{900}c"})),
            |number| object(number, &(0..700).map(|_| json!(text(4_000))).collect()),
        ),
        create(
            "rules",
            json!({"type": "array", "maxItems": 3_000, "items": {"type": "string", "maxLength": 1000},
                "x-kubernetes-validations": [{"rule": "self.all(x, x.find('[ab]*a[ab]{900}c') == '')"}]}),
            |number| object(number, &(0..2_900).map(|_| json!(text(990))).collect()),
        ),
        create("validation", list(&named), |number| {
            object(
                number,
                &(0..160_000)
                    .map(|at| json!({"name": at.to_string()}))
                    .collect(),
            )
        }),
        Long {
            name: "an apply",
            schema: keyed,
            method: "PATCH",
            content_type: "application/apply-patch+yaml",
            body: |number| {
                object(
                    number,
                    &(0..160_000)
                        .map(|at| json!({"name": at.to_string()}))
                        .collect(),
                )
            },
        },
    ]
}

/// Waits for a request and for what it leaves behind. Returns the answer, and what the server has spent.
pub(crate) async fn spent(pid: u32, target: &Target, call: Call<'_>) -> (Answered, Duration) {
    let before = process::cpu(pid);
    let answer = target.call(call).await.unwrap();
    until_idle(pid).await;
    (answer, process::cpu(pid) - before)
}

#[test]
fn work_ends_with_its_deadline() {
    let _turn = arena::turn();
    Runtime::new().unwrap().block_on(deadlines());
}

async fn deadlines() {
    let dir = tempfile::tempdir().unwrap();
    let attacked = Attacked::start(dir.path(), MUCH_ROOM);
    let (pid, target) = (attacked.server.pid(), Target::of(&attacked.server));
    let mut failures = Vec::new();
    for (number, long) in long_works().into_iter().enumerate() {
        attacked.define(number, &spec(&long.schema)).await;
        until_idle(pid).await;
        let body = Bytes::from((long.body)(number).to_string());
        assert!(
            body.len() < 3 << 20,
            "{} is no longer than a body may be",
            long.name
        );
        let mut path = format!("/apis/ex.io/v1/kinds{number}");
        if long.method == "PATCH" {
            path += "/a";
        }
        path += &format!("?{TIMEOUT}&fieldManager=m");
        let call = Call::new(long.method, &path).with_body(long.content_type, body);
        let (answer, cpu) = spent(pid, &target, call).await;
        println!("{}: {answer:?}, server CPU {cpu:?}", long.name);
        if answer.code != 504 || cpu > SPENT {
            failures.push(format!("{}: {answer:?} after {cpu:?}", long.name));
        }
        // Nothing of it was stored.
        let path = format!("/apis/ex.io/v1/kinds{number}/a");
        let stored = target.call(Call::new("GET", &path)).await.unwrap();
        assert_eq!(stored.code, 404, "{}: {stored:?}", long.name);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn work_ends_with_its_client() {
    let _turn = arena::turn();
    Runtime::new().unwrap().block_on(clients_that_leave());
}

async fn clients_that_leave() {
    let dir = tempfile::tempdir().unwrap();
    let attacked = Attacked::start(dir.path(), MUCH_ROOM);
    let (pid, target) = (attacked.server.pid(), Target::of(&attacked.server));
    let endless = long_works().remove(0);
    attacked.define(0, &spec(&endless.schema)).await;
    until_idle(pid).await;
    let body = Bytes::from((endless.body)(0).to_string());
    let path = "/apis/ex.io/v1/kinds0";
    let before = process::cpu(pid);

    // A stream of HTTP/2 that is reset while its connection stays.
    let http2 = target.http2(OPEN).await.unwrap();
    let call = Call::new("POST", path).with_body(JSON, body.clone());
    reset_when_busy(pid, &http2, call.clone()).await;

    // A connection of HTTP/2 that is closed.
    let held = http2.send(call).await.unwrap();
    until_busy(pid).await;
    drop((held, http2));
    until_idle(pid).await;

    // A connection of HTTP/1.1 that is closed.
    let mut http1 = target.tls("http/1.1").await.unwrap();
    let length = body.len().to_string();
    let head = target.head(
        "POST",
        path,
        &[("content-type", JSON), ("content-length", &length)],
    );
    http1.write_all(&[&head, &body[..]].concat()).await.unwrap();
    http1.flush().await.unwrap();
    until_busy(pid).await;
    drop(http1);
    until_idle(pid).await;

    let cpu = process::cpu(pid) - before;
    println!("three clients that left: server CPU {cpu:?}");
    assert!(cpu < 3 * SPENT, "{cpu:?}");
    let stored = target
        .call(Call::new("GET", &format!("{path}/a")))
        .await
        .unwrap();
    assert_eq!(stored.code, 404, "{stored:?}");
}
