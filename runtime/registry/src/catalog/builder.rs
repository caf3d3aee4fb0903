//! Builds a [`Registry`] from kinds, strategies and plugins, and reports all problems, not only the first.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use apiloom_meta::kind::{GroupDef, Resource, ResourceDef};
use apiloom_meta::{Clock, GroupResource};
use apiloom_storage::Storage;
use apiloom_storage::cache::Budget;
use arc_swap::ArcSwap;

use super::emulation::{Emulation, EmulationVersion};
use super::groups::{ambiguous_names, complete_groups, group_label};
use super::kinds::{Kinds, VersionReader, VersionStrategy, VersionWriter};
use super::resources::Registry;
use super::runtime_config::RuntimeConfig;
use super::snapshot::{Catalog, Parts, Settings};
use super::system_namespaces::{self, SystemNamespaces};
use crate::code::handler::Handler;
use crate::code::reader::Reader;
use crate::code::writer::Writer;
use crate::endpoint::{Endpoint, EndpointContext, GivenHandlers, Subresource};
use crate::memory;
use crate::objects::encryption::Encryption;
use crate::objects::kind::Kind;
use crate::objects::stored_value::StorageMediaType;
use crate::problems::kind_problem;
use crate::reads::lister::{Lister, Listers};
use crate::rules::admission::{Admission, AdmissionContext, Chain};
use crate::rules::definition_room::DefinitionRoom;
use crate::rules::strategy::Strategy;
use crate::writes::settings::WriteSettings;
use crate::writes::stamp;

/// Default limit for a stored object, in bytes; equal to the limit for request bodies.
pub const DEFAULT_MAX_OBJECT_BYTES: usize = 3 * 1024 * 1024;

/// Default memory of all definitions together, in bytes: some thousand definitions of a usual size.
const DEFAULT_MAX_DEFINITION_BYTES: usize = 512 * 1024 * 1024;

/// The memory for all definitions together: an eighth of that of the process, up to [`DEFAULT_MAX_DEFINITION_BYTES`].
pub fn default_max_definition_bytes() -> usize {
    memory::share(8, DEFAULT_MAX_DEFINITION_BYTES)
}

/// The memory for the histories of all watch caches together: a sixteenth of that of the process, up to [`Budget::DEFAULT_BYTES`].
pub fn default_history_bytes() -> usize {
    memory::share(16, Budget::DEFAULT_BYTES)
}

/// Default number of concurrent deletes of a deletecollection: enough to share a disk sync, not enough to delay other requests.
/// kube-apiserver's is 1.
pub const DEFAULT_DELETE_COLLECTION_WORKERS: NonZeroUsize = match NonZeroUsize::new(16) {
    Some(workers) => workers,
    None => NonZeroUsize::MIN,
};

/// Default time for which events are kept, as in kube-apiserver.
pub const DEFAULT_EVENT_TTL: Duration = Duration::from_secs(60 * 60);

/// Constructor of a plugin, called once the kinds are known.
type MakeAdmission = Box<dyn FnOnce(&AdmissionContext) -> Box<dyn Admission> + Send>;

/// Builder of a [`Registry`].
pub struct RegistryBuilder {
    store: Arc<dyn Storage>,
    stores: Vec<(GroupResource, Arc<dyn Storage>)>,
    key_prefix: String,
    media_type: StorageMediaType,
    encryption: Option<Arc<dyn Encryption>>,
    groups: Vec<GroupDef>,
    /// Definitions of the server's own kinds: that of namespaces, and the built-in kinds that were asked for.
    pub(super) own: Vec<Arc<ResourceDef>>,
    /// The kind of namespaces.
    pub(super) namespaces: Option<GroupResource>,
    /// The kind of the bodies of the subresource `scale`.
    pub(super) scale: Option<Arc<ResourceDef>>,
    /// Definitions of the other kinds.
    defs: Vec<Arc<ResourceDef>>,
    pub(super) strategies: Vec<VersionStrategy>,
    readers: Vec<VersionReader>,
    writers: Vec<VersionWriter>,
    /// The program's handlers of subresources.
    subresources: GivenHandlers,
    admission: Vec<MakeAdmission>,
    listers: Listers,
    disabled: Vec<String>,
    runtime_config: Vec<(String, bool)>,
    emulation: Vec<EmulationVersion>,
    names: Box<dyn Fn() -> String + Send + Sync>,
    clock: Clock,
    /// Memory budget for the history of all watch caches, in bytes; `None` for no watch caches.
    history_bytes: Option<usize>,
    /// Sizes for the watch caches of single resources, in changes; 0 for no cache.
    cache_sizes: Vec<(GroupResource, usize)>,
    /// Limit for a stored object, in bytes.
    max_object_bytes: usize,
    pub(super) definition_room: Arc<DefinitionRoom>,
    delete_collection_workers: NonZeroUsize,
    /// How long events are kept; `None` for ever.
    pub(super) event_ttl: Option<Duration>,
    /// Namespaces that the server creates beside `default`; `None` for those of Kubernetes if it has built-in kinds.
    system_namespaces: Option<Vec<String>>,
    /// Whether schemas that are otherwise made when first needed are checked by [`RegistryBuilder::build`].
    checks_lazy_types: bool,
}

