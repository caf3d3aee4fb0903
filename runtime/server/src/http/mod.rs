//! The wire: paths, negotiation, bodies, answers. Sees requests and responses, never sockets or TLS.

mod accept;
pub mod crd;
pub mod discovery;
pub mod health;
pub mod metrics;
pub mod openapi;
mod served;
mod static_doc;
#[cfg(test)]
mod testing;
pub mod version;

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;

use crate::registry::Registry;

/// The body of every answer.
pub type Body = UnsyncBoxBody<Bytes, std::convert::Infallible>;

/// The API as one function from request to response.
#[derive(Debug)]
pub struct Api {}

impl Api {
    /// The API of this registry.
    pub fn new(_registry: Arc<Registry>, _info: ServerInfo) -> Self {
        todo!()
    }
}

/// What answers say about the server itself.
#[derive(Clone, Debug, Default)]
pub struct ServerInfo {
    /// `host:port` for `serverAddressByClientCIDRs`.
    pub address: String,
    /// What `/version` calls the build, behind `v1.36.0+apiloom.`.
    pub version: String,
}
