//! A server over TLS and HTTP/1.1 that answers with bytes, valid or not.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::pair::Authority;
use super::recorder;

/// Starts a server that gives each request, as its path, to `answer`, and closes the connection after it.
pub(super) async fn start<F>(
    authority: &Authority,
    answer: impl Fn(String, TlsStream<TcpStream>) -> F + Clone + Send + Sync + 'static,
) -> SocketAddr
where
    F: Future<Output = TlsStream<TcpStream>> + Send,
{
    let mut tls = recorder::tls(authority);
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let (acceptor, answer) = (acceptor.clone(), answer.clone());
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(tcp).await else {
                    return;
                };
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
            });
        }
    });
    address
}
