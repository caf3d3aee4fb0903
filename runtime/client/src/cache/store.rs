//! `Store`: the local copy of the objects of one resource, its writer; [`Lister`] reads it.
//!
//! Objects are in numbered slots; a hash table finds the slot of a key, and indexes hold slots. A key is hashed once, and
//! is not stored beside its object. Lock order: `changes`, then `state`. User code (key functions of indexes) runs with
//! `changes` held and `state` free, so that it can read the store.

mod relist;
#[cfg(test)]
mod tests;

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use hashbrown::HashTable;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use super::index::{ByNamespace, Index, SlotChange, SlotId, StoreIndex, TypedIndex};
use super::lister::Lister;
use super::object::{CacheObject, ObjectKey};
use super::resource_version::ResourceVersion;
pub(super) use relist::Relist;

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

/// How a deletion was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// The server reported it, with the last state of the object.
    Seen,
    /// The object was missing when the state was read again, or another object has its name; the state is the last one
    /// that was cached, and others may have followed.
    Inferred,
}

/// What a delta changed in a store.
#[derive(Debug)]
pub enum Change<T> {
    /// An object that was not in the store.
    Added(Arc<T>),
    /// Another state of an object in the store; both have the same uid.
    Updated {
        /// The state before.
        old: Arc<T>,
        /// The state now.
        new: Arc<T>,
    },
    /// The object left the store.
    Deleted {
        /// Its last known state.
        last: Arc<T>,
        /// How the deletion was noticed.
        observed: Observed,
    },
}

/// A slot; free if it has no object. The hash is that of the object's key.
struct Slot<T> {
    hash: u64,
    object: Option<Arc<T>>,
}

/// Everything that changes together.
pub(super) struct State<T> {
    slots: Vec<Slot<T>>,
    free: Vec<SlotId>,
    by_key: HashTable<SlotId>,
    indexes: BTreeMap<TypeId, Box<dyn StoreIndex<T>>>,
    pub(super) resource_version: Option<ResourceVersion>,
    /// Whether the store had a complete state once.
    pub(super) is_synced: bool,
}

impl<T: CacheObject> State<T> {
    fn find(&self, hash: u64, namespace: &str, name: &str) -> Option<SlotId> {
        let is_equal = |slot: &SlotId| {
            self.object(*slot)
                .is_some_and(|object| object.namespace() == namespace && object.name() == name)
        };
        self.by_key.find(hash, is_equal).copied()
    }
    /// The object of a slot; `None` if the slot is free.
    pub(super) fn object(&self, slot: SlotId) -> Option<&Arc<T>> {
        self.slots.get(slot as usize)?.object.as_ref()
    }
    /// All objects, in no particular order.
    pub(super) fn objects(&self) -> impl Iterator<Item = &Arc<T>> {
        self.slots.iter().filter_map(|slot| slot.object.as_ref())
    }
    /// Number of objects.
    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }
    /// An index, if it was added.
    pub(super) fn index<I: Index<T>>(&self) -> Option<&TypedIndex<T, I>> {
        let index: &dyn Any = &**self.indexes.get(&TypeId::of::<I>())?;
        index.downcast_ref()
    }

    /// Puts objects into slots, takes them out, and records their new keys. Indexes are changed by the caller.
    fn write(&mut self, hash: u64, change: &SlotChange<T>) {
        let index = change.slot as usize;
        if change.new.is_none() {
            if let Ok(entry) = self.by_key.find_entry(hash, |slot| *slot == change.slot) {
                entry.remove();
            }
            self.free.push(change.slot);
        }
        let slot = Slot {
            hash,
            object: change.new.clone(),
        };
        if index == self.slots.len() {
            self.slots.push(slot);
        } else {
            self.slots[index] = slot;
        }
        if change.old.is_none() {
            let slots = &self.slots;
            let hash_of = |slot: &SlotId| slots[*slot as usize].hash;
            self.by_key.insert_unique(hash, change.slot, hash_of);
        }
    }
}

/// What a store and its listers share.
pub(super) struct Shared<T> {
    hasher: RandomState,
    /// Held while a change is computed and applied, or an index is added.
    changes: Mutex<()>,
    pub(super) state: RwLock<State<T>>,
    /// Notified when the resourceVersion changes.
    pub(super) advanced: Notify,
}

/// Changes of different keys, to be applied in one critical section.
struct Plan<T> {
    changes: Vec<SlotChange<T>>,
    /// For each change, the hash of its key, and the last state of an object whose deletion was seen.
    details: Vec<(u64, Option<Arc<T>>)>,
    /// How many of the free slots remain: new objects take the last ones.
    free: usize,
    /// Number of slots; new objects are added behind the others when no slot is free.
    end: SlotId,
}

/// What is complete when a plan was applied, and the resourceVersion that the store has then.
enum Completes {
    Nothing,
    Changes(ResourceVersion),
    List(Option<ResourceVersion>),
}

