//! The present [`Table`], which a controller replaces, and what forwards its requests.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use http::HeaderValue;
use tokio::sync::{mpsc, watch};

use super::remote::{Addresses, ProxyIdentity, RemoteServer, RemoteTarget};
use super::table::{GROUP, LocalService, Service, Table};

/// How many notices of unreachable servers may wait for the controller; more are not needed.
const MAX_NOTICES: usize = 64;

/// The APIServices of a server, for its requests.
#[derive(Debug)]
pub struct Aggregation {
    table: ArcSwap<Table>,
    addresses: Arc<dyn Addresses>,
    identity: Arc<ProxyIdentity>,
    documents_interval: Duration,
    /// The value of `Via` that this server adds, by which it recognizes its own requests.
    pub(super) via: HeaderValue,
    unreachable: mpsc::Sender<String>,
    /// Whether the APIServices of the versions that are compiled in were all seen.
    is_registered: watch::Sender<bool>,
}

/// The names of APIServices whose servers a request did not reach.
pub type UnreachableNotices = mpsc::Receiver<String>;

impl Aggregation {
    /// Without APIServices. The servers of later ones are found by `addresses`, know this one by its certificate, and their
    /// documents are read at this interval.
    pub fn new(
        addresses: Arc<dyn Addresses>,
        identity: ProxyIdentity,
        documents_interval: Duration,
    ) -> (Self, UnreachableNotices) {
        let (unreachable, notices) = mpsc::channel(MAX_NOTICES);
        let id = uuid::Uuid::new_v4().simple().to_string();
        let via = HeaderValue::try_from(format!("2 apiloom-{id}"));
        let aggregation = Self {
            table: ArcSwap::default(),
            addresses,
            identity: Arc::new(identity),
            documents_interval,
            via: via.unwrap_or(HeaderValue::from_static("2 apiloom")),
            unreachable,
            is_registered: watch::Sender::new(false),
        };
        (aggregation, notices)
    }

    /// The server of a service.
    pub fn server(&self, target: RemoteTarget) -> RemoteServer {
        let identity = Arc::clone(&self.identity);
        RemoteServer::new(target, Arc::clone(&self.addresses), identity)
    }

    /// The client certificate of this server.
    pub fn identity(&self) -> &Arc<ProxyIdentity> {
        &self.identity
    }

    /// What is known now.
    pub(crate) fn table(&self) -> Arc<Table> {
        self.table.load_full()
    }

    /// The generation of what is known now.
    pub(crate) fn generation(&self) -> u64 {
        self.table.load().generation()
    }

    /// Replaces what is known, unless it is the same.
    pub fn publish(&self, mut services: Vec<Service>, local: Vec<LocalService>) {
        services.retain(|service| service.group != GROUP);
        let present = self.table.load();
        if present.services() != services || present.local() != local {
            self.table.store(Arc::new(Table::new(services, local)));
        }
    }

    /// Time between two reads of the documents of another server.
    pub fn documents_interval(&self) -> Duration {
        self.documents_interval
    }

    /// Notes that the APIServices of the versions that are compiled in were all seen, or cannot be made.
    pub fn set_registered(&self) {
        self.is_registered.send_replace(true);
    }

    /// Whether [`Aggregation::set_registered`] was called.
    pub fn is_registered(&self) -> bool {
        *self.is_registered.borrow()
    }

    /// Waits for [`Aggregation::set_registered`].
    pub async fn registered(&self) {
        // An error would mean that the sender, which this is, is gone.
        let _ = self.is_registered.subscribe().wait_for(|is| *is).await;
    }

    /// Asks the controller to look at an APIService soon.
    pub(super) fn report_unreachable(&self, name: &str) {
        // Those that wait are enough.
        let _ = self.unreachable.try_send(name.to_owned());
    }
}
