//! The listening socket: TLS, HTTP/1.1 and HTTP/2 on one port, with a limit for connections, and a graceful shutdown.
//!
//! Every connection needs a file descriptor. The limit for connections is below that of open files, so that the store
//! can always open files; a connection above it is closed immediately.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use apiloom_client::transport::HookedStream;
use apiloom_registry::auth::Connection;
use apiloom_registry::memory;
use futures_util::FutureExt as _;
use http::Request;
use http_body_util::BodyExt;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use super::chain::FilterInfo;
use super::connection::{self, Protocol};
use super::filters::Filters;
use super::stall::{self, Patience, STALL, Stall};
use super::{ServerError, attended, open_files, unread};

/// Timeout of TLS handshakes.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Limit for concurrent connections, if the limit of open files and the memory allow it.
const MAX_CONNECTIONS: usize = 20_000;
/// Memory of a connection with its buffers, about.
const CONNECTION_BYTES: usize = 64 * 1024;
/// Connections may have one of so many parts of the memory of this process.
const PARTS_OF_MEMORY: u64 = 4;
/// File descriptors reserved for the store, the listener and the event loop.
const RESERVED_FILES: u64 = 128;
/// Time without traffic until TCP keepalive begins, as HTTP/2 sends pings. With the next two, a client that is gone is noticed
/// after 80 seconds. Bytes that it does not acknowledge are sent again for as long as the operating system does, on Linux
/// about 15 minutes.
#[cfg(unix)]
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
/// Time between two probes.
#[cfg(unix)]
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// Probes without an answer after which the client is gone.
#[cfg(unix)]
const KEEPALIVE_PROBES: u32 = 5;
/// Delay before accepting again after an error of the operating system.
const RETRY: Duration = Duration::from_millis(100);

/// The filters of connections, in their order, before those of requests. Each is described where it is.
pub(super) const FILTERS: [FilterInfo; 6] = [
    ConnectionLimit::INFO,
    stall::INFO,
    HANDSHAKE,
    connection::TIMEOUTS,
    connection::LIMITS,
    attended::INFO,
];

/// The filter that [`handshake`] is.
const HANDSHAKE: FilterInfo = FilterInfo::new(
    "tls",
    "TLS, within 10 s; HTTP/2 or HTTP/1.1 by ALPN; asks for a client certificate",
);

/// Binds the address; the error has a remedy if the port is in use.
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

/// Serves until `stop` changes, then waits for requests in flight, at most as long as `drain`.
pub(super) async fn serve(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    filters: Arc<Filters>,
    mut stop: watch::Receiver<bool>,
    drain: Duration,
) {
    let acceptor = TlsAcceptor::from(tls);
    let mut door =
        ConnectionLimit::new(max_connections(open_files::limit()).min(max_connections_in_memory()));
    // Every connection holds a receiver.
    let (shutdown, _) = watch::channel(());
    loop {
        let accepted = tokio::select! {
            _ = stop.changed() => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_of_one_client(&error) => {
                tracing::debug!(%error, "cannot accept a connection");
                continue;
            }
            Err(error) => {
                let is_refused = open_files::is_too_many(&error) && door.refuse_next(&listener);
                if !is_refused {
                    tracing::debug!(%error, "cannot accept a connection");
                    tokio::time::sleep(RETRY).await;
                }
                continue;
            }
        };
        let Some(place) = door.admit() else {
            // Dropping the stream closes it.
            continue;
        };
        let (acceptor, filters, stop) =
            (acceptor.clone(), Arc::clone(&filters), shutdown.subscribe());
        tokio::spawn(async move {
            serve_one(stream, peer, &acceptor, filters, stop).await;
            drop(place);
        });
    }
    // No new connections are accepted during the shutdown.
    drop(listener);
    // An error means that there are no connections.
    let _ = shutdown.send(());
    if tokio::time::timeout(drain, shutdown.closed())
        .await
        .is_err()
    {
        tracing::warn!("requests still in flight after {drain:?} are cut off");
    }
}

async fn serve_one(
    stream: TcpStream,
    peer: SocketAddr,
    acceptor: &TlsAcceptor,
    filters: Arc<Filters>,
    mut stop: watch::Receiver<()>,
) {
    let stream = tokio::select! {
        // A client that is not yet let in has nothing to wait for.
        _ = stop.changed() => return,
        stream = handshake(acceptor, stream) => stream,
    };
    let Some(stream) = stream else { return };
    let tls = stream.get_ref().1;
    let protocol = Protocol::of_alpn(tls.alpn_protocol());
    let certificates = tls.peer_certificates().unwrap_or_default().iter();
    let connection = Connection {
        peer: Some(peer),
        certificates: certificates.map(|one| one.clone().into_owned()).collect(),
    };
    let shared = Arc::new((filters, connection));
    let handle = move |request: Request<unread::RequestBody>| {
        let request = request.map(BodyExt::boxed_unsync);
        let shared = Arc::clone(&shared);
        async move {
            let (filters, connection) = &*shared;
            filters.serve(connection, request).await
        }
    };
    if let Err(error) = connection::serve(stream, protocol, stop, handle).await {
        tracing::debug!(%error, "connection ended");
    }
}

async fn handshake(
    acceptor: &TlsAcceptor,
    stream: TcpStream,
) -> Option<tokio_rustls::server::TlsStream<HookedStream<TcpStream, Stall>>> {
    if let Err(error) = set_options(&stream) {
        tracing::debug!(%error, "cannot set the options of a connection");
    }
    let stream = HookedStream::new(stream, Stall::new(Patience::new(STALL)));
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%error, "TLS handshake failed");
            None
        }
        Err(_) => None,
    }
}

