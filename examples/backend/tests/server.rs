//! A server over the store, whose objects outlive it.

use std::path::Path;
use std::sync::Arc;

use apiloom::server::{self, Config};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use json_lines_store::JsonLines;
use serde_json::Value;
use tokio::sync::oneshot;

/// Sends one request to a server over the store in a file; the status and the body.
async fn send(file: &Path, method: &str, url: &str, body: &'static str) -> (u16, Value) {
    let store = Arc::new(JsonLines::open(file).expect("the store opens"));
    // Nothing is written to the data folder: this one cannot be made.
    let config = Config::new("namespaces", "/proc/none");
    let server = server::builder(config).storage(store).build().await;
    let started = server.expect("it is built").start().await;
    let server = started.expect("it starts");
    let loopback = server.loopback().privileged();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(async { drop(stopped.await) }));
    let request = Request::builder()
        .method(method)
        .uri(url)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from_static(body.as_bytes())));
    let answer = loopback.send(request.expect("a request")).await;
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.expect("a whole body").to_bytes();
    stop.send(()).expect("it serves");
    serving.await.expect("it stops");
    let body = serde_json::from_slice(&body).expect("JSON");
    (parts.status.as_u16(), body)
}

#[tokio::test]
async fn objects_outlive_their_server() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("store.jsonl");
    let created = send(
        &file,
        "POST",
        "/api/v1/namespaces",
        r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kept"}}"#,
    );
    let (code, created) = created.await;
    assert_eq!(code, 201, "{created}");
    let (code, read) = send(&file, "GET", "/api/v1/namespaces/kept", "").await;
    assert_eq!(code, 200, "{read}");
    assert_eq!(read["metadata"]["uid"], created["metadata"]["uid"]);
}
