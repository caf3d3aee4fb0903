//! `Store`: the local copy of the objects of one resource, its writer; [`Lister`] reads it.

mod relist;
pub(super) mod state;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;

use super::index::ByNamespace;
use super::lister::Lister;
use super::object::{CacheObject, ObjectKey};
use super::resource_version::ResourceVersion;
pub(super) use relist::Relist;
pub use state::{Change, Observation};
use state::{Completes, Plan, SharedState};

/// A change that a store is told of.
#[derive(Debug)]
pub enum Delta<T> {
    /// The object exists and looks like this.
    Put(T),
    /// The object is gone, or is not selected any more; this was its last state.
    Delete(T),
    /// The object is not known any more, for instance since it cannot be decoded.
    Forget(ObjectKey),
}

/// The local copy of the objects of one resource. It has one writer, mostly a reflector; listers read it.
///
/// ```
/// use apiloom_client::cache::{CacheObject, Delta, ResourceVersion, Store};
/// # #[derive(Debug)]
/// # struct Pod(&'static str);
/// # impl CacheObject for Pod {
/// #     fn namespace(&self) -> &str { "default" }
/// #     fn name(&self) -> &str { self.0 }
/// #     fn uid(&self) -> &str { "" }
/// #     fn resource_version(&self) -> &str { "" }
/// #     fn label(&self, _: &str) -> Option<&str> { None }
/// #     fn owner_uids(&self) -> Vec<&str> { Vec::new() }
/// # }
/// let mut store = Store::new();
/// let lister = store.lister();
/// store.apply(vec![Delta::Put(Pod("web"))], ResourceVersion::new("7"));
/// assert!(lister.get("default", "web").is_some());
/// ```
pub struct Store<T> {
    shared: Arc<SharedState<T>>,
}

impl<T: CacheObject> Default for Store<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: CacheObject> Store<T> {
    /// An empty store, with the index by namespace.
    pub fn new() -> Self {
        let shared = Arc::new(SharedState::new());
        shared.add_index::<ByNamespace>();
        Self { shared }
    }

    /// A reader of the store.
    pub fn lister(&self) -> Lister<T> {
        Lister::new(Arc::clone(&self.shared))
    }

    /// Applies changes in their order, and sets the resourceVersion that they lead to (`None` leaves it). Readers see
    /// them at once, unless they have several changes of one key. Returns what changed: a `Put` of the state that the
    /// store has, and a `Delete` of an object that it does not have, change nothing.
    pub fn apply(
        &mut self,
        deltas: Vec<Delta<T>>,
        resource_version: Option<ResourceVersion>,
    ) -> Vec<Change<T>> {
        let shared = &*self.shared;
        let _changes = shared.changes.lock();
        let mut report = Vec::new();
        let mut keys = HashSet::new();
        let mut plan = Plan::new(&shared.state.read());
        for delta in deltas {
            let hash = match &delta {
                Delta::Put(object) | Delta::Delete(object) => {
                    shared.hash(object.namespace(), object.name())
                }
                Delta::Forget(key) => shared.hash(&key.namespace, &key.name),
            };
            if !keys.insert(hash) {
                keys = HashSet::from([hash]);
                shared.apply(plan, Completes::Nothing, &mut report);
                plan = Plan::new(&shared.state.read());
            }
            let state = shared.state.read();
            match delta {
                Delta::Put(object) => plan.put(&state, hash, Arc::new(object)),
                Delta::Delete(object) => {
                    if let Some(slot) = state.find(hash, object.namespace(), object.name()) {
                        plan.remove(&state, slot, Some(Arc::new(object)));
                    }
                }
                Delta::Forget(key) => {
                    if let Some(slot) = state.find(hash, &key.namespace, &key.name) {
                        plan.remove(&state, slot, None);
                    }
                }
            }
        }
        let completes = resource_version.map_or(Completes::Nothing, Completes::Changes);
        shared.apply(plan, completes, &mut report);
        report
    }

    /// Replaces the content in one step, as a list of all objects does, and returns the differences: deletions first.
    /// An object whose uid and resourceVersion are those of the stored one is not replaced.
    pub fn replace(
        &mut self,
        objects: impl IntoIterator<Item = T>,
        resource_version: Option<ResourceVersion>,
    ) -> Vec<Change<T>> {
        let mut relist = self.begin_relist();
        for object in objects {
            relist.put(object);
        }
        self.finish_relist(relist, resource_version)
    }

    /// Begins a list of all objects.
    pub(super) fn begin_relist(&self) -> Relist<T> {
        Relist::new(Arc::clone(&self.shared))
    }

    /// Makes the store what the list says, in one step, and returns the differences: deletions first.
    pub(super) fn finish_relist(
        &mut self,
        relist: Relist<T>,
        resource_version: Option<ResourceVersion>,
    ) -> Vec<Change<T>> {
        relist.finish(resource_version)
    }
}
