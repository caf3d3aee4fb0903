//! `/metrics`, with the metric names and labels of kube-apiserver, for existing dashboards and alerts.
//!
//! Counting a request allocates nothing once its series exists: series are looked up by borrowed strings. Their number
//! is limited.

mod bounded;
mod conversions;
mod exposition;
mod process;
mod resources;
mod series;

use std::sync::Arc;

use apiloom_meta::GroupResource;
use http::Response;
use http::request::Parts;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;

use self::bounded::{BoundedFamily, LabelSet};
pub use self::conversions::{ConversionFailure, ConversionMetrics};
use self::series::Requests;
pub(crate) use self::series::verb_label;
pub use self::series::{RequestLabels, RequestOutcome};
use crate::ServerInfo;
use crate::request::accept::Accepts;
use crate::response::{Body, ok};

/// The metrics of a server.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Requests,
    inflight: Family<LabelSet<1>, Gauge>,
    watch_events: BoundedFamily<3, Counter>,
    deprecated: BoundedFamily<5, Gauge>,
    objects: BoundedFamily<2, Gauge>,
    objects_by_old_name: BoundedFamily<1, Gauge>,
    store_sizes: Family<LabelSet<1>, Gauge>,
    conversions: ConversionMetrics,
    /// Those of the server's own controllers, with the names of client-go.
    of_controllers: apiloom_client::metrics::Registry,
}

/// Whether a request is mutating.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// get, list, watch.
    ReadOnly,
    /// All other verbs.
    Mutating,
}

fn object_labels(resource: &GroupResource) -> LabelSet<2> {
    [
        ("group", resource.group.clone().into()),
        ("resource", resource.resource.clone().into()),
    ]
}

/// The name of the resource: `flunders.wardle.example.com`.
fn stored_object_labels(resource: &GroupResource) -> LabelSet<1> {
    [("resource", resource.to_string().into())]
}

fn build_labels(info: &ServerInfo) -> LabelSet<9> {
    let version = super::version::VersionInfo::of(info);
    [
        ("build_date", version.build_date.into()),
        ("compiler", version.compiler.into()),
        ("git_commit", version.git_commit.into()),
        ("git_tree_state", version.git_tree_state.into()),
        ("git_version", version.git_version.into()),
        ("go_version", version.go_version.into()),
        ("major", version.major.into()),
        ("minor", version.minor.into()),
        ("platform", version.platform.into()),
    ]
}

/// A request in progress: decrements its gauge when it is dropped.
#[derive(Debug)]
#[must_use = "the request counts as ended when this is dropped"]
pub struct RequestGuard(Gauge);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Counter of the events sent to watchers of one resource.
#[derive(Clone, Debug)]
pub struct WatchEvents(Counter);

impl WatchEvents {
    /// Counts one event.
    pub fn sent(&self) {
        self.0.inc();
    }
}

impl Metrics {
    /// Metrics with all counters at zero.
    pub fn new(info: &ServerInfo) -> Self {
        Self::with_series(info, bounded::max_series())
    }

    /// The same, with a limit for the series of each family.
    fn with_series(info: &ServerInfo, max_series: usize) -> Self {
        let mut registry = Registry::default();
        let requests = Requests::register(&mut registry, max_series);
        let inflight = Family::<LabelSet<1>, Gauge>::default();
        registry.register(
            "apiserver_current_inflight_requests",
            "Requests being worked on, by kind of request",
            inflight.clone(),
        );
        let watch_events = Family::<LabelSet<3>, Counter>::default();
        registry.register(
            "apiserver_watch_events",
            "Events sent to watchers, by resource",
            watch_events.clone(),
        );
        let deprecated = Family::<LabelSet<5>, Gauge>::default();
        registry.register(
            "apiserver_requested_deprecated_apis",
            "DeprecatedLabels resources that were asked for, and the release that will not have them",
            deprecated.clone(),
        );
        let build = Family::<LabelSet<9>, ConstGauge>::new_with_constructor(|| ConstGauge::new(1));
        drop(build.get_or_create(&build_labels(info)));
        registry.register(
            "kubernetes_build_info",
            "Always 1; the labels say which build this is",
            build,
        );
        let objects = Family::<LabelSet<2>, Gauge>::default();
        registry.register(
            "apiserver_resource_objects",
            "Objects stored when they were last counted, by resource; -1 when they could not be counted",
            objects.clone(),
        );
        let objects_by_old_name = Family::<LabelSet<1>, Gauge>::default();
        registry.register(
            "apiserver_storage_objects",
            "The same as apiserver_resource_objects, which replaces it",
            objects_by_old_name.clone(),
        );
        let store_sizes = Family::<LabelSet<1>, Gauge>::default();
        registry.register(
            "apiserver_storage_size_bytes",
            "Bytes that a store took when it was last asked, by store",
            store_sizes.clone(),
        );
        let conversions = ConversionMetrics::register(&mut registry, max_series);
        registry.register_collector(Box::new(process::Process));
        for kind in [RequestKind::ReadOnly, RequestKind::Mutating] {
            drop(inflight.get_or_create(&kind.labels()));
        }
        Self {
            registry,
            requests,
            inflight,
            watch_events: BoundedFamily::new(watch_events, max_series),
            deprecated: BoundedFamily::new(deprecated, max_series),
            objects: BoundedFamily::new(objects, max_series),
            objects_by_old_name: BoundedFamily::new(objects_by_old_name, max_series),
            store_sizes,
            conversions,
            of_controllers: apiloom_client::metrics::Registry::new(),
        }
    }

