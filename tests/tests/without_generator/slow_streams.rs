//! Streams of which one side does not read, and streams that are open when the server stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use apiloom::prelude::*;
use apiloom::server::http::{
    ConnectRequest, ConnectResponse, ConnectSocket, ConnectSubresource, SocketMessage,
};
use apiloom_tests::{Access, Client, WebSocket};
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _, stream};
use rustls::pki_types::ServerName;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::Message;

use super::with_server_of;

const PIECE: &[u8] = &[b'x'; 64 * 1024];

/// Most bytes that may be under way to a side that does not read: the buffers of the kernel are a few MiB.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Pump has a stream that sends without end, and one that neither reads nor answers.
#[apiloom::resource(group = "kitchen.example.com", version = "v1", namespaced,
    connect(name = "send", verbs = [get], handler = Sender),
    connect(name = "hold", verbs = [create, get], handler = Holder))]
pub struct Pump {
    pub metadata: ObjectMeta,
}

/// Counts the pieces that it sends.
#[derive(Clone, Default)]
pub struct Sender(Arc<AtomicUsize>);

#[async_trait]
impl ConnectSubresource<Pump> for Sender {
    async fn connect(
        &self,
        mut request: ConnectRequest<Pump>,
    ) -> Result<ConnectResponse, ApiError> {
        let sent = Arc::clone(&self.0);
        if request.is_websocket() {
            return request.websocket(&[], async move |mut socket: ConnectSocket| {
                let piece = || SocketMessage::Binary(Bytes::from_static(PIECE));
                while socket.send(piece()).await.is_ok() {
                    sent.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let pieces = stream::repeat_with(move || {
            sent.fetch_add(1, Ordering::SeqCst);
            Ok(Bytes::from_static(PIECE))
        });
        Ok(ConnectResponse::stream("application/octet-stream", pieces))
    }
}

/// Counts the requests that it has begun.
#[derive(Clone, Default)]
pub struct Holder(Arc<AtomicUsize>);

#[async_trait]
impl ConnectSubresource<Pump> for Holder {
    async fn connect(
        &self,
        mut request: ConnectRequest<Pump>,
    ) -> Result<ConnectResponse, ApiError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        if request.is_websocket() {
            return request.websocket(&[], async |socket| {
                std::future::pending::<()>().await;
                drop(socket);
            });
        }
        std::future::pending().await
    }
}

const PUMPS: &str = "/apis/kitchen.example.com/v1/namespaces/default/pumps";
const SEND: &str = "/apis/kitchen.example.com/v1/namespaces/default/pumps/a/send";
const HOLD: &str = "/apis/kitchen.example.com/v1/namespaces/default/pumps/a/hold";

async fn create_pump(admin: &Client) {
    let pump =
        json!({"apiVersion": "kitchen.example.com/v1", "kind": "Pump", "metadata": {"name": "a"}});
    assert_eq!(admin.post(PUMPS, &pump).await.code, 201);
}

/// Waits until a count of pieces has grown and stands still; panics if it exceeds the limit.
async fn stands_still(count: &AtomicUsize, what: &str) {
    loop {
        let before = count.load(Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(500)).await;
        let now = count.load(Ordering::SeqCst);
        assert!(now * PIECE.len() < MAX_BYTES, "{what}: {now} pieces");
        if now > 0 && now == before {
            return;
        }
    }
}

async fn websocket(client: &Client, path: &str, is_http2: bool) -> WebSocket {
    let socket = if is_http2 {
        let headers = [("sec-websocket-version", "13")];
        client
            .connect_over_http2(path, "websocket", &headers)
            .await
            .1
    } else {
        client.websocket(path, &[]).await.2
    };
    socket.expect("a WebSocket")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_holds_back_the_handler() {
    let sender = Sender::default();
    let sent = Arc::clone(&sender.0);
    let configure = |builder: Builder| builder.kind::<Pump>().connecter::<Pump>(sender);
    with_server_of(configure, async |admin, kubeconfig| {
        create_pump(&admin).await;
        for is_http2 in [false, true] {
            let client = if is_http2 {
                Client::new(&kubeconfig)
            } else {
                Client::of_http1(&kubeconfig)
            };
            sent.store(0, Ordering::SeqCst);
            let stream = client.watch_as(SEND, "*/*").await;
            stands_still(&sent, &format!("stream, HTTP/2: {is_http2}")).await;
            drop(stream);
            sent.store(0, Ordering::SeqCst);
            let socket = websocket(&client, SEND, is_http2).await;
            stands_still(&sent, &format!("WebSocket, HTTP/2: {is_http2}")).await;
            drop(socket);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_held_back_by_a_handler_that_does_not_read() {
    let configure = |builder: Builder| builder.kind::<Pump>();
    with_server_of(configure, async |admin, kubeconfig| {
        create_pump(&admin).await;
        for is_http2 in [false, true] {
            let client = if is_http2 {
                Client::new(&kubeconfig)
            } else {
                Client::of_http1(&kubeconfig)
            };
            let (mut sink, mut stream) = websocket(&client, HOLD, is_http2).await.split();
            let sent = Arc::new(AtomicUsize::new(0));
            let count = Arc::clone(&sent);
            let sending = tokio::spawn(async move {
                let send = async {
                    while sink.send(Message::binary(PIECE)).await.is_ok() {
                        count.fetch_add(1, Ordering::SeqCst);
                    }
                };
                // Answers pings.
                tokio::join!(send, async { while stream.next().await.is_some() {} });
            });
            stands_still(&sent, &format!("WebSocket, HTTP/2: {is_http2}")).await;
            sending.abort();
        }

        let access = Access::read(&kubeconfig);
        let address = access.url.trim_start_matches("https://");
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let mut stream = TlsConnector::from(Arc::new(access.tls.clone()))
            .connect(name, stream)
            .await
            .unwrap();
        let head = format!(
            "POST {HOLD} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n",
            access.token,
            2 * MAX_BYTES,
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let sent = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&sent);
        let sending = tokio::spawn(async move {
            while stream.write_all(PIECE).await.is_ok() {
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        stands_still(&sent, "body").await;
        sending.abort();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_has_not_answered_does_not_delay_the_stop() {
    let holder = Holder::default();
    let begun = Arc::clone(&holder.0);
    let (stopped, client) = {
        let mut started = None;
        let configure = |builder: Builder| builder.kind::<Pump>().connecter::<Pump>(holder);
        with_server_of(configure, async |admin, kubeconfig| {
            create_pump(&admin).await;
            let requests = [Client::new(&kubeconfig), Client::of_http1(&kubeconfig)]
                .map(|client| tokio::spawn(async move { client.get(HOLD).await }));
            while begun.load(Ordering::SeqCst) < requests.len() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            started = Some((Instant::now(), requests));
        })
        .await;
        started.unwrap()
    };
    assert!(
        stopped.elapsed() < Duration::from_secs(20),
        "the server waited for the handlers"
    );
    for answer in client {
        let answer = answer.await.unwrap();
        assert_eq!((answer.code, answer.header("retry-after")), (503, "1"));
        let status = answer.json();
        assert_eq!(status["reason"], "ServiceUnavailable");
        assert_eq!(status["message"], "apiserver is shutting down");
    }
}
