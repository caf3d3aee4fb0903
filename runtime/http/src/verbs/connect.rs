//! Subresources with `connect`: a handler of the program gets the request with the rest of its path, its query and its body,
//! and responds with a stream, with any HTTP response, over WebSocket, or in another protocol.
//!
//! These requests have no deadline. Their streams are broken off when the server stops, so that clients do not take them for
//! whole; a panic in one breaks off only that stream.

use std::any::Any;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use apiloom_meta::kind::{Resource, SmolStr, SubresourceDef, SubresourceHandler, Verb, Writes};
use apiloom_meta::{ApiError, Object, StatusReason};
use apiloom_registry::auth::{BEARER_PROTOCOL, BoxError};
use apiloom_registry::{GetOptions, UserInfo};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, Stream, StreamExt as _};
use http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, PROXY_AUTHORIZATION,
    SEC_WEBSOCKET_PROTOCOL, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Method, Response};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, StreamBody};

use super::call::ResourceCall;
use crate::request::query::{Query, decode};
use crate::response::{Body, CutOff};
use crate::shape::body::RequestBody;
use crate::streams::extended_connect;
use crate::streams::shutdown_signal::ShutdownSignal;
use crate::streams::socket::{self, ConnectSocket};
use crate::streams::switched::{ConnectStream, ServeStream, Switch};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The handler of a subresource of the kind `K` that opens streams, which the key `connect` names.
///
/// The server makes it with [`Default`], once for each served version, unless the program gives a value to `Builder::connecter`.
///
/// ```no_run
/// # use apiloom_meta::{ApiError, Resource};
/// # use apiloom_http::{ConnectRequest, ConnectResponse, ConnectSubresource};
/// # use async_trait::async_trait;
/// # use futures_util::stream;
/// #[derive(Default)]
/// struct Echo;
///
/// #[async_trait]
/// impl<K: Resource> ConnectSubresource<K> for Echo {
///     async fn connect(&self, request: ConnectRequest<K>) -> Result<ConnectResponse, ApiError> {
///         let line = format!("{}\n", request.path);
///         Ok(ConnectResponse::stream("text/plain", stream::iter([Ok(line.into())])))
///     }
/// }
/// ```
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not answer the streams of a subresource of `{K}`",
    label = "the handler of a subresource",
    note = "write `#[async_trait] impl ConnectSubresource<{K}> for {Self}`"
)]
pub trait ConnectSubresource<K: Resource>: Default + Send + Sync + 'static {
    /// Handles a request of any of the declared verbs.
    ///
    /// The future is dropped, and the client gets ServiceUnavailable, if the server stops before it has answered.
    ///
    /// # Errors
    /// The error for the client.
    async fn connect(&self, request: ConnectRequest<K>) -> Result<ConnectResponse, ApiError>;
}

/// A request for a subresource with `connect`, of an object that exists.
#[non_exhaustive]
pub struct ConnectRequest<K> {
    /// The object, when the request began.
    pub object: Arc<K>,
    /// The user.
    pub user: Arc<UserInfo>,
    /// The method.
    pub method: Method,
    /// The path after the subresource, as it was sent: empty, or with a slash at its beginning. Requests with a segment `..`,
    /// escaped or not, are refused.
    pub path: String,
    /// The headers, without the credentials of the user and of a front proxy (`X-Remote-*`), and without the headers about the
    /// connection: `Transfer-Encoding`, `Upgrade` and others, and those that `Connection` names. Headers whose names have
    /// an underscore are left out: many servers take it for a dash.
    ///
    /// The last address in `X-Forwarded-For` is that of the client, which the server adds. All other headers are as the client
    /// sent them: other `X-Forwarded-*` and addresses before the last are true only behind a proxy that sets them.
    pub headers: HeaderMap,
    /// The body, which is read as the handler reads it.
    pub body: ConnectBody,
    /// The query as it was sent.
    pub raw_query: String,
    query: Query,
    upgrade: Option<socket::Upgrade>,
    switch: Option<Switch>,
}

