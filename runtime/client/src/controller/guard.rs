//! Read your own writes: keeps a key from being reconciled while a cache is older than what its last call wrote.
//!
//! Versions that cannot be compared, caches without one and waits that are too long never stop a key.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use apiloom_meta::{GroupResource, Resource};
use tokio::time::Instant;

use crate::cache::{CacheObject, Lister, ResourceVersion};

/// How long a key waits for a write at most: as long as kube-apiserver lets a read wait for its own cache, with a reserve.
const LIMIT: Duration = Duration::from_secs(10);

/// How often a key that waits is looked at. The change that it waits for queues it earlier.
const INTERVAL: Duration = Duration::from_millis(100);

/// A cache that a watch fills.
pub trait CacheVersion: Send + Sync {
    /// The newest state that the cache shows; `None` before it has one.
    fn resource_version(&self) -> Option<ResourceVersion>;
}

impl<T: CacheObject> CacheVersion for Lister<T> {
    fn resource_version(&self) -> Option<ResourceVersion> {
        Lister::resource_version(self)
    }
}

/// The caches of a controller, by the resources that they show.
pub(super) type Caches = HashMap<GroupResource, Arc<dyn CacheVersion>>;

/// The writes of each key that caches may not show yet.
pub(super) struct ConsistencyGuard<K> {
    caches: Caches,
    writes: Mutex<Writes<K>>,
}

struct Writes<K> {
    of_keys: HashMap<K, Vec<Write>>,
    /// When writes of keys that are never handed out again are removed next, as a number of keys.
    sweep_at: usize,
}

/// A version of a resource that a call of the key has seen.
#[derive(Debug)]
struct Write {
    resource: GroupResource,
    version: ResourceVersion,
    expires: Instant,
}

/// Fewer keys are not worth a sweep.
const MIN_SWEEP: usize = 1024;

