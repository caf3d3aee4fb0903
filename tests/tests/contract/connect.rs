//! Subresources that open streams: over HTTP, over WebSocket, and to another server.

use std::time::Duration;

use apiloom_tests::WebSocket;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::tungstenite::Message;

use crate::*;

on_each_backend![
    c_109_connect_refuses_a_dry_run,
    a_stream_is_sent_as_it_is_made_and_breaks_off_with_the_server,
    a_websocket_is_running_until_it_ends,
    a_panic_ends_its_own_stream_only,
    a_console_speaks_the_channels_of_kubectl,
    a_connect_opens_nothing_but_a_websocket,
    a_websocket_over_http2_brings_its_token_as_a_protocol,
    a_proxy_forwards_the_rest_of_the_path,
    a_proxy_switches_protocols_on_both_sides,
    a_stream_has_its_verbs_and_its_object,
];

const MACHINES: &str = "/apis/machine.example.com/v1/namespaces/default/machines";
const LOG: &str = "/apis/machine.example.com/v1/namespaces/default/machines/a/log";
const CONSOLE: &str = "/apis/machine.example.com/v1/namespaces/default/machines/a/console";
const PROXY: &str = "/apis/machine.example.com/v1/namespaces/default/machines/a/proxy";

/// A server with the machine `a`, whose HTTP server is at an address, and a client.
async fn start(on: Backend, address: &str) -> (Cluster, Client) {
    let cluster = Cluster::start_binary(on, "machine-kinds-server");
    let client = cluster.client();
    let machine = json!({"apiVersion": "machine.example.com/v1", "kind": "Machine", "metadata": {"name": "a"},
        "spec": {"image": "x", "address": address}});
    created(&client, MACHINES, &machine).await;
    (cluster, client)
}

async fn c_109_connect_refuses_a_dry_run(on: Backend) {
    let (_server, client) = start(on, "").await;
    for path in [LOG, CONSOLE, PROXY] {
        for query in ["dryRun=All", "dryRun="] {
            let answer = client.get(&format!("{path}?{query}")).await;
            let message = "dryRun is not supported";
            check_failure(&answer, 400, "BadRequest", message, Value::Null);
        }
    }
}

async fn a_stream_is_sent_as_it_is_made_and_breaks_off_with_the_server(on: Backend) {
    let (mut server, client) = start(on, "").await;
    let answer = client.get(LOG).await;
    assert_eq!(
        (answer.code, answer.header("content-type")),
        (200, "text/plain")
    );
    assert_eq!(answer.text(), "a does 0\na does 1\na does 2\n");
    let answer = client.get(&format!("{LOG}?tailLines=x")).await;
    let message = r#"tailLines "x" is not a number"#;
    check_failure(&answer, 400, "BadRequest", message, Value::Null);
    let mut stream = client.watch_as(&format!("{LOG}?follow=true"), "*/*").await;
    for number in 0..6 {
        let line = stream.line().await;
        assert_eq!(
            line.as_deref().map(str::trim_end),
            Some(&*format!("a does {number}"))
        );
    }
    assert_eq!(running(&client, "log").await, 1);
    // The stream is broken off: a clean end would say that there is no more.
    let (_, end) = tokio::join!(
        async { tokio::task::block_in_place(|| server.stop()) },
        async {
            loop {
                match stream.line_or_end().await {
                    Ok(Some(_)) => {}
                    end => break end,
                }
            }
        }
    );
    assert!(end.is_err(), "{end:?}");
}

