//! [`Builder`] collects what a server serves, [`Server`] has everything but its listener, [`Ready`] listens.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use apiloom_meta::{GroupDef, Resource};
use apiloom_storage::{Memory, Storage};
use rustls::ServerConfig;
use tokio::net::TcpListener;

use super::certificates::{self, Certificates};
use super::filters::Auth;
use super::loopback::Loopback;
use super::running::{InProcess, Running};
use super::stores::{OwnStore, Stores};
use super::{Config, ServerError, kubeconfig, listener, private_file};
use crate::auth::{
    Authenticator, Authenticators, Authorizer, Authorizers, PrivilegedGroup, PublicInfo,
    StaticToken,
};
use crate::registry::{Admission, AdmissionContext, Handler, Registry, RegistryBuilder, Strategy};

/// One thing that was registered, done once the store is open.
type Step = Box<dyn FnOnce(&mut RegistryBuilder) + Send>;

/// An unfinished [`Server`]: what it serves is registered here, and nothing happens before [`Builder::build`].
pub struct Builder {
    config: Config,
    steps: Vec<Step>,
    /// In place of the configured backend.
    storage: Option<Arc<dyn Storage>>,
    /// Of single resources.
    own_storage: Vec<OwnStore>,
    authenticators: Authenticators,
    authorizers: Authorizers,
}

impl Builder {
    fn step(mut self, step: impl FnOnce(&mut RegistryBuilder) + Send + 'static) -> Self {
        self.steps.push(Box::new(step));
        self
    }

    /// What the server was told to do.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Declares a group: its versions in order of preference and its release.
    #[must_use]
    pub fn group(self, group: GroupDef) -> Self {
        self.step(move |registry| registry.group(group))
    }

    /// Serves a kind in one version; a kind of several versions is registered once for each.
    #[must_use]
    pub fn kind<K: Resource>(self) -> Self {
        self.step(|registry| registry.kind::<K>())
    }

    /// Serves a kind in one version as [`Builder::kind`] does, but makes its schema when it is first needed. What is checked
    /// with the schema is not checked at start then: `apiloom generate` checks it, and generated code calls this.
    #[must_use]
    pub fn lazy_kind<K: Resource>(self) -> Self {
        self.step(|registry| registry.lazy_kind::<K>())
    }

    /// Adds rules for a kind in one version. A version without rules of its own is judged by its hub's.
    #[must_use]
    pub fn strategy<K: Resource>(self, strategy: impl Strategy<K>) -> Self {
        self.step(move |registry| registry.strategy::<K>(strategy))
    }

    /// Adds what answers creates of a kind in one version that has no store (`store = none`). Each version has its own.
    #[must_use]
    pub fn handler<K: Resource>(self, handler: impl Handler<K>) -> Self {
        self.step(move |registry| registry.handler::<K>(handler))
    }

    /// Adds an admission plugin, made from what the context offers. Plugins run in the order they are added, after
    /// NamespaceLifecycle.
    #[must_use]
    pub fn admission<A: Admission>(
        self,
        make: impl FnOnce(&AdmissionContext) -> A + Send + 'static,
    ) -> Self {
        self.step(move |registry| registry.admission(|context| Box::new(make(context))))
    }

    /// Keeps objects in this store, in place of the configured backend. A store of your own must pass the conformance
    /// suite of `apiloom_storage` (feature `testing`). The server closes it when it ends.
    #[must_use]
    pub fn storage(mut self, storage: Arc<dyn Storage>) -> Self {
        self.storage = Some(storage);
        self
    }

    /// Keeps the objects of a kind, in all its versions, in a store of their own. See [`Builder::storage`].
    #[must_use]
    pub fn storage_of<K: Resource>(mut self, storage: Arc<dyn Storage>) -> Self {
        let (group, plural) = (K::GROUP.to_owned(), K::PLURAL.to_owned());
        self.own_storage.push((group, plural, storage));
        self
    }

    /// Adds an authenticator behind the server's own and those added before: see [`auth`](crate::auth).
    #[must_use]
    pub fn authenticator(mut self, authenticator: impl Authenticator) -> Self {
        self.authenticators.push(authenticator);
        self
    }

    /// Adds an authorizer. It is asked behind the rule for `system:masters` and those added before, and before the rule
    /// that all may read health and version: see [`auth`](crate::auth).
    #[must_use]
    pub fn authorizer(mut self, authorizer: impl Authorizer) -> Self {
        self.authorizers.push(authorizer);
        self
    }

    fn registry(
        config: &Config,
        steps: Vec<Step>,
        stores: &Stores,
    ) -> Result<Registry, ServerError> {
        let mut registry = stores.registry();
        registry.key_prefix(&config.storage_prefix);
        for step in steps {
            step(&mut registry);
        }
        registry.watch_cache(config.watch_cache_history_bytes);
        for own in &config.watch_cache_sizes {
            registry.watch_cache_size(&own.resource, own.changes);
        }
        registry.max_object_bytes(config.max_object_bytes);
        registry.disable_admission(&config.disabled_admission);
        registry.runtime_config(&config.runtime_config);
        registry.build().map_err(ServerError::Invalid)
    }

