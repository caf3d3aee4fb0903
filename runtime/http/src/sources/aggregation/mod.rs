//! Versions of groups that other servers serve, behind an APIService: which these are, and how requests and documents reach
//! them. A controller publishes what is known as a whole, a [`Table`]; requests only read it.
//!
//! # Inside
//!
//! - `http/sources/aggregation` is what requests see: a `Table` of these versions, published whole, by which `source.rs` forwards a request
//!   after all filters and before it looks for a resource of its own: so an APIService comes before compiled kinds, these before those
//!   of definitions, and last is the 404. Versions of apiregistration.k8s.io are never forwarded, so that a wrong APIService can be removed.
//! - A request is forwarded with the path that was authorized, encoded again (`address.rs`), without credentials and with the user in headers
//!   (`remote.rs`); bodies are sent as they arrive in both directions (`proxy.rs`), and upgraded connections are copied (`tunnel.rs`). `Via`
//!   ends loops. Each server has a limit of requests and one of streams.
//! - Discovery and OpenAPI of a table are made once for it (`merge.rs`, `openapi.rs`); groups are ordered by the priorities of all
//!   stored APIServices, also those of this server. What they take of another server is about the versions of its APIServices, has names and
//!   references that can be used, and is bounded in sum: a document of OpenAPI is served by this server, not forwarded.
//! - `runtime/parts/aggregator` follows the stored APIServices in every server: `local.rs` makes those of the versions that this server
//!   serves, `check.rs` looks at the other servers every 30 s, earlier after failures, and writes conditions, `documents.rs` reads their discovery and
//!   OpenAPI every 60 s, when the APIService changes, and when the server is available again. What cannot be read stays, as Stale, and is tried
//!   again as a server that is not available. A request that does not reach a server is followed by a look at it; an APIService has one look
//!   at a time, and a look writes no condition if its spec has changed meanwhile. Stored APIServices are published before the server is ready, and the
//!   check `autoregister-completion` fails until those of all compiled versions are available: then a server has nothing to write by
//!   itself, and prints the line of the ready server.

mod address;
mod merge;
mod openapi;
mod proxy;
mod remote;
mod source;
mod state;
mod table;
mod tunnel;

pub use merge::local_priority;
pub use openapi::{part_of_v2, part_of_v3};
pub use remote::{
    Addresses, Connections, ProxyIdentity, RemoteServer, RemoteTarget, Unreachable, add_aggregator,
};
pub use state::{Aggregation, UnreachableNotices};
pub use table::{DocumentRoom, GROUP, LocalService, Priority, RemoteDocuments, RemoteV3, Service};

pub use crate::documents::served::{RemoteResource, of_discovery, of_resource_list};
pub use crate::request::version_path::path_of_version;
