//! The server's own controllers: the garbage collector, and the deletion of namespaces.
//!
//! They send requests to the server as its other clients do, through its [`Loopback`], and read metadata from its watch
//! caches.

pub(super) mod config;
mod feed;
mod garbage;
mod graph;
mod namespaces;
mod requests;
mod uid;

use std::sync::Arc;

pub use self::config::{ControllerConfig, ControllerNames};
use super::loopback::Loopback;
use crate::registry::Registry;

/// Runs the controllers; never returns.
pub(super) async fn run(registry: Arc<Registry>, loopback: Loopback, config: ControllerConfig) {
    let collect = async {
        if config.names.garbage_collector {
            garbage::run(Arc::clone(&registry), loopback.clone(), config.gc_workers).await;
        }
    };
    let delete_namespaces = async {
        if config.names.namespaces {
            namespaces::run(
                Arc::clone(&registry),
                loopback.clone(),
                config.namespace_workers,
            )
            .await;
        }
    };
    tokio::join!(collect, delete_namespaces);
}