    /// Opens the store and puts the server together. Binds no socket, and makes no files but those of an embedded store.
    ///
    /// # Errors
    /// Every problem of the registered kinds at once; a store that cannot be used.
    pub async fn build(self) -> Result<Server, ServerError> {
        let Self {
            config,
            steps,
            storage,
            own_storage,
            authenticators,
            authorizers,
        } = self;
        check_clock(SystemTime::now())?;
        let stores = Stores::open(&config, storage, own_storage).await?;
        let registry = Arc::new(Self::registry(&config, steps, &stores)?);
        Ok(Server {
            config,
            registry,
            stores,
            auth: auth(authenticators, authorizers),
        })
    }

    /// The documents that follow from the registered kinds: OpenAPI and CRDs, by relative path.
    ///
    /// # Errors
    /// Every problem of the registered kinds at once, or of the CRDs: what Kubernetes would refuse in them.
    pub fn dump(self) -> Result<serde_json::Value, ServerError> {
        let stores = Stores::one(Memory::new());
        let all = self.step(RegistryBuilder::check_lazy_kinds);
        let registry = Self::registry(&all.config, all.steps, &stores)?;
        crate::http::crd::dump(&registry.catalog()).map_err(ServerError::Invalid)
    }
}

/// The serving certificate and the administrator's token, made when there are none.
async fn identity(config: &Config) -> Result<(Certificates, String), ServerError> {
    let config = config.clone();
    let cert_dir = config.cert_dir.clone();
    let made = tokio::task::spawn_blocking(move || {
        private_file::make_dir(&config.data_dir)?;
        let certificates = certificates::load_or_make(&config)?;
        Ok((certificates, kubeconfig::load_or_make_token(&config)?))
    });
    made.await.unwrap_or_else(|error| {
        Err(ServerError::Certificate {
            path: cert_dir,
            reason: error.to_string(),
        })
    })
}

/// The lists of a server, without those who are known by tokens: its own rules, and what the program adds.
fn auth(authenticators: Authenticators, authorizers: Authorizers) -> Auth {
    let mut auth = Auth {
        authenticators,
        authorizers: Authorizers::default(),
    };
    auth.authorizers.push(PrivilegedGroup);
    auth.authorizers.extend(authorizers);
    auth.authorizers.push(PublicInfo);
    auth
}

/// A server that has everything but its listener.
pub struct Server {
    config: Config,
    registry: Arc<Registry>,
    stores: Stores,
    auth: Auth,
}

impl Server {
    /// Begins a server.
    pub fn builder(config: Config) -> Builder {
        Builder {
            config,
            steps: Vec::new(),
            storage: None,
            own_storage: Vec::new(),
            authenticators: Authenticators::default(),
            authorizers: Authorizers::default(),
        }
    }

    /// Starts the registry, for requests of the same process alone: binds no socket, makes no certificates, tokens or
    /// kubeconfig.
    ///
    /// ```
    /// use apiloom_server::{Backend, Config, Server};
    /// use http::Request;
    /// use http_body_util::{BodyExt as _, Empty};
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let mut config = Config::new("test", "");
    /// config.backend = Backend::Memory;
    /// let server = Server::builder(config).build().await?.start().await?;
    /// let loopback = server.loopback().privileged();
    /// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    /// let serving = tokio::spawn(server.serve(async { drop(stopped.await) }));
    ///
    /// let request = Request::get("/api/v1/namespaces/default").body(Empty::<&[u8]>::new())?;
    /// let response = loopback.send(request).await;
    /// assert_eq!(response.status(), 200);
    /// let body = response.into_body().collect().await?.to_bytes();
    /// assert!(body.starts_with(br#"{"kind":"Namespace","apiVersion":"v1""#));
    ///
    /// drop(stop);
    /// serving.await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A store that cannot be read.
    pub async fn start(self) -> Result<InProcess, ServerError> {
        let started = start(&self.registry).await;
        self.stop_after_error(started).await?;
        let Self {
            config,
            registry,
            stores,
            auth,
        } = self;
        Running::new(&config, registry, stores, auth, String::new()).map(InProcess)
    }

