//! From configuration to a listening server: certificates, kubeconfig, filters, listener, shutdown.
//!
//! `Config` (plain data) -> `Server::builder(config)` -> `build()` (reports every problem at once, binds nothing) ->
//! `bind()`, or `start()` for requests of the same process alone -> `serve(shutdown)`. Only [`main`] turns an outcome into an exit code; nothing here ends the process.

mod activity;
mod builder;
mod certificates;
mod coalesce;
mod config;
mod connection;
mod filters;
mod health;
mod held;
mod in_flight;
mod kubeconfig;
mod listener;
mod loopback;
mod main;
mod object_counts;
mod open_files;
mod private_file;
mod running;
mod stall;
mod stores;
mod streams;
mod unread;

pub use builder::{Builder, Ready, Server};
pub use config::{
    Backend, Config, EtcdOptions, EtcdOverride, GoawayChance, ServerError, TlsFiles, WatchCacheSize,
};
pub use loopback::Loopback;
pub use main::main;
pub use running::InProcess;
