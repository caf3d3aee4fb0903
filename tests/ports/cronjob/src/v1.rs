//! batch.tutorial.kubebuilder.io/v1.

use apiloom::prelude::*;
use k8s_openapi::api::core::v1::ObjectReference;

mod template;

pub use template::JobTemplate;

/// CronJob runs a job at the times of a schedule.
#[apiloom::resource(
    group = "batch.tutorial.kubebuilder.io",
    version = "v1",
    namespaced,
    status
)]
pub struct CronJob {
    pub metadata: ObjectMeta,
    /// What is run, and when.
    pub spec: CronJobSpec,
    /// What was run.
    pub status: Option<CronJobStatus>,
}

/// CronJobSpec is what is run, and when.
#[apiloom::api]
pub struct CronJobSpec {
    /// The times, as a line of a crontab.
    #[api(len(min = 0))]
    pub schedule: String,
    /// How many seconds late a job may start; as late as can be when left out.
    #[api(min = 0)]
    pub starting_deadline_seconds: Option<i64>,
    /// What happens when the last job still runs.
    #[api(default = ConcurrencyPolicy::Allow)]
    pub concurrency_policy: ConcurrencyPolicy,
    /// Whether no further jobs are started.
    pub suspend: Option<bool>,
    /// The job.
    pub job_template: JobTemplate,
    /// How many jobs that succeeded are kept.
    #[api(min = 0)]
    pub successful_jobs_history_limit: Option<i32>,
    /// How many jobs that failed are kept.
    #[api(min = 0)]
    pub failed_jobs_history_limit: Option<i32>,
}

/// ConcurrencyPolicy is what happens when the last job still runs.
#[apiloom::api]
pub enum ConcurrencyPolicy {
    Allow,
    Forbid,
    Replace,
}

/// CronJobStatus is what was run.
#[apiloom::api]
pub struct CronJobStatus {
    /// The jobs that run.
    #[api(list = atomic, items = 1..=10, each(map = atomic))]
    pub active: Vec<ObjectReference>,
    /// When the last job was started.
    pub last_schedule_time: Option<Time>,
    /// Observations, one of each type.
    #[api(list = map(type))]
    pub conditions: Vec<Condition>,
}
