//! The filters of the server between the arrival of a request and the API, each a step from one form of the request to the next.
//!
//! The forms say what is known of a request, so the order of the steps is checked by the compiler: [`ArrivedRequest`], [`LocatedRequest`] (its path is
//! read), [`IdentifiedRequest`] (its user is known), [`Call`] (its query is read), [`AdmittedRequest`] (it is authorized). Each step takes its
//! form and returns the next one, so all of them are small: what is large is in a box, as is a refusal.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use apiloom_http::request::timeout::out_of_time;
use apiloom_http::shape::error::respond;
use apiloom_http::{Api, Arrival, Body, Call, Query, RequestInfo, convert_extended_connect, plain};
use apiloom_meta::field::{echoed, go_quote};
use apiloom_meta::{ApiError, Status};
use apiloom_registry::audit::AuditRecord;
use apiloom_registry::auth::{
    self, Auth, Authenticated, Connection, Refusal, UserInfo, Verdict, impersonate,
};
use http::header::{AUTHORIZATION, CONNECTION, X_CONTENT_TYPE_OPTIONS};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Response, StatusCode, Version};
use tokio::time::Instant;

use super::audit_id::random;
use super::impersonation::ImpersonationHeaders;
use super::request_log::text;
use crate::server::GoawayChance;
use crate::server::auditor::{self as audit, AuditStage, AuditTrail, AuditedRequest, Auditor};
use crate::server::chain::{ChainFilter, FilterInfo};
use crate::server::filter::{AddedFilters, FilterPlace, FilterRequest};
use crate::server::in_flight::{InFlight, Permit, too_many};

/// What the filters of a server share.
pub(in crate::server) struct FilterContext {
    pub(in crate::server) api: Api,
    pub(in crate::server) auth: Arc<Auth>,
    pub(in crate::server) auditor: Option<Arc<dyn Auditor>>,
    pub(in crate::server) added: AddedFilters,
    pub(in crate::server) in_flight: InFlight,
    pub(in crate::server) goaway_chance: GoawayChance,
    /// `--request-timeout`.
    pub(in crate::server) request_timeout: Duration,
}

/// What the filters that a request has passed do with its response, also with the refusal of a later filter.
#[derive(Default)]
pub(super) struct Ending {
    /// Whether the connection ends with the response.
    is_last: bool,
    permit: Option<Permit>,
    /// The number of added filters that the request has passed.
    passed: usize,
    /// The user, for added filters.
    user: Option<Arc<UserInfo>>,
    /// What the request asks for beside: to be executed as another user.
    impersonated: Option<Box<ImpersonationHeaders>>,
    /// What is recorded of the request, until its response is known.
    pub(super) audit: Option<audit::Audit>,
}

impl Ending {
    /// Ends a request with this response.
    pub(super) fn apply(
        self,
        context: &FilterContext,
        arrival: Arrival<'_>,
        request: &Parts,
        mut response: Response<Body>,
    ) -> Response<Body> {
        if let Some(permit) = self.permit {
            response = permit.hold(response);
        }
        if self.is_last {
            response = last(request.version, response);
        }
        if self.passed > 0 {
            let request = view(arrival, request, self.user.as_ref());
            context.added.change(self.passed, request, &mut response);
        }
        response
    }
}

/// Marks a response over HTTP/2 as the last one of its connection, so that GOAWAY is sent.
fn last(version: Version, mut response: Response<Body>) -> Response<Body> {
    if version == Version::HTTP_2 {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    response
}

/// A request of which nothing is read.
pub(super) struct ArrivedRequest<'r> {
    pub(super) arrival: Arrival<'r>,
    pub(super) request: &'r mut Parts,
}

/// A request whose path is read. Its headers still have the credentials.
pub(super) struct LocatedRequest<'r> {
    arrival: Arrival<'r>,
    request: &'r mut Parts,
    info: Box<RequestInfo>,
}

/// A request whose user is known.
pub(super) struct IdentifiedRequest<'r> {
    arrival: Arrival<'r>,
    request: &'r Parts,
    info: Box<RequestInfo>,
    user: Authenticated,
}

