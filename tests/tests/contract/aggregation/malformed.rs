//! A server behind an APIService whose answers break HTTP in every place: each of its clients gets a response, and a reason.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::AsyncWriteExt as _;

use super::pair::{Authority, Front};
use super::raw_server;
use super::*;

on_each_backend![every_malformed_response_has_a_response];

const BASE: &str = "/apis/rec.example.com/v1";

/// What becomes of a response.
enum Becomes {
    /// It is passed on, with this code and body.
    Passed(u16, &'static str),
    /// The client gets this code, and a text that begins with this one.
    Failure(u16, &'static str),
}
use Becomes::{Failure, Passed};

/// The text about a response that could not be read, as kube-aggregator begins it.
const UNREADABLE: Becomes = Failure(503, "error trying to reach service: ");

/// Names, the responses, and what becomes of them.
fn cases() -> Vec<(&'static str, Vec<u8>, Becomes)> {
    let with = |headers: &str| format!("HTTP/1.1 200 OK\r\n{headers}content-length: 2\r\n\r\nok");
    let line = |line: &str| format!("{line}\r\ncontent-length: 2\r\n\r\nok");
    let chunked = |headers: &str, body: &str| {
        format!("HTTP/1.1 200 OK\r\n{headers}transfer-encoding: chunked\r\n\r\n{body}")
    };
    let ok = || Passed(200, "ok");
    let many = |count: usize| {
        (0..count)
            .map(|number| format!("x-{number}: 1\r\n"))
            .collect::<String>()
    };
    let text: Vec<(&str, String, Becomes)> = vec![
        // Lines of the status.
        ("no reason", line("HTTP/1.1 200"), ok()),
        ("an empty reason", line("HTTP/1.1 200 "), ok()),
        (
            "a control character in the reason",
            line("HTTP/1.1 200 O\u{1}K"),
            UNREADABLE,
        ),
        ("999", line("HTTP/1.1 999 Odd"), Passed(999, "ok")),
        ("1000", line("HTTP/1.1 1000 Odd"), UNREADABLE),
        ("099", line("HTTP/1.1 099 Odd"), UNREADABLE),
        ("000", line("HTTP/1.1 000 Odd"), UNREADABLE),
        ("-200", line("HTTP/1.1 -20 Odd"), UNREADABLE),
        ("HTTP/2.0", line("HTTP/2.0 200 OK"), UNREADABLE),
        (
            "HTTP/1.0 without a length",
            "HTTP/1.0 200 OK\r\n\r\nok".to_owned(),
            ok(),
        ),
        ("HTTP/0.9", "ok\r\n\r\n".to_owned(), UNREADABLE),
        // Names and values.
        ("a space in a name", with("x y: 1\r\n"), UNREADABLE),
        ("a space behind a name", with("x : 1\r\n"), UNREADABLE),
        (
            "a control character in a name",
            with("x\u{1}y: 1\r\n"),
            UNREADABLE,
        ),
        ("no name", with(": 1\r\n"), UNREADABLE),
        ("no colon", with("xy\r\n"), UNREADABLE),
        ("a pseudo header", with(":status: 500\r\n"), UNREADABLE),
        (
            "a control character in a value",
            with("x: a\u{1}b\r\n"),
            UNREADABLE,
        ),
        ("NUL in a value", with("x: a\0b\r\n"), UNREADABLE),
        ("a folded value", with("x: a\r\n b\r\n"), UNREADABLE),
        ("bytes that are no ASCII", with("x: \u{e4}\r\n"), ok()),
        ("an empty value", with("x:\r\n"), ok()),
        ("60 headers", with(&many(60)), ok()),
        ("5,000 headers", with(&many(5_000)), UNREADABLE),
        (
            "a large header",
            with(&format!("x: {}\r\n", "a".repeat(2 << 20))),
            UNREADABLE,
        ),
        // Lengths.
        ("two equal lengths", with("content-length: 2\r\n"), ok()),
        ("two lengths", with("content-length: 3\r\n"), UNREADABLE),
        (
            "a list of lengths",
            with("content-length: 2, 2\r\n"),
            Failure(
                502,
                "the service responded with the malformed header Content-Length: \"2, 2\"",
            ),
        ),
        (
            "a sign",
            "HTTP/1.1 200 OK\r\ncontent-length: +2\r\n\r\nok".to_owned(),
            UNREADABLE,
        ),
        (
            "a negative length",
            "HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\nok".to_owned(),
            UNREADABLE,
        ),
        (
            "no number",
            "HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\nok".to_owned(),
            UNREADABLE,
        ),
        (
            "an empty length",
            "HTTP/1.1 200 OK\r\ncontent-length:\r\n\r\nok".to_owned(),
            UNREADABLE,
        ),
        (
            "2^64",
            "HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551616\r\n\r\nok".to_owned(),
            UNREADABLE,
        ),
        // Encodings of the transfer.
        ("chunks", chunked("", "2\r\nok\r\n0\r\n\r\n"), ok()),
        (
            "chunks and a length",
            chunked("content-length: 7\r\n", "2\r\nok\r\n0\r\n\r\n"),
            ok(),
        ),
        (
            "chunks and lengths",
            chunked(
                "content-length: 7\r\ncontent-length: 8\r\n",
                "2\r\nok\r\n0\r\n\r\n",
            ),
            ok(),
        ),
        (
            "chunks and no number",
            chunked("content-length: x\r\n", "2\r\nok\r\n0\r\n\r\n"),
            ok(),
        ),
        (
            "trailers",
            chunked("trailer: x-late\r\n", "2\r\nok\r\n0\r\nx-late: 1\r\n\r\n"),
            ok(),
        ),
        (
            "an unknown encoding",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: other\r\n\r\nok".to_owned(),
            ok(),
        ),
        (
            "chunks that are chunks",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
                .to_owned(),
            ok(),
        ),
        // Headers of the connection.
        (
            "a length of the connection",
            with("connection: content-length\r\n"),
            ok(),
        ),
        (
            "names of the connection",
            with("connection: x, ,\u{e4}, y z\r\nx: 1\r\n"),
            ok(),
        ),
        (
            "an upgrade",
            with("upgrade: h2c\r\nconnection: upgrade\r\n"),
            ok(),
        ),
        (
            "headers that HTTP/2 forbids",
            with("keep-alive: x\r\nproxy-connection: x\r\nte: gzip\r\n"),
            ok(),
        ),
        // Codes without a body, and those before a response.
        (
            "204 with a body",
            "HTTP/1.1 204 No Content\r\ncontent-length: 2\r\n\r\nok".to_owned(),
            Passed(204, ""),
        ),
        (
            "304 with a length",
            "HTTP/1.1 304 Not Modified\r\ncontent-length: 2\r\n\r\n".to_owned(),
            Passed(304, ""),
        ),
        (
            "205 with a body",
            "HTTP/1.1 205 Reset Content\r\ncontent-length: 2\r\n\r\nok".to_owned(),
            Passed(205, "ok"),
        ),
        (
            "204 with no number",
            "HTTP/1.1 204 No Content\r\ncontent-length: x\r\n\r\n".to_owned(),
            Failure(
                502,
                "the service responded with the malformed header Content-Length: \"x\"",
            ),
        ),
        (
            "304 and chunks",
            "HTTP/1.1 304 Not Modified\r\ntransfer-encoding: chunked\r\n\r\n".to_owned(),
            Passed(304, ""),
        ),
        (
            "1,000 early hints",
            format!(
                "{}{}",
                "HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n".repeat(1_000),
                with("")
            ),
            ok(),
        ),
        (
            "101",
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"
                .to_owned(),
            Failure(502, "the service responded with the status 101 "),
        ),
        (
            "a redirect",
            "HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n".to_owned(),
            Failure(
                502,
                "the backend attempted to redirect this request, which is not permitted",
            ),
        ),
        (
            "no end of the head",
            "HTTP/1.1 200 OK\r\n".to_owned(),
            UNREADABLE,
        ),
        ("nothing", String::new(), UNREADABLE),
    ];
    let text = text.into_iter();
    text.map(|(name, text, becomes)| {
        // Latin-1, so that a character is one byte.
        let bytes = text
            .chars()
            .map(|char| u8::try_from(u32::from(char)).unwrap());
        (name, bytes.collect(), becomes)
    })
    .collect()
}

/// Starts a server that answers the path that ends with a number with the response of that number, and closes the connection.
async fn start(authority: &Authority) -> SocketAddr {
    let responses: Vec<_> = cases().into_iter().map(|(_, bytes, _)| bytes).collect();
    let responses = Arc::new(responses);
    let address = raw_server::start(authority, move |path, mut stream| {
        let responses = Arc::clone(&responses);
        async move {
            let number = path.rsplit('/').next().unwrap().parse::<usize>().ok();
            let list =
                r#"{"kind":"APIResourceList","groupVersion":"rec.example.com/v1","resources":[]}"#;
            let discovery = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{list}",
                list.len()
            );
            let response = match number {
                Some(number) => responses[number].clone(),
                None if path.ends_with("/v1") => discovery.into_bytes(),
                None => b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec(),
            };
            // The client may be gone at any time.
            let _ = stream.write_all(&response).await;
            stream
        }
    });
    address.await
}

async fn every_malformed_response_has_a_response(on: Backend) {
    let authority = Authority::new();
    let address = start(&authority).await;
    let front = Front::start(on, &authority, &[("recorder", address)]).await;
    register(&front.client, "rec.example.com", "recorder", &authority).await;
    let over_http1 = Client::of_http1(&front.kubeconfig);
    let mut wrong = String::new();
    for (number, (name, _, becomes)) in cases().into_iter().enumerate() {
        for (version, client) in [("HTTP/2", &front.client), ("HTTP/1.1", &over_http1)] {
            let path = format!("{BASE}/{number}");
            let answer = ask_available(async || client.try_call("GET", &path, &[], "").await);
            let answer = match answer.await {
                Ok(answer) => answer,
                Err(error) => {
                    wrong += &format!("{name}, {version}: no response: {error}\n");
                    continue;
                }
            };
            let (code, text) = (answer.code, answer.text());
            let is_expected = match becomes {
                Passed(expected, body) => code == expected && text == body,
                Failure(expected, begin) => {
                    code == expected && text.starts_with(begin) && text.len() < 1024
                }
            };
            if !is_expected {
                wrong += &format!("{name}, {version}: {code} {text:?}\n");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    // The server goes on.
    assert_eq!(front.client.get("/readyz").await.code, 200);
    front.stop().await;
}
