//! The filters of every request before the API, and of every response after it, as a list in their order.

mod audit_id;
mod request_log;

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use apiloom_meta::ApiError;
use apiloom_meta::field::{echoed, go_quote};
use bytes::Bytes;
use futures_util::FutureExt as _;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, X_CONTENT_TYPE_OPTIONS};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body::Body as _;
use tokio::time::Instant;

use self::audit_id::{AUDIT_ID, random, request_id};
use self::request_log::{RequestLine, text};
use super::in_flight::{InFlight, Permit, too_many};
use super::{Config, GoawayChance};
use crate::auth::{Authenticators, Authorizers, Connection, Refusal};
use crate::http::request::timeout::out_of_time;
use crate::http::shape::error::respond;
use crate::http::{
    Api, Arrival, Body, Call, RequestBody, RequestInfo, convert_extended_connect, full, plain,
};

/// The filters around an [`Api`].
pub(super) struct Filters {
    api: Api,
    auth: Auth,
    in_flight: InFlight,
    goaway_chance: GoawayChance,
    /// `--request-timeout`.
    request_timeout: Duration,
}

/// The authenticators and authorizers of a server.
#[derive(Default)]
pub(super) struct Auth {
    pub(super) authenticators: Authenticators,
    pub(super) authorizers: Authorizers,
}

impl Filters {
    pub(super) fn new(api: Api, auth: Auth, config: &Config) -> Self {
        Self {
            api,
            auth,
            in_flight: InFlight::new(
                config.max_requests_inflight,
                config.max_mutating_requests_inflight,
            ),
            goaway_chance: config.goaway_chance,
            request_timeout: config.request_timeout,
        }
    }

    /// The API behind the filters.
    pub(super) fn api(&self) -> &Api {
        &self.api
    }

    /// Runs the request id and the panic guard, then the other filters.
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

    /// Runs request info, authentication, and the checks of [`Filters::admit`]; then the API, which observes the
    /// deadline.
    ///
    /// Only the path is read before authentication. Over HTTP/2, clients without valid credentials get GOAWAY, so that
    /// they cannot send many requests on one connection.
    async fn answer(&self, arrival: Arrival<'_>, request: Request<RequestBody>) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        let version = parts.version;
        if let Err(error) = convert_extended_connect(&mut parts) {
            return respond(&error, &parts);
        }
        let info = match RequestInfo::of_path(&parts.method, &parts.uri) {
            Ok(info) => info,
            Err(error) => return respond(&ApiError::from(&error), &parts),
        };
        let authenticators = &self.auth.authenticators;
        let deadline = arrival.at + self.request_timeout;
        let user = authenticators.authenticate(arrival.connection, &mut parts.headers, deadline);
        let user = match user.await {
            Ok(user) => user,
            Err(error) => return last(version, respond(&error, &parts)),
        };
        let is_last = user.is_anonymous() || hits(self.goaway_chance);
        let mut call = self.api.read(arrival, &parts, info, user).await;
        let response = match self.admit(&mut call).await {
            Ok(permit) => permit.hold(self.api.answer(&call, body).await),
            Err(response) => response,
        };
        if is_last {
            last(version, response)
        } else {
            response
        }
    }

    /// Runs deadline, impersonation, the limits for requests in flight, and authorization.
    ///
    /// # Errors
    /// The response to a request that one of them refuses.
    async fn admit(&self, call: &mut Call<'_>) -> Result<Permit, Response<Body>> {
        if let Err(error) = call.set_deadline(self.request_timeout) {
            return Err(call.respond(&error));
        }
        if let Err(error) = refuse_impersonation(&call.request.headers) {
            return Err(call.respond(&error));
        }
        let Ok(permit) = self.in_flight.admit(&call.info) else {
            self.api.count_refused(call);
            return Err(too_many());
        };
        match self.authorize(call).await {
            Ok(()) => Ok(permit),
            Err(refusal) => Err(self.refuse(refusal, call)),
        }
    }

    async fn authorize(&self, call: &Call<'_>) -> Result<(), Refusal> {
        let mut attributes = call.info.attributes(call.user.user());
        // A request without a deadline has one for its authorization.
        let deadline = call
            .deadline
            .unwrap_or(call.arrival.at + self.request_timeout);
        let authorizers = &self.auth.authorizers;
        authorizers.authorize(&attributes, deadline).await?;
        match call.info.second_verb {
            Some(verb) => {
                attributes.verb = verb.as_str();
                authorizers.authorize(&attributes, deadline).await
            }
            None => Ok(()),
        }
    }

    /// The response to a request that is not authorized.
    fn refuse(&self, refusal: Refusal, call: &Call<'_>) -> Response<Body> {
        let mut response = match refusal {
            Refusal::Forbidden(error) => call.respond(&error),
            Refusal::Failed(error) => {
                let audit_id = text(Some(call.arrival.audit_id));
                tracing::error!(error = ?echoed(&error), ?audit_id, "unable to authorize the request");
                let path = call.request.uri.path_and_query();
                let path = echoed(path.map_or("", PathAndQuery::as_str));
                let text = format!("Internal Server Error: {}: {error}\n", go_quote(&path));
                plain(StatusCode::INTERNAL_SERVER_ERROR, text)
            }
            Refusal::OutOfTime => {
                self.api.count_out_of_time(call);
                return out_of_time();
            }
        };
        let nosniff = HeaderValue::from_static("nosniff");
        response
            .headers_mut()
            .insert(X_CONTENT_TYPE_OPTIONS, nosniff);
        response
    }
}

/// Whether a random choice with this probability selects the request.
fn hits(chance: GoawayChance) -> bool {
    chance.per_million > 0 && random().0 % 1_000_000 < u64::from(chance.per_million)
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

/// Marks a response over HTTP/2 as the last one of its connection, so that GOAWAY is sent.
fn last(version: Version, mut response: Response<Body>) -> Response<Body> {
    if version == Version::HTTP_2 {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    response
}

/// Refuses impersonation: if its headers were ignored, the request would run with the administrator's rights.
fn refuse_impersonation(headers: &HeaderMap) -> Result<(), ApiError> {
    match headers
        .keys()
        .find(|name| name.as_str().starts_with("impersonate-"))
    {
        None => Ok(()),
        Some(name) => Err(ApiError::bad_request(format!(
            "impersonation is not supported yet: remove the header {} (kubectl: --as, --as-group, --as-uid)",
            echoed(name.as_str())
        ))),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goaway_comes_about_as_often_as_asked_for() {
        let count = |chance: &str| {
            let chance = chance.parse().unwrap();
            (0..100_000).filter(|_| hits(chance)).count()
        };
        assert_eq!(count("0"), 0);
        // 2,000 are expected; the standard deviation is 44.
        assert!((1_500..2_500).contains(&count("0.02")));
    }
}