/// A request that is authorized.
pub(super) struct AdmittedRequest<'r>(pub(super) Box<Call<'r>>);

/// A form of a request that added filters can judge.
pub(super) trait RequestView {
    /// The request as they see it.
    fn view(&self) -> FilterRequest<'_>;

    /// Its deadline; `None` if it is long-running or its deadline is not known yet.
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

fn view<'a>(
    arrival: Arrival<'a>,
    request: &'a Parts,
    user: Option<&'a Arc<UserInfo>>,
) -> FilterRequest<'a> {
    FilterRequest {
        connection: arrival.connection,
        audit_id: arrival.audit_id,
        method: &request.method,
        uri: &request.uri,
        headers: &request.headers,
        user,
    }
}

impl RequestView for LocatedRequest<'_> {
    fn view(&self) -> FilterRequest<'_> {
        view(self.arrival, self.request, None)
    }
}

impl RequestView for IdentifiedRequest<'_> {
    fn view(&self) -> FilterRequest<'_> {
        view(self.arrival, self.request, Some(self.user.user()))
    }
}

impl RequestView for AdmittedRequest<'_> {
    fn view(&self) -> FilterRequest<'_> {
        let call = &self.0;
        view(call.arrival, call.request, Some(call.user.user()))
    }

    fn deadline(&self) -> Option<Instant> {
        self.0.deadline
    }
}

/// The result of a step: the next form of the request, or the response to one that is refused.
pub(super) type Passage<T> = Result<T, Box<Response<Body>>>;

/// Declares a filter of the server: its type, its name and its meaning.
macro_rules! own_filter {
    ($filter:ident, $name:literal, $meaning:literal) => {
        #[doc = concat!("The filter `", $name, "`: ", $meaning, ".")]
        pub(super) struct $filter;

        impl $filter {
            pub(super) fn list(&self, _: &AddedFilters, chain: &mut Vec<ChainFilter>) {
                chain.push(FilterInfo::new($name, $meaning).listed());
            }
        }
    };
}

own_filter!(
    ExtendedConnect,
    "extended-connect",
    "turns a CONNECT of HTTP/2 for a WebSocket into the GET of HTTP/1.1; refuses all others"
);

impl ExtendedConnect {
    pub(super) fn pass<'r>(
        &self,
        _: &FilterContext,
        _: &mut Ending,
        request: ArrivedRequest<'r>,
    ) -> Passage<ArrivedRequest<'r>> {
        match convert_extended_connect(request.request) {
            Ok(()) => Ok(request),
            Err(error) => Err(Box::new(respond(&error, request.request))),
        }
    }
}

own_filter!(
    RequestPath,
    "request-info",
    "reads the path: resource, namespace, name, verb"
);

impl RequestPath {
    pub(super) fn pass<'r>(
        &self,
        _: &FilterContext,
        _: &mut Ending,
        request: ArrivedRequest<'r>,
    ) -> Passage<LocatedRequest<'r>> {
        let ArrivedRequest { arrival, request } = request;
        match RequestInfo::of_path(&request.method, &request.uri) {
            Ok(info) => Ok(LocatedRequest {
                arrival,
                request,
                info: Box::new(info),
            }),
            Err(error) => Err(Box::new(respond(&ApiError::from(&error), request))),
        }
    }
}

own_filter!(
    Authentication,
    "authentication",
    "finds the user by the authenticators in their order; 401 for wrong credentials"
);

impl Authentication {
    /// Only the path is read before.
    pub(super) async fn pass<'r>(
        &self,
        context: &FilterContext,
        ending: &mut Ending,
        request: LocatedRequest<'r>,
    ) -> Passage<IdentifiedRequest<'r>> {
        let LocatedRequest {
            arrival,
            request,
            info,
        } = request;
        let authenticators = &context.auth.authenticators;
        let deadline = arrival.at + context.request_timeout;
        let headers = &mut request.headers;
        let auditor = context.auditor.as_ref();
        let attempted = auditor.map(|_| attempted(headers, arrival.connection));
        ending.impersonated = ImpersonationHeaders::take(headers);
        let path = request.uri.path();
        let user = authenticators.authenticate(arrival.connection, path, headers, deadline);
        match user.await {
            Ok(user) => {
                if !context.added.is_empty() {
                    ending.user = Some(Arc::clone(user.user()));
                }
                Ok(IdentifiedRequest {
                    arrival,
                    request,
                    info,
                    user,
                })
            }
            Err(error) => {
                ending.is_last = true;
                if let (Some(auditor), Some(attempted)) = (auditor, attempted) {
                    let located = LocatedRequest {
                        arrival,
                        request: &mut *request,
                        info,
                    };
                    unknown_user(auditor, located, attempted, deadline).await;
                }
                Err(Box::new(respond(&error, request)))
            }
        }
    }
}

