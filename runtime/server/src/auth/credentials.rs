//! What an authenticator reads: the connection of a request, its headers, and the credentials taken out of them.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

use apiloom_meta::{ApiError, StatusReason};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, HeaderValue};
use rustls::pki_types::CertificateDer;

/// The connection of a request. Requests of one connection share it.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The address of the client; `None` for a request that is sent in process.
    pub peer: Option<SocketAddr>,
    /// The chain of certificates that the client presented and TLS verified, its own certificate first. Empty for a client
    /// without one.
    pub certificates: Arc<[CertificateDer<'static>]>,
}

impl Connection {
    /// The connection of requests that are sent in process.
    pub(crate) fn in_process() -> Self {
        Self {
            peer: None,
            certificates: Arc::new([]),
        }
    }
}

/// The credentials of a request, and what else its user may be known by.
///
/// The header `Authorization` and the token of a WebSocket are taken out of the request: nothing behind authentication sees
/// them.
#[derive(Debug)]
pub struct Credentials<'a> {
    connection: &'a Connection,
    headers: &'a HeaderMap,
    authorization: Option<HeaderValue>,
    token: Option<Token>,
}

/// Where the bearer token is.
#[derive(Debug)]
enum Token {
    /// In the header `Authorization`, at these bytes.
    Header(Range<usize>),
    /// Among the subprotocols of a WebSocket.
    WebSocket(String),
}

impl<'a> Credentials<'a> {
    /// Takes the credentials out of the headers of a request.
    ///
    /// # Errors
    /// Unauthorized for a WebSocket whose subprotocols carry a malformed token.
    pub(super) fn take(
        connection: &'a Connection,
        headers: &'a mut HeaderMap,
    ) -> Result<Self, ApiError> {
        let authorization = headers.remove(AUTHORIZATION);
        let bearer = authorization
            .as_ref()
            .and_then(|value| bearer(value.as_bytes()));
        let token = match bearer {
            Some(range) => Some(Token::Header(range)),
            None => websocket_token(headers)?.map(Token::WebSocket),
        };
        Ok(Self {
            connection,
            headers,
            authorization,
            token,
        })
    }

    /// The connection of the request: the client's address and certificates.
    pub fn connection(&self) -> &'a Connection {
        self.connection
    }

    /// The headers of the request, without `Authorization`.
    pub fn headers(&self) -> &'a HeaderMap {
        self.headers
    }

    /// The header `Authorization`, of any scheme.
    pub fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }

    /// The bearer token, from the header `Authorization` or a subprotocol of WebSocket; never empty, and of any bytes.
    pub fn token(&self) -> Option<&[u8]> {
        match self.token.as_ref()? {
            Token::Header(range) => self.authorization.as_ref()?.as_bytes().get(range.clone()),
            Token::WebSocket(token) => Some(token.as_bytes()),
        }
    }
}

/// Where in a `Bearer` header the token is, which may be any bytes; the scheme in any letter case, an empty token is none.
fn bearer(header: &[u8]) -> Option<Range<usize>> {
    let space = header.iter().position(|byte| *byte == b' ')?;
    let (scheme, rest) = header.split_at(space);
    let (start, end) = (rest.trim_ascii_start(), rest.trim_ascii_end());
    let range = header.len() - start.len()..space + end.len();
    (scheme.eq_ignore_ascii_case(b"bearer") && !start.is_empty()).then_some(range)
}

/// What the subprotocol of WebSocket begins with that carries a token: browsers can send no other credentials.
pub(super) const BEARER_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// Takes the token out of the subprotocols that a request for WebSocket offers. There must be another one, for the answer
/// to name.
fn websocket_token(headers: &mut HeaderMap) -> Result<Option<String>, ApiError> {
    let is_websocket = headers
        .get(UPGRADE)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    if !is_websocket || !headers.contains_key(SEC_WEBSOCKET_PROTOCOL) {
        return Ok(None);
    }
    let mut tokens = Vec::new();
    let mut others = Vec::new();
    for value in headers.get_all(SEC_WEBSOCKET_PROTOCOL) {
        let value = value.to_str().map_err(|_| unauthorized())?;
        for protocol in value.split(',').map(str::trim) {
            match protocol.strip_prefix(BEARER_PROTOCOL) {
                Some(token) => tokens.push(token.to_owned()),
                None => others.push(protocol.to_owned()),
            }
        }
    }
    let token = match (&tokens[..], others.is_empty()) {
        ([], _) => return Ok(None),
        ([token], false) => URL_SAFE_NO_PAD.decode(token).ok(),
        _ => None,
    };
    let token = token.and_then(|token| String::from_utf8(token).ok());
    let token = token.ok_or_else(unauthorized)?;
    let others = HeaderValue::from_str(&others.join(",")).map_err(|_| unauthorized())?;
    headers.insert(SEC_WEBSOCKET_PROTOCOL, others);
    Ok(Some(token).filter(|token| !token.is_empty()))
}

/// The answer to credentials that are not accepted.
pub(super) fn unauthorized() -> ApiError {
    ApiError::new(StatusReason::Unauthorized, "Unauthorized")
}
