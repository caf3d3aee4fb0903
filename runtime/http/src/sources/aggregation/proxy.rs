//! Forwards a request to another server, as its user, and its response back, both as they arrive.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use apiloom_client::transport::{Body as ClientBody, TransportError};
use apiloom_meta::ApiError;
use apiloom_meta::field::echoed;
use apiloom_registry::auth::BoxError;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderName, LOCATION, RETRY_AFTER,
    SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, TRANSFER_ENCODING, UPGRADE, VIA,
    X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, StreamBody};
use tokio::sync::OwnedSemaphorePermit;

use super::address::{leaves_its_place, target};
use super::remote::{Connections, Unreachable, add_user};
use super::state::Aggregation;
use super::table::Service;
use super::tunnel::{self, ForwardedResponse, Tunnel};
use crate::response::{Body, CutOff, plain};
use crate::shape::body::RequestBody;
use crate::streams::shutdown_signal::ShutdownSignal;
use crate::verbs::call::Call;
use crate::verbs::connect::{headers_for_other_server, remove_connection_headers, until_stopped};

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");

/// Most servers that a request may have passed.
const MAX_HOPS: usize = 10;

/// Most bytes of a body that are read before the request is sent, so that it can be sent again if a connection was just closed.
const MAX_KEPT_BODY: u64 = 64 * 1024;

impl Aggregation {
    /// Forwards an authorized request.
    pub(crate) async fn forward(
        &self,
        service: &Service,
        call: &Call<'_>,
        body: RequestBody,
        stopping: ShutdownSignal,
    ) -> ForwardedResponse {
        let forwarded = self.try_forward(service, call, body, stopping);
        forwarded.await.unwrap_or_else(ForwardedResponse::from)
    }

    /// # Errors
    /// The response to a request that was not forwarded, or that has no response.
    async fn try_forward(
        &self,
        service: &Service,
        call: &Call<'_>,
        body: RequestBody,
        stopping: ShutdownSignal,
    ) -> Result<ForwardedResponse, Response<Body>> {
        if !service.is_available {
            return Err(unavailable());
        }
        if leaves_its_place(&call.info.path) {
            let text = "the path must not contain the segment \"..\"";
            return Err(call.respond(&ApiError::bad_request(text)));
        }
        if self.went_round(&call.request.headers) {
            let text = "the service of this version forwards its requests to this server again";
            return Err(failure(StatusCode::LOOP_DETECTED, text));
        }
        let server = &service.server;
        let slots = if call.deadline.is_some() {
            &server.requests
        } else {
            &server.streams
        };
        let permit = Arc::clone(slots).try_acquire_owned();
        let permit = permit.map_err(|_| too_many())?;
        let connections = server.connections().await.map_err(|error| match error {
            Unreachable::Settings(text) => failure(StatusCode::INTERNAL_SERVER_ERROR, &text),
            Unreachable::Address { .. } => {
                self.report_unreachable(&service.name);
                unavailable()
            }
        })?;
        let headers = self.headers(call);
        let headers = headers.map_err(|text| failure(StatusCode::INTERNAL_SERVER_ERROR, &text))?;
        let uri = target(&call.request.uri);
        let sent = send(&connections, call, (headers, uri), body);
        let sent = tokio::select! {
            biased;
            sent = sent => sent,
            () = stopping.clone().wait() => return Err(unavailable()),
        };
        let mut response = sent.map_err(|error| {
            self.report_unreachable(&service.name);
            let text = format!("error trying to reach service: {error}");
            failure(StatusCode::SERVICE_UNAVAILABLE, &text)
        })?;
        if tunnel::is_requested(call.request)
            && response.status() == StatusCode::SWITCHING_PROTOCOLS
        {
            return Ok(Tunnel::open(call.request, response, permit, stopping));
        }
        if response.status().is_informational() {
            let text = format!(
                "the service responded with the status {}",
                response.status()
            );
            return Err(failure(StatusCode::BAD_GATEWAY, &text));
        }
        if response.status().is_redirection() && response.headers().contains_key(LOCATION) {
            let text = "the backend attempted to redirect this request, which is not permitted";
            return Err(failure(StatusCode::BAD_GATEWAY, text));
        }
        remove_unread_length(&call.request.method, &mut response);
        if let Some(problem) = malformed_length(response.headers()) {
            return Err(failure(StatusCode::BAD_GATEWAY, &problem));
        }
        if tunnel::is_over_http2(call.request) && response.status().is_success() {
            let text = "the service did not switch to WebSocket";
            return Err(failure(StatusCode::BAD_GATEWAY, text));
        }
        Ok(received(response, permit, stopping).into())
    }

    /// Whether this server has forwarded a request before, or many servers have.
    fn went_round(&self, headers: &HeaderMap) -> bool {
        let values = headers.get_all(VIA).iter();
        let values = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        let hops: Vec<&[u8]> = values.map(<[u8]>::trim_ascii).collect();
        hops.len() >= MAX_HOPS || hops.contains(&self.via.as_bytes())
    }

