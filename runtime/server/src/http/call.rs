//! One request for a resource, as the verbs get it.

use std::sync::Arc;

use apiloom_meta::ApiError;
use http::request::Parts;

use super::body::RequestBody;
use super::encode::Reply;
use super::metrics::Metrics;
use super::negotiate::{Target, negotiate};
use super::params::{IncludeObject, include_object};
use super::query::Query;
use super::rendered::Rendered;
use super::stopping::Stopping;
use crate::registry::{Endpoint, RequestContext};

/// A request for a resource that exists, by a path and a method that it has.
pub(super) struct Call<'a> {
    pub(super) endpoint: &'a Arc<Endpoint>,
    pub(super) ctx: &'a RequestContext,
    pub(super) request: &'a Parts,
    pub(super) query: Query,
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
    /// What watchers were sent lately.
    pub(super) rendered: &'a Arc<Rendered>,
}

impl Call<'_> {
    /// What the client wants its answer to be.
    ///
    /// # Errors
    /// NotAcceptable, and BadRequest for a bad `includeObject`.
    pub(super) fn reply(&self) -> Result<Reply, ApiError> {
        let accepted = negotiate(self.request, &self.query)?;
        let include = match accepted.target {
            // Checked before anything is done, so that a bad word has no effect.
            Target::Table(_) => include_object(&self.query)?,
            Target::Object | Target::Partial(_) | Target::PartialList(_) => IncludeObject::Metadata,
        };
        Ok(Reply {
            endpoint: Arc::clone(self.endpoint),
            accepted,
            include,
        })
    }
}
