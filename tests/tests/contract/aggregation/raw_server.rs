//! Servers over TLS that answer with bytes, valid or not: of HTTP/1.1, and of HTTP/2.

use std::net::SocketAddr;
use std::sync::Arc;

use apiloom_tests::frames::{
    self, ACK, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, SETTINGS,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::pair::Authority;
use super::recorder;

/// Starts a server of HTTP/1.1 that gives each request, as its path, to `answer`, and closes the connection after it.
pub(super) async fn start<F>(
    authority: &Authority,
    answer: impl Fn(String, TlsStream<TcpStream>) -> F + Clone + Send + Sync + 'static,
) -> SocketAddr
where
    F: Future<Output = TlsStream<TcpStream>> + Send,
{
    let serve = move |mut stream: TlsStream<TcpStream>| {
        let answer = answer.clone();
        async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read_u8().await {
                    Ok(byte) => head.push(byte),
                    Err(_) => return,
                }
            }
            let head = String::from_utf8(head).unwrap();
            let path = head.split(' ').nth(1).unwrap().to_owned();
            let mut stream = answer(path, stream).await;
            // The client may be gone at any time.
            let _ = stream.shutdown().await;
        }
    };
    accept(authority, b"http/1.1", serve).await
}

/// Starts a server that serves each connection by a function, in a task of its own.
async fn accept<F>(
    authority: &Authority,
    protocol: &[u8],
    serve: impl Fn(TlsStream<TcpStream>) -> F + Clone + Send + Sync + 'static,
) -> SocketAddr
where
    F: Future<Output = ()> + Send,
{
    let mut tls = recorder::tls(authority);
    tls.alpn_protocols = vec![protocol.to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let (acceptor, serve) = (acceptor.clone(), serve.clone());
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(tcp).await {
                    serve(stream).await;
                }
            });
        }
    });
    address
}

/// Starts a server of HTTP/2. It gives each request with a body, as its stream and the body, to `answer`, which may go on with
/// the connection; what has none, as the requests of the aggregator itself, gets `document`.
pub(super) async fn start_http2<F>(
    authority: &Authority,
    document: &str,
    answer: impl Fn(u32, String, TlsStream<TcpStream>) -> F + Clone + Send + Sync + 'static,
) -> SocketAddr
where
    F: Future<Output = std::io::Result<TlsStream<TcpStream>>> + Send,
{
    let document = document.to_owned();
    let serve = move |stream: TlsStream<TcpStream>| {
        let (document, answer) = (document.clone(), answer.clone());
        // It fails when the client has gone.
        async move { drop(serve_http2(stream, &document, answer).await) }
    };
    accept(authority, b"h2", serve).await
}

async fn serve_http2<F>(
    mut stream: TlsStream<TcpStream>,
    document: &str,
    answer: impl Fn(u32, String, TlsStream<TcpStream>) -> F,
) -> std::io::Result<()>
where
    F: Future<Output = std::io::Result<TlsStream<TcpStream>>>,
{
    let mut preface = [0; PREFACE.len()];
    stream.read_exact(&mut preface).await?;
    assert_eq!(preface, PREFACE);
    send(&mut stream, &frames::frame(SETTINGS, 0, 0, &[])).await?;
    let mut body = Vec::new();
    loop {
        let (kind, flags, of, payload) = read_frame(&mut stream).await?;
        match kind {
            SETTINGS | PING if flags & ACK == 0 => {
                let payload = if kind == PING { &*payload } else { &[] };
                send(&mut stream, &frames::frame(kind, ACK, 0, payload)).await?;
            }
            HEADERS if flags & END_STREAM != 0 => {
                let head = frames::block(&[(":status", "200")]);
                let mut bytes = frames::frame(HEADERS, END_HEADERS, of, &head);
                frames::push(&mut bytes, DATA, END_STREAM, of, document.as_bytes());
                send(&mut stream, &bytes).await?;
            }
            DATA => {
                body.extend_from_slice(&payload);
                if flags & END_STREAM != 0 {
                    let body = String::from_utf8(std::mem::take(&mut body)).unwrap();
                    stream = answer(of, body, stream).await?;
                }
            }
            _ => {}
        }
    }
}

/// Sends bytes at once.
pub(super) async fn send(stream: &mut TlsStream<TcpStream>, bytes: &[u8]) -> std::io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

/// Type, flags, stream and payload of the next frame.
async fn read_frame(stream: &mut TlsStream<TcpStream>) -> std::io::Result<(u8, u8, u32, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await?;
    let [a, b, c, kind, flags, id @ ..] = head;
    let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
    stream.read_exact(&mut payload).await?;
    Ok((kind, flags, u32::from_be_bytes(id), payload))
}
