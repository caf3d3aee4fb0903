//! The older version: other names, in another place.

use apiloom::prelude::*;

use crate::v1;

/// Workload runs copies of a program.
#[apiloom::resource(group = "work.example.com", version = "v1beta1", namespaced, spoke_of = v1::Workload, status,
    shortname = "wl", scale(spec = spec.size, status = status.size))]
pub struct Workload {
    pub metadata: ObjectMeta,
    pub spec: WorkloadSpec,
    pub status: Option<WorkloadStatus>,
}

/// WorkloadSpec is what is run.
#[apiloom::api(convert(peer = v1::WorkloadSpec))]
pub struct WorkloadSpec {
    /// How many copies run.
    #[api(convert(rename = replicas))]
    pub size: Option<i32>,
    /// The program.
    pub image: String,
}

/// WorkloadStatus is what runs.
#[apiloom::api(convert(peer = v1::WorkloadStatus, lossy(selector)))]
pub struct WorkloadStatus {
    /// How many copies run.
    #[api(convert(rename = replicas))]
    pub size: Option<i32>,
}
