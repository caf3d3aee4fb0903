//! The built-in kinds, a module for each group. Every server serves Namespace; the others need the cargo feature of their
//! group, and [`Builder::built_in`](crate::server::Builder::built_in).

#[cfg(feature = "apis-apiextensions")]
pub use apiloom_apis::apiextensions;
pub use apiloom_apis::autoscaling;
#[cfg(feature = "apis-coordination")]
pub use apiloom_apis::coordination;
pub use apiloom_apis::core;
#[cfg(feature = "apis-events")]
pub use apiloom_apis::events;
