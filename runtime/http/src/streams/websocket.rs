//! Watches over WebSocket: a GET with an upgrade is answered with 101, and then every event is a message.
//!
//! The messages are the events of the body that the same watch would have without WebSocket: text in formats with lines,
//! else bytes without the length before them. Messages of clients are ignored, except for pings, which are answered, and the close of the connection.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http::header::{
    CONNECTION, CONTENT_TYPE, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use crate::response::{Body, IsWatch, full, plain};

/// Supported version of the protocol, in `Sec-WebSocket-Version`.
const VERSION: &str = "13";

/// Maximum size of a received message; clients need to send nothing large.
const MAX_RECEIVED_BYTES: usize = 64 * 1024;

/// Size of a connection's buffers: little is read, and events are written directly.
const BUFFER_BYTES: usize = 4 * 1024;

/// Timeout for the client's close frame at the end of a watch.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Whether a request asks for WebSocket, on a connection or HTTP/2 stream that can be upgraded.
pub(crate) fn is_requested(request: &Parts) -> bool {
    request.method == Method::GET
        && names(&request.headers, CONNECTION, "upgrade")
        && names(&request.headers, UPGRADE, "websocket")
        && request.extensions.get::<OnUpgrade>().is_some()
}

/// Whether a list header contains a word, ignoring case.
pub(crate) fn names(headers: &HeaderMap, name: HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let mut words = values.flat_map(|value| value.split(','));
    words.any(|found| found.trim().eq_ignore_ascii_case(word))
}

/// Converts the response of a watch to an upgrade to WebSocket; other responses are returned unchanged.
pub(crate) fn upgrade(request: &Parts, response: Response<Body>) -> Response<Body> {
    let Some(IsWatch { has_lines }) = response.extensions().get().copied() else {
        return response;
    };
    if !is_requested(request) {
        return response;
    }
    let Some(on_upgrade) = request.extensions.get::<OnUpgrade>().cloned() else {
        return response;
    };
    let header = |name: HeaderName| request.headers.get(name).map(HeaderValue::as_bytes);
    let (Some(version), Some(key)) = (header(SEC_WEBSOCKET_VERSION), header(SEC_WEBSOCKET_KEY))
    else {
        return bad_handshake("missing or bad WebSocket version or key\n");
    };
    if version != VERSION.as_bytes() {
        return bad_handshake("missing or bad WebSocket Version\n");
    }
    let Ok(accept) = HeaderValue::from_str(&derive_accept_key(key)) else {
        return bad_handshake("missing or bad WebSocket key\n");
    };
    let (mut parts, body) = response.into_parts();
    parts.status = StatusCode::SWITCHING_PROTOCOLS;
    parts.headers.remove(CONTENT_TYPE);
    let headers = [
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (UPGRADE, HeaderValue::from_static("websocket")),
        (SEC_WEBSOCKET_ACCEPT, accept),
    ];
    parts.headers.extend(headers);
    if let Some(protocol) = protocol(&request.headers) {
        parts.headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    tokio::spawn(async move {
        match on_upgrade.await {
            Ok(connection) => serve(TokioIo::new(connection), body, has_lines).await,
            Err(error) => tracing::debug!(%error, "a connection could not be upgraded"),
        }
    });
    Response::from_parts(parts, full(Bytes::new()))
}

/// The subprotocol: it makes no difference, so the first that the client offers.
fn protocol(headers: &HeaderMap) -> Option<HeaderValue> {
    let offered = headers.get(SEC_WEBSOCKET_PROTOCOL)?.to_str().ok()?;
    let first = offered.split(',').next()?.trim();
    (!first.is_empty()).then(|| HeaderValue::from_str(first).ok())?
}

fn bad_handshake(why: &'static str) -> Response<Body> {
    let mut response = plain(StatusCode::BAD_REQUEST, why);
    let version = HeaderValue::from_static(VERSION);
    response
        .headers_mut()
        .insert(SEC_WEBSOCKET_VERSION, version);
    response
}

/// Whether the bytes of one event are complete: it ends with a line, or begins with its length.
fn is_whole(event: &[u8], has_lines: bool) -> bool {
    if has_lines {
        return event.ends_with(b"\n");
    }
    let length = event.split_first_chunk();
    length.is_some_and(|(length, rest)| rest.len() >= u32::from_be_bytes(*length) as usize)
}

/// The message of an event: text, or bytes without the length, which a message has itself.
fn message(event: Bytes, has_lines: bool) -> Option<Message> {
    if has_lines {
        return Utf8Bytes::try_from(event).ok().map(Message::Text);
    }
    Some(Message::Binary(
        event.slice(size_of::<u32>().min(event.len())..),
    ))
}

/// Sends events until they end or the client closes. A client that does not read is cut off as on any connection.
async fn serve(connection: impl AsyncRead + AsyncWrite + Unpin, mut events: Body, has_lines: bool) {
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(0)
        .max_message_size(Some(MAX_RECEIVED_BYTES))
        .max_frame_size(Some(MAX_RECEIVED_BYTES));
    let mut socket = WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await;
    // Sends the 101 response before the first event.
    if socket.flush().await.is_err() {
        return;
    }
    let mut event = Vec::new();
    loop {
        tokio::select! {
            received = socket.next() => match received {
                Some(Ok(message)) if !message.is_close() => {}
                _ => break,
            },
            frame = events.frame() => {
                let Some(Ok(frame)) = frame else { break };
                let Ok(data) = frame.into_data() else { continue };
                // A large object has several frames.
                let whole = if event.is_empty() && is_whole(&data, has_lines) {
                    data
                } else {
                    event.extend_from_slice(&data);
                    if !is_whole(&event, has_lines) {
                        continue;
                    }
                    std::mem::take(&mut event).into()
                };
                let Some(message) = message(whole, has_lines) else { break };
                if socket.send(message).await.is_err() {
                    return;
                }
            }
        }
    }
    // Dropped before waiting for the client's close frame, since events refer to memory.
    drop(events);
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
}

#[cfg(test)]
mod tests;
