//! Time series of requests, created once for each combination of labels.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use apiloom_meta::kind::{SmolStr, Verb};
use parking_lot::RwLock;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets, linear_buckets};
use prometheus_client::registry::Registry;

use super::bounded::{BoundedFamily, LabelSet};
use crate::request::verb_form::form;

/// Histogram bounds in seconds, those of kube-apiserver.
const LATENCY: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
];

/// The labels of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RequestLabels {
    /// The verb, as in the API (`create`) or in metrics (`POST`).
    pub verb: &'static str,
    /// Group; empty for core.
    pub group: SmolStr,
    /// Version.
    pub version: SmolStr,
    /// Plural; empty for requests that are not for a resource.
    pub resource: SmolStr,
    /// Subresource; the path for requests that are not for a resource.
    pub subresource: SmolStr,
    /// `cluster`, `namespace`, `resource`, or empty.
    pub scope: &'static str,
    /// Whether it is a dry run.
    pub dry_run: bool,
}

/// The result of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestOutcome {
    /// The status code.
    pub code: u16,
    /// Time from the first byte read to the last one written.
    pub duration: Duration,
    /// Size of the request body; `None` without one.
    pub request_bytes: Option<u64>,
    /// Size of the response body in bytes.
    pub response_bytes: u64,
}

/// The label for a verb; `other` for unknown ones.
pub(crate) fn verb_label(verb: &str) -> &'static str {
    let mut verbs = Verb::ALL
        .into_iter()
        .map(|of_kinds| (of_kinds.as_str(), form(of_kinds).label));
    if let Some((_, label)) = verbs.find(|(name, label)| verb == *name || verb == *label) {
        return label;
    }
    match verb {
        "watchlist" | "WATCHLIST" => "WATCH",
        "post" => "POST",
        "put" => "PUT",
        "apply" | "APPLY" => "APPLY",
        "connect" | "CONNECT" => "CONNECT",
        "head" | "HEAD" => "HEAD",
        "options" | "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}

const COMPONENT: &str = "apiserver";

impl RequestLabels {
    /// The labels of all requests beyond the limit for series.
    fn of_others() -> Self {
        Self {
            verb: "other",
            ..Self::default()
        }
    }

    fn body(&self) -> LabelSet<3> {
        [
            ("group", self.group.to_string().into()),
            ("resource", self.resource.to_string().into()),
            ("verb", verb_label(self.verb).into()),
        ]
    }

    fn long(&self) -> LabelSet<7> {
        [
            ("verb", verb_label(self.verb).into()),
            ("group", self.group.to_string().into()),
            ("version", self.version.to_string().into()),
            ("resource", self.resource.to_string().into()),
            ("subresource", self.subresource.to_string().into()),
            ("scope", self.scope.into()),
            ("component", COMPONENT.into()),
        ]
    }

    fn timed(&self) -> LabelSet<8> {
        let [
            verb,
            group,
            version,
            resource,
            subresource,
            scope,
            component,
        ] = self.long();
        let dry_run = ("dry_run", if self.dry_run { "All" } else { "" }.into());
        [
            verb,
            dry_run,
            group,
            version,
            resource,
            subresource,
            scope,
            component,
        ]
    }

    fn terminated(&self, code: u16) -> LabelSet<8> {
        with_code(self.long(), code)
    }

    fn counted(&self, code: u16) -> LabelSet<9> {
        with_code(self.timed(), code)
    }
}

/// The labels with a further one, which is the last.
fn with_code<const N: usize, const M: usize>(labels: LabelSet<N>, code: u16) -> LabelSet<M> {
    let code = ("code", code.to_string().into());
    let mut labels = labels.into_iter().chain([code]);
    std::array::from_fn(|_| labels.next().unwrap_or_default())
}

/// The series of one combination of labels and code.
struct RequestSeries {
    count: Counter,
    duration: Histogram,
    /// Only for writes; reads have no body.
    request_size: Option<Histogram>,
    /// Only for reads; the response to a write is about the size of its request.
    response_size: Option<Histogram>,
}

impl RequestSeries {
    fn finished(&self, outcome: &RequestOutcome) {
        self.count.inc();
        self.duration.observe(outcome.duration.as_secs_f64());
        if let (Some(sizes), Some(bytes)) = (&self.request_size, outcome.request_bytes) {
            sizes.observe(bytes as f64);
        }
        if let Some(sizes) = &self.response_size {
            sizes.observe(outcome.response_bytes as f64);
        }
    }
}

/// The metric families of requests, and the series that exist already.
pub(super) struct Requests {
    known: RwLock<HashMap<(RequestLabels, u16), Arc<RequestSeries>>>,
    max_series: usize,
    total: BoundedFamily<9, Counter>,
    duration: BoundedFamily<8, Histogram>,
    response_sizes: BoundedFamily<7, Histogram>,
    terminations: BoundedFamily<8, Counter>,
    long_running: BoundedFamily<7, Gauge>,
    body_sizes: BoundedFamily<3, Histogram>,
}

impl std::fmt::Debug for Requests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Requests")
            .field("series", &self.known.read().len())
            .finish_non_exhaustive()
    }
}

