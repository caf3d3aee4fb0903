//! One connection in use: sending a request, and the end of its response.

use std::convert::Infallible;
use std::error::Error as _;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::future::FutureExt as _;
use http::{Method, Request, Response, StatusCode, Version};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::gate::Gate;
use super::tunnel::Tunnel;
use crate::transport::{Body, PendingUpgrade, TransportError, UpgradedConnection};

/// The end of a connection at which requests go in.
///
/// A request that is sent at the moment at which its connection ends can be left in the channel between them, without a result, as
/// long as there is a sender. So no sender is kept longer than its connection.
pub(super) enum Sender {
    Http1(Http1Sender),
    Http2(Http2Sender),
}

/// The end of a connection of HTTP/1.1.
pub(super) struct Http1Sender {
    pub(super) requests: http1::SendRequest<Body>,
    /// Ends with the connection.
    pub(super) end: oneshot::Receiver<Infallible>,
}

/// The end of a connection of HTTP/2. Clones are of the same connection.
#[derive(Clone)]
pub(super) struct Http2Sender {
    pub(super) requests: http2::SendRequest<Body>,
    pub(super) gate: Gate,
}

type Sent = Result<Response<Incoming>, TrySendError<Request<Body>>>;

impl Http1Sender {
    /// Sends a request, and waits for the response; then the sender can be used again unless its connection has ended.
    async fn send(mut self, request: Request<Body>) -> (Sent, Option<Self>) {
        let mut response = pin!(self.requests.try_send_request(request));
        tokio::select! {
            biased;
            sent = &mut response => return (sent, Some(self)),
            _ = &mut self.end => drop(self),
        }
        (response.await, None)
    }
}

impl Http2Sender {
    pub(super) fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }

    /// Sends a request, and waits for the response. The pool has another sender of the same connection, as long as that is open.
    async fn send(self, request: Request<Body>) -> (Sent, Gate) {
        let Self { mut requests, gate } = self;
        let response = requests.try_send_request(request);
        drop(requests);
        (response.await, gate)
    }
}

/// The right to send one request.
pub(super) struct Lease {
    pub(super) sender: Sender,
    pub(super) end: LeaseEnd,
    /// Whether it is of HTTP/1.1 and had a request before: its server may be closing it just now.
    pub(super) is_reused: bool,
}

/// Takes back a connection of HTTP/1.1 whose response has ended.
pub(super) type GiveBack = Box<dyn FnOnce(Http1Sender) + Send>;

/// What happens when the response of a request has ended.
#[derive(Default)]
pub(super) struct LeaseEnd {
    /// `None` for HTTP/2, and for a connection that is not used again.
    pub(super) give_back: Option<GiveBack>,
    /// Held as long as a stream of HTTP/2 is in use.
    pub(super) _stream: Option<StreamEnd>,
}

/// Held as long as a stream of HTTP/2 is in use. When it is dropped, another one has room.
pub(super) struct StreamEnd(Option<Box<dyn FnOnce() + Send>>);

impl StreamEnd {
    pub(super) fn new(end: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(end)))
    }
}

impl Drop for StreamEnd {
    fn drop(&mut self) {
        if let Some(end) = self.0.take() {
            end();
        }
    }
}

/// The result of sending a request once.
pub(super) enum Attempt {
    Response(Response<Body>),
    /// The server saw nothing of it: it can be sent again.
    NotTaken(TransportError),
    /// The server ended a connection that had waited for the request. It may have seen it, so one that changes nothing can be sent
    /// again (RFC 9112, section 9.3.1).
    Ended(TransportError),
    Failed(TransportError),
}

impl Lease {
    pub(super) fn is_http2(&self) -> bool {
        matches!(self.sender, Sender::Http2(_))
    }

