//! Counts each request once, when its response is completely sent, or abandoned.
//!
//! Only served paths are counted by name; requests for unknown paths are not counted, so that clients cannot create
//! series.

use std::sync::Arc;

use apiloom_meta::ResourceDef;
use apiloom_meta::kind::{SmolStr, Verb};
use bytes::Bytes;
use http::{Method, Response, StatusCode};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;
use tokio::time::Instant;

use super::metrics::{Metrics, RequestGuard, RequestLabels, RequestOutcome, verb_label};
use crate::request::request_info::RequestInfo;
use crate::request::verb_form::form;
use crate::response::Body;

/// A request in progress; counted when this is dropped.
pub(crate) struct Observation {
    metrics: Arc<Metrics>,
    labels: RequestLabels,
    begun: Instant,
    /// Length of the request body, if it is known and not zero.
    request_bytes: Option<u64>,
    /// Status code so far. Without a response the request timed out or its client disconnected; both count as 504.
    code: StatusCode,
    response_bytes: u64,
    _running: Option<RequestGuard>,
}

/// The labels of a request for a resource. Contains no text made up by the client.
pub(crate) fn resource_labels(
    def: &ResourceDef,
    verb: Verb,
    info: &RequestInfo,
    dry_run: bool,
) -> RequestLabels {
    let label = form(verb).label;
    let mut known = def.served_subresources();
    let subresource = known.find(|subresource| subresource.name == info.subresource);
    let label = if subresource.is_some_and(|sub| sub.connects) {
        "CONNECT"
    } else {
        label
    };
    let scope = match verb {
        Verb::Create => "resource",
        _ if !info.name.is_empty() => "resource",
        _ if info.in_namespace => "namespace",
        _ => "cluster",
    };
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

/// The labels of a request for a path that is none of a resource. The path must be served, not a text of the client.
pub(crate) fn path_labels(method: &Method, path: &str) -> RequestLabels {
    RequestLabels {
        verb: verb_label(method.as_str()),
        subresource: SmolStr::new(path),
        ..RequestLabels::default()
    }
}

impl Observation {
    /// Starts to observe a request. `running` ends with it.
    pub(crate) fn new(
        metrics: &Arc<Metrics>,
        labels: RequestLabels,
        request_bytes: Option<u64>,
        running: Option<RequestGuard>,
    ) -> Self {
        Self {
            metrics: Arc::clone(metrics),
            labels,
            begun: Instant::now(),
            request_bytes,
            code: StatusCode::GATEWAY_TIMEOUT,
            response_bytes: 0,
            _running: running,
        }
    }

    /// Counts a response that is complete in memory.
    pub(crate) fn answered(mut self, response: &Response<Body>) {
        self.code = response.status();
        self.response_bytes = response.body().size_hint().exact().unwrap_or(0);
    }

    /// Counts a response: immediately if it is complete in memory, otherwise when its body ends or is dropped.
    pub(crate) fn answer(mut self, response: Response<Body>) -> Response<Body> {
        if response.body().size_hint().exact().is_some() {
            self.answered(&response);
            return response;
        }
        self.code = response.status();
        response.map(|body| {
            // Dropped with the body.
            let count = move |frame: &Frame<Bytes>| self.sent(frame);
            body.inspect_frame(count).boxed_unsync()
        })
    }

    /// Counts the bytes of a frame of the response.
    fn sent(&mut self, frame: &Frame<Bytes>) {
        self.response_bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
    }

    /// Runs the task that serves an upgraded connection, and counts the response when it ends.
    pub(crate) fn upgrade(
        mut self,
        response: Response<Body>,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> Response<Body> {
        self.code = response.status();
        tokio::spawn(async move {
            task.await;
            drop(self);
        });
        response
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
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
        self.metrics
            .request(std::mem::take(&mut self.labels), &outcome);
    }
}
