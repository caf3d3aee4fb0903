//! The transport over the network: HTTP/2 with TLS, falling back to HTTP/1.1, and plain HTTP/1.1.
//!
//! Connections are made when they are needed and shared. A request that a connection did not take, because it was being
//! closed, is sent on another one. So is a read (GET, HEAD, OPTIONS) without a response when its server ended a connection that had
//! waited for it; no other request is sent twice.

mod connect;
mod connection;
mod gate;
#[cfg(feature = "gzip")]
mod gzip;
mod origin;
mod pool;
mod server_settings;
mod settings;
#[cfg(feature = "tls")]
mod tls;
mod tunnel;
#[cfg(feature = "tls")]
mod verifier;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderValue, Method, Request, Response, Version, header};
use http_body::Body as _;

use self::connection::{Attempt, Lease};
use self::origin::Origin;
use self::pool::Pool;
use self::settings::Settings;
use super::{Body, SendPermission, Transport, TransportError};

pub(crate) use self::origin::without_userinfo;

#[cfg(feature = "tls")]
pub use tls::{TlsError, TlsOptions};

/// Most times a request is sent after connections that were being closed did not take it.
const MAX_ATTEMPTS: usize = 4;

/// Most bytes of a request's body that are kept to send it on another connection.
const MAX_KEPT_BODY: u64 = 64 << 20;

/// A transport to one server. Cheap to clone; clones share the connections.
///
/// Each connection has a task in the runtime in which it was made. Dropping the last clone ends idle connections.
///
/// ```no_run
/// # fn example() -> Result<(), apiloom_client::Error> {
/// use apiloom_client::{Client, transport::HttpTransport};
///
/// let transport = HttpTransport::builder("http://127.0.0.1:8001").build()?;
/// let client = Client::new(transport);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct HttpTransport {
    inner: Arc<Inner>,
}

struct Inner {
    authority: HeaderValue,
    origin: Origin,
    pool: Arc<Pool>,
}

/// Makes an [`HttpTransport`].
#[must_use = "call `build`"]
pub struct HttpTransportBuilder {
    url: String,
    peer: Option<(String, u16)>,
    settings: Settings,
    #[cfg(feature = "tls")]
    tls: TlsOptions,
}

/// Settings of which no transport can be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpTransportError {
    /// The URL is malformed, or of another scheme.
    #[error("{0}")]
    Url(String),
    /// The options of TLS cannot be used.
    #[cfg(feature = "tls")]
    #[error("{0}")]
    Tls(#[from] TlsError),
}

impl HttpTransport {
    /// Begins a transport to the server at this URL, whose path is ignored: it is the base path of the client.
    pub fn builder(url: &str) -> HttpTransportBuilder {
        HttpTransportBuilder {
            url: url.to_owned(),
            peer: None,
            settings: Settings {
                connect_timeout: Duration::from_secs(30),
                max_streams: 100,
                max_connections: 100,
                is_http1_only: false,
            },
            #[cfg(feature = "tls")]
            tls: TlsOptions::default(),
        }
    }

    /// Makes new connections with these options, for instance a renewed certificate. Idle connections end; requests in
    /// flight keep theirs. Of a server without TLS they are checked and not used.
    ///
    /// # Errors
    /// If the options have a malformed certificate or key: then the present ones stay.
    #[cfg(feature = "tls")]
    pub fn set_tls(&self, options: &TlsOptions) -> Result<(), TlsError> {
        let connector = tls::Tls::new(options, &self.inner.origin, self.inner.pool.settings())?;
        if self.inner.origin.is_https {
            self.inner.pool.set_tls(connector);
        }
        Ok(())
    }

    async fn send(self, request: Request<Body>) -> Result<Response<Body>, TransportError> {
        let (parts, body) = request.into_parts();
        let upgrade = parts.headers.get(header::UPGRADE);
        let is_upgrade = upgrade.is_some();
        let is_websocket = upgrade.is_some_and(|to| to == "websocket");
        #[cfg(feature = "gzip")]
        let (parts, decodes) = {
            let mut parts = parts;
            let decodes = gzip::ask(&mut parts.headers);
            (parts, decodes)
        };
        let mut body = if body
            .size_hint()
            .exact()
            .is_some_and(|size| size <= MAX_KEPT_BODY)
        {
            let bytes = body.collect(usize::MAX).await;
            let permission = parts.extensions.get::<SendPermission>().cloned();
            Sendable::Kept(bytes.map_err(TransportError::new)?, permission)
        } else {
            Sendable::Once(Some(body))
        };
        let mut problem = None;
        let mut needs_new = is_upgrade;
        for _ in 0..MAX_ATTEMPTS {
            let Some(body) = body.take() else {
                break;
            };
            let pool = &self.inner.pool;
            let stream = is_websocket.then(|| pool.existing_for_websocket());
            let lease = match stream.flatten() {
                Some(stream) => stream,
                None if needs_new => pool.connect_http1().await?,
                None => pool.lease().await?,
            };
            let mut request = Request::new(body);
            *request.method_mut() = parts.method.clone();
            *request.headers_mut() = parts.headers.clone();
            *request.extensions_mut() = parts.extensions.clone();
            self.address(&mut request, &parts.uri, &lease)?;
            if is_websocket && lease.is_http2() {
                to_extended_connect(&mut request);
            }
            match lease.send(request).await {
                Attempt::Response(response) => {
                    #[cfg(feature = "gzip")]
                    let response = gzip::decoded(response, decodes);
                    return Ok(response);
                }
                Attempt::Ended(error) if parts.method.is_safe() => {
                    tracing::debug!(%error, "a kept connection ended before the response of a request");
                    problem = Some(error);
                    needs_new = true;
                }
                Attempt::Ended(error) | Attempt::Failed(error) => return Err(error),
                Attempt::NotTaken(error) => {
                    tracing::debug!(%error, "a connection that is being closed did not take a request");
                }
            }
        }
        Err(problem.unwrap_or_else(|| {
            TransportError::unsent("the server closes its connections before they take a request")
        }))
    }

