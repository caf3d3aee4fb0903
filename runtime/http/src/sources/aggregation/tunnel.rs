//! A connection that a forwarded request switched to another protocol: bytes in both directions, until one side ends it or the
//! server stops.

use apiloom_client::transport::{Body as ClientBody, upgraded};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::sync::OwnedSemaphorePermit;

use crate::response::{Body, full};
use crate::streams::extended_connect::{self, UpgradeGuard};
use crate::streams::shutdown_signal::ShutdownSignal;
use crate::streams::websocket;
use crate::verbs::connect::remove_connection_headers;

/// Size of the buffer of one direction.
const BUFFER_BYTES: usize = 16 * 1024;

/// The response of another server, and what is left to do if the protocol was switched.
pub(crate) struct ForwardedResponse {
    pub(crate) response: Response<Body>,
    pub(crate) tunnel: Option<Tunnel>,
}

impl From<Response<Body>> for ForwardedResponse {
    fn from(response: Response<Body>) -> Self {
        Self {
            response,
            tunnel: None,
        }
    }
}

/// An upgraded connection to another server, before its bytes are copied.
pub(crate) struct Tunnel {
    response: Response<ClientBody>,
    on_upgrade: OnUpgrade,
    /// Held over HTTP/2 until the connection ends.
    guard: Option<UpgradeGuard>,
    permit: OwnedSemaphorePermit,
    stopping: ShutdownSignal,
}

/// Whether a request asks for another protocol, on a connection or stream that can be switched.
pub(crate) fn is_requested(request: &Parts) -> bool {
    websocket::names(&request.headers, CONNECTION, "upgrade")
        && request.headers.contains_key(UPGRADE)
        && request.extensions.get::<OnUpgrade>().is_some()
}

/// Whether a request asks for a WebSocket over HTTP/2.
pub(super) fn is_over_http2(request: &Parts) -> bool {
    extended_connect::is_converted(request)
}

/// A random key of a WebSocket.
pub(super) fn new_key() -> HeaderValue {
    let key = BASE64_STANDARD.encode(uuid::Uuid::new_v4().as_bytes());
    HeaderValue::try_from(key).unwrap_or(HeaderValue::from_static("AAAAAAAAAAAAAAAAAAAAAA=="))
}

impl Tunnel {
    /// The response that switches the client's connection too, and the task of the tunnel.
    pub(super) fn open(
        request: &Parts,
        response: Response<ClientBody>,
        permit: OwnedSemaphorePermit,
        stopping: ShutdownSignal,
    ) -> ForwardedResponse {
        let mut answer = Response::new(full(Bytes::new()));
        *answer.headers_mut() = headers_for_client(request, response.headers());
        if !is_over_http2(request) {
            *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        }
        let on_upgrade = request.extensions.get::<OnUpgrade>().cloned();
        let tunnel = on_upgrade.map(|on_upgrade| Self {
            response,
            on_upgrade,
            guard: request.extensions.get::<UpgradeGuard>().cloned(),
            permit,
            stopping,
        });
        ForwardedResponse {
            response: answer,
            tunnel,
        }
    }

    /// Copies bytes until one side ends, or the server stops.
    pub(crate) async fn run(self) {
        let Self {
            mut response,
            on_upgrade,
            guard,
            permit,
            stopping,
        } = self;
        let (remote, client) = tokio::join!(upgraded(&mut response), on_upgrade);
        let (mut remote, client) = match (remote, client) {
            (Ok(remote), Ok(client)) => (remote, client),
            (Err(error), _) => {
                tracing::debug!(%error, "a forwarded connection could not be switched");
                return;
            }
            (_, Err(error)) => {
                tracing::debug!(%error, "the connection of a client could not be switched");
                return;
            }
        };
        let mut client = TokioIo::new(client);
        let copied = tokio::io::copy_bidirectional_with_sizes(
            &mut client,
            &mut remote,
            BUFFER_BYTES,
            BUFFER_BYTES,
        );
        tokio::select! {
            biased;
            ended = copied => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a forwarded connection broke off");
                }
            }
            () = stopping.wait() => {}
        }
        drop((guard, permit));
    }
}

/// The headers of the response that switches protocols. Over HTTP/2 it has none of the handshake.
fn headers_for_client(request: &Parts, of_remote: &HeaderMap) -> HeaderMap {
    let mut headers = of_remote.clone();
    remove_connection_headers(&mut headers);
    if is_over_http2(request) {
        headers.remove(SEC_WEBSOCKET_ACCEPT);
        headers.remove(SEC_WEBSOCKET_KEY);
        return headers;
    }
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    if let Some(protocol) = of_remote.get(UPGRADE) {
        headers.insert(UPGRADE, protocol.clone());
    }
    headers
}
