//! Version v1 of the core group.

#[cfg(feature = "core")]
mod config_map;
#[cfg(feature = "core")]
mod event;
#[cfg(feature = "core")]
mod reference;
#[cfg(feature = "core")]
mod secret;
#[cfg(feature = "core")]
mod service_account;

#[cfg(feature = "core")]
pub use config_map::ConfigMap;
#[cfg(feature = "core")]
pub use event::{Event, EventSeries, EventSource};
#[cfg(feature = "core")]
pub use reference::ObjectReference;
#[cfg(feature = "core")]
pub use secret::Secret;
#[cfg(feature = "core")]
pub use service_account::{LocalObjectReference, ServiceAccount};

use apiloom_macros::{api, resource};
use apiloom_meta::{ObjectMeta, Time};

use crate::condition::status_condition;

/// Namespace provides a scope for names. Use of multiple namespaces is optional.
#[resource(group = "", version = "v1", cluster, crate = apiloom_meta, proto(package = "k8s.io.api.core.v1"), shortname = "ns",
    verbs(skip = [delete_collection]), name_format = dns_label, generation = none, strategic_merge_patch,
    subresource(name = "status", writes = with_metadata(status)),
    subresource(name = "finalize", verbs = [update], writes = also(spec)),
    deletion(finalizers = spec.finalizers, phase = status.phase), selectable(status.phase),
    printcolumn(name = "Status", path = status.phase, doc = "The status of the namespace"),
    printcolumn(name = "Age", path = metadata.creation_timestamp,
        doc = "CreationTimestamp is a timestamp representing the server time when this object was created."))]
#[derive(Default)]
pub struct Namespace {
    /// Standard object's metadata.
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    /// Spec defines the behavior of the Namespace.
    #[api(proto = 2, default = NamespaceSpec::default())]
    pub spec: NamespaceSpec,
    /// Status describes the current status of a Namespace.
    #[api(proto = 3)]
    pub status: NamespaceStatus,
}

/// NamespaceSpec describes the attributes on a Namespace.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct NamespaceSpec {
    /// Finalizers is an opaque list of values that must be empty to permanently remove object from storage.
    #[api(proto = 1)]
    pub finalizers: Vec<String>,
}

/// NamespaceStatus is information about the current status of a Namespace.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct NamespaceStatus {
    /// Phase is the current lifecycle phase of the namespace.
    #[api(proto(number = 1, omit_empty))]
    pub phase: Option<String>,
    /// Represents the latest available observations of a namespace's current state.
    #[api(proto = 2, list = map(condition_type), patch(merge))]
    pub conditions: Vec<NamespaceCondition>,
}

/// NamespaceCondition contains details about state of namespace.
#[api(crate = apiloom_meta)]
pub struct NamespaceCondition {
    /// Type of namespace controller condition.
    #[api(proto = 1, json = "type", default = String::new(), present)]
    pub condition_type: String,
    /// Status of the condition, one of True, False, Unknown.
    #[api(proto = 2, default = String::new(), present)]
    pub status: String,
    /// Last time the condition transitioned from one status to another.
    #[api(proto = 4)]
    pub last_transition_time: Option<Time>,
    /// Unique, one-word, CamelCase reason for the condition's last transition.
    #[api(proto(number = 5, omit_empty))]
    pub reason: Option<String>,
    /// Human-readable message indicating details about last transition.
    #[api(proto(number = 6, omit_empty))]
    pub message: Option<String>,
}

status_condition!(NamespaceCondition);
