//! The built-in kinds, declared with the macros as users declare theirs; one module for each group.
//!
//! Every server serves Namespace, and shows objects with replicas as a Scale. The others need the feature of their group,
//! and are served by servers that ask for them.
//! This is their data. Their rules (strategies, admission) are code of the server. [`definition_files`] reads further kinds, as
//! servers and the generator get them.

#[rustfmt::skip]
pub mod generated;

#[cfg(feature = "apiextensions")]
pub mod apiextensions;
#[cfg(feature = "apiregistration")]
pub mod apiregistration;
pub mod autoscaling;
mod condition;
#[cfg(feature = "coordination")]
pub mod coordination;
pub mod core;
pub mod definition_files;
#[cfg(feature = "events")]
pub mod events;
