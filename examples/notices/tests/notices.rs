//! The part in a server, from its flag to its stop.

use std::process::{Command, Output};

use apiloom::server::{self, Backend, Builder, Config, Loopback};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use notices::{Notices, configure};
use serde_json::{Value, json};
use tokio::sync::oneshot;

const NOTICES: &str = "/apis/notices.example.com/v1/notices";

fn builder() -> Builder {
    // Nothing is written to the data folder: this one cannot be made.
    let mut config = Config::new("notices", "/proc/none");
    config.backend = Backend::Memory;
    configure(server::builder(config))
}

async fn send(
    loopback: &Loopback,
    method: &str,
    url: &str,
    body: &Value,
) -> Response<apiloom::server::http::Body> {
    let body = Full::new(Bytes::from(body.to_string()));
    let request = Request::builder().method(method).uri(url);
    let request = request
        .header("content-type", "application/json")
        .body(body);
    loopback.send(request.expect("a request")).await
}

async fn text(response: Response<apiloom::server::http::Body>) -> String {
    let body = response.into_body().collect().await.expect("a whole body");
    String::from_utf8(body.to_bytes().to_vec()).expect("a text")
}

fn notices(response: &Response<apiloom::server::http::Body>) -> Vec<&str> {
    let values = response.headers().get_all("x-notice").iter();
    values.map(|value| value.to_str().expect("ASCII")).collect()
}

/// Waits for the status of a notice.
async fn wait_until_shown(loopback: &Loopback, name: &str, is_shown: bool) {
    let url = format!("{NOTICES}?watch=1&fieldSelector=metadata.name={name}");
    let mut events = send(loopback, "GET", &url, &Value::Null).await.into_body();
    loop {
        let frame = events.frame().await.expect("the watch goes on");
        let data = frame.expect("a piece").into_data().expect("data");
        // Events that are ready together come in one piece.
        let mut told = serde_json::Deserializer::from_slice(&data).into_iter::<Value>();
        if told.any(|event| event.expect("an event")["object"]["status"]["shown"] == is_shown) {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn notices_are_shown_with_each_response() {
    let server = builder().build().await.expect("it is built");
    let server = server.start().await.expect("it starts");
    let loopback = server.loopback().privileged();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(async { drop(stopped.await) }));
    for (name, text) in [
        ("a", "first"),
        ("b", "second"),
        ("c", "third"),
        ("d", "fourth"),
    ] {
        let notice = json!({"metadata": {"name": name}, "spec": {"text": text}});
        let created = send(&loopback, "POST", NOTICES, &notice).await;
        assert_eq!(created.status(), 201);
    }
    // Three are shown, which is the default of the flag.
    wait_until_shown(&loopback, "d", false).await;
    wait_until_shown(&loopback, "c", true).await;
    let shown = ["first", "second", "third"];
    let version = send(&loopback, "GET", "/version", &Value::Null).await;
    assert_eq!(notices(&version), shown);
    let listed = send(&loopback, "GET", "/notices", &Value::Null).await;
    assert_eq!(text(listed).await, "first\nsecond\nthird\n");
    let metrics = send(&loopback, "GET", "/metrics", &Value::Null).await;
    assert!(text(metrics).await.contains("\nnotices_shown 3\n"));
    let health = send(&loopback, "GET", "/healthz/notices", &Value::Null).await;
    assert_eq!(
        (health.status().as_u16(), &*text(health).await),
        (200, "ok")
    );
    let refused = json!({"metadata": {"name": "e"}, "spec": {"text": "two\nlines"}});
    let refused = send(&loopback, "POST", NOTICES, &refused).await;
    assert_eq!(refused.status(), 422);

    let url = format!("{NOTICES}/a");
    let deleted = send(&loopback, "DELETE", &url, &Value::Null).await;
    assert_eq!(deleted.status(), 200);
    wait_until_shown(&loopback, "d", true).await;
    let version = send(&loopback, "GET", "/version", &Value::Null).await;
    assert_eq!(notices(&version), ["second", "third", "fourth"]);
    stop.send(()).expect("it serves");
    serving.await.expect("it stops");
}

#[tokio::test]
async fn lists_say_what_the_part_brought() {
    let chain = builder().chain().expect("a chain");
    let own: Vec<&str> = chain
        .iter()
        .filter(|filter| filter.part == "notices")
        .map(|filter| &*filter.name)
        .collect();
    assert_eq!(own, ["show-notices"]);
    let routes = builder().routes().await.expect("routes");
    let own: Vec<&str> = routes
        .iter()
        .filter(|route| route.part == "notices")
        .map(|route| &*route.path)
        .collect();
    let expected = [
        "/notices",
        "/apis/notices.example.com/v1/notices",
        "/apis/notices.example.com/v1/notices/{name}",
        "/apis/notices.example.com/v1/notices/{name}/status",
        "/apis/notices.example.com/v1/watch/notices",
        "/apis/notices.example.com/v1/watch/notices/{name}",
        "/healthz/notices",
        "/livez/notices",
        "/readyz/notices",
    ];
    assert_eq!(own, expected);
    let twice = builder().part(Notices::default()).build().await;
    let problems = twice.err().expect("two parts of one name").to_string();
    assert!(
        problems.contains("there are two parts \"notices\""),
        "{problems}"
    );
}

/// Runs the server as a process until it ends by itself.
fn run(args: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_notices-server"));
    let command = command.current_dir(folder.path()).args(args);
    command.output().expect("it runs")
}

#[test]
fn the_flag_of_the_part_is_one_of_the_server() {
    let help = run(&["--help"]);
    let text = String::from_utf8_lossy(&help.stdout);
    assert!(
        text.contains("Notice flags:\n      --max-notices <NUMBER>"),
        "{text}"
    );
    assert!(text.contains("Generic flags:"), "{text}");
    let listed = run(&["print-chain", "--max-notices=1", "--secure_port", "7"]);
    let text = String::from_utf8_lossy(&listed.stdout);
    assert!(
        listed.status.success() && text.contains("show-notices"),
        "{listed:?}"
    );
    // All problems are told, those of the part and those of the server.
    let refused = run(&["--max-notices", "x", "--secure-port=y", "--max-notice=3"]);
    let problems = String::from_utf8_lossy(&refused.stderr);
    let expected = "\
        error: invalid value 'x' for '--max-notices <NUMBER>': invalid digit found in string\n\
        error: invalid value 'y' for '--secure-port <PORT>': invalid digit found in string\n\
        error: unexpected argument '--max-notice' found\n";
    assert!(problems.starts_with(expected), "{problems}");
    assert_eq!(
        (refused.status.code(), &*refused.stdout),
        (Some(1), &b""[..])
    );
}
