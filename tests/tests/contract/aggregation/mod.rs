//! APIServices: versions that another server serves. Both servers run in the process of the test, and speak TLS.

mod attacks;
mod conditions;
mod delegation;
mod documents;
mod malformed;
mod malformed_http2;
mod pair;
mod raw_server;
mod recorder;

use std::sync::atomic::Ordering;

use apiloom_tests::Kubectl;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use self::pair::{Authority, Back, Front};
use self::recorder::Recorder;
use crate::custom::{FOOS, establish, foo, foos};
use crate::*;

on_each_backend![
    c_047_an_unavailable_group_stays_listed,
    c_177_a_forwarded_request_has_the_identity_and_no_credentials,
    c_178_an_apiservice_comes_before_a_definition_and_filters_run_once,
    local_apiservices_are_made_again,
    streams_and_upgrades_are_forwarded,
    errors_of_services_are_those_of_the_aggregator,
    a_service_is_found_by_the_file_of_the_flag,
    kubectl_sees_two_servers_and_watches_resume,
    each_kubectl_writes_and_watches_through_the_proxy,
];

pub(crate) const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const KETTLES: &str = "/apis/kitchen.example.com/v1/namespaces/default/kettles";
const NAME: &str = "v1.kitchen.example.com";
/// The answer to a request for a version whose server the controller does not take for available.
const UNAVAILABLE: &str = "service unavailable\n";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// An APIService for a version of a group, behind the service default/SERVICE.
fn apiservice(group: &str, service: &str, authority: &Authority) -> Value {
    json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": format!("v1.{group}")},
        "spec": {
            "group": group, "version": "v1", "groupPriorityMinimum": 2000, "versionPriority": 10,
            "caBundle": authority.bundle(), "service": {"namespace": "default", "name": service},
        },
    })
}