impl<T: CacheObject> Plan<T> {
    fn new(state: &State<T>) -> Self {
        Self {
            changes: Vec::new(),
            details: Vec::new(),
            free: state.free.len(),
            end: SlotId::try_from(state.slots.len())
                .expect("fewer than 2^32 objects fit in memory"),
        }
    }
    fn put(&mut self, state: &State<T>, hash: u64, new: Arc<T>) {
        let found = state.find(hash, new.namespace(), new.name());
        let old = found.and_then(|slot| state.object(slot)).cloned();
        if old.as_ref().is_some_and(|old| is_same(&**old, &*new)) {
            return;
        }
        let slot = found.unwrap_or_else(|| self.next_slot(state));
        let new = Some(new);
        self.changes.push(SlotChange { slot, old, new });
        self.details.push((hash, None));
    }
    fn next_slot(&mut self, state: &State<T>) -> SlotId {
        if let Some(last) = self.free.checked_sub(1) {
            self.free = last;
            return state.free[last];
        }
        self.end += 1;
        self.end - 1
    }
    /// Removes the object of a slot; nothing if it is free. `last` is its last state, if the deletion was seen.
    fn remove(&mut self, state: &State<T>, slot: SlotId, last: Option<Arc<T>>) {
        let Some(old) = state.object(slot).cloned() else {
            return;
        };
        self.changes.push(SlotChange {
            slot,
            old: Some(old),
            new: None,
        });
        self.details.push((state.slots[slot as usize].hash, last));
    }
}

/// Whether two states of one key are the same state of one object. Without a resourceVersion it cannot be known.
fn is_same<T: CacheObject>(a: &T, b: &T) -> bool {
    let version = a.resource_version();
    !version.is_empty() && version == b.resource_version() && a.uid() == b.uid()
}

impl<T: CacheObject> Shared<T> {
    fn hash(&self, namespace: &str, name: &str) -> u64 {
        self.hasher.hash_one((namespace, name))
    }
    /// The object with this namespace and name.
    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        let hash = self.hash(namespace, name);
        let state = self.state.read();
        let slot = state.find(hash, namespace, name)?;
        state.object(slot).cloned()
    }
    /// Adds an index and fills it; nothing if the store has it.
    pub(super) fn add_index<I: Index<T>>(&self) {
        let _changes = self.changes.lock();
        let state = self.state.read();
        if state.index::<I>().is_some() {
            return;
        }
        let slots = (0..).zip(&state.slots);
        let changes: Vec<SlotChange<T>> = slots
            .map(|(slot, content)| SlotChange {
                slot,
                old: None,
                new: content.object.clone(),
            })
            .collect();
        drop(state);
        let mut index = TypedIndex::<T, I>::new();
        let differences = index.differences(&changes);
        index.apply(differences);
        let mut state = self.state.write();
        state.indexes.insert(TypeId::of::<I>(), Box::new(index));
    }

    /// Applies a plan in one critical section, together with the resourceVersion that it leads to, and reports what
    /// changed. The caller holds `changes`.
    fn apply(&self, plan: Plan<T>, completes: Completes, report: &mut Vec<Change<T>>) {
        // No writer can wait for `state` now, so key functions can read the store although it is read-locked here.
        let mut differences: Vec<_> = {
            let state = self.state.read();
            let indexes = state.indexes.values();
            indexes
                .map(|index| index.differences(&plan.changes))
                .collect()
        };
        let mut state = self.state.write();
        // The plan gave the end of this list to new objects.
        state.free.truncate(plan.free);
        for (change, (hash, _)) in plan.changes.iter().zip(&plan.details) {
            state.write(*hash, change);
        }
        for (index, differences) in state.indexes.values_mut().zip(differences.drain(..)) {
            index.apply(differences);
        }
        match completes {
            Completes::Nothing => {}
            Completes::List(version) => {
                state.is_synced = true;
                state.resource_version = version;
            }
            Completes::Changes(version) => state.resource_version = Some(version),
        }
        drop(state);
        self.advanced.notify_waiters();
        // Reports are made, and old objects dropped, outside of the lock.
        for (change, (_, last)) in plan.changes.into_iter().zip(plan.details) {
            report_change(change, last, report);
        }
    }
}

/// Adds what a change of a slot is to readers: another object under the same key is a deletion and an addition.
fn report_change<T: CacheObject>(
    change: SlotChange<T>,
    last: Option<Arc<T>>,
    report: &mut Vec<Change<T>>,
) {
    let inferred = |last| Change::Deleted {
        last,
        observed: Observed::Inferred,
    };
    match (change.old, change.new) {
        (None, Some(new)) => report.push(Change::Added(new)),
        (Some(old), Some(new)) if old.uid() == new.uid() => {
            report.push(Change::Updated { old, new });
        }
        (Some(old), Some(new)) => report.extend([inferred(old), Change::Added(new)]),
        (Some(old), None) => report.push(match last {
            Some(last) => Change::Deleted {
                last,
                observed: Observed::Seen,
            },
            None => inferred(old),
        }),
        (None, None) => {}
    }
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
    shared: Arc<Shared<T>>,
}

impl<T: CacheObject> Default for Store<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: CacheObject> Store<T> {
    /// An empty store, with the index by namespace.
    pub fn new() -> Self {
        let shared = Arc::new(Shared {
            hasher: RandomState::new(),
            changes: Mutex::new(()),
            state: RwLock::new(State {
                slots: Vec::new(),
                free: Vec::new(),
                by_key: HashTable::new(),
                indexes: BTreeMap::new(),
                resource_version: None,
                is_synced: false,
            }),
            advanced: Notify::new(),
        });
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
}
