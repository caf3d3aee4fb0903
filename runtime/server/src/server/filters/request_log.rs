//! The log line of a request.

use std::borrow::Cow;

use apiloom_http::{Arrival, RequestBody};
use apiloom_meta::field::echoed;
use http::header::USER_AGENT;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request, StatusCode, Uri};

/// The log line of a request, written with `-v 2` and above when its response begins.
pub(super) struct RequestLine {
    method: Method,
    uri: Uri,
    user_agent: Option<HeaderValue>,
}

impl RequestLine {
    pub(super) fn new(request: &Request<RequestBody>) -> Self {
        Self {
            method: request.method().clone(),
            uri: request.uri().clone(),
            user_agent: request.headers().get(USER_AGENT).cloned(),
        }
    }

    pub(super) fn log(self, arrival: Arrival<'_>, code: StatusCode) {
        let path = self.uri.path_and_query().map_or("", PathAndQuery::as_str);
        tracing::debug!(
            method = %echoed(self.method.as_str()),
            uri = &*echoed(path),
            code = code.as_u16(),
            latency_ms = arrival.at.elapsed().as_millis() as u64,
            user_agent = ?echoed(&text(self.user_agent.as_ref())),
            audit_id = ?text(Some(arrival.audit_id)),
            src_ip = arrival.connection.peer.map(|peer| tracing::field::display(peer.ip())),
            "HTTP"
        );
    }
}

/// The text of a header; empty without one.
pub(super) fn text(value: Option<&HeaderValue>) -> Cow<'_, str> {
    String::from_utf8_lossy(value.map_or(b"", HeaderValue::as_bytes))
}
