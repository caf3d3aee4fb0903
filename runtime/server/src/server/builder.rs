//! [`Builder`] registers what a server serves, and makes a [`Server`] of it.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use apiloom_client::metrics::Collect;
use apiloom_http::documents::health::Check;
use apiloom_http::part_name::{PROGRAM, PartName};
use apiloom_http::{ConnectSubresource, ListedRoute, PathHandler};
use apiloom_kinds::BuiltIn;
use apiloom_meta::{Clock, GroupDef, Resource};
use apiloom_registry::auth::{
    Access, Auth, Authenticator, Authenticators, Authorizer, Authorizers, BoxError,
    PrivilegedGroup, PublicInfo,
};
use apiloom_registry::{
    Admission, AdmissionContext, Encryption, Handler, Lister, Listers, Reader, Registry,
    RegistryBuilder, Strategy, Subresource, Writer,
};
use apiloom_storage::{Memory, Storage};
use clap::{ArgMatches, Command};

use super::additions::{AddedHandler, AdditionList};
use super::binding::Server;
use super::capability::{Capability, CapabilityContext, MakeCapability};
use super::chain::{ChainFilter, FilterInfo};
use super::filter::{AddedFilters, Filter};
use super::filters::Filters;
use super::hooks::{Hook, HookContext, Host, Task};
use super::services::{ClusterDns, ServiceMap, ServiceResolver};
use super::stores::{OwnStore, Stores};
use super::{Config, ServerError, kubeconfig, listener};

/// A registration, applied once the store is open.
type Step = Box<dyn FnOnce(&mut RegistryBuilder) + Send>;

/// Where the objects of a server are.
enum StoreSource {
    /// In the stores of the program and its configuration.
    Configured,
    /// In memory, for a server that is only listed.
    Memory,
}

/// Builder of a [`Server`]. Registers what it serves; nothing is checked or opened before [`Builder::build`]. A new one has no parts: those
/// of Kubernetes, such as the deletion of the content of namespaces, are those of the crate `apiloom-parts`.
pub struct Builder {
    pub(super) config: Config,
    steps: Vec<Step>,
    /// A store of the program, in place of the configured backend.
    storage: Option<Arc<dyn Storage>>,
    /// Stores of the program for single resources.
    own_storage: Vec<OwnStore>,
    authenticators: Authenticators,
    authorizers: Authorizers,
    access: Access,
    listers: Listers,
    services: Option<Arc<dyn ServiceResolver>>,
    /// The part whose additions are collected.
    part: PartName,
    /// Those that are not registered yet.
    pub(super) parts: Vec<Box<dyn Part>>,
    capabilities: Vec<MakeCapability>,
    added: AdditionList,
    next: Option<Box<Server>>,
}

/// A part of a server: what belongs together, and can be left out, in one value. A program's own extension is one, and gives it to its
/// builder by [`Builder::part`]; `print-chain` and `print-routes` show what each part brought.
///
/// ```
/// use apiloom_server::http::PathRequest;
/// use apiloom_server::server::Part;
/// use apiloom_server::{Builder, Host};
///
/// /// Answers who is asking.
/// struct Whoami;
///
/// impl Part for Whoami {
///     fn name(&self) -> &'static str {
///         "whoami"
///     }
///
///     fn register(self: Box<Self>, builder: Builder) -> Builder {
///         let answer = async |request: PathRequest| format!("{}\n", request.user.name);
///         builder
///             .path("/whoami", answer)
///             .controller("whoami", async |host: Host| host.stop.cancelled().await)
///     }
/// }
/// # fn example(builder: Builder) -> Builder {
/// builder.part(Whoami)
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a part of a server",
    note = "implement `apiloom::server::Part` for it"
)]
pub trait Part: Send + 'static {
    /// Its name in lists: words with dashes, other than `host` and `program`, which no other part of the server has.
    fn name(&self) -> &'static str;

    /// The name of its controller that one server at a time runs ([`Capability::elected`]), and what that does, for the help of
    /// `--controllers`. Default none.
    fn controller(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    /// Adds its flags to those of the server: with a group of clap, its `augment_args`. No flag of the server may have their names
    /// already, which are also `-o` and `--output` of `print-routes`; and no group the name of this one, which is that of its type. Called for the command line of [`Program::main`](super::Program::main), possibly
    /// more than once, but not for a part that another one adds. Default: none.
    fn add_flags(&self, command: Command) -> Command {
        command
    }

    /// Reads its flags: with a group of clap, its `from_arg_matches`. Called before [`Part::register`], possibly more than once, and by
    /// [`Program::main`](super::Program::main) alone: a server that is made in code has the part as it is. Default: nothing.
    ///
    /// # Errors
    /// Values that do not fit together; they end the program.
    fn read_flags(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let _ = matches;
        Ok(())
    }

    /// Adds what the part has, by the methods of the builder: kinds with their strategies and handlers, admission, authenticators, authorizers,
    /// filters, paths, controllers, health checks, metrics, and hooks before the server is ready ([`Builder::post_start_hook`]) and at its
    /// stop. All of it is listed as the part's. Called once, when the server is built, behind what the program adds itself.
    fn register(self: Box<Self>, builder: Builder) -> Builder;
}

