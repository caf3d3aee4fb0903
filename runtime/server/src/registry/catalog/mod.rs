//! From registered kinds, stores and settings to the endpoints that are served.

pub(super) mod builder;
pub(super) mod located;
pub(super) mod resources;
pub(super) mod runtime_config;
