//! Kubernetes' own kinds: one module for each group, with the types, declared with the macros as users declare theirs, and their
//! rules beside them.
//!
//! Every server serves Namespace, and shows objects with replicas as a Scale. The others need the feature of their group,
//! and are served by servers that ask for them. The types alone serve clients. The feature `rules` adds what a server needs:
//! strategies and admission plugins, and their registration. [`definition_files`] reads further kinds, as servers and the
//! generator get them.

#[rustfmt::skip]
pub mod generated;

#[cfg(feature = "admissionregistration")]
pub mod admissionregistration;
#[cfg(feature = "apiextensions")]
pub mod apiextensions;
#[cfg(feature = "apiregistration")]
pub mod apiregistration;
#[cfg(feature = "authentication")]
pub mod authentication;
#[cfg(feature = "authorization")]
pub mod authorization;
pub mod autoscaling;
#[cfg(feature = "rules")]
mod built_in;
mod condition;
#[cfg(feature = "coordination")]
pub mod coordination;
pub mod core;
pub mod definition_files;
#[cfg(feature = "events")]
pub mod events;
#[cfg(feature = "rbac")]
pub mod rbac;
#[cfg(feature = "rules")]
mod registration;
#[cfg(all(
    feature = "rules",
    any(feature = "authentication", feature = "authorization")
))]
mod review;
#[cfg(all(
    feature = "rules",
    any(feature = "admissionregistration", feature = "apiextensions")
))]
mod webhook;

#[cfg(feature = "rules")]
pub use built_in::BuiltIn;
#[cfg(feature = "rules")]
pub use registration::{register_all, registry};
