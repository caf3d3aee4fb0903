//! One request after the filters, and its form for the verbs of a resource.
//!
//! Every part is parsed once and typed: no code after the filters reads the query, `Accept` or the user from the
//! request again. The extensions of the request contain only hyper's [`OnUpgrade`](hyper::upgrade::OnUpgrade),
//! and over HTTP/2 what is held until the upgraded stream ends.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use apiloom_meta::{ApiError, Object, codec};
use apiloom_registry::audit::AuditRecord;
use apiloom_registry::auth::{Authenticated, Connection};
use apiloom_registry::{Catalog, Endpoint, RequestContext, WriteRequest};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Response};
use tokio::time::Instant;

use crate::observation::metrics::Metrics;
use crate::request::accept::Accepts;
use crate::request::query::Query;
use crate::request::request_info::RequestInfo;
use crate::request::timeout::{interrupt_at, request_timeout};
use crate::response::Body;
use crate::shape::body::{self, RequestBody};
use crate::shape::encode::Reply;
use crate::shape::error::{respond_as, status};
use crate::shape::format::Format;
use crate::shape::negotiate::negotiate_error;
use crate::streams::shutdown_signal::ShutdownSignal;

/// Properties of a request before any of it is parsed.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'r> {
    /// The connection that it came by.
    pub connection: &'r Connection,
    /// The client's `Audit-ID`, or a new one.
    pub audit_id: &'r HeaderValue,
    /// When it came.
    pub at: Instant,
}

/// One authenticated request with its parsed path and query.
#[derive(Debug)]
pub struct Call<'r> {
    /// How it came.
    pub arrival: Arrival<'r>,
    /// Method, URI and headers, without credentials.
    pub request: &'r Parts,
    /// Attributes of the request. The verb is the one that is authorized, executed and counted.
    pub info: Box<RequestInfo>,
    pub(crate) query: Query,
    pub(crate) accepts: Accepts<'r>,
    /// Who sent it.
    pub user: Authenticated,
    /// Deadline of the response; `None` for a long-running request, and before [`Call::set_deadline`].
    pub deadline: Option<Instant>,
    /// What its audit records; `None` if it is not audited.
    pub audit: Option<Arc<AuditRecord>>,
}

impl<'r> Call<'r> {
    /// Completes a request whose info has the query.
    pub(crate) fn new(
        arrival: Arrival<'r>,
        request: &'r Parts,
        info: Box<RequestInfo>,
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
            audit: None,
        }
    }

    /// Sets the deadline from the `timeout` parameter and the server's limit, `longest`.
    ///
    /// # Errors
    /// BadRequest if `timeout` is not a duration.
    pub fn set_deadline(&mut self, longest: Duration) -> Result<(), ApiError> {
        let timeout = request_timeout(&self.info, &self.query, longest)?;
        self.deadline = timeout.map(|timeout| self.arrival.at + timeout);
        if let Some(deadline) = self.deadline {
            interrupt_at(deadline);
        }
        Ok(())
    }

    /// Whether the path is that of a resource. A path that begins with two slashes is unknown.
    pub(crate) fn is_for_resource(&self) -> bool {
        self.info.is_resource_request && !self.info.path.starts_with("//")
    }

    /// Whether the path can be that of a document of the server.
    pub(crate) fn is_for_document(&self) -> bool {
        !self.info.is_resource_request && !self.info.path.starts_with("//")
    }

    /// The response to a failed request, in a format that its client accepts.
    pub fn respond(&self, error: &ApiError) -> Response<Body> {
        if let Some(audit) = &self.audit {
            audit.note_status(&status(error));
        }
        respond_as(error, negotiate_error(&self.accepts, &self.query))
    }
}

/// What all responses of a server share.
#[derive(Clone, Debug)]
pub(crate) struct Serving {
    /// Where requests are counted.
    pub(crate) metrics: Arc<Metrics>,
    /// Ends watches and streams.
    pub(crate) stopping: ShutdownSignal,
}

/// A request for a served resource, with a path and a method that it supports.
pub(crate) struct ResourceCall<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) endpoint: &'a Arc<Endpoint>,
    pub(crate) ctx: &'a RequestContext,
    pub(crate) request: &'a Parts,
    pub(crate) query: &'a Query,
    /// The negotiated form and format of the response.
    pub(crate) reply: Reply,
    /// The namespace in the path; `None` for cluster-scoped kinds and for all namespaces.
    pub(crate) namespace: Option<&'a str>,
    /// The name in the path; empty for collections.
    pub(crate) name: &'a str,
    /// The subresource in the path; empty for the object itself.
    pub(crate) subresource: &'a str,
    pub(crate) body: RequestBody,
    /// Address of the client; `None` for a request in process.
    pub(crate) peer: Option<IpAddr>,
    /// Signals when watches must end.
    pub(crate) stopping: ShutdownSignal,
    pub(crate) metrics: &'a Metrics,
}

impl ResourceCall<'_> {
    /// The request as the registry's writes take it, with the default options.
    pub(super) fn write_request(&self) -> WriteRequest<'_> {
        WriteRequest::new(self.ctx, self.namespace, self.name).at(self.subresource)
    }

    /// Notes the object of the body for the audit.
    pub(super) fn audit_object(&self, object: &Object) {
        if let Some(audit) = self.ctx.audit() {
            let schema = self.endpoint.input(self.subresource).schema();
            self.ctx.work(|| audit.note_object(object, schema));
        }
    }

    /// Converts the body with an object to a format from which it can be decoded, and reserves the memory of that.
    ///
    /// # Errors
    /// As [`body::document`].
    pub(crate) async fn document(
        &mut self,
        format: &dyn Format,
        body: Bytes,
    ) -> Result<(Bytes, codec::Format), ApiError> {
        let own = self.endpoint.input(self.subresource).def().protobuf;
        let (bytes, format) = body::document(format, body, self.catalog, own)?;
        let resource = self.endpoint.resource();
        resource.reserve(self.ctx, bytes.len()).await;
        Ok((bytes, format))
    }

    /// Reads the body and reserves the memory of its object, and a thread if it is large or may become so.
    pub(super) async fn read_body(&mut self) -> Result<Bytes, ApiError> {
        let bytes = body::read(std::mem::take(&mut self.body)).await?;
        let resource = self.endpoint.resource();
        let size = body::expanded_bytes(&self.request.headers, &bytes);
        resource.reserve(self.ctx, size).await;
        Ok(bytes)
    }
}
