//! Filters of a program: what stands at the named places between the filters of the server itself.

use std::sync::Arc;

use apiloom_http::part_name::PartName;
use apiloom_http::request::timeout::out_of_time;
use apiloom_http::{Body, PathResponse, plain};
use apiloom_registry::auth::{Answer, Connection, UserInfo};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};
use tokio::time::Instant;

use super::chain::ChainFilter;

/// A place between the filters of a server, at which filters of a program stand; `print-chain` shows all in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FilterPlace {
    /// The path is read, and the user is not known: the headers still have the credentials. Refusals of the authentication
    /// pass it on their way back.
    BeforeAuthentication,
    /// The user is known; the query is not read, and the request is not counted as one in flight.
    AfterAuthentication,
    /// The request is authorized, and what is served is looked for next.
    AfterAuthorization,
}

/// A request as a [`Filter`] sees it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FilterRequest<'a> {
    /// The connection of the client.
    pub connection: &'a Connection,
    /// The id of the request, which its response has too: the client's `Audit-ID`, or a new one.
    pub audit_id: &'a HeaderValue,
    /// The method.
    pub method: &'a Method,
    /// The URI as it was sent.
    pub uri: &'a Uri,
    /// The headers; without credentials once the user is known.
    pub headers: &'a HeaderMap,
    /// The user; `None` before authentication.
    pub user: Option<&'a Arc<UserInfo>>,
}

/// A filter of a program or of a part, given to [`Builder::filter`](crate::Builder::filter). Requests of the network and of the
/// same process pass it.
///
/// ```
/// use apiloom_server::server::{Filter, FilterPlace, FilterRequest};
/// use http::{HeaderMap, HeaderValue, StatusCode};
///
/// /// Tells browsers to use HTTPS alone.
/// struct StrictTransport;
///
/// impl Filter for StrictTransport {
///     fn name(&self) -> &str {
///         "strict-transport"
///     }
///
///     fn meaning(&self) -> &str {
///         "adds Strict-Transport-Security to responses"
///     }
///
///     fn place(&self) -> FilterPlace {
///         FilterPlace::BeforeAuthentication
///     }
///
///     fn response(&self, _: &FilterRequest<'_>, _: StatusCode, headers: &mut HeaderMap) {
///         let value = HeaderValue::from_static("max-age=31536000");
///         headers.insert("strict-transport-security", value);
///     }
/// }
/// # fn example(builder: apiloom_server::Builder) -> apiloom_server::Builder {
/// builder.filter(StrictTransport)
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a filter of a server",
    note = "implement `apiloom::server::Filter` for it"
)]
pub trait Filter: Send + Sync + 'static {
    /// Its name, which no other filter of the server has: words with dashes, as `strict-transport`.
    fn name(&self) -> &str;

    /// What it does, in one line for `print-chain`.
    fn meaning(&self) -> &str;

    /// Its place. Filters of the same place run in the order in which they were added. Default: after authorization.
    fn place(&self) -> FilterPlace {
        FilterPlace::AfterAuthorization
    }

    /// Judges a request; called once for each, and must not block. An answer that is not there by the deadline of the request is a
    /// 504. Default: lets it pass.
    ///
    /// # Errors
    /// The response to a request that it refuses. The request goes no further, and only the filters that it passed see the response.
    fn request<'a>(
        &'a self,
        request: &'a FilterRequest<'a>,
    ) -> Answer<'a, Result<(), PathResponse>> {
        let _ = request;
        Answer::Now(Ok(()))
    }

    /// Changes the headers of the response to a request that it let pass, before the body is sent; must not block. The filters of a
    /// request see its response in the opposite order. Default: nothing.
    fn response(&self, request: &FilterRequest<'_>, code: StatusCode, headers: &mut HeaderMap) {
        let _ = (request, code, headers);
    }
}

/// The filters of a program and its parts, by place.
#[derive(Default)]
pub(super) struct AddedFilters(Vec<AddedFilter>);

struct AddedFilter {
    part: PartName,
    place: FilterPlace,
    filter: Box<dyn Filter>,
}

impl AddedFilters {
    /// Adds a filter behind those of its place.
    pub(super) fn push(&mut self, part: PartName, filter: Box<dyn Filter>) {
        let place = filter.place();
        let at = self.0.partition_point(|other| other.place <= place);
        let added = AddedFilter {
            part,
            place,
            filter,
        };
        self.0.insert(at, added);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn at(&self, place: FilterPlace) -> impl Iterator<Item = &AddedFilter> {
        let filters = self.0.iter();
        filters.filter(move |added| added.place == place)
    }

    /// The filters of a place, as they are listed.
    pub(super) fn listed(&self, place: FilterPlace) -> impl Iterator<Item = ChainFilter> {
        self.at(place).map(|added| ChainFilter {
            name: added.filter.name().to_owned(),
            part: added.part,
            meaning: added.filter.meaning().to_owned(),
        })
    }

    /// Judges a request by the filters of a place, and counts those that let it pass.
    ///
    /// # Errors
    /// The response of the first filter that refuses the request.
    pub(super) async fn judge(
        &self,
        place: FilterPlace,
        request: FilterRequest<'_>,
        deadline: Instant,
        passed: &mut usize,
    ) -> Result<(), Box<Response<Body>>> {
        for AddedFilter { filter, .. } in self.at(place) {
            match filter.request(&request).by(deadline).await {
                Ok(Ok(())) => *passed += 1,
                Ok(Err(refusal)) => return Err(Box::new(refused(filter.name(), refusal))),
                Err(_) => {
                    tracing::error!(filter = filter.name(), "a filter is too slow");
                    return Err(Box::new(out_of_time()));
                }
            }
        }
        Ok(())
    }

    /// Shows a response to the filters that its request has passed, the last one first.
    pub(super) fn change(
        &self,
        passed: usize,
        request: FilterRequest<'_>,
        response: &mut Response<Body>,
    ) {
        let code = response.status();
        // Places are passed in their order, so these are the first of all.
        for AddedFilter { filter, .. } in self.0[..passed].iter().rev() {
            filter.response(&request, code, response.headers_mut());
        }
    }
}

/// The response of a filter; hyper would hand over the connection after one that is informational.
fn refused(name: &str, refusal: PathResponse) -> Response<Body> {
    refusal.into_final().unwrap_or_else(|code| {
        tracing::error!(filter = name, %code, "a filter responded with a status that is none of a response");
        plain(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error\n")
    })
}
