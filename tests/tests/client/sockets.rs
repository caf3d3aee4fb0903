//! WebSockets to the console of a machine: over HTTP/1.1, and as a stream of a connection of HTTP/2.

use std::time::Duration;

use apiloom_client::client::{CHANNEL_PROTOCOLS, Socket};
use apiloom_client::transport::HttpTransportBuilder;
use apiloom_client::{ApiResource, Client, DynamicObject, Namespaced, ResourceClient};
use apiloom_tests::network::Proxy;
use apiloom_tests::{Backend, Cluster};
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::Method;
use http_body_util::BodyExt as _;
use machine_kinds::generated::methods::machine_v1::MachineMethods as _;
use machine_kinds::v1::Machine;
use serde_json::{Value, json};

use super::over_tls::client_through;

/// A server with the machine `a`, and a proxy before it, which counts connections.
async fn start() -> (Cluster, Proxy) {
    let cluster = Cluster::start_binary(Backend::Embedded, "machine-kinds-server");
    let target = cluster.server().url().trim_start_matches("https://");
    let proxy = Proxy::start(target.to_owned()).await;
    let client = client_through(&cluster, &proxy, |builder| builder);
    let machine: DynamicObject = serde_json::from_value(json!({
        "metadata": {"name": "a"},
        "spec": {"image": "x", "address": ""},
    }))
    .unwrap();
    machines(&client).create(&machine).await.unwrap();
    (cluster, proxy)
}

fn machines(client: &Client) -> ResourceClient<DynamicObject, Namespaced> {
    let machines = ApiResource::new("machine.example.com", "v1", "Machine", "machines");
    client.dynamic_in("default", machines)
}

async fn console(client: &Client, protocols: &[&str]) -> Socket {
    let machines = client.namespaced::<Machine>("default");
    let request = machines.connect_console(Method::GET, "a");
    let request = request.query("banner", "hello");
    request.websocket(protocols).await.unwrap()
}

/// A message of a channel.
fn channel(number: u8, bytes: &[u8]) -> Option<(u8, Bytes)> {
    Some((number, Bytes::copy_from_slice(bytes)))
}

async fn speaks_the_channels(client: &Client) {
    let large = vec![b'x'; 100_000];
    for protocols in [&CHANNEL_PROTOCOLS[..], &CHANNEL_PROTOCOLS[1..]] {
        let mut socket = console(client, protocols).await;
        assert_eq!(socket.protocol(), Some(protocols[0]));
        assert_eq!(
            socket.receive_channel().await.unwrap(),
            channel(1, b"hello")
        );
        for bytes in [b"ls\n".as_slice(), &large] {
            socket.send_channel(0, bytes).await.unwrap();
            assert_eq!(socket.receive_channel().await.unwrap(), channel(1, bytes));
        }
        // The end of the input: an empty message where no channel can be closed.
        if protocols.len() == 2 {
            socket.close_channel(0).await.unwrap();
        } else {
            socket.close_channel(0).await.unwrap_err();
            socket.send_channel(0, b"").await.unwrap();
        }
        let (number, status) = socket.receive_channel().await.unwrap().unwrap();
        let status: Value = serde_json::from_slice(&status).unwrap();
        assert_eq!((number, &status["status"]), (3, &json!("Success")));
        assert_eq!(socket.receive_channel().await.unwrap(), None);
        socket.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_console_speaks_the_channels_over_both_versions_of_http() {
    let (cluster, proxy) = start().await;
    let client = client_through(&cluster, &proxy, HttpTransportBuilder::http1_only);
    speaks_the_channels(&client).await;
    drop(client);
    let client = client_through(&cluster, &proxy, |builder| builder);
    machines(&client).get("a").await.unwrap();
    proxy.settle(1).await;
    speaks_the_channels(&client).await;
    // The server ends the stream without reading the answer to its close frame.
    for _ in 0..30 {
        let mut socket = console(&client, &CHANNEL_PROTOCOLS).await;
        socket.close_channel(0).await.unwrap();
        let mut messages = 0;
        while socket.receive_channel().await.unwrap().is_some() {
            messages += 1;
        }
        assert_eq!(messages, 2);
    }
    // Several at a time share the connection with other requests.
    let mut sockets = Vec::new();
    for _ in 0..5 {
        sockets.push(console(&client, &CHANNEL_PROTOCOLS).await);
    }
    machines(&client).get("a").await.unwrap();
    for socket in &mut sockets {
        assert_eq!(
            socket.receive_channel().await.unwrap(),
            channel(1, b"hello")
        );
    }
    assert_eq!(proxy.connections(), 1);
    // An error of the server is one of the request.
    let nowhere = machines(&client).subresource::<Value>("console");
    let nowhere = nowhere.request(Method::GET, "b");
    let error = nowhere.websocket(&CHANNEL_PROTOCOLS).await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
    // A connection that breaks off is an error of all.
    proxy.cut().await;
    for socket in &mut sockets {
        let next = tokio::time::timeout(Duration::from_secs(60), socket.receive()).await;
        next.unwrap().unwrap_err();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_have_room_again_when_a_socket_ends() {
    let (cluster, proxy) = start().await;
    let client = client_through(&cluster, &proxy, |builder| {
        builder.max_streams_per_connection(2)
    });
    machines(&client).get("a").await.unwrap();
    for _ in 0..10 {
        let socket = console(&client, &CHANNEL_PROTOCOLS).await;
        let second = console(&client, &CHANNEL_PROTOCOLS).await;
        // The third one has a connection for itself.
        let third = console(&client, &CHANNEL_PROTOCOLS).await;
        drop((socket, second, third));
    }
    machines(&client).get("a").await.unwrap();
    proxy.settle(1).await;
}

/// A log is a stream of bytes.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_read_as_it_is_written() {
    let (cluster, proxy) = start().await;
    let client = client_through(&cluster, &proxy, |builder| builder);
    let log = machines(&client).subresource::<Value>("log");
    let request = log.request(Method::GET, "a").query("follow", "true");
    let stream = request.accept("*/*").stream().await.unwrap();
    let mut stream = stream.into_body().into_data_stream();
    let mut text = String::new();
    while !text.contains("a does 5\n") {
        let piece = stream.next().await.unwrap().unwrap();
        text.push_str(std::str::from_utf8(&piece).unwrap());
    }
    assert!(text.starts_with("a does 0\n"), "{text}");
}