impl Builder {
    /// A builder without parts.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            steps: Vec::new(),
            storage: None,
            own_storage: Vec::new(),
            authenticators: Authenticators::default(),
            authorizers: Authorizers::default(),
            access: Access::default(),
            listers: Listers::default(),
            services: None,
            part: PROGRAM,
            parts: Vec::new(),
            capabilities: Vec::new(),
            added: AdditionList::default(),
            next: None,
        }
    }

    /// The configuration of the server.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Declares a group: its versions in order of preference and its release.
    #[must_use]
    pub fn group(self, group: GroupDef) -> Self {
        with_step(self, move |registry| registry.group(group))
    }

    /// Serves one version of a kind; a kind with several versions is registered once for each.
    #[must_use]
    pub fn kind<K: Resource>(mut self) -> Self {
        self.added.kinds.add(K::GROUP, K::PLURAL, self.part);
        with_step(self, |registry| registry.kind::<K>())
    }

    /// As [`Builder::kind`], but the schema is made when it is first needed, and not checked at start. `apiloom
    /// generate` runs these checks; generated code uses this method.
    #[must_use]
    pub fn lazy_kind<K: Resource>(mut self) -> Self {
        self.added.kinds.add(K::GROUP, K::PLURAL, self.part);
        with_step(self, |registry| registry.lazy_kind::<K>())
    }

    /// Serves a built-in kind, such as ConfigMap, with the rules of kube-apiserver. Its schema is made when it is first
    /// needed, as for [`Builder::lazy_kind`].
    ///
    /// ```
    /// # #[cfg(feature = "apis-core")] {
    /// use apiloom_kinds::core::v1::{ConfigMap, Secret};
    /// # fn example(builder: apiloom_server::Builder) -> apiloom_server::Builder {
    /// builder.built_in::<ConfigMap>().built_in::<Secret>()
    /// # }
    /// # }
    /// ```
    #[must_use]
    pub fn built_in<K: BuiltIn>(self) -> Self {
        with_step(self, K::register)
    }

    /// Serves the built-in kinds of all enabled cargo features (`apis-core` and so on; `apis` of `apiloom` enables all).
    #[must_use]
    pub fn all_built_in(self) -> Self {
        with_step(self, apiloom_kinds::register_all)
    }

    /// Adds a strategy for one version of a kind. A version without one uses the strategy of its hub.
    #[must_use]
    pub fn strategy<K: Resource>(self, strategy: impl Strategy<K>) -> Self {
        with_step(self, move |registry| registry.strategy::<K>(strategy))
    }

    /// Adds the handler of creates for one version of a kind without a store (`store = none`). Each version has its
    /// own.
    #[must_use]
    pub fn handler<K: Resource>(self, handler: impl Handler<K>) -> Self {
        with_step(self, move |registry| registry.handler::<K>(handler))
    }

    /// Adds the code that reads the objects of one version of a kind without a store (`store = code`): get, list and watch.
    #[must_use]
    pub fn reader<K: Resource>(self, reader: impl Reader<K>) -> Self {
        with_step(self, move |registry| registry.reader::<K>(reader))
    }

    /// Adds the code that writes the objects of one version of a kind without a store, which has a reader too.
    #[must_use]
    pub fn writer<K: Resource>(self, writer: impl Writer<K>) -> Self {
        with_step(self, move |registry| registry.writer::<K>(writer))
    }

    /// Uses this handler for the subresources of a kind that name its type, in place of one made by [`Default`]: it has
    /// what the program gave it, such as a key or a client.
    #[must_use]
    pub fn subresource<K: Resource>(self, handler: impl Subresource<K>) -> Self {
        with_step(self, move |registry| registry.subresource::<K, _>(handler))
    }

    /// As [`Builder::subresource`], for a subresource with `connect`.
    #[must_use]
    pub fn connecter<K: Resource>(self, handler: impl ConnectSubresource<K>) -> Self {
        with_step(self, move |registry| registry.connecter(handler))
    }

    /// Adds an admission plugin, constructed with a context that provides listers. Plugins run in the order they are
    /// added, after NamespaceLifecycle.
    #[must_use]
    pub fn admission<A: Admission>(
        self,
        make: impl FnOnce(&AdmissionContext) -> A + Send + 'static,
    ) -> Self {
        with_step(self, move |registry| {
            registry.admission(|context| Box::new(make(context)));
        })
    }

    /// A lister of all objects of a kind, for strategies, admission plugins and authorizers that are given to this builder, and
    /// for code beside the server. It can be read once the server is ready. A kind that cannot be listed, such as one that is
    /// not registered, is an error of [`Builder::build`].
    ///
    /// ```
    /// # use apiloom_server::{Builder, Lister};
    /// # use apiloom_kinds::core::v1::Namespace;
    /// # struct Rules { namespaces: Lister<Namespace> }
    /// # fn example(builder: Builder) {
    /// let rules = Rules { namespaces: builder.lister() };
    /// # }
    /// ```
    pub fn lister<K: Resource>(&self) -> Lister<K> {
        self.listers.lister()
    }

    /// Uses this store in place of the configured backend. A store of your own must pass the conformance suite of
    /// `apiloom_storage` (feature `testing`). The server closes it at its end.
    #[must_use]
    pub fn storage(mut self, storage: Arc<dyn Storage>) -> Self {
        self.storage = Some(storage);
        self
    }

    /// Uses a separate store for a kind, in all its versions. See [`Builder::storage`].
    #[must_use]
    pub fn storage_of<K: Resource>(mut self, storage: Arc<dyn Storage>) -> Self {
        let (group, plural) = (K::GROUP.to_owned(), K::PLURAL.to_owned());
        self.own_storage.push((group, plural, storage));
        self
    }

    /// Dates writes by this clock, such as a [`ManualClock`](apiloom_meta::ManualClock) of a test. Default: the clock of the
    /// system.
    #[must_use]
    pub fn clock(self, clock: Clock) -> Self {
        with_step(self, move |registry| registry.clock(clock))
    }

    /// Adds an authenticator, which runs after the server's own and those added before; see [`auth`](apiloom_registry::auth).
    #[must_use]
    pub fn authenticator(mut self, authenticator: impl Authenticator) -> Self {
        self.authenticators.push(authenticator);
        self
    }

    /// Adds an authorizer. It runs after the rule for `system:masters` and those added before, and before the rule
    /// that allows all users to read health and version; see [`auth`](apiloom_registry::auth).
    #[must_use]
    pub fn authorizer(mut self, authorizer: impl Authorizer) -> Self {
        self.authorizers.push(authorizer);
        self
    }

    /// Asks the authorizers of the server, once it serves: for handlers and admission plugins that decide by what a user may do.
    pub fn access(&self) -> Access {
        self.access.clone()
    }

    /// Finds the addresses of services by this resolver; see [`services`](super::services). Default: by the file of the
    /// configuration, without one by the DNS of a cluster.
    #[must_use]
    pub fn service_resolver(mut self, resolver: impl ServiceResolver) -> Self {
        self.services = Some(Arc::new(resolver));
        self
    }

    /// Answers requests for exactly this path by a handler of the program, and lists the path at `/`. It comes after all filters;
    /// the path is authorized as it is written: one outside of `/api` and `/apis` as a path, not as a resource. A document of
    /// the server at this path is replaced.
    ///
    /// ```
    /// use apiloom_server::http::PathRequest;
    ///
    /// async fn hello(request: PathRequest) -> String {
    ///     format!("hello {}\n", request.user.name)
    /// }
    /// # fn example(builder: apiloom_server::Builder) -> apiloom_server::Builder {
    /// builder.path("/hello", hello)
    /// # }
    /// ```
    #[must_use]
    pub fn path(self, path: impl Into<String>, handler: impl PathHandler) -> Self {
        handled(self, path.into(), (false, true), handler)
    }

    /// As [`Builder::path`], without a line in the list at `/`.
    #[must_use]
    pub fn unlisted_path(self, path: impl Into<String>, handler: impl PathHandler) -> Self {
        handled(self, path.into(), (false, false), handler)
    }

    /// As [`Builder::path`] for all paths below a prefix, which ends with a slash. The longest prefix of a path wins. What the
    /// server has itself comes first.
    #[must_use]
    pub fn prefix(self, prefix: impl Into<String>, handler: impl PathHandler) -> Self {
        handled(self, prefix.into(), (true, true), handler)
    }

    /// As [`Builder::prefix`], without a line in the list at `/`.
    #[must_use]
    pub fn unlisted_prefix(self, prefix: impl Into<String>, handler: impl PathHandler) -> Self {
        handled(self, prefix.into(), (true, false), handler)
    }

    /// Leaves what this server does not serve to the next one, behind the filters of this one. That may have a next one too;
    /// after the last one comes the 404.
    ///
    /// A version of a group belongs to the first server that has it. The groups and OpenAPI documents of all are merged, and with
    /// the kind APIService the first one has APIServices for all of them; health checks, post-start hooks and handlers of paths of the
    /// next one are those of the first, and its requests are counted there; metrics that were added to it are shown nowhere. The next
    /// one runs its own controllers and stops with the first. Its configuration of addresses, certificates, limits and authentication
    /// has no effect; its own APIServices are not followed.
    /// Each server has its own store, and in it its own namespaces, unless the same one is given to both.
    ///
    /// ```
    /// # use apiloom_server::{Builder, Config, Server, ServerError};
    /// # use apiloom_storage::Memory;
    /// # async fn example() -> Result<Server, ServerError> {
    /// let store = Memory::new();
    /// let extensions = Builder::new(Config::new("extensions", "")).storage(store.clone());
    /// let extensions = extensions.all_built_in().build().await?;
    /// let first = Builder::new(Config::new("first", "")).storage(store);
    /// first.delegate(extensions).build().await
    /// # }
    /// ```
    #[must_use]
    pub fn delegate(mut self, next: Server) -> Self {
        self.next = Some(Box::new(next));
        self
    }

    /// Runs a function once the server serves, with a client of it. The health check `poststarthook/NAME` fails until it has
    /// succeeded; after an error it fails for ever, so that supervisors restart the process.
    ///
    /// ```
    /// use apiloom_server::HookContext;
    /// use apiloom_server::auth::BoxError;
    ///
    /// async fn warm_up(context: HookContext) -> Result<(), BoxError> {
    ///     let request = http::Request::get("/version").body(String::new())?;
    ///     match context.loopback.privileged().send(request).await.status() {
    ///         http::StatusCode::OK => Ok(()),
    ///         code => Err(format!("the version is answered with {code}").into()),
    ///     }
    /// }
    /// # fn example(builder: apiloom_server::Builder) -> apiloom_server::Builder {
    /// builder.post_start_hook("warm-up", warm_up)
    /// # }
    /// ```
    #[must_use]
    pub fn post_start_hook<F>(
        mut self,
        name: impl Into<String>,
        run: impl FnOnce(HookContext) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.added.hooks.push(Hook::new(name, run));
        self
    }

    /// Adds a filter, at its place in the chain of the server; see [`Filter`].
    #[must_use]
    pub fn filter(mut self, filter: impl Filter) -> Self {
        self.added.filters.push(self.part, Box::new(filter));
        self
    }

    /// Adds a part. Parts are registered in their order when the server is built, after all that is added directly.
    #[must_use]
    pub fn part(mut self, part: impl Part) -> Self {
        self.parts.push(Box::new(part));
        self
    }

    /// Adds parts, as [`Builder::part`] each of them.
    #[must_use]
    pub fn parts(mut self, parts: impl IntoIterator<Item = Box<dyn Part>>) -> Self {
        self.parts.extend(parts);
        self
    }

    /// Adds what a part does while the server runs. Capabilities start in the order in which they are added.
    #[must_use]
    pub fn capability<C: Capability>(
        mut self,
        make: impl FnOnce(&CapabilityContext) -> C + Send + 'static,
    ) -> Self {
        self.capabilities
            .push(Box::new(|context| Arc::new(make(context))));
        self
    }

    /// Runs a controller in the server while it serves: a function of the [`Host`], which ends when its signal is set, and is dropped 5 s
    /// later. Of several servers over one store each runs it; one that must run alone stands for an election of
    /// `apiloom::client::controller`. A controller that ends or panics is not started again.
    #[must_use]
    pub fn controller<F>(
        mut self,
        name: impl Into<String>,
        run: impl FnOnce(Host) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.added.controllers.push(Task::new(name, run));
        self
    }

    /// Runs a function when the server stops: no request of the network is in flight any more, the controllers have ended, and requests of the
    /// loopback and the store still work. It may take 5 s.
    #[must_use]
    pub fn stop_hook<F>(
        mut self,
        name: impl Into<String>,
        run: impl FnOnce(Host) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.added.stop_hooks.push(Task::new(name, run));
        self
    }

    /// Adds metrics to those of `/metrics`: a function that reports the present values, or another collector.
    #[must_use]
    pub fn metrics(mut self, collect: impl Collect) -> Self {
        self.added.metrics.push(Arc::new(collect));
        self
    }

    /// Adds a health check of the program.
    #[must_use]
    pub fn health_check(mut self, check: Check) -> Self {
        self.added.checks.push(check.of_part(self.part));
        self
    }

    /// Opens the store and builds the server. Binds no socket, and creates no files except those of an embedded store.
    ///
    /// # Errors
    /// All problems that parts find, such as those of definitions to install, before the store is opened; names of controllers that no part
    /// has; all problems of the registered kinds; a store that cannot be opened.
    pub async fn build(self) -> Result<Server, ServerError> {
        build_over(self, StoreSource::Configured).await
    }

    /// The filters that requests from the network pass, in their order, as `print-chain` prints them. Those of the same process begin
    /// with `abandoned-requests`.
    ///
    /// # Errors
    /// All problems of what was added, such as two filters of the same name.
    pub fn chain(self) -> Result<Vec<ChainFilter>, ServerError> {
        let added = with_parts(self).added;
        let chain = chain(&added.filters);
        added.check(&chain).map(|_| chain)
    }

    /// The paths that the server answers, in the order in which a request is matched, as `print-routes` prints them. They are those of a
    /// new server with this configuration over a store in memory: with the kinds of definitions that a part installs, and without those of
    /// definitions that are stored. Nothing is bound, no store is opened, and no hook runs.
    ///
    /// # Errors
    /// As [`Builder::build`], and for definitions as [`BoundServer::install`](super::BoundServer::install).
    pub async fn routes(self) -> Result<Vec<ListedRoute>, ServerError> {
        let server = build_over(self, StoreSource::Memory).await?;
        server.list_routes().await
    }

    /// The documents derived from the registered kinds: OpenAPI and CRDs, by relative path.
    ///
    /// # Errors
    /// All problems of the registered kinds; problems of the CRDs, if Kubernetes would refuse them.
    pub fn dump(self) -> Result<serde_json::Value, ServerError> {
        let stores = Stores::one(Memory::new());
        let all = with_parts(self);
        let all = with_step(all, RegistryBuilder::check_lazy_kinds);
        let registry = registry(&all.config, all.steps, all.listers, &stores, None)?;
        apiloom_http::documents::crd::dump(&registry.catalog()).map_err(ServerError::Invalid)
    }
}

