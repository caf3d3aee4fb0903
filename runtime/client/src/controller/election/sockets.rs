//! Tests of what a guarded client has open when its process stops to lead: sockets, streams, and bodies on their way.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{self, StreamExt as _};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use super::clock::Clocks;
use super::leadership::WriteGuard;
use super::revocable::Revocable;
use super::tests::{Server, elector, lead, stop};
use super::{GuardedTransport, Leadership};
use crate::transport::{
    Body, HttpTransport, PendingUpgrade, Transport, TransportError, UpgradedConnection, upgraded,
};

fn guarded(transport: impl Transport, leadership: &Leadership) -> GuardedTransport {
    GuardedTransport::new(Arc::new(transport), leadership.guard().clone())
}

fn upgrade_request() -> Request<Body> {
    let request = Request::get("/").header("connection", "upgrade");
    let request = request.header("upgrade", "echo");
    request.body(Body::empty()).unwrap()
}

#[track_caller]
fn check_not_leader(error: &impl std::fmt::Display) {
    assert!(error.to_string().contains("not the leader"), "{error}");
}

/// Reads a request up to its empty line.
async fn read_head(stream: &mut TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
}

async fn listen() -> (TcpListener, HttpTransport) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, HttpTransport::builder(&url).build().unwrap())
}

#[tokio::test]
async fn trap_42_a_switched_connection_is_closed_when_the_leader_stops() {
    let (listener, transport) = listen().await;
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_head(&mut stream).await;
        let answer =
            b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        let byte = stream.read_u8().await.unwrap();
        stream.write_u8(byte).await.unwrap();
        stream.read(&mut [0]).await
    });
    let (leadership, run) = lead(elector(&Server::default(), "a")).await;
    let transport = guarded(transport, &leadership);
    let mut response = transport.call(upgrade_request()).await.unwrap();
    // Only the guarded connection is there.
    assert!(
        response
            .extensions()
            .get::<hyper::upgrade::OnUpgrade>()
            .is_none()
    );
    let mut socket = upgraded(&mut response).await.unwrap();
    socket.write_u8(7).await.unwrap();
    assert_eq!(socket.read_u8().await.unwrap(), 7);
    // Nothing polls the socket meanwhile.
    stop(run).await;
    let end = server.await.unwrap();
    assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
    check_not_leader(&socket.write_u8(7).await.unwrap_err());
    check_not_leader(&socket.read_u8().await.unwrap_err());
}

/// Answers reads and writes with an endless body, and requests with `Upgrade` with the end of a pipe.
#[derive(Clone, Default)]
struct Endless(Arc<Mutex<Vec<DuplexStream>>>);

fn endless() -> Body {
    let first = stream::iter([Ok::<_, TransportError>(Frame::data(Bytes::from_static(
        b"a",
    )))]);
    Body::new(StreamBody::new(first.chain(stream::pending())))
}

impl Transport for Endless {
    fn call(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<Body>, TransportError>> {
        if !request.headers().contains_key("upgrade") {
            return async { Ok(Response::new(endless())) }.boxed();
        }
        let (ours, theirs) = tokio::io::duplex(64);
        self.0.lock().push(theirs);
        let mut response = Response::new(Body::empty());
        let connection = async { Ok(UpgradedConnection::new(ours)) };
        PendingUpgrade::put(&mut response, connection.boxed());
        async { Ok(response) }.boxed()
    }
}

async fn stream_of(transport: &GuardedTransport, method: Method) -> Body {
    let request = Request::builder().method(method).uri("/");
    let request = request.body(Body::empty()).unwrap();
    let mut body = transport.call(request).await.unwrap().into_body();
    let first = body.frame().await.unwrap().unwrap();
    assert_eq!(first.into_data().unwrap(), "a");
    body
}

#[tokio::test(start_paused = true)]
async fn trap_42_open_sockets_and_streams_of_writes_are_closed_when_the_lease_is_not_renewed() {
    let server = Server::default();
    let (leadership, run) = lead(elector(&server, "a")).await;
    let endless = Endless::default();
    let transport = guarded(endless.clone(), &leadership);
    // Guarded twice: the one that ends first counts.
    let transport = guarded(transport, &leadership);
    let mut response = transport.call(upgrade_request()).await.unwrap();
    let mut socket = upgraded(&mut response).await.unwrap();
    let mut written = stream_of(&transport, Method::POST).await;
    let mut read = stream_of(&transport, Method::GET).await;
    let mut theirs = endless.0.lock().pop().expect("the other end");
    // The lease is renewed for a minute.
    tokio::time::sleep(Duration::from_secs(60)).await;
    socket.write_u8(7).await.unwrap();
    assert_eq!(theirs.read_u8().await.unwrap(), 7);
    assert!(written.frame().now_or_never().is_none());
    server.set_down(true);
    let began = Instant::now();
    // Each is waited for while it is idle.
    let waiting = tokio::spawn(async move { socket.read_u8().await.unwrap_err() });
    let mut byte = [0];
    let (end, frame, error) = tokio::join!(theirs.read(&mut byte), written.frame(), waiting);
    assert_eq!(end.unwrap_or_default(), 0);
    check_not_leader(&frame.unwrap().unwrap_err());
    check_not_leader(&error.unwrap());
    assert!(began.elapsed() <= Duration::from_secs(10));
    // A read changes nothing.
    assert!(read.frame().now_or_never().is_none());
    run.task.await.unwrap().unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn trap_42_a_socket_sends_nothing_after_a_pause_of_the_process() {
    // The clock of the wall goes on while no task of the process runs.
    let paused = Arc::new(AtomicU64::new(0));
    let clocks = Clocks::with_wall({
        let paused = Arc::clone(&paused);
        move || SystemTime::UNIX_EPOCH + Duration::from_secs(paused.load(Ordering::SeqCst))
    });
    let now = clocks.read();
    let guard = WriteGuard::new(clocks, Duration::from_secs(10), now);
    let (ours, mut theirs) = tokio::io::duplex(64);
    let mut socket = Revocable::new(UpgradedConnection::new(ours), guard);
    assert!(socket.write_u8(1).now_or_never().unwrap().is_ok());
    paused.store(10, Ordering::SeqCst);
    let late = socket.write_u8(2).now_or_never().expect("not waited for");
    assert_eq!(
        late.as_ref().map_err(io::Error::kind),
        Err(io::ErrorKind::Other)
    );
    let mut received = Vec::new();
    theirs.read_to_end(&mut received).await.unwrap();
    assert_eq!(received, [1]);
}

#[tokio::test]
async fn trap_42_a_body_on_its_way_breaks_off_when_the_leader_stops() {
    const LENGTH: usize = 32 << 20;
    let (listener, transport) = listen().await;
    let (leadership, run) = lead(elector(&Server::default(), "a")).await;
    let put = Request::put("/").body(Body::from(Bytes::from(vec![b'x'; LENGTH])));
    let mut call = guarded(transport, &leadership).call(put.unwrap());
    let mut stream = {
        let accepted = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_head(&mut stream).await;
            stream
        };
        tokio::select! {
            stream = accepted => stream,
            _ = &mut call => panic!("there is no response"),
        }
    };
    // The call is not polled any more, as if this task stood still; the one of the connection goes on.
    stop(run).await;
    let mut received = 0;
    let mut buffer = vec![0; 1 << 20];
    while received < LENGTH
        && let Ok(length @ 1..) = stream.read(&mut buffer).await
    {
        received += length;
    }
    assert!(received < LENGTH, "the whole body was sent");
    check_not_leader(&call.await.unwrap_err());
}
