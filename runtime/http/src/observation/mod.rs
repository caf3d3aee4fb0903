//! What the server tells of itself to operators: metrics, the observation of each request, and the version.

pub mod metrics;
pub(super) mod observe;
pub mod version;