/// Sets the options of a connection: no delay, since responses are written whole, and keepalive, which ends a quiet stream
/// over HTTP/1.1 whose client is gone.
fn set_options(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    #[cfg(unix)]
    {
        use rustix::net::sockopt;
        sockopt::set_socket_keepalive(stream, true)?;
        sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
        sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
        sockopt::set_tcp_keepcnt(stream, KEEPALIVE_PROBES)?;
    }
    Ok(())
}

/// Maximum number of connections for a limit of open files.
fn max_connections(open_files: Option<u64>) -> usize {
    let files = open_files.unwrap_or(u64::MAX);
    // If the reserve is more than half of the limit, connections get half.
    let connections = files.saturating_sub(RESERVED_FILES).max(files / 2);
    usize::try_from(connections).map_or(MAX_CONNECTIONS, |connections| {
        connections.clamp(1, MAX_CONNECTIONS)
    })
}

/// Maximum number of connections for the memory of this process.
fn max_connections_in_memory() -> usize {
    let bytes = memory::share(PARTS_OF_MEMORY, MAX_CONNECTIONS * CONNECTION_BYTES);
    (bytes / CONNECTION_BYTES).max(1)
}

/// Limits the number of connections. Refusals are logged once when they begin, and once when they end.
struct ConnectionLimit {
    places: Arc<Semaphore>,
    limit: usize,
    /// Connections refused since the log message; `None` while none are refused.
    refused: Option<u64>,
    /// An open file that is closed to accept, and close, a connection when the process has no file descriptor left.
    spare: Option<File>,
}

impl ConnectionLimit {
    const INFO: FilterInfo = FilterInfo::new(
        "connection-limit",
        "closes connections above the limits of open files and memory",
    );

    fn new(limit: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(limit)),
            limit,
            refused: None,
            spare: spare_file(),
        }
    }

    /// A permit for a new connection; `None` if the limit is reached.
    fn admit(&mut self) -> Option<tokio::sync::OwnedSemaphorePermit> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok();
        if place.is_none() {
            self.refuse("too many connections");
        // The shortage ends only when a tenth of the limit is free, not with each connection that ends.
        } else if self.places.available_permits() > self.limit / 10
            && let Some(refused) = self.refused.take()
        {
            tracing::warn!(refused, "accepting new connections again");
        }
        place
    }

    fn refuse(&mut self, why: &str) {
        let refused = self.refused.get_or_insert(0);
        if *refused == 0 {
            let limit = self.limit;
            tracing::warn!(
                limit,
                "{why}: refusing new connections, serving those that are open"
            );
        }
        *refused += 1;
    }

    /// Accepts and closes the next connection with the spare file descriptor; it would wait otherwise, and those
    /// behind it too. False if another part of the process took the descriptor.
    fn refuse_next(&mut self, listener: &TcpListener) -> bool {
        self.refuse("too many open files");
        drop(self.spare.take());
        let accepted = listener.accept().now_or_never();
        let is_refused = matches!(accepted, Some(Ok(_)));
        drop(accepted);
        self.spare = spare_file();
        is_refused
    }
}

/// Whether accept failed because of this connection's client, which does not affect the next one.
fn is_of_one_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}

fn spare_file() -> Option<File> {
    let file: io::Result<File> = File::open(if cfg!(windows) { "NUL" } else { "/dev/null" });
    file.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_the_store() {
        let check = |files, expected| assert_eq!(max_connections(files), expected, "{files:?}");
        check(None, MAX_CONNECTIONS);
        check(Some(1_000_000), MAX_CONNECTIONS);
        check(Some(1024), 1024 - 128);
        check(Some(200), 100);
        check(Some(1), 1);
        check(Some(0), 1);
    }

    #[test]
    fn a_shortage_is_one_episode_until_a_tenth_is_free() {
        let mut door = ConnectionLimit::new(20);
        let mut places: Vec<_> = (0..20).map(|_| door.admit().unwrap()).collect();
        assert_eq!(door.refused, None);
        for refused in 1..5 {
            assert!(door.admit().is_none());
            assert_eq!(door.refused, Some(refused));
        }
        places.pop();
        places.push(door.admit().unwrap());
        assert_eq!(
            door.refused,
            Some(4),
            "a place that changes hands is not enough"
        );
        places.truncate(16);
        places.push(door.admit().unwrap());
        assert_eq!(door.refused, None);
    }

    #[tokio::test]
    async fn when_no_file_can_be_opened_a_client_is_refused_with_the_spare_one() {
        use tokio::io::AsyncReadExt as _;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let mut door = ConnectionLimit::new(10);
        while !door.refuse_next(&listener) {
            tokio::task::yield_now().await;
        }
        assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0);
        assert!(door.spare.is_some());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_client_that_vanishes_is_noticed() {
        use rustix::net::sockopt;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (_client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (stream, _) = accepted.unwrap();
        set_options(&stream).unwrap();
        assert!(stream.nodelay().unwrap());
        assert!(sockopt::socket_keepalive(&stream).unwrap());
        let idle = sockopt::tcp_keepidle(&stream).unwrap();
        let probes = sockopt::tcp_keepintvl(&stream).unwrap() * KEEPALIVE_PROBES;
        assert_eq!(idle + probes, Duration::from_secs(80));
        assert_eq!(sockopt::tcp_keepcnt(&stream).unwrap(), KEEPALIVE_PROBES);
    }

    #[test]
    fn a_client_that_has_gone_does_not_hold_up_the_next_one() {
        assert!(is_of_one_client(&io::ErrorKind::ConnectionAborted.into()));
        assert!(!is_of_one_client(&io::ErrorKind::OutOfMemory.into()));
    }
}
