//! The catalog: everything that a registry serves, as one immutable value.
//!
//! A request keeps the catalog that it began with. A new catalog shares the endpoints of kinds that did not change, so
//! their ids, caches and watches continue.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use apiloom_meta::GroupResource;
use apiloom_meta::kind::{GroupDef, ProtobufMessage, Release, ResourceDef, SmolStr};
use apiloom_storage::Storage;
use apiloom_storage::cache::{Budget, Limits, WatchCache};

use super::emulation::Emulation;
use super::groups::Group;
use super::runtime_config::RuntimeConfig;
use crate::endpoint::{Endpoint, EndpointContext};
use crate::objects::encryption::Encryption;
use crate::objects::kind::Kind;
use crate::objects::kind_cache::KindCache;
use crate::objects::normalizer::CacheNormalizer;
use crate::objects::stored_value::StorageMediaType;
use crate::rules::definition_room::DefinitionRoom;

/// Everything that is served, derived from kinds, groups and settings. Immutable: for a change, the registry publishes
/// a new one.
#[derive(Debug)]
pub struct Catalog {
    generation: u64,
    /// The declared groups.
    pub(super) declared: Vec<GroupDef>,
    /// Definitions of all registered versions of kinds, in order of registration.
    pub(super) defs: Arc<[Arc<ResourceDef>]>,
    pub(crate) kinds: BTreeMap<GroupResource, CatalogKind>,
    endpoints: Vec<Arc<Endpoint>>,
    /// By plural, then group and version, so that a lookup needs no allocation.
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
    /// The release with which lifecycles are compared: an emulated one, or that of the build.
    pub release: Option<Release>,
    /// The release of the build.
    pub build_release: Option<Release>,
}

/// A kind of a catalog, with its watch cache.
#[derive(Clone, Debug)]
pub(crate) struct CatalogKind {
    pub(crate) kind: Arc<Kind>,
    /// The watch cache; `None` if reads go to the store.
    pub(crate) cache: Option<KindCache>,
}

/// The settings that all catalogs of a registry share.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(super) store: Arc<dyn Storage>,
    /// Separate stores of single resources.
    pub(super) stores: Vec<(GroupResource, Arc<dyn Storage>)>,
    /// Common prefix of the keys of all kinds.
    pub(super) key_prefix: String,
    /// Format of the objects that are written.
    pub(super) media_type: StorageMediaType,
    pub(super) encryption: Option<Arc<dyn Encryption>>,
    /// Memory budget for the history of all watch caches; `None` for no caches.
    pub(super) budget: Option<Arc<Budget>>,
    /// Memory limit for the slow readers of a kind, in bytes.
    pub(super) readers_bytes: usize,
    /// Sizes for the watch caches of single resources, in changes; 0 for no cache.
    pub(super) cache_sizes: Vec<(GroupResource, usize)>,
    pub(super) runtime_config: RuntimeConfig,
    pub(super) emulation: Emulation,
    pub(super) definition_room: Arc<DefinitionRoom>,
    /// The kind of namespaces.
    pub(super) namespaces: Option<GroupResource>,
    pub(crate) shared: EndpointContext,
}

impl Settings {
    /// Adds watch caches to kinds.
    pub(super) fn with_caches(
        &self,
        kinds: BTreeMap<GroupResource, Arc<Kind>>,
    ) -> impl Iterator<Item = (GroupResource, CatalogKind)> {
        kinds.into_iter().map(|(resource, kind)| {
            let kind = self.with_cache(&resource, kind);
            (resource, kind)
        })
    }

    /// Adds a watch cache to a kind, unless the settings exclude it.
    fn with_cache(&self, resource: &GroupResource, kind: Arc<Kind>) -> CatalogKind {
        let limits = self.limits(resource).filter(|_| kind.has_store());
        let cache = limits.map(|limits| new_cache(&kind, limits));
        CatalogKind { kind, cache }
    }

    /// A watch cache for the listers of a kind that has none.
    pub(super) fn lister_cache(&self, kind: &Arc<Kind>) -> KindCache {
        let budget = self.budget.clone();
        let limits = Limits {
            budget: budget.unwrap_or_else(|| Budget::new(Budget::DEFAULT_BYTES)),
            // No watcher resumes from it.
            most_changes: 1,
        };
        new_cache(kind, limits)
    }

