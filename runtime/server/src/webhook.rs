//! The client of one webhook: HTTPS, JSON, one POST for each question.
//!
//! A webhook is another program, possibly one of a tenant: each has connections, a number of calls at a time and memory of its own, so that
//! a slow one holds up no other, and each call ends in time. Connections are kept and made anew when the address of the service changes. A
//! call waits for its turn, and its time counts from the beginning. Redirects are not followed. No call is repeated, but by those who use
//! [`tries`]. [`Answers`] keeps what does not change from one moment to the next.

mod answers;
mod refusal;
mod review;
mod tries;

use std::error::Error as _;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use apiloom_client::config::{Config, ConfigError, Kubeconfig};
use apiloom_client::transport::{Body, HttpTransport, TlsOptions, Transport, TransportError};
use apiloom_http::received::{self, CollectError};
use bytes::Bytes;
use http::{Request, StatusCode, Uri, header};
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};

pub use self::answers::{Answers, Question};
pub use self::review::status_of_review;
pub use self::tries::tries;
use crate::services::{ClusterDns, ServiceAddress, ServicePort, ServiceResolver};

/// How long a new connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Most calls of a webhook at a time.
const MAX_CALLS: usize = 64;

/// Most calls that wait for a turn; further ones fail at once, so that a webhook that does not answer holds up a part of the
/// requests in flight only.
const MAX_WAITING: usize = 128;

/// Most bytes of the requests of a webhook at a time, in KiB. A larger request is alone.
const ROOM_KIB: usize = 64 * 1024;

/// Most bytes of a response besides those that its request allows.
const RESPONSE_BYTES: usize = 4 << 20;

/// How many bytes a response may have for each byte of its request: conversions add defaults.
const RESPONSE_FACTOR: usize = 4;

/// Most bytes that are read of a response without success.
const REFUSAL_BYTES: usize = 64 << 10;

/// How to reach a webhook: by a URL or by a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookAddress {
    /// The URL, of the form `https://host[/path]`.
    pub url: Option<String>,
    /// The service, in place of a URL.
    pub service: Option<ServicePort>,
    /// The path of requests to the service; `/` by default.
    pub path: Option<String>,
    /// The certificate authorities of the webhook, in PEM; those of the system without them.
    pub ca_bundle: Option<Vec<u8>>,
}

/// Why a call has no document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookError {
    /// Why, for clients, in the words of kube-apiserver.
    pub text: String,
    /// The status code of the webhook's answer; `None` if there is none.
    pub code: Option<u16>,
    /// Whether the same call may have an answer soon: its connection was reset, or the webhook says that it is its own fault, or asks to be
    /// called later.
    pub is_transient: bool,
}

/// Where a webhook is.
#[derive(Clone, Debug)]
enum Target {
    /// Scheme, host and port of a URL; whether it is this machine.
    Url {
        origin: String,
        is_local: bool,
    },
    Service(ServicePort),
    /// What a kubeconfig names; its connections have the credentials.
    Kubeconfig {
        origin: String,
        connections: SharedTransport,
    },
}

/// Connections that several calls have.
#[derive(Clone)]
struct SharedTransport(Arc<dyn Transport>);

impl fmt::Debug for SharedTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedTransport").finish_non_exhaustive()
    }
}

/// The client of one webhook.
#[derive(Debug)]
pub struct WebhookClient {
    target: Target,
    /// Begins with a slash; without a query.
    path: String,
    /// Certificates of authorities in PEM; those of the system without them.
    authorities: Option<Vec<u8>>,
    services: Arc<dyn ServiceResolver>,
    connections: Mutex<Option<Connections>>,
    calls: Semaphore,
    room: Semaphore,
    waiting: AtomicUsize,
}

/// The connections to the present address.
#[derive(Debug)]
struct Connections {
    /// `None` for a URL.
    address: Option<ServiceAddress>,
    transport: SharedTransport,
}

impl WebhookClient {
    /// Makes no connection yet.
    ///
    /// # Errors
    /// If the configuration does not say where the webhook is, or has malformed certificates.
    pub fn new(
        address: &WebhookAddress,
        services: Arc<dyn ServiceResolver>,
    ) -> Result<Self, String> {
        let (target, path) = match (&address.service, &address.url) {
            (Some(service), _) => (
                Target::Service(service.clone()),
                address.path.clone().unwrap_or_default(),
            ),
            (None, Some(url)) => of_url(url)?,
            (None, None) => {
                return Err("webhook configuration must have either service or URL".to_owned());
            }
        };
        let authorities = authorities(address.ca_bundle.as_deref());
        Ok(Self {
            authorities,
            services,
            ..Self::of(target, &path)
        })
    }

