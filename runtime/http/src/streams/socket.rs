//! WebSocket connections of subresources with `connect`: the upgrade, and messages in both directions.

mod progress;

use std::convert::Infallible;
use std::time::Duration;

use apiloom_client::transport::HookedStream;
use apiloom_meta::ApiError;
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Message, Utf8Bytes};

use self::progress::LastArrival;
use super::extended_connect::{self, UpgradeGuard};
use super::shutdown_signal::ShutdownSignal;
use super::websocket;
use crate::response::{Body, full};

/// Maximum size of a received message, in bytes; clients send at most 32 KiB in one.
const MAX_RECEIVED_BYTES: usize = 1024 * 1024;

/// Size of a connection's buffers: messages are written directly.
const BUFFER_BYTES: usize = 16 * 1024;

/// How long a client may take to accept a message, as for all responses.
const PATIENCE: Duration = Duration::from_secs(60);

/// Timeout for the client's close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Interval of pings, as of HTTP/2 connections.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// Time without a byte of a client, not even of a pong, after which it is gone. Four pings, because a client that reads
/// slowly gets a ping after everything that was sent before.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(120);

/// How long a handler may run when its connection has ended.
const HANDLER_TIMEOUT: Duration = Duration::from_secs(30);

/// A request that asks for WebSocket.
pub(crate) struct Upgrade {
    on_upgrade: OnUpgrade,
    /// Held over HTTP/2 until the connection ends.
    guard: Option<UpgradeGuard>,
    /// `Sec-WebSocket-Accept`; `None` over HTTP/2, where the client sends no key.
    accept: Option<HeaderValue>,
    offered: Vec<String>,
}

impl Upgrade {
    /// The upgrade that a request asks for; `None` for another request, and for an invalid one.
    pub(crate) fn of(request: &Parts) -> Option<Self> {
        if !websocket::is_requested(request) {
            return None;
        }
        let headers = &request.headers;
        if headers.get(SEC_WEBSOCKET_VERSION)? != "13" {
            return None;
        }
        let accept = if extended_connect::is_converted(request) {
            None
        } else {
            let key = headers.get(SEC_WEBSOCKET_KEY)?.as_bytes();
            Some(HeaderValue::from_str(&derive_accept_key(key)).ok()?)
        };
        Some(Self {
            on_upgrade: request.extensions.get::<OnUpgrade>()?.clone(),
            guard: request.extensions.get::<UpgradeGuard>().cloned(),
            accept,
            offered: offered(headers),
        })
    }