    /// Metrics with all counters at zero, and those of a registry's resources.
    pub fn of_registry(info: &ServerInfo, resources: Arc<apiloom_registry::Registry>) -> Self {
        let mut metrics = Self::new(info);
        let collector = resources::Resources(resources);
        metrics.registry.register_collector(Box::new(collector));
        metrics
    }

    /// Sets the number of stored objects of a resource; `None` if counting failed. A resource beyond the limit for series has none.
    pub fn set_objects(&self, resource: &GroupResource, count: Option<u64>) {
        let count = count.map_or(-1, |count| i64::try_from(count).unwrap_or(i64::MAX));
        if let Some(objects) = self.objects.within_room(&object_labels(resource)) {
            objects.set(count);
        }
        let labels = stored_object_labels(resource);
        if let Some(objects) = self.objects_by_old_name.within_room(&labels) {
            objects.set(count);
        }
    }

    /// Forgets the number of stored objects of a resource that is served no more.
    pub fn forget_objects(&self, resource: &GroupResource) {
        self.objects.remove(&object_labels(resource));
        self.objects_by_old_name
            .remove(&stored_object_labels(resource));
    }

    /// Sets the size of a store in bytes.
    pub fn set_store_size(&self, number: usize, bytes: u64) {
        let labels = [("storage_cluster_id", format!("store-{number}").into())];
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.store_sizes.get_or_create(&labels).set(bytes);
    }

    /// Where the server's own controllers add their metrics.
    pub fn of_controllers(&self) -> &apiloom_client::metrics::Registry {
        &self.of_controllers
    }

    /// Where conversions by webhooks are counted.
    pub fn conversions(&self) -> &ConversionMetrics {
        &self.conversions
    }

    /// Counts a finished request. `labels.resource` must be a served resource, not a name from the client.
    pub fn request(&self, labels: RequestLabels, outcome: &RequestOutcome) {
        self.requests.finished(labels, outcome);
    }

    /// Counts a request that was rejected with this code before it was processed. Labels as in [`Metrics::request`].
    pub fn refused(&self, labels: &RequestLabels, code: u16) {
        self.requests.refused(labels, code);
    }

    /// Counts a request that the server aborted with this code, in addition to [`Metrics::request`].
    pub fn terminated(&self, labels: &RequestLabels, code: u16) {
        self.requests.terminated(labels, code);
    }

    /// Counts a request in progress until the value is dropped.
    pub fn begin(&self, kind: RequestKind) -> RequestGuard {
        running(self.inflight.get_or_create_owned(&kind.labels()))
    }

    /// Counts a long-running request, such as a watch, until the value is dropped.
    pub fn begin_long_running(&self, labels: &RequestLabels) -> RequestGuard {
        running(self.requests.long_running(labels))
    }

    /// The event counter of a resource; looked up once per watch.
    pub fn watch_events(&self, group: &str, version: &str, resource: &str) -> WatchEvents {
        let labels = [
            ("group", group.to_owned().into()),
            ("version", version.to_owned().into()),
            ("resource", resource.to_owned().into()),
        ];
        WatchEvents(self.watch_events.metric(&labels))
    }

    /// Records a request for a deprecated version; `removed_release` is `MAJOR.MINOR` or empty.
    pub fn requested_deprecated(&self, labels: &RequestLabels, removed_release: &str) {
        let labels = [
            ("group", labels.group.to_string().into()),
            ("version", labels.version.to_string().into()),
            ("resource", labels.resource.to_string().into()),
            ("subresource", labels.subresource.to_string().into()),
            ("removed_release", removed_release.to_owned().into()),
        ];
        self.deprecated.metric(&labels).set(1);
    }

    /// Responds to `/metrics`; `None` for other paths.
    pub fn respond(&self, request: &Parts, accepts: &Accepts<'_>) -> Option<Response<Body>> {
        if request.uri.path() != "/metrics" {
            return None;
        }
        const OPEN_METRICS: &str = "application/openmetrics-text";
        let further = self.of_controllers.text();
        Some(match accepts.choose(&["text/plain", OPEN_METRICS]) {
            Some(OPEN_METRICS) => ok(
                exposition::OPEN_METRICS,
                exposition::open_metrics(&self.registry, &further),
            ),
            _ => ok(exposition::TEXT, exposition::text(&self.registry, &further)),
        })
    }
}

fn running(gauge: Gauge) -> RequestGuard {
    gauge.inc();
    RequestGuard(gauge)
}

impl RequestKind {
    fn labels(self) -> LabelSet<1> {
        let kind = match self {
            Self::ReadOnly => "readOnly",
            Self::Mutating => "mutating",
        };
        [("request_kind", kind.into())]
    }
}

#[cfg(test)]
mod tests;