impl fmt::Debug for RegistryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<String> = self
            .own
            .iter()
            .chain(&self.defs)
            .map(|def| format!("{:?}", def.gvk()))
            .collect();
        f.debug_struct("RegistryBuilder")
            .field("kinds", &kinds)
            .finish_non_exhaustive()
    }
}

impl Registry {
    /// Starts a [`RegistryBuilder`] over a store.
    pub fn builder(storage: Arc<dyn Storage>) -> RegistryBuilder {
        RegistryBuilder::new(storage)
    }
}

impl RegistryBuilder {
    /// A builder without kinds.
    pub fn new(store: Arc<dyn Storage>) -> Self {
        Self {
            store,
            stores: Vec::new(),
            key_prefix: "/registry".to_owned(),
            media_type: StorageMediaType::default(),
            encryption: None,
            groups: Vec::new(),
            own: Vec::new(),
            namespaces: None,
            scale: None,
            defs: Vec::new(),
            strategies: Vec::new(),
            readers: Vec::new(),
            writers: Vec::new(),
            subresources: GivenHandlers::default(),
            admission: Vec::new(),
            listers: Listers::default(),
            disabled: Vec::new(),
            runtime_config: Vec::new(),
            emulation: Vec::new(),
            names: Box::new(stamp::random_suffix),
            clock: Clock::default(),
            history_bytes: Some(default_history_bytes()),
            cache_sizes: Vec::new(),
            max_object_bytes: DEFAULT_MAX_OBJECT_BYTES,
            definition_room: Arc::new(DefinitionRoom::new(default_max_definition_bytes())),
            delete_collection_workers: DEFAULT_DELETE_COLLECTION_WORKERS,
            event_ttl: Some(DEFAULT_EVENT_TTL),
            system_namespaces: None,
            checks_lazy_types: false,
        }
    }
    /// Sets a separate store for one resource; an unregistered resource is an error of [`RegistryBuilder::build`].
    pub fn store_of(&mut self, group: &str, plural: &str, store: Arc<dyn Storage>) {
        self.stores.push((GroupResource::new(group, plural), store));
    }
    /// Sets the prefix of all keys in the store, without a slash at its end; `/registry` by default.
    pub fn key_prefix(&mut self, prefix: &str) {
        prefix.clone_into(&mut self.key_prefix);
    }
    /// Sets the format in which objects are stored, for kinds with a Protobuf form; JSON by default. Stored objects are read
    /// in either format.
    pub fn storage_media_type(&mut self, media_type: StorageMediaType) {
        self.media_type = media_type;
    }
    /// Encrypts stored values. By default they are stored as they are, and encrypted ones cannot be read.
    pub fn encryption(&mut self, encryption: Arc<dyn Encryption>) {
        self.encryption = Some(encryption);
    }
    /// Declares a group: its versions in order of preference, and its release. A group without a declaration has the
    /// versions of its kinds in order of registration, and no release. The core group always has v1, the version of
    /// namespaces.
    pub fn group(&mut self, group: GroupDef) {
        self.groups.push(group);
    }
    /// Registers one version of a kind. A kind with several versions is registered once for each.
    pub fn kind<K: Resource>(&mut self) {
        self.defs.push(Arc::new(K::definition()));
    }
    /// Registers one version of a kind whose schema is made when it is first needed, without the checks at start:
    /// `apiloom generate` has run them. If the schema cannot be made after all, requests for the kind fail with
    /// InternalError.
    pub fn lazy_kind<K: Resource>(&mut self) {
        let def = K::definition();
        let schema = def.schema.clone().lazy();
        self.defs.push(Arc::new(ResourceDef { schema, ..def }));
    }
    /// Makes [`RegistryBuilder::build`] check the schemas of lazy kinds too.
    pub fn check_lazy_kinds(&mut self) {
        self.checks_lazy_types = true;
    }
    /// Registers a strategy for one version of a kind, used for requests in that version. Requests in a version
    /// without one use the strategy of the hub, on the converted object.
    pub fn strategy<K: Resource>(&mut self, strategy: impl Strategy<K>) {
        self.strategies.push(VersionStrategy::new::<K>(strategy));
    }
    /// Registers the handler of creates for one version of a kind without a store.
    pub fn handler<K: Resource>(&mut self, handler: impl Handler<K>) {
        self.writers.push(VersionWriter::of_handler::<K>(handler));
    }
    /// Registers the code that reads the objects of one version of a kind without a store.
    pub fn reader<K: Resource>(&mut self, reader: impl Reader<K>) {
        self.readers.push(VersionReader::new::<K>(reader));
    }
    /// Registers the code that writes the objects of one version of a kind without a store.
    pub fn writer<K: Resource>(&mut self, writer: impl Writer<K>) {
        self.writers.push(VersionWriter::new::<K>(writer));
    }
    /// Uses this handler for the subresources of a kind that name its type, in place of a default one. A handler that no
    /// subresource names is an error of [`RegistryBuilder::build`].
    pub fn subresource<K: Resource, H: Subresource<K>>(&mut self, handler: H) {
        self.subresources.insert(handler);
    }
    /// As [`RegistryBuilder::subresource`], for a subresource with `connect`.
    pub fn connecter<H: Send + Sync + 'static>(&mut self, handler: H) {
        self.subresources.insert(handler);
    }
    /// Registers an admission plugin; plugins run in order of registration.
    pub fn admission(
        &mut self,
        make: impl FnOnce(&AdmissionContext) -> Box<dyn Admission> + Send + 'static,
    ) {
        self.admission.push(Box::new(make));
    }
    /// A lister of all objects of a kind, for strategies, authorizers and plugins of this registry. A kind that cannot be
    /// listed, such as one that is not registered, is an error of [`RegistryBuilder::build`].
    pub fn lister<K: Resource>(&self) -> Lister<K> {
        self.listers.lister()
    }
    /// Uses listers that were given out before.
    pub fn use_listers(&mut self, listers: Listers) {
        self.listers = listers;
    }
    /// Disables admission plugins by name (`--disable-admission-plugins`); an unknown name is an error of
    /// [`RegistryBuilder::build`].
    pub fn disable_admission(&mut self, names: &[String]) {
        self.disabled.extend(names.iter().cloned());
    }
    /// Enables or disables versions or resources, as `--runtime-config` does (`group/version=true`,
    /// `group/version/resource=false`, `api/all=false`). The more specific setting wins.
    pub fn runtime_config(&mut self, settings: &[(String, bool)]) {
        self.runtime_config.extend(settings.iter().cloned());
    }
    /// Emulates earlier releases of groups, as `--emulation-version` does: the versions of kinds that such a release has
    /// are served, and a kind whose storage version it does not have is stored in the preferred one of those. A group
    /// without a release, and a release outside of what this build can emulate, are errors of
    /// [`RegistryBuilder::build`].
    pub fn emulation_versions(&mut self, releases: &[EmulationVersion]) {
        self.emulation.extend(releases.iter().cloned());
    }
    /// Sets the memory limit, in bytes, for the history of all watch caches together; by default 64 MiB,
    /// or a sixteenth of the memory that the process may have. `None` turns
    /// the caches off, so that all reads go to the store.
    pub fn watch_cache(&mut self, history_bytes: Option<usize>) {
        self.history_bytes = history_bytes;
    }
    /// Sets the maximum number of changes in the watch cache of a resource; 102,400 by default, 0 for no cache. An
    /// unregistered resource is an error of [`RegistryBuilder::build`].
    pub fn watch_cache_size(&mut self, resource: &GroupResource, changes: usize) {
        self.cache_sizes.push((resource.clone(), changes));
    }
    /// Sets the size limit for an object in bytes of JSON, as it would be stored after patch, defaults, strategy and
    /// admission; 3 MiB by default, 0 for no limit. Larger objects that exist already can be read, made smaller, and
    /// deleted.
    pub fn max_object_bytes(&mut self, bytes: usize) {
        self.max_object_bytes = if bytes == 0 { usize::MAX } else { bytes };
    }
    /// Sets the memory that all CustomResourceDefinitions together may make the server keep, in bytes; by default 512 MiB,
    /// or an eighth of the memory that the process may have. One that
    /// does not fit is refused, and not served if it is stored already.
    pub fn max_definition_bytes(&mut self, bytes: usize) {
        self.definition_room.set_most(bytes);
    }
    /// Sets how many objects a deletecollection deletes at the same time; 16 by default.
    pub fn delete_collection_workers(&mut self, workers: NonZeroUsize) {
        self.delete_collection_workers = workers;
    }
    /// Sets for how long events are kept after their last write; one hour by default, zero for ever. Applies to events that
    /// are registered afterwards.
    pub fn event_ttl(&mut self, ttl: Duration) {
        self.event_ttl = Some(ttl).filter(|ttl| !ttl.is_zero());
    }
    /// Sets the namespaces that the server creates beside `default`, when it starts and again when they are gone. By default
    /// those of Kubernetes (kube-system, kube-public, kube-node-lease) where built-in kinds are served, and none elsewhere.
    pub fn system_namespaces(&mut self, names: Vec<String>) {
        self.system_namespaces = Some(names);
    }
    /// Sets the function that generates name suffixes; for tests.
    pub fn name_source(&mut self, source: impl Fn() -> String + Send + Sync + 'static) {
        self.names = Box::new(source);
    }
    /// The clock by which writes are dated. Default: that of the system.
    pub fn clock(&mut self, clock: Clock) {
        self.clock = clock;
    }

    /// Builds the registry.
    ///
    /// # Errors
    /// One line for every problem: two storage versions, no hub, a spoke of an unknown hub, a schema that is not
    /// structural, a column or selectable field that the schema does not have, an unknown plugin name. A line begins
    /// with the source locations of the kinds and groups that it is about, if they have any: `src/v1.rs:3,
    /// src/v2.rs:5: ..`.
    pub fn build(mut self) -> Result<Registry, Vec<String>> {
        let mut problems = Vec::new();
        let own_kinds = self.own.len();
        self.defs.splice(0..0, self.own);
        refuse_own_kinds(
            own_kinds,
            self.namespaces.as_ref(),
            &mut self.defs,
            &mut problems,
        );
        let mut groups = complete_groups(&self.groups, &self.defs, &mut problems);
        let emulation = Emulation(self.emulation);
        emulation.check(&groups, &mut problems);
        emulation.apply(&mut groups, &self.defs, &mut problems);
        problems.extend(ambiguous_names(&self.defs));
        let has_built_in = own_kinds > usize::from(self.namespaces.is_some());
        let of_kubernetes = || {
            let names = system_namespaces::KUBERNETES.iter();
            names
                .filter(|_| has_built_in)
                .map(|name| (*name).to_owned())
        };
        let system_namespaces = self
            .system_namespaces
            .unwrap_or_else(|| of_kubernetes().collect());
        problems.extend(system_namespaces::problems(&system_namespaces));
        let readers_bytes = self.history_bytes.unwrap_or_else(default_history_bytes);
        let kinds = Kinds {
            store: &self.store,
            stores: &self.stores,
            key_prefix: &self.key_prefix,
            groups: &groups,
            media_type: self.media_type,
            encryption: self.encryption.as_ref(),
            strategies: self.strategies,
            readers: self.readers,
            writers: self.writers,
            readers_bytes,
            scale: self.scale.as_deref(),
            checks_lazy_types: self.checks_lazy_types,
            problems: &mut problems,
        };
        let (order, kinds) = kinds.build(self.defs.clone(), own_kinds);
        problems.extend(unused_stores(&self.stores, &order, &self.defs));
        let context = AdmissionContext::new(self.listers.clone(), kinds.keys().cloned().collect());
        let plugins: Vec<Box<dyn Admission>> = self
            .admission
            .into_iter()
            .map(|make| make(&context))
            .collect();
        problems.extend(unused_cache_sizes(&self.cache_sizes, &order, &self.defs));
        problems.extend(self.listers.problems(&kinds));
        problems.extend(self.subresources.problems(&self.defs));
        let chain = Chain::new(enabled_plugins(plugins, &self.disabled, &mut problems));
        let runtime_config =
            RuntimeConfig::new(&self.runtime_config, &kinds, &groups, &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        let writes = WriteSettings {
            chain,
            names: self.names,
            clock: self.clock.clone(),
            max_object_bytes: self.max_object_bytes,
            registered: ArcSwap::default(),
        };
        let shared = EndpointContext::new(
            writes,
            self.delete_collection_workers,
            self.subresources,
            self.scale,
        );
        let settings = Settings {
            store: self.store,
            stores: self.stores,
            key_prefix: self.key_prefix,
            media_type: self.media_type,
            encryption: self.encryption,
            budget: self.history_bytes.map(Budget::new),
            readers_bytes,
            cache_sizes: self.cache_sizes,
            runtime_config,
            emulation,
            definition_room: self.definition_room,
            namespaces: self.namespaces.clone(),
            shared,
        };
        let namespaces = self.namespaces.as_ref().and_then(|of| kinds.get(of));
        let namespaces = namespaces
            .map(|kind| SystemNamespaces::new(own_namespaces(kind, self.clock), system_namespaces));
        let with_caches: BTreeMap<_, _> = settings.with_caches(kinds.clone()).collect();
        let listers = self.listers.connect(&kinds, |kind| {
            let cache = with_caches
                .get(&kind.resource)
                .and_then(|of| of.cache.clone());
            cache.unwrap_or_else(|| settings.lister_cache(kind))
        });
        let parts = Parts {
            declared: self.groups,
            groups,
            defs: self.defs,
            kinds: with_caches,
        };
        let catalog = Catalog::new(parts, &settings, None);
        Ok(Registry::new(catalog, settings, listers, namespaces))
    }
}

