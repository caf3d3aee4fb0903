//! The wire protocol: paths, negotiation, bodies, responses. Depends on requests and responses, not on sockets or TLS.
//!
//! `api` answers a request by the wings, of which each uses only those before it: `response` (what all responses are made of), `request`
//! (path, query, accepted types, deadline), `shape` (forms, formats, framings, bodies), `streams` (connections that outlive the head of
//! their response), `observation` (metrics, version), `verbs` (a file each), `documents` (discovery, OpenAPI, health), `sources` (what is
//! served, and from where: requests ask them in order).
//!
//! # Form, format, framing
//!
//! What is shown, how it is spelled and how it follows each other are three choices, combined freely. The first two are made
//! once for a request (`http/shape/negotiate.rs` gives one `Answer`), the third follows from its verb:
//!
//! - a form (`http/shape/form.rs`): the object, a Table of it, its metadata. `http/shape/form_writer.rs` and `http/shape/table.rs` tell documents
//!   in a form as events to a `Sink`; an object is one event, its JSON as the cache holds it.
//! - a format (`http/shape/format.rs`): JSON, indented JSON, YAML, Protobuf. Each is one file in `http/shape/format`, and no
//!   other file knows a format by its name or media type. It turns the events into bytes.
//! - a framing: one document (`http/shape/encode.rs`, `http/shape/error.rs` for a Status), a list in pieces (`http/shape/encode.rs`), a stream of
//!   events (`http/verbs/watch.rs`). What stands around documents in it is the format's.
//!
//! JSON is not parsed on its way out, in any framing, and large objects are sent without a copy of them. YAML is written from
//! the JSON of one object at a time (`YamlWriter` in `meta/src/codec/yaml`), and read by the same visitor as JSON
//! (`meta/src/codec/decode.rs`), without JSON in between.
//!
//! Recipe, a format: a file in `http/shape/format` that implements `Format`, and if it is written `Writer` with `ListWriter`, and
//! `StreamWriter` if it has streams; one line of `FORMATS` and one `mod` in `http/shape/format.rs`. Negotiation, the texts of 406 and
//! 415, discovery and OpenAPI read that list. A body becomes JSON or YAML there (`Format::read`), as Protobuf does. The tests of
//! OpenAPI and negotiation name all media types, so their expectations change.
//!
//! The Protobuf form of a kind is data of its definition: a static description of its messages (`schema/src/protobuf.rs`;
//! those of `meta/v1`, such as ObjectMeta, are in `protobuf/messages.rs`, the schema in a definition in
//! `protobuf/json_schema.rs`), by which `meta/src/codec/protobuf` converts
//! a body to JSON and JSON to a message, each in one pass without a document in memory; `http/shape/format/protobuf.rs` adds the
//! framings. A document tells its description to the sink before its JSON (`Sink::describe`). A description is
//! made of the numbers of fields, `#[api(proto = 1)]`: a type has its form as the constant `ApiType::PROTOBUF`, so rustc puts
//! together those of fields, and reports a type without (`macros/src/expand/protobuf.rs`). The key `protobuf` names one that was
//! written by hand. Kinds without one have only their metadata in
//! Protobuf: other bodies are 415, and a request that accepts nothing else is 406.
//!
//! The documents of discovery are objects of no kind: `http/documents/discovery/messages.rs` describes them. Those of OpenAPI are the messages of
//! gnostic (`http/documents/openapi/protobuf.rs`). A document of OpenAPI is put together of texts (`http/documents/openapi/content.rs`, `http/shape/texts.rs`): as values
//! its schemas take ten times the memory, so one kind is a value at a time.
//!
//! The `.proto` files follow from the same descriptions (`meta/src/kind/proto_files.rs`), as documents of the second phase of
//! `apiloom generate`; `codegen-cli/src/numbers.rs` alone reads and writes `apiloom.lock`, the numbers that fields had.

mod api;
pub mod background;
pub mod documents;
pub mod observation;
pub mod part_name;
pub mod received;
pub mod request;
pub mod response;
pub mod shape;
pub mod sources;
mod streams;
mod verbs;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use api::Api;
pub use request::query::{Query, decode as decode_percent};
pub use request::request_info::{RequestInfo, RequestInfoError, RequestVerb};
pub use response::{Body, CutOff};
pub use response::{full, plain};
pub use shape::body::RequestBody;
pub use sources::paths::PathHandlers;
pub use sources::paths::{PathHandler, PathRequest, PathResponse};
pub use sources::route_list::KindParts;
pub use sources::route_list::{ListedResource, ListedRoute};
pub use sources::source::AddedSource;
pub use streams::extended_connect::{UpgradeGuard, convert as convert_extended_connect};
pub use streams::shutdown_signal::ShutdownSignal;
pub use streams::socket::{ConnectSocket, SocketClosed, SocketMessage};
pub use streams::switched::ConnectStream;
pub use verbs::call::{Arrival, Call};
pub use verbs::connect::{
    ConnectBody, ConnectRequest, ConnectResponse, ConnectSubresource, connect_subresource,
};

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
