//! The servers of a run and their store, with their addresses, also after a restart.

use std::sync::Arc;

use apiloom_tests::{Backend, Client, Cluster, Server};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::PATIENCE;

/// The servers of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// The name in messages.
    pub(crate) name: &'static str,
    pub(crate) backend: Backend,
    pub(crate) flags: &'static [&'static str],
    /// Whether a second server runs over the same store.
    pub(crate) is_double: bool,
    /// What happens to the first server between the phases of a run.
    pub(crate) between: Between,
}

/// What happens to a server between phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Between {
    Nothing,
    /// It is stopped and restarted.
    Stop,
    /// It is killed and restarted.
    Kill,
    /// The same for a server with a memory store, which loses its objects.
    Forget,
}

/// The clients of a server.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) http2: Client,
    pub(crate) http1: Client,
}

impl Address {
    fn of(server: &Server) -> Self {
        Self {
            http2: server.client(),
            http1: Client::of_http1(server.kubeconfig()),
        }
    }
}

/// The current addresses of the servers.
#[derive(Clone)]
pub(crate) struct Place {
    /// Number of restarts.
    pub(crate) starts: usize,
    /// Number of times that the store lost everything.
    pub(crate) era: usize,
    pub(crate) servers: Arc<[Address]>,
}

/// The running servers.
pub(crate) struct Site {
    setup: Setup,
    cluster: Cluster,
    replica: Option<Server>,
    place: watch::Sender<Place>,
}

impl Site {
    /// Starts the servers, and waits until they are ready.
    pub(crate) async fn start(setup: Setup) -> Self {
        let cluster = Cluster::start_alone(setup.backend, setup.flags);
        let replica = setup
            .is_double
            .then(|| cluster.replica().expect("a shared store"));
        let place = Place {
            starts: 0,
            era: 0,
            servers: Arc::new([]),
        };
        let site = Self {
            setup,
            cluster,
            replica,
            place: watch::Sender::new(place),
        };
        let servers = site.ready().await;
        site.place.send_modify(|place| place.servers = servers);
        site
    }

    /// Waits until the servers are ready.
    async fn ready(&self) -> Arc<[Address]> {
        let servers = [Some(self.cluster.server()), self.replica.as_ref()];
        let servers: Arc<[Address]> = servers.into_iter().flatten().map(Address::of).collect();
        let begin = Instant::now();
        for server in servers.iter() {
            while server.http2.get("/readyz").await.code != 200 {
                assert!(begin.elapsed() < PATIENCE, "a server does not get ready");
                tokio::task::yield_now().await;
            }
        }
        servers
    }

    /// Stops or kills the first server as planned and restarts it; returns the new addresses. No client writes
    /// meanwhile.
    pub(crate) async fn pass(&mut self) -> Place {
        let mut place = self.place.borrow().clone();
        match self.setup.between {
            Between::Nothing => return place,
            Between::Stop => tokio::task::block_in_place(|| self.cluster.stop()),
            Between::Kill | Between::Forget => self.cluster.kill(),
        }
        tokio::task::block_in_place(|| self.cluster.start_again());
        place.starts += 1;
        place.era += usize::from(self.setup.between == Between::Forget);
        place.servers = self.ready().await;
        place
    }

    /// Publishes the addresses of the servers to clients.
    pub(crate) fn publish(&self, place: Place) {
        self.place.send_replace(place);
    }

    /// The addresses of the servers, now and after every change.
    pub(crate) fn place(&self) -> watch::Receiver<Place> {
        self.place.subscribe()
    }

    /// The cluster, if another tool can write to its store.
    pub(crate) fn etcd(&self) -> Option<&Cluster> {
        (self.setup.backend == Backend::Etcd).then_some(&self.cluster)
    }
}

/// Waits until a server was restarted after this place was known, and returns the new one.
pub(crate) async fn next_place(place: &mut watch::Receiver<Place>, known: &Place) -> Option<Place> {
    let next = place.wait_for(|place| place.starts > known.starts);
    let next = timeout(PATIENCE, next).await.ok()?.ok()?;
    Some(next.clone())
}
