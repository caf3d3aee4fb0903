//! A chain of servers in one process, and what a program adds to a server: handlers of paths, hooks and health checks.

use apiloom::prelude::ObjectMeta;
use apiloom::server::auth::BoxError;
use apiloom::server::health::Check;
use apiloom::server::http::{PathRequest, PathResponse};
use apiloom::server::{self, Backend as ServerBackend, Builder, Config, Endpoints, HookContext};
use tokio::sync::oneshot;

use super::pair::{Kettle, Running, free_address};
use super::*;

/// Oven bakes.
#[apiloom::resource(group = "oven.example.com", version = "v1", namespaced)]
pub(crate) struct Oven {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: OvenSpec,
}

#[apiloom::api]
pub(crate) struct OvenSpec {
    /// How hot it is.
    pub(crate) degrees: i32,
}

/// Toaster toasts.
#[apiloom::resource(group = "kitchen.example.com", version = "v1", namespaced)]
pub(crate) struct Toaster {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: OvenSpec,
}

const OVENS: &str = "/apis/oven.example.com/v1/namespaces/default/ovens";

/// A server in memory.
fn server(dir: &tempfile::TempDir) -> Builder {
    let mut config = Config::new("chain", dir.path());
    config.backend = ServerBackend::Memory;
    config.secure_port = free_address().port();
    server::builder(config)
}