impl<K> ConnectRequest<K> {
    /// The first value of a parameter of the query; empty if it is absent.
    pub fn text(&self, name: &str) -> &str {
        self.query.text(name)
    }
    /// All values of a parameter of the query.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> + 'a {
        self.query.all(name)
    }
    /// A parameter of the query as a boolean, as Kubernetes reads it: every value but `0` and `false` is true.
    pub fn boolean(&self, name: &str) -> bool {
        self.query.boolean(name).unwrap_or(false)
    }
    /// Whether the client asks for WebSocket.
    pub fn is_websocket(&self) -> bool {
        self.upgrade.is_some()
    }
    /// Upgrades the connection to WebSocket and serves it, with the first subprotocol of the client that is among these.
    ///
    /// # Errors
    /// BadRequest if the request does not ask for WebSocket, or for none of these subprotocols.
    pub fn websocket<F>(
        &mut self,
        protocols: &[&'static str],
        serve: impl FnOnce(ConnectSocket) -> F + Send + 'static,
    ) -> Result<ConnectResponse, ApiError>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let upgrade = self.upgrade.take();
        let upgrade = upgrade.ok_or_else(|| ApiError::bad_request("Upgrade request required"))?;
        let protocol = upgrade.protocol(protocols)?;
        let serve = Box::new(move |socket| serve(socket).boxed());
        Ok(ConnectResponse(Kind::WebSocket(upgrade, protocol, serve)))
    }
    /// The protocols to which the client asks to switch the connection, as in its header `Upgrade`, such as `SPDY/3.1` or
    /// `websocket`; `None` if it does not ask for that. Over HTTP/2 there is only `websocket`.
    pub fn upgrade(&self) -> Option<&str> {
        self.switch.as_ref().map(Switch::protocols)
    }
    /// Switches the connection to one of the protocols that the client asks for, and serves its bytes: for instance those of
    /// another server to which the request was forwarded.
    ///
    /// The response is a 101 with these headers, without those about the connection. Over HTTP/2 it is a 200, to a client that
    /// did not send a `Sec-WebSocket-Key`.
    ///
    /// # Errors
    /// BadRequest if the client does not ask to switch protocols.
    pub fn switch<F>(
        &mut self,
        protocol: HeaderValue,
        mut headers: HeaderMap,
        serve: impl FnOnce(ConnectStream) -> F + Send + 'static,
    ) -> Result<ConnectResponse, ApiError>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let switch = self.switch.take();
        let switch = switch.ok_or_else(|| ApiError::bad_request("Upgrade request required"))?;
        remove_connection_headers(&mut headers);
        for name in [CONTENT_LENGTH, CONTENT_TYPE] {
            headers.remove(name);
        }
        let response = switch.response(protocol, headers);
        let serve: ServeStream = Box::new(move |stream| serve(stream).boxed());
        Ok(ConnectResponse(Kind::Switched(switch, response, serve)))
    }
}

/// The body of a request.
#[derive(Debug)]
pub struct ConnectBody(RequestBody);