    /// The headers of the forwarded request: without credentials and those of a front proxy, and with the user.
    fn headers(&self, call: &Call<'_>) -> Result<HeaderMap, String> {
        let request = call.request;
        let peer = call.arrival.connection.peer.map(|peer| peer.ip());
        let mut headers = headers_for_other_server(&request.headers, peer);
        for name in [CONTENT_LENGTH, EXPECT, HOST] {
            headers.remove(name);
        }
        // Otherwise the transport would ask for another encoding, and decode it.
        headers
            .entry(ACCEPT_ENCODING)
            .or_insert(HeaderValue::from_static("identity"));
        add_user(&mut headers, call.user.user())?;
        headers.append(VIA, self.via.clone());
        headers.insert(AUDIT_ID, call.arrival.audit_id.clone());
        let host = request.uri.authority().map(|authority| authority.as_str());
        let host = host.and_then(|host| HeaderValue::from_str(host).ok());
        match host.or_else(|| request.headers.get(HOST).cloned()) {
            Some(host) => headers.insert(FORWARDED_HOST, host),
            None => headers.remove(FORWARDED_HOST),
        };
        headers.insert(FORWARDED_PROTO, HeaderValue::from_static("https"));
        match HeaderValue::from_str(request.uri.path()) {
            Ok(path) => headers.insert(FORWARDED_URI, path),
            Err(_) => headers.remove(FORWARDED_URI),
        };
        Ok(headers)
    }
}

/// Sends a request, its body as it arrives.
async fn send(
    connections: &Connections,
    call: &Call<'_>,
    (mut headers, uri): (HeaderMap, String),
    body: RequestBody,
) -> Result<Response<ClientBody>, TransportError> {
    let uri: http::Uri = uri.parse().map_err(TransportError::unsent)?;
    let is_upgrade = tunnel::is_requested(call.request);
    if is_upgrade {
        add_upgrade(&mut headers, call.request);
    }
    let size = body.size_hint().exact();
    if let Some(size) = size.filter(|size| *size > 0) {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(size));
    }
    let body = match size {
        Some(size) if size <= MAX_KEPT_BODY => ClientBody::new(body),
        _ => ClientBody::new(StreamedBody(body)),
    };
    let mut request = Request::new(body);
    *request.method_mut() = call.request.method.clone();
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    if is_upgrade {
        connections.send_upgrade(request).await
    } else {
        connections.send(request).await
    }
}

/// Adds the headers that ask for another protocol. A request over HTTP/2 has no key of WebSocket: this one asks with one of its
/// own.
fn add_upgrade(headers: &mut HeaderMap, request: &Parts) {
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    if let Some(protocol) = request.headers.get(UPGRADE) {
        headers.insert(UPGRADE, protocol.clone());
    }
    if tunnel::is_over_http2(request) {
        let key = tunnel::new_key();
        headers.insert(SEC_WEBSOCKET_KEY, key);
        headers
            .entry(SEC_WEBSOCKET_VERSION)
            .or_insert(HeaderValue::from_static("13"));
    }
}

/// A body whose length is not told: it is sent as it arrives, and not collected.
struct StreamedBody(RequestBody);

impl http_body::Body for StreamedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.0).poll_frame(cx)
    }
    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }
}

/// Removes a length that is not that of the body: beside chunks, which count instead, and of a response that has none. A client
/// would wait for the rest, or break off.
fn remove_unread_length(method: &Method, response: &mut Response<ClientBody>) {
    let has_no_body = matches!(
        response.status(),
        StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
    );
    let headers = response.headers_mut();
    let is_number = malformed_length(headers).is_none();
    if headers.contains_key(TRANSFER_ENCODING) || has_no_body && is_number && method != Method::HEAD
    {
        headers.remove(CONTENT_LENGTH);
    }
}

/// Why the length of a response cannot be passed on. Servers may send any with responses that have no body, where it is not
/// read here; the client's connection would break off at it.
fn malformed_length(headers: &HeaderMap) -> Option<String> {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let is_number = |value: &HeaderValue| {
        let text = value.to_str().unwrap_or_default();
        text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u64>().is_ok()
    };
    let malformed = lengths.find(|value| !is_number(value))?;
    Some(format!(
        "the service responded with the malformed header Content-Length: {:?}",
        echoed(&String::from_utf8_lossy(malformed.as_bytes()))
    ))
}

/// The response for the client: without headers of the other connection, with the body as it arrives.
fn received(
    response: Response<ClientBody>,
    permit: OwnedSemaphorePermit,
    stopping: ShutdownSignal,
) -> Response<Body> {
    let mut response = response.map(|body| {
        let pieces = body.into_data_stream();
        let frames = pieces.map(move |piece| {
            // Held until the body ends.
            let _permit = &permit;
            piece.map(Frame::data).map_err(|error| {
                tracing::debug!(%error, "a forwarded response is broken off");
                CutOff::Unfinished
            })
        });
        until_stopped(StreamBody::new(frames).boxed_unsync(), stopping)
    });
    let headers = response.headers_mut();
    if headers.get_all(CONTENT_LENGTH).iter().count() > 1 {
        headers.remove(CONTENT_LENGTH);
    }
    remove_connection_headers(headers);
    response
}

/// The response to a request above the limit of a server.
fn too_many() -> Response<Body> {
    let text = "too many requests to the service are in flight, please try again later";
    let mut response = failure(StatusCode::TOO_MANY_REQUESTS, text);
    let headers = response.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// The response for a version whose server is not available.
fn unavailable() -> Response<Body> {
    failure(StatusCode::SERVICE_UNAVAILABLE, "service unavailable")
}

/// An error in plain text, as Go's `http.Error` writes it.
fn failure(code: StatusCode, text: &str) -> Response<Body> {
    let mut response = plain(code, format!("{text}\n"));
    let nosniff = HeaderValue::from_static("nosniff");
    response
        .headers_mut()
        .insert(X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_are_lengths() {
        for (value, is_good) in [
            ("0", true),
            ("18446744073709551615", true),
            ("18446744073709551616", false),
            ("+1", false),
            ("", false),
            ("1, 1", false),
            ("a", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.append(CONTENT_LENGTH, HeaderValue::from_static("1"));
            headers.append(CONTENT_LENGTH, HeaderValue::from_static(value));
            assert_eq!(malformed_length(&headers).is_none(), is_good, "{value:?}");
        }
    }
}