    /// HTTP/1.1 has the host in a header, and the path alone in its first line; HTTP/2 has all in the URI.
    fn address(
        &self,
        request: &mut Request<Body>,
        uri: &http::Uri,
        lease: &Lease,
    ) -> Result<(), TransportError> {
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let uri = if lease.is_http2() {
            *request.version_mut() = Version::HTTP_2;
            format!("{}{path}", self.inner.origin)
        } else {
            let host = self.inner.authority.clone();
            request.headers_mut().insert(header::HOST, host);
            path.to_owned()
        };
        *request.uri_mut() = uri
            .parse()
            .map_err(|error| TransportError::unsent(format!("{uri:?} is no URI: {error}")))?;
        Ok(())
    }
}

/// Makes a CONNECT of the GET that asks for a WebSocket, as HTTP/2 has it (RFC 8441).
fn to_extended_connect(request: &mut Request<Body>) {
    *request.method_mut() = Method::CONNECT;
    let extensions = request.extensions_mut();
    extensions.insert(hyper::ext::Protocol::from_static("websocket"));
    for name in [
        header::CONNECTION,
        header::UPGRADE,
        header::SEC_WEBSOCKET_KEY,
    ] {
        request.headers_mut().remove(name);
    }
}

/// A body that can be sent once, or again.
enum Sendable {
    /// The bytes, and what must hold while they are sent.
    Kept(Bytes, Option<SendPermission>),
    Once(Option<Body>),
}

impl Sendable {
    fn take(&mut self) -> Option<Body> {
        match self {
            Self::Kept(bytes, _) if bytes.is_empty() => Some(Body::empty()),
            Self::Kept(bytes, Some(permission)) => Some(permission.clone().guard(bytes.clone())),
            Self::Kept(bytes, None) => Some(Body::from(bytes.clone())),
            Self::Once(body) => body.take(),
        }
    }
}

impl Transport for HttpTransport {
    fn call(
        &self,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<Body>, TransportError>> {
        Box::pin(self.clone().send(request))
    }
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTransport")
            .field("origin", &self.inner.origin.to_string())
            .finish_non_exhaustive()
    }
}

impl HttpTransportBuilder {
    /// Connects to this host or IP address, and port, instead of those of the URL. Requests and TLS still have the names of
    /// the URL: for services, whose addresses are found in other ways than by DNS. Default: those of the URL.
    pub fn connect_to(mut self, host: &str, port: u16) -> Self {
        let host = host.trim_matches(['[', ']']);
        self.peer = Some((host.to_owned(), port));
        self
    }

    /// How long a connection may take until it is ready for requests. Default 30 seconds.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.settings.connect_timeout = timeout;
        self
    }

    /// Most requests at a time on one connection of HTTP/2; more get further connections. Watches count until they end.
    /// A server that allows fewer gets fewer, also if it says so later; one that allows none for a while gets no further
    /// connections meanwhile. Default 100, which servers allow as a rule.
    pub fn max_streams_per_connection(mut self, streams: usize) -> Self {
        self.settings.max_streams = streams.max(1);
        self
    }

    /// Most connections of HTTP/2 at a time, at least 1. When all their streams are in use, requests wait for the end of
    /// others, and time out like those that a server does not answer. Those of HTTP/1.1, each of which has one request, and of
    /// WebSockets over HTTP/1.1 are not limited. Default 100.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.settings.max_connections = connections.max(1);
        self
    }

    /// Uses HTTP/1.1 also if the server offers HTTP/2. Default false.
    pub fn http1_only(mut self) -> Self {
        self.settings.is_http1_only = true;
        self
    }

    /// Authorities, certificates and names of TLS. Default: the authorities of the system.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, options: TlsOptions) -> Self {
        self.tls = options;
        self
    }

    /// Makes the transport. No connection is made yet.
    ///
    /// # Errors
    /// For a malformed URL, a scheme other than `http` and `https`, and malformed certificates and keys.
    pub fn build(self) -> Result<HttpTransport, HttpTransportError> {
        let origin = Origin::parse(&self.url).map_err(HttpTransportError::Url)?;
        let authority = HeaderValue::try_from(origin.authority()).map_err(|_| {
            let url = without_userinfo(&self.url);
            HttpTransportError::Url(format!("{url:?} has no host for a header"))
        })?;
        #[cfg(feature = "tls")]
        let tls = if origin.is_https {
            let tls = tls::Tls::new(&self.tls, &origin, self.settings);
            Some(tls?)
        } else {
            None
        };
        #[cfg(not(feature = "tls"))]
        if origin.is_https {
            let problem = format!("{:?} needs the feature `tls` of apiloom-client", self.url);
            return Err(HttpTransportError::Url(problem));
        }
        let pool = Pool::new(
            origin.clone(),
            self.peer,
            self.settings,
            #[cfg(feature = "tls")]
            tls,
        );
        Ok(HttpTransport {
            inner: Arc::new(Inner {
                authority,
                origin,
                pool: Arc::new(pool),
            }),
        })
    }
}

impl fmt::Debug for HttpTransportBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTransportBuilder")
            .field("url", &without_userinfo(&self.url))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;