/// Adds a registration.
fn with_step(
    mut builder: Builder,
    step: impl FnOnce(&mut RegistryBuilder) + Send + 'static,
) -> Builder {
    builder.steps.push(Box::new(step));
    builder
}

/// Adds a handler of a path, or of a prefix.
fn handled(
    mut builder: Builder,
    path: String,
    (is_prefix, is_listed): (bool, bool),
    handler: impl PathHandler,
) -> Builder {
    builder.added.handlers.push(AddedHandler {
        part: builder.part,
        path,
        is_prefix,
        is_listed,
        handler: Arc::new(handler),
    });
    builder
}

/// Builds a server over these stores; see [`Builder::build`].
async fn build_over(builder: Builder, stores: StoreSource) -> Result<Server, ServerError> {
    let Builder {
        config,
        steps,
        storage,
        own_storage,
        authenticators,
        authorizers,
        access,
        listers,
        services,
        capabilities,
        added,
        next,
        ..
    } = with_parts(builder);
    let chain = chain(&added.filters);
    let additions = added.check(&chain)?;
    check_clock(SystemTime::now())?;
    kubeconfig::check(&config)?;
    let services = match (services, &config.service_resolver) {
        (Some(services), _) => services,
        (None, Some(file)) => Arc::new(ServiceMap::read(file)?),
        (None, None) => Arc::new(ClusterDns),
    };
    let parts = capabilities_of(&config, capabilities, &services)?;
    check_parts(&parts, &config).await?;
    let stores = match stores {
        StoreSource::Configured => Stores::open(&config, storage, own_storage).await?,
        StoreSource::Memory => Stores::in_memory(&config, storage.as_ref()),
    };
    let encryption = parts.iter().find_map(|part| part.encryption());
    let registry = registry(&config, steps, listers, &stores, encryption)?;
    let registry = Arc::new(registry);
    Ok(Server {
        config,
        registry,
        stores,
        auth: auth(authenticators, authorizers),
        access,
        services,
        parts,
        additions,
        next,
    })
}

