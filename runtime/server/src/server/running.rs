//! What runs of a server with or without a listener: its registry, its filters, and the order in which they end.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::filters::{Auth, Filters};
use super::in_flight::InFlight;
use super::loopback::{Loopback, LoopbackToken};
use super::stores::Stores;
use super::{Config, ServerError, health, listener, object_counts};
use crate::http::metrics::Metrics;
use crate::http::{Api, ServerInfo};
use crate::registry::Registry;

/// A server whose registry is started.
pub(super) struct Running {
    pub(super) filters: Arc<Filters>,
    pub(super) loopback: Loopback,
    registry: Arc<Registry>,
    metrics: Arc<Metrics>,
    stores: Stores,
    stop: watch::Sender<bool>,
}

impl Running {
    /// Puts a server together whose registry is started. `address` is where clients reach it; empty without a listener.
    pub(super) fn new(
        config: &Config,
        registry: Arc<Registry>,
        stores: Stores,
        mut auth: Auth,
        address: String,
    ) -> Result<Self, ServerError> {
        let info = ServerInfo {
            address,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let (stop, stopped) = watch::channel(false);
        let health = health::checks(&stores, Arc::clone(&registry), stopped.clone());
        let api = Api::new(Arc::clone(&registry), &info, health).stopping(stopped);
        let metrics = api.metrics();
        let in_flight = InFlight::new(
            config.max_requests_inflight,
            config.max_mutating_requests_inflight,
        );
        let (token, authenticator) = LoopbackToken::make()?;
        auth.authenticators.push_first(authenticator);
        let filters = Arc::new(Filters::new(api, auth, in_flight, config.goaway_chance));
        Ok(Self {
            loopback: Loopback::new(Arc::clone(&filters), token),
            filters,
            registry,
            metrics,
            stores,
            stop,
        })
    }

    pub(super) fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.registry)
    }

    /// Serves until `shutdown` is done, then ends watches, lets other requests finish and closes the store. `listen` is given
    /// what becomes true then, and ends when its connections have.
    pub(super) async fn serve<L: Future<Output = ()>>(
        self,
        listen: impl FnOnce(watch::Receiver<bool>) -> L,
        shutdown: impl Future<Output = ()>,
    ) {
        let Self {
            loopback,
            registry,
            metrics,
            stores,
            stop,
            ..
        } = self;
        // Ends with this function, however it ends.
        let mut background = JoinSet::new();
        background.spawn(object_counts::keep(Arc::clone(&registry), metrics));
        let listening = listen(stop.subscribe());
        tokio::pin!(listening);
        tokio::select! {
            () = &mut listening => {
                stop.send_replace(true);
            }
            () = shutdown => {
                // From here on /readyz fails, watches end and no new client is accepted.
                stop.send_replace(true);
                listening.await;
            }
        }
        loopback.drain(listener::DRAIN).await;
        background.shutdown().await;
        registry.stop().await;
        stores.close().await;
    }
}

/// A server without a listener: its requests come from the same process, through [`InProcess::loopback`].
pub struct InProcess(pub(super) Running);

impl InProcess {
    /// What it serves, which can be changed: see [`Registry::change`].
    pub fn registry(&self) -> Arc<Registry> {
        self.0.registry()
    }

    /// Sends requests to it.
    pub fn loopback(&self) -> Loopback {
        self.0.loopback.clone()
    }

    /// Serves until `shutdown` is done, then ends watches, lets other requests finish and closes the store. Requests are
    /// answered before, too, but their objects are not counted for `/metrics`.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        // What would listen goes on until the server stops.
        let wait = |mut stop: watch::Receiver<bool>| async move {
            // An error means that the server is gone.
            let _ = stop.wait_for(|is_stopping| *is_stopping).await;
        };
        self.0.serve(wait, shutdown).await;
    }
}
