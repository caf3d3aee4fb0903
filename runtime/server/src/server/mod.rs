//! The server: certificates, kubeconfig, filters, listener, life cycle.
//!
//! `Config` (plain data) -> `Server::builder(config)` -> `build()` (reports all problems, binds nothing) -> `bind()`,
//! or `start()` for requests of the same process only -> `serve(shutdown)`. Only [`main`] sets an exit code; nothing
//! here exits the process.

mod activity;
mod additions;
mod attended;
mod builder;
mod certificates;
mod client_certificates;
mod coalesce;
mod config;
mod connection;
mod controllers;
mod filters;
mod guarded_body;
mod health;
mod hooks;
mod in_flight;
mod installation;
mod kubeconfig;
mod listener;
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
mod webhooks;

pub use crate::http::Endpoints;
pub use builder::{BoundServer, Builder, Server};
pub use config::{
    Backend, Config, EtcdOptions, EtcdOverride, GoawayChance, ServerError, TlsFiles, WatchCacheSize,
};
pub use controllers::{ControllerConfig, ControllerNames};
pub use hooks::HookContext;
pub use loopback::Loopback;
pub use main::main;
#[cfg(feature = "apis-apiextensions")]
pub use main::serve_definitions;
pub use running::InProcess;
