//! Listers: typed views of the watch cache, for strategies, admission plugins, authorizers and controllers.
//!
//! The watch cache decodes each object once as the lister's type. A result contains every write of the kind that this
//! process acknowledged before the call, because a write of a kind with listers is acknowledged after the cache has it. If
//! several servers share a store, writes of the others are in the cache when the watch has delivered them, usually within
//! milliseconds. A rule that requires an object uses [`Lister::get_live`], which reads the store if the cache does not have
//! it. A rule that uses [`Lister::list`] may miss the newest writes of other servers.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use apiloom_meta::kind::Place;
use apiloom_meta::{ApiError, GroupResource, Resource};
use apiloom_storage::Revision;
use apiloom_storage::cache::{CacheProgress, Item};
use parking_lot::Mutex;

use crate::objects::cached_object::{CachedObject, State};
use crate::objects::kind::Kind;
use crate::objects::kind_cache::KindCache;
use crate::objects::kind_version::VersionIndex;
use crate::objects::kind_versions::KindVersions;
use crate::objects::listed::{DecodeTyped, ListedKind, TypedObject, TypedView, decode_typed};
use crate::problems::with_places;

/// Timeout of [`Lister::ready`]; that of kube-apiserver's admission plugins for their informers.
const READY_TIMEOUT: Duration = Duration::from_secs(10);

/// The objects of a kind in memory, from its watch cache. Cheap to clone.
///
/// A builder returns it before the server runs. It can be read after the cache is filled, and the server waits for that
/// before it serves. A kind with listers has a watch cache even if that is disabled for its reads.
pub struct Lister<K> {
    core: Arc<ListerCore>,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Lister<K> {
    fn clone(&self) -> Self {
        Self {
            core: Arc::clone(&self.core),
            kind: PhantomData,
        }
    }
}

impl<K> fmt::Debug for Lister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.fmt(f)
    }
}

impl<K: Resource> Lister<K> {
    /// All objects, in the order of their keys: namespace, then name. Does not wait and reads no storage.
    ///
    /// # Errors
    /// InternalError while the watch cache is not filled, or lacks a write that this server acknowledged, which happens
    /// only if the watch of the store is delayed. [`Lister::ready`] waits until the lister can be read.
    pub fn list(&self) -> Result<Vec<Arc<K>>, ApiError> {
        self.list_prefix(None)
    }

    /// The objects of a namespace, in the order of their names. Does not wait and reads no storage.
    ///
    /// # Errors
    /// As [`Lister::list`].
    pub fn list_in(&self, namespace: &str) -> Result<Vec<Arc<K>>, ApiError> {
        self.list_prefix(Some(namespace))
    }

    fn list_prefix(&self, namespace: Option<&str>) -> Result<Vec<Arc<K>>, ApiError> {
        let source = self.core.source()?;
        let state = source.state()?;
        let prefix = source.kind.keys.prefix(namespace);
        let items = state.range(&prefix, "");
        Ok(items.filter_map(|item| source.typed(item)).collect())
    }

    /// One object; `namespace` is empty for cluster-scoped kinds. Does not wait and reads no storage.
    ///
    /// # Errors
    /// As [`Lister::list`].
    pub fn get(&self, namespace: &str, name: &str) -> Result<Option<Arc<K>>, ApiError> {
        let source = self.core.source()?;
        let state = source.state()?;
        let item = state.get(&source.key(namespace, name));
        Ok(item.and_then(|item| source.typed(item)))
    }

    /// As [`Lister::get`], but reads the store if the cache does not have the object. `None` only if the store does not
    /// have it either.
    ///
    /// # Errors
    /// If the store cannot be read, or its object cannot be decoded.
    pub async fn get_live(&self, namespace: &str, name: &str) -> Result<Option<Arc<K>>, ApiError> {
        if let Ok(Some(known)) = self.get(namespace, name) {
            return Ok(Some(known));
        }
        let source = self.core.source()?;
        let key = source.key(namespace, name);
        let Some(entry) = source.kind.get(&key, "get").await? else {
            return Ok(None);
        };
        let object = source
            .kind
            .read_in(&key, &entry.value, entry.revision, source.version)
            .await?;
        let typed = object.to_typed::<K>();
        typed
            .map(|typed| Some(Arc::new(typed)))
            .map_err(|error| ApiError::internal(error.to_string()))
    }

