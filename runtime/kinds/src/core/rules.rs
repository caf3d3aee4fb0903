//! The rules of the kinds of the core group: those of kube-apiserver.

#[cfg(feature = "core")]
mod config_map;
#[cfg(feature = "core")]
mod data_keys;
#[cfg(feature = "core")]
pub(crate) mod event;
mod namespace;
#[cfg(feature = "core")]
mod secret;
#[cfg(feature = "core")]
mod service_account;
