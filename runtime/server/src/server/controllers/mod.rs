//! The server's own controllers: the garbage collector, and the deletion of namespaces.
//!
//! They send requests to the server as its other clients do, through its [`Loopback`], and read metadata from its watch
//! caches. Of several servers over one store, the one that holds the lease of a controller runs it.
//!
//! # Inside
//!
//! - `watch.rs` begins a watch of all objects of a kind. `feed.rs` follows the metadata of a kind, and `graph.rs` makes the graph of owner references from it: plain data that says
//!   what is to be looked at. `garbage/collector.rs` decides by the state in the store, with that as the precondition of each
//!   write.
//! - What follows from the absence of dependents (the end of a foreground deletion, the start of orphaning) waits until every feed
//!   has reported all that was in its store by then (`garbage/progress.rs`: one round for all that wait at the same time; while
//!   feeds are late, one worker waits and the others go on).
//! - An object that cannot be read (of a version that left its definition, damaged) is left out of the watches of all controllers
//!   (`registry/reads/unreadable.rs`): the others of its kind are followed. What follows from the absence of dependents waits 30 s for
//!   such an object, and for a kind whose watch fails (a webhook that converts nothing), then goes on without them, as the collector of
//!   Kubernetes does at once; a store or a cache that is slow is waited for. `unreadable.rs` tells the check
//!   `/healthz/garbage-collector-controller`, which fails no probe, and an event names the definition. The definition of such
//!   objects is deleted with them by their keys (`registry/endpoint/unreadable.rs`); a namespace with one says so in its conditions and stays.
//! - Foreground deletions in a circle are found by the graph one second after the last one began, and no longer block each other;
//!   those of Kubernetes wait for ever.
//! - Kinds whose deletion has no rules for dependents (Events) are not followed.
//! - An object that depends on the kinds that are served (its owner's kind is unknown, or a kind lacks a verb) is put off until the
//!   catalog changes, not retried. Kinds without `get` are read by a list of one name, those without `patch` are replaced. A kind
//!   with neither `patch` nor `update` keeps its finalizers and references: its foreground and orphaning deletions, and orphaning
//!   deletions of its objects' owners, do not end.
//! - What they count is in a registry of the client crate (queues, requests, leadership, feeds as informers), whose text `http/observation/metrics` puts behind that of
//!   the server.
//! - Of several servers over a shared store, each controller has a lease of its own, because servers may run different ones. The work of
//!   a leader that was killed waits less than 15 s (`ELECTION`, and the times of `servers.rs`); a server that does not stand yet follows the lease.
//! - Each of these servers keeps a record of its kinds and controllers there (`servers.rs`: 12 s, renewed every 4 s; it stays after
//!   a stop, so that a restart is no gap). A server does not stand for the election of a controller, and gives its lease up, while
//!   another one that runs it serves all its kinds and more; and the leader ends no deletion that depends on the absence of
//!   objects while any server serves a kind that it does not. What no server serves is not known: when
//!   all servers of a newer release are gone, the objects of their new kinds are kept out of everything, and those whose owners
//!   were deleted or orphaned meanwhile are collected when the kinds are served again.

#[cfg(feature = "apis-apiregistration")]
pub(super) mod api_services;
pub(super) mod config;
#[cfg(feature = "apis-apiextensions")]
pub(super) mod definitions;
mod feed;
mod garbage;
mod graph;
mod lease;
mod namespaces;
#[cfg(any(feature = "apis-apiextensions", feature = "apis-apiregistration"))]
mod readable;
mod requests;
mod servers;
mod uid;
mod unreadable;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use apiloom_client::controller::{CancellationToken, ElectionConfig, LeaderElector, WriteGuard};
use apiloom_client::metrics::{Registry as MetricRegistry, RequestMetrics};
use apiloom_http::sources::aggregation::{Aggregation, UnreachableNotices};
use apiloom_registry::{Catalog, Endpoint, Registry};
use futures_util::future::join_all;

