//! What the server gives to the controllers of its parts.

use std::sync::Arc;

use apiloom_client::controller::WriteGuard;
use apiloom_client::metrics::{Registry as MetricRegistry, RequestMetrics};
use apiloom_registry::Registry;

use super::requests::{self, Requests};
use super::servers::{Servers, SharedStore};
use crate::server::loopback::Loopback;

/// What a controller is given. Cheap to clone.
#[derive(Clone)]
pub struct ControllerHost {
    /// The registry of the server.
    pub registry: Arc<Registry>,
    /// The registries of the next servers of a chain.
    pub next_registries: Vec<Arc<Registry>>,
    /// A client of the server in its own process.
    pub loopback: Loopback,
    /// The store, if other servers may have it too.
    pub shared: Option<SharedStore>,
    /// Where the controllers count what they do.
    pub metrics: ControllerMetrics,
    /// Its leadership and the other servers over the store, if it was elected among them.
    elected: Option<(WriteGuard, Arc<Servers>)>,
}

/// Where the controllers count what they do.
#[derive(Clone)]
pub struct ControllerMetrics {
    /// Takes the metrics of a controller.
    pub registry: MetricRegistry,
    requests: RequestMetrics,
}

impl ControllerMetrics {
    /// Adds the metrics of all requests of the controllers to a registry; each controller adds its own.
    fn new(registry: MetricRegistry) -> Self {
        let requests = RequestMetrics::new("loopback");
        registry.register(requests.clone());
        Self { registry, requests }
    }
}

impl ControllerHost {
    /// What the controllers of a server over this registry are given.
    pub(in crate::server) fn new(
        registry: Arc<Registry>,
        next_registries: Vec<Arc<Registry>>,
        loopback: Loopback,
        shared: Option<SharedStore>,
        metrics: MetricRegistry,
    ) -> Self {
        Self {
            registry,
            next_registries,
            loopback,
            shared,
            metrics: ControllerMetrics::new(metrics),
            elected: None,
        }
    }

    /// The same for the controller of an elected server.
    pub(in crate::server) fn elected(&self, guard: &WriteGuard, servers: &Arc<Servers>) -> Self {
        let mut host = self.clone();
        host.elected = Some((guard.clone(), Arc::clone(servers)));
        host
    }

    /// The requests of the controller with this name, which is the manager of the fields that it writes.
    pub fn requests(&self, name: &'static str) -> Requests {
        let (guard, servers) = self.elected.clone().unzip();
        let client = requests::client(&self.loopback, name, guard, &self.metrics.requests);
        Requests::new(Arc::clone(&self.registry), client).beside(servers)
    }
}
