//! A server of HTTP/2 that allows few streams on a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use apiloom_client::Client;
use apiloom_client::transport::{HttpTransport, TlsOptions};
use bytes::Bytes;
use http::{Method, Response};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivateKeyDer;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Most streams of a connection.
const MOST: usize = 10;

/// Its connections, and the most streams that one of them ever had.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) connections: AtomicUsize,
    most_streams: AtomicUsize,
    /// The streams that are open now, of all connections.
    pub(super) open: AtomicUsize,
}

/// Serves streams that are open as long as the client wants.
async fn serve(stream: TcpStream, acceptor: TlsAcceptor, seen: Arc<Seen>) {
    seen.connections.fetch_add(1, Ordering::SeqCst);
    let stream = acceptor.accept(stream).await.unwrap();
    let mut server = h2::server::Builder::new();
    server.max_concurrent_streams(MOST as u32);
    server.enable_connect_protocol();
    let mut server = server.handshake::<_, Bytes>(stream).await.unwrap();
    let open = Arc::new(AtomicUsize::new(0));
    while let Some(Ok((_, mut respond))) = server.accept().await {
        let (open, seen) = (Arc::clone(&open), Arc::clone(&seen));
        tokio::spawn(async move {
            seen.open.fetch_add(1, Ordering::SeqCst);
            let now = open.fetch_add(1, Ordering::SeqCst) + 1;
            seen.most_streams.fetch_max(now, Ordering::SeqCst);
            let mut body = respond.send_response(Response::new(()), false).unwrap();
            body.send_data(Bytes::from_static(b"open"), false).unwrap();
            std::future::poll_fn(|cx| body.poll_reset(cx)).await.ok();
            open.fetch_sub(1, Ordering::SeqCst);
            seen.open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

/// The side of TLS of a server of HTTP/2 on `localhost`, and its certificate as PEM.
pub(super) fn http2_acceptor() -> (TlsAcceptor, Vec<u8>) {
    let names = vec!["localhost".to_owned()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![cert.der().clone()],
            PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    (TlsAcceptor::from(Arc::new(config)), cert.pem().into_bytes())
}

pub(super) async fn start() -> (Client, Arc<Seen>) {
    let (acceptor, authority) = http2_acceptor();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!(
        "https://localhost:{}",
        listener.local_addr().unwrap().port()
    );
    let seen = Arc::new(Seen::default());
    let counts = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, acceptor.clone(), Arc::clone(&counts)));
        }
    });
    let tls = TlsOptions {
        authorities: Some(authority),
        ..TlsOptions::default()
    };
    let transport = HttpTransport::builder(&url).tls(tls).build().unwrap();
    (Client::new(transport), seen)
}

pub(super) async fn open(
    client: &Client,
    count: usize,
) -> Vec<http::Response<apiloom_client::Body>> {
    let streams = (0..count).map(|_| {
        let stream = client.request(Method::GET, "/stream").without_retry();
        stream.timeout(Duration::from_secs(20)).stream()
    });
    futures_util::future::try_join_all(streams).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn more_streams_than_a_server_allows_get_more_connections() {
    let (client, seen) = start().await;
    let first = open(&client, 25).await;
    assert_eq!(seen.most_streams.load(Ordering::SeqCst), MOST);
    let connections = seen.connections.load(Ordering::SeqCst);
    assert!((3..=5).contains(&connections), "{connections}");
    // The room of streams that ended is used again.
    drop(first);
    for _ in 0..50 {
        drop(open(&client, 5).await);
    }
    let after = seen.connections.load(Ordering::SeqCst);
    assert!(after <= connections + 1, "{after}");
}
