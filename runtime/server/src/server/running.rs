//! A running server with or without a listener: registry, filters, and the order of its shutdown.

use std::sync::Arc;
use std::time::Duration;

use apiloom_client::controller::CancellationToken;
use apiloom_client::metrics::Samples;
use apiloom_http::observation::metrics::Metrics;
use apiloom_http::{Api, ListedRoute, ServerInfo};
use apiloom_registry::Registry;
use apiloom_registry::auth::{Access, Auth};
use futures_util::future::{BoxFuture, try_join_all};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::additions::Additions;
use super::capability::Capability;
use super::controllers::{self, Controllers};
use super::filters::Filters;
use super::hooks::{Hook, HookContext, Host, Task};
use super::host::{ControllerHost, SharedStore};
use super::loopback::{Loopback, LoopbackToken};
use super::stores::Stores;
use super::{Config, ServerError, health, object_counts};

/// How long the end of the server waits for that of its controllers.
const END_OF_CONTROLLERS: Duration = Duration::from_secs(5);

/// How long the end of the server waits for a stop hook of its program.
const END_OF_STOP_HOOK: Duration = Duration::from_secs(5);

/// A server whose registry is started.
pub(super) struct RunningServer {
    pub(super) filters: Arc<Filters>,
    pub(super) loopback: Loopback,
    registry: Arc<Registry>,
    metrics: Arc<Metrics>,
    stores: Stores,
    /// Cancelled when `/readyz` begins to fail.
    leave: CancellationToken,
    /// Becomes true when new connections and watches end.
    stop: watch::Sender<bool>,
    shutdown_delay: Duration,
    drain: Duration,
    /// The capabilities of its parts.
    parts: Vec<Arc<dyn Capability>>,
    /// The store, if other servers may have it too.
    shared: Option<SharedStore>,
    hooks: Vec<Hook>,
    /// The controllers of the program.
    program: Vec<Task>,
    stop_hooks: Vec<Task>,
    /// The server that answers what this one does not serve.
    next: Option<Box<RunningServer>>,
}

/// What a server is built from.
pub(super) struct ServerParts {
    /// Started.
    pub(super) registry: Arc<Registry>,
    pub(super) stores: Stores,
    pub(super) auth: Auth,
    pub(super) access: Access,
    /// Host and port for clients; empty without a listener.
    pub(super) address: String,
    /// The capabilities of its parts.
    pub(super) capabilities: Vec<Arc<dyn Capability>>,
    pub(super) additions: Additions,
    /// The next server of the chain.
    pub(super) next: Option<Box<RunningServer>>,
}

impl RunningServer {
    /// Builds a server from its parts.
    pub(super) fn new(config: &Config, parts: ServerParts) -> Result<Self, ServerError> {
        let ServerParts {
            registry,
            stores,
            mut auth,
            access,
            address,
            capabilities,
            additions,
            next,
        } = parts;
        controllers::check_stores(&capabilities, &registry.catalog())?;
        let info = ServerInfo {
            address,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let leave = CancellationToken::new();
        let (stop, stopped) = watch::channel(false);
        let shared = stores.shared();
        let shared = shared.map(|store| SharedStore::new(store, config.storage_prefix.clone()));
        let health = health::checks(
            &stores,
            Arc::clone(&registry),
            leave.clone(),
            &additions,
            &capabilities,
        );
        let Additions {
            handlers,
            hooks,
            kinds,
            filters: added,
            controllers: program,
            stop_hooks,
            metrics: collectors,
            ..
        } = additions;
        let mut api = Api::new(Arc::clone(&registry), &info, health).stopping(stopped);
        for source in capabilities.iter().filter_map(|part| part.source()) {
            api = api.adding(source);
        }
        api = api.handling(handlers, config.endpoints).of_parts(kinds);
        if let Some(next) = &next {
            api = api.delegating(next.filters.api().clone());
        }
        let metrics = api.metrics();
        for collector in collectors {
            let collect = move |samples: &mut Samples| collector.collect(samples);
            metrics.of_controllers().register(collect);
        }
        capabilities.iter().for_each(|part| part.count_in(&metrics));
        let (token, authenticator) = LoopbackToken::make()?;
        auth.authenticators.push_first(authenticator);
        let auth = Arc::new(auth);
        access.connect(&auth);
        let auditor = capabilities.iter().find_map(|part| part.auditor());
        let filters = Arc::new(Filters::new(api, auth, auditor, added, config));
        Ok(Self {
            loopback: Loopback::new(Arc::clone(&filters), token),
            filters,
            registry,
            metrics,
            stores,
            leave,
            stop,
            shutdown_delay: config.shutdown_delay,
            drain: config.request_timeout,
            parts: capabilities,
            shared,
            hooks,
            program,
            stop_hooks,
            next,
        })
    }

    /// Waits until the parts of the server have done what they do before it is ready, while [`RunningServer::serve`] runs.
    pub(super) fn install(&self) -> BoxFuture<'static, Result<(), ServerError>> {
        self.wait_for(|_| true)
    }

