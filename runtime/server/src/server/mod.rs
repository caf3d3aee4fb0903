//! The server: certificates, kubeconfig, filters, listener, life cycle.
//!
//! `Config` (plain data) -> `Builder::new(config)` -> `build()` (reports all problems, binds nothing) -> `bind()`,
//! or `start()` for requests of the same process only -> `serve(shutdown)`. Only [`main`] sets an exit code; nothing
//! here exits the process.
//!
//! # Invariants
//!
//! - An error has a reason; `http/shape/error.rs` is the only table from reasons to codes. Outside of `http`, status codes are those of two other
//!   protocols: the plain 429 that kube-apiserver sends before it looks at a request (`server/in_flight.rs`), and answers of other servers.
//! - A request is served as an `Authenticated`, which only `auth/authenticate.rs` makes; there is no identity to fall back to.
//! - A client certificate is no identity by itself: TLS checks that the client has its key, and no more. Only authenticators of
//!   a program read it.
//! - A request's verb, query and `Accept` are read once; the verb that is authorized is the one that is run and counted. The
//!   extensions of a request hold only what hyper puts there (`OnUpgrade`).
//! - Every response ends: a list at its request's deadline, an HTTP/2 stream or a connection without progress after a minute,
//!   even if its client never reads again; a WebSocket when its client answers no pings (`http/streams/socket.rs`).
//!   A connection that a handler switches to another protocol is the handler's to end (`http/streams/switched.rs`), and ends with the server.
//! - The server opens no tunnels: a CONNECT is either a WebSocket over HTTP/2, which the filters convert to the GET with an upgrade
//!   that it is over HTTP/1.1 (`http/streams/extended_connect.rs`), or refused.
//! - Large documents are processed outside the threads that serve other requests (`registry/large.rs`): a write reserves
//!   capacity as soon as the size of its body or of the present object is known, and yields between its steps. Their threads have a
//!   lower priority (`background.rs`).
//! - Queries of more than 4 KiB are decoded, parsed and compiled there too, with the same capacity, before authorization as
//!   well as after it. One poll of a connection reads about 16 KiB (`server/activity.rs`) and produces about 64 KiB of a
//!   response (`server/streams.rs`).
//! - Chunks of Tables, YAML and indented JSON are rendered, and responses compressed, for at most as many clients at a time
//!   as there are cores minus one (`http/response/turns.rs`): other tasks can use that one, and do not wait for a chunk per client.
//! - Library code never ends the process and never panics on input. Only `server::main` sets exit codes.
//! - Filters are one async function that is made of a list (`server/filters.rs`), not a stack of tower layers: the same order, one future
//!   instead of a box per layer and request. `print-chain` prints the same list. A program cannot rebuild the chain, as with the
//!   `BuildHandlerChain` of k8s.io/apiserver: its order keeps requests safe, and each filter gives the next one typed values. Programs have
//!   places of their own: filters at named places (`server/filter.rs`), authenticators, authorizers, admission, handlers of paths, limits in
//!   the configuration. Layers can be put before all filters, around `Loopback`, which is a tower service: one there can rewrite the query
//!   or other parts of a request.
//! - The parser of paths (`http/request/request_info.rs`) cannot be replaced: router, authorization, limits and metrics rely on the same result. Namespaces are of
//!   cluster scope in it as in kube-apiserver, and the namespace of a request for one is its name.

mod activity;
mod additions;
mod attended;
pub mod auditor;
mod binding;
mod builder;
mod capability;
mod certificates;
mod chain;
mod client_certificates;
mod coalesce;
mod config;
mod connection;
mod controller_names;
mod controllers;
mod filter;
mod filters;
mod followed_file;
mod guarded_body;
mod health;
mod hooks;
pub mod host;
mod in_flight;
mod kubeconfig;
mod listener;
mod lists;
mod loopback;
mod main;
mod object_counts;
mod open_files;
mod private_file;
mod running;
pub mod services;
mod stall;
mod stores;
mod streams;
mod unread;

/// The type of the signal of a [`Host`].
pub use apiloom_client::controller::CancellationToken;
/// Metrics of a program, for [`Builder::metrics`].
pub use apiloom_client::metrics::{Collect, Samples};

pub use apiloom_http::{Endpoints, ListedResource, ListedRoute};
pub use binding::{BoundServer, Server};
pub use builder::{Builder, Part};
pub use capability::{Capability, CapabilityContext};
pub use chain::ChainFilter;
pub use config::{
    Backend, Config, EtcdOptions, EtcdOverride, GoawayChance, ServerError, TlsFiles, WatchCacheSize,
};
pub use controller_names::ControllerNames;
pub use filter::{Filter, FilterPlace, FilterRequest};
pub use followed_file::follow_files;
pub use hooks::{HookContext, Host};
pub use loopback::Loopback;
pub use main::Program;
pub use running::InProcess;
