//! WebSocket connections to subresources, such as consoles: messages, and the channels of Kubernetes in them.

mod traffic;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderName, Method, Response, StatusCode, Version};
use tokio::sync::Mutex;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Message, Utf8Bytes};

use self::traffic::{MeteredConnection, Traffic};
use super::builder::Client;
use super::request::RawRequest;
use crate::error::Error;
use crate::transport::{Body, PendingUpgrade, TransportError, UpgradedConnection, upgraded};

/// The subprotocols with channels, the newest first: for [`RawRequest::websocket`].
pub const CHANNEL_PROTOCOLS: [&str; 2] = [V5, "v4.channel.k8s.io"];

/// The first subprotocol in which a channel can be closed.
const V5: &str = "v5.channel.k8s.io";

/// The channel on which `v5.channel.k8s.io` closes others.
const CLOSE: u8 = 255;

/// Time between two pings: proxies end connections that are quiet for a minute.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// How many pings are sent without any byte from the server. With the next one due, it counts as gone: after three intervals.
const MAX_UNANSWERED: u32 = 2;

/// How long the server may take to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

type Connection = WebSocketStream<MeteredConnection>;

/// A message of a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketMessage {
    /// Text.
    Text(String),
    /// Bytes.
    Binary(Bytes),
}

/// A WebSocket connection to a server. Dropping it ends the connection; [`Socket::close`] says goodbye.
///
/// While the socket waits for a message, it answers pings, and sends one every 30 seconds: a socket that is only written to is
/// not kept alive by itself. To do both at once, [`Socket::split`] it. A server from which nothing arrives for 90 seconds is
/// gone: that is an error of the socket that waits. So is one that sends pings without end and reads no answers.
///
/// ```no_run
/// # use apiloom_client::client::CHANNEL_PROTOCOLS;
/// # use apiloom_client::{Error, Kind, Namespaced, ResourceClient};
/// # async fn example<Machine: Kind + apiloom_client::verbs::All>(machines: ResourceClient<Machine, Namespaced>) -> Result<(), Error> {
/// let console = machines.subresource::<()>("console");
/// let request = console.request(http::Method::GET, "a").query("tty", "true");
/// let mut socket = request.websocket(&CHANNEL_PROTOCOLS).await?;
/// socket.send_channel(0, b"ls\n").await?;
/// while let Some((channel, bytes)) = socket.receive_channel().await? {
///     println!("{channel}: {bytes:?}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Socket {
    sender: SocketSender,
    receiver: SocketReceiver,
}

/// The half of a [`Socket`] that sends.
pub struct SocketSender {
    sink: Arc<Mutex<Sink>>,
    traffic: Arc<Traffic>,
    protocol: Option<String>,
}

/// The half of a [`Socket`] that receives.
pub struct SocketReceiver {
    stream: SplitStream<Connection>,
    sink: Arc<Mutex<Sink>>,
    pings: Interval,
    /// Until when the server may end the connection; `None` before its close frame.
    closing: Option<Instant>,
    /// How the connection failed.
    failure: Option<String>,
    traffic: Arc<Traffic>,
    /// How much had arrived at the time of the last ping.
    received: u64,
    /// The number of pings since.
    unanswered: u32,
}

/// What a receiver waited for.
enum Step {
    /// A frame, an error, or the end of the connection.
    Frame(Option<Result<Message, tungstenite::Error>>),
    /// It is time for a ping.
    Ping,
    /// The server said that it closes, and did not end the connection.
    Late,
}

/// The end at which messages go in, and what the connection needs as long as there is one of the halves.
struct Sink {
    messages: SplitSink<Connection, Message>,
    /// A stream of HTTP/2 lives no longer than the transport.
    _connection: (Client, Body),
}