    /// Waits until some parts of the server, and of the next ones, are ready.
    fn wait_for(
        &self,
        is_awaited: fn(&dyn Capability) -> bool,
    ) -> BoxFuture<'static, Result<(), ServerError>> {
        let of_next = self.next.as_ref().map(|next| next.wait_for(is_awaited));
        let (mut parts, registry) = (self.parts.clone(), self.registry());
        parts.retain(|part| is_awaited(&**part));
        Box::pin(async move {
            try_join_all(parts.iter().map(|part| part.ready(&registry))).await?;
            match of_next {
                Some(of_next) => of_next.await,
                None => Ok(()),
            }
        })
    }

    /// The routes of a server, as it has them when it is ready. It serves no requests but its own, runs nothing of its program, and stops.
    /// Parts that add no routes are not waited for: admission of the program may refuse their writes until its hooks have run.
    ///
    /// # Errors
    /// As [`RunningServer::install`].
    pub(super) async fn list_routes(mut self) -> Result<Vec<ListedRoute>, ServerError> {
        self.forget_program();
        let filters = Arc::clone(&self.filters);
        let installed = self.wait_for(|part| part.adds_routes());
        let (stop, stopped) = oneshot::channel::<()>();
        let listed = async {
            let routes = installed.await.map(|()| filters.api().routes());
            drop(stop);
            routes
        };
        let shutdown = async {
            // Its sender is dropped.
            let _ = stopped.await;
        };
        let (listed, ()) = tokio::join!(listed, self.serve(until_stopped, shutdown));
        listed
    }

    /// Forgets what the programs of this server and the next ones run.
    fn forget_program(&mut self) {
        self.hooks.clear();
        self.program.clear();
        self.stop_hooks.clear();
        if let Some(next) = &mut self.next {
            next.forget_program();
        }
    }

    /// Serves as the next server of another one: until the sender of `stop` tells that one's end, and then until that has
    /// answered its requests, which `answered` tells.
    fn serve_as_next(
        self,
        mut stop: watch::Receiver<bool>,
        answered: oneshot::Receiver<()>,
    ) -> BoxFuture<'static, ()> {
        let shutdown = async move {
            // An error means that the other one is gone.
            let _ = stop.wait_for(|is_stopping| *is_stopping).await;
        };
        let listen = move |_| async move {
            // Its sender is dropped.
            let _ = answered.await;
        };
        Box::pin(self.serve(listen, shutdown))
    }

    /// The registries of the servers after this one.
    fn next_registries(&self) -> Vec<Arc<Registry>> {
        let servers = std::iter::successors(self.next.as_deref(), |one| one.next.as_deref());
        servers.map(|server| Arc::clone(&server.registry)).collect()
    }

    /// How long requests in flight are waited for.
    pub(super) fn drain(&self) -> Duration {
        self.drain
    }

    pub(super) fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.registry)
    }

    /// Serves until `shutdown` completes and the delay of shutdowns has passed, then ends watches, waits for other requests
    /// in flight and closes the store. `listen` gets a channel that becomes true at that point, and completes when its connections have ended.
    pub(super) async fn serve<L: Future<Output = ()>>(
        self,
        listen: impl FnOnce(watch::Receiver<bool>) -> L,
        shutdown: impl Future<Output = ()>,
    ) {
        let next_registries = self.next_registries();
        let Self {
            loopback,
            registry,
            metrics,
            stores,
            leave,
            stop,
            shutdown_delay,
            drain,
            parts,
            shared,
            hooks,
            program,
            stop_hooks,
            next,
            ..
        } = self;
        // Aborted when this function ends or is cancelled.
        let mut background = JoinSet::new();
        let of_controllers = metrics.of_controllers().clone();
        background.spawn(object_counts::keep(Arc::clone(&registry), metrics));
        for hook in hooks {
            let loopback = loopback.clone();
            background.spawn(hook.run(HookContext { loopback }));
        }
        let mut servers = JoinSet::new();
        let (answering, answered) = oneshot::channel();
        if let Some(next) = next {
            servers.spawn(next.serve_as_next(stop.subscribe(), answered));
        }
        let controllers = Controllers {
            parts,
            host: ControllerHost::new(
                Arc::clone(&registry),
                next_registries,
                loopback.clone(),
                shared,
                of_controllers,
            ),
        };
        let end = CancellationToken::new();
        let mut own = JoinSet::new();
        own.spawn(controllers.run(end.clone()));
        let host = Host {
            loopback: loopback.clone(),
            registry: Arc::clone(&registry),
            stop: end.clone(),
        };
        for controller in program {
            own.spawn(controller.run(host.clone()));
        }
        let listening = listen(stop.subscribe());
        tokio::pin!(listening);
        let asked_to_stop = async {
            shutdown.await;
            leave.cancel();
            if !shutdown_delay.is_zero() {
                tracing::info!(?shutdown_delay, "not ready any more; still serving");
                tokio::time::sleep(shutdown_delay).await;
            }
        };
        let stopped = tokio::select! {
            () = &mut listening => {
                leave.cancel();
                stop.send_replace(true);
                Instant::now()
            }
            () = asked_to_stop => {
                // From here on watches end and no new connection is accepted.
                stop.send_replace(true);
                let stopped = Instant::now();
                listening.await;
                stopped
            }
        };
        // They would go on sending requests. An elected one gives its lease up, which needs the store.
        end.cancel();
        let ended = async { while own.join_next().await.is_some() {} };
        let ended = tokio::time::timeout(END_OF_CONTROLLERS, ended).await;
        if ended.is_err() {
            tracing::warn!("the controllers are cut off after {END_OF_CONTROLLERS:?}");
        }
        own.shutdown().await;
        run_stop_hooks(stop_hooks, &host).await;
        // What is left of the time of requests in flight: those in process end with those of connections.
        loopback
            .drain(drain.saturating_sub(stopped.elapsed()))
            .await;
        drop(answering);
        while servers.join_next().await.is_some() {}
        background.shutdown().await;
        registry.stop().await;
        stores.close().await;
    }
}