/// Checks what the configuration says of parts.
///
/// # Errors
/// The problems of all parts together.
async fn check_parts(parts: &[Arc<dyn Capability>], config: &Config) -> Result<(), ServerError> {
    let mut problems = Vec::new();
    for part in parts {
        match part.check(config).await {
            Ok(()) => {}
            Err(ServerError::Invalid(more)) => problems.extend(more),
            Err(error) => return Err(error),
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(ServerError::Invalid(problems))
}

/// The registry of a server over these stores, to which the steps of its builder are applied.
fn registry(
    config: &Config,
    steps: Vec<Step>,
    listers: Listers,
    stores: &Stores,
    encryption: Option<Arc<dyn Encryption>>,
) -> Result<Registry, ServerError> {
    let mut registry = stores.registry();
    if let Some(encryption) = encryption {
        registry.encryption(encryption);
    }
    registry.use_listers(listers);
    registry.key_prefix(&config.storage_prefix);
    registry.event_ttl(config.event_ttl);
    if let Some(names) = &config.system_namespaces {
        registry.system_namespaces(names.clone());
    }
    for step in steps {
        step(&mut registry);
    }
    registry.watch_cache(config.watch_cache_history_bytes);
    for own in &config.watch_cache_sizes {
        registry.watch_cache_size(&own.resource, own.changes);
    }
    registry.storage_media_type(config.storage_media_type);
    registry.max_object_bytes(config.max_object_bytes);
    registry.max_definition_bytes(config.max_definition_bytes);
    registry.delete_collection_workers(config.delete_collection_workers);
    registry.disable_admission(&config.disabled_admission);
    registry.runtime_config(&config.runtime_config);
    registry.emulation_versions(&config.emulation_versions);
    registry.build().map_err(ServerError::Invalid)
}

/// The capabilities of a server with this configuration.
///
/// # Errors
/// Names of controllers that none of them has.
fn capabilities_of(
    config: &Config,
    make: Vec<MakeCapability>,
    services: &Arc<dyn ServiceResolver>,
) -> Result<Vec<Arc<dyn Capability>>, ServerError> {
    let context = CapabilityContext {
        services: Arc::clone(services),
    };
    let mut capabilities: Vec<_> = make.into_iter().map(|make| make(&context)).collect();
    let known: Vec<_> = capabilities
        .iter()
        .filter_map(|one| one.elected())
        .collect();
    let checked = config.controllers.check(&known);
    checked.map_err(ServerError::Invalid)?;
    let runs = |name: &str| config.controllers.runs(name);
    capabilities.retain(|capability| capability.elected().is_none_or(runs));
    Ok(capabilities)
}

/// The filters of connections and of requests, with those that were added.
fn chain(added: &AddedFilters) -> Vec<ChainFilter> {
    let of_connections = listener::FILTERS.map(FilterInfo::listed);
    let of_requests = Filters::chain(added);
    of_connections.into_iter().chain(of_requests).collect()
}

/// The authenticators and authorizers of a server, except those by token: the program's and the built-in ones.
fn auth(authenticators: Authenticators, authorizers: Authorizers) -> Auth {
    let mut auth = Auth {
        authenticators,
        authorizers: Authorizers::default(),
    };
    auth.authorizers.push(PrivilegedGroup);
    let has_policy = authorizers.has_policy();
    auth.authorizers.extend(authorizers);
    if !has_policy {
        auth.authorizers.push(PublicInfo);
    }
    auth
}

/// Registers the parts of a builder, and those that they add.
fn with_parts(mut builder: Builder) -> Builder {
    while !builder.parts.is_empty() {
        let part = builder.parts.remove(0);
        builder.part = part.name();
        builder.added.parts.push(builder.part);
        builder = part.register(builder);
    }
    builder.part = PROGRAM;
    builder
}

/// The first second of the year 10000, as a Unix time.
const YEAR_10000: u64 = 253_402_300_800;

/// Checks that the clock is within the range of objects' times (years of four digits) and of the store (from 1970).
fn check_clock(now: SystemTime) -> Result<(), ServerError> {
    match now.duration_since(UNIX_EPOCH) {
        Ok(since) if since.as_secs() < YEAR_10000 => Ok(()),
        _ => Err(ServerError::Clock),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

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
