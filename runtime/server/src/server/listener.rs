//! The listening socket: TLS, HTTP/1.1 and HTTP/2 on one port, bounded, and drained at shutdown.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use super::ServerError;
use super::coalesce::coalesce;
use super::filters::Filters;
use super::stall::Stall;
use super::streams::{Paced, Streams};
use crate::http::timeout::REQUEST_TIMEOUT;

/// How long a client may take over its TLS handshake before its connection is closed.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an HTTP/1.1 client may take over a request's headers.
const HEADER_TIMEOUT: Duration = Duration::from_secs(32);
/// Requests in flight on one HTTP/2 connection; above kube-apiserver's 100, since watches of one client share one.
const MAX_CONCURRENT_STREAMS: u32 = 250;
/// All request headers together, per request.
const MAX_HEADER_BYTES: u32 = 64 * 1024;
/// An idle HTTP/2 client is asked whether it is still there after this long.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Connections at one time; beyond it new ones wait in the kernel's queue.
const MAX_CONNECTIONS: usize = 20_000;
/// How long a client may take no bytes although there are some: as long as an ordinary request may take altogether.
const STALL: Duration = REQUEST_TIMEOUT;
/// How long requests in flight may go on after shutdown has begun.
const DRAIN: Duration = Duration::from_secs(10);

/// Binds the address; the error says what to do about a port that is taken.
pub(super) async fn bind(address: SocketAddr) -> Result<TcpListener, ServerError> {
    TcpListener::bind(address).await.map_err(|error| {
        let reason = match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                "another process listens there; choose another port with --secure-port, or 0 for a free one".to_owned()
            }
            std::io::ErrorKind::PermissionDenied => {
                "this user may not; choose a port above 1023 with --secure-port".to_owned()
            }
            std::io::ErrorKind::AddrNotAvailable => "this machine does not have that --bind-address".to_owned(),
            _ => error.to_string(),
        };
        ServerError::Listen { address, reason }
    })
}

/// Serves until `stop` changes, then lets requests in flight end.
pub(super) async fn serve(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    filters: Arc<Filters>,
    mut stop: watch::Receiver<bool>,
) {
    let acceptor = TlsAcceptor::from(tls);
    let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let graceful = GracefulShutdown::new();
    loop {
        let permit = tokio::select! {
            _ = stop.changed() => break,
            permit = Arc::clone(&connections).acquire_owned() => permit.expect("the semaphore is never closed"),
        };
        let stream = tokio::select! {
            _ = stop.changed() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of file descriptors, mostly: others must end before accepting again makes sense.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
        };
        let (acceptor, filters, watcher) =
            (acceptor.clone(), Arc::clone(&filters), graceful.watcher());
        tokio::spawn(async move {
            if let Some(stream) = handshake(&acceptor, stream).await {
                let service = service_fn(move |request| answer(Arc::clone(&filters), request));
                let http = http_builder();
                let connection = coalesce(stream, |stream| {
                    let connection = http.serve_connection(TokioIo::new(stream), service);
                    watcher.watch(connection.into_owned())
                });
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "connection ended");
                }
            }
            drop(permit);
        });
    }
    // Nobody new gets in while the others finish.
    drop(listener);
    if tokio::time::timeout(DRAIN, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("requests still in flight after {DRAIN:?} are cut off");
    }
}

async fn handshake(
    acceptor: &TlsAcceptor,
    stream: TcpStream,
) -> Option<tokio_rustls::server::TlsStream<Stall<TcpStream>>> {
    // Answers are written whole; waiting for more would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let stream = Stall::new(stream, STALL);
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%error, "TLS handshake failed");
            None
        }
        Err(_) => None,
    }
}

fn http_builder() -> auto::Builder<Streams> {
    let mut builder = auto::Builder::new(Streams::new(STALL));
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_CONCURRENT_STREAMS)
        .max_header_list_size(MAX_HEADER_BYTES)
        .keep_alive_interval(KEEP_ALIVE);
    builder
}

async fn answer(
    filters: Arc<Filters>,
    request: Request<Incoming>,
) -> Result<Response<Paced>, Infallible> {
    Ok(filters.serve(request).await.map(Paced::new))
}
