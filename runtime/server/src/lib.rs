//! The API server: registry (what create, update and delete mean), http (the wire), options and the server itself.
//!
//! `registry` never sees HTTP status codes or headers; `http` never sees sockets or TLS; only `options` reads the
//! environment. Library code never exits the process and never panics on input.

pub mod auth;
pub mod http;
pub mod options;
mod recent;
pub mod registry;
pub mod server;

/// Lets an [`Admission`] plugin wait: put `#[async_trait]` on its impl.
pub use async_trait::async_trait;
pub use registry::{
    Admission, AdmissionContext, AdmissionRequest, AdmittedObject, CreateOptions, Handler, Lister,
    Operation, RequestContext, Strategy,
};
pub use server::{Backend, Builder, Config, InProcess, Loopback, Ready, Server, ServerError, main};