/// Kinds of credentials, and whether a request has them.
type CredentialKinds = [(&'static str, bool); 3];

/// Which credentials a request has, as kube-apiserver names them.
fn attempted(headers: &HeaderMap, connection: &Connection) -> CredentialKinds {
    let authorization = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
    let scheme = authorization.map(|value| value.split(|byte| *byte == b' ').next());
    let has = |name: &str| {
        let scheme = scheme.flatten().unwrap_or_default();
        scheme.eq_ignore_ascii_case(name.as_bytes())
    };
    [
        ("basic", has("basic")),
        ("bearer", has("bearer")),
        ("x509", !connection.certificates.is_empty()),
    ]
}

/// Records a request that is refused because its user is not known. As in kube-apiserver it has one event.
async fn unknown_user(
    auditor: &Arc<dyn Auditor>,
    located: LocatedRequest<'_>,
    attempted: CredentialKinds,
    deadline: Instant,
) {
    let LocatedRequest {
        arrival,
        request,
        mut info,
    } = located;
    // All that its verb depends on: a long query of a stranger is not read.
    info.read_query(&Query::of_parameter(&request.uri, "watch"));
    let nameless = Arc::default();
    let Some(mut trail) = begin(auditor, arrival, request, &info, &nameless) else {
        return;
    };
    let there = attempted.into_iter().filter(|(_, is_there)| *is_there);
    let there: Vec<_> = there.map(|(name, _)| name).collect();
    let message = match &*there.join(", ") {
        "" => "Authentication failed, no credentials provided".to_owned(),
        attempted => format!("Authentication failed, attempted: {attempted}"),
    };
    trail.record().notes().status = Some(Status::of_message(message));
    let code = Some(StatusCode::UNAUTHORIZED);
    // It is refused anyway.
    let started = trail.enter(AuditStage::ResponseStarted, code);
    let _ = started.by(deadline).await;
}

/// Begins the audit of a request.
fn begin(
    auditor: &Arc<dyn Auditor>,
    arrival: Arrival<'_>,
    request: &Parts,
    info: &RequestInfo,
    user: &Arc<UserInfo>,
) -> Option<Box<dyn AuditTrail>> {
    let head = AuditedRequest {
        attributes: info.attributes(user),
        user,
        id: arrival.audit_id,
        uri: &request.uri,
        headers: &request.headers,
        connection: arrival.connection,
        received: SystemTime::now() - arrival.at.elapsed(),
    };
    auditor.begin(&head)
}

own_filter!(
    Audit,
    "audit",
    "records the request and its response, as the policy of the server's auditor says; 500 if it must be and cannot"
);

impl Audit {
    pub(super) async fn pass<'r>(
        &self,
        context: &FilterContext,
        ending: &mut Ending,
        mut call: Box<Call<'r>>,
    ) -> Passage<Box<Call<'r>>> {
        let Some(auditor) = &context.auditor else {
            return Ok(call);
        };
        let user = call.user.user();
        let Some(trail) = begin(auditor, call.arrival, call.request, &call.info, user) else {
            return Ok(call);
        };
        let record = Arc::clone(trail.record());
        let deadline = authorization_deadline(context, &call);
        let audit = audit::Audit::new(trail, call.info.is_long_running(), deadline);
        match audit.receive().await {
            Ok(audit) => ending.audit = Some(audit),
            // The auditor has told why.
            Err(_) => {
                let refusal = Refusal::Failed("failed to store audit event".to_owned());
                return Err(Box::new(forbid(context, refusal, &call)));
            }
        }
        call.audit = Some(record);
        Ok(call)
    }
}

