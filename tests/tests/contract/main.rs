//! Tests of the API's wire behaviour, over TLS against the wardle-server process, with each store.
//!
//! Each test is one behaviour of kube-apiserver, with a number of its own in its name. It checks the status code, the
//! headers that clients depend on and the whole body.

#![allow(clippy::unwrap_used, reason = "tests")]

/// Makes each check two tests: `embedded::NAME` and `etcd::NAME`, the second with two servers if `APILOOM_TEST_REPLICAS` is in
/// the environment. Clients have threads of their own, so that a test may
/// wait for the end of its server while they close their connections.
macro_rules! on_each_backend {
    ($($check:ident),* $(,)?) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                super::$check(crate::replicas::embedded()).await;
            })*
        }
        #[cfg(feature = "etcd")]
        mod etcd {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                super::$check(crate::replicas::etcd(concat!(module_path!(), "::", stringify!($check)))).await;
            })*
        }
    };
}

mod admission;
mod aggregation;
mod apply;
mod audit;
mod cache;
mod connect;
mod conversion;
mod create;
mod custom;
mod custom_values;
mod damage;
mod definition_conditions;
mod definitions;
mod delete;
mod discovery;
mod encryption;
mod errors;
mod formats;
mod garbage;
mod identities;
mod isolation;
mod lifecycle;
mod list;
mod namespaces;
mod patch;
mod paths;
mod permissions;
mod protobuf;
mod replicas;
mod requests;
mod scale;
mod storage;
mod subresources;
mod update;
mod watch;
mod webhook;

use std::time::{Duration, Instant};

use apiloom_tests::wardle::{ALL_FLUNDERS, FISCHERS, FLUNDERS, FLUNDERS_BETA, flunder};
use apiloom_tests::{
    Answer, Backend, Client, Cluster, Server, Watch, created, has_replicas, is_cached, revision,
};
use serde_json::{Value, json};

/// A new server for one check, and a client.
fn server(on: Backend) -> (Cluster, Client) {
    let cluster = Cluster::start(on);
    let client = cluster.client();
    (cluster, client)
}

/// A server that leaves the finalizers of deletions and of namespaces alone.
fn server_without_controllers(on: Backend) -> (Cluster, Client) {
    let cluster = Cluster::start_with(on, &["--controllers="]);
    let client = cluster.client();
    (cluster, client)
}

/// Repeats a GET until its response is as wanted: what the server's controllers do is seen later.
async fn until(client: &Client, path: &str, wanted: impl Fn(&Answer) -> bool) -> Answer {
    let limit = Duration::from_secs(60);
    until_answered(path, limit, async || client.get(path).await, wanted).await
}

/// Repeats a request until its response is as wanted. If it is not within the limit, the panic shows what was asked.
async fn until_answered(
    asked: &str,
    limit: Duration,
    ask: impl AsyncFn() -> Answer,
    wanted: impl Fn(&Answer) -> bool,
) -> Answer {
    let started = Instant::now();
    loop {
        let answer = ask().await;
        if wanted(&answer) {
            return answer;
        }
        assert!(started.elapsed() < limit, "{asked}: {}", answer.text());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Another server over the same store and a client; if the store cannot be shared, the first client.
fn another(cluster: &Cluster, client: &Client) -> (Option<Server>, Client) {
    let replica = cluster.replica();
    let client = replica.as_ref().map_or(client.clone(), Server::client);
    (replica, client)
}

fn flunder_beta(name: &str) -> Value {
    json!({"apiVersion": "wardle.example.com/v1beta1", "kind": "Flunder", "metadata": {"name": name}})
}

/// Asserts code, type and the whole body without managedFields. In `expected` the strings `$UID`, `$TIME`, `$RV` match any value of that
/// form.
#[track_caller]
fn check(answer: &Answer, code: u16, expected: &Value) {
    assert_eq!(answer.code, code, "{}", answer.text());
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.header("cache-control"), "no-cache, private");
    assert!(
        is_uid(answer.header("audit-id")),
        "Audit-Id is {:?}",
        answer.header("audit-id")
    );
    let body = answer.json();
    assert!(
        matches(expected, &body),
        "expected {expected:#}\ngot {body:#}"
    );
}

/// Asserts a failure: the Status with this message, reason and details, and a code that is also the HTTP code.
#[track_caller]
fn check_failure(answer: &Answer, code: u16, reason: &str, message: &str, details: Value) {
    let mut expected = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "code": code,
    });
    if !reason.is_empty() {
        expected["reason"] = json!(reason);
    }
    if !details.is_null() {
        expected["details"] = details;
    }
    check(answer, code, &expected);
}