async fn echo(request: PathRequest) -> String {
    format!(
        "{} {} {}",
        request.method,
        request.path,
        request.text("with")
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_does_not_serve_is_answered_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let (open, opened) = oneshot::channel::<()>();
    let hook = async |_: HookContext| -> Result<(), BoxError> { Ok(opened.await?) };
    let next = server(&dir).kind::<Oven>().kind::<Toaster>();
    let next = next
        .path("/of-the-next", echo)
        .prefix("/below/", echo)
        .unlisted_path("/hidden", echo)
        .post_start_hook("of-the-next", hook)
        .health_check(Check::new("oven-is-off", || Ok(())));
    let next = next.build().await.unwrap();
    let first = server(&dir).kind::<Kettle>().all_built_in().delegate(next);
    let running = Running::start(first.build().await.unwrap()).await;
    let client = Client::new(&running.kubeconfig);

    // The health of both, under the names that they have.
    let unfinished = client.get("/readyz/poststarthook/of-the-next").await;
    assert_eq!(
        (unfinished.code, unfinished.text()),
        (500, "internal server error: not finished\n".to_owned())
    );
    open.send(()).unwrap();
    let ready = until(&client, "/readyz?verbose", |answer| answer.code == 200).await;
    let lines = ready.text();
    for name in ["poststarthook/of-the-next", "oven-is-off"] {
        let line = format!("[+]{name} ok\n");
        assert_eq!(lines.matches(&line).count(), 1, "{lines}");
    }
    assert_eq!(lines.matches("[+]watch-cache ok\n").count(), 1, "{lines}");
    assert!(lines.ends_with("[+]shutdown ok\nreadyz check passed\n"));

    // Objects, by one chain of filters.
    let oven = json!({"apiVersion": "oven.example.com/v1", "kind": "Oven", "metadata": {"name": "hot"}, "spec": {"degrees": 180}});
    created(&client, OVENS, &oven).await;
    let mut watch = client.watch(&format!("{OVENS}?watch=1")).await;
    assert_eq!(watch.event().await["object"]["spec"]["degrees"], 180);
    created(&client, KETTLES, &kettle("small")).await;
    let anonymous = Client::new(&running.kubeconfig).anonymous();
    for path in [OVENS, "/of-the-next"] {
        assert_eq!(anonymous.get(path).await.code, 403, "{path}");
    }
    let metrics = client.get("/metrics").await.text();
    assert!(metrics.contains("group=\"oven.example.com\""), "{metrics}");

    // Documents: a version belongs to the first server that has it.
    let (list, _) = aggregated(&client).await;
    let resources = |group: &str| -> Vec<Value> {
        let version = version_of(&list, group);
        let resources = version["resources"].as_array().unwrap().iter();
        resources.map(|one| one["resource"].clone()).collect()
    };
    assert_eq!(resources("oven.example.com"), ["ovens"]);
    assert_eq!(resources("kitchen.example.com"), ["kettles"]);
    let toasters = "/apis/kitchen.example.com/v1/namespaces/default/toasters";
    assert_eq!(client.get(toasters).await.code, 404);
    assert_eq!(client.get(KETTLES).await.code, 200);
    let group = client.get("/apis/oven.example.com").await.json();
    assert_eq!(group["preferredVersion"]["version"], "v1");
    let listed = client.get("/apis/oven.example.com/v1").await.json();
    assert_eq!(listed["resources"][0]["name"], "ovens");
    let index = client.get("/openapi/v3").await.json();
    let entry = &index["paths"]["apis/oven.example.com/v1"]["serverRelativeURL"];
    let document = client.get(entry.as_str().unwrap()).await.json();
    let schemas = &document["components"]["schemas"];
    assert!(schemas.get("com.example.oven.v1.Oven").is_some());
    let v2 = client.get("/openapi/v2").await.json();
    for name in ["com.example.oven.v1.Oven", "com.example.kitchen.v1.Kettle"] {
        assert!(v2["definitions"].get(name).is_some(), "{name}");
    }
    until_available(&client, "v1.oven.example.com", "True", "Local").await;
    let kubeconfig = running.kubeconfig.clone();
    let run =
        move || Kubectl::new("1.36", &kubeconfig).run(&["get", "ovens,kettles", "-o", "name"], "");
    let shown = tokio::task::spawn_blocking(run).await.unwrap();
    assert_eq!(
        shown.stdout, "oven.oven.example.com/hot\nkettle.kitchen.example.com/small\n",
        "{}",
        shown.stderr
    );

    // Paths, and the end of the chain.
    for (path, expected) in [
        ("/of-the-next?with=more", "GET /of-the-next more"),
        ("/below/a%20b", "GET /below/a b "),
        ("/hidden", "GET /hidden "),
    ] {
        assert_eq!(client.get(path).await.text(), expected);
    }
    for path in [
        "/below",
        "/nothing",
        "/apis/nothing.example.com/v1/things",
        "/apis/oven.example.com/v2",
    ] {
        assert_eq!(client.get(path).await.code, 404, "{path}");
    }
    let paths = client.get("/").await.json();
    let paths = paths["paths"].as_array().unwrap();
    for path in ["/of-the-next", "/below/", "/apis/oven.example.com/v1"] {
        assert!(paths.contains(&json!(path)), "{path}");
    }
    assert!(!paths.contains(&json!("/hidden")));

    // A watch of the next server ends with the first.
    let (rest, ()) = tokio::join!(watch.rest(), running.stop());
    assert!(rest.is_empty(), "{rest:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_has_handlers_of_its_own_paths() {
    let dir = tempfile::tempdir().unwrap();
    let informational = async |_: PathRequest| {
        let mut response = http::Response::new(String::new());
        *response.status_mut() = http::StatusCode::SWITCHING_PROTOCOLS;
        PathResponse::from(response)
    };
    let teapot = async |mut request: PathRequest| {
        let mut body = Vec::new();
        while let Some(piece) = request.body.next().await {
            body.extend_from_slice(&piece.unwrap());
        }
        let seen = request.headers.contains_key("x-remote-user");
        let response = http::Response::builder()
            .status(418)
            .header("x-seen", seen.to_string());
        response.body(String::from_utf8(body).unwrap()).unwrap()
    };
    let panics = async |_: PathRequest| -> String { panic!("as the test wants it") };
    let hook = async |_: HookContext| -> Result<(), BoxError> { Err("no luck".into()) };
    let builder = server(&dir).kind::<Kettle>();
    let builder = builder
        .path("/version", echo)
        .path("/apis/own.example.com/v1/things", echo)
        .prefix("/", echo)
        .prefix("/tea/", teapot)
        .path("/switch", informational)
        .path("/panic", panics)
        .post_start_hook("unlucky", hook);
    let running = Running::start(builder.build().await.unwrap()).await;
    let client = Client::new(&running.kubeconfig);
    for (path, expected) in [
        // Before a document of the server, and in place of a 404.
        ("/version", "GET /version "),
        (
            "/apis/own.example.com/v1/things",
            "GET /apis/own.example.com/v1/things ",
        ),
        (
            "/apis/none.example.com/v1/a",
            "GET /apis/none.example.com/v1/a ",
        ),
        ("/anything", "GET /anything "),
    ] {
        assert_eq!(client.get(path).await.text(), expected);
    }
    let remote = [("x-remote-user", "someone")];
    let tea = client.call("PUT", "/tea/pot", &remote, "leaves").await;
    assert_eq!(
        (tea.code, tea.text(), tea.header("x-seen")),
        (418, "leaves".to_owned(), "false")
    );
    assert_eq!(client.get(KETTLES).await.code, 200);
    assert_eq!(
        client.get("/apis/kitchen.example.com/v1").await.json()["kind"],
        "APIResourceList"
    );
    for path in ["/switch", "/panic"] {
        assert_eq!(client.get(path).await.code, 500, "{path}");
    }
    // A hook that failed: the server stays unhealthy.
    let failed = "internal server error: no luck\n";
    let answer = until(&client, "/livez/poststarthook/unlucky", |answer| {
        answer.text() == failed
    });
    assert_eq!(answer.await.code, 500);
    assert_eq!(client.get("/livez").await.code, 500);
    running.stop().await;

    let wrong = server(&dir)
        .path("a", echo)
        .prefix("/b", echo)
        .path("/c", echo)
        .path("/c", echo);
    let Err(error) = wrong.build().await else {
        panic!("the paths are wrong");
    };
    assert_eq!(error.to_string().lines().count(), 3, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_document_of_a_server_can_be_off() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::new("quiet", dir.path());
    config.backend = ServerBackend::Memory;
    config.secure_port = free_address().port();
    config.endpoints = Endpoints {
        index: false,
        discovery: false,
        openapi: false,
        metrics: false,
    };
    let server = server::builder(config.clone()).kind::<Kettle>().build();
    let running = Running::start(server.await.unwrap()).await;
    let client = Client::new(&running.kubeconfig);
    for path in [
        "/",
        "/api",
        "/api/v1",
        "/apis",
        "/apis/kitchen.example.com",
        "/openapi/v2",
        "/openapi/v3",
        "/metrics",
    ] {
        assert_eq!(client.get(path).await.code, 404, "{path}");
    }
    for path in ["/version", "/healthz", KETTLES] {
        assert_eq!(client.get(path).await.code, 200, "{path}");
    }
    running.stop().await;

    // What is off is not in the list of what is there.
    config.endpoints.index = true;
    config.secure_port = free_address().port();
    let server = server::builder(config).kind::<Kettle>().build();
    let running = Running::start(server.await.unwrap()).await;
    let client = Client::new(&running.kubeconfig);
    let paths = client.get("/").await.json()["paths"].clone();
    for path in paths.as_array().unwrap() {
        let path = path.as_str().unwrap();
        assert!(!path.starts_with("/api"), "{path}");
        assert_ne!(client.get(path).await.code, 404, "{path}");
    }
    running.stop().await;
}
