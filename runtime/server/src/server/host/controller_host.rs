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
pub(in crate::server) struct ControllerHost {
    pub(in crate::server) registry: Arc<Registry>,
    /// Those of the next servers of a chain.
    #[cfg_attr(
        not(feature = "apis-apiregistration"),
        allow(dead_code, reason = "only APIServices have them")
    )]
    pub(in crate::server) next_registries: Vec<Arc<Registry>>,
    pub(in crate::server) loopback: Loopback,
    /// The store, if other servers may have it too.
    pub(in crate::server) shared: Option<SharedStore>,
    pub(in crate::server) metrics: ControllerMetrics,
    /// Its leadership and the other servers over the store, if it was elected among them.
    elected: Option<(WriteGuard, Arc<Servers>)>,
}

/// Where the controllers count what they do.
#[derive(Clone)]
pub(in crate::server) struct ControllerMetrics {
    pub(in crate::server) registry: MetricRegistry,
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
    pub(super) fn elected(&self, guard: &WriteGuard, servers: &Arc<Servers>) -> Self {
        let mut host = self.clone();
        host.elected = Some((guard.clone(), Arc::clone(servers)));
        host
    }

    /// The requests of the controller with this name, which is the manager of the fields that it writes.
    pub(in crate::server) fn requests(&self, name: &'static str) -> Requests {
        let (guard, servers) = self.elected.clone().unzip();
        let client = requests::client(&self.loopback, name, guard, &self.metrics.requests);
        Requests::new(Arc::clone(&self.registry), client).beside(servers)
    }
}
