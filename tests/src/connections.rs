//! The connections of a client, kept for its next requests.
//!
//! A request that is sent at the moment at which its connection ends can be left in hyper's channel between them, without a result, as
//! long as there is a sender. A server ends a connection of HTTP/2 after each response to a client without credentials, so that this
//! moment comes often. So no sender is kept longer than its connection.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::header::HOST;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderValue, Method, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsConnector;

type Body = Full<Bytes>;
type Sent = Result<Response<Incoming>, TrySendError<Request<Body>>>;
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The connections to one server. Clones have the same ones.
#[derive(Clone)]
pub(crate) struct Connections(Arc<Inner>);

struct Inner {
    server: Authority,
    tls: TlsConnector,
    /// The connections of HTTP/1.1 that have no request.
    idle: Mutex<Vec<Http1>>,
    http2: Arc<Mutex<Option<http2::SendRequest<Body>>>>,
    /// Held while a connection is opened, so that the first requests have one of HTTP/2 together.
    opens: tokio::sync::Mutex<()>,
}

/// A connection of HTTP/1.1.
struct Http1 {
    requests: http1::SendRequest<Body>,
    /// Ends with the connection.
    end: oneshot::Receiver<Infallible>,
}

/// A connection for one request.
enum Connection {
    Http1(Http1),
    Http2(http2::SendRequest<Body>),
}

impl Connections {
    /// Connections to a server, of HTTP/2 where it offers that and `http2` says so.
    pub(crate) fn new(server: Authority, mut tls: ClientConfig, http2: bool) -> Self {
        if http2 {
            tls.alpn_protocols = [&b"h2"[..], b"http/1.1"].map(<[u8]>::to_vec).to_vec();
        }
        Self(Arc::new(Inner {
            server,
            tls: Arc::new(tls).into(),
            idle: Mutex::default(),
            http2: Arc::default(),
            opens: tokio::sync::Mutex::default(),
        }))
    }

    /// Sends a request on an open connection, or on a new one; once more on another if its connection ended before.
    pub(crate) async fn send(
        &self,
        mut request: Request<Body>,
    ) -> Result<Response<Incoming>, BoxError> {
        loop {
            let (connection, is_new) = match self.0.open_one() {
                Some(connection) => (connection, false),
                // Boxed: a handshake is much larger than what all requests need.
                None => Box::pin(self.0.connect()).await?,
            };
            match self.send_on(connection, request).await {
                Ok(response) => return Ok(response),
                Err(mut error) => match error.take_message() {
                    Some(unsent) if !is_new => request = unsent,
                    _ => return Err(error.into_error().into()),
                },
            }
        }
    }

    async fn send_on(&self, connection: Connection, request: Request<Body>) -> Sent {
        match connection {
            Connection::Http2(mut requests) => {
                let response = requests.try_send_request(request);
                drop(requests);
                response.await
            }
            Connection::Http1(Http1 {
                mut requests,
                mut end,
            }) => {
                let response = requests.try_send_request(of_http1(request));
                let mut response = pin!(response);
                let sent = tokio::select! {
                    biased;
                    sent = &mut response => sent,
                    _ = &mut end => {
                        drop(requests);
                        return response.await;
                    }
                };
                let connections = Arc::downgrade(&self.0);
                tokio::spawn(async move {
                    // Once the response is read.
                    let is_ready = tokio::select! {
                        ready = requests.ready() => ready.is_ok(),
                        _ = &mut end => false,
                    };
                    if is_ready && let Some(connections) = connections.upgrade() {
                        lock(&connections.idle).push(Http1 { requests, end });
                    }
                });
                sent
            }
        }
    }
}

impl Inner {
    /// An open connection that takes a request now.
    fn open_one(&self) -> Option<Connection> {
        if let Some(requests) = lock(&self.http2).as_ref() {
            return Some(Connection::Http2(requests.clone()));
        }
        let mut idle = lock(&self.idle);
        idle.retain(|connection| !connection.requests.is_closed());
        idle.pop().map(Connection::Http1)
    }

    /// A new connection, unless another request has opened one of HTTP/2 meanwhile. Whether it is new.
    async fn connect(&self) -> Result<(Connection, bool), BoxError> {
        let _turn = self.opens.lock().await;
        if let Some(requests) = lock(&self.http2).as_ref() {
            return Ok((Connection::Http2(requests.clone()), false));
        }
        let port = self.server.port_u16().unwrap_or(443);
        let host = self.server.host().trim_matches(['[', ']']);
        let stream = TcpStream::connect((host, port)).await?;
        // The body is sent right after the head, not after the kernel's delay of 40 ms.
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(host.to_owned())?;
        let stream = self.tls.connect(name, stream).await?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let stream = TokioIo::new(stream);
        if !is_http2 {
            let (requests, connection) = http1::handshake(stream).await?;
            let (held, end) = oneshot::channel();
            tokio::spawn(async move {
                // The request is told of an error.
                let _ = connection.with_upgrades().await;
                drop(held);
            });
            return Ok((Connection::Http1(Http1 { requests, end }), true));
        }
        let (requests, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
        *lock(&self.http2) = Some(requests.clone());
        let kept = Arc::downgrade(&self.http2);
        tokio::spawn(async move {
            let _ = connection.await;
            // No other one is opened before this is gone.
            if let Some(kept) = kept.upgrade() {
                lock(&kept).take();
            }
        });
        Ok((Connection::Http2(requests), true))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request with the host in a header, and the path alone in its line.
fn of_http1(mut request: Request<Body>) -> Request<Body> {
    let uri = request.uri().clone();
    if request.method() == Method::CONNECT {
        return request;
    }
    if let Some(host) = uri.authority() {
        let host = HeaderValue::from_str(host.as_str()).unwrap();
        request.headers_mut().entry(HOST).or_insert(host);
    }
    let path = uri.path_and_query().cloned();
    *request.uri_mut() = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    request
}
