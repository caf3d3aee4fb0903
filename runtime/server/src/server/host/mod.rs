//! What the host gives to the controllers of parts: requests, watches, elections, and the metadata of objects as they change.
//!
//! They send requests to the server as its other clients do, through its [`Loopback`], and read metadata from its watch
//! caches. Of several servers over one store, the one that holds the lease of a controller runs it.
//!
//! # Inside
//!
//! - `follower.rs` follows the objects of a kind for all that do: the collector, the deletion of namespaces, the definitions, the
//!   APIServices and the installation of definitions. `feed.rs` follows the metadata of a kind with it, and `parts/garbage/graph.rs` makes the
//!   graph of owner references from that: plain data that says what is to be looked at. `parts/garbage/collector.rs` decides by the state
//!   in the store, with that as the precondition of each write.
//! - What follows from the absence of dependents (the end of a foreground deletion, the start of orphaning) waits until every feed
//!   has reported all that was in its store by then (`parts/garbage/progress.rs`: one round for all that wait at the same time; while
//!   feeds are late, one worker waits and the others go on).
//! - An object that cannot be read (of a version that left its definition, damaged) is left out of the watches of all controllers
//!   (`registry/reads/unreadable.rs`): the others of its kind are followed. What follows from the absence of dependents waits 30 s for
//!   such an object, and for a kind whose watch fails (a webhook that converts nothing), then goes on without them, as the collector of
//!   Kubernetes does at once; a store or a cache that is slow is waited for. `parts/garbage/unreadable.rs` tells the check
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

mod controller_host;
pub mod feed;
mod follower;
mod lease;
mod observed_object;
mod readable;
mod requests;
mod servers;
mod uid;

use std::sync::Arc;
use std::time::Duration;

use apiloom_client::controller::{CancellationToken, ElectionConfig, LeaderElector};
use apiloom_registry::{Catalog, Endpoint};
use futures_util::future::join_all;

pub use self::controller_host::{ControllerHost, ControllerMetrics};
pub use self::follower::{Follower, Read, Update};
use self::lease::StoredLease;
pub use self::observed_object::{Finalizer, ObservedObject, Place, Reference};
pub use self::readable::{UnreadableLog, read_all};
pub use self::requests::{RequestError, Requests, ServedKind, Target, is_followed};
use self::servers::Servers;
pub use self::servers::{OtherServers, SharedStore};
pub use self::uid::Uid;
use super::ServerError;
use super::capability::Capability;

/// The times by which servers stand for their controllers. A leader that was killed renewed last at most 3.3 s before another
/// server saw it, and that takes the lease 10 s later: its work waits less than 15 s, the lease duration of Kubernetes.
const ELECTION: ElectionConfig = ElectionConfig {
    lease_duration: Duration::from_secs(10),
    renew_deadline: Duration::from_secs(7),
    retry_period: Duration::from_millis(1500),
    release: true,
};

/// The controllers of the parts of a server.
pub(super) struct Controllers {
    pub(super) parts: Vec<Arc<dyn Capability>>,
    pub(super) host: ControllerHost,
}

/// Checks that all kinds with owners and dependents are in stores that other servers have too, or none is. Otherwise, of two
/// servers, the one that runs the controllers would not find owners that the other has for itself, and delete their
/// dependents.
///
/// # Errors
/// Names a kind of each sort.
pub(super) fn check_stores(
    parts: &[Arc<dyn Capability>],
    catalog: &Catalog,
) -> Result<(), ServerError> {
    if parts.iter().all(|part| part.elected().is_none()) {
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
    pub(super) async fn run(self, stop: CancellationToken) {
        let running = self.parts.iter().map(|part| part.run(self.host.clone()));
        let in_every_server = async {
            tokio::select! {
                _ = join_all(running) => {}
                () = stop.cancelled() => {}
            }
        };
        tokio::join!(in_every_server, self.run_alone(stop.clone()));
    }

    /// The elected controllers, by name.
    fn elected(&self) -> impl Iterator<Item = (&'static str, &dyn Capability)> {
        let parts = self.parts.iter();
        parts.filter_map(|part| Some((part.elected()?, &**part)))
    }

    /// Runs the elected controllers until the signal, each while no other server over the same store does.
    async fn run_alone(&self, stop: CancellationToken) {
        let Some(shared) = &self.host.shared else {
            let running = self.elected().map(|(_, part)| part.lead(self.host.clone()));
            tokio::select! {
                _ = join_all(running) => {}
                () = stop.cancelled() => {}
            }
            return;
        };
        let names = self.elected().map(|(name, _)| name).collect();
        let servers = Servers::new(shared, Arc::clone(&self.host.registry), names);
        let servers = Arc::new(servers);
        let candidacies = self
            .elected()
            .map(|candidate| self.stand_for_election(candidate, shared, &servers, &stop));
        tokio::join!(servers.keep_record(&stop), join_all(candidacies));
    }

    /// Runs a controller whenever this server is elected for it, until the signal.
    async fn stand_for_election(
        &self,
        (name, part): (&'static str, &dyn Capability),
        shared: &SharedStore,
        servers: &Arc<Servers>,
        stop: &CancellationToken,
    ) {
        while !stop.is_cancelled() {
            let store = Arc::clone(&shared.store);
            let lease = StoredLease::new(store, &shared.key_prefix, name);
            let identity = LeaderElector::unique_identity("apiloom");
            let elector = LeaderElector::new(lease, identity, ELECTION);
            let mut elector = elector.expect("the times fit together");
            elector.register_metrics(&self.host.metrics.registry, name);
            tokio::select! {
                () = servers.wait_for_none_better(name) => {}
                () = elector.follow() => {}
                () = stop.cancelled() => return,
            }
            let led = elector.run(stop, async |leadership| {
                let ended = leadership.cancel().clone();
                let host = self.host.elected(leadership.guard(), servers);
                tokio::select! {
                    () = part.lead(host) => {}
                    () = servers.wait_for_better(name) => {}
                    () = ended.cancelled() => {}
                }
            });
            // A lost lease was logged by the elector; another one is tried for.
            let _ = led.await;
        }
    }
}
