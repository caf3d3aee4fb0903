//! The controller of wardle. It labels each Flunder with the state of its reference, and keeps a deleted Flunder until no
//! other one refers to it.
//!
//! All it knows is in the objects and in its caches, so it may be stopped at any time, and any replica can continue.

mod reconcile;
pub mod reference;

use std::time::Duration;

use anyhow::Context as _;
use apiloom::client::Client;
use apiloom::client::cache::InformerFactory;
use apiloom::client::controller::{
    CancellationToken, ClientEvents, ClientLease, Controller, ElectionConfig, LeaderElector,
    Recorder,
};
use wardle::generated::clientset::Informers;

use reconcile::State;
use reference::{ByDisallowedName, ByReference, ByReferencedName};

/// The name of the controller in events, of its Lease, and its field manager.
pub const NAME: &str = "wardle-controller";
/// The finalizer of Flunders.
pub const FINALIZER: &str = "wardle.example.com/in-use";
/// The label with the state of a Flunder's reference: `None`, `Found`, `Missing` or `Disallowed`.
pub const LABEL: &str = "wardle.example.com/reference";

/// How long the first complete read may take; then the program fails, and its supervisor starts it again.
const SYNC_LIMIT: Duration = Duration::from_secs(60);

/// One replica of the controller.
#[derive(Clone, Debug)]
pub struct Replica {
    /// What no other replica is called.
    pub identity: String,
    /// The namespace of the Lease.
    pub lease_namespace: String,
    /// The times of the election.
    pub election: ElectionConfig,
}

impl Replica {
    /// Fills the caches, waits until this replica leads, and works until the signal.
    ///
    /// # Errors
    /// If the caches are not filled in time, or the lease is lost: the program should end then and be started again.
    pub async fn run(self, client: &Client, cancel: &CancellationToken) -> anyhow::Result<()> {
        let informers = Informers::new(InformerFactory::new(client));
        let flunders = informers.wardle_v1alpha1().flunders();
        let fischers = informers.wardle_v1alpha1().fischers();
        flunders.lister().add_index::<ByReference>();
        flunders.lister().add_index::<ByReferencedName>();
        fischers.lister().add_index::<ByDisallowedName>();
        informers.factory().start();
        let lease = ClientLease::new(client, &self.lease_namespace, NAME);
        let elector = LeaderElector::new(lease, &*self.identity, self.election)?;
        tokio::select! {
            synced = informers.factory().wait_for_sync(SYNC_LIMIT) => synced.context("cannot fill the caches")?,
            () = cancel.cancelled() => return Ok(()),
        }
        tracing::info!("the caches are filled");
        let lead = elector.run(cancel, async |leadership| {
            // Of this term: a later leader is not disturbed by what this one left behind.
            let client = client.guarded(&leadership);
            let events = Recorder::new(ClientEvents::new(&client), NAME, &*self.identity);
            let state = State {
                client,
                flunders: flunders.lister(),
                fischers: fischers.lister(),
                events: events.clone(),
            };
            let (referrers, checked) = (flunders.lister(), flunders.lister());
            Controller::new("flunder")
                .watch_self(&flunders)
                .watch_with(&flunders, move |event, enqueue| {
                    for key in reference::concerned(event, &referrers) {
                        enqueue.add(key);
                    }
                })
                .watch(&fischers, move |fischer| {
                    reference::referring_to_fischer(fischer, &checked)
                })
                .run(leadership.cancel(), move |request, context| {
                    let state = state.clone();
                    async move { state.reconcile(request, context).await }
                })
                .await;
            events.shutdown().await;
        });
        let led = lead.await;
        informers.factory().shutdown().await;
        led?;
        Ok(())
    }
}
