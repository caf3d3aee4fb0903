//! What happens to every request before the API sees it and to every answer after, in this order. Read it as a list.

use std::panic::AssertUnwindSafe;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use apiloom_meta::ApiError;
use futures_util::FutureExt as _;
use http::header::{CACHE_CONTROL, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use tokio::time::Instant;
use tower::Service as _;

use super::auth::{Authenticator, authorize};
use super::in_flight::{InFlight, too_many};
use super::unread::RequestBody;
use crate::http::error::respond;
use crate::http::timeout::request_timeout;
use crate::http::{Api, Body, Deadline, RequestInfo, plain};

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// The filters around an [`Api`].
pub(super) struct Filters {
    api: Api,
    authenticator: Authenticator,
    in_flight: InFlight,
}

impl Filters {
    pub(super) fn new(api: Api, authenticator: Authenticator, in_flight: InFlight) -> Self {
        Self {
            api,
            authenticator,
            in_flight,
        }
    }

    /// Request id, panic guard, then the rest.
    pub(super) async fn serve(&self, request: Request<RequestBody>) -> Response<Body> {
        let id = request_id(request.headers());
        let line = tracing::enabled!(tracing::Level::DEBUG).then(|| RequestLine::new(&request));
        // What a panic leaves behind is this request's own: the state it shares with others is behind locks that do not
        // poison and is changed in one step.
        let mut response = match AssertUnwindSafe(self.guarded(request)).catch_unwind().await {
            Ok(response) => response,
            Err(_) => panicked(),
        };
        let response_code = response.status();
        let headers = response.headers_mut();
        if let Some(line) = line {
            line.log(&id, response_code);
        }
        headers.insert(AUDIT_ID, id);
        headers
            .entry(CACHE_CONTROL)
            .or_insert(HeaderValue::from_static("no-cache, private"));
        response
    }

    /// Request info, deadline, authentication, impersonation, requests in flight, authorization, and the API, which keeps to
    /// the deadline.
    async fn guarded(&self, request: Request<RequestBody>) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        let info = match RequestInfo::parse(&parts.method, &parts.uri) {
            Ok(info) => info,
            Err(error) => return respond(&ApiError::from(&error), &parts),
        };
        match request_timeout(&info, &parts.uri) {
            Ok(Some(timeout)) => {
                parts.extensions.insert(Deadline(Instant::now() + timeout));
            }
            Ok(None) => {}
            Err(error) => return respond(&error, &parts),
        }
        let user = match self.authenticator.authenticate(&mut parts.headers) {
            Ok(user) => user,
            Err(error) => return respond(&error, &parts),
        };
        if let Err(error) = refuse_impersonation(&parts.headers) {
            return respond(&error, &parts);
        }
        let Ok(permit) = self.in_flight.admit(&info) else {
            return too_many();
        };
        if let Err(error) = authorize(&user, &info) {
            return respond(&error, &parts);
        }
        parts.extensions.insert(user.0);
        parts.extensions.insert(info);
        let Ok(response) = self
            .api
            .clone()
            .call(Request::from_parts(parts, body))
            .await;
        permit.hold(response)
    }
}

/// What the log says of a request, from `-v 2` on: one line when its answer begins.
struct RequestLine {
    began: Instant,
    method: Method,
    uri: Uri,
    user_agent: Option<HeaderValue>,
}

impl RequestLine {
    fn new(request: &Request<RequestBody>) -> Self {
        Self {
            began: Instant::now(),
            method: request.method().clone(),
            uri: request.uri().clone(),
            user_agent: request.headers().get(USER_AGENT).cloned(),
        }
    }

    fn log(self, audit_id: &HeaderValue, code: StatusCode) {
        let path = self.uri.path_and_query().map_or("", PathAndQuery::as_str);
        tracing::debug!(
            method = %self.method,
            uri = path,
            code = code.as_u16(),
            latency_ms = self.began.elapsed().as_millis() as u64,
            user_agent = ?self.user_agent.unwrap_or(HeaderValue::from_static("")),
            audit_id = ?audit_id.to_str().unwrap_or_default(),
            "HTTP"
        );
    }
}

/// The client's `Audit-ID`, or a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    headers
        .get(AUDIT_ID)
        .filter(|id| !id.is_empty())
        .cloned()
        .unwrap_or_else(|| {
            let mut text = uuid::Uuid::encode_buffer();
            let id = new_id().hyphenated().encode_lower(&mut text);
            let mut id = HeaderValue::from_str(id)
                .expect("hexadecimal digits and dashes make a header value");
            // It comes once: HTTP/2 is to leave it out of the headers that both sides remember.
            id.set_sensitive(true);
            id
        })
}

/// An id that no other request of any server has, without asking the system for random numbers each time: it names a
/// request and guards nothing.
fn new_id() -> uuid::Uuid {
    static SEED: LazyLock<(u64, u64)> = LazyLock::new(|| uuid::Uuid::new_v4().as_u64_pair());
    static REQUESTS: AtomicU64 = AtomicU64::new(0);
    let (high, low) = *SEED;
    let number = REQUESTS.fetch_add(1, Ordering::Relaxed);
    // Each half is a permutation of the numbers, so no id comes twice.
    let halves = (u128::from(scattered(high ^ number)) << 64) | u128::from(scattered(low ^ number));
    uuid::Builder::from_random_bytes(halves.to_be_bytes()).into_uuid()
}

/// Spreads what is near to each other, one to one (the finalizer of SplitMix64).
fn scattered(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Doing as the administrator what was meant to be done as somebody else would be worse than not doing it.
fn refuse_impersonation(headers: &HeaderMap) -> Result<(), ApiError> {
    match headers
        .keys()
        .find(|name| name.as_str().starts_with("impersonate-"))
    {
        None => Ok(()),
        Some(name) => Err(ApiError::bad_request(format!(
            "impersonation is not supported yet: remove the header {name} (kubectl: --as, --as-group, --as-uid)"
        ))),
    }
}

fn panicked() -> Response<Body> {
    tracing::error!("a request panicked; the panic message above says where");
    let text = "This request caused apiserver to panic. Look in the logs for details.\n";
    plain(StatusCode::INTERNAL_SERVER_ERROR, text)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_request_has_an_id_of_its_own() {
        let ids: HashSet<uuid::Uuid> = (0..10_000).map(|_| new_id()).collect();
        assert_eq!(ids.len(), 10_000);
        assert!(ids.iter().all(|id| id.get_version_num() == 4));
    }
}
