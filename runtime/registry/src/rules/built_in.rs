//! The strategies of the built-in kinds that a server serves if its builder is asked to: the rules of kube-apiserver.
//!
//! The kinds are data of `apiloom-kinds`; `catalog/built_in.rs` registers both.

#[cfg(feature = "apis-apiregistration")]
pub mod api_service;
#[cfg(feature = "apis-core")]
pub(crate) mod config_map;
#[cfg(feature = "apis-apiextensions")]
pub mod custom_resource_definition;
#[cfg(feature = "apis-core")]
mod data_keys;
#[cfg(feature = "apis-core")]
pub(crate) mod event;
#[cfg(feature = "apis-coordination")]
pub(crate) mod lease;
#[cfg(feature = "apis-core")]
pub(crate) mod secret;
#[cfg(feature = "apis-core")]
pub(crate) mod service_account;
