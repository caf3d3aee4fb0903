//! [`TestServerBuilder`]: what a test server serves, and with which objects it begins.

use std::fmt;
use std::sync::{Arc, OnceLock};

use apiloom_client::Client;
use apiloom_meta::{MicroTime, Resource};
use apiloom_parts::{GARBAGE_COLLECTOR, NAMESPACE_CONTROLLER};
use apiloom_server::{Backend, Builder, Config, ControllerNames};
use apiloom_storage::Memory;
use tokio::sync::{oneshot, watch};

use super::clock::TestClock;
use super::control::Control;
use super::error::TestError;
use super::port::TokenAuthenticator;
use super::running::Running;
use super::seed::Seed;
use super::server::TestServer;
use super::shared::SharedState;
use super::store::TestStore;

type Step = Box<dyn FnOnce(Builder) -> Builder + Send>;
type Setting = Box<dyn FnOnce(&mut Config) + Send>;

/// Makes a [`TestServer`], or `T`, which has one.
///
/// ```
/// use apiloom_kinds::core::v1::{Namespace, NamespaceSpec};
/// use apiloom_meta::ObjectMeta;
/// use apiloom_testing::TestServer;
///
/// # async fn example() -> Result<(), apiloom_testing::TestError> {
/// let prod = Namespace {
///     metadata: ObjectMeta { name: Some("prod".to_owned()), ..ObjectMeta::default() },
///     ..Namespace::default()
/// };
/// // `install` and `configure` of a package are given in the same way.
/// let server = TestServer::builder()
///     .install(|builder| builder.all_built_in())
///     .objects([prod])
///     .build()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder starts nothing before `build`"]
pub struct TestServerBuilder<T> {
    steps: Vec<Step>,
    settings: Vec<Setting>,
    seeds: Vec<Seed>,
    controllers: ControllerNames,
    start_time: Option<MicroTime>,
    finish: Box<dyn FnOnce(TestServer) -> T + Send>,
}

impl<T> fmt::Debug for TestServerBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestServerBuilder")
            .field("objects", &self.seeds.len())
            .finish_non_exhaustive()
    }
}

impl TestServer {
    /// Begins a server. It serves Namespace, and what is added to it.
    pub fn builder() -> TestServerBuilder<Self> {
        TestServerBuilder::new(|server| server)
    }
}

impl<C> TestServerBuilder<(C, Control)> {
    /// Begins a server for generated clients, which `clients` makes. The server runs until the last of its clients and its
    /// control is dropped.
    pub fn for_clients(clients: impl FnOnce(Client) -> C + Send + 'static) -> Self {
        Self::new(|server| {
            let (client, control) = server.into_client();
            (clients(client), control)
        })
    }
}

impl<T> TestServerBuilder<T> {
    pub(crate) fn new(finish: impl FnOnce(TestServer) -> T + Send + 'static) -> Self {
        Self {
            steps: Vec::new(),
            settings: Vec::new(),
            seeds: Vec::new(),
            controllers: ControllerNames::NONE,
            start_time: None,
            finish: Box::new(finish),
        }
    }

    /// Makes something of what [`TestServerBuilder::build`] returns.
    pub(crate) fn map<U>(self, map: impl FnOnce(T) -> U + Send + 'static) -> TestServerBuilder<U>
    where
        T: 'static,
    {
        let finish = self.finish;
        TestServerBuilder {
            steps: self.steps,
            settings: self.settings,
            seeds: self.seeds,
            controllers: self.controllers,
            start_time: self.start_time,
            finish: Box::new(|server| map(finish(server))),
        }
    }

    /// Registers what the server serves: the `install` that `apiloom generate` writes, the `configure` of a package, or any
    /// other function of a server's builder. Called in the order of these calls.
    pub fn install(mut self, step: impl FnOnce(Builder) -> Builder + Send + 'static) -> Self {
        self.steps.push(Box::new(step));
        self
    }

    /// Serves the built-in kinds of all enabled cargo features too, such as ConfigMap and Event.
    pub fn built_in(self) -> Self {
        self.install(Builder::all_built_in)
    }

    /// Changes the configuration of the server, such as its limits. The backend, addresses and files have no effect.
    pub fn settings(mut self, change: impl FnOnce(&mut Config) + Send + 'static) -> Self {
        self.settings.push(Box::new(change));
        self
    }

    /// Objects that exist when the test begins, made in this order by ordinary requests: they are validated and get a uid, a
    /// generation and so on. Those without a namespace are in `default`; other namespaces are made. The status of an object
    /// is written too. One with a `deletionTimestamp` and finalizers is being deleted.
    pub fn objects<K: Resource>(mut self, objects: impl IntoIterator<Item = K>) -> Self {
        let def = K::definition();
        let seeds = objects.into_iter().map(|object| Seed::of(&def, &object));
        self.seeds.extend(seeds);
        self
    }

    /// Runs the garbage collector. Default off.
    pub fn garbage_collector(mut self) -> Self {
        self.controllers = self.controllers.with(GARBAGE_COLLECTOR);
        self
    }

    /// Runs the controller that deletes the content of deleted namespaces. Default off.
    pub fn namespace_controller(mut self) -> Self {
        self.controllers = self.controllers.with(NAMESPACE_CONTROLLER);
        self
    }

    /// The time at which the server's clock stands. Default the time of the start.
    pub fn start_time(mut self, time: MicroTime) -> Self {
        self.start_time = Some(time);
        self
    }

    /// Starts the server in the current tokio runtime, and makes its objects.
    ///
    /// # Errors
    /// All problems of what is registered; an object that is refused.
    pub async fn build(self) -> Result<T, TestError> {
        let memory = Memory::with_manual_time();
        let (pauses, losses) = (watch::Sender::new(0), watch::Sender::new(0));
        let start_time = self.start_time.unwrap_or_else(MicroTime::now);
        let clock = TestClock::new(start_time, Arc::clone(&memory));
        let token = Arc::new(OnceLock::new());
        let mut config = Config::new("test", "");
        for change in self.settings {
            change(&mut config);
        }
        config.backend = Backend::Memory;
        config.controllers = self.controllers;
        let store = TestStore {
            memory: Arc::clone(&memory),
            pauses: pauses.subscribe(),
            losses: losses.subscribe(),
        };
        let mut builder = apiloom_parts::builder(config)
            .storage(Arc::new(store))
            .clock(clock.manual().into())
            .authenticator(TokenAuthenticator(Arc::clone(&token)));
        for step in self.steps {
            builder = step(builder);
        }
        let server = builder.build().await?.start().await?;
        let loopback = server.loopback();
        let shared = SharedState::new(server.registry(), memory, clock, pauses, losses);
        let shared = Arc::new(shared);
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(server.serve(async {
            // An error means that the sender was dropped.
            let _ = stopped.await;
        }));
        let running = Arc::new(Running::new(Arc::clone(&shared), stop, serving));
        let client = Client::new(loopback.privileged());
        for seed in self.seeds {
            seed.create(&client).await?;
        }
        Ok((self.finish)(TestServer {
            shared,
            loopback,
            running,
            token,
        }))
    }
}