use self::config::Controller;
pub use self::config::{ControllerConfig, ControllerNames};
use self::lease::StoredLease;
use self::requests::Requests;
use self::servers::Servers;
pub(super) use self::servers::SharedStore;
pub(super) use self::unreadable::UnreadableKinds;
use super::ServerError;
use super::loopback::Loopback;
use super::webhooks::Webhooks;

/// The times by which servers stand for their controllers. A leader that was killed renewed last at most 3.3 s before another
/// server saw it, and that takes the lease 10 s later: its work waits less than 15 s, the lease duration of Kubernetes.
const ELECTION: ElectionConfig = ElectionConfig {
    lease_duration: Duration::from_secs(10),
    renew_deadline: Duration::from_secs(7),
    retry_period: Duration::from_millis(1500),
    release: true,
};

/// The controllers of a server.
pub(super) struct Controllers {
    pub(super) config: ControllerConfig,
    pub(super) registry: Arc<Registry>,
    /// Those of the next servers, whose versions are registered with those of this one.
    #[cfg_attr(
        not(feature = "apis-apiregistration"),
        allow(dead_code, reason = "only APIServices have them")
    )]
    pub(super) next_registries: Vec<Arc<Registry>>,
    pub(super) loopback: Loopback,
    /// Other servers may have the same store.
    pub(super) shared: Option<SharedStore>,
    pub(super) metrics: ControllerMetrics,
    /// The kinds without which the garbage collector goes on.
    pub(super) unreadable: UnreadableKinds,
    /// The versions that other servers serve.
    pub(super) services: Services,
    #[cfg_attr(
        not(feature = "apis-apiextensions"),
        allow(dead_code, reason = "only definitions have webhooks")
    )]
    pub(super) webhooks: Webhooks,
}

/// The versions that other servers serve, and the notices of those that requests did not reach; `None` without APIServices.
pub(super) type Services = Option<(Arc<Aggregation>, UnreachableNotices)>;

/// Where the controllers count what they do.
#[derive(Clone)]
pub(super) struct ControllerMetrics {
    registry: MetricRegistry,
    requests: RequestMetrics,
}

impl ControllerMetrics {
    /// Adds the metrics of all requests of the controllers to a registry; each controller adds its own.
    pub(super) fn new(registry: MetricRegistry) -> Self {
        let requests = RequestMetrics::new("loopback");
        registry.register(requests.clone());
        Self { registry, requests }
    }
}

/// Checks that all kinds with owners and dependents are in stores that other servers have too, or none is. Otherwise, of two
/// servers, the one that runs the controllers would not find owners that the other has for itself, and delete their
/// dependents.
///
/// # Errors
/// Names a kind of each sort.
pub(super) fn check_stores(
    config: &ControllerConfig,
    catalog: &Catalog,
) -> Result<(), ServerError> {
    if config.names == ControllerNames::NONE {
        return Ok(());
    }
    let endpoints = catalog.endpoints().iter();
    let followed = endpoints.filter(|endpoint| requests::is_followed(endpoint.def()));
    let find = |is_shared: bool| {
        let is_such =
            |endpoint: &&Arc<Endpoint>| endpoint.resource().kind.store.is_shared() == is_shared;
        followed
            .clone()
            .find(is_such)
            .map(|endpoint| endpoint.resource().group_resource())
    };
    match (find(true), find(false)) {
        (Some(shared), Some(own)) => Err(ServerError::Storage(format!(
            "{shared} is in a store that other servers may use too, and {own} is in one of this server alone, so that the \
             server's controllers could delete objects whose owners another server has; use shared stores for all \
             kinds or for none, or run no controllers (--controllers=)"
        ))),
        _ => Ok(()),
    }
}

