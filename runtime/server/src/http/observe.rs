//! Counts requests: each once, when its answer is written to the end, or when it is given up before.
//!
//! Only what is served is counted under its own name; paths that lead nowhere are not counted, so that no client can
//! make up series.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use apiloom_meta::ResourceDef;
use apiloom_meta::kind::Verb;
use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::time::Instant;

use super::metrics::{Metrics, RequestLabels, RequestOutcome, Running};
use super::{Body, CutOff, RequestInfo};

/// A request that is being worked on; counted when this is dropped.
pub(super) struct Observed {
    /// `None` for what is not counted after all.
    metrics: Option<Arc<Metrics>>,
    labels: RequestLabels,
    begun: Instant,
    /// The length of the request's body, when it is known and not zero.
    request_bytes: Option<u64>,
    /// What became of it so far. Without an answer its time ran out, or its client went away; both count as 504.
    code: StatusCode,
    response_bytes: u64,
    _running: Option<Running>,
}

/// What a request for a resource is counted under. Holds nothing that a client made up.
pub(super) fn resource_labels(
    def: &ResourceDef,
    verb: Verb,
    info: &RequestInfo,
    dry_run: bool,
) -> RequestLabels {
    let label = match verb {
        Verb::Create => "POST",
        Verb::Get => "GET",
        Verb::List => "LIST",
        Verb::Watch => "WATCH",
        Verb::Update => "PUT",
        Verb::Patch => "PATCH",
        Verb::Delete => "DELETE",
        Verb::DeleteCollection => "DELETECOLLECTION",
    };
    let scope = match verb {
        Verb::Create => "resource",
        _ if !info.name.is_empty() => "resource",
        _ if info.in_namespace => "namespace",
        _ => "cluster",
    };
    let mut known = def.served_subresources();
    let subresource = known.find(|subresource| subresource.name == info.subresource);
    RequestLabels {
        verb: label,
        group: def.group.clone(),
        version: def.version.clone(),
        resource: def.plural.clone(),
        subresource: subresource.map(|sub| sub.name.clone()).unwrap_or_default(),
        scope,
        dry_run,
    }
}

impl Observed {
    /// Begins to observe a request. `running` ends with it.
    pub(super) fn new(
        metrics: &Arc<Metrics>,
        labels: RequestLabels,
        request_bytes: Option<u64>,
        running: Option<Running>,
    ) -> Self {
        Self {
            metrics: Some(Arc::clone(metrics)),
            labels,
            begun: Instant::now(),
            request_bytes,
            code: StatusCode::GATEWAY_TIMEOUT,
            response_bytes: 0,
            _running: running,
        }
    }

    /// Does not count a request that leads nowhere.
    pub(super) fn leads_nowhere(mut self) {
        self.metrics = None;
    }

    /// Counts an answer whose bytes are all here.
    pub(super) fn answered(mut self, response: &Response<Body>) {
        self.code = response.status();
        self.response_bytes = response.body().size_hint().exact().unwrap_or(0);
    }

    /// Counts an answer: at once when its bytes are all here, otherwise when its body ends or is dropped.
    pub(super) fn answer(mut self, response: Response<Body>) -> Response<Body> {
        if response.body().size_hint().exact().is_some() {
            self.answered(&response);
            return response;
        }
        self.code = response.status();
        let counted = |body| Counted {
            body,
            observed: self,
        };
        response.map(|body| counted(body).boxed_unsync())
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        let Some(metrics) = &self.metrics else { return };
        let code = if std::thread::panicking() {
            StatusCode::INTERNAL_SERVER_ERROR
        } else {
            self.code
        };
        let outcome = RequestOutcome {
            code: code.as_u16(),
            duration: self.begun.elapsed(),
            request_bytes: self.request_bytes,
            response_bytes: self.response_bytes,
        };
        metrics.request(std::mem::take(&mut self.labels), &outcome);
    }
}

/// A body that is counted when it is gone.
struct Counted {
    body: Body,
    observed: Observed,
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = CutOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &frame {
            self.observed.response_bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
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
