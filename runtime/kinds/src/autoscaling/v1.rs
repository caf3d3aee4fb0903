//! Version v1 of the group autoscaling.

use apiloom_macros::{api, resource};
use apiloom_meta::ObjectMeta;

/// Scale represents a scaling request for a resource.
#[resource(group = "autoscaling", version = "v1", simple, crate = apiloom_meta, proto(package = "k8s.io.api.autoscaling.v1"),
    printcolumn(name = "Desired", path = spec.replicas, doc = "Number of desired replicas"),
    printcolumn(name = "Available", path = status.replicas, doc = "Number of actual replicas"),
    printcolumn(name = "Age", path = metadata.creation_timestamp,
        doc = "CreationTimestamp is a timestamp representing the server time when this object was created."))]
#[derive(Default)]
pub struct Scale {
    /// Standard object metadata.
    #[api(proto = 1)]
    pub metadata: ObjectMeta,
    /// Spec defines the behavior of the scale.
    #[api(proto = 2, default = ScaleSpec::default())]
    pub spec: ScaleSpec,
    /// Status is the current status of the scale. Read-only.
    #[api(proto = 3, default = ScaleStatus::default())]
    pub status: ScaleStatus,
}

/// ScaleSpec describes the attributes of a scale subresource.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct ScaleSpec {
    /// Replicas is the desired number of instances for the scaled object.
    #[api(proto(number = 1, omit_empty))]
    pub replicas: Option<i32>,
}

/// ScaleStatus represents the current status of a scale subresource.
#[api(crate = apiloom_meta)]
#[derive(Default)]
pub struct ScaleStatus {
    /// Replicas is the actual number of observed instances of the scaled object.
    #[api(proto = 1, default = 0)]
    pub replicas: i32,
    /// Selector is the label query over pods that should match the replicas count, in the form of text for clients that
    /// cannot read a LabelSelector.
    #[api(proto(number = 2, omit_empty))]
    pub selector: Option<String>,
}
