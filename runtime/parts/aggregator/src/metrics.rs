//! Which APIServices are not available, for `/metrics`. The names and labels are those of kube-aggregator.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use apiloom_client::metrics::{Collect, Registry, Samples};
use parking_lot::Mutex;

/// The availability of APIServices, as this server knows it.
#[derive(Default)]
pub(super) struct AvailabilityMetrics(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Whether the APIServices, by name, are available.
    present: BTreeMap<String, bool>,
    /// How often those with a name became unavailable, by name and reason.
    failures: BTreeMap<(String, &'static str), u64>,
}

impl AvailabilityMetrics {
    /// Adds the metrics to a registry.
    pub(super) fn new(registry: &Registry) -> Self {
        let metrics = Self::default();
        registry.register(Collector(Arc::downgrade(&metrics.0)));
        metrics
    }

    /// Replaces the APIServices that there are.
    pub(super) fn set<'a>(&self, present: impl Iterator<Item = (&'a str, bool)>) {
        let present = present.map(|(name, is_available)| (name.to_owned(), is_available));
        self.0.lock().present = present.collect();
    }

    /// Counts an APIService that was available and is not any more.
    pub(super) fn failed(&self, name: &str, reason: &'static str) {
        let mut state = self.0.lock();
        *state.failures.entry((name.to_owned(), reason)).or_default() += 1;
    }
}

/// Reports the metrics as long as the controller runs.
struct Collector(Weak<Mutex<State>>);

impl Collect for Collector {
    fn collect(&self, samples: &mut Samples) {
        let Some(state) = self.0.upgrade() else {
            return;
        };
        let state = state.lock();
        for (name, is_available) in &state.present {
            samples.gauge(
                "aggregator_unavailable_apiservice",
                "Whether the version of an APIService cannot be used, by name",
                &[("name", name)],
                f64::from(u8::from(!is_available)),
            );
        }
        for ((name, reason), count) in &state.failures {
            samples.counter(
                "aggregator_unavailable_apiservice_total",
                "Times that the version of an APIService became unavailable, by name and reason",
                &[("name", name), ("reason", reason)],
                *count,
            );
        }
    }
    fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_gone_has_no_gauge_but_its_count() {
        let registry = Registry::new();
        let metrics = AvailabilityMetrics::new(&registry);
        metrics.set([("v1.a", true), ("v1.b", false)].into_iter());
        metrics.failed("v1.b", "MissingEndpoints");
        metrics.failed("v1.b", "MissingEndpoints");
        let lines = || -> Vec<String> {
            let text = registry.text();
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            lines.map(str::to_owned).collect()
        };
        let counted =
            r#"aggregator_unavailable_apiservice_total{name="v1.b",reason="MissingEndpoints"} 2"#;
        let [a, b] = ["v1.a\"} 0", "v1.b\"} 1"]
            .map(|end| format!("aggregator_unavailable_apiservice{{name=\"{end}"));
        assert_eq!(lines(), [&a, &b, counted]);
        metrics.set([("v1.a", true)].into_iter());
        assert_eq!(lines(), [&a, counted]);
        drop(metrics);
        assert!(lines().is_empty());
    }
}
