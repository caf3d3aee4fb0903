//! The metrics of requests, with the names, labels and buckets of client-go.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use parking_lot::Mutex;

use super::histogram::{DurationHistogram, OF_REQUESTS};
use super::registry::Collect;
use super::samples::Samples;

/// Counts the requests of clients ([`ClientBuilder::metrics`](crate::ClientBuilder::metrics)): every attempt, also the
/// repeated ones. Clones count together.
#[derive(Clone, Debug)]
pub struct RequestMetrics(Arc<HostMetrics>);

/// The metrics of the requests to a host.
#[derive(Debug)]
struct HostMetrics {
    host: String,
    /// By the name of the method, since a `Method` has no order.
    of_methods: Mutex<BTreeMap<String, OfMethod>>,
}

#[derive(Debug)]
struct OfMethod {
    /// By status code; `None` without a response.
    counts: BTreeMap<Option<u16>, u64>,
    durations: DurationHistogram,
}

impl RequestMetrics {
    /// Counts nothing yet. The host is the value of a label, and may be empty.
    pub fn new(host: impl Into<String>) -> Self {
        Self(Arc::new(HostMetrics {
            host: host.into(),
            of_methods: Mutex::default(),
        }))
    }

    pub(crate) fn record(&self, method: &Method, code: Option<StatusCode>, took: Duration) {
        let mut of_methods = self.0.of_methods.lock();
        if !of_methods.contains_key(method.as_str()) {
            let new = OfMethod {
                counts: BTreeMap::new(),
                durations: DurationHistogram::with_bounds(&OF_REQUESTS),
            };
            of_methods.insert(method.as_str().to_owned(), new);
        }
        if let Some(of_method) = of_methods.get_mut(method.as_str()) {
            let code = code.map(|code| code.as_u16());
            *of_method.counts.entry(code).or_default() += 1;
            of_method.durations.observe(took);
        }
    }
}

impl Collect for RequestMetrics {
    fn collect(&self, samples: &mut Samples) {
        let host = &*self.0.host;
        for (method, of_method) in self.0.of_methods.lock().iter() {
            for (code, count) in &of_method.counts {
                let code = code.map_or_else(|| "<error>".to_owned(), |code| code.to_string());
                samples.counter(
                    "rest_client_requests_total",
                    "Requests, by status code, method and host; <error> without a response.",
                    &[("code", &code), ("host", host), ("method", method)],
                    *count,
                );
            }
            samples.histogram(
                "rest_client_request_duration_seconds",
                "How long requests took until their whole response, of streams until its headers.",
                &[("host", host), ("verb", method)],
                &of_method.durations,
            );
        }
    }
}
