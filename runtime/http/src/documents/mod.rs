//! The documents of the server: discovery, OpenAPI, definitions for installation, the migration of stored objects, and health;
//! and the served groups, of which they are made.

pub mod crd;
pub mod discovery;
pub mod health;
pub(super) mod migration;
pub mod openapi;
pub(super) mod references;
pub(super) mod served;