/// An endpoint for the namespaces that the server itself creates, without admission and cache.
fn own_namespaces(kind: &Arc<Kind>, clock: Clock) -> Endpoint {
    let writes = WriteSettings {
        chain: Chain::default(),
        names: Box::new(stamp::random_suffix),
        clock,
        max_object_bytes: usize::MAX,
        registered: ArcSwap::default(),
    };
    let shared = EndpointContext::new(
        writes,
        DEFAULT_DELETE_COLLECTION_WORKERS,
        GivenHandlers::default(),
        None,
    );
    Endpoint::new(Arc::clone(kind), kind.versions.hub, &shared, None, None)
}

/// Removes users' kinds that conflict with the server's own, and reports them.
pub(super) fn refuse_own_kinds(
    own: usize,
    namespaces: Option<&GroupResource>,
    defs: &mut Vec<Arc<ResourceDef>>,
    problems: &mut Vec<String>,
) {
    let mut others = defs.split_off(own);
    others.retain(|def| {
        let taken = defs.iter().find(|own| {
            own.group == def.group && (own.plural == def.plural || own.kind == def.kind)
        });
        if let Some(own) = taken {
            let is_in_all = namespaces == Some(&own.group_resource());
            let advice = if is_in_all {
                ""
            } else {
                "; choose another group or other names, or leave out the built-in kinds (the feature `apis` of the server's package)"
            };
            let why = format!(
                "the server itself serves the kind {} and the resource {} of {}{advice}",
                own.kind,
                own.plural,
                group_label(&own.group)
            );
            problems.push(kind_problem(def, why));
        }
        taken.is_none()
    });
    defs.append(&mut others);
}

