//! A server of HTTP/2 that changes how many streams it allows, frame by frame (RFC 9113).

use std::sync::Arc;
use std::time::Duration;

use apiloom_client::transport::{HttpTransport, HttpTransportBuilder, TlsOptions};
use apiloom_client::{Body, Client, Error};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http::{Method, Response};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::stream_limit::http2_acceptor;

/// Types of frames.
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;

/// What the server saw so far.
#[derive(Clone, Debug, Default)]
struct Seen {
    connections: usize,
    /// Streams that were begun, and that the client ended.
    begun: usize,
    ended: usize,
    /// SETTINGS that a client acknowledged.
    acknowledged: usize,
    /// Most streams that a connection ever had beyond its limit at that time.
    above_limit: usize,
}

struct Server {
    limit: watch::Sender<u32>,
    seen: Arc<watch::Sender<Seen>>,
    client: Client,
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head, payload].concat()
}

fn limit_frame(limit: u32) -> Vec<u8> {
    let payload = [&3_u16.to_be_bytes()[..], &limit.to_be_bytes()].concat();
    frame(SETTINGS, 0, 0, &payload)
}

/// Answers each stream with headers and leaves it open.
async fn serve(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    mut limits: watch::Receiver<u32>,
    seen: Arc<watch::Sender<Seen>>,
) -> std::io::Result<()> {
    let stream = acceptor.accept(stream).await?;
    seen.send_modify(|seen| seen.connections += 1);
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut limit = *limits.borrow_and_update();
    writer.write_all(&limit_frame(limit)).await?;
    writer.flush().await?;
    let (frames, mut received) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        reader.read_exact(&mut [0; 24]).await?;
        loop {
            let mut head = [0; 9];
            reader.read_exact(&mut head).await?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            reader.read_exact(&mut vec![0; length as usize]).await?;
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            if frames.send((head[3], head[4], stream)).is_err() {
                return Ok::<_, std::io::Error>(());
            }
        }
    });
    let mut open = 0_usize;
    loop {
        let answer = tokio::select! {
            Ok(()) = limits.changed() => {
                limit = *limits.borrow_and_update();
                limit_frame(limit)
            }
            Some(received) = received.recv() => match received {
                (HEADERS, _, stream) => {
                    open += 1;
                    let above = open.saturating_sub(limit as usize);
                    seen.send_modify(|seen| {
                        seen.begun += 1;
                        seen.above_limit = seen.above_limit.max(above);
                    });
                    // The status 200 of the static table.
                    frame(HEADERS, 4, stream, &[0x88])
                }
                (RST_STREAM, ..) => {
                    open -= 1;
                    seen.send_modify(|seen| seen.ended += 1);
                    continue;
                }
                (SETTINGS, 0, _) => frame(SETTINGS, 1, 0, &[]),
                (SETTINGS, ..) => {
                    seen.send_modify(|seen| seen.acknowledged += 1);
                    continue;
                }
                _ => continue,
            },
            else => return Ok(()),
        };
        writer.write_all(&answer).await?;
        writer.flush().await?;
    }
}

impl Server {
    async fn start(
        limit: u32,
        configure: impl FnOnce(HttpTransportBuilder) -> HttpTransportBuilder,
    ) -> Self {
        let (acceptor, authority) = http2_acceptor();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (limit, limits) = watch::channel(limit);
        let seen = Arc::new(watch::Sender::new(Seen::default()));
        tokio::spawn({
            let seen = Arc::clone(&seen);
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let seen = Arc::clone(&seen);
                    tokio::spawn(serve(stream, acceptor.clone(), limits.clone(), seen));
                }
            }
        });
        let tls = TlsOptions {
            authorities: Some(authority),
            ..TlsOptions::default()
        };
        let builder = HttpTransport::builder(&format!("https://localhost:{port}")).tls(tls);
        let transport = configure(builder).build().unwrap();
        Self {
            limit,
            seen,
            client: Client::new(transport),
        }
    }

    fn open(&self) -> impl Future<Output = Result<Response<Body>, Error>> + Send + use<> {
        let stream = self.client.request(Method::GET, "/").without_retry();
        stream.timeout(Duration::from_secs(20)).stream()
    }

    async fn open_all(&self, count: usize) -> Vec<Response<Body>> {
        let streams = (0..count).map(|_| self.open());
        futures_util::future::try_join_all(streams).await.unwrap()
    }

    async fn wait_for(&self, is_reached: impl FnMut(&Seen) -> bool) {
        let mut seen = self.seen.subscribe();
        let reached = tokio::time::timeout(Duration::from_secs(20), seen.wait_for(is_reached));
        reached.await.expect("within 20 s").unwrap();
    }

    fn seen(&self) -> Seen {
        self.seen.borrow().clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_allows_no_streams_for_a_while_gets_one_connection() {
    let server = Server::start(0, |builder| builder).await;
    let streams = (0..20).map(|_| tokio::spawn(server.open()));
    let streams: Vec<_> = streams.collect();
    server.wait_for(|seen| seen.acknowledged == 1).await;
    // Another request comes when the limit is known.
    let late = tokio::spawn(server.open());
    server.limit.send_replace(50);
    let mut open = Vec::new();
    for stream in streams.into_iter().chain([late]) {
        open.push(stream.await.unwrap().unwrap());
    }
    let seen = server.seen();
    assert_eq!((seen.connections, seen.begun), (1, 21), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_is_lowered_sends_requests_to_other_connections() {
    let server = Server::start(10, |builder| builder).await;
    let mut open = server.open_all(10).await;
    assert_eq!(server.seen().connections, 1);
    server.limit.send_replace(2);
    // The first limit and this one.
    server.wait_for(|seen| seen.acknowledged == 2).await;
    open.truncate(5);
    server.wait_for(|seen| seen.ended == 5).await;
    // The first connection has five streams yet, which are more than it may have now.
    let more = server.open_all(4).await;
    let seen = server.seen();
    assert!((2..=3).contains(&seen.connections), "{seen:?}");
    drop((open, more));
    // And the limit is raised again.
    server.wait_for(|seen| seen.ended == seen.begun).await;
    server.limit.send_replace(100);
    let connections = server.seen().connections;
    // Each connection has its first limit and this one, and the first connection had another.
    let reached = 2 * connections + 1;
    server.wait_for(|seen| seen.acknowledged == reached).await;
    let all = server.open_all(30).await;
    assert_eq!(server.seen().connections, connections);
    assert_eq!(server.seen().above_limit, 0, "{:?}", server.seen());
    drop(all);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_connections_is_limited() {
    let server = Server::start(1, |builder| builder.max_connections(3)).await;
    let mut streams: FuturesUnordered<_> = (0..10).map(|_| server.open()).collect();
    let mut done = 0;
    while let Some(stream) = streams.next().await {
        // Its end makes room for the next one.
        drop(stream.unwrap());
        done += 1;
    }
    assert_eq!(done, 10);
    let seen = server.seen();
    assert!(seen.connections <= 3, "{seen:?}");
}