    /// What has changed since the state that was seen last, which is the present one then: each object as it was and as it is. At first that
    /// is every object. Does not wait and reads no storage; without a change it compares two pointers.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use apiloom_meta::{ApiError, Resource};
    /// use apiloom_registry::{Lister, SeenState};
    ///
    /// /// Counts objects, and looks at those alone that come and go.
    /// struct Count<K> {
    ///     lister: Lister<K>,
    ///     seen: SeenState,
    ///     count: usize,
    /// }
    ///
    /// impl<K: Resource> Count<K> {
    ///     fn count(&mut self) -> Result<usize, ApiError> {
    ///         self.lister.changes(&mut self.seen, |before: Option<Arc<K>>, after| {
    ///             self.count -= usize::from(before.is_some());
    ///             self.count += usize::from(after.is_some());
    ///         })?;
    ///         Ok(self.count)
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`Lister::list`].
    pub fn changes(
        &self,
        seen: &mut SeenState,
        mut change: impl FnMut(Option<Arc<K>>, Option<Arc<K>>),
    ) -> Result<(), ApiError> {
        let source = self.core.source()?;
        let state = source.state()?;
        if seen.is(&state) {
            return Ok(());
        }
        let typed = |item: Option<&Item<CachedObject>>| item.and_then(|item| source.typed(item));
        for (before, after) in seen.0.changes(&state) {
            change(typed(before), typed(after));
        }
        seen.0 = state;
        Ok(())
    }

    /// Whether nothing has changed since the state that was seen last.
    ///
    /// # Errors
    /// As [`Lister::list`].
    pub fn is_unchanged(&self, seen: &SeenState) -> Result<bool, ApiError> {
        Ok(seen.is(&self.core.source()?.state()?))
    }

    /// Waits until the lister can be read, for at most 10 seconds.
    ///
    /// # Errors
    /// InternalError if it cannot be read by then.
    pub async fn ready(&self) -> Result<(), ApiError> {
        self.core.ready().await
    }
}

/// The state of a lister that was seen last; at first an empty one.
#[derive(Default)]
pub struct SeenState(State);

impl SeenState {
    fn is(&self, state: &State) -> bool {
        Arc::ptr_eq(&self.0, state)
    }
}

impl fmt::Debug for SeenState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SeenState").field(&self.0).finish()
    }
}

/// A type-erased lister.
pub(crate) struct ListerCore {
    resource: GroupResource,
    /// Kind and version, for error messages.
    description: String,
    version: &'static str,
    place: Option<Place>,
    decode: DecodeTyped,
    /// `None` until the registry is built.
    source: OnceLock<Source>,
}

/// The kind and the cache that a lister reads.
struct Source {
    kind: Arc<Kind>,
    version: VersionIndex,
    /// Index of the type in the views of the kind.
    view: usize,
    cache: KindCache,
}

impl fmt::Debug for ListerCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self
            .source
            .get()
            .map(|source| source.cache.cache.snapshot());
        f.debug_struct("Lister")
            .field("kind", &self.description)
            .field("state", &state)
            .finish()
    }
}

impl ListerCore {
    /// The version of a kind that it lists.
    fn version_in(&self, versions: &KindVersions) -> Option<VersionIndex> {
        versions.find_named(&self.resource, self.version)
    }
    fn new<K: Resource>() -> Self {
        Self {
            resource: GroupResource::new(K::GROUP, K::PLURAL),
            description: format!("{} {}/{}", K::KIND, K::GROUP, K::VERSION),
            version: K::VERSION,
            place: K::definition().place,
            decode: decode_typed::<K>,
            source: OnceLock::new(),
        }
    }

    /// The resource of the kind.
    pub(crate) fn resource(&self) -> &GroupResource {
        &self.resource
    }

    /// The watch cache of the kind; `None` until the registry is built.
    pub(crate) fn cache(&self) -> Option<&KindCache> {
        self.source.get().map(|source| &source.cache)
    }

    fn source(&self) -> Result<&Source, ApiError> {
        self.source.get().ok_or_else(not_ready)
    }

