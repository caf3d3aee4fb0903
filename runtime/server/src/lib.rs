//! The API server: `registry` (REST semantics), `http` (the wire), `auth`, `options` (flags) and `server` (listener,
//! filters, life cycle).
//!
//! `registry` uses no HTTP status codes or headers; `http` uses no sockets or TLS; only `options` reads the
//! environment. Library code never exits the process and never panics on input.

pub mod auth;
pub mod http;
mod memory;
pub mod options;
mod received;
mod recent;
pub mod registry;
pub mod server;

/// The attribute for impls of [`Admission`] and [`Handler`], whose methods are asynchronous.
pub use async_trait::async_trait;
pub use registry::{
    Admission, AdmissionContext, AdmissionRequest, AdmittedObject, CreateOptions,
    CreateSubresource, GetSubresource, Handler, Lister, Operation, RequestContext, Strategy,
    Subresource, SubresourceRequest, UpdateSubresource,
};
pub use server::{
    Backend, BoundServer, Builder, Config, ControllerConfig, ControllerNames, Endpoints,
    HookContext, InProcess, Loopback, Server, ServerError, main, services,
};
