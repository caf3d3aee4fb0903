//! `Lister`: reads a store. Each call sees one state of the store, and returns the objects themselves, shared.

use std::sync::Arc;
use std::time::Duration;

use apiloom_meta::kind::SmolStr;
use apiloom_meta::selector::LabelQuery;
use tokio::time::timeout;

use super::index::{ByNamespace, Index, keys_of};
use super::object::{CacheObject, ObjectKey};
use super::resource_version::ResourceVersion;
use super::store::state::SharedState;

/// A reader of a [`super::Store`]. Clones read the same store. Objects are immutable; to change one, clone it first.
///
/// Lists are in no particular order.
pub struct Lister<T> {
    shared: Arc<SharedState<T>>,
}

impl<T> Clone for Lister<T> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

/// The store did not reach a resourceVersion in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cache did not reach resourceVersion {wanted} within {timeout:?}; it is at {}", .reached.as_ref().map_or("none", ResourceVersion::as_str))]
pub struct WaitError {
    /// The resourceVersion that was waited for.
    pub wanted: ResourceVersion,
    /// The resourceVersion of the store when the time had passed.
    pub reached: Option<ResourceVersion>,
    /// How long it was waited for.
    pub timeout: Duration,
}

impl<T: CacheObject> Lister<T> {
    pub(super) fn new(shared: Arc<SharedState<T>>) -> Self {
        Self { shared }
    }

    /// The object with this namespace and name; the namespace of a cluster-scoped object is empty.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        self.shared.get(namespace, name)
    }
    /// The object with this key.
    pub fn get_key(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.get(&key.namespace, &key.name)
    }
    /// All objects.
    pub fn list(&self) -> Vec<Arc<T>> {
        self.shared.state.read().objects().cloned().collect()
    }
    /// All objects, and the resourceVersion of the state that they are.
    pub fn snapshot(&self) -> (Vec<Arc<T>>, Option<ResourceVersion>) {
        let state = self.shared.state.read();
        let objects = state.objects().cloned().collect();
        (objects, state.resource_version.clone())
    }
    /// The objects with labels that a selector selects.
    pub fn select(&self, selector: &LabelQuery) -> Vec<Arc<T>> {
        selected(self.list(), selector)
    }
    /// The keys of all objects.
    pub fn keys(&self) -> Vec<ObjectKey> {
        let objects = self.list();
        objects
            .iter()
            .map(|object| ObjectKey::of(&**object))
            .collect()
    }
    /// The objects of one namespace.
    pub fn namespace(&self, namespace: &str) -> NamespaceLister<T> {
        NamespaceLister {
            lister: self.clone(),
            namespace: namespace.to_owned(),
        }
    }

    /// The objects that an index has under a key. If the index was not added to the store, all objects are searched.
    pub fn by_index<I: Index<T>>(&self, key: &I::Key) -> Vec<Arc<T>> {
        let state = self.shared.state.read();
        if let Some(index) = state.index::<I>() {
            let slots = index.slots(key).into_iter();
            return slots
                .filter_map(|slot| state.object(slot).cloned())
                .collect();
        }
        drop(state);
        let mut objects = self.list();
        objects.retain(|object| keys_of::<T, I>(object).contains(key));
        objects
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.shared.state.read().len()
    }
    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The state that the store shows; `None` before the first one is complete, and of servers without versions.
    pub fn resource_version(&self) -> Option<ResourceVersion> {
        self.shared.state.read().resource_version.clone()
    }
    /// Whether the store had a complete state once.
    pub fn is_synced(&self) -> bool {
        self.shared.state.read().is_synced
    }
    /// Adds an index to the store and fills it; nothing if the store has it.
    pub fn add_index<I: Index<T>>(&self) {
        self.shared.add_index::<I>();
    }
    /// Number of different keys in an index; `None` if it was not added.
    pub fn index_len<I: Index<T>>(&self) -> Option<usize> {
        let state = self.shared.state.read();
        Some(state.index::<I>()?.row_count())
    }

    /// Waits until the store shows this state or a later one. A version that is not a number cannot be compared, and is
    /// not waited for.
    ///
    /// # Errors
    /// If the time has passed, which includes a store without writer.
    pub async fn wait_for(
        &self,
        wanted: &ResourceVersion,
        limit: Duration,
    ) -> Result<(), WaitError> {
        let is_reached = || {
            let reached = self.resource_version();
            reached.is_some_and(|reached| reached.includes(wanted))
        };
        timeout(limit, self.wait_until(is_reached))
            .await
            .map_err(|_| WaitError {
                wanted: wanted.clone(),
                reached: self.resource_version(),
                timeout: limit,
            })
    }

    /// Waits until a condition holds, which is checked whenever the store changes.
    pub(super) async fn wait_until(&self, is_true: impl Fn() -> bool) {
        loop {
            let mut advanced = std::pin::pin!(self.shared.advanced.notified());
            // Registered before the check, so that a change after the check is noticed.
            advanced.as_mut().enable();
            if is_true() {
                return;
            }
            advanced.await;
        }
    }
}

/// Reads the objects of one namespace.
pub struct NamespaceLister<T> {
    lister: Lister<T>,
    namespace: String,
}

impl<T: CacheObject> NamespaceLister<T> {
    /// The object with this name.
    pub fn get(&self, name: &str) -> Option<Arc<T>> {
        self.lister.get(&self.namespace, name)
    }
    /// All objects of the namespace.
    pub fn list(&self) -> Vec<Arc<T>> {
        let key = SmolStr::new(&self.namespace);
        self.lister.by_index::<ByNamespace>(&key)
    }
    /// The objects of the namespace with labels that a selector selects.
    pub fn select(&self, selector: &LabelQuery) -> Vec<Arc<T>> {
        selected(self.list(), selector)
    }
}

fn selected<T: CacheObject>(mut objects: Vec<Arc<T>>, selector: &LabelQuery) -> Vec<Arc<T>> {
    if !selector.is_everything() {
        objects.retain(|object| selector.matches(|key| object.label(key)));
    }
    objects
}
