//! From registered kinds, rules and plugins to a [`Registry`]; every problem is reported, not only the first.

use std::fmt;
use std::sync::Arc;

use apiloom_apis::core::v1::Namespace;
use apiloom_meta::GroupResource;
use apiloom_meta::kind::{GroupDef, Resource, ResourceDef};
use apiloom_storage::Storage;
use apiloom_storage::cache::Budget;
use arc_swap::ArcSwap;

use super::groups::{ambiguous_names, complete_groups, group_label};
use super::kinds::{Kinds, VersionHandler, VersionStrategy};
use super::resources::Registry;
use super::runtime_config::RuntimeConfig;
use super::snapshot::{Catalog, Parts, Settings};
use crate::registry::endpoint::{Endpoint, Shared};
use crate::registry::located::of_kind;
use crate::registry::objects::kind::Kind;
use crate::registry::rules::admission::{Admission, AdmissionContext, Chain};
use crate::registry::rules::handler::Handler;
use crate::registry::rules::namespace::{NamespaceLifecycle, NamespaceRules};
use crate::registry::rules::strategy::Strategy;
use crate::registry::writes::{WriteSettings, stamp};

/// The most bytes of a stored object unless said otherwise: as many as a body has at most.
pub(crate) const DEFAULT_MAX_OBJECT_BYTES: usize = 3 * 1024 * 1024;

/// Makes a plugin once the kinds are known.
type MakeAdmission = Box<dyn FnOnce(&AdmissionContext) -> Box<dyn Admission> + Send>;

/// An unfinished [`Registry`].
pub struct RegistryBuilder {
    store: Arc<dyn Storage>,
    stores: Vec<(GroupResource, Arc<dyn Storage>)>,
    key_prefix: String,
    groups: Vec<GroupDef>,
    /// The server's own kinds come first.
    defs: Vec<ResourceDef>,
    own_kinds: usize,
    strategies: Vec<VersionStrategy>,
    handlers: Vec<VersionHandler>,
    admission: Vec<MakeAdmission>,
    disabled: Vec<String>,
    runtime_config: Vec<(String, bool)>,
    names: Box<dyn Fn() -> String + Send + Sync>,
    /// The budget of the watch caches' history; `None` for no caches.
    history_bytes: Option<usize>,
    /// Resources whose caches are bounded in another way, or left out.
    cache_sizes: Vec<(GroupResource, usize)>,
    /// The most bytes of a stored object.
    max_object_bytes: usize,
    /// Whether schemas are checked too that are made when they are first needed.
    checks_lazy_types: bool,
}

impl fmt::Debug for RegistryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<String> = self
            .defs
            .iter()
            .map(|def| format!("{:?}", def.gvk()))
            .collect();
        f.debug_struct("RegistryBuilder")
            .field("kinds", &kinds)
            .finish_non_exhaustive()
    }
}

impl Registry {
    /// Begins a registry over a store; the [`RegistryBuilder`] reports every problem at once.
    pub fn builder(storage: Arc<dyn Storage>) -> RegistryBuilder {
        RegistryBuilder::new(storage)
    }
}