own_filter!(
    Goaway,
    "goaway",
    "ends HTTP/2 connections after their response: of anonymous users, and by --goaway-chance"
);

impl Goaway {
    /// Clients without valid credentials get GOAWAY, so that they cannot send many requests on one connection.
    pub(super) fn pass<'r>(
        &self,
        context: &FilterContext,
        ending: &mut Ending,
        request: IdentifiedRequest<'r>,
    ) -> Passage<IdentifiedRequest<'r>> {
        ending.is_last = request.user.is_anonymous() || hits(context.goaway_chance);
        Ok(request)
    }
}

/// Whether a random choice with this probability selects the request.
fn hits(chance: GoawayChance) -> bool {
    chance.per_million > 0 && random().0 % 1_000_000 < u64::from(chance.per_million)
}

own_filter!(
    RequestQuery,
    "query",
    "reads the query, a long one without delaying other requests"
);

impl RequestQuery {
    pub(super) async fn pass<'r>(
        &self,
        context: &FilterContext,
        _: &mut Ending,
        request: IdentifiedRequest<'r>,
    ) -> Passage<Box<Call<'r>>> {
        let IdentifiedRequest {
            arrival,
            request,
            info,
            user,
        } = request;
        let call = context.api.read(arrival, request, info, user).await;
        Ok(Box::new(call))
    }
}

own_filter!(
    Deadline,
    "request-timeout",
    "sets the deadline: the parameter timeout, at most --request-timeout; 504 after it"
);

impl Deadline {
    pub(super) fn pass<'r>(
        &self,
        context: &FilterContext,
        _: &mut Ending,
        mut call: Box<Call<'r>>,
    ) -> Passage<Box<Call<'r>>> {
        match call.set_deadline(context.request_timeout) {
            Ok(()) => Ok(call),
            Err(error) => Err(Box::new(call.respond(&error))),
        }
    }
}

own_filter!(
    Impersonation,
    "impersonation",
    "executes the request as the user that its headers ask for; 403 if the user may not be that one"
);

impl Impersonation {
    pub(super) async fn pass<'r>(
        &self,
        context: &FilterContext,
        ending: &mut Ending,
        mut call: Box<Call<'r>>,
    ) -> Passage<Box<Call<'r>>> {
        let Some(headers) = ending.impersonated.take() else {
            return Ok(call);
        };
        match Box::pin(impersonated(context, &call, &headers)).await {
            Ok(None) => {}
            Ok(Some(auth::Impersonation { user, constraint })) => {
                if let Some(audit) = &call.audit {
                    audit.impersonate(user.user(), constraint);
                }
                if ending.user.is_some() {
                    ending.user = Some(Arc::clone(user.user()));
                }
                call.user = user;
            }
            Err(refusal) => return Err(Box::new(forbid(context, refusal, &call))),
        }
        Ok(call)
    }
}

/// The user that a request asks to be; `None` if it asks for none.
async fn impersonated(
    context: &FilterContext,
    call: &Call<'_>,
    headers: &ImpersonationHeaders,
) -> Result<Option<auth::Impersonation>, Refusal> {
    let Some(wanted) = headers.user().map_err(Refusal::Forbidden)? else {
        return Ok(None);
    };
    let request = call.info.attributes(call.user.user());
    let authorizers = &context.auth.authorizers;
    let deadline = authorization_deadline(context, call);
    let user = impersonate(authorizers, &request, &wanted, deadline).await;
    let user = user.map_err(|_| Refusal::OutOfTime)?;
    user.map(Some).map_err(Refusal::Forbidden)
}

own_filter!(
    MaxInFlight,
    "max-in-flight",
    "429 above --max-requests-inflight and --max-mutating-requests-inflight"
);