    /// The limits of a resource's cache; `None` for no cache.
    fn limits(&self, resource: &GroupResource) -> Option<Limits> {
        let mut limits = Limits::from(Arc::clone(self.budget.as_ref()?));
        // The last value wins, as for every flag.
        match self.cache_sizes.iter().rfind(|(of, _)| of == resource) {
            Some((_, 0)) => return None,
            Some((_, changes)) => limits.most_changes = *changes,
            None => {}
        }
        Some(limits)
    }
}

/// A watch cache of a kind, which does not run yet.
fn new_cache(kind: &Arc<Kind>, limits: Limits) -> KindCache {
    let served = CacheNormalizer(Arc::clone(kind));
    let store = Arc::clone(&kind.store);
    KindCache::new(WatchCache::new(store, kind.keys.of_all(), served, limits))
}

/// The parts that a catalog is built from.
pub(super) struct Parts {
    pub(super) declared: Vec<GroupDef>,
    pub(super) groups: Vec<Group>,
    pub(super) defs: Vec<Arc<ResourceDef>>,
    pub(super) kinds: BTreeMap<GroupResource, CatalogKind>,
}

impl Catalog {
    /// Builds a catalog. Endpoints that are equal in `previous` are shared with it.
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
        for resource in defs.iter().map(|def| def.stored_resource()) {
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
        by_plural.values_mut().for_each(Vec::shrink_to_fit);
        Self {
            generation: GENERATIONS.fetch_add(1, Ordering::Relaxed),
            groups: served_groups(&groups, &endpoints),
            declared,
            defs: defs.into(),
            kinds,
            endpoints,
            by_plural,
        }
    }

    /// Number of the catalog, unique in the process.
    pub fn generation(&self) -> u64 {
        self.generation
    }
    /// The endpoint of a resource in a version; `None` if it is not served.
    pub fn endpoint(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Endpoint>> {
        self.by_plural
            .get(plural)?
            .iter()
            .find(|e| e.def().group == group && e.def().version == version)
    }
    /// All served endpoints, in order of registration; the source of discovery and OpenAPI.
    pub fn endpoints(&self) -> &[Arc<Endpoint>] {
        &self.endpoints
    }
    /// The groups in order of registration, core first, each with its served versions in order of preference.
    pub fn groups(&self) -> &[ServedGroup] {
        &self.groups
    }
    /// Whether a definition is one of the server's own, which come first.
    pub(super) fn is_own(&self, def: &ResourceDef) -> bool {
        self.kinds
            .get(&def.stored_resource())
            .is_some_and(|of| of.kind.is_own)
    }
    /// The definitions of all registered versions, for errors about bodies of another kind.
    pub(super) fn registered(&self) -> Arc<[Arc<ResourceDef>]> {
        Arc::clone(&self.defs)
    }
    /// The Protobuf form of a registered kind, or of one that a subresource has; `None` if there is no such kind, or it
    /// has none.
    pub fn protobuf(&self, api_version: &str, kind: &str) -> Option<&'static ProtobufMessage> {
        let of_subresources = self
            .endpoints
            .iter()
            .flat_map(|endpoint| endpoint.other_bodies());
        let mut defs = self
            .defs
            .iter()
            .map(|def| &**def)
            .chain(of_subresources.map(|bodies| bodies.def()));
        let def = defs.find(|def| def.kind == kind && def.api_version() == api_version)?;
        def.protobuf
    }
    /// The watch caches of all resources that have one.
    pub(crate) fn caches(&self) -> impl Iterator<Item = (&GroupResource, &KindCache)> {
        self.kinds
            .iter()
            .filter_map(|(resource, kind)| Some((resource, kind.cache.as_ref()?)))
    }
}

/// Appends endpoints for the served versions of a kind. A kind without any gets no cache.
fn endpoints_of(
    of: &mut CatalogKind,
    groups: &[Group],
    settings: &Settings,
    previous: Option<&Catalog>,
    endpoints: &mut Vec<Arc<Endpoint>>,
) {
    let before = endpoints.len();
    for (version, known) in of.kind.versions.all.iter().enumerate() {
        let def = &known.def;
        let group = groups.iter().find(|group| group.name == def.group);
        let release = group.and_then(|group| group.release);
        if !def.served
            || group.is_some_and(|group| !group.has(def))
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

/// The warning for clients of a version that is deprecated, in the release or by its document.
fn deprecation_warning(def: &ResourceDef, release: Option<Release>) -> Option<String> {
    if let Some(custom) = &def.custom {
        return custom.deprecation_warning.as_ref().map(SmolStr::to_string);
    }
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
        build_release: group.build_release,
    });
    served.filter(|group| !group.versions.is_empty()).collect()
}
