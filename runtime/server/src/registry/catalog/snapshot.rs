//! The catalog: everything that a registry serves at one time, as one immutable value.
//!
//! A request keeps the catalog that it began with. A new catalog shares the endpoints of kinds that did not change, so their
//! ids, caches and watches go on.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use apiloom_meta::kind::{GroupDef, Release, ResourceDef, SmolStr};
use apiloom_meta::{GroupResource, GroupVersionKind};
use apiloom_storage::Storage;
use apiloom_storage::cache::{Budget, Limits, WatchCache};

use super::groups::Group;
use super::runtime_config::RuntimeConfig;
use crate::registry::endpoint::{Endpoint, Shared};
use crate::registry::objects::kind::Kind;
use crate::registry::objects::kind_cache::KindCache;
use crate::registry::objects::served::Served;

/// Everything that is served at one time: the result of kinds, groups and settings. It never changes; a registry publishes
/// another one.
#[derive(Debug)]
pub struct Catalog {
    generation: u64,
    /// The declared groups.
    pub(super) declared: Vec<GroupDef>,
    /// Every registered kind in every version, in order of registration.
    pub(super) defs: Vec<ResourceDef>,
    pub(crate) kinds: BTreeMap<GroupResource, CatalogKind>,
    endpoints: Vec<Arc<Endpoint>>,
    /// By plural, then group and version: lookups by borrowed parts of a path.
    by_plural: HashMap<SmolStr, Vec<Arc<Endpoint>>>,
    groups: Vec<ServedGroup>,
}

/// A group and its served versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedGroup {
    /// The group's name; empty for core.
    pub name: String,
    /// Served versions, preferred first.
    pub versions: Vec<String>,
    /// The release that lifecycles compare with.
    pub release: Option<Release>,
}

/// A kind of a catalog.
#[derive(Clone, Debug)]
pub(crate) struct CatalogKind {
    pub(crate) kind: Arc<Kind>,
    /// `None` when reads go to storage.
    pub(crate) cache: Option<KindCache>,
}

/// What every catalog of a registry is built with.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(super) store: Arc<dyn Storage>,
    /// Stores of single resources.
    pub(super) stores: Vec<(GroupResource, Arc<dyn Storage>)>,
    /// What the keys of every kind begin with.
    pub(super) key_prefix: String,
    /// The budget of the watch caches' history; `None` for no caches.
    pub(super) budget: Option<Arc<Budget>>,
    /// How many bytes slow readers of a kind may keep.
    pub(super) readers_bytes: usize,
    /// Resources whose caches are bounded in another way, or left out.
    pub(super) cache_sizes: Vec<(GroupResource, usize)>,
    pub(super) runtime_config: RuntimeConfig,
    pub(in crate::registry) shared: Shared,
}

impl Settings {
    /// The kinds with their watch caches.
    pub(super) fn with_caches(
        &self,
        kinds: BTreeMap<GroupResource, Arc<Kind>>,
    ) -> impl Iterator<Item = (GroupResource, CatalogKind)> {
        kinds.into_iter().map(|(resource, kind)| {
            let kind = self.with_cache(&resource, kind);
            (resource, kind)
        })
    }

    /// A kind with a watch cache, unless the settings leave it out.
    fn with_cache(&self, resource: &GroupResource, kind: Arc<Kind>) -> CatalogKind {
        let limits = self.limits(resource).filter(|_| kind.has_store());
        let cache = limits.map(|limits| {
            let served = Served(Arc::clone(&kind));
            let store = Arc::clone(&kind.store);
            KindCache::new(WatchCache::new(store, kind.prefix(None), served, limits))
        });
        CatalogKind { kind, cache }
    }

    /// The limits of a resource's cache; `None` for no cache.
    fn limits(&self, resource: &GroupResource) -> Option<Limits> {
        let mut limits = Limits::from(Arc::clone(self.budget.as_ref()?));
        // The last value is used, as of any flag.
        match self.cache_sizes.iter().rfind(|(of, _)| of == resource) {
            Some((_, 0)) => return None,
            Some((_, changes)) => limits.most_changes = *changes,
            None => {}
        }
        Some(limits)
    }
}

/// What a catalog is made of.
pub(super) struct Parts {
    pub(super) declared: Vec<GroupDef>,
    pub(super) groups: Vec<Group>,
    pub(super) defs: Vec<ResourceDef>,
    pub(super) kinds: BTreeMap<GroupResource, CatalogKind>,
}

