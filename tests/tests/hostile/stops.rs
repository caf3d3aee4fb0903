//! Clients that stall while the server is asked to stop: it waits for requests in flight, at most as long as a request may take,
//! and for nothing else.

use std::time::Duration;

use apiloom_tests::Server;
use apiloom_tests::wardle::{ALL_FLUNDERS, FLUNDERS, flunder};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::runtime::Runtime;

use crate::wire::{CLOSED, Call, Http2, Target, Tls};
use apiloom_tests::frames::{self, END_HEADERS, HEADERS};

/// The end of a server whose wait has a bound of a few seconds: far from the 60 s after which the stalled connections would end
/// by their own timeouts, and far from the bound on a busy machine.
const SOON: Duration = Duration::from_secs(30);

/// Connections that are held open.
#[derive(Default)]
struct Held {
    tcp: Vec<tokio::net::TcpStream>,
    tls: Vec<Tls>,
    http2: Vec<Http2>,
    /// What was sent, and the answers to it, which are not read.
    streams: Vec<Box<dyn Send>>,
}

impl Held {
    async fn say(&mut self, target: &Target, protocol: &str, bytes: &[u8]) {
        let mut stream = target.tls_of_slow_reader(protocol).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.flush().await.unwrap();
        self.tls.push(stream);
    }

    /// Connections on which no request is in flight.
    async fn be_silent(&mut self, target: &Target) {
        self.tcp.push(target.tcp().await.unwrap());
        let mut half_hello = target.tcp().await.unwrap();
        half_hello.write_all(&[22, 3, 1, 2, 0, 1]).await.unwrap();
        self.tcp.push(half_hello);
        let preface = frames::preface();
        for begin in [&preface[..0], &preface[..16], &preface[..30], &preface] {
            self.say(target, "h2", begin).await;
        }
        let mut half_head = preface.clone();
        let block = target.block("GET", "/version");
        frames::push(&mut half_head, HEADERS, 0, 1, &block[..10]);
        self.say(target, "h2", &half_head).await;
        for begin in ["", "GET /version HTTP/1.1\r\nho"] {
            self.say(target, "http/1.1", begin.as_bytes()).await;
        }
        // One that had its answer.
        let http2 = target.http2(CLOSED).await.unwrap();
        let answer = http2.open(Call::new("HEAD", "/livez")).await.unwrap();
        self.streams.push(Box::new(answer));
        self.http2.push(http2);
    }

    /// Requests whose bodies end halfway, and answers that are not read.
    async fn be_slow(&mut self, target: &Target) {
        let json = ("content-type", "application/json");
        let mut half_body = target.head("POST", FLUNDERS, &[json, ("content-length", "1000")]);
        half_body.extend_from_slice(b"{\"metadata\":");
        self.say(target, "http/1.1", &half_body).await;
        let chunked = ("transfer-encoding", "chunked");
        let half_chunk = target.head("POST", FLUNDERS, &[json, chunked]);
        self.say(target, "http/1.1", &[&half_chunk[..], b"5\r\n{"].concat())
            .await;
        let mut half_stream = frames::preface();
        let block = target.block("POST", FLUNDERS);
        frames::push(&mut half_stream, HEADERS, END_HEADERS, 1, &block);
        self.say(target, "h2", &half_stream).await;
        let paths = [
            ALL_FLUNDERS.to_owned(),
            format!("{ALL_FLUNDERS}?watch=1"),
            format!("{ALL_FLUNDERS}?watch=1&resourceVersion=0"),
            "/openapi/v2".to_owned(),
        ];
        let http2 = target.http2(CLOSED).await.unwrap();
        for path in &paths {
            let answer = http2.open(Call::new("GET", path)).await.unwrap();
            self.streams.push(Box::new(answer));
            let head = target.head("GET", path, &[]);
            self.tls.push(target.open_http1(&head).await);
        }
        let post = Call::new("POST", FLUNDERS).with_header(json.0, json.1);
        let begun = http2.begin(&post, false).await.unwrap();
        self.streams.push(Box::new(begun));
        self.http2.push(http2);
    }
}

/// Asks the server to stop, and waits for its end with exit code 0, while the connections stay open.
async fn ends_soon(server: Server, held: Held) {
    server.terminate();
    let waited = tokio::task::spawn_blocking(|| server.wait());
    let ended = tokio::time::timeout(SOON, waited).await;
    assert!(ended.is_ok(), "the server goes on after {SOON:?}");
    ended.unwrap().unwrap();
    drop(held);
}

#[test]
fn who_has_no_request_in_flight_is_not_waited_for() {
    Runtime::new().unwrap().block_on(async {
        let server = Server::start(&["--storage-backend=memory"]);
        let mut held = Held::default();
        held.be_silent(&Target::of(&server)).await;
        ends_soon(server, held).await;
    });
}

#[test]
fn requests_that_stall_are_waited_for_as_long_as_one_may_take() {
    Runtime::new().unwrap().block_on(async {
        let server = Server::start(&["--storage-backend=memory", "--request-timeout=3s"]);
        let target = Target::of(&server);
        // More than the buffers of a connection.
        let large = |index| {
            let mut object = flunder(&format!("large-{index}"));
            object["metadata"]["annotations"] = json!({"a": "x".repeat(200_000)});
            object
        };
        let objects: Vec<_> = (0..40).map(large).collect();
        target.create_all(FLUNDERS, &objects).await;
        let mut held = Held::default();
        held.be_slow(&target).await;
        held.be_silent(&target).await;
        ends_soon(server, held).await;
    });
}
