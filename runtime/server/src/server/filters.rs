//! The filters of every request before the API, and of every response after it, as a list in their order.
//!
//! One list (`chain!`) is both the function that a request passes and what `print-chain` prints. A filter is a step in
//! `filters/steps.rs`, and a line of the list.

mod audit_id;
mod impersonation;
mod request_log;
mod steps;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use apiloom_http::{Api, Arrival, Body, RequestBody, full, plain};
use apiloom_registry::auth::{Auth, Connection};
use bytes::Bytes;
use futures_util::FutureExt as _;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body as _;
use tokio::time::Instant;

use self::audit_id::{AUDIT_ID, request_id};
use self::request_log::{RequestLine, text};
use self::steps::{
    AddedAt, AdmittedRequest, ArrivedRequest, Audit, Authentication, Authorization, Deadline,
    Ending, ExtendedConnect, FilterContext, Goaway, Impersonation, MaxInFlight, Passage,
    RequestPath, RequestQuery,
};
use super::Config;
use super::auditor::Auditor;
use super::chain::{ChainFilter, FilterInfo};
use super::filter::{AddedFilters, FilterPlace};
use super::in_flight::InFlight;

/// The filters around an [`Api`].
pub(super) struct Filters(FilterContext);

/// Makes of the list of filters the function that a request passes, and the list of their descriptions. What may have to wait for its
/// result says so.
macro_rules! chain {
    (@passage $passage:expr) => { $passage };
    (@passage $passage:expr, waits) => { $passage.await };
    ($($filter:expr $(=> $waits:ident)?,)+) => {
        impl Filters {
            /// The filters that requests pass, in this order.
            pub(super) fn chain(added: &AddedFilters) -> Vec<ChainFilter> {
                let mut chain = OUTERMOST.map(FilterInfo::listed).to_vec();
                $($filter.list(added, &mut chain);)+
                chain
            }

            /// Passes a request through the filters.
            ///
            /// # Errors
            /// The response to a request that one of them refuses.
            async fn pass<'r>(
                &self,
                ending: &mut Ending,
                request: ArrivedRequest<'r>,
            ) -> Passage<AdmittedRequest<'r>> {
                $(let request = chain!(@passage $filter.pass(&self.0, ending, request) $(, $waits)?)?;)+
                Ok(request)
            }
        }
    };
}

chain! {
    ExtendedConnect,
    RequestPath,
    AddedAt(FilterPlace::BeforeAuthentication) => waits,
    Authentication => waits,
    Goaway,
    AddedAt(FilterPlace::AfterAuthentication) => waits,
    RequestQuery => waits,
    Audit => waits,
    Deadline,
    Impersonation => waits,
    MaxInFlight,
    Authorization => waits,
    AddedAt(FilterPlace::AfterAuthorization) => waits,
}

/// What [`Filters::serve`] does around all others.
const OUTERMOST: [FilterInfo; 3] = [
    FilterInfo::new(
        "audit-id",
        "gives the request and its response an id: the client's Audit-ID, or a new one",
    ),
    FilterInfo::new("request-log", "logs a line for each response, with -v 2"),
    FilterInfo::new("panic-guard", "answers a panic with 500"),
];

impl Filters {
    pub(super) fn new(
        api: Api,
        auth: Arc<Auth>,
        auditor: Option<Arc<dyn Auditor>>,
        added: AddedFilters,
        config: &Config,
    ) -> Self {
        Self(FilterContext {
            api,
            auth,
            auditor,
            added,
            in_flight: InFlight::new(
                config.max_requests_inflight,
                config.max_mutating_requests_inflight,
            ),
            goaway_chance: config.goaway_chance,
            request_timeout: config.request_timeout,
        })
    }

    /// The API behind the filters.
    pub(super) fn api(&self) -> &Api {
        &self.0.api
    }

    /// Serves a request: the outermost filters, the others, the API.
    pub(super) async fn serve(
        &self,
        connection: &Connection,
        request: Request<RequestBody>,
    ) -> Response<Body> {
        let id = request_id(request.headers());
        let arrival = Arrival {
            connection,
            audit_id: &id,
            at: Instant::now(),
        };
        let is_head = request.method() == Method::HEAD;
        let line = tracing::enabled!(tracing::Level::DEBUG).then(|| RequestLine::new(&request));
        // State after a panic: the request's own is dropped, and shared state is behind locks that do not poison, and
        // is changed in one step.
        let answer = AssertUnwindSafe(self.answer(arrival, request)).catch_unwind();
        let mut response = match answer.await {
            Ok(response) => response,
            Err(_) => panicked(&id),
        };
        let response_code = response.status();
        let headers = response.headers_mut();
        if let Some(line) = line {
            line.log(arrival, response_code);
        }
        headers.insert(AUDIT_ID, id);
        headers
            .entry(CACHE_CONTROL)
            .or_insert(HeaderValue::from_static("no-cache, private"));
        if is_head {
            return without_body(response);
        }
        response
    }

    /// Passes a request through the filters to the API, which observes the deadline.
    async fn answer(&self, arrival: Arrival<'_>, request: Request<RequestBody>) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        let mut ending = Ending::default();
        let request = ArrivedRequest {
            arrival,
            request: &mut parts,
        };
        let response = match self.pass(&mut ending, request).await {
            Ok(AdmittedRequest(call)) => self.0.api.answer(&call, body).await,
            Err(response) => *response,
        };
        let response = match ending.audit.take() {
            Some(audit) => audit.follow(response).await,
            None => response,
        };
        ending.apply(&self.0, arrival, &parts, response)
    }
}

/// The response to a HEAD: its headers are those of the response with a body (RFC 9110, section 9.3.2). Over HTTP/2 a body
/// would be an error of the protocol.
fn without_body(response: Response<Body>) -> Response<Body> {
    let length = response.body().size_hint().exact();
    let mut response = response.map(|_| full(Bytes::new()));
    if let Some(length) = length {
        response
            .headers_mut()
            .insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}

fn panicked(audit_id: &HeaderValue) -> Response<Body> {
    let audit_id = text(Some(audit_id));
    tracing::error!(
        ?audit_id,
        "a request panicked; the panic message above says where"
    );
    let text = "This request caused apiserver to panic. Look in the logs for details.\n";
    plain(StatusCode::INTERNAL_SERVER_ERROR, text)
}