/// How many streams of a subresource are running, according to the metrics.
async fn running(client: &Client, subresource: &str) -> usize {
    let metrics = client.get("/metrics").await.text();
    let labels =
        format!(r#"subresource="{subresource}",scope="resource",component="apiserver"}} "#);
    let mut lines = metrics
        .lines()
        .filter(|line| line.starts_with("apiserver_longrunning_requests"));
    lines
        .find_map(|line| line.split_once(&labels))
        .map_or(0, |(_, count)| count.parse().unwrap())
}

async fn a_websocket_is_running_until_it_ends(on: Backend) {
    let (server, client) = start(on, "").await;
    let http1 = server.client_of_http1();
    let (_, _, first) = http1.websocket(CONSOLE, &[PROTOCOLS]).await;
    let (_, second) = over_http2(&client, CONSOLE, &[PROTOCOLS]).await;
    let mut sockets = [first.unwrap(), second.unwrap()];
    for socket in &mut sockets {
        assert_eq!(socket.next().await.unwrap().unwrap(), channel(1, b""));
    }
    assert_eq!(running(&client, "console").await, 2);
    for (socket, rest) in sockets.into_iter().zip([1, 0]) {
        drop(socket);
        let is_counted = async {
            while running(&client, "console").await != rest {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let is_counted = tokio::time::timeout(Duration::from_secs(30), is_counted).await;
        is_counted.expect("the stream has ended");
    }
}

async fn a_panic_ends_its_own_stream_only(on: Backend) {
    let (server, client) = start(on, "").await;
    let mut stream = client.watch_as(&format!("{LOG}?follow=1"), "*/*").await;
    let path = format!("{LOG}?panic=1");
    assert!(client.try_call("GET", &path, &[], "").await.is_err());
    let http1 = server.client_of_http1();
    let (code, _, socket) = http1.websocket(CONSOLE, &[PROTOCOLS]).await;
    assert_eq!(code, 101);
    let mut socket = socket.unwrap();
    socket.send(channel(0, b"panic")).await.unwrap();
    while let Some(Ok(message)) = socket.next().await {
        assert!(
            message.is_close() || message == channel(1, b""),
            "{message:?}"
        );
    }
    assert!(stream.line().await.is_some());
    assert_eq!(client.get(LOG).await.code, 200);
}

const PROTOCOLS: (&str, &str) = (
    "sec-websocket-protocol",
    "v5.channel.k8s.io, v4.channel.k8s.io",
);

/// A message of a channel.
fn channel(number: u8, bytes: &[u8]) -> Message {
    Message::Binary([&[number], bytes].concat().into())
}

async fn a_console_speaks_the_channels_of_kubectl(on: Backend) {
    let (server, client) = start(on, "").await;
    let http1 = server.client_of_http1();
    let v4 = ("sec-websocket-protocol", "v4.channel.k8s.io");
    for (protocol, end, is_http2) in [
        (PROTOCOLS, channel(255, &[0]), false),
        (v4, channel(0, b""), false),
        (PROTOCOLS, channel(255, &[0]), true),
        (v4, channel(0, b""), true),
    ] {
        let path = format!("{CONSOLE}?banner=hello");
        let first = protocol.1.split(',').next().unwrap();
        let socket = if is_http2 {
            let (answer, socket) = over_http2(&client, &path, &[protocol]).await;
            assert_eq!(
                (answer.code, answer.header("sec-websocket-protocol")),
                (200, first)
            );
            assert_eq!(answer.header("sec-websocket-accept"), "");
            socket
        } else {
            let (code, headers, socket) = http1.websocket(&path, &[protocol]).await;
            assert_eq!(
                (code, headers["sec-websocket-protocol"].as_bytes()),
                (101, first.as_bytes())
            );
            socket
        };
        let mut socket = socket.unwrap();
        let large = vec![b'x'; 100_000];
        assert_eq!(socket.next().await.unwrap().unwrap(), channel(1, b"hello"));
        for bytes in [b"ls\n".as_slice(), &large] {
            socket.send(channel(0, bytes)).await.unwrap();
            assert_eq!(socket.next().await.unwrap().unwrap(), channel(1, bytes));
        }
        socket.send(end).await.unwrap();
        let Message::Binary(result) = socket.next().await.unwrap().unwrap() else {
            panic!("the result is bytes")
        };
        let status: Value = serde_json::from_slice(&result[1..]).unwrap();
        assert_eq!((result[0], &status["status"]), (3, &json!("Success")));
        assert!(socket.next().await.unwrap().unwrap().is_close());
    }
    let answer = client.get(CONSOLE).await;
    check_failure(
        &answer,
        400,
        "BadRequest",
        "Upgrade request required",
        Value::Null,
    );
    let unknown = ("sec-websocket-protocol", "v9.channel.k8s.io");
    let (code, ..) = http1.websocket(CONSOLE, &[unknown]).await;
    assert_eq!(code, 400);
    let (answer, _) = over_http2(&client, CONSOLE, &[unknown]).await;
    let message = "none of the requested subprotocols is supported, which are: v5.channel.k8s.io, v4.channel.k8s.io";
    check_failure(&answer, 400, "BadRequest", message, Value::Null);
}

/// Requests WebSocket over HTTP/2.
async fn over_http2(
    client: &Client,
    path: &str,
    headers: &[(&str, &str)],
) -> (Answer, Option<WebSocket>) {
    let headers = [&[("sec-websocket-version", "13")], headers].concat();
    client.connect_over_http2(path, "websocket", &headers).await
}

/// hyper makes a tunnel of every 2xx response to a CONNECT.
async fn a_connect_opens_nothing_but_a_websocket(on: Backend) {
    let (_server, client) = start(on, "").await;
    let message = "CONNECT is supported only for subresources that serve WebSocket: use GET";
    let machine = format!("{MACHINES}/a");
    for path in [
        LOG,
        MACHINES,
        &machine,
        &format!("{MACHINES}?watch=1"),
        &format!("{machine}/status"),
        "/version",
        "/healthz",
        "/openapi/v3",
    ] {
        let (answer, socket) = over_http2(&client, path, &[PROTOCOLS]).await;
        check_failure(&answer, 400, "BadRequest", message, Value::Null);
        assert!(socket.is_none());
    }
    let (answer, _) = over_http2(&client, "/metrics", &[]).await;
    assert_eq!(answer.code, 400);
    let message = "CONNECT is supported only over HTTP/2 and with the pseudo-header :protocol, which must be \"websocket\"";
    let (answer, _) = client.connect_over_http2("", "", &[PROTOCOLS]).await;
    check_failure(&answer, 400, "BadRequest", message, Value::Null);
    let message = "unsupported :protocol \"connect-udp\" of a CONNECT request: only \"websocket\" is supported";
    let (answer, _) = client
        .connect_over_http2(CONSOLE, "connect-udp", &[PROTOCOLS])
        .await;
    check_failure(&answer, 400, "BadRequest", message, Value::Null);
    // Without a version of the protocol, or with an unknown one.
    for headers in [
        vec![PROTOCOLS],
        vec![PROTOCOLS, ("sec-websocket-version", "8")],
    ] {
        let (answer, _) = client
            .connect_over_http2(CONSOLE, "websocket", &headers)
            .await;
        let message = "Upgrade request required";
        check_failure(&answer, 400, "BadRequest", message, Value::Null);
    }
    // A proxy responds with what another server says.
    let (address, serving) = backend().await;
    let address = json!({"spec": {"address": address}});
    assert_eq!(client.merge(&machine, &address).await.code, 200);
    let (answer, _) = over_http2(&client, PROXY, &[]).await;
    assert_eq!(answer.code, 400, "{}", answer.text());
    serving.abort();
    // The connection was not harmed.
    assert_eq!(client.get(LOG).await.code, 200);
}

async fn a_websocket_over_http2_brings_its_token_as_a_protocol(on: Backend) {
    let (_server, client) = start(on, "").await;
    let token = URL_SAFE_NO_PAD.encode(client.token());
    let protocols = format!("v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.{token}");
    let anonymous = client.clone().anonymous();
    let headers = [("sec-websocket-protocol", protocols.as_str())];
    let (answer, socket) = over_http2(&anonymous, CONSOLE, &headers).await;
    assert_eq!(
        (answer.code, answer.header("sec-websocket-protocol")),
        (200, "v5.channel.k8s.io")
    );
    assert!(socket.is_some());
    let (answer, _) = over_http2(&anonymous, CONSOLE, &[PROTOCOLS]).await;
    assert_eq!(answer.code, 403);
    let wrong = [(
        "sec-websocket-protocol",
        "x, base64url.bearer.authorization.k8s.io.d3Jvbmc",
    )];
    let (answer, _) = over_http2(&anonymous, CONSOLE, &wrong).await;
    assert_eq!(answer.code, 401);
}

/// Answers one request after the other with what it received, until it is dropped.
async fn backend() -> (String, tokio::task::JoinHandle<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serving = tokio::spawn(async move {
        loop {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut read = Vec::new();
            // The only body is `hello`.
            let is_whole = |read: &[u8]| {
                let has_head = read.windows(4).any(|four| four == b"\r\n\r\n");
                has_head && (!read.starts_with(b"POST") || read.ends_with(b"hello"))
            };
            while !is_whole(&read) {
                if connection.read_buf(&mut read).await.unwrap() == 0 {
                    break;
                }
            }
            let status = if read.starts_with(b"GET /switch") {
                "101 Switching"
            } else {
                "203 Fine"
            };
            let head =
                format!("HTTP/1.0 {status}\r\ncontent-type: text/odd\r\nconnection: close\r\n\r\n");
            let response = [head.as_bytes(), &read].concat();
            connection.write_all(&response).await.unwrap();
            connection.shutdown().await.unwrap();
            // Until the client closes, so that it reads everything.
            while connection
                .read_buf(&mut read)
                .await
                .is_ok_and(|bytes| bytes > 0)
            {}
        }
    });
    (address, serving)
}

async fn a_proxy_forwards_the_rest_of_the_path(on: Backend) {
    let (address, serving) = backend().await;
    let (_server, client) = start(on, &address).await;
    for (rest, expected) in [
        ("", "GET / HTTP/1.0"),
        ("/", "GET / HTTP/1.0"),
        ("/a/b%20c/?x=1&x=2", "GET /a/b%20c/?x=1&x=2 HTTP/1.0"),
        ("/status//x", "GET /status//x HTTP/1.0"),
    ] {
        let answer = client.get(&format!("{PROXY}{rest}")).await;
        assert_eq!(
            (answer.code, answer.header("content-type")),
            (203, "text/odd"),
            "{rest}"
        );
        assert_eq!(answer.text().lines().next(), Some(expected));
        assert!(!answer.text().contains("uthorization"), "{}", answer.text());
    }
    // The other server gets no connection of the client.
    let answer = client.get(&format!("{PROXY}/switch")).await;
    assert_eq!(answer.code, 500);
    assert!(
        answer
            .text()
            .contains("a handler responded with the status 101")
    );
    for path in ["/../x", "/x/%2e%2e/%2E./y"] {
        let answer = client.get(&format!("{PROXY}{path}")).await;
        let message = "the path after the subresource must not contain the segment \"..\"";
        check_failure(&answer, 400, "BadRequest", message, Value::Null);
    }
    let answer = client
        .call("POST", &format!("{PROXY}/x"), &[], "hello")
        .await;
    assert!(answer.text().starts_with("POST /x HTTP/1.0"));
    assert!(answer.text().ends_with("hello"), "{}", answer.text());
    serving.abort();
    let nobody = json!({"spec": {"address": "127.0.0.1:1"}});
    assert_eq!(
        client.merge(&format!("{MACHINES}/a"), &nobody).await.code,
        200
    );
    let answer = client.get(PROXY).await;
    assert_eq!(
        (answer.code, answer.json()["reason"].as_str()),
        (503, Some("ServiceUnavailable"))
    );
}

/// Switches each connection to the protocol that its request asks for, says `welcome` in the same piece as the head, and sends
/// back what it reads. Of a request for WebSocket it sends back the key as the answer to it.
async fn switching_backend() -> (String, tokio::task::JoinHandle<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serving = tokio::spawn(async move {
        loop {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut read = Vec::new();
            while !read.ends_with(b"\r\n\r\n") {
                assert_ne!(connection.read_buf(&mut read).await.unwrap(), 0);
            }
            let head = String::from_utf8(read).unwrap();
            let value = |name: &str| {
                let mut lines = head.lines();
                lines.find_map(|line| Some(line.strip_prefix(name)?.to_owned()))
            };
            assert_eq!(value("connection: ").as_deref(), Some("Upgrade"));
            let protocol = value("upgrade: ").unwrap();
            let key = value("sec-websocket-key: ").unwrap_or_default();
            let answer = format!(
                "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: {protocol}\r\nx-key: {key}\r\n\r\nwelcome"
            );
            connection.write_all(answer.as_bytes()).await.unwrap();
            tokio::spawn(async move {
                let (mut from, mut to) = connection.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
                let _ = to.shutdown().await;
            });
        }
    });
    (address, serving)
}

async fn a_proxy_switches_protocols_on_both_sides(on: Backend) {
    let (address, serving) = switching_backend().await;
    let (mut server, client) = start(on, &address).await;
    let http1 = server.client_of_http1();
    let path = format!("{PROXY}/x");
    for protocol in ["SPDY/3.1", "websocket"] {
        let mut stream = http1.upgrade(&path, protocol).await;
        let mut read = [0; 7];
        stream.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"welcome", "{protocol}");
        // No frames of any protocol: the bytes are copied as they are.
        let sent = vec![0xff; 300_000];
        let (mut from, mut to) = tokio::io::split(&mut stream);
        let mut echo = vec![0; sent.len()];
        let (written, received) = tokio::join!(to.write_all(&sent), from.read_exact(&mut echo));
        written.unwrap();
        received.unwrap();
        assert!(echo == sent, "{protocol}");
        assert_eq!(running(&client, "proxy").await, 1);
        // The end of one side is the end of the other.
        to.shutdown().await.unwrap();
        assert_eq!(from.read(&mut read).await.unwrap(), 0);
        drop(stream);
        let is_over = async {
            while running(&client, "proxy").await > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let is_over = tokio::time::timeout(Duration::from_secs(30), is_over).await;
        is_over.expect("the stream has ended");
    }
    // What is open when the server stops is closed.
    let mut stream = http1.upgrade(&path, "SPDY/3.1").await;
    tokio::task::block_in_place(|| server.stop());
    let mut rest = Vec::new();
    let end = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut rest)).await;
    assert!(end.is_ok(), "the stream has ended");
    serving.abort();
}

async fn a_stream_has_its_verbs_and_its_object(on: Backend) {
    let (_server, client) = start(on, "").await;
    let list = client.get("/apis/machine.example.com/v1").await.json();
    let verbs = |name: &str| {
        let mut entries = list["resources"].as_array().unwrap().iter();
        entries.find(|entry| entry["name"] == name).unwrap()["verbs"].clone()
    };
    assert_eq!(verbs("machines/log"), json!(["get"]));
    assert_eq!(verbs("machines/console"), json!(["create", "get"]));
    let proxy = json!(["create", "delete", "get", "patch", "update"]);
    assert_eq!(verbs("machines/proxy"), proxy);
    let message = "the server does not allow this method on the requested resource";
    let answer = client.post(LOG, &json!({})).await;
    check_failure(&answer, 405, "MethodNotAllowed", message, json!({}));
    let message = r#"machines.machine.example.com "b" not found"#;
    let details = json!({"name": "b", "group": "machine.example.com", "kind": "machines"});
    let answer = client.get(&format!("{MACHINES}/b/log")).await;
    check_failure(&answer, 404, "NotFound", message, details);
}
