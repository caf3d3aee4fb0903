//! Servers that never come to an end, or break HTTP: a request ends with its deadline or before, and its connection with it.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use super::*;
use crate::client::Client;
use crate::error::Error;

/// Deadline of a request to a server that goes on for ever.
const DEADLINE: Duration = Duration::from_millis(300);

/// Every request has ended by then, also on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that answers one request with `first`, and then with `again` for ever. The receiver is told when its client has gone.
async fn server(first: &'static [u8], again: &'static [u8]) -> (Client, oneshot::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (gone, is_gone) = oneshot::channel();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        // It fails when the client has gone.
        let _ = serve(&mut stream, first, again).await;
        let _ = gone.send(());
    });
    let transport = HttpTransport::builder(&url).build().unwrap();
    let client = Client::builder(transport).timeout(DEADLINE).build();
    (client.unwrap(), is_gone)
}

async fn serve(stream: &mut TcpStream, first: &[u8], again: &[u8]) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    stream.write_all(first).await?;
    while !again.is_empty() {
        stream.write_all(again).await?;
    }
    // Until the client closes the connection.
    while stream.read(&mut [0; 1024]).await? > 0 {}
    Ok(())
}

async fn get(client: &Client) -> Result<Bytes, Error> {
    let request = async { client.request(Method::GET, "/version").await };
    let ended = tokio::time::timeout(PATIENCE, request).await;
    ended.expect("the request ends")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_no_end_ends_with_the_request() {
    const JSON: &[u8] =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    const ERROR: &[u8] =
        b"HTTP/1.1 500 Internal Server Error\r\ntransfer-encoding: chunked\r\n\r\n";
    let cases: [(&str, &[u8], &[u8]); 8] = [
        ("silence", b"", b""),
        (
            "informational heads",
            b"",
            b"HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n",
        ),
        ("100 Continue", b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        ("headers", b"HTTP/1.1 200 OK\r\n", b"x: y\r\n"),
        ("one header", b"HTTP/1.1 200 OK\r\nx: ", b"yyyyyyyyyyyyyyyy"),
        ("a body", JSON, b"8\r\n        \r\n"),
        ("the body of an error", ERROR, b"8\r\naaaaaaaa\r\n"),
        (
            "trailers",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n",
            b"x: y\r\n",
        ),
    ];
    for (name, first, again) in cases {
        let (client, is_gone) = server(first, again).await;
        let error = get(&client).await.expect_err(name);
        drop(client);
        let ended = tokio::time::timeout(PATIENCE, is_gone).await;
        assert!(
            ended.is_ok(),
            "{name}: the connection stays open after {error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_are_no_http_are_errors() {
    let cases: [&[u8]; 9] = [
        b"no HTTP\r\n\r\n",
        b"HTTP/1.1 1000 Large\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx y: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: a\x01\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff1\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: other\r\nconnection: upgrade\r\n\r\n",
        b"HTTP/1.1 999 Odd\r\ncontent-length: 0\r\n\r\n",
    ];
    for first in cases {
        let (client, _) = server(first, b"").await;
        let answer = get(&client).await;
        assert!(
            answer.is_err(),
            "{:?}: {answer:?}",
            String::from_utf8_lossy(first)
        );
    }
}

/// A server must not send the credentials of its clients elsewhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirects_are_not_followed() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let head = format!(
        "HTTP/1.1 302 Found\r\nlocation: http://{}/\r\ncontent-length: 0\r\n\r\n",
        elsewhere.local_addr().unwrap()
    );
    let (client, _) = server(head.leak().as_bytes(), b"").await;
    let error = get(&client).await.unwrap_err();
    assert_eq!(error.code(), Some(302), "{error}");
    let asked = tokio::time::timeout(Duration::ZERO, elsewhere.accept()).await;
    assert!(asked.is_err());
}
