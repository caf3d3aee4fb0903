//! The built-in kinds, a module for each group, for clients and for servers. Every server serves Namespace; the others need
//! the cargo feature of their group, and `Builder::built_in` of the feature `server`.

#[cfg(feature = "apis-apiextensions")]
pub use apiloom_apis::apiextensions;
#[cfg(feature = "apis-apiregistration")]
pub use apiloom_apis::apiregistration;
pub use apiloom_apis::autoscaling;
#[cfg(feature = "apis-coordination")]
pub use apiloom_apis::coordination;
pub use apiloom_apis::core;
#[cfg(feature = "apis-events")]
pub use apiloom_apis::events;