impl RawRequest {
    /// Opens a WebSocket, with one of these subprotocols, the first one preferred; without any if there are none, for
    /// instance one of [`CHANNEL_PROTOCOLS`]. The request is sent once.
    ///
    /// Over HTTP/2 the socket is a stream of a connection that other requests use too, if there is one and the server offers
    /// that; else it has a connection of HTTP/1.1 for itself. A message may be as long as an event of a watch.
    ///
    /// # Errors
    /// A refusal, an error of the transport, an answer that opens no WebSocket, and one with another subprotocol.
    pub async fn websocket(self, protocols: &[&str]) -> Result<Socket, Error> {
        if *self.method() != Method::GET {
            let problem = "a WebSocket is opened by the method GET";
            return Err(Error::Request(problem.to_owned()));
        }
        let client = self.client.clone();
        let key = generate_key();
        let mut request = self
            .without_retry()
            .header(CONNECTION.as_str(), "Upgrade")
            .header(UPGRADE.as_str(), "websocket")
            .header(SEC_WEBSOCKET_VERSION.as_str(), "13")
            .header(SEC_WEBSOCKET_KEY.as_str(), &key);
        if !protocols.is_empty() {
            request = request.header(SEC_WEBSOCKET_PROTOCOL.as_str(), &protocols.join(", "));
        }
        let mut response = request.stream().await?;
        let protocol = agreed(&response, &key, protocols).map_err(TransportError::new)?;
        let connection = upgraded(&mut response).await?;
        let most = client.settings().max_watch_line_bytes;
        let config = WebSocketConfig::default()
            .write_buffer_size(0)
            .max_message_size(Some(most))
            .max_frame_size(Some(most));
        let used = (client, response.into_body());
        Ok(Socket::new(connection, config, protocol, used).await)
    }
}

/// The subprotocol of an answer that opens a WebSocket; else the problem.
fn agreed<B>(
    response: &Response<B>,
    key: &str,
    protocols: &[&str],
) -> Result<Option<String>, String> {
    let headers = response.headers();
    let is_open = match response.status() {
        StatusCode::SWITCHING_PROTOCOLS => {
            let accept = headers.get(SEC_WEBSOCKET_ACCEPT);
            let is_ours = accept.is_some_and(|accept| *accept == derive_accept_key(key.as_bytes()));
            is_ours
                && has_token(headers, &UPGRADE, "websocket")
                && has_token(headers, &CONNECTION, "upgrade")
        }
        // The answer to a CONNECT, which has no key.
        StatusCode::OK => response.version() == Version::HTTP_2 && PendingUpgrade::is_in(response),
        _ => false,
    };
    if !is_open {
        let code = response.status().as_u16();
        return Err(format!(
            "the server did not open a WebSocket: it answered with code {code}"
        ));
    }
    let chosen = headers.get(SEC_WEBSOCKET_PROTOCOL);
    match chosen.map(|chosen| chosen.to_str().unwrap_or_default()) {
        None if protocols.is_empty() => Ok(None),
        None => Err("the server opened a WebSocket without one of the subprotocols".to_owned()),
        Some(chosen) if protocols.contains(&chosen) => Ok(Some(chosen.to_owned())),
        Some(_) => Err("the server opened a WebSocket with another subprotocol".to_owned()),
    }
}

/// Whether a header that is a list has this member.
fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    let mut members = texts.flat_map(|text| text.split(','));
    members.any(|member| member.trim().eq_ignore_ascii_case(token))
}

fn broken(error: tungstenite::Error) -> Error {
    match error {
        tungstenite::Error::ConnectionClosed | tungstenite::Error::AlreadyClosed => {
            Error::Transport(TransportError::new("the WebSocket is closed"))
        }
        error => Error::Transport(TransportError::new(error)),
    }
}

