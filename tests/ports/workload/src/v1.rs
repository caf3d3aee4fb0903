//! The hub, which is stored.

use apiloom::prelude::*;

/// Workload runs copies of a program.
#[apiloom::resource(group = "work.example.com", version = "v1", namespaced, hub, storage, status, shortname = "wl",
    scale(spec = spec.replicas, status = status.replicas, selector = status.selector),
    printcolumn(name = "Desired", path = spec.replicas), printcolumn(name = "Ready", path = status.replicas))]
pub struct Workload {
    pub metadata: ObjectMeta,
    pub spec: WorkloadSpec,
    pub status: Option<WorkloadStatus>,
}

/// WorkloadSpec is what is run.
#[apiloom::api]
pub struct WorkloadSpec {
    /// How many copies run; a workload without a number is not scaled.
    #[api(max = 100)]
    pub replicas: Option<i32>,
    /// The program.
    #[api(len = 1..=60)]
    pub image: String,
}

/// WorkloadStatus is what runs.
#[apiloom::api]
pub struct WorkloadStatus {
    /// How many copies run.
    pub replicas: Option<i32>,
    /// The label selector of the copies.
    pub selector: Option<String>,
}
