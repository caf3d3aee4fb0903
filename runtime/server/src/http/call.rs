//! One request, as the filters have understood it, and the same as the verbs of a resource get it.
//!
//! Everything is typed and decided once: nothing behind the filters reads a query, an `Accept` or a user from the request
//! again. The extensions of the request hold nothing of ours, only hyper's [`OnUpgrade`](hyper::upgrade::OnUpgrade).

use std::sync::Arc;

use apiloom_meta::ApiError;
use http::request::Parts;
use http::{HeaderValue, Response};
use tokio::time::Instant;

use super::accept::Accepts;
use super::body::RequestBody;
use super::encode::Reply;
use super::error::respond_as;
use super::metrics::Metrics;
use super::negotiate::negotiate_error;
use super::query::Query;
use super::stopping::Stopping;
use super::timeout::request_timeout;
use super::{Body, RequestInfo};
use crate::auth::{Authenticated, Connection};
use crate::registry::{Endpoint, RequestContext};

/// What is known of a request before anything of it is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'r> {
    pub(crate) connection: &'r Connection,
    /// The client's, or a new one.
    pub(crate) audit_id: &'r HeaderValue,
    pub(crate) at: Instant,
}

/// One request whose user is known, and whose path and query are read.
#[derive(Debug)]
pub(crate) struct Call<'r> {
    pub(crate) arrival: Arrival<'r>,
    /// Method, URI and headers, without credentials.
    pub(crate) request: &'r Parts,
    /// What it is about. Its verb is the one that is authorized, run and counted.
    pub(crate) info: RequestInfo,
    pub(crate) query: Query,
    pub(crate) accepts: Accepts<'r>,
    pub(crate) user: Authenticated,
    /// When it must be answered; `None` for a long-running one, and before [`Call::set_deadline`].
    pub(crate) deadline: Option<Instant>,
}

impl<'r> Call<'r> {
    /// A request whose info has read its query.
    pub(super) fn new(
        arrival: Arrival<'r>,
        request: &'r Parts,
        info: RequestInfo,
        query: Query,
        user: Authenticated,
    ) -> Self {
        Self {
            arrival,
            request,
            info,
            query,
            accepts: Accepts::new(&request.headers),
            user,
            deadline: None,
        }
    }

    /// Reads how long the request may take.
    ///
    /// # Errors
    /// BadRequest for a `timeout` that is no duration.
    pub(crate) fn set_deadline(&mut self) -> Result<(), ApiError> {
        let timeout = request_timeout(&self.info, &self.query)?;
        self.deadline = timeout.map(|timeout| self.arrival.at + timeout);
        Ok(())
    }

    /// The answer when the request failed, in a form that its client accepts.
    pub(crate) fn respond(&self, error: &ApiError) -> Response<Body> {
        respond_as(error, negotiate_error(&self.accepts, &self.query))
    }
}

/// A request for a resource that exists, by a path and a method that it has.
pub(super) struct ResourceCall<'a> {
    pub(super) endpoint: &'a Arc<Endpoint>,
    pub(super) ctx: &'a RequestContext,
    pub(super) request: &'a Parts,
    pub(super) query: &'a Query,
    /// What the client wants its answer to be.
    pub(super) reply: Reply,
    /// The namespace in the path; `None` for cluster-scoped kinds and for all namespaces.
    pub(super) namespace: Option<&'a str>,
    /// The name in the path; empty for collections.
    pub(super) name: &'a str,
    /// The subresource in the path; empty for the object itself.
    pub(super) subresource: &'a str,
    pub(super) body: RequestBody,
    /// Says when watches must end.
    pub(super) stopping: Stopping,
    pub(super) metrics: &'a Metrics,
}
