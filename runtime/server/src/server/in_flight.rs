//! Limits for requests in flight, for reads and writes, as in kube-apiserver.
//!
//! A request is in flight until its response is sent, so that a list counts as long as a slow reader keeps it in
//! memory. Watches and other long-running requests are not counted. Unlike in kube-apiserver, requests of
//! system:masters are counted: the administrator is the only user so far, and there would be no limit without it.
//! Health checks are not counted, because a supervisor would restart a busy server that rejects them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use apiloom_http::{Body, RequestInfo, plain};
use http::header::{RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt as _;

use super::guarded_body::GuardedBody;

/// Maximum length of a response that is not counted while it is being sent.
const SHORT_BYTES: u64 = 64 * 1024;

/// The limits for requests in flight.
#[derive(Debug)]
pub(super) struct InFlight {
    reads: Arc<Slots>,
    writes: Arc<Slots>,
}

/// A counter of requests with a limit.
#[derive(Debug)]
struct Slots {
    used: AtomicUsize,
    /// 0 for no limit.
    most: usize,
}

/// A request in flight, counted until this is dropped.
#[derive(Debug)]
#[must_use = "the request counts as answered when this is dropped"]
pub(super) struct Permit(Option<Arc<Slots>>);

/// The limit for requests in flight is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMany;

impl InFlight {
    /// Limits for reads and writes; 0 for no limit.
    pub(super) fn new(reads: usize, writes: usize) -> Self {
        let slots = |most| {
            Arc::new(Slots {
                used: AtomicUsize::new(0),
                most,
            })
        };
        Self {
            reads: slots(reads),
            writes: slots(writes),
        }
    }

    /// Counts a request.
    ///
    /// # Errors
    /// If the limit for requests of its kind is reached.
    pub(super) fn admit(&self, info: &RequestInfo) -> Result<Permit, TooMany> {
        if info.is_long_running() || is_health_check(info) {
            return Ok(Permit(None));
        }
        let slots = match info.verb.as_str() {
            "get" | "list" | "watch" => &self.reads,
            _ => &self.writes,
        };
        if slots.most == 0 {
            return Ok(Permit(None));
        }
        let permit = Permit(Some(Arc::clone(slots)));
        // Dropping the permit decrements the counter again.
        if slots.used.fetch_add(1, Ordering::AcqRel) < slots.most {
            Ok(permit)
        } else {
            Err(TooMany)
        }
    }
}

/// Whether the path is a health check.
fn is_health_check(info: &RequestInfo) -> bool {
    let first = info.path.split('/').nth(1);
    !info.is_resource_request && matches!(first, Some("livez" | "readyz" | "healthz"))
}

impl Permit {
    /// Keeps the request in flight until its response is sent. A short response that is complete is not waited for.
    pub(super) fn hold(self, response: Response<Body>) -> Response<Body> {
        let length = response.body().size_hint().exact();
        if self.0.is_none() || length.is_some_and(|length| length <= SHORT_BYTES) {
            return response;
        }
        response.map(|body| GuardedBody::new(body, self).boxed_unsync())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(slots) = &self.0 {
            slots.used.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// The 429 response for a request above the limit.
pub(super) fn too_many() -> Response<Body> {
    const TEXT: &str = "Too many requests, please try again later.\n";
    let mut response = plain(StatusCode::TOO_MANY_REQUESTS, TEXT);
    let headers = response.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Method;
    use http_body::Frame;
    use http_body_util::StreamBody;

    use super::*;

    fn info(method: &str, uri: &str) -> RequestInfo {
        RequestInfo::parse(&method.parse::<Method>().unwrap(), &uri.parse().unwrap()).unwrap()
    }

    const PODS: &str = "/api/v1/namespaces/n/pods";

    #[test]
    fn reads_and_writes_have_limits_of_their_own() {
        let limits = InFlight::new(2, 1);
        let list = [
            limits.admit(&info("GET", PODS)),
            limits.admit(&info("GET", "/version")),
        ];
        assert!(list.iter().all(Result::is_ok));
        assert_eq!(limits.admit(&info("GET", PODS)).err(), Some(TooMany));
        let create = limits.admit(&info("POST", PODS));
        assert!(create.is_ok());
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            assert_eq!(
                limits.admit(&info(method, PODS)).err(),
                Some(TooMany),
                "{method}"
            );
        }
        drop((list, create));
        assert!(
            limits.admit(&info("GET", PODS)).is_ok() && limits.admit(&info("PUT", PODS)).is_ok()
        );
    }

    #[test]
    fn watches_and_health_checks_are_not_counted_and_0_is_no_limit() {
        let limits = InFlight::new(1, 0);
        let _read = limits.admit(&info("GET", PODS)).unwrap();
        for uri in [
            "/api/v1/pods?watch=1",
            "/api/v1/watch/pods",
            "/livez",
            "/readyz?verbose",
            "/healthz/ping",
        ] {
            assert!(limits.admit(&info("GET", uri)).is_ok(), "{uri}");
        }
        let writes: Vec<_> = (0..10).map(|_| limits.admit(&info("POST", PODS))).collect();
        assert!(writes.iter().all(Result::is_ok));
    }

    #[tokio::test]
    async fn a_list_is_in_flight_until_it_is_read_or_given_up() {
        let limits = InFlight::new(1, 1);
        let list = || {
            let piece = Ok(Frame::data(Bytes::from_static(b"x")));
            let body = StreamBody::new(futures_util::stream::iter([piece])).boxed_unsync();
            limits
                .admit(&info("GET", PODS))
                .map(|permit| permit.hold(Response::new(body)))
        };
        let answer = list().unwrap();
        assert!(list().is_err());
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "x");
        drop(list().unwrap());
        // A short and complete response is not waited for.
        for (length, is_held) in [(1, false), (SHORT_BYTES, false), (SHORT_BYTES + 1, true)] {
            let permit = limits.admit(&info("GET", PODS)).unwrap();
            let whole = permit.hold(plain(StatusCode::OK, vec![b'x'; length as usize]));
            assert_eq!(list().is_err(), is_held, "{length}");
            assert_eq!(whole.body().size_hint().exact(), Some(length));
        }
    }
}