impl MaxInFlight {
    pub(super) fn pass<'r>(
        &self,
        context: &FilterContext,
        ending: &mut Ending,
        call: Box<Call<'r>>,
    ) -> Passage<Box<Call<'r>>> {
        match context.in_flight.admit(&call.info) {
            Ok(permit) => {
                ending.permit = Some(permit);
                Ok(call)
            }
            Err(_) => {
                context.api.count_refused(&call);
                Err(Box::new(too_many()))
            }
        }
    }
}

own_filter!(
    Authorization,
    "authorization",
    "asks the authorizers in their order; 403 without one that allows the request"
);

impl Authorization {
    pub(super) async fn pass<'r>(
        &self,
        context: &FilterContext,
        _: &mut Ending,
        call: Box<Call<'r>>,
    ) -> Passage<AdmittedRequest<'r>> {
        match authorize(context, &call).await {
            Ok(()) => Ok(AdmittedRequest(call)),
            Err(refusal) => Err(Box::new(forbid(context, refusal, &call))),
        }
    }
}

/// A request without a deadline has one for its authorization.
fn authorization_deadline(context: &FilterContext, call: &Call<'_>) -> Instant {
    let longest = call.arrival.at + context.request_timeout;
    call.deadline.unwrap_or(longest)
}

async fn authorize(context: &FilterContext, call: &Call<'_>) -> Result<(), Refusal> {
    let mut attributes = call.info.attributes(call.user.user());
    let deadline = authorization_deadline(context, call);
    let authorizers = &context.auth.authorizers;
    let judged = authorizers.judge(&attributes, deadline).await;
    let mut verdict = judged.map_err(|_| Refusal::OutOfTime)?;
    if verdict.is_allowed
        && let Some(verb) = call.info.second_verb
    {
        attributes.verb = verb.as_str();
        let judged = authorizers.judge(&attributes, deadline).await;
        verdict = judged.map_err(|_| Refusal::OutOfTime)?;
    }
    if let Some(audit) = &call.audit {
        annotate(audit, &verdict);
    }
    verdict.enforce(&attributes)
}

/// What was decided and why, as annotations of the audit.
fn annotate(audit: &AuditRecord, verdict: &Verdict) {
    const DECISION: &str = "authorization.k8s.io/decision";
    const REASON: &str = "authorization.k8s.io/reason";
    if !verdict.is_allowed && verdict.error.is_some() {
        return audit.annotate(REASON, "internal error");
    }
    let decision = if verdict.is_allowed {
        "allow"
    } else {
        "forbid"
    };
    audit.annotate(DECISION, decision);
    audit.annotate(REASON, verdict.reason.to_string());
}

/// The response to a request that is not authorized.
fn forbid(context: &FilterContext, refusal: Refusal, call: &Call<'_>) -> Response<Body> {
    let mut response = match refusal {
        Refusal::Forbidden(error) => call.respond(&error),
        Refusal::Failed(error) => {
            let audit_id = text(Some(call.arrival.audit_id));
            tracing::error!(error = ?echoed(&error), ?audit_id, "unable to decide on the request");
            let path = call.request.uri.path_and_query();
            let path = echoed(path.map_or("", PathAndQuery::as_str));
            let text = format!("Internal Server Error: {}: {error}\n", go_quote(&path));
            plain(StatusCode::INTERNAL_SERVER_ERROR, text)
        }
        Refusal::OutOfTime => {
            context.api.count_out_of_time(call);
            return out_of_time();
        }
    };
    let nosniff = HeaderValue::from_static("nosniff");
    response
        .headers_mut()
        .insert(X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

/// The filters that were added at a place.
pub(super) struct AddedAt(pub(super) FilterPlace);

impl AddedAt {
    pub(super) fn list(&self, added: &AddedFilters, chain: &mut Vec<ChainFilter>) {
        chain.extend(added.listed(self.0));
    }

    pub(super) async fn pass<R: RequestView>(
        &self,
        context: &FilterContext,
        ending: &mut Ending,
        request: R,
    ) -> Passage<R> {
        if !context.added.is_empty() {
            let longest = || Instant::now() + context.request_timeout;
            let deadline = request.deadline().unwrap_or_else(longest);
            let judged = context
                .added
                .judge(self.0, request.view(), deadline, &mut ending.passed);
            judged.await?;
        }
        Ok(request)
    }
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
