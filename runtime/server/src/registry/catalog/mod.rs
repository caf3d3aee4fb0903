//! From registered kinds, stores and settings to the endpoints that are served.

pub(super) mod builder;
pub(super) mod change;
pub(super) mod count;
mod groups;
mod kinds;
pub(super) mod report;
pub(super) mod resources;
mod runtime_config;
pub(super) mod snapshot;