/// The body of a response whose request had no time left.
const OUT_OF_TIME: &str = r#"{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},"code":504}"#;

/// The path of a list of a state that does not exist yet. A server with a watch cache waits for it, up to 3 s; others refuse it.
async fn in_the_future(client: &Client) -> String {
    let future = revision(&client.get(FLUNDERS).await.json()) + 1_000_000;
    format!("{FLUNDERS}?resourceVersion={future}")
}

/// The details of an error about one flunder.
fn about(name: &str) -> Value {
    json!({"name": name, "group": "wardle.example.com", "kind": "flunders"})
}

/// The details of an `Invalid` about one flunder, with its causes as `(reason, message, field)`.
fn invalid(name: &str, causes: &[(&str, &str, &str)]) -> Value {
    let causes: Vec<Value> =
        causes.iter().map(|(reason, message, field)| json!({"reason": reason, "message": message, "field": field})).collect();
    let mut details = json!({"group": "wardle.example.com", "kind": "Flunder", "causes": causes});
    if !name.is_empty() {
        details["name"] = json!(name);
    }
    details
}

/// Why list options are refused: the first words of the message, the reason, the rest of the message, the field.
type Cause<'a> = (&'static str, &'static str, &'a str, &'a str);

fn forbidden<'a>(why: &'a str, field: &'a str) -> Cause<'a> {
    ("Forbidden", "FieldValueForbidden", why, field)
}

fn unsupported<'a>(why: &'a str, field: &'a str) -> Cause<'a> {
    ("Unsupported value", "FieldValueNotSupported", why, field)
}

/// Asserts that list options are refused.
#[track_caller]
fn check_options(answer: &Answer, causes: &[Cause<'_>]) {
    let messages: Vec<String> = causes
        .iter()
        .map(|(words, _, rest, _)| format!("{words}: {rest}"))
        .collect();
    let full: Vec<String> = causes
        .iter()
        .zip(&messages)
        .map(|((.., field), message)| format!("{field}: {message}"))
        .collect();
    let full = match &full[..] {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    let causes: Vec<Value> = causes
        .iter()
        .zip(messages)
        .map(|((_, reason, _, field), message)| json!({"reason": reason, "message": message, "field": field}))
        .collect();
    let message = format!(r#"ListOptions.meta.k8s.io "" is invalid: {full}"#);
    let details = json!({"group": "meta.k8s.io", "kind": "ListOptions", "causes": causes});
    check_failure(answer, 422, "Invalid", &message, details);
}

fn matches(expected: &Value, got: &Value) -> bool {
    match (expected, got) {
        (Value::String(mark), Value::String(text)) => match mark.as_str() {
            "$UID" => is_uid(text),
            "$TIME" => is_time(text),
            "$RV" => text.parse::<u64>().is_ok_and(|revision| revision > 0),
            _ => mark == text,
        },
        (Value::Object(expected), Value::Object(got)) => {
            // Every write changes managedFields; the checks that are about them compare them.
            let compared = |fields: &serde_json::Map<String, Value>| {
                fields.keys().filter(|key| *key != "managedFields").count()
            };
            let same = |(key, value): (&String, &Value)| {
                key == "managedFields" || got.get(key).is_some_and(|got| matches(value, got))
            };
            compared(expected) == compared(got) && expected.iter().all(same)
        }
        (Value::Array(expected), Value::Array(got)) => {
            expected.len() == got.len()
                && expected
                    .iter()
                    .zip(got)
                    .all(|(expected, got)| matches(expected, got))
        }
        (expected, got) => expected == got,
    }
}

fn is_uid(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12]
        && text
            .chars()
            .all(|c| c == '-' || c.is_ascii_hexdigit() && !c.is_ascii_uppercase())
}

fn is_time(text: &str) -> bool {
    let pattern = "dddd-dd-ddTdd:dd:ddZ";
    text.len() == pattern.len()
        && text
            .chars()
            .zip(pattern.chars())
            .all(|(c, p)| if p == 'd' { c.is_ascii_digit() } else { c == p })
}

/// A selector or token, encoded for a query.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// The names of a list's items.
fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap();
    let names = items.iter().map(|item| item["metadata"]["name"].as_str());
    names.map(Option::unwrap).collect()
}
