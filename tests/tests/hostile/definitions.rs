//! CustomResourceDefinitions that would make the server keep too much, one by one and in sum, by clients who may write them.

use std::path::Path;
use std::time::{Duration, Instant};

use apiloom_tests::{Answer, Client, Server, build};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use crate::arena;
use crate::process::{self, MIB};

pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Memory for all definitions together in these tests.
const ROOM: &str = "--max-definition-bytes=67108864";

/// Memory for all definitions where it is not what the test is about.
pub(crate) const MUCH_ROOM: &str = "--max-definition-bytes=268435456";

/// What the attacks may add to the resident memory: the room above, the 128 MiB of kept programs, the requests in work, and what the
/// allocator has not given back.
const MOST_MIB: u64 = 320;

/// Timeout of what comes in a moment, unless other processes need the processors.
const PATIENCE: Duration = Duration::from_secs(300);

/// A schema with as many patterns, which are different in each definition and take some MiB each when they are compiled.
fn patterns(definition: usize, count: usize) -> Value {
    let property = |at: usize| {
        let pattern = format!("^(a|b{definition}x{at}){{1,200}}[\\pL]{{0,100}}$");
        (
            format!("p{at}"),
            json!({"type": "string", "pattern": pattern}),
        )
    };
    let properties: Map<_, _> = (0..count).map(property).collect();
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})
}

fn definition(number: usize, schema: &Value) -> Value {
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    definition_of(number, &json!([version]))
}

fn definition_of(number: usize, versions: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name(number)},
        "spec": {
            "group": "ex.io", "scope": "Cluster",
            "names": {"plural": format!("kinds{number}"), "kind": format!("Kind{number}")},
            "versions": versions,
        },
    })
}

fn name(number: usize) -> String {
    format!("kinds{number}.ex.io")
}

/// A server over a folder, and an administrator.
pub(crate) struct Attacked {
    pub(crate) server: Server,
    client: Client,
}

impl Attacked {
    pub(crate) fn start(folder: &Path, room: &str) -> Self {
        let server = Server::start_binary_in(&build("apiloom-serve"), folder, &[room]);
        let client = Client::new(server.kubeconfig());
        Self { server, client }
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let answer = send(&self.client, method, path, body).await;
        let answer = answer.unwrap();
        let json = serde_json::from_slice(&answer.body);
        (answer.code, json.unwrap_or_default())
    }

    /// Serves a kind with this schema.
    pub(crate) async fn define(&self, number: usize, schema: &Value) {
        self.serve(number, &definition(number, schema)).await;
    }

    /// Serves a kind with these versions.
    pub(crate) async fn define_versions(&self, number: usize, versions: &Value) {
        self.serve(number, &definition_of(number, versions)).await;
    }

    async fn serve(&self, number: usize, definition: &Value) {
        let (code, answer) = self.send("POST", CRDS, definition).await;
        assert_eq!(code, 201, "{answer}");
        self.until(number, "Established").await;
    }

    async fn create(&self, number: usize, count: usize) -> (u16, Value) {
        let definition = definition(number, &patterns(number, count));
        self.send("POST", CRDS, &definition).await
    }

