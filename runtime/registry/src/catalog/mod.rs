//! The catalog: endpoints, built from kinds, stores and settings.

pub(super) mod builder;
pub(super) mod change;
pub(super) mod count;
mod documents;
pub(super) mod emulation;
mod groups;
mod kinds;
pub(super) mod migration;
mod own_kinds;
pub(super) mod report;
pub(super) mod resources;
mod runtime_config;
pub(super) mod snapshot;
mod system_namespaces;