    /// Binds the socket, starts the registry, makes a certificate and the administrator's token if there are none, and writes
    /// `admin.kubeconfig`.
    ///
    /// # Errors
    /// An address that cannot be listened on, a store that cannot be read, a folder or certificate that cannot be used.
    pub async fn bind(self) -> Result<Ready, ServerError> {
        let begun = self.begin().await;
        let begun = self.stop_after_error(begun).await?;
        let Self {
            config,
            registry,
            stores,
            mut auth,
        } = self;
        let Begun {
            listener,
            url,
            kubeconfig,
            certificates,
            token,
        } = begun;
        auth.authenticators
            .push_first(StaticToken::of_admin(&token));
        let address = url.trim_start_matches("https://").to_owned();
        Ok(Ready {
            listener,
            url,
            kubeconfig,
            tls: certificates.tls,
            running: Running::new(&config, registry, stores, auth, address)?,
        })
    }

    async fn begin(&self) -> Result<Begun, ServerError> {
        let config = &self.config;
        let address = SocketAddr::new(config.bind_address, config.secure_port);
        let listener = listener::bind(address).await?;
        let bound = listener.local_addr().map_err(|error| ServerError::Listen {
            address,
            reason: error.to_string(),
        })?;
        // Keys are made while the registry reads the store: both wait for the disk.
        let ((certificates, token), ()) =
            tokio::try_join!(identity(config), start(&self.registry))?;
        let url = kubeconfig::server_url(bound);
        let kubeconfig = kubeconfig::write(config, &url, &certificates.authority_pem, &token)?;
        Ok(Begun {
            listener,
            url,
            kubeconfig,
            certificates,
            token,
        })
    }

    /// Ends the tasks and closes the store of a server that does not start: tasks that still read would log the end of the
    /// runtime as an error of the store, beside the error that the user should see.
    async fn stop_after_error<T>(&self, outcome: Result<T, ServerError>) -> Result<T, ServerError> {
        if outcome.is_err() {
            self.registry.stop().await;
            self.stores.close().await;
        }
        outcome
    }
}

/// What a server that listens has before it takes requests.
struct Begun {
    listener: TcpListener,
    url: String,
    kubeconfig: PathBuf,
    certificates: Certificates,
    token: String,
}

async fn start(registry: &Arc<Registry>) -> Result<(), ServerError> {
    let started = registry.start().await;
    started.map_err(|error| ServerError::Storage(error.to_string()))
}

/// A server that listens; connections wait in the kernel's queue until [`Ready::serve`].
pub struct Ready {
    listener: TcpListener,
    url: String,
    kubeconfig: PathBuf,
    tls: Arc<ServerConfig>,
    running: Running,
}

impl Ready {
    /// Where clients reach it: `https://127.0.0.1:6443`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The kubeconfig of its administrator.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// What it serves, which can be changed: see [`Registry::change`].
    pub fn registry(&self) -> Arc<Registry> {
        self.running.registry()
    }

    /// Sends requests to it without a connection.
    pub fn loopback(&self) -> Loopback {
        self.running.loopback.clone()
    }

    /// Serves until `shutdown` is done, then ends watches, lets other requests finish and closes the store.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let Self {
            listener,
            tls,
            running,
            ..
        } = self;
        let filters = Arc::clone(&running.filters);
        let listen = |stop| listener::serve(listener, tls, filters, stop);
        running.serve(listen, shutdown).await;
    }
}

/// The first second of the year 10000.
const YEAR_10000: u64 = 253_402_300_800;

/// Times of objects have four digits for the year, and the store counts from 1970.
fn check_clock(now: SystemTime) -> Result<(), ServerError> {
    match now.duration_since(UNIX_EPOCH) {
        Ok(since) if since.as_secs() < YEAR_10000 => Ok(()),
        _ => Err(ServerError::Clock),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use apiloom_storage::StorageError;

    use super::*;

    #[tokio::test]
    async fn a_server_that_cannot_start_closes_its_store() {
        let store: Arc<dyn Storage> = Memory::new();
        // A folder in which no certificate can be made.
        let config = Config::new("test", "/proc/none");
        let builder = Server::builder(config).storage(Arc::clone(&store));
        let bound = builder.build().await.unwrap().bind().await;
        assert!(bound.is_err());
        let closed = store.current_revision().await;
        assert!(
            matches!(closed, Err(StorageError::Unavailable(_))),
            "{closed:?}"
        );
    }

    // Issue 9, point 16.
    #[test]
    fn a_clock_that_no_object_can_carry_is_refused_in_one_line() {
        let check = |now: Option<SystemTime>, is_good: bool| {
            let checked = check_clock(now.unwrap()).map_err(|error| error.to_string());
            assert_eq!(checked.is_ok(), is_good, "{now:?}");
            assert!(checked.err().is_none_or(|line| !line.contains('\n')));
        };
        let end = UNIX_EPOCH.checked_add(Duration::from_secs(YEAR_10000));
        let second = Duration::from_secs(1);
        check(Some(SystemTime::now()), true);
        check(Some(UNIX_EPOCH), true);
        check(UNIX_EPOCH.checked_sub(second), false);
        check(end.and_then(|end| end.checked_sub(second)), true);
        check(end, false);
    }
}
