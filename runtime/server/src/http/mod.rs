//! The wire protocol: paths, negotiation, bodies, responses. Depends on requests and responses, not on sockets or TLS.
//!
//! `api` routes a request to a document or to a verb; each verb is a file, and shared parts are listed below.

#[cfg_attr(
    not(feature = "apis-apiregistration"),
    allow(dead_code, unused_imports, reason = "without APIServices it is empty")
)]
pub(crate) mod aggregation;
mod api;
mod call;
mod route;

mod connect;
mod create;
mod definitions;
mod delegation;
mod delete;
mod get;
mod list;
mod migration;
mod patch;
mod subresource;
mod switched;
mod unpacked_body;
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
mod event_key;
mod extended_connect;
mod form;
mod form_writer;
mod format;
mod negotiate;
mod observe;
mod params;
mod paths;
mod query;
mod references;
mod request_info;
mod response;
mod served;
mod shutdown_signal;
mod socket;
mod static_doc;
mod table;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub(crate) mod texts;
pub mod timeout;
pub(crate) mod turns;
mod warning;

pub(crate) use api::Api;
pub(crate) use body::RequestBody;
pub(crate) use call::{Arrival, Call};
pub use connect::{
    ConnectBody, ConnectRequest, ConnectResponse, ConnectSubresource, connect_subresource,
};
pub(crate) use extended_connect::{UpgradeGuard, convert as convert_extended_connect};
pub(crate) use paths::PathHandlers;
pub use paths::{PathHandler, PathRequest, PathResponse};
pub use query::Query;
pub use request_info::{RequestInfo, RequestInfoError, RequestVerb};
pub use response::{Body, CutOff};
pub(crate) use response::{full, plain};
pub use shutdown_signal::ShutdownSignal;
pub use socket::{ConnectSocket, SocketClosed, SocketMessage};
pub use switched::ConnectStream;

/// Which documents of its own a server answers. A path whose document is off is as unknown as any other. Default all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// The list of paths at `/`.
    pub index: bool,
    /// Discovery: `/api`, `/apis` and the lists of resources below. Without it, kubectl and most clients find nothing.
    pub discovery: bool,
    /// `/openapi/v2` and `/openapi/v3`.
    pub openapi: bool,
    /// `/metrics`.
    pub metrics: bool,
}

impl Default for Endpoints {
    fn default() -> Self {
        Self {
            index: true,
            discovery: true,
            openapi: true,
            metrics: true,
        }
    }
}

/// Properties of the server in its responses.
#[derive(Clone, Debug, Default)]
pub struct ServerInfo {
    /// `host:port` for `serverAddressByClientCIDRs`.
    pub address: String,
    /// Version of the build in `/version`, after `v1.36.0+apiloom.`.
    pub version: String,
}
