//! Counts requests: each once, when its answer is written to the end or given up.
//!
//! Only what is served is counted under its own name; paths that lead nowhere are not counted, so that no client can
//! make up series.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use apiloom_meta::ResourceDef;
use bytes::Bytes;
use http::Response;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::time::Instant;

use super::metrics::{Metrics, RequestLabels, RequestOutcome, Running};
use super::route::Operation;
use super::served::subresources;
use super::{Body, RequestInfo};

/// A request that is being worked on.
pub(super) struct Observed<L> {
    pub(super) metrics: Arc<Metrics>,
    pub(super) labels: L,
    pub(super) begun: Instant,
    /// The length of the request's body, when it is known and not zero.
    pub(super) request_bytes: Option<u64>,
}

/// What a request for a resource is counted under. Holds nothing that a client made up.
pub(super) fn resource_labels(
    def: &ResourceDef,
    operation: Operation,
    info: &RequestInfo,
    dry_run: bool,
) -> RequestLabels<'static> {
    let verb = match operation {
        Operation::Create => "POST",
        Operation::Get => "GET",
        Operation::ListOrWatch if info.verb == "list" => "LIST",
        Operation::ListOrWatch | Operation::Watch => "WATCH",
        Operation::Update => "PUT",
        Operation::Patch => "PATCH",
        Operation::Delete => "DELETE",
        Operation::DeleteCollection => "DELETECOLLECTION",
    };
    let scope = match operation {
        Operation::Create => "resource",
        _ if !info.name.is_empty() => "resource",
        _ if info.in_namespace => "namespace",
        _ => "cluster",
    };
    let mut known = subresources(def);
    let subresource = known.find(|subresource| subresource.name == info.subresource);
    RequestLabels {
        verb,
        group: def.group,
        version: def.version,
        resource: def.plural,
        subresource: subresource.map(|s| s.name).unwrap_or_default(),
        scope,
        dry_run,
    }
}

impl Observed<RequestLabels<'_>> {
    fn record(&self, code: u16, response_bytes: u64) {
        let outcome = RequestOutcome {
            code,
            duration: self.begun.elapsed(),
            request_bytes: self.request_bytes,
            response_bytes,
        };
        self.metrics.request(&self.labels, &outcome);
    }

    /// Counts an answer whose bytes are all here.
    pub(super) fn answered(&self, response: &Response<Body>) {
        let bytes = response.body().size_hint().exact().unwrap_or(0);
        self.record(response.status().as_u16(), bytes);
    }
}

impl Observed<RequestLabels<'static>> {
    /// Counts an answer: at once when its bytes are all here, otherwise when its body ends or is dropped.
    /// `running` goes with the body.
    pub(super) fn answer(
        self,
        response: Response<Body>,
        running: Option<Running>,
    ) -> Response<Body> {
        if response.body().size_hint().exact().is_some() {
            self.answered(&response);
            return response;
        }
        let code = response.status().as_u16();
        let counted = |body| Counted {
            body,
            observed: self,
            code,
            bytes: 0,
            _running: running,
        };
        response.map(|body| counted(body).boxed_unsync())
    }
}

/// A body that is counted when it is gone.
struct Counted {
    body: Body,
    observed: Observed<RequestLabels<'static>>,
    code: u16,
    bytes: u64,
    _running: Option<Running>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.observed.record(self.code, self.bytes);
    }
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &frame {
            self.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