impl Socket {
    async fn new(
        connection: UpgradedConnection,
        config: WebSocketConfig,
        protocol: Option<String>,
        used: (Client, Body),
    ) -> Self {
        let traffic = Arc::new(Traffic::default());
        let connection = MeteredConnection::new(connection, Arc::clone(&traffic));
        let socket = WebSocketStream::from_raw_socket(connection, Role::Client, Some(config)).await;
        let (messages, stream) = socket.split();
        let sink = Arc::new(Mutex::new(Sink {
            messages,
            _connection: used,
        }));
        let mut pings = tokio::time::interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            sender: SocketSender {
                sink: Arc::clone(&sink),
                traffic: Arc::clone(&traffic),
                protocol,
            },
            receiver: SocketReceiver {
                stream,
                sink,
                pings,
                closing: None,
                failure: None,
                traffic,
                received: 0,
                unanswered: 0,
            },
        }
    }

    /// The subprotocol; `None` if none was asked for.
    pub fn protocol(&self) -> Option<&str> {
        self.sender.protocol()
    }

    /// The two halves, for two tasks. The connection ends when the second one is dropped.
    pub fn split(self) -> (SocketSender, SocketReceiver) {
        (self.sender, self.receiver)
    }

    /// See [`SocketReceiver::receive`].
    ///
    /// # Errors
    /// The same.
    pub async fn receive(&mut self) -> Result<Option<SocketMessage>, Error> {
        self.receiver.receive().await
    }

    /// See [`SocketReceiver::receive_channel`].
    ///
    /// # Errors
    /// The same.
    pub async fn receive_channel(&mut self) -> Result<Option<(u8, Bytes)>, Error> {
        self.receiver.receive_channel().await
    }

    /// See [`SocketSender::send`].
    ///
    /// # Errors
    /// The same.
    pub async fn send(&self, message: SocketMessage) -> Result<(), Error> {
        self.sender.send(message).await
    }

    /// See [`SocketSender::send_channel`].
    ///
    /// # Errors
    /// The same.
    pub async fn send_channel(&self, channel: u8, bytes: &[u8]) -> Result<(), Error> {
        self.sender.send_channel(channel, bytes).await
    }

    /// See [`SocketSender::close_channel`].
    ///
    /// # Errors
    /// The same.
    pub async fn close_channel(&self, channel: u8) -> Result<(), Error> {
        self.sender.close_channel(channel).await
    }

    /// Closes the connection, and waits some seconds for the server to do the same. Messages that arrive meanwhile are
    /// dropped.
    pub async fn close(mut self) {
        let goodbye = async {
            let mut sink = self.sender.sink.lock().await;
            if sink.messages.send(Message::Close(None)).await.is_ok() {
                drop(sink);
                while let Some(Ok(_)) = self.receiver.stream.next().await {}
            }
        };
        // A server that does not answer is left.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, goodbye).await;
    }
}

impl SocketSender {
    /// The subprotocol; `None` if none was asked for.
    pub fn protocol(&self) -> Option<&str> {
        self.protocol.as_deref()
    }

    /// Sends a message. A server that does not read holds it back. Waiting for that cannot be given up without effect: if the
    /// future is dropped, the message may have been sent in part or not at all, and the rest of it, or all, goes before the
    /// next message.
    ///
    /// # Errors
    /// If the connection is closed or breaks.
    pub async fn send(&self, message: SocketMessage) -> Result<(), Error> {
        let message = match message {
            SocketMessage::Text(text) => Message::Text(Utf8Bytes::from(text)),
            SocketMessage::Binary(bytes) => Message::Binary(bytes),
        };
        let mut sink = self.sink.lock().await;
        self.traffic.expect_message(message.len());
        sink.messages.send(message).await.map_err(broken)
    }

    /// Sends bytes on a channel, in one message, which a dropped future may leave waiting as [`SocketSender::send`] does. Servers limit the length of a message: kubectl sends 32 KiB at a time.
    ///
    /// # Errors
    /// As [`SocketSender::send`].
    pub async fn send_channel(&self, channel: u8, bytes: &[u8]) -> Result<(), Error> {
        let message = [&[channel], bytes].concat();
        self.send(SocketMessage::Binary(message.into())).await
    }

    /// Says that no more comes on a channel, as the end of standard input. Only `v5.channel.k8s.io` can say that.
    ///
    /// # Errors
    /// In another subprotocol, and as [`SocketSender::send`].
    pub async fn close_channel(&self, channel: u8) -> Result<(), Error> {
        if self.protocol() != Some(V5) {
            let protocol = self.protocol().unwrap_or("none");
            return Err(Error::Request(format!(
                "a channel can be closed in {V5}, and the WebSocket has the subprotocol {protocol}"
            )));
        }
        self.send_channel(CLOSE, &[channel]).await
    }
}