impl Requests {
    pub(super) fn register(registry: &mut Registry, max_series: usize) -> Self {
        let total = Family::default();
        registry.register(
            "apiserver_request",
            "Finished requests, by what they asked for and their code",
            Family::clone(&total),
        );
        let duration =
            Family::new_with_constructor((|| Histogram::new(LATENCY)) as fn() -> Histogram);
        registry.register(
            "apiserver_request_duration_seconds",
            "Seconds from a request to its answer",
            duration.clone(),
        );
        let sizes: fn() -> Histogram = || Histogram::new(exponential_buckets(1000.0, 10.0, 7));
        let response_sizes = Family::new_with_constructor(sizes);
        registry.register(
            "apiserver_response_sizes",
            "Bytes in answers to reads",
            response_sizes.clone(),
        );
        let bodies: fn() -> Histogram = || Histogram::new(linear_buckets(50_000.0, 100_000.0, 31));
        let body_sizes = Family::new_with_constructor(bodies);
        registry.register(
            "apiserver_request_body_size_bytes",
            "Bytes in the bodies of requests",
            body_sizes.clone(),
        );
        let terminations = Family::default();
        registry.register(
            "apiserver_request_terminations",
            "Requests that the server ended to protect itself: too many were in flight, or their time ran out",
            Family::clone(&terminations),
        );
        let long_running = Family::default();
        registry.register(
            "apiserver_longrunning_requests",
            "Long-running requests, such as watches, being served",
            Family::clone(&long_running),
        );
        Self {
            known: RwLock::default(),
            max_series,
            total: BoundedFamily::new(total, max_series),
            duration: BoundedFamily::new(duration, max_series),
            response_sizes: BoundedFamily::new(response_sizes, max_series),
            terminations: BoundedFamily::new(terminations, max_series),
            long_running: BoundedFamily::new(long_running, max_series),
            body_sizes: BoundedFamily::new(body_sizes, max_series),
        }
    }

    pub(super) fn finished(&self, labels: RequestLabels, outcome: &RequestOutcome) {
        // The key has the verb's label, so that each series has one entry. An unknown path is not used as a label,
        // since clients can make up any number of them.
        let leads_nowhere = labels.resource.is_empty() && outcome.code == 404;
        let labels = RequestLabels {
            verb: verb_label(labels.verb),
            subresource: if leads_nowhere {
                SmolStr::default()
            } else {
                labels.subresource
            },
            ..labels
        };
        let key = (labels, outcome.code);
        if let Some(series) = self.known.read().get(&key) {
            return series.finished(outcome);
        }
        self.make(key).finished(outcome);
    }

    fn make(&self, (mut labels, code): (RequestLabels, u16)) -> Arc<RequestSeries> {
        let mut known = self.known.write();
        if known.len() >= self.max_series {
            labels = RequestLabels::of_others();
        }
        let is_read = matches!(labels.verb, "GET" | "LIST");
        let is_write = matches!(
            labels.verb,
            "POST" | "PUT" | "PATCH" | "APPLY" | "DELETE" | "DELETECOLLECTION"
        );
        let entry = known.entry((labels, code));
        let labels = entry.key().0.clone();
        let make = || {
            Arc::new(RequestSeries {
                count: self.total.metric(&labels.counted(code)),
                duration: self.duration.metric(&labels.timed()),
                request_size: is_write.then(|| self.body_sizes.metric(&labels.body())),
                response_size: is_read.then(|| self.response_sizes.metric(&labels.long())),
            })
        };
        Arc::clone(entry.or_insert_with(make))
    }

    pub(super) fn refused(&self, labels: &RequestLabels, code: u16) {
        self.total.metric(&labels.counted(code)).inc();
        self.terminated(labels, code);
    }

    pub(super) fn terminated(&self, labels: &RequestLabels, code: u16) {
        self.terminations.metric(&labels.terminated(code)).inc();
    }

    pub(super) fn long_running(&self, labels: &RequestLabels) -> Gauge {
        self.long_running.metric(&labels.long())
    }
}