    /// The client of the webhook that the current context of a kubeconfig names, with the credentials of its user. No connection is made yet.
    ///
    /// # Errors
    /// Why the file does not name one; without the name of the file.
    pub fn from_kubeconfig(file: &Path) -> Result<Self, ConfigError> {
        let config = Config::from_kubeconfig(&Kubeconfig::read(&[file.to_owned()])?, None)?;
        let client = config.client()?.build()?;
        let (scheme, rest) = config.url.split_once("://").unwrap_or(("", &config.url));
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let target = Target::Kubeconfig {
            origin: format!("{scheme}://{host}"),
            connections: SharedTransport(Arc::clone(client.transport())),
        };
        Ok(Self::of(target, path))
    }

    fn of(target: Target, path: &str) -> Self {
        Self {
            target,
            path: format!("/{}", path.trim_matches('/')),
            authorities: None,
            services: Arc::new(ClusterDns),
            connections: Mutex::new(None),
            calls: Semaphore::new(MAX_CALLS),
            room: Semaphore::new(ROOM_KIB),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Sends a document; returns that of the response. The time for it, with the wait for a turn, is told to the webhook as the parameter
    /// `timeout`, in whole seconds.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn post(&self, body: Bytes, timeout: Duration) -> Result<Bytes, WebhookError> {
        let path = format!("{}?timeout={}s", self.path, timeout.as_secs());
        let call = tokio::time::timeout(timeout, self.call(body, &path));
        let failed = |text: &str, is_transient| WebhookError {
            text: format!("Post \"{}{path}\": {text}", self.origin()),
            code: None,
            is_transient,
        };
        match call.await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(CallError::Refused {
                code,
                text,
                asks_to_wait,
            })) => Err(WebhookError {
                text,
                code: Some(code.as_u16()),
                is_transient: asks_to_wait || matches!(code.as_u16(), 429 | 500 | 504),
            }),
            Ok(Err(CallError::Failed(text))) => Err(failed(&text, false)),
            Ok(Err(CallError::Reset(text))) => Err(failed(&text, true)),
            Err(_) => Err(failed("context deadline exceeded", false)),
        }
    }

    /// The beginning of the URL, as kube-apiserver names it in errors.
    fn origin(&self) -> String {
        match &self.target {
            Target::Url { origin, .. } | Target::Kubeconfig { origin, .. } => origin.clone(),
            Target::Service(service) => service.url(),
        }
    }

    async fn call(&self, body: Bytes, path: &str) -> Result<Bytes, CallError> {
        let failed = |error: &dyn std::fmt::Display| CallError::Failed(error.to_string());
        let _turn = self.turn(body.len()).await?;
        let transport = self.transport().await.map_err(CallError::Failed)?;
        let most = body.len().saturating_mul(RESPONSE_FACTOR);
        let most = most.saturating_add(RESPONSE_BYTES);
        let request = Request::post(path)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, */*")
            .header(
                header::USER_AGENT,
                concat!("apiloom/", env!("CARGO_PKG_VERSION")),
            )
            .body(Body::from(body))
            .map_err(|error| failed(&error))?;
        let response = transport.0.call(request).await;
        let response = response.map_err(|error| {
            let of: fn(String) -> CallError = if is_reset(&error) {
                CallError::Reset
            } else {
                CallError::Failed
            };
            of(error.to_string())
        })?;
        let code = response.status();
        if !code.is_success() {
            let asks_to_wait = response.headers().contains_key(header::RETRY_AFTER);
            let body = response.into_body().collect(REFUSAL_BYTES).await;
            let text = refusal::text(code, &body.unwrap_or_default());
            return Err(CallError::Refused {
                code,
                text,
                asks_to_wait,
            });
        }
        let body = received::ANSWERS.collect(response.into_body(), most).await;
        body.map_err(|error| match error {
            CollectError::TooLong(bytes) => CallError::Failed(format!(
                "the response is longer than {bytes} bytes, the most for this request"
            )),
            error => failed(&error),
        })
    }

    /// Waits until the webhook has room for a call.
    async fn turn(&self, bytes: usize) -> Result<[SemaphorePermit<'_>; 2], CallError> {
        let kib = u32::try_from((bytes / 1024).clamp(1, ROOM_KIB)).unwrap_or(u32::MAX);
        let _waiting = Waiting::begin(&self.waiting)
            .ok_or_else(|| CallError::Failed("too many calls wait for this webhook".to_owned()))?;
        // Always in this order. The semaphores are never closed.
        let closed = |error: tokio::sync::AcquireError| CallError::Failed(error.to_string());
        let room = self.room.acquire_many(kib).await.map_err(closed)?;
        let call = self.calls.acquire().await.map_err(closed)?;
        Ok([room, call])
    }

    /// Connections to the present address.
    async fn transport(&self) -> Result<SharedTransport, String> {
        let address = match &self.target {
            Target::Kubeconfig { connections, .. } => return Ok(connections.clone()),
            Target::Url { .. } => None,
            Target::Service(service) => {
                let address = self.services.resolve(service).await;
                Some(address.map_err(|error| error.to_string())?)
            }
        };
        let mut connections = self.connections.lock().await;
        if let Some(present) = &*connections
            && present.address == address
        {
            return Ok(present.transport.clone());
        }
        let (target, tls) = (self.target.clone(), self.tls());
        let to = address.clone();
        // The certificates of the system are files.
        let made = tokio::task::spawn_blocking(move || connect(&target, to.as_ref(), tls)).await;
        let transport = made.map_err(|error| error.to_string())??;
        let transport = SharedTransport(Arc::new(transport));
        *connections = Some(Connections {
            address,
            transport: transport.clone(),
        });
        Ok(transport)
    }

    fn tls(&self) -> TlsOptions {
        TlsOptions {
            authorities: self.authorities.clone(),
            ..TlsOptions::default()
        }
    }
}

fn connect(
    target: &Target,
    address: Option<&ServiceAddress>,
    tls: TlsOptions,
) -> Result<HttpTransport, String> {
    let (origin, is_local) = match target {
        Target::Url { origin, is_local } => (origin.clone(), *is_local),
        Target::Service(service) => (service.url(), false),
        Target::Kubeconfig { origin, .. } => (origin.clone(), false),
    };
    let mut builder = HttpTransport::builder(&origin)
        .connect_timeout(CONNECT_TIMEOUT)
        .tls(tls);
    if !is_local {
        // One connection of HTTP/2 would send all calls to one of the servers behind a name.
        builder = builder.http1_only();
    }
    if let Some(ServiceAddress { host, port }) = address {
        builder = builder.connect_to(host, *port);
    }
    builder.build().map_err(|error| error.to_string())
}

/// The origin and the path of a URL.
fn of_url(url: &str) -> Result<(Target, String), String> {
    let malformed = || format!("{url:?} is not of the form https://host[/path]");
    let uri: Uri = url.parse().map_err(|_| malformed())?;
    let authority = uri.authority().ok_or_else(malformed)?;
    if uri.scheme_str() != Some("https") || authority.as_str().contains('@') {
        return Err(malformed());
    }
    let host = authority.host().trim_matches(['[', ']']);
    let address = host.parse::<std::net::IpAddr>();
    let target = Target::Url {
        origin: format!("https://{authority}"),
        is_local: host.eq_ignore_ascii_case("localhost")
            || address.is_ok_and(|address| address.is_loopback()),
    };
    Ok((target, uri.path().to_owned()))
}

/// The certificates of a `caBundle`, in PEM.
fn authorities(bundle: Option<&[u8]>) -> Option<Vec<u8>> {
    let pem = bundle.filter(|pem| !pem.trim_ascii().is_empty());
    pem.map(<[u8]>::to_vec)
}

/// Why a call fails.
enum CallError {
    /// The response had no success.
    Refused {
        code: StatusCode,
        text: String,
        /// Whether it says when to call again.
        asks_to_wait: bool,
    },
    /// There was no response.
    Failed(String),
    /// The other side ended the connection.
    Reset(String),
}

/// Whether a call failed because the other side ended the connection.
fn is_reset(error: &TransportError) -> bool {
    let mut source = error.source();
    while let Some(error) = source {
        let io = error.downcast_ref::<std::io::Error>();
        if io.is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionReset) {
            return true;
        }
        source = error.source();
    }
    false
}

/// A call that waits for a turn.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn begin(waiting: &'a AtomicUsize) -> Option<Self> {
        let begun = Self(waiting);
        let before = waiting.fetch_add(1, Ordering::AcqRel);
        (before < MAX_WAITING).then_some(begun)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests;