impl<K: Clone + Eq + Hash> ConsistencyGuard<K> {
    pub(super) fn new(caches: Caches) -> Self {
        let writes = Writes {
            of_keys: HashMap::new(),
            sweep_at: MIN_SWEEP,
        };
        Self {
            caches,
            writes: Mutex::new(writes),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Writes<K>> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a call of a key wrote, or otherwise saw, a version that the cache of the resource should show before
    /// the next call. Texts that name no version, and resources without a cache, are ignored.
    pub(super) fn record(&self, key: &K, resource: &GroupResource, version: &str) {
        let Some(version) = ResourceVersion::new(version) else {
            return;
        };
        if !self.caches.contains_key(resource) {
            return;
        }
        let now = Instant::now();
        let mut writes = self.lock();
        if writes.of_keys.len() >= writes.sweep_at {
            writes.of_keys.retain(|_, writes| {
                writes.retain(|write| self.is_missing(write, now));
                !writes.is_empty()
            });
            writes.sweep_at = MIN_SWEEP.max(writes.of_keys.len() * 2);
        }
        let of_key = writes.of_keys.entry(key.clone()).or_default();
        let write = Write {
            resource: resource.clone(),
            version,
            expires: now + LIMIT,
        };
        // One write for each resource is enough: the latest.
        match of_key.iter_mut().find(|old| old.resource == *resource) {
            Some(old) if write.version.includes(&old.version) => *old = write,
            Some(_) => {}
            None => of_key.push(write),
        }
    }

    /// Whether a cache does not show a write yet, and may still come to.
    fn is_missing(&self, write: &Write, now: Instant) -> bool {
        let shown = self.caches.get(&write.resource);
        let shown = shown.and_then(|cache| cache.resource_version());
        let is_shown = shown.is_none_or(|shown| shown.includes(&write.version));
        !is_shown && now < write.expires
    }

    /// How long a key should wait before it is looked at again; `None` if it can be reconciled.
    pub(super) fn wait(&self, key: &K) -> Option<Duration> {
        let now = Instant::now();
        let mut writes = self.lock();
        let of_key = writes.of_keys.get_mut(key)?;
        of_key.retain(|write| self.is_missing(write, now));
        let Some(last) = of_key.iter().map(|write| write.expires).max() else {
            writes.of_keys.remove(key);
            return None;
        };
        Some(INTERVAL.min(last - now))
    }
}

/// Records writes for the key of one call.
pub(super) type RecordWrite = Arc<dyn Fn(&GroupResource, &str) + Send + Sync>;

/// Records what a call wrote, so that the next call of its key sees it in the cache. Clones record for the same call.
#[derive(Clone)]
pub struct WriteRecorder(RecordWrite);

impl WriteRecorder {
    pub(super) fn new(record: RecordWrite) -> Self {
        Self(record)
    }

    /// Records an object that a write returned, also a delete.
    pub fn record<T: Resource>(&self, written: &T) {
        let version = &written.metadata().resource_version;
        let resource = GroupResource::new(T::GROUP, T::PLURAL);
        self.record_version(&resource, version.as_deref().unwrap_or_default());
    }

    /// Records the resourceVersion that a write to a resource returned. An empty one is ignored.
    pub fn record_version(&self, resource: &GroupResource, resource_version: &str) {
        (self.0)(resource, resource_version);
    }
}

impl std::fmt::Debug for WriteRecorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WriteRecorder")
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[derive(Clone, Default)]
    struct Cache(Arc<Mutex<Option<ResourceVersion>>>);

    impl Cache {
        fn show(&self, version: &str) {
            *self.0.lock().unwrap() = ResourceVersion::new(version);
        }
    }

    impl CacheVersion for Cache {
        fn resource_version(&self) -> Option<ResourceVersion> {
            self.0.lock().unwrap().clone()
        }
    }

    fn pods() -> GroupResource {
        GroupResource::new("", "pods")
    }

    fn guard() -> (ConsistencyGuard<&'static str>, Cache) {
        let cache = Cache::default();
        cache.show("9");
        let caches: Caches = HashMap::from([(pods(), Arc::new(cache.clone()) as _)]);
        (ConsistencyGuard::new(caches), cache)
    }

    #[tokio::test(start_paused = true)]
    async fn trap_39_a_key_waits_for_the_cache_to_show_its_own_writes() {
        let (guard, cache) = guard();
        guard.record(&"a", &pods(), "10");
        guard.record(&"a", &pods(), "12");
        guard.record(&"a", &pods(), "11");
        assert_eq!(guard.wait(&"a"), Some(INTERVAL));
        assert_eq!(guard.wait(&"b"), None);
        cache.show("11");
        assert_eq!(guard.wait(&"a"), Some(INTERVAL));
        // A deletion of the object moves the cache on as well as a change of it.
        cache.show("100");
        assert_eq!(guard.wait(&"a"), None);
        cache.show("1");
        assert_eq!(guard.wait(&"a"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn trap_39_a_write_that_the_cache_never_shows_does_not_stop_a_key_for_ever() {
        let (guard, _cache) = guard();
        guard.record(&"a", &pods(), "10");
        advance(LIMIT - Duration::from_millis(1)).await;
        assert_eq!(guard.wait(&"a"), Some(Duration::from_millis(1)));
        advance(Duration::from_millis(1)).await;
        assert_eq!(guard.wait(&"a"), None);
        assert!(guard.lock().of_keys.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn trap_39_versions_that_cannot_be_compared_stop_no_key() {
        let (guard, cache) = guard();
        for version in ["", "0", "007", "abc", "8", "9"] {
            guard.record(&"a", &pods(), version);
            assert_eq!(guard.wait(&"a"), None, "{version}");
        }
        guard.record(&"a", &GroupResource::new("", "secrets"), "10");
        assert_eq!(guard.wait(&"a"), None);
        guard.record(&"a", &pods(), "10");
        cache.show("abc");
        assert_eq!(guard.wait(&"a"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn writes_of_keys_that_are_never_handed_out_again_are_removed() {
        let cache = Cache::default();
        cache.show("9");
        let caches: Caches = HashMap::from([(pods(), Arc::new(cache) as _)]);
        let guard = ConsistencyGuard::new(caches);
        for number in 0..MIN_SWEEP * 8 {
            guard.record(&number, &pods(), "10");
            if number % MIN_SWEEP == 0 {
                advance(LIMIT).await;
            }
        }
        assert!(guard.lock().of_keys.len() <= MIN_SWEEP * 2);
    }
}