impl Controllers {
    /// Runs the controllers until the signal; each of those that only one server over a store may run while no other server
    /// does.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let services = self.services.take();
        let in_every_server = async {
            tokio::select! {
                _ = async { tokio::join!(self.serve_definitions(), self.follow_services(services)) } => {}
                () = stop.cancelled() => {}
            }
        };
        tokio::join!(in_every_server, self.run_alone(stop.clone()));
    }

    /// Follows APIServices; never returns.
    async fn follow_services(&self, services: Services) {
        #[cfg(feature = "apis-apiregistration")]
        if let Some((aggregation, unreachable)) = services {
            let registry = Arc::clone(&self.registry);
            let metrics = &self.metrics.requests;
            let client = requests::client(&self.loopback, api_services::NAME, None, metrics);
            let requests = Requests::new(registry, client);
            let metrics = &self.metrics.registry;
            let next = self.next_registries.clone();
            api_services::run(requests, next, (aggregation, unreachable), metrics).await;
        }
        #[cfg(not(feature = "apis-apiregistration"))]
        drop(services);
        std::future::pending::<()>().await;
    }

    /// Serves the kinds of CustomResourceDefinitions; never returns.
    async fn serve_definitions(&self) {
        #[cfg(feature = "apis-apiextensions")]
        {
            let registry = Arc::clone(&self.registry);
            let metrics = &self.metrics.requests;
            let client = requests::client(&self.loopback, definitions::NAME, None, metrics);
            let requests = Requests::new(registry, client);
            definitions::run(requests, self.shared.as_ref(), &self.webhooks).await;
        }
        std::future::pending::<()>().await;
    }

    /// Runs the controllers until the signal, each while no other server over the same store does.
    async fn run_alone(&self, stop: CancellationToken) {
        let Some(shared) = &self.shared else {
            let running = self.config.names.running();
            let running = running.map(|controller| self.control(controller, None, None));
            tokio::select! {
                _ = join_all(running) => {}
                () = stop.cancelled() => {}
            }
            return;
        };
        let (registry, names) = (Arc::clone(&self.registry), self.config.names);
        let servers = Arc::new(Servers::new(shared, registry, names));
        let candidacies = names
            .running()
            .map(|controller| self.stand_for_election(controller, shared, &servers, &stop));
        tokio::join!(servers.keep_record(&stop), join_all(candidacies));
    }

    /// Runs a controller whenever this server is elected for it, until the signal.
    async fn stand_for_election(
        &self,
        controller: Controller,
        shared: &SharedStore,
        servers: &Arc<Servers>,
        stop: &CancellationToken,
    ) {
        while !stop.is_cancelled() {
            let store = Arc::clone(&shared.store);
            let lease = StoredLease::new(store, &shared.key_prefix, controller.name());
            let identity = LeaderElector::unique_identity("apiloom");
            let elector = LeaderElector::new(lease, identity, ELECTION);
            let mut elector = elector.expect("the times fit together");
            elector.register_metrics(&self.metrics.registry, controller.name());
            tokio::select! {
                () = servers.wait_for_none_better(controller) => {}
                () = elector.follow() => {}
                () = stop.cancelled() => return,
            }
            let led = elector.run(stop, async |leadership| {
                let ended = leadership.cancel().clone();
                let guard = leadership.guard().clone();
                tokio::select! {
                    () = self.control(controller, Some(guard), Some(servers)) => {}
                    () = servers.wait_for_better(controller) => {}
                    () = ended.cancelled() => {}
                }
            });
            // A lost lease was logged by the elector; another one is tried for.
            let _ = led.await;
        }
    }

    /// Runs a controller; never returns.
    async fn control(
        &self,
        controller: Controller,
        guard: Option<WriteGuard>,
        servers: Option<&Arc<Servers>>,
    ) {
        let Self {
            config, registry, ..
        } = self;
        let requests = |name: &'static str| {
            let registry = Arc::clone(registry);
            let client =
                requests::client(&self.loopback, name, guard.clone(), &self.metrics.requests);
            Requests::new(registry, client).beside(servers.cloned())
        };
        let metrics = &self.metrics.registry;
        match controller {
            Controller::GarbageCollector => {
                let (requests, workers) = (requests(garbage::NAME), config.gc_workers);
                garbage::run(requests, workers, metrics, &self.unreadable).await;
            }
            Controller::Namespaces => {
                let requests = requests(namespaces::NAME);
                namespaces::run(requests, config.namespace_workers, metrics).await;
            }
        }
    }
}
