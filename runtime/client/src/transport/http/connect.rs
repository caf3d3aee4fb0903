//! New connections: TCP, TLS, and the handshake of HTTP.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::connection::{Http1Sender, Http2Sender};
use super::gate::Gate;
use super::server_settings::{LiveSettings, SettingsReader};
use crate::transport::{HookedStream, TransportError};

/// A peer that answers no ping of HTTP/2 for these times is gone: as client-go, 30 seconds without a byte and 15 for the
/// answer.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// How long one address of several may take before the next one is tried.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(10);

/// The system asks for a sign of life of a peer that is silent for so long, and again until it gives up after some minutes:
/// HTTP/1.1 has no pings, and an open stream may have nothing to say.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    let keepalive = TcpKeepalive::new();
    let keepalive = keepalive
        .with_time(PING_INTERVAL)
        .with_interval(PING_TIMEOUT);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

/// The bytes of a connection, encrypted or not.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send {}
impl<T: AsyncRead + AsyncWrite + Send> Stream for T {}
pub(super) type BoxStream = Pin<Box<dyn Stream>>;

/// Connects to one of the addresses of a host.
pub(super) async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let addresses: Vec<_> = tokio::net::lookup_host((host, port)).await?.collect();
    let mut last = io::Error::other(format!("{host} has no address"));
    for address in &addresses {
        let connecting = TcpStream::connect(address);
        let connected = if addresses.len() == 1 {
            connecting.await
        } else {
            match tokio::time::timeout(ADDRESS_TIMEOUT, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(io::ErrorKind::TimedOut.into()),
            }
        };
        match connected {
            Ok(stream) => {
                // Requests are written in one piece: to wait for more would only delay them.
                stream.set_nodelay(true)?;
                keep_alive(&stream)?;
                return Ok(stream);
            }
            Err(error) => last = io::Error::new(error.kind(), format!("{address}: {error}")),
        }
    }
    Err(last)
}

/// How many bytes of a response may wait for its reader.
const STREAM_WINDOW: u32 = 1 << 20;

/// The same for all responses of a connection: that of 250 streams, so that some which are not read do not hold up the
/// others.
const CONNECTION_WINDOW: u32 = 250 * STREAM_WINDOW;

/// A new connection.
pub(super) enum NewConnection {
    Http1(Http1Sender),
    Http2 {
        sender: Http2Sender,
        /// What the server allows.
        settings: LiveSettings,
        /// Ends when the connection takes no more requests.
        end: oneshot::Receiver<Infallible>,
    },
}

/// Begins HTTP/2 or HTTP/1.1; the connection runs in a task of its own.
pub(super) async fn handshake(
    stream: BoxStream,
    is_http2: bool,
) -> Result<NewConnection, TransportError> {
    if is_http2 {
        let gate = Gate::default();
        let (reader, settings) = SettingsReader::new();
        let stream = HookedStream::new(HookedStream::new(stream, gate.clone()), reader);
        let io = TokioIo::new(stream);
        let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .keep_alive_while_idle(false);
        let (requests, connection) = builder
            .handshake(io)
            .await
            .map_err(TransportError::unsent)?;
        return Ok(NewConnection::Http2 {
            sender: Http2Sender { requests, gate },
            settings,
            end: run(connection, "HTTP/2"),
        });
    }
    let io = TokioIo::new(stream);
    let (requests, connection) = hyper::client::conn::http1::handshake(io)
        .await
        .map_err(TransportError::unsent)?;
    let end = run(connection.with_upgrades(), "HTTP/1.1");
    Ok(NewConnection::Http1(Http1Sender { requests, end }))
}

/// Runs a connection in a task of its own. The result ends when that has been dropped.
fn run(
    connection: impl Future<Output = hyper::Result<()>> + Send + 'static,
    version: &'static str,
) -> oneshot::Receiver<Infallible> {
    let (ending, end) = oneshot::channel();
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection of {version} broke off");
        }
        drop(ending);
    });
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_system_looks_for_silent_peers() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let stream = tcp("127.0.0.1", port).await.unwrap();
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), PING_INTERVAL);
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), PING_TIMEOUT);
    }
}
