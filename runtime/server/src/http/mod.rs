//! The wire: paths, negotiation, bodies, answers. Sees requests and responses, never sockets or TLS.
//!
//! `api` leads a request to a document or to one of the verbs, each in a file of its own; what they share is below.

mod api;
mod call;
mod route;

mod create;
mod definitions;
mod delete;
mod get;
mod list;
mod patch;
mod update;
mod watch;
mod websocket;

pub mod crd;
pub mod discovery;
pub mod health;
pub mod metrics;
pub mod openapi;
pub mod version;

mod accept;
mod body;
mod compress;
mod cut_off;
mod encode;
pub mod error;
mod form;
mod form_writer;
mod format;
mod negotiate;
mod observe;
mod params;
mod query;
mod rendered;
mod request_info;
mod response;
mod served;
mod static_doc;
mod stopping;
mod table;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod timeout;
mod turns;
mod warning;

pub(crate) use api::Api;
pub(crate) use body::RequestBody;
pub(crate) use call::{Arrival, Call};
pub use query::Query;
pub use request_info::{RequestInfo, RequestInfoError, RequestVerb};
pub(crate) use response::plain;
pub use response::{Body, CutOff};
pub use stopping::Stopping;

/// What answers say about the server itself.
#[derive(Clone, Debug, Default)]
pub struct ServerInfo {
    /// `host:port` for `serverAddressByClientCIDRs`.
    pub address: String,
    /// What `/version` calls the build, behind `v1.36.0+apiloom.`.
    pub version: String,
}
