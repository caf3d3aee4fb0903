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
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;

use self::bounded::{BoundedFamily, Labels};
#[cfg(feature = "apis-apiextensions")]
pub(crate) use self::conversions::ConversionFailure;
pub(crate) use self::conversions::ConversionMetrics;
use self::series::Requests;
pub(in crate::http) use self::series::verb_label;
pub use self::series::{RequestLabels, RequestOutcome};
use crate::http::ServerInfo;
use crate::http::request::accept::Accepts;
use crate::http::response::{Body, ok};

/// The metrics of a server.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Requests,
    inflight: Family<InflightLabels, Gauge>,
    watch_events: BoundedFamily<Resource, Counter>,
    deprecated: BoundedFamily<DeprecatedLabels, Gauge>,
    objects: BoundedFamily<ObjectLabels, Gauge>,
    objects_by_old_name: BoundedFamily<StoredObjectLabels, Gauge>,
    store_sizes: Family<Store, Gauge>,
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

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InflightLabels {
    request_kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Resource {
    group: String,
    version: String,
    resource: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DeprecatedLabels {
    group: String,
    version: String,
    resource: String,
    subresource: String,
    removed_release: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BuildInfo {
    build_date: String,
    compiler: String,
    git_commit: String,
    git_tree_state: String,
    git_version: String,
    go_version: String,
    major: String,
    minor: String,
    platform: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ObjectLabels {
    group: String,
    resource: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StoredObjectLabels {
    /// Name of the resource: `flunders.wardle.example.com`.
    resource: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Store {
    /// Id of the store: `store-0`.
    storage_cluster_id: String,
}

/// The group of all series beyond the limit.
const OTHER: &str = "other";

impl Labels for Resource {
    fn other(&self) -> Self {
        Self {
            group: OTHER.to_owned(),
            version: String::new(),
            resource: String::new(),
        }
    }
}

impl Labels for DeprecatedLabels {
    fn other(&self) -> Self {
        Self {
            group: OTHER.to_owned(),
            version: String::new(),
            resource: String::new(),
            subresource: String::new(),
            removed_release: String::new(),
        }
    }
}

impl ObjectLabels {
    fn of(resource: &GroupResource) -> Self {
        Self {
            group: resource.group.clone(),
            resource: resource.resource.clone(),
        }
    }
}

impl StoredObjectLabels {
    fn of(resource: &GroupResource) -> Self {
        Self {
            resource: resource.to_string(),
        }
    }
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
        let inflight = Family::<InflightLabels, Gauge>::default();
        registry.register(
            "apiserver_current_inflight_requests",
            "Requests being worked on, by kind of request",
            inflight.clone(),
        );
        let watch_events = Family::<Resource, Counter>::default();
        registry.register(
            "apiserver_watch_events",
            "Events sent to watchers, by resource",
            watch_events.clone(),
        );
        let deprecated = Family::<DeprecatedLabels, Gauge>::default();
        registry.register(
            "apiserver_requested_deprecated_apis",
            "DeprecatedLabels resources that were asked for, and the release that will not have them",
            deprecated.clone(),
        );
        let build = Family::<BuildInfo, ConstGauge>::new_with_constructor(|| ConstGauge::new(1));
        drop(build.get_or_create(&BuildInfo::of(info)));
        registry.register(
            "kubernetes_build_info",
            "Always 1; the labels say which build this is",
            build,
        );
        let objects = Family::<ObjectLabels, Gauge>::default();
        registry.register(
            "apiserver_resource_objects",
            "Objects stored when they were last counted, by resource; -1 when they could not be counted",
            objects.clone(),
        );
        let objects_by_old_name = Family::<StoredObjectLabels, Gauge>::default();
        registry.register(
            "apiserver_storage_objects",
            "The same as apiserver_resource_objects, which replaces it",
            objects_by_old_name.clone(),
        );
        let store_sizes = Family::<Store, Gauge>::default();
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
    pub fn of_registry(info: &ServerInfo, resources: Arc<crate::registry::Registry>) -> Self {
        let mut metrics = Self::new(info);
        let collector = resources::Resources(resources);
        metrics.registry.register_collector(Box::new(collector));
        metrics
    }

    /// Sets the number of stored objects of a resource; `None` if counting failed. A resource beyond the limit for series has none.
    pub fn set_objects(&self, resource: &GroupResource, count: Option<u64>) {
        let count = count.map_or(-1, |count| i64::try_from(count).unwrap_or(i64::MAX));
        if let Some(objects) = self.objects.within_room(&ObjectLabels::of(resource)) {
            objects.set(count);
        }
        let labels = StoredObjectLabels::of(resource);
        if let Some(objects) = self.objects_by_old_name.within_room(&labels) {
            objects.set(count);
        }
    }

    /// Forgets the number of stored objects of a resource that is served no more.
    pub fn forget_objects(&self, resource: &GroupResource) {
        self.objects.remove(&ObjectLabels::of(resource));
        let labels = StoredObjectLabels::of(resource);
        self.objects_by_old_name.remove(&labels);
    }

    /// Sets the size of a store in bytes.
    pub fn set_store_size(&self, number: usize, bytes: u64) {
        let labels = Store {
            storage_cluster_id: format!("store-{number}"),
        };
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.store_sizes.get_or_create(&labels).set(bytes);
    }

    /// Where the server's own controllers add their metrics.
    pub(crate) fn of_controllers(&self) -> &apiloom_client::metrics::Registry {
        &self.of_controllers
    }

    /// Where conversions by webhooks are counted.
    pub(crate) fn conversions(&self) -> &ConversionMetrics {
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
        let labels = Resource {
            group: group.to_owned(),
            version: version.to_owned(),
            resource: resource.to_owned(),
        };
        WatchEvents(self.watch_events.metric(&labels))
    }

    /// Records a request for a deprecated version; `removed_release` is `MAJOR.MINOR` or empty.
    pub fn requested_deprecated(&self, labels: &RequestLabels, removed_release: &str) {
        let labels = DeprecatedLabels {
            group: labels.group.to_string(),
            version: labels.version.to_string(),
            resource: labels.resource.to_string(),
            subresource: labels.subresource.to_string(),
            removed_release: removed_release.to_owned(),
        };
        self.deprecated.metric(&labels).set(1);
    }

    /// Responds to `/metrics`; `None` for other paths.
    pub(crate) fn respond(&self, request: &Parts, accepts: &Accepts<'_>) -> Option<Response<Body>> {
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
    fn labels(self) -> InflightLabels {
        InflightLabels {
            request_kind: match self {
                Self::ReadOnly => "readOnly",
                Self::Mutating => "mutating",
            },
        }
    }
}

impl BuildInfo {
    fn of(info: &ServerInfo) -> Self {
        let version = super::version::VersionInfo::of(info);
        Self {
            build_date: version.build_date.to_owned(),
            compiler: version.compiler.to_owned(),
            git_commit: version.git_commit.to_owned(),
            git_tree_state: version.git_tree_state.to_owned(),
            git_version: version.git_version,
            go_version: version.go_version.to_owned(),
            major: version.major.to_owned(),
            minor: version.minor.to_owned(),
            platform: version.platform,
        }
    }
}

#[cfg(test)]
mod tests;