impl Catalog {
    /// The catalog of these parts. Endpoints that `previous` has in the same form are shared with it.
    pub(super) fn new(parts: Parts, settings: &Settings, previous: Option<&Self>) -> Self {
        static GENERATIONS: AtomicU64 = AtomicU64::new(0);
        let Parts {
            declared,
            groups,
            defs,
            mut kinds,
        } = parts;
        let mut endpoints: Vec<Arc<Endpoint>> = Vec::new();
        let mut seen = HashSet::new();
        for resource in defs.iter().map(ResourceDef::group_resource) {
            if let Some(kind) = kinds.get_mut(&resource)
                && seen.insert(resource)
            {
                endpoints_of(kind, &groups, settings, previous, &mut endpoints);
            }
        }
        let mut by_plural: HashMap<SmolStr, Vec<Arc<Endpoint>>> = HashMap::new();
        for endpoint in &endpoints {
            by_plural
                .entry(endpoint.def().plural.clone())
                .or_default()
                .push(Arc::clone(endpoint));
        }
        Self {
            generation: GENERATIONS.fetch_add(1, Ordering::Relaxed),
            groups: served_groups(&groups, &endpoints),
            declared,
            defs,
            kinds,
            endpoints,
            by_plural,
        }
    }

    /// The number of the catalog: no two of a process have the same one.
    pub fn generation(&self) -> u64 {
        self.generation
    }
    /// The resource at a path, in the version asked for. `None` for what is not served.
    pub fn endpoint(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Endpoint>> {
        self.by_plural
            .get(plural)?
            .iter()
            .find(|e| e.def().group == group && e.def().version == version)
    }
    /// Every served resource, in order of registration; what discovery and OpenAPI read.
    pub fn endpoints(&self) -> &[Arc<Endpoint>] {
        &self.endpoints
    }
    /// The groups in order of registration, core first; each with its served versions in order of preference.
    pub fn groups(&self) -> &[ServedGroup] {
        &self.groups
    }
    /// Whether a definition is one of the server's own kinds, which come first.
    pub(super) fn is_own(&self, def: &ResourceDef) -> bool {
        self.kinds
            .get(&def.group_resource())
            .is_some_and(|of| of.kind.is_own)
    }
    /// The kinds and lists of every registered version, for the texts about bodies of another kind.
    pub(super) fn registered(&self) -> Vec<GroupVersionKind> {
        let lists = self
            .defs
            .iter()
            .map(|def| GroupVersionKind::new(&*def.group, &*def.version, &*def.list_kind));
        self.defs
            .iter()
            .map(ResourceDef::gvk)
            .chain(lists)
            .collect()
    }
    /// The watch caches.
    pub(crate) fn caches(&self) -> impl Iterator<Item = (&GroupResource, &KindCache)> {
        self.kinds
            .iter()
            .filter_map(|(resource, kind)| Some((resource, kind.cache.as_ref()?)))
    }
}

/// Adds the served versions of a kind. The cache of one that is not served is left out.
fn endpoints_of(
    of: &mut CatalogKind,
    groups: &[Group],
    settings: &Settings,
    previous: Option<&Catalog>,
    endpoints: &mut Vec<Arc<Endpoint>>,
) {
    let before = endpoints.len();
    let release = groups
        .iter()
        .find(|group| group.name == of.kind.resource.group)
        .and_then(|group| group.release);
    for (version, known) in of.kind.versions.iter().enumerate() {
        let def = &known.def;
        if !def.served
            || !is_in(def, release)
            || !settings.runtime_config.allows(def, of.kind.is_own)
        {
            continue;
        }
        let warning = deprecation_warning(def, release);
        let present = previous
            .and_then(|catalog| catalog.endpoint(&def.group, &def.version, &def.plural))
            .filter(|present| {
                Arc::ptr_eq(&present.resource().kind, &of.kind)
                    && present.deprecation_warning() == warning.as_deref()
            });
        endpoints.push(match present {
            Some(present) => Arc::clone(present),
            None => {
                let kind = Arc::clone(&of.kind);
                Arc::new(Endpoint::new(
                    kind,
                    version,
                    &settings.shared,
                    of.cache.clone(),
                    warning,
                ))
            }
        });
    }
    if endpoints.len() == before {
        of.cache = None;
    }
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
