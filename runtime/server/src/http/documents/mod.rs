//! The documents of the server: discovery, OpenAPI, definitions for installation, the state of migration, and health.

pub mod crd;
pub mod discovery;
pub mod health;
pub(super) mod migration;
pub mod openapi;
