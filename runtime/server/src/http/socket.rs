//! WebSocket connections of subresources with `connect`: the upgrade, and messages in both directions.

use std::time::Duration;

use apiloom_meta::ApiError;
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt as _;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::response::status;
use super::{Body, websocket};

/// Maximum size of a received message, in bytes; clients send at most 32 KiB in one.
const MAX_RECEIVED_BYTES: usize = 1024 * 1024;

/// Size of a connection's buffers: messages are written directly.
const BUFFER_BYTES: usize = 16 * 1024;

/// How long a client may take to accept a message, as for all responses.
const PATIENCE: Duration = Duration::from_secs(60);

/// Timeout for the client's close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A request that asks for WebSocket.
pub(super) struct Upgrade {
    on_upgrade: OnUpgrade,
    accept: HeaderValue,
    offered: Vec<String>,
}

impl Upgrade {
    /// The upgrade that a request asks for; `None` for another request, and for an invalid one.
    pub(super) fn of(request: &Parts) -> Option<Self> {
        if !websocket::is_requested(request) {
            return None;
        }
        let headers = &request.headers;
        if headers.get(SEC_WEBSOCKET_VERSION)? != "13" {
            return None;
        }
        let key = headers.get(SEC_WEBSOCKET_KEY)?.as_bytes();
        Some(Self {
            on_upgrade: request.extensions.get::<OnUpgrade>()?.clone(),
            accept: HeaderValue::from_str(&derive_accept_key(key)).ok()?,
            offered: offered(headers),
        })
    }

    /// The first subprotocol of the client that is supported; `None` if neither side has one.
    ///
    /// # Errors
    /// BadRequest if no subprotocol is supported.
    pub(super) fn protocol(
        &self,
        supported: &[&'static str],
    ) -> Result<Option<&'static str>, ApiError> {
        let mut of_client = self.offered.iter();
        let found = of_client.find_map(|offer| supported.iter().find(|name| **name == *offer));
        match found {
            Some(name) => Ok(Some(*name)),
            None if self.offered.is_empty() && supported.is_empty() => Ok(None),
            None => {
                let supported = supported.join(", ");
                Err(ApiError::bad_request(format!(
                    "none of the requested subprotocols is supported, which are: {supported}"
                )))
            }
        }
    }

    /// The 101 response; `serve` runs when the connection is upgraded.
    pub(super) fn serve<F>(
        self,
        protocol: Option<&'static str>,
        serve: impl FnOnce(ConnectSocket) -> F + Send + 'static,
    ) -> Response<Body>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut response = status(StatusCode::SWITCHING_PROTOCOLS);
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, self.accept);
        if let Some(protocol) = protocol {
            headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
        }
        let on_upgrade = self.on_upgrade;
        tokio::spawn(async move {
            let connection = match on_upgrade.await {
                Ok(connection) => TokioIo::new(connection),
                Err(error) => {
                    tracing::debug!(%error, "a connection could not be upgraded");
                    return;
                }
            };
            let config = WebSocketConfig::default()
                .read_buffer_size(BUFFER_BYTES)
                .write_buffer_size(0)
                .max_message_size(Some(MAX_RECEIVED_BYTES))
                .max_frame_size(Some(MAX_RECEIVED_BYTES));
            let inner =
                WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await;
            let mut socket = ConnectSocket {
                protocol: protocol.unwrap_or_default(),
                inner: Some(inner),
            };
            // Sends the 101 response.
            if let Some(inner) = &mut socket.inner
                && inner.flush().await.is_ok()
            {
                serve(socket).await;
            }
        });
        response
    }
}

/// The subprotocols that a client offers, in its order.
fn offered(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let names = values.flat_map(|value| value.split(',')).map(str::trim);
    let names = names.filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

/// A message of a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketMessage {
    /// Text.
    Text(String),
    /// Bytes.
    Binary(Bytes),
}

/// The client of a WebSocket is gone, or accepted nothing for a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client does not accept messages any more")]
pub struct SocketClosed;

/// A WebSocket connection to a client. It is closed when it is dropped. Nothing is buffered: a message is sent when the
/// client has accepted it.
pub struct ConnectSocket {
    protocol: &'static str,
    /// `None` only while it is dropped.
    inner: Option<WebSocketStream<TokioIo<Upgraded>>>,
}

impl ConnectSocket {
    /// The chosen subprotocol; empty if there is none.
    pub fn protocol(&self) -> &'static str {
        self.protocol
    }

    /// The next message; `None` when the client closes or is gone.
    pub async fn receive(&mut self) -> Option<SocketMessage> {
        loop {
            match self.inner.as_mut()?.next().await?.ok()? {
                Message::Text(text) => return Some(SocketMessage::Text(text.to_string())),
                Message::Binary(bytes) => return Some(SocketMessage::Binary(bytes)),
                Message::Close(_) => return None,
                // Pings are answered by reading on.
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }

    /// Sends a message, and waits until the client has accepted it.
    ///
    /// # Errors
    /// If the client is gone, or accepts nothing for a minute.
    pub async fn send(&mut self, message: SocketMessage) -> Result<(), SocketClosed> {
        let message = match message {
            SocketMessage::Text(text) => Message::Text(Utf8Bytes::from(text)),
            SocketMessage::Binary(bytes) => Message::Binary(bytes),
        };
        let inner = self.inner.as_mut().ok_or(SocketClosed)?;
        match tokio::time::timeout(PATIENCE, inner.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(SocketClosed),
        }
    }

    /// The next message of a channel, in the subprotocols `v4.channel.k8s.io` and `v5.channel.k8s.io`: the number of the
    /// channel, and the bytes. Other messages are skipped.
    pub async fn receive_channel(&mut self) -> Option<(u8, Bytes)> {
        loop {
            let SocketMessage::Binary(mut bytes) = self.receive().await? else {
                continue;
            };
            if !bytes.is_empty() {
                let channel = bytes.split_to(1)[0];
                return Some((channel, bytes));
            }
        }
    }

    /// Sends bytes on a channel.
    ///
    /// # Errors
    /// As [`ConnectSocket::send`].
    pub async fn send_channel(&mut self, channel: u8, bytes: &[u8]) -> Result<(), SocketClosed> {
        let message = [&[channel], bytes].concat();
        self.send(SocketMessage::Binary(message.into())).await
    }
}

impl Drop for ConnectSocket {
    fn drop(&mut self) {
        let (Some(mut socket), Ok(runtime)) =
            (self.inner.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        runtime.spawn(async move {
            let goodbye = async {
                let frame = CloseFrame {
                    code: CloseCode::Normal,
                    reason: Utf8Bytes::default(),
                };
                // Does nothing if the client sent its close frame first; the reply to that is sent by reading.
                let _ = socket.close(Some(frame)).await;
                while matches!(socket.next().await, Some(Ok(_))) {}
                let _ = socket.get_mut().shutdown().await;
            };
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, goodbye).await;
        });
    }
}
