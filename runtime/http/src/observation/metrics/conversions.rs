//! The metrics of conversion webhooks.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::bounded::{BoundedFamily, LabelSet};

/// The buckets of the calls, in seconds, as in kube-apiserver.
const OF_CALLS: [f64; 15] = [
    0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0,
];

/// Why a conversion by a webhook failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConversionFailure {
    /// There was no response, or one that cannot be read.
    Call,
    /// The response is for another request, or says that the conversion failed.
    MalformedResponse,
    /// The response has another number of objects.
    PartialResponse,
    /// An object of the response is another one, or in another version.
    InvalidObject,
}

impl ConversionFailure {
    fn label(self) -> &'static str {
        match self {
            Self::Call => "conversion_webhook_call_failure",
            Self::MalformedResponse => "conversion_webhook_malformed_response_failure",
            Self::PartialResponse => "conversion_webhook_partial_response_failure",
            Self::InvalidObject => "conversion_webhook_invalid_converted_object_failure",
        }
    }
}

/// Counts conversions by webhooks. Clones count together.
#[derive(Clone, Debug)]
pub struct ConversionMetrics {
    calls: Family<LabelSet<2>, Counter>,
    durations: Family<LabelSet<2>, Histogram>,
    of_definitions: BoundedFamily<4, Histogram>,
}

fn of_calls() -> Histogram {
    Histogram::new(OF_CALLS)
}

fn of_definition() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}

impl ConversionMetrics {
    pub(super) fn register(registry: &mut Registry, max_series: usize) -> Self {
        let of_definitions: fn() -> Histogram = of_definition;
        let of_definitions = Family::new_with_constructor(of_definitions);
        let metrics = Self {
            calls: Family::default(),
            durations: Family::new_with_constructor(of_calls),
            of_definitions: BoundedFamily::new(of_definitions.clone(), max_series),
        };
        registry.register(
            "apiserver_conversion_webhook_request",
            "Calls of conversion webhooks, by success and type of failure",
            metrics.calls.clone(),
        );
        registry.register(
            "apiserver_conversion_webhook_duration_seconds",
            "How long calls of conversion webhooks took",
            metrics.durations.clone(),
        );
        registry.register(
            "apiserver_crd_conversion_webhook_duration_seconds",
            "How long conversions by webhooks took, by definition and versions",
            of_definitions,
        );
        metrics
    }

    /// Counts a call, with the cause of its failure.
    pub fn called(&self, elapsed: Duration, failure: Option<ConversionFailure>) {
        let result = if failure.is_some() {
            "failure"
        } else {
            "success"
        };
        let failure = failure.map_or("", ConversionFailure::label);
        let labels = [("result", result.into()), ("failure_type", failure.into())];
        self.calls.get_or_create(&labels).inc();
        let durations = self.durations.get_or_create(&labels);
        durations.observe(elapsed.as_secs_f64());
    }

    /// Counts a conversion of the objects of a definition, from a version to another one.
    pub fn converted(
        &self,
        definition: &str,
        [from, to]: [&str; 2],
        is_success: bool,
        elapsed: Duration,
    ) {
        let succeeded = if is_success { "true" } else { "false" };
        let labels = [
            ("crd_name", definition.to_owned().into()),
            ("from_version", from.to_owned().into()),
            ("to_version", to.to_owned().into()),
            ("succeeded", succeeded.into()),
        ];
        let durations = self.of_definitions.metric(&labels);
        durations.observe(elapsed.as_secs_f64());
    }
}
