//! The server's own controllers: the garbage collector, and the deletion of namespaces.
//!
//! They send requests to the server as its other clients do, through its [`Loopback`], and read metadata from its watch
//! caches. Of several servers over one store, the one that holds the lease runs them.

pub(super) mod config;
mod feed;
mod garbage;
mod graph;
mod lease;
mod namespaces;
mod requests;
mod uid;

use std::sync::Arc;

use apiloom_client::controller::{Cancel, ElectionConfig, LeaderElector, WriteGuard};
use apiloom_storage::Storage;

pub use self::config::{ControllerConfig, ControllerNames};
use self::lease::StoredLease;
use super::loopback::Loopback;
use crate::registry::Registry;

/// The controllers of a server.
pub(super) struct Controllers {
    pub(super) config: ControllerConfig,
    pub(super) registry: Arc<Registry>,
    pub(super) loopback: Loopback,
    /// Other servers may have the same store.
    pub(super) shared: Option<SharedStore>,
}

/// A store that several servers have.
pub(super) struct SharedStore {
    pub(super) store: Arc<dyn Storage>,
    /// Prefix of all keys of the servers, without a slash at its end.
    pub(super) key_prefix: String,
}

impl Controllers {
    /// Runs the controllers until the signal, while no other server over the same store does.
    pub(super) async fn run(self, stop: Cancel) {
        if self.config.names == ControllerNames::NONE {
            return;
        }
        let Some(SharedStore { store, key_prefix }) = &self.shared else {
            tokio::select! {
                () = self.control(None) => {}
                () = stop.cancelled() => {}
            }
            return;
        };
        while !stop.is_cancelled() {
            let lease = StoredLease::new(Arc::clone(store), key_prefix);
            let identity = LeaderElector::unique_identity("apiloom");
            let elector = LeaderElector::new(lease, identity, ElectionConfig::default());
            let elected = elector.expect("the defaults fit together");
            let led = elected.run(&stop, async |leadership| {
                let ended = leadership.cancel().clone();
                tokio::select! {
                    () = self.control(Some(leadership.guard().clone())) => {}
                    () = ended.cancelled() => {}
                }
            });
            // A lost lease was logged by the elector; another one is tried for.
            let _ = led.await;
        }
    }

    /// Runs the controllers; never returns.
    async fn control(&self, guard: Option<WriteGuard>) {
        let Self {
            config, registry, ..
        } = self;
        let requests = |name: &'static str| {
            requests::Requests::new(Arc::clone(registry), &self.loopback, name, guard.clone())
        };
        let collect = async {
            if config.names.garbage_collector {
                garbage::run(requests(garbage::NAME), config.gc_workers).await;
            }
        };
        let delete_namespaces = async {
            if config.names.namespaces {
                namespaces::run(requests(namespaces::NAME), config.namespace_workers).await;
            }
        };
        tokio::join!(collect, delete_namespaces);
    }
}