/// Runs the stop hooks of a program, one after the other.
async fn run_stop_hooks(hooks: Vec<Task>, host: &Host) {
    for hook in hooks {
        let name = hook.name().to_owned();
        let ended = tokio::time::timeout(END_OF_STOP_HOOK, hook.run(host.clone()));
        if ended.await.is_err() {
            tracing::warn!(
                hook = name,
                "a stop hook is cut off after {END_OF_STOP_HOOK:?}"
            );
        }
    }
}

/// Waits until the server stops, in place of a listener.
async fn until_stopped(mut stop: watch::Receiver<bool>) {
    // An error means that the server was dropped.
    let _ = stop.wait_for(|is_stopping| *is_stopping).await;
}

/// A server without a listener: its requests come from the same process, through [`InProcess::loopback`].
pub struct InProcess(pub(super) RunningServer);

impl InProcess {
    /// The registry, whose catalog can be changed; see [`Registry::change`].
    pub fn registry(&self) -> Arc<Registry> {
        self.0.registry()
    }

    /// Completes when the parts of the server have done what they do before it is ready, while [`InProcess::serve`] runs: such as to install
    /// definitions and to serve their kinds, and to make the APIServices of the server's own versions.
    ///
    /// # Errors
    /// As [`BoundServer::install`](super::BoundServer::install).
    pub fn install(&self) -> impl Future<Output = Result<(), ServerError>> + Send + use<> {
        self.0.install()
    }

    /// A client of this server.
    pub fn loopback(&self) -> Loopback {
        self.0.loopback.clone()
    }

    /// Serves until `shutdown` completes, then ends watches, waits for other requests in flight and closes the store.
    /// Requests are also answered before, but without object counts in `/metrics`.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        self.0.serve(until_stopped, shutdown).await;
    }
}
