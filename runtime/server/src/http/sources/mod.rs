//! What is served, and from where: versions of other servers and of a chain of servers, and the paths of a program.

#[cfg_attr(
    not(feature = "apis-apiregistration"),
    allow(dead_code, unused_imports, reason = "without APIServices it is empty")
)]
pub(crate) mod aggregation;
pub(super) mod definitions;
pub(super) mod delegation;
pub(super) mod paths;
