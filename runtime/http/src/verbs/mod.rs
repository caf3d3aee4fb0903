//! The verbs on resources, each in a file, with the route to them and the call that they take. Semantics are those of the registry.

pub(super) mod call;
pub(super) mod connect;
pub(super) mod create;
pub(super) mod delete;
pub(super) mod get;
pub(super) mod list;
pub(super) mod patch;
pub(super) mod resource;
pub(super) mod route;
pub(super) mod subresource;
pub(super) mod update;
pub(super) mod watch;