/// Asks an aggregated server. Where the processors are busy, the controller may find it too slow just now: it is asked again then, for a
/// minute.
async fn ask_available(ask: impl AsyncFn() -> Result<Answer, String>) -> Result<Answer, String> {
    let began = Instant::now();
    loop {
        let answer = ask().await;
        let is_unavailable = answer
            .as_ref()
            .is_ok_and(|answer| answer.text() == UNAVAILABLE);
        if !is_unavailable || began.elapsed() > Duration::from_secs(60) {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The status and the reason of the condition Available.
fn available(object: &Value) -> (String, String) {
    let text = |field: &str| {
        let value = &object["status"]["conditions"][0][field];
        value.as_str().unwrap_or_default().to_owned()
    };
    (text("status"), text("reason"))
}

/// Waits until the condition is stored, and the server, which reads it from there, forwards as it says.
async fn until_available(client: &Client, name: &str, status: &str, reason: &str) -> Value {
    let expected = (status.to_owned(), reason.to_owned());
    let path = format!("{SERVICES}/{name}");
    let answer = until(client, &path, |answer| {
        available(&answer.json()) == expected
    });
    let object = answer.await.json();
    let is_unavailable = u8::from(status != "True");
    let gauge = format!("aggregator_unavailable_apiservice{{name=\"{name}\"}} {is_unavailable}");
    until_counted(client, &gauge).await;
    object
}

/// Waits until `/metrics` has this line.
async fn until_counted(client: &Client, line: &str) {
    until(client, "/metrics", |answer| {
        answer.text().lines().any(|one| one == line)
    })
    .await;
}

/// Registers the version, and waits until it is available.
async fn register(client: &Client, group: &str, service: &str, authority: &Authority) {
    created(client, SERVICES, &apiservice(group, service, authority)).await;
    until_available(client, &format!("v1.{group}"), "True", "Passed").await;
}

async fn aggregated(client: &Client) -> (Value, String) {
    let answer = client
        .call("GET", "/apis", &[("accept", AGGREGATED)], "")
        .await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    (answer.json(), answer.header("etag").to_owned())
}

/// The entry of the version v1 of a group in aggregated discovery.
fn version_of(list: &Value, group: &str) -> Value {
    let items = list["items"].as_array().unwrap();
    let found = items.iter().find(|item| item["metadata"]["name"] == group);
    found.map_or(Value::Null, |item| item["versions"][0].clone())
}

async fn until_fresh(client: &Client, group: &str, freshness: &str) -> Value {
    let started = Instant::now();
    loop {
        let found = version_of(&aggregated(client).await.0, group);
        if found["freshness"] == freshness {
            return found;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{found}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn kettle(name: &str) -> Value {
    json!({"apiVersion": "kitchen.example.com/v1", "kind": "Kettle", "metadata": {"name": name}, "spec": {"litres": 1}})
}

/// Asserts an error in plain text.
#[track_caller]
fn check_plain(answer: &Answer, code: u16, text: &str) {
    assert_eq!((answer.code, answer.text()), (code, format!("{text}\n")));
    assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert_eq!(answer.header_all("audit-id").len(), 1);
}

async fn c_047_an_unavailable_group_stays_listed(on: Backend) {
    let authority = Authority::new();
    let mut back = Back::start(&authority).await;
    let front = Front::start(on, &authority, &[("kettles", back.address())]).await;
    let client = &front.client;
    let (_, without) = aggregated(client).await;
    register(client, "kitchen.example.com", "kettles", &authority).await;
    let fresh = until_fresh(client, "kitchen.example.com", "Current").await;
    assert_eq!(fresh["resources"][0]["resource"], "kettles");
    assert_eq!(fresh["resources"][0]["shortNames"], json!(["kt"]));
    let (list, with) = aggregated(client).await;
    assert_ne!(with, without);
    // By priority: those of Kubernetes first, then this one before others.
    let names: Vec<&Value> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["metadata"]["name"])
        .collect();
    assert_eq!(names.last().unwrap().as_str(), Some("kitchen.example.com"));
    let known = ("if-none-match", with.as_str());
    let answer = client
        .call("GET", "/apis", &[("accept", AGGREGATED), known], "")
        .await;
    assert_eq!(answer.code, 304);
    let group = client.get("/apis/kitchen.example.com").await.json();
    assert_eq!(
        group["preferredVersion"]["groupVersion"],
        "kitchen.example.com/v1"
    );
    // OpenAPI of the other server.
    let index = until(client, "/openapi/v3", |answer| {
        answer.json()["paths"]
            .get("apis/kitchen.example.com/v1")
            .is_some()
    });
    let url =
        index.await.json()["paths"]["apis/kitchen.example.com/v1"]["serverRelativeURL"].clone();
    let document = client.get(url.as_str().unwrap()).await.json();
    assert!(
        document["components"]["schemas"]
            .get("com.example.kitchen.v1.Kettle")
            .is_some()
    );
    let document = until(client, "/openapi/v2", |answer| {
        answer.json()["paths"]
            .get("/apis/kitchen.example.com/v1/")
            .is_some()
    });
    let document = document.await.json();
    assert!(
        document["definitions"]
            .get("com.example.kitchen.v1.Kettle")
            .is_some()
    );
    assert!(
        document["paths"]
            .get("/apis/apiregistration.k8s.io/v1/apiservices")
            .is_some()
    );

    back.stop().await;
    // A request that does not reach the server is followed by a look at it.
    until(client, KETTLES, |answer| answer.code == 503).await;
    let failed = until_available(client, NAME, "False", "FailedDiscoveryCheck").await;
    let message = failed["status"]["conditions"][0]["message"]
        .as_str()
        .unwrap();
    let expected = "failing or missing response from https://kettles.default.svc:443/apis/kitchen.example.com/v1: ";
    assert!(message.starts_with(expected), "{message}");
    // The stored condition may be read before the forwarding follows it.
    until(client, KETTLES, |answer| answer.text() == UNAVAILABLE).await;
    check_plain(
        &client.get("/apis/kitchen.example.com/v1").await,
        503,
        "service unavailable",
    );
    check_plain(&client.get(KETTLES).await, 503, "service unavailable");
    let groups = client.get("/apis").await.json();
    let mut groups = groups["groups"].as_array().unwrap().iter();
    assert!(groups.any(|group| group["name"] == "kitchen.example.com"));
    // What was known of it stays.
    let stale = until_fresh(client, "kitchen.example.com", "Stale").await;
    assert_eq!(stale["resources"], fresh["resources"]);
    // One that was never seen has no resources.
    created(
        client,
        SERVICES,
        &apiservice("never.example.com", "nothing", &authority),
    )
    .await;
    until_available(client, "v1.never.example.com", "False", "ServiceNotFound").await;
    let (list, _) = aggregated(client).await;
    let never = version_of(&list, "never.example.com");
    assert_eq!(never, json!({"version": "v1", "freshness": "Stale"}));

    back.start_again().await;
    until_available(client, NAME, "True", "Passed").await;
    until_fresh(client, "kitchen.example.com", "Current").await;
    assert_eq!(client.get(KETTLES).await.code, 200);
    assert_eq!(
        client
            .delete(&format!("{SERVICES}/{NAME}"), &json!(null))
            .await
            .code,
        200
    );
    until(client, "/apis/kitchen.example.com", |answer| {
        answer.code == 404
    })
    .await;
    front.stop().await;
    back.stop().await;
}

async fn c_177_a_forwarded_request_has_the_identity_and_no_credentials(on: Backend) {
    let authority = Authority::new();
    let recorder = Recorder::start(&authority).await;
    let front = Front::start(on, &authority, &[("recorder", recorder.address)]).await;
    register(&front.client, "rec.example.com", "recorder", &authority).await;
    recorder.forget();
    let sent = [
        ("x-remote-user", "someone"),
        ("x-remote-group", "system:masters"),
        ("x-remote-extra-more", "x"),
        ("x_remote_user", "someone"),
        ("content-type", "application/json"),
        ("audit-id", "the-audit-id"),
        ("x-kept", "1"),
        ("connection", "x-dropped"),
        ("x-dropped", "1"),
    ];
    // A namespace that does not exist: admission is left to the other server.
    let path = "/apis/rec.example.com/v1/namespaces/nowhere/things?b=2&a=x%20y&bad=%zz&fieldValidation=Strict";
    let tester = Client::of_http1(&front.kubeconfig).with_token(pair::TOKEN);
    let answer = tester
        .call("POST", path, &sent, r#"{"kind":"Thing"}"#)
        .await;
    assert_eq!(
        (answer.code, answer.text()),
        (201, r#"{"kind":"Thing"}"#.to_owned())
    );
    assert_eq!(answer.header_all("audit-id"), ["the-audit-id"]);
    assert_eq!(answer.header("x-recorded"), "1");
    let requests = recorder.requests("/namespaces/");
    let request = &requests[0];
    assert_eq!(requests.len(), 1);
    assert_eq!(request.method, "POST");
    assert_eq!(
        request.uri,
        "/apis/rec.example.com/v1/namespaces/nowhere/things?a=x+y&b=2&fieldValidation=Strict"
    );
    assert_eq!(request.certificate, Some(authority.proxy_der.clone()));
    for (name, expected) in [
        ("x-remote-user", &["tester"][..]),
        ("x-remote-uid", &["tester-uid"]),
        (
            "x-remote-group",
            &["system:masters", "system:authenticated"],
        ),
        ("x-remote-extra-example.com%2fteam", &["a", "b"]),
        ("x-remote-extra-more", &[]),
        ("x_remote_user", &[]),
        ("authorization", &[]),
        ("x-dropped", &[]),
        ("x-kept", &["1"]),
        ("audit-id", &["the-audit-id"]),
        ("x-forwarded-for", &["127.0.0.1"]),
        ("x-forwarded-proto", &["https"]),
    ] {
        assert_eq!(request.all(name), expected, "{name}");
    }
    assert_eq!(request.body, r#"{"kind":"Thing"}"#);
    // What was authorized is what is forwarded: an escaped slash separates, and no segment leads elsewhere.
    recorder.forget();
    let answer = tester
        .get("/apis/rec.example.com/v1/namespaces%2Fa/things")
        .await;
    assert_eq!(answer.code, 200);
    assert_eq!(
        recorder.requests("/namespaces/")[0].uri,
        "/apis/rec.example.com/v1/namespaces/a/things"
    );
    let answer = tester
        .get("/apis/rec.example.com/v1/%2e%2e/%2e%2e/secrets")
        .await;
    assert_eq!(answer.code, 400, "{}", answer.text());
    // Who may not is refused here.
    recorder.forget();
    let anonymous = Client::new(&front.kubeconfig).anonymous();
    assert_eq!(
        anonymous.get("/apis/rec.example.com/v1/things").await.code,
        403
    );
    assert!(recorder.requests("/things").is_empty());
    front.stop().await;
}

async fn c_178_an_apiservice_comes_before_a_definition_and_filters_run_once(on: Backend) {
    let authority = Authority::new();
    let recorder = Recorder::start(&authority).await;
    let front = Front::start(on, &authority, &[("recorder", recorder.address)]).await;
    let client = &front.client;
    establish(client, &foos()).await;
    created(client, FOOS, &foo("a", &json!({}))).await;
    // That of the definition has to go before another can have its name.
    let service = format!("{SERVICES}/v1.ex.io");
    let local = until(client, &service, |answer| answer.code == 200)
        .await
        .json();
    assert_eq!(available(&local), ("True".to_owned(), "Local".to_owned()));
    assert_eq!(
        local["metadata"]["labels"]["kube-aggregator.kubernetes.io/automanaged"],
        "true"
    );
    let patch = json!({
        "metadata": {"labels": null},
        "spec": apiservice("ex.io", "recorder", &authority)["spec"],
    });
    let changed = client.merge(&service, &patch).await;
    assert_eq!(changed.code, 200, "{}", changed.text());
    until(client, FOOS, |answer| answer.header("x-recorded") == "1").await;
    recorder.forget();
    let tester = Client::new(&front.kubeconfig).with_token(pair::TOKEN);
    let before = front.calls.load(Ordering::SeqCst);
    assert_eq!(
        tester.get(&format!("{FOOS}/a")).await.header("x-recorded"),
        "1"
    );
    assert_eq!(front.calls.load(Ordering::SeqCst), before + 1);
    assert_eq!(recorder.requests("/foos/a").len(), 1);
    // Other versions and groups stay where they were; a path that no server has is not found.
    assert_eq!(client.get("/api/v1/namespaces/default").await.code, 200);
    for path in [
        "/apis/ex.io/v2/foos",
        "/apis/unknown.example.com/v1",
        "/nothing",
    ] {
        let answer = client.get(path).await;
        assert_eq!(
            (answer.code, answer.text()),
            (404, "404 page not found\n".to_owned()),
            "{path}"
        );
    }
    assert_eq!(client.delete(&service, &json!(null)).await.code, 200);
    // The definition serves its kind again, with the objects that it had.
    until(client, &format!("{FOOS}/a"), |answer| {
        answer.code == 200 && answer.header("x-recorded").is_empty()
    })
    .await;
    until(client, &service, |answer| {
        available(&answer.json()).1 == "Local"
    })
    .await;
    front.stop().await;
}

async fn local_apiservices_are_made_again(on: Backend) {
    let authority = Authority::new();
    let front = Front::start(on, &authority, &[]).await;
    let client = &front.client;
    for (name, group, version, label) in [
        ("v1.", 18_000, 1, "onstart"),
        ("v1.apiextensions.k8s.io", 16_700, 15, "onstart"),
        ("v1.coordination.k8s.io", 16_500, 15, "onstart"),
    ] {
        let path = format!("{SERVICES}/{name}");
        let object = until(client, &path, |answer| answer.code == 200)
            .await
            .json();
        let spec = &object["spec"];
        assert_eq!(
            (&spec["groupPriorityMinimum"], &spec["versionPriority"]),
            (&json!(group), &json!(version))
        );
        assert_eq!(
            object["metadata"]["labels"]["kube-aggregator.kubernetes.io/automanaged"],
            label
        );
        assert_eq!(available(&object), ("True".to_owned(), "Local".to_owned()));
        assert_eq!(client.delete(&path, &json!(null)).await.code, 200);
        let uid = object["metadata"]["uid"].clone();
        until(client, &path, |answer| {
            answer.code == 200 && answer.json()["metadata"]["uid"] != uid
        })
        .await;
    }
    assert_eq!(
        client
            .get(&format!("{SERVICES}/v1.apiregistration.k8s.io"))
            .await
            .code,
        404
    );
    // That of a definition goes with it.
    establish(client, &foos()).await;
    let path = format!("{SERVICES}/v1.ex.io");
    until(client, &path, |answer| answer.code == 200).await;
    client
        .delete(&crate::custom::path("foos"), &json!(null))
        .await;
    until(client, &path, |answer| answer.code == 404).await;
    front.stop().await;
}

async fn streams_and_upgrades_are_forwarded(on: Backend) {
    let authority = Authority::new();
    let recorder = Recorder::start(&authority).await;
    let front = Front::start(on, &authority, &[("recorder", recorder.address)]).await;
    let client = &front.client;
    register(client, "rec.example.com", "recorder", &authority).await;
    // Each piece is there before the next one is sent.
    let mut stream = client
        .watch_as("/apis/rec.example.com/v1/stream?watch=1", "*/*")
        .await;
    for number in 0..3 {
        assert_eq!(
            stream.line().await.as_deref().map(str::trim_end),
            Some(&*format!("piece {number}"))
        );
        recorder.next_piece();
    }
    // A body that is larger than what is kept of one.
    let large = "x".repeat(1 << 20);
    let answer = client
        .call(
            "POST",
            "/apis/rec.example.com/v1/things",
            &[],
            large.clone(),
        )
        .await;
    assert_eq!((answer.code, answer.text().len()), (201, large.len()));
    let path = "/apis/rec.example.com/v1/namespaces/default/things/a/exec";
    let http1 = Client::of_http1(&front.kubeconfig);
    let (code, headers, socket) = http1
        .websocket(path, &[("sec-websocket-protocol", "v5.channel.k8s.io")])
        .await;
    assert_eq!(
        (code, &headers["sec-websocket-protocol"]),
        (101, &"v5.channel.k8s.io".parse().unwrap())
    );
    let (answer, over_http2) = client
        .connect_over_http2(path, "websocket", &[("sec-websocket-version", "13")])
        .await;
    assert_eq!(answer.code, 200);
    for mut socket in [socket.unwrap(), over_http2.unwrap()] {
        socket.send(Message::text("hello")).await.unwrap();
        assert_eq!(
            socket.next().await.unwrap().unwrap(),
            Message::text("hello")
        );
    }
    // Another protocol, as kubectl's older one.
    let mut raw = http1.upgrade(path, "SPDY/3.1").await;
    tokio::io::AsyncWriteExt::write_all(&mut raw, b"ping")
        .await
        .unwrap();
    let mut echoed = [0; 4];
    tokio::io::AsyncReadExt::read_exact(&mut raw, &mut echoed)
        .await
        .unwrap();
    assert_eq!(&echoed, b"ping");
    front.stop().await;
}

async fn a_service_is_found_by_the_file_of_the_flag(on: Backend) {
    let authority = Authority::new();
    let recorder = Recorder::start(&authority).await;
    let dir = tempfile::tempdir().unwrap();
    let map = dir.path().join("services.yaml");
    let entry = format!("default/recorder: https://{}\n", recorder.address);
    std::fs::write(&map, entry).unwrap();
    let tls = authority.files("proxy");
    let flags = [
        format!("--service-resolver={}", map.display()),
        format!("--proxy-client-cert-file={}", tls.certificate.display()),
        format!("--proxy-client-key-file={}", tls.private_key.display()),
    ];
    let cluster = Cluster::start_with(on, &flags.each_ref().map(String::as_str));
    let client = cluster.client();
    register(&client, "rec.example.com", "recorder", &authority).await;
    recorder.forget();
    let answer = client.get("/apis/rec.example.com/v1/things").await;
    assert_eq!((answer.code, answer.header("x-recorded")), (200, "1"));
    let requests = recorder.requests("/things");
    assert_eq!(requests[0].certificate, Some(authority.proxy_der.clone()));
}

async fn errors_of_services_are_those_of_the_aggregator(on: Backend) {
    let authority = Authority::new();
    let recorder = Recorder::start(&authority).await;
    let other = Authority::new();
    let front = Front::start(on, &authority, &[("recorder", recorder.address)]).await;
    let client = &front.client;
    register(client, "rec.example.com", "recorder", &authority).await;
    let base = "/apis/rec.example.com/v1";
    let answer = client.get(&format!("{base}/redirect")).await;
    let text = "the backend attempted to redirect this request, which is not permitted";
    check_plain(&answer, 502, text);
    // A service that hangs ends at the request's deadline, and others are served meanwhile.
    let hanging = format!("{base}/hang?timeout=1s");
    let (hung, quick) = tokio::join!(client.get(&hanging), client.get("/api/v1/namespaces"));
    assert_eq!((hung.code, quick.code), (504, 200));
    let mut broken = client.watch_as(&format!("{base}/break"), "*/*").await;
    assert_eq!(
        broken.line().await.as_deref().map(str::trim_end),
        Some("begun")
    );
    recorder.next_piece();
    assert!(broken.line_or_end().await.is_err());
    // The certificate of an authority that is not the one of the APIService.
    let mut wrong = apiservice("wrong.example.com", "recorder", &other);
    created(client, SERVICES, &wrong).await;
    let object = until_available(
        client,
        "v1.wrong.example.com",
        "False",
        "FailedDiscoveryCheck",
    )
    .await;
    let message = object["status"]["conditions"][0]["message"]
        .as_str()
        .unwrap();
    assert!(message.contains("certificate"), "{message}");
    wrong = json!({"spec": {"caBundle": null, "insecureSkipTLSVerify": true}});
    client
        .merge(&format!("{SERVICES}/v1.wrong.example.com"), &wrong)
        .await;
    until_available(client, "v1.wrong.example.com", "True", "Passed").await;
    // A server that is this one itself.
    let itself = json!({"spec": {"service": {"name": "itself"}}});
    client
        .merge(&format!("{SERVICES}/v1.wrong.example.com"), &itself)
        .await;
    until_available(
        client,
        "v1.wrong.example.com",
        "False",
        "FailedDiscoveryCheck",
    )
    .await;
    // If it is taken for available, as before the first look, requests do not go round.
    check_circle(&[client], "wrong.example.com").await;
    front.stop().await;
}

/// Checks the response to a request for a group whose servers, these, forward it in a circle once they take each other for
/// available.
async fn check_circle(servers: &[&Client], group: &str) {
    let path = format!("{SERVICES}/v1.{group}/status");
    let status = json!({"status": {"conditions": [{"type": "Available", "status": "True"}]}});
    let started = Instant::now();
    let answer = loop {
        for client in servers {
            client.merge(&path, &status).await;
        }
        let answer = servers[0].get(&format!("/apis/{group}/v1/things")).await;
        if answer.code != 503 {
            break answer;
        }
        assert!(started.elapsed() < Duration::from_secs(60));
    };
    check_plain(
        &answer,
        508,
        "the service of this version forwards its requests to this server again",
    );
}

async fn kubectl_sees_two_servers_and_watches_resume(on: Backend) {
    let authority = Authority::new();
    let mut back = Back::start(&authority).await;
    let front = Front::start(on, &authority, &[("kettles", back.address())]).await;
    let client = &front.client;
    register(client, "kitchen.example.com", "kettles", &authority).await;
    until_fresh(client, "kitchen.example.com", "Current").await;
    let kubeconfig = front.kubeconfig.clone();
    let run = async move |args: &'static [&'static str], stdin: String| {
        let kubeconfig = kubeconfig.clone();
        let run = move || Kubectl::new("1.36", &kubeconfig).run(args, &stdin);
        tokio::task::spawn_blocking(run).await.unwrap()
    };
    let made = run(&["create", "-f", "-"], kettle("small").to_string()).await;
    assert_eq!(
        made.stdout, "kettle.kitchen.example.com/small created\n",
        "{}",
        made.stderr
    );
    let shown = run(&["get", "kt,ns", "--no-headers"], String::new()).await;
    assert!(
        shown.stdout.contains("kettle.kitchen.example.com/small"),
        "{}",
        shown.stderr
    );
    assert!(
        shown.stdout.contains("namespace/default"),
        "{}",
        shown.stdout
    );
    let services = run(&["get", "apiservices", NAME, "--no-headers"], String::new()).await;
    let words: Vec<&str> = services.stdout.split_whitespace().collect();
    assert_eq!(
        words[..3],
        [NAME, "default/kettles", "True"],
        "{}",
        services.stderr
    );
    let explained = run(&["explain", "kettle.spec.litres"], String::new()).await;
    assert!(
        explained.stdout.contains("litres <integer>"),
        "{} {}",
        explained.stdout,
        explained.stderr
    );

    let version = revision(&client.get(KETTLES).await.json());
    let mut watch = client
        .watch(&format!("{KETTLES}?watch=1&resourceVersion={version}"))
        .await;
    created(client, KETTLES, &kettle("first")).await;
    let event = watch.event().await;
    assert_eq!(
        (&event["type"], &event["object"]["metadata"]["name"]),
        (&json!("ADDED"), &json!("first"))
    );
    let seen = revision(&event["object"]);
    back.stop().await;
    // The watch ends; what is listed stays answered.
    while watch.line_or_end().await.is_ok_and(|line| line.is_some()) {}
    until(client, KETTLES, |answer| answer.code == 503).await;
    until_available(client, NAME, "False", "FailedDiscoveryCheck").await;
    let shown = run(&["get", "ns", "--no-headers"], String::new()).await;
    assert!(shown.stdout.starts_with("default"), "{}", shown.stderr);
    let shown = run(
        &["get", "--raw", "/apis/kitchen.example.com/v1"],
        String::new(),
    )
    .await;
    assert!(
        shown.stderr.contains("unable to handle the request"),
        "{}",
        shown.stderr
    );
    back.start_again().await;
    until_available(client, NAME, "True", "Passed").await;
    // Requests are forwarded when the server sees the condition that it wrote.
    until(client, KETTLES, |answer| answer.code == 200).await;
    let mut watch = client
        .watch(&format!("{KETTLES}?watch=1&resourceVersion={seen}"))
        .await;
    created(client, KETTLES, &kettle("second")).await;
    let event = watch.event().await;
    assert_eq!(event["object"]["metadata"]["name"], "second");
    front.stop().await;
    back.stop().await;
}

async fn each_kubectl_writes_and_watches_through_the_proxy(on: Backend) {
    let authority = Authority::new();
    let mut back = Back::start(&authority).await;
    let front = Front::start(on, &authority, &[("kettles", back.address())]).await;
    register(&front.client, "kitchen.example.com", "kettles", &authority).await;
    until_fresh(&front.client, "kitchen.example.com", "Current").await;
    let kubeconfig = front.kubeconfig.clone();
    let scripts = tokio::task::spawn_blocking(move || {
        for release in ["1.32", "1.37"] {
            kubectl_script(&Kubectl::new(release, &kubeconfig), release);
        }
    });
    scripts.await.unwrap();
    front.stop().await;
    back.stop().await;
}

fn kubectl_script(kubectl: &Kubectl, release: &str) {
    let run = |args: &[&str], stdin: &str, expected: &str| {
        let output = kubectl.run(args, stdin);
        assert_eq!(
            output.stdout, expected,
            "{release}: {args:?}: {}",
            output.stderr
        );
    };
    let with = |litres: u32| {
        let mut object = kettle("whistling");
        object["spec"]["litres"] = json!(litres);
        object.to_string()
    };
    let named = |done: &str| format!("kettle.kitchen.example.com/whistling {done}\n");
    run(&["apply", "-f", "-"], &with(1), &named("created"));
    run(&["apply", "-f", "-"], &with(2), &named("configured"));
    run(&["apply", "-f", "-"], &with(2), &named("unchanged"));
    run(
        &["apply", "--server-side", "--force-conflicts", "-f", "-"],
        &with(3),
        &named("serverside-applied"),
    );
    let mut watch = kubectl
        .command(&[
            "get",
            "kettles",
            "-w",
            "-o",
            "jsonpath={.metadata.name} {.spec.litres}{\"\\n\"}",
        ])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(watch.stdout.take().unwrap()));
    let mut next = || lines.next().unwrap().unwrap();
    assert_eq!(next(), "whistling 3");
    let patch = [
        "patch",
        "kettle",
        "whistling",
        "--type=merge",
        "-p",
        r#"{"spec":{"litres":4}}"#,
    ];
    run(&patch, "", &named("patched"));
    assert_eq!(next(), "whistling 4");
    let deleted = "kettle.kitchen.example.com \"whistling\" deleted";
    let output = kubectl.run(&["delete", "kettle", "whistling"], "");
    assert!(output.stdout.starts_with(deleted), "{release}: {output:?}");
    assert_eq!(next(), "whistling 4");
    watch.kill().unwrap();
    watch.wait().unwrap();
    run(&["get", "kettles"], "", "");
}