fn enabled_plugins(
    plugins: Vec<Box<dyn Admission>>,
    disabled: &[String],
    problems: &mut Vec<String>,
) -> Vec<Box<dyn Admission>> {
    let names: Vec<&str> = plugins.iter().map(|plugin| plugin.name()).collect();
    for name in disabled
        .iter()
        .filter(|name| !names.contains(&name.as_str()))
    {
        problems.push(format!(
            "unknown admission plugin {name:?}, there are: {}",
            names.join(", ")
        ));
    }
    plugins
        .into_iter()
        .filter(|plugin| !disabled.iter().any(|name| name == plugin.name()))
        .collect()
}

/// The problem of a setting for a resource that has no store.
fn missing_store(
    id: &GroupResource,
    known: &[GroupResource],
    defs: &[Arc<ResourceDef>],
) -> Option<&'static str> {
    if !known.contains(id) {
        return Some("is not registered");
    }
    let is_without = |def: &Arc<ResourceDef>| !def.has_store && def.group_resource() == *id;
    defs.iter().any(is_without).then_some("has no store")
}

/// The problems of separate stores for resources without a store.
fn unused_stores(
    stores: &[(GroupResource, Arc<dyn Storage>)],
    known: &[GroupResource],
    defs: &[Arc<ResourceDef>],
) -> Vec<String> {
    let lines = stores.iter().filter_map(|(id, _)| {
        let why = missing_store(id, known, defs)?;
        Some(format!("a store for {id}, which {why}"))
    });
    lines.collect()
}

/// The problems of cache sizes for resources without a watch cache.
fn unused_cache_sizes(
    sizes: &[(GroupResource, usize)],
    known: &[GroupResource],
    defs: &[Arc<ResourceDef>],
) -> Vec<String> {
    let lines = sizes.iter().filter_map(|(id, size)| {
        let why = missing_store(id, known, defs)?;
        let stored = known
            .iter()
            .filter(|id| missing_store(id, known, defs).is_none());
        let stored: Vec<String> = stored.map(GroupResource::to_string).collect();
        let stored = stored.join(", ");
        Some(format!(
            "a watch cache size for {id} ({size}), which {why}; there are: {stored}"
        ))
    });
    lines.collect()
}
