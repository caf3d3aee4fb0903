//! From registered kinds, rules and plugins to a [`Registry`]; every problem is reported, not only the first.

mod kinds;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use apiloom_meta::kind::{GroupDef, Place, Release, Resource, ResourceDef, SmolStr};
use apiloom_meta::{GroupResource, GroupVersionKind};
use apiloom_storage::Storage;
use apiloom_storage::cache::{Budget, Limits, WatchCache};

use super::located::{label, located, of_kind, of_two_kinds};
use super::resources::{Registry, ServedGroup};
use super::runtime_config::RuntimeConfig;
use crate::registry::endpoint::{Endpoint, Shared};
use crate::registry::large::LargeDocuments;
use crate::registry::objects::kind::Kind;
use crate::registry::objects::served::Served;
use crate::registry::reads::field_values::FieldValues;
use crate::registry::reads::remaining::Remaining;
use crate::registry::rules::admission::{Admission, AdmissionContext, Chain};
use crate::registry::rules::namespace::{Namespace, NamespaceLifecycle, NamespaceRules};
use crate::registry::rules::strategy::{Strategy, Typed};
use crate::registry::writes::stamp;
use kinds::{Kinds, VersionStrategy};

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
    /// A builder that knows core/v1 Namespace.
    pub(crate) fn new(store: Arc<dyn Storage>) -> Self {
        let mut builder = Self {
            store,
            stores: Vec::new(),
            key_prefix: "/registry".to_owned(),
            groups: Vec::new(),
            defs: Vec::new(),
            own_kinds: 0,
            strategies: Vec::new(),
            admission: Vec::new(),
            disabled: Vec::new(),
            runtime_config: Vec::new(),
            names: Box::new(stamp::random_suffix),
            history_bytes: Some(Budget::DEFAULT_BYTES),
            cache_sizes: Vec::new(),
            max_object_bytes: DEFAULT_MAX_OBJECT_BYTES,
        };
        builder.kind::<Namespace>();
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
    /// Registers rules for a kind of one version. A version's own strategy is used for requests in that version; a
    /// version without one is judged by the hub's, on the converted object.
    pub fn strategy<K: Resource>(&mut self, strategy: impl Strategy<K>) {
        self.strategies.push(VersionStrategy {
            of: GroupResource::new(K::GROUP, K::PLURAL),
            version: SmolStr::new_static(K::VERSION),
            place: K::definition().place,
            rules: Box::new(Typed::<K, _>::new(strategy)),
        });
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
        let id = resource.clone();
        self.cache_sizes.push((id, changes));
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
        let groups = complete_groups(self.groups, &self.defs, &mut problems);
        problems.extend(ambiguous_names(&self.defs));
        let mut registered: Vec<GroupVersionKind> =
            self.defs.iter().map(ResourceDef::gvk).collect();
        let list_of =
            |def: &ResourceDef| GroupVersionKind::new(&*def.group, &*def.version, &*def.list_kind);
        let lists: Vec<GroupVersionKind> = self.defs.iter().map(list_of).collect();
        let mut kinds = Kinds {
            store: self.store,
            stores: self.stores,
            key_prefix: self.key_prefix,
            strategies: self.strategies,
            readers_bytes: self.history_bytes.unwrap_or(Budget::DEFAULT_BYTES),
            problems: &mut problems,
        };
        let (order, kinds) = kinds.build(self.defs, self.own_kinds);
        let context = AdmissionContext::new(kinds.clone());
        let plugins: Vec<Box<dyn Admission>> = self
            .admission
            .into_iter()
            .map(|make| make(&context))
            .collect();
        problems.extend(unknown_cache_sizes(&self.cache_sizes, &order));
        let (listers, admission_problems) = context.finish();
        problems.extend(admission_problems);
        let chain = Chain::new(enabled_plugins(plugins, &self.disabled, &mut problems));
        let config = RuntimeConfig::new(&self.runtime_config, &registered, &kinds, &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        registered.extend(lists);
        let shared = Arc::new(Shared {
            chain,
            names: self.names,
            large: LargeDocuments::new(),
            max_object_bytes: self.max_object_bytes,
            registered,
        });
        let mut caches = caches(self.history_bytes, &self.cache_sizes, &kinds);
        let endpoints = endpoints(&groups, &order, &kinds, &config, &shared, &caches);
        let served = served_groups(&groups, &endpoints);
        let namespaces = kinds
            .get(&GroupResource::new(Namespace::GROUP, Namespace::PLURAL))
            .map(|kind| Endpoint {
                kind: Arc::clone(kind),
                version: kind.hub,
                shared: Arc::new(Shared {
                    chain: Chain::default(),
                    names: Box::new(stamp::random_suffix),
                    large: LargeDocuments::new(),
                    max_object_bytes: usize::MAX,
                    registered: Vec::new(),
                }),
                deprecation_warning: None,
                cache: None,
                remaining: Remaining::default(),
                field_values: FieldValues::default(),
            });
        let is_served = |kind: &Kind| endpoints.iter().any(|e| e.kind.resource == kind.resource);
        caches.retain(|id, _| kinds.get(id).is_some_and(|kind| is_served(kind)));
        let caches = caches.into_iter().collect();
        let large = shared.large.clone();
        Ok(Registry::new(
            endpoints, served, listers, caches, namespaces, large,
        ))
    }
}

/// A group with its versions in order of preference.
struct Group {
    name: SmolStr,
    versions: Vec<SmolStr>,
    release: Option<Release>,
    place: Option<Place>,
}

/// Takes out kinds that the server's own kinds leave no room for.
fn refuse_own_kinds(own: usize, defs: &mut Vec<ResourceDef>, problems: &mut Vec<String>) {
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

/// A group's name in an error.
fn group_label(name: &str) -> String {
    if name.is_empty() {
        "the core group".to_owned()
    } else {
        format!("group {name}")
    }
}

/// The declared groups, and those that only their kinds name, in order of registration; core first.
fn complete_groups(
    declared: Vec<GroupDef>,
    defs: &[ResourceDef],
    problems: &mut Vec<String>,
) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for group in &declared {
        if let Some(known) = groups.iter().find(|known| known.name == group.name) {
            let problem = format!("{} is declared twice", group_label(&group.name));
            problems.push(located([known.place, group.place], problem));
            continue;
        }
        groups.push(Group {
            name: group.name.clone(),
            versions: group.versions.to_vec(),
            release: group.release,
            place: group.place,
        });
    }
    complete_core(&mut groups);
    for def in defs {
        let is_declared = declared.iter().any(|group| group.name == def.group);
        match groups.iter_mut().find(|group| group.name == def.group) {
            None => groups.push(Group {
                name: def.group.clone(),
                versions: vec![def.version.clone()],
                release: None,
                place: None,
            }),
            Some(group) if group.versions.contains(&def.version) => {}
            Some(group) if !is_declared => group.versions.push(def.version.clone()),
            Some(group) => {
                let versions = group.versions.join(", ");
                let problem = format!(
                    "{}: {} declares the versions {versions}",
                    label(def),
                    group_label(&group.name)
                );
                problems.push(located([def.place, group.place], problem));
            }
        }
    }
    groups
}

/// Puts the core group first, declared or not, with the version in which namespaces are served.
fn complete_core(groups: &mut Vec<Group>) {
    let position = groups.iter().position(|group| group.name.is_empty());
    let mut core = match position {
        Some(position) => groups.remove(position),
        None => Group {
            name: SmolStr::default(),
            versions: Vec::new(),
            release: None,
            place: None,
        },
    };
    let version = SmolStr::new_static(Namespace::VERSION);
    if !core.versions.contains(&version) {
        core.versions.push(version);
    }
    groups.insert(0, core);
}

/// One line for each name that two kinds of a group share, and for what the versions of a kind are called differently.
fn ambiguous_names(defs: &[ResourceDef]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut told = Vec::new();
    for (index, def) in defs.iter().enumerate() {
        let names = def.names();
        let earlier = defs[..index]
            .iter()
            .filter(|other| other.group == def.group);
        let (versions, others): (Vec<_>, Vec<_>) =
            earlier.partition(|other| other.plural == def.plural);
        // Versions that are different kinds are told apart elsewhere.
        if let Some(first) = versions.first().filter(|first| first.kind == def.kind) {
            let differences = first.names().differences(&names);
            lines.extend(differences.iter().map(|difference| {
                let what = format!(
                    "differ in their {}: {} and {}",
                    difference.what, difference.first, difference.second
                );
                of_two_kinds(first, def, what)
            }));
        }
        for other in others {
            for name in names.shared(&other.names()) {
                let resources = (name, other.plural.clone(), def.plural.clone());
                // Of several versions it is told once.
                if !told.contains(&resources) {
                    told.push(resources);
                    lines.push(of_two_kinds(other, def, format!("share the name {name}")));
                }
            }
        }
    }
    lines
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

/// A watch cache for each kind, over one budget of history; none without a budget.
fn caches(
    history_bytes: Option<usize>,
    sizes: &[(GroupResource, usize)],
    kinds: &BTreeMap<GroupResource, Arc<Kind>>,
) -> BTreeMap<GroupResource, Arc<WatchCache<Served>>> {
    let Some(bytes) = history_bytes else {
        return BTreeMap::new();
    };
    let budget = Budget::new(bytes);
    let cache = |(id, kind): (&GroupResource, &Arc<Kind>)| {
        let mut limits = Limits::from(Arc::clone(&budget));
        // The last one said holds, as of any flag.
        match sizes.iter().rfind(|(of, _)| of == id) {
            Some((_, 0)) => return None,
            Some((_, changes)) => limits.most_changes = *changes,
            None => {}
        }
        let served = Served(Arc::clone(kind));
        let cache = WatchCache::new(Arc::clone(&kind.store), kind.prefix(None), served, limits);
        Some((id.clone(), cache))
    };
    kinds.iter().filter_map(cache).collect()
}

/// One line for each size of a cache that there is not.
fn unknown_cache_sizes(sizes: &[(GroupResource, usize)], known: &[GroupResource]) -> Vec<String> {
    let unknown = sizes.iter().filter(|(id, _)| !known.contains(id));
    let lines = unknown.map(|(id, size)| {
        let known: Vec<String> = known.iter().map(GroupResource::to_string).collect();
        format!(
            "a watch cache size for {} ({size}), which is not registered; there are: {}",
            id,
            known.join(", ")
        )
    });
    lines.collect()
}

/// What is served, in order of registration.
fn endpoints(
    groups: &[Group],
    order: &[GroupResource],
    kinds: &BTreeMap<GroupResource, Arc<Kind>>,
    config: &RuntimeConfig,
    shared: &Arc<Shared>,
    caches: &BTreeMap<GroupResource, Arc<WatchCache<Served>>>,
) -> Vec<Arc<Endpoint>> {
    let mut endpoints = Vec::new();
    for (id, kind) in order.iter().filter_map(|id| Some((id, kinds.get(id)?))) {
        let release = groups
            .iter()
            .find(|group| group.name == kind.resource.group)
            .and_then(|group| group.release);
        for (version, known) in kind.versions.iter().enumerate() {
            if known.def.served
                && is_in(&known.def, release)
                && config.allows(&known.def, kind.is_own)
            {
                endpoints.push(Arc::new(Endpoint {
                    kind: Arc::clone(kind),
                    version,
                    shared: Arc::clone(shared),
                    deprecation_warning: deprecation_warning(&known.def, release),
                    cache: caches.get(id).cloned(),
                    remaining: Remaining::default(),
                    field_values: FieldValues::default(),
                }));
            }
        }
    }
    endpoints
}

/// Whether the release has the version: introduced already, and not yet removed.
fn is_in(def: &ResourceDef, release: Option<Release>) -> bool {
    let (Some(lifecycle), Some(release)) = (&def.lifecycle, release) else {
        return true;
    };
    lifecycle.introduced.is_none_or(|first| first <= release)
        && lifecycle.removed.is_none_or(|end| release < end)
}

/// The text that a client of a deprecated version is shown, once the release has come.
fn deprecation_warning(def: &ResourceDef, release: Option<Release>) -> Option<String> {
    let lifecycle = def.lifecycle.as_ref()?;
    let deprecated = lifecycle
        .deprecated
        .filter(|deprecated| release.is_some_and(|release| *deprecated <= release))?;
    let mut text = format!(
        "{} {} is deprecated in v{deprecated}+",
        def.api_version(),
        def.kind
    );
    if let Some(removed) = lifecycle.removed {
        text.push_str(&format!(", unavailable in v{removed}+"));
    }
    if let Some(replacement) = &lifecycle.replacement {
        text.push_str(&format!(
            "; use {} {}",
            replacement.group_version(),
            replacement.kind
        ));
    }
    Some(text)
}

fn served_groups(groups: &[Group], endpoints: &[Arc<Endpoint>]) -> Vec<ServedGroup> {
    let is_served = |group: &str, version: &str| {
        endpoints
            .iter()
            .any(|e| e.def().group == group && e.def().version == version)
    };
    let served = groups.iter().map(|group| ServedGroup {
        name: group.name.to_string(),
        versions: group
            .versions
            .iter()
            .filter(|v| is_served(&group.name, v))
            .map(SmolStr::to_string)
            .collect(),
        release: group.release,
    });
    served.filter(|group| !group.versions.is_empty()).collect()
}