    /// Waits until a definition has a condition that is true.
    async fn until(&self, number: usize, condition: &str) -> Value {
        let path = format!("{CRDS}/{}", name(number));
        let started = Instant::now();
        loop {
            let (_, found) = self.send("GET", &path, &Value::Null).await;
            let conditions = found["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            let is_met = |one: &&Value| one["type"] == condition && one["status"] == "True";
            if let Some(met) = conditions.find(is_met) {
                return met.clone();
            }
            assert!(started.elapsed() < PATIENCE, "{condition}: {found}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn until_gone(&self, number: usize) {
        let path = format!("{CRDS}/{}", name(number));
        let (code, answer) = self.send("DELETE", &path, &Value::Null).await;
        assert_eq!(code, 200, "{answer}");
        let started = Instant::now();
        while self.send("GET", &path, &Value::Null).await.0 != 404 {
            assert!(started.elapsed() < PATIENCE);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Writes an object, for which the patterns of its kind are compiled.
    async fn search(&self, number: usize, patterns: usize) -> (u16, Value) {
        let fields: Map<_, _> = (0..patterns)
            .map(|at| (format!("p{at}"), json!(format!("b{number}x{at}"))))
            .collect();
        let object = json!({"apiVersion": "ex.io/v1", "kind": format!("Kind{number}"), "metadata": {"name": "a"}, "spec": fields});
        let path = format!("/apis/ex.io/v1/kinds{number}");
        self.send("POST", &path, &object).await
    }
}

async fn send(client: &Client, method: &str, path: &str, body: &Value) -> Result<Answer, String> {
    let headers = [("content-type", "application/json")];
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    client.try_call(method, path, &headers, body).await
}

fn message(answer: &Value) -> &str {
    answer["message"].as_str().unwrap_or_default()
}

/// The attack of 5,000 patterns took a server to 23 GiB.
#[test]
fn definitions_are_bounded_one_by_one_and_in_sum() {
    let _turn = arena::turn();
    Runtime::new().unwrap().block_on(bounded_definitions());
}

async fn bounded_definitions() {
    let dir = tempfile::tempdir().unwrap();
    let attacked = Attacked::start(dir.path(), ROOM);
    let pid = attacked.server.pid();
    let before = process::resident(pid);
    process::reset_peak(pid);

    for count in [5_000, 40] {
        let (code, answer) = attacked.create(0, count).await;
        assert_eq!(code, 422, "{answer}");
        let text = message(&answer);
        let place = ".pattern: Forbidden: up to here the patterns, rules, values and fields of this definition take more than the 32 MiB";
        assert!(
            text.contains(place) && text.contains("spec.versions[0].schema.openAPIV3Schema"),
            "{text}"
        );
    }
    let mut accepted = 0;
    let refused = loop {
        let (code, answer) = attacked.create(accepted, 3).await;
        if code != 201 {
            assert_eq!(
                (code, &answer["reason"]),
                (403, &json!("Forbidden")),
                "{answer}"
            );
            break message(&answer).to_owned();
        }
        attacked.until(accepted, "Established").await;
        let (code, answer) = attacked.search(accepted, 3).await;
        assert_eq!(code, 201, "{answer}");
        accepted += 1;
        assert!(accepted < 100, "all definitions are accepted");
    };
    let expected = format!(
        "customresourcedefinitions.apiextensions.k8s.io \"{}\" is forbidden: exceeded quota: definitions, requested: memory=",
        name(accepted)
    );
    assert!(refused.starts_with(&expected), "{refused}");
    assert!(accepted > 1);
    let grown = process::peak(pid).saturating_sub(before) / MIB;
    println!("{accepted} definitions of 3 such patterns: {grown} MiB");
    assert!(grown < MOST_MIB, "memory grew by {grown} MiB");

    // What does not grow is written, and what is deleted makes room.
    let path = format!("{CRDS}/{}", name(0));
    let patch = json!({"metadata": {"labels": {"a": "b"}}});
    let headers = [("content-type", "application/merge-patch+json")];
    let patched = attacked
        .client
        .try_call("PATCH", &path, &headers, patch.to_string());
    assert_eq!(patched.await.unwrap().code, 200);
    attacked.until_gone(0).await;
    let started = Instant::now();
    loop {
        // The controller sees the end of the definition a moment later.
        let (code, answer) = attacked.create(accepted, 3).await;
        if code == 201 {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "{answer}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    attacked.until(accepted, "Established").await;
}

#[test]
fn a_server_starts_with_more_definitions_than_it_has_room_for() {
    let _turn = arena::turn();
    Runtime::new().unwrap().block_on(start_without_room());
}

async fn start_without_room() {
    let dir = tempfile::tempdir().unwrap();
    let first = Attacked::start(dir.path(), ROOM);
    for number in [2, 1] {
        let (code, answer) = first.create(number, 2).await;
        assert_eq!(code, 201, "{answer}");
        first.until(number, "Established").await;
        let (code, answer) = first.search(number, 2).await;
        assert_eq!(code, 201, "{answer}");
    }
    drop(first);

    // There is room for one of them, which is the older one if their times differ.
    let second = Attacked::start(dir.path(), "--max-definition-bytes=20000000");
    let codes = async || {
        let of = async |number: usize| {
            let path = format!("/apis/ex.io/v1/kinds{number}/a");
            second.send("GET", &path, &Value::Null).await.0
        };
        [of(1).await, of(2).await]
    };
    let (served, other) = match codes().await {
        [200, 404] => (1, 2),
        [404, 200] => (2, 1),
        codes => panic!("{codes:?}"),
    };
    let condition = second.until(other, "ExceedsQuota").await;
    let text = message(&condition);
    assert!(text.starts_with("exceeded quota: definitions"), "{text}");
    // Its room is that of the other one as soon as that is gone.
    second.until_gone(served).await;
    let started = Instant::now();
    while codes().await[other - 1] != 200 {
        assert!(started.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (code, answer) = second.create(served, 2).await;
    assert_eq!(code, 403, "{answer}");
    drop(second);

    // One that is not served is deleted with its objects too.
    let third = Attacked::start(dir.path(), "--max-definition-bytes=1000");
    third.until(other, "ExceedsQuota").await;
    third.until_gone(other).await;
}