impl ConnectBody {
    pub(crate) fn new(body: RequestBody) -> Self {
        Self(body)
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// The connection failed.
    pub async fn next(&mut self) -> Option<Result<Bytes, BoxError>> {
        loop {
            match self.0.frame().await? {
                Ok(frame) => {
                    if let Ok(data) = frame.into_data() {
                        return Some(Ok(data));
                    }
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// The code of a WebSocket connection.
type Serve = Box<dyn FnOnce(ConnectSocket) -> BoxFuture<'static, ()> + Send>;

/// The response of a subresource with `connect`.
pub struct ConnectResponse(Kind);

enum Kind {
    Http(Response<Body>),
    WebSocket(socket::Upgrade, Option<&'static str>, Serve),
    Switched(Switch, Response<Body>, ServeStream),
}

impl ConnectResponse {
    /// A 200 response whose body is sent as the stream makes it. An error in the stream breaks the response off.
    pub fn stream(
        content_type: &'static str,
        pieces: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static,
    ) -> Self {
        let mut response = Response::new(body_of(pieces));
        let content_type = HeaderValue::from_static(content_type);
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        Self(Kind::Http(response))
    }

    /// Any response, such as that of another server. Headers about its connection are removed, and a `Content-Length` beside
    /// `Transfer-Encoding` or another one. An informational status (1xx) is refused when the response is sent.
    pub fn http<B>(response: Response<B>) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self(Kind::Http(http_response(response)))
    }
}

/// The response of a program, without what is about its connection.
pub(crate) fn http_response<B>(response: Response<B>) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let mut response = response.map(|body| {
        let data = body.into_data_stream();
        body_of(data.map(|piece| piece.map_err(Into::into)))
    });
    let headers = response.headers_mut();
    let lengths = headers.get_all(CONTENT_LENGTH).iter().count();
    if lengths > 1 || headers.contains_key(TRANSFER_ENCODING) {
        headers.remove(CONTENT_LENGTH);
    }
    remove_connection_headers(headers);
    response
}

/// Removes the headers that are about one connection (RFC 9110, section 7.6.1): those that `Connection` names, and those that
/// it must name.
pub(crate) fn remove_connection_headers(headers: &mut HeaderMap) {
    let values = headers.get_all(CONNECTION).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let names = values.flat_map(|value| value.split(','));
    let named: Vec<HeaderName> = names
        .filter_map(|name| HeaderName::try_from(name.trim()).ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE] {
        headers.remove(name);
    }
    for name in ["keep-alive", "proxy-connection"] {
        headers.remove(name);
    }
}

/// A body of pieces, in which a panic is an error.
fn body_of(pieces: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static) -> Body {
    let frames = AssertUnwindSafe(pieces).catch_unwind().map(|piece| {
        let error = match piece {
            Ok(Ok(data)) => return Ok(Frame::data(data)),
            Ok(Err(error)) => error.to_string(),
            // The panic hook has logged it.
            Err(_) => "a handler panicked".to_owned(),
        };
        tracing::debug!(error, "a stream is broken off");
        Err(CutOff::Unfinished)
    });
    StreamBody::new(frames).boxed_unsync()
}

/// A function that calls a handler with a request.
type ConnectFn = for<'a> fn(
    &'a (dyn Any + Send + Sync),
    &'a Object,
    RequestParts,
) -> BoxFuture<'a, Result<ConnectResponse, ApiError>>;

/// The parts of a request besides its object.
struct RequestParts {
    user: Arc<UserInfo>,
    method: Method,
    path: String,
    headers: HeaderMap,
    body: RequestBody,
    raw_query: String,
    query: Query,
    upgrade: Option<socket::Upgrade>,
    switch: Option<Switch>,
}

/// A subresource with the handler `H`, for the expansion of `connect(..)`.
pub fn connect_subresource<K: Resource, H: ConnectSubresource<K>>(
    name: impl Into<SmolStr>,
    verbs: &[Verb],
) -> SubresourceDef {
    let code: ConnectFn = |handler, object, request| {
        Box::pin(async move {
            let handler = handler.downcast_ref::<H>();
            let handler = handler.ok_or_else(|| {
                ApiError::internal_text("a handler has another type than its name")
            })?;
            let object = object
                .typed()
                .map_err(|error| ApiError::internal_text(error.to_string()))?;
            let request = ConnectRequest {
                object,
                user: request.user,
                method: request.method,
                path: request.path,
                headers: request.headers,
                body: ConnectBody(request.body),
                raw_query: request.raw_query,
                query: request.query,
                upgrade: request.upgrade,
                switch: request.switch,
            };
            handler.connect(request).await
        })
    };
    SubresourceDef {
        handler: Some(SubresourceHandler::new::<H>(Arc::new(code))),
        connects: true,
        ..SubresourceDef::new(name, verbs, Writes::Nothing)
    }
}

/// Serves an upgraded connection after its response.
type SocketTask = BoxFuture<'static, ()>;

/// Calls the handler of a subresource, after admission. Returns its response, and for an upgraded connection the
/// future that serves it.
pub(crate) async fn connect(
    call: ResourceCall<'_>,
) -> Result<(Response<Body>, Option<SocketTask>), ApiError> {
    if call.query.first("dryRun").is_some() {
        return Err(ApiError::bad_request("dryRun is not supported"));
    }
    let def = call.endpoint.def().subresource(call.subresource);
    let code = def.and_then(|def| def.handler.as_ref()?.code::<ConnectFn>());
    let handler = call.endpoint.connecter(call.subresource);
    let (Some(code), Some(handler)) = (code, handler) else {
        return Err(ApiError::no_such_resource());
    };
    let path = rest_of_path(
        call.request.uri.path(),
        call.endpoint.def().group.is_empty(),
        call.namespace.is_some(),
    );
    if has_parent_segment(&path) {
        return Err(ApiError::bad_request(
            "the path after the subresource must not contain the segment \"..\"",
        ));
    }
    let writes = call.endpoint.writes();
    writes.admit_connect(call.write_request()).await?;
    let present = GetOptions::default();
    let reads = call.endpoint.reads();
    let object = reads
        .get(call.ctx, call.namespace, call.name, &present)
        .await?;
    let object = object.object()?;
    let request = RequestParts {
        user: Arc::clone(&call.ctx.user),
        method: call.request.method.clone(),
        path,
        headers: headers_for_other_server(&call.request.headers, call.peer),
        body: call.body,
        raw_query: call.request.uri.query().unwrap_or_default().to_owned(),
        query: call.query.clone(),
        upgrade: socket::Upgrade::of(call.request),
        switch: Switch::of(call.request),
    };
    let stopping = call.stopping;
    let response = tokio::select! {
        biased;
        response = code(&**handler, &object, request) => response?,
        () = stopping.clone().wait() => return Err(shutting_down()),
    };
    let response = match response.0 {
        // hyper would hand over the connection.
        Kind::Http(response) if response.status().is_informational() => {
            let text = format!("a handler responded with the status {}", response.status());
            return Err(ApiError::internal_text(text));
        }
        Kind::Http(response)
            if response.status().is_success() && extended_connect::is_converted(call.request) =>
        {
            return Err(extended_connect::no_websocket());
        }
        Kind::Http(response) => response.map(|body| until_stopped(body, stopping)),
        Kind::WebSocket(upgrade, protocol, serve) => {
            let response = upgrade.response(protocol);
            let socket = upgrade.serve(protocol, stopping, serve);
            return Ok((response, Some(socket.boxed())));
        }
        Kind::Switched(switch, response, serve) => {
            let stream = switch.serve(stopping, serve);
            return Ok((response, Some(stream.boxed())));
        }
    };
    Ok((response, None))
}

/// The response to a request whose handler had not answered when the server stopped.
fn shutting_down() -> ApiError {
    let message = "apiserver is shutting down";
    let mut error = ApiError::new(StatusReason::ServiceUnavailable, message);
    error.details.get_or_insert_default().retry_after_seconds = 1;
    error
}

/// The headers for a handler, or for another server. The user's own credentials were taken before, but for subprotocols that are no text.
pub(crate) fn headers_for_other_server(headers: &HeaderMap, peer: Option<IpAddr>) -> HeaderMap {
    let mut rest = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let is_token = name == SEC_WEBSOCKET_PROTOCOL
            && value
                .to_str()
                .map_or(true, |text| text.contains(BEARER_PROTOCOL));
        // Many servers take an underscore for a dash, and with it a header of the client for one that a proxy has set.
        let has_underscore = name.as_str().contains('_');
        let is_of_front_proxy = name.as_str().starts_with("x-remote-");
        if !has_underscore && !is_of_front_proxy && name != PROXY_AUTHORIZATION && !is_token {
            rest.append(name, value.clone());
        }
    }
    remove_connection_headers(&mut rest);
    if let Some(peer) = peer {
        add_forwarded_for(&mut rest, peer);
    }
    rest
}

/// Adds the address of the client to `X-Forwarded-For`, as one header.
fn add_forwarded_for(headers: &mut HeaderMap, peer: IpAddr) {
    let mut addresses = Vec::new();
    for value in headers.get_all(FORWARDED_FOR) {
        addresses.extend_from_slice(value.as_bytes());
        addresses.extend_from_slice(b", ");
    }
    addresses.extend_from_slice(peer.to_canonical().to_string().as_bytes());
    if let Ok(value) = HeaderValue::from_bytes(&addresses) {
        headers.insert(FORWARDED_FOR, value);
    }
}

/// Whether a path has a segment `..`. A handler that puts the path behind one of its own would leave that one.
fn has_parent_segment(path: &str) -> bool {
    // Paths that cannot be decoded were refused before.
    let decoded = decode(path).unwrap_or_else(|| path.to_owned());
    decoded.split('/').any(|segment| segment == "..")
}

/// The path after the subresource, as it was sent. An escaped slash separates, as it does for authorization.
fn rest_of_path(path: &str, is_core: bool, is_namespaced: bool) -> String {
    // `apis/GROUP/VERSION` or `api/VERSION`, then `namespaces/NAMESPACE`, and the resource, the name and the subresource.
    let before = if is_core { 2 } else { 3 } + if is_namespaced { 2 } else { 0 } + 3;
    let mut rest = path;
    while let Some(after) = after_slash(rest) {
        rest = after;
    }
    for _ in 0..before {
        let separator = rest
            .char_indices()
            .find_map(|(at, _)| after_slash(&rest[at..]));
        match separator {
            Some(after) => rest = after,
            None => return String::new(),
        }
    }
    format!("/{rest}")
}

/// What follows a slash, plain or escaped, at the beginning of a path.
fn after_slash(path: &str) -> Option<&str> {
    let escaped = || {
        path.strip_prefix("%2F")
            .or_else(|| path.strip_prefix("%2f"))
    };
    path.strip_prefix('/').or_else(escaped)
}

/// A body that is broken off when the server stops before its end.
pub(crate) fn until_stopped(body: Body, stopping: ShutdownSignal) -> Body {
    if body.size_hint().exact().is_some() {
        return body;
    }
    let state = Some((body.into_data_stream(), Box::pin(stopping.wait())));
    let frames = futures_util::stream::unfold(state, async |state| {
        let (mut pieces, mut stop) = state?;
        tokio::select! {
            biased;
            piece = pieces.next() => match piece? {
                Ok(data) => Some((Ok(Frame::data(data)), Some((pieces, stop)))),
                Err(error) => Some((Err(error), None)),
            },
            () = &mut stop => Some((Err(CutOff::Unfinished), None)),
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let parsed = |(name, value): &(&str, &str)| {
            let name = HeaderName::try_from(*name).unwrap();
            (name, HeaderValue::try_from(*value).unwrap())
        };
        lines.iter().map(parsed).collect()
    }

    #[test]
    fn a_handler_sees_neither_credentials_nor_headers_of_the_connection() {
        let sent = headers(&[
            ("accept", "*/*"),
            ("x-remote-user", "admin"),
            ("x_remote_group", "system:masters"),
            ("x_forwarded_for", "10.0.0.1"),
            ("x-forwarded_for", "10.0.0.1"),
            ("impersonate_user", "admin"),
            ("transfer_encoding", "chunked"),
            ("proxy-authorization", "Basic eDp5"),
            (
                "sec-websocket-protocol",
                "x, base64url.bearer.authorization.k8s.io.dG9rZW4",
            ),
            ("connection", "Upgrade, x-secret"),
            ("connection", "X-Hop,,;bad name;"),
            ("upgrade", "websocket"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "close"),
            ("te", "trailers"),
            ("trailer", "x"),
            ("transfer-encoding", "chunked"),
            ("x-secret", "1"),
            ("x-hop", "2"),
        ]);
        assert_eq!(
            headers_for_other_server(&sent, None),
            headers(&[("accept", "*/*")])
        );
    }

    #[test]
    fn the_last_forwarded_address_is_that_of_the_client() {
        let peer = Some("::ffff:10.0.0.7".parse().unwrap());
        for (sent, expected) in [
            (vec![], "10.0.0.7"),
            (vec![("x-forwarded-for", "1.1.1.1")], "1.1.1.1, 10.0.0.7"),
            (
                vec![
                    ("x-forwarded-for", "1.1.1.1"),
                    ("x-forwarded-for", "2.2.2.2, 3.3.3.3"),
                ],
                "1.1.1.1, 2.2.2.2, 3.3.3.3, 10.0.0.7",
            ),
            // A client cannot have the address removed.
            (vec![("connection", "X-Forwarded-For")], "10.0.0.7"),
        ] {
            let found = headers_for_other_server(&headers(&sent), peer);
            assert_eq!(found, headers(&[("x-forwarded-for", expected)]), "{sent:?}");
        }
    }

    #[test]
    fn a_response_has_the_length_of_its_body_and_no_headers_of_another_connection() {
        let check = |sent: &[(&str, &str)], expected: &[(&str, &str)]| {
            let mut response = Response::new(crate::response::full(Bytes::new()));
            *response.headers_mut() = headers(sent);
            let Kind::Http(response) = ConnectResponse::http(response).0 else {
                panic!("a response over HTTP");
            };
            assert_eq!(*response.headers(), headers(expected), "{sent:?}");
        };
        let length = ("content-length", "5");
        check(&[length], &[length]);
        check(&[length, ("content-length", "50")], &[]);
        check(&[length, ("transfer-encoding", "chunked")], &[]);
        let other = ("content-type", "text/plain");
        let of_connection = [
            ("connection", "close, x-y"),
            ("x-y", "z"),
            ("keep-alive", "timeout=1"),
        ];
        check(
            &[&of_connection[..], &[other, length]].concat(),
            &[other, length],
        );
    }

    #[test]
    fn parent_segments_are_found_in_every_spelling() {
        for path in [
            "/..",
            "/../x",
            "/x/..",
            "/x/%2e%2E/y",
            "/x%2F..%2fy",
            "/.%2e/",
        ] {
            assert!(has_parent_segment(path), "{path}");
        }
        for path in ["", "/", "/x..", "/...", "/x/.y/..z", "/%252e%252e/"] {
            assert!(!has_parent_segment(path), "{path}");
        }
    }

    #[test]
    fn the_rest_of_a_path_begins_where_authorization_ends() {
        for (path, is_core, is_namespaced, expected) in [
            ("/apis/g/v1/namespaces/n/machines/a/proxy", false, true, ""),
            (
                "/apis/g/v1/namespaces/n/machines/a/proxy/",
                false,
                true,
                "/",
            ),
            (
                "/apis/g/v1/namespaces/n/machines/a/proxy/x/%2F?",
                false,
                true,
                "/x/%2F?",
            ),
            (
                "/apis/g/v1/machines/a/proxy//x%20y",
                false,
                false,
                "//x%20y",
            ),
            ("/api/v1/namespaces/n/pods/a/log/x", true, true, "/x"),
            // The same machine, subresource and rest as without escapes.
            (
                "/apis/g/v1/namespaces/n/machines/a%2Fproxy/public/x",
                false,
                true,
                "/public/x",
            ),
            (
                "/%61pis/g/v1/namespaces/n/machines/a/proxy/x",
                false,
                true,
                "/x",
            ),
            ("//apis/g/v1%2fmachines/a/proxy%2Fx", false, false, "/x"),
            ("/apis/\u{e4}/v1/machines/a/proxy/x", false, false, "/x"),
        ] {
            assert_eq!(
                rest_of_path(path, is_core, is_namespaced),
                expected,
                "{path}"
            );
        }
    }

    #[test]
    fn credentials_are_not_handed_over() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-remote-user", "admin"),
            ("x-remote-extra-team", "a"),
            ("proxy-authorization", "Basic eDp5"),
            (
                "sec-websocket-protocol",
                "base64url.bearer.authorization.k8s.io.eA, x",
            ),
            ("sec-websocket-protocol", "v5.channel.k8s.io"),
            ("accept", "*/*"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        let rest = headers_for_other_server(&headers, None);
        let left: Vec<_> = rest
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_bytes()))
            .collect();
        let expected: [(&str, &[u8]); 2] = [
            ("sec-websocket-protocol", b"v5.channel.k8s.io"),
            ("accept", b"*/*"),
        ];
        assert_eq!(left, expected);
    }
}