impl SocketReceiver {
    /// The next message; `None` when the server has closed the WebSocket, at the latest some seconds after it said so.
    /// Waiting for it can be given up without loss.
    ///
    /// # Errors
    /// If the connection breaks, nothing arrives for long, or a message is longer than the client's limit. The server is told why by a close frame, if
    /// that is possible at once. After an error there are no more messages, and each further call is an error.
    pub async fn receive(&mut self) -> Result<Option<SocketMessage>, Error> {
        if let Some(failure) = &self.failure {
            let failure = format!("the WebSocket has failed: {failure}");
            return Err(Error::Transport(TransportError::new(failure)));
        }
        loop {
            match self.step().await {
                Step::Frame(Some(Ok(Message::Text(text)))) => {
                    return Ok(Some(SocketMessage::Text(text.to_string())));
                }
                Step::Frame(Some(Ok(Message::Binary(bytes)))) => {
                    return Ok(Some(SocketMessage::Binary(bytes)));
                }
                Step::Frame(Some(Ok(Message::Close(_)))) => {
                    self.closing = Some(Instant::now() + CLOSE_TIMEOUT);
                }
                // Pings are answered by reading on, and so is the server's close frame.
                Step::Frame(Some(Ok(_))) => {}
                Step::Ping => self.ping()?,
                Step::Frame(None | Some(Err(tungstenite::Error::ConnectionClosed))) => {
                    return Ok(None);
                }
                // A server that has closed need not read the answer to it, nor end the connection.
                Step::Frame(Some(Err(_))) if self.closing.is_some() => return Ok(None),
                Step::Late => return Ok(None),
                Step::Frame(Some(Err(error))) => return Err(self.fail(error)),
            }
        }
    }

    /// Sends a ping, if the server is there.
    fn ping(&mut self) -> Result<(), Error> {
        let received = self.traffic.received();
        if received != self.received {
            self.received = received;
            self.unanswered = 0;
        }
        if self.unanswered == MAX_UNANSWERED {
            let silent = PING_INTERVAL * (MAX_UNANSWERED + 1);
            let error = format!("nothing arrived from the server for {silent:?}");
            self.failure = Some(error.clone());
            return Err(Error::Transport(TransportError::new(error)));
        }
        self.unanswered += 1;
        self.send_at_once(Message::Ping(Bytes::new()));
        Ok(())
    }

    /// Remembers an error, and tells the server of it.
    fn fail(&mut self, error: tungstenite::Error) -> Error {
        let code = match &error {
            tungstenite::Error::Capacity(_) => Some(CloseCode::Size),
            tungstenite::Error::Utf8(_) => Some(CloseCode::Invalid),
            tungstenite::Error::Protocol(_) => Some(CloseCode::Protocol),
            _ => None,
        };
        if let Some(code) = code {
            let reason = Utf8Bytes::default();
            self.send_at_once(Message::Close(Some(CloseFrame { code, reason })));
        }
        self.failure = Some(error.to_string());
        broken(error)
    }

    /// Waits for a frame, the time of the next ping, or the time at which the connection should have ended.
    async fn step(&mut self) -> Step {
        if let Some(end) = self.closing {
            let next = tokio::time::timeout_at(end, self.stream.next()).await;
            return next.map_or(Step::Late, Step::Frame);
        }
        tokio::select! {
            biased;
            next = self.stream.next() => Step::Frame(next),
            _ = self.pings.tick() => Step::Ping,
        }
    }

    /// Sends a control frame if that is possible at once: a server that does not read must not keep this client from reading.
    fn send_at_once(&self, message: Message) {
        if let Ok(mut sink) = self.sink.try_lock() {
            // What is not sent now goes with the next message.
            let _ = sink.messages.send(message).now_or_never();
        }
    }

    /// The next message of a channel, in one of [`CHANNEL_PROTOCOLS`]: the number of the channel, and the bytes. Other
    /// messages are skipped. Channel 3 has the Status with which a command ended.
    ///
    /// # Errors
    /// As [`SocketReceiver::receive`].
    pub async fn receive_channel(&mut self) -> Result<Option<(u8, Bytes)>, Error> {
        while let Some(message) = self.receive().await? {
            if let SocketMessage::Binary(mut bytes) = message
                && !bytes.is_empty()
            {
                let channel = bytes.split_to(1)[0];
                return Ok(Some((channel, bytes)));
            }
        }
        Ok(None)
    }
}

impl fmt::Debug for SocketSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketSender")
            .field("protocol", &self.protocol)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SocketReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketReceiver").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
