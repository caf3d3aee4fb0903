//! The client of one webhook: HTTPS, JSON, one POST for each question.
//!
//! A webhook is another program, possibly one of a tenant: each has connections, a number of calls at a time and memory of its own, so that
//! a slow one holds up no other, and each call ends in time. Connections are kept and made anew when the address of the service changes. A
//! call waits for its turn, and its time counts from the beginning. No call is repeated, and redirects are not followed.

mod refusal;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use apiloom_client::transport::{Body, HttpTransport, TlsOptions, Transport as _};
use apiloom_http::received::{self, CollectError};
use bytes::Bytes;
use http::{Request, StatusCode, Uri, header};
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};

use crate::services::{ServiceAddress, ServicePort, ServiceResolver};

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
    transport: HttpTransport,
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
        Ok(Self {
            target,
            path: format!("/{}", path.trim_matches('/')),
            authorities: authorities(address.ca_bundle.as_deref()),
            services,
            connections: Mutex::new(None),
            calls: Semaphore::new(MAX_CALLS),
            room: Semaphore::new(ROOM_KIB),
            waiting: AtomicUsize::new(0),
        })
    }

    /// Sends a document; returns that of the response. The time for it, with the wait for a turn, is told to the webhook as the parameter
    /// `timeout`, in whole seconds.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn post(&self, body: Bytes, timeout: Duration) -> Result<Bytes, WebhookError> {
        let path = format!("{}?timeout={}s", self.path, timeout.as_secs());
        let call = tokio::time::timeout(timeout, self.call(body, &path));
        let failed = |text: &str| WebhookError {
            text: format!("Post \"{}{path}\": {text}", self.origin()),
            code: None,
        };
        match call.await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(CallError::Refused(code, text))) => Err(WebhookError {
                text,
                code: Some(code.as_u16()),
            }),
            Ok(Err(CallError::Failed(text))) => Err(failed(&text)),
            Err(_) => Err(failed("context deadline exceeded")),
        }
    }

    /// The beginning of the URL, as kube-apiserver names it in errors.
    fn origin(&self) -> String {
        match &self.target {
            Target::Url { origin, .. } => origin.clone(),
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
        let response = transport
            .call(request)
            .await
            .map_err(|error| failed(&error))?;
        let code = response.status();
        if !code.is_success() {
            let body = response.into_body().collect(REFUSAL_BYTES).await;
            let text = refusal::text(code, &body.unwrap_or_default());
            return Err(CallError::Refused(code, text));
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
    async fn transport(&self) -> Result<HttpTransport, String> {
        let address = match &self.target {
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
    Refused(StatusCode, String),
    /// There was no response.
    Failed(String),
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