    /// The first subprotocol of the client that is supported; `None` if neither side has one.
    ///
    /// # Errors
    /// BadRequest if no subprotocol is supported.
    pub(crate) fn protocol(
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

    /// The response: 101, or 200 over HTTP/2.
    pub(crate) fn response(&self, protocol: Option<&'static str>) -> Response<Body> {
        let mut response = Response::new(full(Bytes::new()));
        if let Some(accept) = &self.accept {
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            let headers = response.headers_mut();
            headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
            headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
            headers.insert(SEC_WEBSOCKET_ACCEPT, accept.clone());
        }
        if let Some(protocol) = protocol {
            let protocol = HeaderValue::from_static(protocol);
            response
                .headers_mut()
                .insert(SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        response
    }

    /// Waits for the upgrade, and serves the connection until it and its handler have ended.
    pub(crate) async fn serve<F>(
        self,
        protocol: Option<&'static str>,
        stopping: ShutdownSignal,
        serve: impl FnOnce(ConnectSocket) -> F + Send,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let connection = match self.on_upgrade.await {
            Ok(connection) => TokioIo::new(connection),
            Err(error) => {
                tracing::debug!(%error, "a connection could not be upgraded");
                return;
            }
        };
        let (socket, connection) = open(connection, protocol.unwrap_or_default()).await;
        let (ended, has_ended) = oneshot::channel();
        let handler = tokio::spawn(run_handler(serve(socket), stopping.clone(), has_ended));
        connection.run(stopping, ended).await;
        drop(self.guard);
        // A panic was logged by the panic hook.
        let _ = handler.await;
    }
}

/// Runs a handler until the server stops, or the connection has ended for some time.
async fn run_handler(
    handler: impl Future<Output = ()>,
    stopping: ShutdownSignal,
    has_ended: oneshot::Receiver<Infallible>,
) {
    let too_long = async {
        // An error, since nothing is sent: the sender is dropped.
        let _ = has_ended.await;
        tokio::time::sleep(HANDLER_TIMEOUT).await;
    };
    tokio::select! {
        biased;
        () = stopping.wait() => {}
        () = handler => {}
        () = too_long => tracing::debug!("a handler is dropped: its WebSocket has ended"),
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

/// A WebSocket connection to a client. It is closed when it is dropped.
///
/// A client that does not read holds back [`ConnectSocket::send`], and a client whose messages are not received is held
/// back: of each direction, one message is buffered besides the buffers of the connection. Clients are sent a ping every
/// 30 seconds; one that sends nothing for two minutes, not even the answer to a ping, is gone.
///
/// When the client is gone or has closed, the handler has 30 seconds to finish, until it is dropped.
pub struct ConnectSocket {
    protocol: &'static str,
    received: mpsc::Receiver<SocketMessage>,
    outgoing: mpsc::Sender<Outgoing>,
}

/// A message to be sent.
struct Outgoing {
    message: Message,
    /// Completed when the message is sent; dropped if it was not.
    sent: oneshot::Sender<()>,
}

impl ConnectSocket {
    /// The chosen subprotocol; empty if there is none.
    pub fn protocol(&self) -> &'static str {
        self.protocol
    }

    /// The next message; `None` when the client has closed or is gone.
    pub async fn receive(&mut self) -> Option<SocketMessage> {
        self.received.recv().await
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
        let (sent, is_sent) = oneshot::channel();
        let outgoing = self.outgoing.send(Outgoing { message, sent }).await;
        outgoing.map_err(|_| SocketClosed)?;
        is_sent.await.map_err(|_| SocketClosed)
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

/// The connection of a [`ConnectSocket`], which reads and writes in a task of its own, so that pings are sent and answered
/// while the handler does other work.
struct SocketConnection<S> {
    stream: SplitStream<WebSocketStream<HookedStream<S, LastArrival>>>,
    sink: SplitSink<WebSocketStream<HookedStream<S, LastArrival>>, Message>,
    last_arrival: LastArrival,
    received: mpsc::Sender<SocketMessage>,
    outgoing: mpsc::Receiver<Outgoing>,
}

/// Opens a WebSocket on a connection after the upgrade.
async fn open<S>(connection: S, protocol: &'static str) -> (ConnectSocket, SocketConnection<S>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(0)
        .max_message_size(Some(MAX_RECEIVED_BYTES))
        .max_frame_size(Some(MAX_RECEIVED_BYTES));
    let last_arrival = LastArrival::now();
    let connection = HookedStream::new(connection, last_arrival.clone());
    let socket = WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await;
    let (sink, stream) = socket.split();
    let (received_sender, received) = mpsc::channel(1);
    let (outgoing_sender, outgoing) = mpsc::channel(1);
    let socket = ConnectSocket {
        protocol,
        received,
        outgoing: outgoing_sender,
    };
    let connection = SocketConnection {
        stream,
        sink,
        last_arrival,
        received: received_sender,
        outgoing,
    };
    (socket, connection)
}

impl<S: AsyncRead + AsyncWrite + Unpin> SocketConnection<S> {
    /// Serves the connection until the socket is dropped, the client closes or is gone, or the server stops; then drops
    /// `ended` and closes it.
    async fn run(self, stopping: ShutdownSignal, ended: oneshot::Sender<Infallible>) {
        let (mut stream, mut sink) = (self.stream, self.sink);
        // The channels are closed at the end of the select.
        let code = tokio::select! {
            biased;
            () = stopping.wait() => CloseCode::Away,
            () = receive_messages(&mut stream, &self.last_arrival, self.received) => CloseCode::Normal,
            () = send_messages(&mut sink, self.outgoing) => CloseCode::Normal,
        };
        drop(ended);
        let Ok(mut socket) = sink.reunite(stream) else {
            return;
        };
        let goodbye = async {
            let frame = CloseFrame {
                code,
                reason: Utf8Bytes::default(),
            };
            // Does nothing if the client sent its close frame first; the reply to that is sent by reading.
            let _ = socket.close(Some(frame)).await;
            while matches!(socket.next().await, Some(Ok(_))) {}
            let _ = socket.get_mut().shutdown().await;
        };
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, goodbye).await;
    }
}

/// Receives messages until the client closes, is silent, or the connection fails. Reads no further while the handler does
/// not receive.
async fn receive_messages<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut SplitStream<WebSocketStream<HookedStream<S, LastArrival>>>,
    last_arrival: &LastArrival,
    received: mpsc::Sender<SocketMessage>,
) {
    loop {
        let message = match next_message(stream, last_arrival).await {
            Ok(Some(Ok(Message::Text(text)))) => SocketMessage::Text(text.to_string()),
            Ok(Some(Ok(Message::Binary(bytes)))) => SocketMessage::Binary(bytes),
            // Pings are answered by reading on.
            Ok(Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)))) => continue,
            Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) => return,
            Err(_) => {
                tracing::debug!("the client of a WebSocket does not answer pings");
                return;
            }
        };
        if received.send(message).await.is_err() {
            // The socket is dropped, which ends the sender of messages after the last one.
            return std::future::pending().await;
        }
    }
}

/// The next message; an error after a time in which not a single byte arrived. A client cannot answer pings while it sends
/// the frame of a large message.
async fn next_message<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut SplitStream<WebSocketStream<HookedStream<S, LastArrival>>>,
    last_arrival: &LastArrival,
) -> Result<Option<Result<Message, tungstenite::Error>>, Elapsed> {
    let begun = Instant::now();
    let mut next = stream.next();
    loop {
        let deadline = begun.max(last_arrival.get()) + SILENCE_TIMEOUT;
        match tokio::time::timeout_at(deadline, &mut next).await {
            Err(_) if last_arrival.get() + SILENCE_TIMEOUT > deadline => {}
            result => return result,
        }
    }
}

/// Sends messages, and pings, until the socket is dropped, the client accepts nothing, or the connection fails.
async fn send_messages<S: AsyncRead + AsyncWrite + Unpin>(
    sink: &mut SplitSink<WebSocketStream<HookedStream<S, LastArrival>>, Message>,
    mut outgoing: mpsc::Receiver<Outgoing>,
) {
    // Sends the response to the upgrade.
    if sink.flush().await.is_err() {
        return;
    }
    let mut pings = tokio::time::interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let (message, sent) = tokio::select! {
            biased;
            _ = pings.tick() => (Message::Ping(Bytes::new()), None),
            next = outgoing.recv() => match next {
                Some(next) => (next.message, Some(next.sent)),
                None => return,
            },
        };
        match tokio::time::timeout(PATIENCE, sink.send(message)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return,
        }
        if let Some(sent) = sent {
            // An error means that the handler no longer waits.
            let _ = sent.send(());
        }
    }
}

#[cfg(test)]
mod tests;