    pub(super) async fn send(self, request: Request<Body>) -> Attempt {
        let Self {
            sender,
            end,
            is_reused,
        } = self;
        let is_connect = request.method() == Method::CONNECT;
        let (sent, sender, gate) = match sender {
            Sender::Http1(sender) => {
                let (sent, sender) = sender.send(request).await;
                (sent, sender, None)
            }
            Sender::Http2(sender) => {
                let (sent, gate) = sender.send(request).await;
                (sent, None, Some(gate))
            }
        };
        match sent {
            Ok(response) => Attempt::Response(match gate {
                Some(gate) if is_connect && response.status() == StatusCode::OK => {
                    tunnel_of(response, end, gate)
                }
                _ => response_of(response, sender, end),
            }),
            Err(mut error) => {
                let was_taken = error.take_message().is_none();
                let error = error.into_error();
                if !was_taken || is_refused(&error) {
                    Attempt::NotTaken(TransportError::unsent(error))
                } else if is_reused && is_end(&error) {
                    Attempt::Ended(TransportError::new(error))
                } else {
                    Attempt::Failed(TransportError::new(error))
                }
            }
        }
    }
}

/// Whether the server says that it did nothing with a request: a stream behind the last one of a GOAWAY without an error,
/// or one that is refused (RFC 9113, section 8.7).
fn is_refused(error: &hyper::Error) -> bool {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            let is_shutdown = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
            let is_refusal = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
            return error.is_remote() && (is_shutdown || is_refusal);
        }
        source = error.source();
    }
    false
}

/// Whether a connection ended before the head of a response.
fn is_end(error: &hyper::Error) -> bool {
    error.is_incomplete_message()
        || error
            .source()
            .is_some_and(|source| source.is::<io::Error>())
}

fn response_of(
    response: Response<Incoming>,
    sender: Option<Http1Sender>,
    end: LeaseEnd,
) -> Response<Body> {
    // A connection that was switched to another protocol takes no more requests.
    let sender = sender.filter(|_| response.status() != StatusCode::SWITCHING_PROTOCOLS);
    let version = response.version();
    response.map(|body| {
        let mut body = LeasedBody {
            body,
            sender,
            end: Some(end),
            version,
        };
        if body.body.is_end_stream() {
            body.finish();
        }
        Body::new(body)
    })
}

/// A response that switched its stream to another protocol. The stream is in use until it has ended.
fn tunnel_of(mut response: Response<Incoming>, end: LeaseEnd, gate: Gate) -> Response<Body> {
    let upgrade = hyper::upgrade::on(&mut response);
    let tunnel = async move {
        let stream = upgrade.await.map_err(TransportError::new)?;
        Ok(UpgradedConnection::new(Tunnel::new(
            stream,
            end,
            gate,
            Handle::current(),
        )))
    };
    let mut response = response.map(Body::new);
    PendingUpgrade::put(&mut response, tunnel.boxed());
    response
}

/// A response's body, at whose end the connection is free for the next request.
struct LeasedBody {
    body: Incoming,
    sender: Option<Http1Sender>,
    end: Option<LeaseEnd>,
    version: Version,
}

/// A server reset its stream within the body, without an error (NO_ERROR). hyper ends the body there, as if it were whole.
#[derive(Debug, thiserror::Error)]
#[error("the server reset the stream before the end of the body")]
struct BrokenOff;

impl LeasedBody {
    fn finish(&mut self) {
        let give_back = self.end.take().and_then(|end| end.give_back);
        if let (Some(give_back), Some(sender)) = (give_back, self.sender.take()) {
            give_back(sender);
        }
    }
}

impl HttpBody for LeasedBody {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let is_whole = self.body.is_end_stream();
        if frame.is_none() || is_whole {
            self.finish();
        }
        Poll::Ready(match frame {
            // Over HTTP/1.1 hyper tells of a body that is broken off.
            None if self.version == Version::HTTP_2 && !is_whole => {
                Some(Err(TransportError::new(BrokenOff)))
            }
            frame => frame.map(|frame| frame.map_err(TransportError::new)),
        })
    }
    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
