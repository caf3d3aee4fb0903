//! A WebSocket of a leader that is a stream of HTTP/2.

use std::sync::atomic::Ordering;
use std::time::Duration;

use apiloom_client::Client;
use apiloom_client::client::SocketMessage;
use apiloom_client::controller::{
    CancellationToken, ElectionConfig, LeaderElector, Leadership, Lease, LeaseError, LeaseStore,
};
use apiloom_client::transport::{HttpTransport, TlsOptions};
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use http::{Method, Response};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::stream_limit::{http2_acceptor, open, start};

/// How long the end of a socket may take.
const LIMIT: Duration = Duration::from_secs(20);

/// A lease that this process holds alone.
struct Free;

impl LeaseStore for Free {
    fn get(&self) -> BoxFuture<'_, Result<Option<Lease>, LeaseError>> {
        async { Ok(None) }.boxed()
    }
    fn create(&self, lease: Lease) -> BoxFuture<'_, Result<Lease, LeaseError>> {
        async { Ok(lease) }.boxed()
    }
    fn update(&self, lease: Lease) -> BoxFuture<'_, Result<Lease, LeaseError>> {
        async { Ok(lease) }.boxed()
    }
}

/// An election that is over when its signal is given.
struct Term {
    leadership: Leadership,
    cancel: CancellationToken,
    election: JoinHandle<()>,
}

impl Term {
    async fn begin() -> Self {
        let elector = LeaderElector::new(Free, "a", ElectionConfig::default()).unwrap();
        let cancel = CancellationToken::new();
        let (send, receive) = oneshot::channel();
        let election = tokio::spawn({
            let cancel = cancel.clone();
            async move {
                let work = |leadership: Leadership| async move {
                    send.send(leadership.clone()).unwrap();
                    leadership.cancel().cancelled().await;
                };
                elector.run(&cancel, work).await.unwrap();
            }
        });
        let leadership = receive.await.unwrap();
        Self {
            leadership,
            cancel,
            election,
        }
    }

    async fn end(self) {
        self.cancel.cancel();
        self.election.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn trap_42_a_websocket_over_http2_is_reset_when_the_leader_stops() {
    let (client, seen) = start().await;
    // A connection of HTTP/2, for the socket too. When there is a second stream, the client knows what the server allows.
    let streams = open(&client, 2).await;
    let term = Term::begin().await;
    let request = client
        .guarded(&term.leadership)
        .request(Method::GET, "/console");
    let mut socket = request.websocket(&[]).await.unwrap();
    let now = || seen.open.load(Ordering::SeqCst);
    assert_eq!(now(), 3);
    socket
        .send(SocketMessage::Text("x".to_owned()))
        .await
        .unwrap();
    term.end().await;
    // Nothing polls the socket, and the server sees its end.
    let reset = async {
        while now() > 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let reset = tokio::time::timeout(LIMIT, reset);
    reset.await.expect("the socket is reset");
    let error = socket.receive().await.unwrap_err();
    assert!(error.to_string().contains("not the leader"), "{error}");
    // Nothing waited to be sent, so the connection goes on.
    let other = open(&client, 1).await;
    assert_eq!(seen.connections.load(Ordering::SeqCst), 1);
    drop((streams, other));
}

/// How much may be sent on a stream of `start_slow` at a time.
const WINDOW: usize = 1024;

/// Reads as much as may be sent.
async fn read_window(body: &mut h2::RecvStream) {
    let read = async {
        let mut received = 0;
        while received < WINDOW {
            received += body.data().await.unwrap().unwrap().len();
        }
    };
    tokio::time::timeout(LIMIT, read)
        .await
        .expect("a full window");
}

/// A server that lets little be sent on a stream, and gives the bodies of CONNECTs to the test, which reads them.
async fn start_slow() -> (Client, mpsc::UnboundedReceiver<h2::RecvStream>) {
    let (acceptor, authority) = http2_acceptor();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (bodies, received) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, bodies) = (acceptor.clone(), bodies.clone());
            tokio::spawn(async move {
                let stream = acceptor.accept(stream).await.unwrap();
                let mut server = h2::server::Builder::new();
                server
                    .initial_window_size(WINDOW as u32)
                    .enable_connect_protocol();
                let mut server = server.handshake::<_, Bytes>(stream).await.unwrap();
                while let Some(Ok((request, mut respond))) = server.accept().await {
                    let body = respond.send_response(Response::new(()), false).unwrap();
                    if request.method() == Method::CONNECT {
                        bodies.send(request.into_body()).unwrap();
                    }
                    // Open as long as the client wants.
                    tokio::spawn(async move {
                        let mut body = body;
                        std::future::poll_fn(|cx| body.poll_reset(cx)).await.ok();
                    });
                }
            });
        }
    });
    let tls = TlsOptions {
        authorities: Some(authority),
        ..TlsOptions::default()
    };
    let url = format!("https://localhost:{port}");
    let transport = HttpTransport::builder(&url).tls(tls).build().unwrap();
    (Client::new(transport), received)
}

#[tokio::test(flavor = "multi_thread")]
async fn trap_42_what_waits_on_a_websocket_over_http2_is_not_sent_after_the_leader_stops() {
    for is_dropped in [false, true] {
        let (client, mut bodies) = start_slow().await;
        let _streams = open(&client, 2).await;
        let term = Term::begin().await;
        let request = client
            .guarded(&term.leadership)
            .request(Method::GET, "/console");
        let socket = request.websocket(&[]).await.unwrap();
        let mut body = bodies.recv().await.unwrap();
        let mut socket = Some(socket);
        let message = SocketMessage::Binary(Bytes::from(vec![0; 1 << 20]));
        let sent = socket.as_ref().unwrap().send(message);
        // The server reads no more than its window, so that is not the end of it.
        tokio::select! {
            _ = sent => panic!("all was sent"),
            () = read_window(&mut body) => {}
        }
        if is_dropped {
            drop(socket.take());
            // Until the end of the term, the server may still read.
            body.flow_control().release_capacity(WINDOW).unwrap();
            read_window(&mut body).await;
        }
        term.end().await;
        let end = tokio::time::timeout(LIMIT, body.data()).await;
        let end = end.expect("the stream ends");
        assert!(matches!(end, Some(Err(_))), "{end:?}");
        let _ = body.flow_control().release_capacity(WINDOW);
        let after = tokio::time::timeout(LIMIT, body.data()).await;
        assert!(!matches!(after, Ok(Some(Ok(_)))), "{after:?}");
    }
}
