//! What the audit of a server records.
//!
//! `recorded.jsonl` has in each line a request and the events that Kubernetes' own server of CustomResourceDefinitions (1.36.4) writes of
//! it, with [`POLICY`]. What differs by nature stands as `~`, and is left out: users, reasons of decisions and managed fields.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::*;

on_each_backend![c_161_the_audit_keeps_both_users];

const POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: None
  users: [system:apiserver]
- level: Metadata
  verbs: [get]
  resources: [{group: zoo.example.com, resources: [keepers]}]
- level: RequestResponse
  omitManagedFields: true
  resources: [{group: zoo.example.com, resources: [keepers]}]
- level: RequestResponse
";

/// How long an event of a stream may take after its end.
const LIMIT: Duration = Duration::from_secs(30);

/// A policy and a log in a folder.
struct Audited {
    folder: tempfile::TempDir,
}

impl Audited {
    fn new(policy: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("policy.yaml"), policy).unwrap();
        Self { folder }
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("audit.log")
    }

    fn flags(&self) -> [String; 2] {
        let policy = self.folder.path().join("policy.yaml");
        [
            format!("--audit-policy-file={}", policy.display()),
            format!("--audit-log-path={}", self.log().display()),
        ]
    }

    /// A server with these flags beside.
    fn server(&self, flags: &[&str]) -> Server {
        let own = self.flags();
        let all: Vec<&str> = own
            .iter()
            .map(String::as_str)
            .chain(flags.iter().copied())
            .collect();
        Server::start(&all)
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.log()).unwrap()
    }

    /// The events of a request so far.
    fn events(&self, id: &str) -> Vec<Value> {
        let text = self.text();
        let events = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.filter(|event| event["auditID"] == id).collect()
    }

    /// The events of a request, once there are so many.
    async fn all_events(&self, id: &str, count: usize) -> Vec<Value> {
        let started = Instant::now();
        loop {
            let events = self.events(id);
            if events.len() >= count {
                return events;
            }
            assert!(started.elapsed() < LIMIT, "{id}: {events:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn c_161_the_audit_keeps_both_users(on: Backend) {
    let audited =
        Audited::new("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}");
    let tokens = audited.folder.path().join("tokens.csv");
    std::fs::write(&tokens, "erins,erin,7,team\n").unwrap();
    let tokens = format!("--token-auth-file={}", tokens.display());
    let [policy, log] = audited.flags();
    let flags = [&*policy, &log, &tokens, "--authorization-mode=RBAC"];
    let server = Cluster::start_with(on, &flags);
    let administrator = server.client();
    administrator.until_ready().await;
    let erin = administrator.clone().with_token("erins");
    let ask = async |client: &Client, id: &str, headers: &[(&str, &str)]| {
        let headers: Vec<_> = headers.iter().copied().chain([("audit-id", id)]).collect();
        client.call("GET", FLUNDERS, &headers, "").await
    };

    let nameless = ask(&administrator, "nameless", &[("impersonate-group", "team")]).await;
    assert_eq!(nameless.code, 400, "{}", nameless.text());
    let [received, complete] = &audited.events("nameless")[..] else {
        panic!("{}", audited.text());
    };
    assert_eq!(received["stage"], "RequestReceived");
    assert_eq!(complete["user"]["username"], "kubernetes-admin");
    assert_eq!(complete["responseStatus"]["code"], 400);
    assert!(complete.get("impersonatedUser").is_none());

    let refused = ask(&erin, "refused", &[("impersonate-user", "jim")]).await;
    assert_eq!(refused.code, 403, "{}", refused.text());
    let complete = audited.events("refused").pop().unwrap();
    let team = json!({"username": "erin", "uid": "7", "groups": ["team", "system:authenticated"]});
    assert_eq!(complete["user"], team);
    assert!(complete.get("impersonatedUser").is_none());
    assert_eq!(complete["responseStatus"]["reason"], "Forbidden");

    let headers = [("impersonate-user", "jim"), ("impersonate-group", "team")];
    let as_jim = ask(&administrator, "as-jim", &headers).await;
    assert_eq!(as_jim.code, 403, "jim may not: {}", as_jim.text());
    let complete = audited.events("as-jim").pop().unwrap();
    assert_eq!(complete["user"]["username"], "kubernetes-admin");
    let jim = json!({"username": "jim", "groups": ["team", "system:authenticated"]});
    assert_eq!(complete["impersonatedUser"], jim);
    assert_eq!(
        complete["annotations"]["authorization.k8s.io/decision"],
        "forbid"
    );
    // The groups are impersonated by a constrained mode, which the administrator may use too.
    let constraint = &complete["authenticationMetadata"]["impersonationConstraint"];
    assert_eq!(constraint, "impersonate:user-info");

    let unknown = administrator.clone().with_token("strangers-token");
    let unauthorized = ask(&unknown, "unknown", &[]).await;
    assert_eq!(unauthorized.code, 401);
    let [only] = &audited.events("unknown")[..] else {
        panic!("{}", audited.text());
    };
    assert_eq!(only["stage"], "ResponseStarted");
    assert_eq!(only["user"], json!({}));
    let status =
        json!({"metadata": {}, "message": "Authentication failed, attempted: bearer", "code": 401});
    assert_eq!(only["responseStatus"], status);
    assert!(!audited.text().contains("strangers-token"));
}

/// Where our events differ from the recorded ones: the request, the place, and why.
const DIFFERENCES: [(&str, &str, &str); 7] = [
    ("01 02 03 04 07 08", "/requestObject", OBJECT),
    ("20 21", "/stages:", LOST),
    ("20 21", "/events:", LOST),
    ("27", "/stages:", KNOWN_USER),
    ("27", "/events:", KNOWN_USER),
    ("28", "/requestObject/apiVersion", OWN_VERSION),
    ("38", "/responseObject", DOCUMENT),
];
const OBJECT: &str =
    "as it came: the field is documented so, and kube-apiserver has it with defaults";

const LOST: &str = "kube-apiserver loses the event of a patch that is no JSON";
const KNOWN_USER: &str = "the user is known here when the parameter is refused";
const OWN_VERSION: &str = "kube-apiserver tells its internal version of the options";
const DOCUMENT: &str = "documents of the server are no objects";

/// The row of the table for a difference.
fn known(id: &str, place: &str) -> Option<usize> {
    let number = id.strip_prefix("case-").unwrap();
    DIFFERENCES.iter().position(|(ids, known, _)| {
        let mut ids = ids.split(' ');
        ids.any(|known| known == number) && place.contains(known)
    })
}

/// An event as it is recorded.
fn normalized(value: &mut Value) {
    const OWN: [&str; 7] = [
        "creationTimestamp",
        "description",
        "requestReceivedTimestamp",
        "resourceVersion",
        "stageTimestamp",
        "time",
        "uid",
    ];
    match value {
        Value::Object(fields) => {
            fields.remove("managedFields");
            for (name, value) in fields {
                let is_own = OWN.contains(&name.as_str());
                match value {
                    Value::String(text) if is_own && !matches!(&**text, "" | "u1") => {
                        *text = "~".to_owned();
                    }
                    value => normalized(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalized),
        // An age, in a cell of a table.
        Value::String(text)
            if text
                .strip_suffix('s')
                .is_some_and(|age| age.parse::<u32>().is_ok()) =>
        {
            *text = "~".to_owned();
        }
        Value::String(text) => {
            if let Some(at) = text.find("gen-").filter(|at| text.len() >= at + 9) {
                text.replace_range(at + 4..at + 9, "~");
            }
        }
        _ => {}
    }
}

/// The places at which two documents differ.
fn differences(place: &str, ours: &Value, recorded: &Value, found: &mut Vec<String>) {
    match (ours, recorded) {
        (Value::Object(a), Value::Object(b)) => {
            let names: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            for name in names {
                let (a, b) = (a.get(name), b.get(name));
                let null = Value::Null;
                let (a, b) = (a.unwrap_or(&null), b.unwrap_or(&null));
                differences(&format!("{place}/{name}"), a, b, found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{place}/{index}"), a, b, found);
            }
        }
        (a, b) if a == b => {}
        (a, b) => found.push(format!("{place}: {a}, recorded {b}")),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_those_of_kube_apiserver() {
    let audited = Audited::new(POLICY);
    let server = audited.server(&[]);
    let client = server.client();
    let mut version = String::new();
    let mut problems = Vec::new();
    let mut is_there = [false; DIFFERENCES.len()];
    for line in include_str!("recorded.jsonl").lines() {
        let recorded: Value = serde_json::from_str(line).unwrap();
        let id = recorded["id"].as_str().unwrap();
        let [method, path, body] = [0, 1, 2].map(|at| recorded["request"][at].as_str().unwrap());
        let headers = recorded["request"][3].as_object().unwrap();
        let headers = headers
            .iter()
            .map(|(name, value)| (&**name, value.as_str().unwrap()));
        let own = [("audit-id", id), ("user-agent", "asker")];
        let headers: Vec<_> = headers.chain(own).collect();
        let body = body.replace("\"~\"", &format!("\"{version}\""));
        let answer = client.call(method, path, &headers, body).await;
        if id == "case-02" {
            // What follows is about their kinds.
            let ready = "/apis/zoo.example.com/v1/namespaces/default/keepers";
            let ask = async || client.get(ready).await;
            until_answered(ready, LIMIT, ask, |answer| answer.code == 200).await;
        }
        let object: Value = serde_json::from_str(&answer.text()).unwrap_or_default();
        if method == "GET" && object["kind"] == "Animal" {
            version = object["metadata"]["resourceVersion"]
                .as_str()
                .unwrap()
                .to_owned();
        }
        let expected = recorded["events"].as_array().unwrap();
        let mut events = audited.all_events(id, expected.len()).await;
        for event in &mut events {
            normalized(event);
            let fields = event.as_object_mut().unwrap();
            fields.remove("user");
            if let Some(Value::Object(annotations)) = fields.get_mut("annotations") {
                annotations.remove("authorization.k8s.io/reason");
            }
        }
        let stages = |events: &[Value]| -> Vec<Value> {
            events.iter().map(|event| event["stage"].clone()).collect()
        };
        let of = |events: &[Value]| json!({"stages": stages(events), "events": events});
        let mut found = Vec::new();
        differences("", &of(&events), &of(expected), &mut found);
        for one in found {
            match known(id, &one) {
                Some(row) => is_there[row] = true,
                None => problems.push(format!("{id}{one}")),
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert_eq!(is_there, [true; DIFFERENCES.len()], "a row is not needed");
}

/// No secret is recorded, at any level, in any form of a request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_not_recorded() {
    const SECRETS: &str = "/api/v1/namespaces/default/secrets";
    // In text, and as the value of a field in base64.
    const PLANTED: [&str; 2] = ["hunter2hunter2", "aHVudGVyMmh1bnRlcjI="];
    let [text, base64] = PLANTED;
    let audited = Audited::new(
        "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: RequestResponse}]}",
    );
    let server = audited.server(&[]);
    let client = server.client();
    client.until_ready().await;
    let applied = json!({"data": {"a": base64}}).to_string();
    let annotations = json!({"kubectl.kubernetes.io/last-applied-configuration": applied});
    let secret = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name, "annotations": annotations},
            "data": {"a": base64}, "stringData": {"b": text},
        })
    };
    created(&client, SECRETS, &secret("a")).await;
    let path = format!("{SECRETS}/a");
    let (mut codes, mut refusals) = (Vec::new(), Vec::new());
    let mut call = async |method: &str, path: &str, headers: &[(&str, &str)], body: String| {
        codes.push(client.call(method, path, headers, body).await.code);
    };
    let json_type = ("content-type", "application/json");
    call("PUT", &path, &[json_type], secret("a").to_string()).await;
    let merge = [("content-type", "application/merge-patch+json")];
    let patch = json!({"data": {"c": base64}, "metadata": {"annotations": annotations}});
    call("PATCH", &path, &merge, patch.to_string()).await;
    let strategic = [("content-type", "application/strategic-merge-patch+json")];
    call("PATCH", &path, &strategic, patch.to_string()).await;
    let steps = [("content-type", "application/json-patch+json")];
    for (place, value) in [("/data/a", json!(base64)), ("/data", json!({"a": base64}))] {
        let step = json!([{"op": "add", "path": place, "value": value}]);
        call("PATCH", &path, &steps, step.to_string()).await;
    }
    let apply = [("content-type", "application/apply-patch+yaml")];
    let document = format!("apiVersion: v1\nkind: Secret\nstringData: {{d: {text}}}\n");
    let applied = format!("{path}?fieldManager=me&force=true");
    call("PATCH", &applied, &apply, document).await;
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    for accept in [
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        table,
    ] {
        let accept = [("accept", accept)];
        call("GET", &path, &accept, String::new()).await;
        call("GET", SECRETS, &accept, String::new()).await;
        call(
            "GET",
            &format!("{SECRETS}?includeObject=Object"),
            &accept,
            String::new(),
        )
        .await;
    }
    // What is refused repeats no value either.
    let wrong = [
        (
            &steps,
            json!({"op": "add", "path": "/data/a", "value": base64}),
        ),
        (
            &steps,
            json!([{"op": "add", "path": "/Data/a", "value": base64}]),
        ),
        (&merge, json!({"data": {"a": {"b": text}}})),
        (&merge, json!({"Data": {"a": base64}, "typo": text})),
        (&merge, json!([text])),
    ];
    for (headers, patch) in wrong {
        let answer = client
            .call("PATCH", &path, headers, patch.to_string())
            .await;
        refusals.push(answer.code);
    }
    let malformed = format!("{{\"data\": {{\"a\": \"{text}\"");
    let answer = client.call("PUT", &path, &[json_type], malformed).await;
    refusals.push(answer.code);
    let watched = format!("{SECRETS}?watch=true&timeoutSeconds=1");
    call("GET", &watched, &[], String::new()).await;
    call("DELETE", &path, &[], String::new()).await;
    assert!(codes.iter().all(|code| *code == 200), "{codes:?}");
    let refused = refusals.iter().filter(|code| **code >= 400).count();
    assert!(refused >= 4, "{refusals:?}");
    // The token of the administrator is a secret too.
    let headers = [("audit-id", "last"), json_type];
    client.call("GET", "/api", &headers, "").await;
    audited.all_events("last", 2).await;
    let recorded = audited.text();
    assert!(
        recorded.contains(r#""data":null"#),
        "it says that there was one"
    );
    for planted in PLANTED.into_iter().chain([client.token()]) {
        let line = recorded.lines().find(|line| line.contains(planted));
        assert!(line.is_none(), "{planted}: {line:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_cannot_be_recorded_is_refused_in_the_strict_mode_alone() {
    let rules = "rules: [{level: Metadata, resources: [{group: wardle.example.com}]}]";
    let policy = format!("{{apiVersion: audit.k8s.io/v1, kind: Policy, {rules}}}");
    let audited = Audited::new(&policy);
    let [policy, _] = audited.flags();
    for (mode, code) in [("blocking", 200), ("blocking-strict", 500)] {
        let mode = format!("--audit-log-mode={mode}");
        let server = Server::start(&[&policy, "--audit-log-path=/dev/full", &mode]);
        let answer = server.client().get(FLUNDERS).await;
        assert_eq!(answer.code, code, "{mode}: {}", answer.text());
        if code == 500 {
            let text =
                format!("Internal Server Error: \"{FLUNDERS}\": failed to store audit event\n");
            assert_eq!(answer.text(), text);
        }
        let metrics = server.client().get("/metrics").await.text();
        let lost = metrics
            .lines()
            .find(|line| line.starts_with("apiserver_audit_error_total"));
        assert!(
            lost.is_some_and(|line| line.contains(r#"plugin="log""#)),
            "{lost:?}"
        );
        assert!(
            server.log().contains("audit events are lost"),
            "{}",
            server.log()
        );
    }
}

/// A webhook that refuses its first list, and the events that it accepts.
#[derive(Clone, Default)]
struct Receiver(Arc<Mutex<(usize, Vec<Value>)>>);

impl Receiver {
    async fn start(&self, folder: &Path) -> PathBuf {
        let receiver = self.clone();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/audit", listener.local_addr().unwrap());
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let receiver = receiver.clone();
                let answer = move |request: http::Request<hyper::body::Incoming>| {
                    let receiver = receiver.clone();
                    async move {
                        let body = request.into_body().collect().await?.to_bytes();
                        let list: Value = serde_json::from_slice(&body).unwrap();
                        let mut accepted = receiver.0.lock().unwrap();
                        accepted.0 += 1;
                        let mut response = http::Response::new(String::new());
                        if accepted.0 == 1 {
                            *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
                        } else {
                            accepted
                                .1
                                .extend(list["items"].as_array().unwrap().iter().cloned());
                        }
                        Ok::<_, hyper::Error>(response)
                    }
                };
                let stream = hyper_util::rt::TokioIo::new(stream);
                let service = hyper::service::service_fn(answer);
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(stream, service),
                );
            }
        });
        let cluster = json!({"name": "audit", "cluster": {"server": url}});
        let context = json!({"name": "audit", "context": {"cluster": "audit"}});
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "audit",
            "clusters": [cluster], "contexts": [context],
        });
        let path = folder.join("webhook.kubeconfig");
        std::fs::write(&path, kubeconfig.to_string()).unwrap();
        path
    }

    fn events(&self, id: &str) -> Vec<Value> {
        let accepted = self.0.lock().unwrap();
        let events = accepted.1.iter().filter(|event| event["auditID"] == id);
        events.cloned().collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_gets_all_events_also_at_the_end_of_the_server() {
    let audited = Audited::new(
        "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}], omitStages: [RequestReceived]}",
    );
    let receiver = Receiver::default();
    let config = receiver.start(audited.folder.path()).await;
    let config = format!("--audit-webhook-config-file={}", config.display());
    let [policy, _] = audited.flags();
    let flags = [
        &*policy,
        &config,
        "--audit-webhook-batch-max-wait=50ms",
        "--audit-webhook-initial-backoff=10ms",
    ];
    let server = Server::start(&flags);
    let client = server.client();
    client
        .call("GET", FLUNDERS, &[("audit-id", "first")], "")
        .await;
    let started = Instant::now();
    while receiver.events("first").is_empty() {
        assert!(started.elapsed() < LIMIT, "{}", server.log());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let [event] = &receiver.events("first")[..] else {
        panic!("it came once");
    };
    assert!(event.get("kind").is_none(), "{event}");
    assert_eq!(event["verb"], "list");
    assert!(
        receiver.0.lock().unwrap().0 > 1,
        "the first list was refused"
    );
    drop(server);

    let long = [
        "--audit-webhook-batch-max-wait=1h",
        "--audit-webhook-initial-backoff=10ms",
    ];
    let server = Server::start(&[&*policy, &config, long[0], long[1]]);
    let client = server.client();
    client
        .call("GET", FLUNDERS, &[("audit-id", "second")], "")
        .await;
    assert!(receiver.events("second").is_empty());
    tokio::task::spawn_blocking(move || server.stop())
        .await
        .unwrap();
    assert_eq!(receiver.events("second").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn problems_of_the_files_are_told_together() {
    let audited =
        Audited::new("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: All}]}");
    let [policy, log] = audited.flags();
    let flags = [
        &*policy,
        &log,
        "--audit-webhook-config-file=/nowhere",
        "--audit-webhook-batch-throttle-qps=0",
    ];
    let output = tokio::process::Command::new(apiloom_tests::build("wardle-server"))
        .args(flags)
        .arg("--data-dir")
        .arg(audited.folder.path().join("data"))
        .output()
        .await
        .unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    let expected = [
        r#"rules[0].level: Unsupported value: "All""#,
        "--audit-webhook-config-file /nowhere",
        "--audit-webhook-batch-throttle-qps must be above zero",
    ];
    for expected in expected {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}
