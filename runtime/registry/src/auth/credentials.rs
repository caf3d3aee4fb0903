//! Input of authenticators: the connection of a request, its headers, and its credentials.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

use apiloom_meta::{ApiError, StatusReason};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, HeaderValue};
use rustls::pki_types::CertificateDer;

/// The connection of a request, shared by all requests of that connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Address of the client; `None` for a request in process.
    pub peer: Option<SocketAddr>,
    /// Certificate chain of the client, in DER encoding, the client's own certificate first. Empty if the client sent no
    /// certificate, and for requests in process.
    ///
    /// The server requests a client certificate and does not require one. The handshake fails if the client does not have
    /// the private key of the first certificate, or if the chain has more than 10 certificates or 16 KiB in total, or one
    /// that cannot be parsed as X.509 version 3. **Nothing else is checked**: not the issuer or the signatures in the chain,
    /// not expiry, key usages, names or revocation. Anyone can make a certificate with any name, so an authenticator must
    /// verify the chain against its own certificate authorities before it uses a name of the certificate. An authenticator
    /// that compares the first certificate, its fingerprint or its public key with known ones needs no other check.
    ///
    /// A resumed TLS session has the chain of the connection that started the session, without a new check.
    pub certificates: Arc<[CertificateDer<'static>]>,
}

impl Connection {
    /// The connection of requests in process.
    pub fn in_process() -> Self {
        Self {
            peer: None,
            certificates: Arc::new([]),
        }
    }
}

/// The credentials of a request, and other properties that can identify its user.
///
/// The header `Authorization` and the token of a WebSocket are removed from the request: no code after authentication
/// sees them.
#[derive(Debug)]
pub struct Credentials<'a> {
    connection: &'a Connection,
    headers: &'a HeaderMap,
    authorization: Option<HeaderValue>,
    token: Option<Token>,
    audiences: Option<&'a [String]>,
}

/// Position of the bearer token.
#[derive(Debug)]
enum Token {
    /// In the header `Authorization`, in this range of bytes.
    Header(Range<usize>),
    /// In a subprotocol of a WebSocket, decoded.
    WebSocket(String),
}

impl<'a> Credentials<'a> {
    /// Removes the credentials from the headers of a request.
    ///
    /// # Errors
    /// Unauthorized for a WebSocket with a malformed token in its subprotocols.
    pub(super) fn take(
        connection: &'a Connection,
        headers: &'a mut HeaderMap,
    ) -> Result<Self, ApiError> {
        let authorization = headers.remove(AUTHORIZATION);
        let bearer = authorization
            .as_ref()
            .and_then(|value| bearer(value.as_bytes()));
        let of_websocket = websocket_token(headers);
        let token = match bearer {
            Some(range) => Some(Token::Header(range)),
            None => of_websocket?.map(Token::WebSocket),
        };
        Ok(Self {
            connection,
            headers,
            authorization,
            token,
            audiences: None,
        })
    }

    /// These credentials, as a review of their token with these audiences asks for them.
    pub(super) fn for_audiences(self, audiences: Option<&'a [String]>) -> Self {
        Self { audiences, ..self }
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

    /// The audiences that a review of the token asks for: it must be for one of them. `None` for requests, and for a review without
    /// audiences: the token must be for this server.
    pub fn audiences(&self) -> Option<&'a [String]> {
        self.audiences
    }

    /// The bearer token, from the header `Authorization` or a WebSocket subprotocol; never empty, and with any bytes.
    pub fn token(&self) -> Option<&[u8]> {
        match self.token.as_ref()? {
            Token::Header(range) => self.authorization.as_ref()?.as_bytes().get(range.clone()),
            Token::WebSocket(token) => Some(token.as_bytes()),
        }
    }
}

/// Range of the token in a `Bearer` header; `None` for another scheme or an empty token. The case of the scheme is
/// ignored, and the token may have any bytes.
fn bearer(header: &[u8]) -> Option<Range<usize>> {
    let space = header.iter().position(|byte| *byte == b' ')?;
    let (scheme, rest) = header.split_at(space);
    let (start, end) = (rest.trim_ascii_start(), rest.trim_ascii_end());
    let range = header.len() - start.len()..space + end.len();
    (scheme.eq_ignore_ascii_case(b"bearer") && !start.is_empty()).then_some(range)
}

/// Prefix of the WebSocket subprotocol with a token: browsers cannot send other credentials.
pub const BEARER_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// Removes tokens from the offered subprotocols, and returns that of a WebSocket request. It must offer another subprotocol
/// too, for the response.
fn websocket_token(headers: &mut HeaderMap) -> Result<Option<String>, ApiError> {
    let is_websocket = headers
        .get(UPGRADE)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    if !headers.contains_key(SEC_WEBSOCKET_PROTOCOL) {
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
    if tokens.is_empty() {
        return Ok(None);
    }
    headers.remove(SEC_WEBSOCKET_PROTOCOL);
    let has_others = !others.is_empty();
    if has_others {
        let others = HeaderValue::from_str(&others.join(",")).map_err(|_| unauthorized())?;
        headers.insert(SEC_WEBSOCKET_PROTOCOL, others);
    }
    if !is_websocket {
        return Ok(None);
    }
    let token = match &tokens[..] {
        [token] if has_others => URL_SAFE_NO_PAD.decode(token).ok(),
        _ => None,
    };
    let token = token.and_then(|token| String::from_utf8(token).ok());
    let token = token.ok_or_else(unauthorized)?;
    Ok(Some(token).filter(|token| !token.is_empty()))
}

/// The response to invalid credentials.
pub(super) fn unauthorized() -> ApiError {
    ApiError::new(StatusReason::Unauthorized, "Unauthorized")
}