    /// See [`Lister::ready`].
    pub(crate) async fn ready(&self) -> Result<(), ApiError> {
        let source = self.source()?;
        let cache = &source.cache.cache;
        let wait = async {
            // Both return an error when the cache is dropped.
            let mut progress = cache.progress();
            let is_filled = |progress: &CacheProgress| progress.fill.is_filled();
            let _ = progress.wait_for(is_filled).await;
            let has_reached = |_: &CacheProgress| cache.has_reached(source.newest_write());
            let _ = progress.wait_for(has_reached).await;
        };
        let _ = tokio::time::timeout(READY_TIMEOUT, wait).await;
        source.state().map(|_| ())
    }
}

impl Source {
    /// The newest revision of an acknowledged write of the kind.
    fn newest_write(&self) -> Revision {
        Revision(self.kind.newest_write.load(Ordering::Acquire))
    }

    /// The state of the cache; an error if it lacks an acknowledged write.
    fn state(&self) -> Result<State, ApiError> {
        let cache = &self.cache.cache;
        let newest = self.newest_write();
        if cache.is_filled() && cache.has_reached(newest) {
            Ok(cache.snapshot())
        } else {
            Err(not_ready())
        }
    }

    fn key(&self, namespace: &str, name: &str) -> String {
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        self.kind.keys.unchecked(namespace, name)
    }

    /// The typed value of an object; `None` if it cannot be decoded, which the cache has logged.
    fn typed<K: Resource>(&self, item: &Item<CachedObject>) -> Option<Arc<K>> {
        let object = item.object.as_ref().ok()?;
        let typed: &TypedObject = object.typed(self.view)?;
        Arc::clone(typed).downcast().ok()
    }
}

/// The error of kube-apiserver's admission plugins while their informers are not synced.
fn not_ready() -> ApiError {
    ApiError::internal_text("not yet ready to handle request")
}

/// The listers of a registry, registered before it is built. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Listers(Arc<Mutex<Vec<Arc<ListerCore>>>>);

impl Listers {
    /// Returns the lister of a type. All listers of a type share their objects.
    pub fn lister<K: Resource>(&self) -> Lister<K> {
        let mut cores = self.0.lock();
        let resource = GroupResource::new(K::GROUP, K::PLURAL);
        let known = cores
            .iter()
            .find(|core| core.resource == resource && core.version == K::VERSION);
        let core = known.map_or_else(|| Arc::new(ListerCore::new::<K>()), Arc::clone);
        if known.is_none() {
            cores.push(Arc::clone(&core));
        }
        Lister {
            core,
            kind: PhantomData,
        }
    }

    /// One error message for each lister whose kind cannot be listed.
    pub(crate) fn problems(&self, kinds: &BTreeMap<GroupResource, Arc<Kind>>) -> Vec<String> {
        let cores = self.0.lock();
        let problems = cores.iter().filter_map(|core| {
            let is_of = |kind: &&Arc<Kind>| core.version_in(&kind.versions).is_some();
            let why = match kinds.values().find(is_of) {
                Some(kind) if !kind.has_store() => "it has no store",
                Some(kind) if kind.versions.is_asynchronous() => {
                    "its versions are converted asynchronously"
                }
                Some(_) => return None,
                None => "it is not registered",
            };
            let problem = format!("{} cannot be listed: {why}", core.description);
            Some(with_places([core.place], problem))
        });
        problems.collect()
    }

    /// Connects the listers with the kinds and their watch caches, and returns them. `cache_of` returns the cache of a kind,
    /// always the same one.
    pub(crate) fn connect(
        &self,
        kinds: &BTreeMap<GroupResource, Arc<Kind>>,
        mut cache_of: impl FnMut(&Arc<Kind>) -> KindCache,
    ) -> Vec<Arc<ListerCore>> {
        let cores = self.0.lock();
        for kind in kinds.values() {
            let listed: Vec<_> = cores
                .iter()
                .filter_map(|core| Some((core, core.version_in(&kind.versions)?)))
                .collect();
            if listed.is_empty() {
                continue;
            }
            let cache = cache_of(kind);
            let mut views = Vec::new();
            for (view, (core, version)) in listed.into_iter().enumerate() {
                views.push(TypedView {
                    version,
                    decode: core.decode,
                });
                let source = Source {
                    kind: Arc::clone(kind),
                    version,
                    view,
                    cache: cache.clone(),
                };
                // Not set yet: a builder builds only one registry.
                let _ = core.source.set(source);
            }
            let _ = kind.listed.set(ListedKind {
                views,
                progress: cache.cache.progress(),
            });
        }
        cores.clone()
    }
}
