//! Runs the controllers of the parts of a server: some in every server, others in one of several servers over a store.

use std::sync::Arc;
use std::time::Duration;

use apiloom_client::controller::{CancellationToken, ElectionConfig, LeaderElector};
use apiloom_registry::{Catalog, Endpoint};
use futures_util::future::join_all;

use super::ServerError;
use super::capability::Capability;
use super::host::{ControllerHost, Servers, SharedStore, StoredLease, is_followed};

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
    let followed = endpoints.filter(|endpoint| is_followed(endpoint.def()));
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