impl RegistryBuilder {
    /// A builder that knows the server's own kinds.
    pub(crate) fn new(store: Arc<dyn Storage>) -> Self {
        let mut builder = Self {
            store,
            stores: Vec::new(),
            key_prefix: "/registry".to_owned(),
            groups: Vec::new(),
            defs: Vec::new(),
            own_kinds: 0,
            strategies: Vec::new(),
            handlers: Vec::new(),
            admission: Vec::new(),
            disabled: Vec::new(),
            runtime_config: Vec::new(),
            names: Box::new(stamp::random_suffix),
            history_bytes: Some(Budget::DEFAULT_BYTES),
            cache_sizes: Vec::new(),
            max_object_bytes: DEFAULT_MAX_OBJECT_BYTES,
            checks_lazy_types: false,
        };
        builder.defs = own_kinds();
        builder.own_kinds = builder.defs.len();
        builder.strategy::<Namespace>(NamespaceRules);
        builder.admission(|context| Box::new(NamespaceLifecycle::new(context.lister())));
        builder
    }
    /// Keeps one resource in a store of its own; one that is not registered is an error of [`RegistryBuilder::build`].
    pub fn store_of(&mut self, group: &str, plural: &str, store: Arc<dyn Storage>) {
        self.stores.push((GroupResource::new(group, plural), store));
    }
    /// What every key begins with, without a slash at its end; `/registry` unless said otherwise.
    pub fn key_prefix(&mut self, prefix: &str) {
        prefix.clone_into(&mut self.key_prefix);
    }
    /// Declares a group: its versions in order of preference, its release. A group that is not declared has the versions
    /// of its kinds in order of registration, and no release. The core group has v1 even if its declaration leaves it out:
    /// namespaces are served there.
    pub fn group(&mut self, group: GroupDef) {
        self.groups.push(group);
    }
    /// Registers a kind of one version. A kind of several versions is registered once per version.
    pub fn kind<K: Resource>(&mut self) {
        self.defs.push(K::definition());
    }
    /// Registers a kind of one version whose schema is made when it is first needed, and not checked at start: `apiloom
    /// generate` has checked it. If it cannot be made after all, requests for the kind fail with InternalError.
    pub fn lazy_kind<K: Resource>(&mut self) {
        let def = K::definition();
        let schema = def.schema.clone().lazy();
        self.defs.push(ResourceDef { schema, ..def });
    }
    /// Lets [`RegistryBuilder::build`] make and check the schemas of lazy kinds too.
    pub fn check_lazy_kinds(&mut self) {
        self.checks_lazy_types = true;
    }
    /// Registers rules for a kind of one version. A version's own strategy is used for requests in that version; a
    /// version without one is judged by the hub's, on the converted object.
    pub fn strategy<K: Resource>(&mut self, strategy: impl Strategy<K>) {
        self.strategies.push(VersionStrategy::new::<K>(strategy));
    }
    /// Registers what answers creates of a kind of one version that has no store; each version has its own.
    pub fn handler<K: Resource>(&mut self, handler: impl Handler<K>) {
        self.handlers.push(VersionHandler::new::<K>(handler));
    }
    /// Registers an admission plugin; plugins run in order of registration, after NamespaceLifecycle.
    pub fn admission(
        &mut self,
        make: impl FnOnce(&AdmissionContext) -> Box<dyn Admission> + Send + 'static,
    ) {
        self.admission.push(Box::new(make));
    }
    /// Leaves out admission plugins by name; an unknown name is an error of [`RegistryBuilder::build`].
    pub fn disable_admission(&mut self, names: &[String]) {
        self.disabled.extend(names.iter().cloned());
    }
    /// Leaves out versions or resources, as `--runtime-config` says (`group/version=false`,
    /// `group/version/resource=false`, `api/all=false`). The more specific setting wins.
    pub fn runtime_config(&mut self, settings: &[(String, bool)]) {
        self.runtime_config.extend(settings.iter().cloned());
    }
    /// Bounds how many bytes of changes all watch caches together keep for watchers that resume; 64 MiB unless said.
    /// `None` serves every read from storage.
    pub fn watch_cache(&mut self, history_bytes: Option<usize>) {
        self.history_bytes = history_bytes;
    }
    /// Bounds how many changes the watch cache of a resource keeps, 102,400 unless said; with 0 it has no cache. A resource
    /// that is not registered is an error of [`RegistryBuilder::build`].
    pub fn watch_cache_size(&mut self, resource: &GroupResource, changes: usize) {
        self.cache_sizes.push((resource.clone(), changes));
    }
    /// Bounds the JSON of each object, as it would be stored after patch, defaults, rules and admission; 3 MiB unless said,
    /// 0 for no bound. What is larger already stays readable, and can be made smaller and deleted.
    pub fn max_object_bytes(&mut self, bytes: usize) {
        self.max_object_bytes = if bytes == 0 { usize::MAX } else { bytes };
    }
    /// Replaces the source of generated name suffixes; for tests.
    pub fn name_source(&mut self, source: impl Fn() -> String + Send + Sync + 'static) {
        self.names = Box::new(source);
    }
    /// Checks everything together.
    ///
    /// # Errors
    /// One line for every problem: two storage versions, no hub, a spoke of an unknown hub, a schema that is not
    /// structural, a column or selectable field that the schema does not know, an unknown plugin name. A line begins with
    /// the places of the kinds and groups that it is about, as far as they have one: `src/v1.rs:3, src/v2.rs:5: ..`.
    pub fn build(mut self) -> Result<Registry, Vec<String>> {
        let mut problems = Vec::new();
        refuse_own_kinds(self.own_kinds, &mut self.defs, &mut problems);
        let groups = complete_groups(&self.groups, &self.defs, &mut problems);
        problems.extend(ambiguous_names(&self.defs));
        let readers_bytes = self.history_bytes.unwrap_or(Budget::DEFAULT_BYTES);
        let kinds = Kinds {
            store: &self.store,
            stores: &self.stores,
            key_prefix: &self.key_prefix,
            strategies: self.strategies,
            handlers: self.handlers,
            readers_bytes,
            checks_lazy_types: self.checks_lazy_types,
            problems: &mut problems,
        };
        let (order, kinds) = kinds.build(self.defs.clone(), self.own_kinds);
        problems.extend(unused_stores(&self.stores, &order, &self.defs));
        let context = AdmissionContext::new(kinds.clone());
        let plugins: Vec<Box<dyn Admission>> = self
            .admission
            .into_iter()
            .map(|make| make(&context))
            .collect();
        problems.extend(unused_cache_sizes(&self.cache_sizes, &order, &self.defs));
        let (listers, admission_problems) = context.finish();
        problems.extend(admission_problems);
        let chain = Chain::new(enabled_plugins(plugins, &self.disabled, &mut problems));
        let runtime_config = RuntimeConfig::new(&self.runtime_config, &kinds, &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        let shared = Shared::new(WriteSettings {
            chain,
            names: self.names,
            max_object_bytes: self.max_object_bytes,
            registered: ArcSwap::default(),
        });
        let settings = Settings {
            store: self.store,
            stores: self.stores,
            key_prefix: self.key_prefix,
            budget: self.history_bytes.map(Budget::new),
            readers_bytes,
            cache_sizes: self.cache_sizes,
            runtime_config,
            shared,
        };
        let namespaces = kinds
            .get(&GroupResource::new(Namespace::GROUP, Namespace::PLURAL))
            .map(own_namespaces);
        let parts = Parts {
            declared: self.groups,
            groups,
            defs: self.defs,
            kinds: settings.with_caches(kinds).collect(),
        };
        let catalog = Catalog::new(parts, &settings, None);
        Ok(Registry::new(catalog, settings, listers, namespaces))
    }
}

/// The server's own kinds. Their places are in our source, which errors about users' kinds do not show.
fn own_kinds() -> Vec<ResourceDef> {
    let own = apiloom_apis::generated::definitions().into_iter();
    own.map(|def| ResourceDef { place: None, ..def }).collect()
}

/// Namespaces without admission and cache, for those that the server makes itself.
fn own_namespaces(kind: &Arc<Kind>) -> Endpoint {
    let shared = Shared::new(WriteSettings {
        chain: Chain::default(),
        names: Box::new(stamp::random_suffix),
        max_object_bytes: usize::MAX,
        registered: ArcSwap::default(),
    });
    Endpoint::new(Arc::clone(kind), kind.hub, &shared, None, None)
}

/// Takes out kinds that the server's own kinds leave no room for.
pub(super) fn refuse_own_kinds(
    own: usize,
    defs: &mut Vec<ResourceDef>,
    problems: &mut Vec<String>,
) {
    let mut others = defs.split_off(own);
    others.retain(|def| {
        let taken = defs.iter().find(|own| {
            own.group == def.group && (own.plural == def.plural || own.kind == def.kind)
        });
        if let Some(own) = taken {
            let why = format!(
                "every server serves the kind {} and the resource {} of {} itself",
                own.kind,
                own.plural,
                group_label(&own.group)
            );
            problems.push(of_kind(def, why));
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

/// Why there is no store of a resource that a setting is for.
fn missing_store(
    id: &GroupResource,
    known: &[GroupResource],
    defs: &[ResourceDef],
) -> Option<&'static str> {
    if !known.contains(id) {
        return Some("is not registered");
    }
    let is_without = |def: &ResourceDef| !def.has_store && def.group_resource() == *id;
    defs.iter().any(is_without).then_some("has no store")
}

/// One line for each store of a resource that keeps nothing in it.
fn unused_stores(
    stores: &[(GroupResource, Arc<dyn Storage>)],
    known: &[GroupResource],
    defs: &[ResourceDef],
) -> Vec<String> {
    let lines = stores.iter().filter_map(|(id, _)| {
        let why = missing_store(id, known, defs)?;
        Some(format!("a store for {id}, which {why}"))
    });
    lines.collect()
}

/// One line for each size of a cache that there is not.
fn unused_cache_sizes(
    sizes: &[(GroupResource, usize)],
    known: &[GroupResource],
    defs: &[ResourceDef],
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
