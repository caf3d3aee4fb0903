//! The built-in kinds, a module for each group, for clients and for servers. Every server serves Namespace; the others need
//! the cargo feature of their group, and `Builder::built_in` of the feature `server`.

#[cfg(feature = "apis-admissionregistration")]
pub use apiloom_kinds::admissionregistration;
#[cfg(feature = "apis-apiextensions")]
pub use apiloom_kinds::apiextensions;
#[cfg(feature = "apis-apiregistration")]
pub use apiloom_kinds::apiregistration;
#[cfg(feature = "apis-authentication")]
pub use apiloom_kinds::authentication;
#[cfg(feature = "apis-authorization")]
pub use apiloom_kinds::authorization;
pub use apiloom_kinds::autoscaling;
#[cfg(feature = "apis-coordination")]
pub use apiloom_kinds::coordination;
pub use apiloom_kinds::core;
#[cfg(feature = "apis-events")]
pub use apiloom_kinds::events;
#[cfg(feature = "apis-authorization")]
pub use apiloom_kinds::rbac;
