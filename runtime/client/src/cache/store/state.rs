//! The objects of a store, which its listers read while it plans and applies changes.
//!
//! Objects are in numbered slots; a hash table finds the slot of a key, and indexes hold slots. A key is hashed once, and
//! is not stored beside its object. Lock order: `changes`, then `state`. User code (key functions of indexes) runs with
//! `changes` held and `state` free, so that it can read the store.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use hashbrown::HashTable;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

use crate::cache::index::{Index, SlotChange, SlotId, StoreIndex, TypedIndex};
use crate::cache::object::CacheObject;
use crate::cache::resource_version::ResourceVersion;

/// The observation of a deletion: how it was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
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
        observed: Observation,
    },
}

/// A slot; free if it has no object. The hash is that of the object's key.
struct Slot<T> {
    hash: u64,
    object: Option<Arc<T>>,
}

/// Everything that changes together.
pub(in crate::cache) struct State<T> {
    slots: Vec<Slot<T>>,
    free: Vec<SlotId>,
    by_key: HashTable<SlotId>,
    indexes: BTreeMap<TypeId, Box<dyn StoreIndex<T>>>,
    pub(in crate::cache) resource_version: Option<ResourceVersion>,
    /// Whether the store had a complete state once.
    pub(in crate::cache) is_synced: bool,
}

impl<T: CacheObject> State<T> {
    pub(super) fn find(&self, hash: u64, namespace: &str, name: &str) -> Option<SlotId> {
        let is_equal = |slot: &SlotId| {
            self.object(*slot)
                .is_some_and(|object| object.namespace() == namespace && object.name() == name)
        };
        self.by_key.find(hash, is_equal).copied()
    }
    /// The object of a slot; `None` if the slot is free.
    pub(in crate::cache) fn object(&self, slot: SlotId) -> Option<&Arc<T>> {
        self.slots.get(slot as usize)?.object.as_ref()
    }
    /// All objects, in no particular order.
    pub(in crate::cache) fn objects(&self) -> impl Iterator<Item = &Arc<T>> {
        self.slots.iter().filter_map(|slot| slot.object.as_ref())
    }
    /// Number of slots, free ones among them.
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }
    /// Number of objects.
    pub(in crate::cache) fn len(&self) -> usize {
        self.by_key.len()
    }
    /// An index, if it was added.
    pub(in crate::cache) fn index<I: Index<T>>(&self) -> Option<&TypedIndex<T, I>> {
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
pub(in crate::cache) struct SharedState<T> {
    hasher: RandomState,
    /// Held while a change is computed and applied, or an index is added.
    pub(super) changes: Mutex<()>,
    pub(in crate::cache) state: RwLock<State<T>>,
    /// Notified when the resourceVersion changes.
    pub(in crate::cache) advanced: Notify,
}

/// Changes of different keys, to be applied in one critical section.
pub(super) struct Plan<T> {
    changes: Vec<SlotChange<T>>,
    /// For each change, the hash of its key, and the last state of an object whose deletion was seen.
    details: Vec<(u64, Option<Arc<T>>)>,
    /// How many of the free slots remain: new objects take the last ones.
    free: usize,
    /// Number of slots; new objects are added behind the others when no slot is free.
    end: SlotId,
}

/// What is complete when a plan was applied, and the resourceVersion that the store has then.
pub(super) enum Completes {
    Nothing,
    Changes(ResourceVersion),
    List(Option<ResourceVersion>),
}

impl<T: CacheObject> Plan<T> {
    pub(super) fn new(state: &State<T>) -> Self {
        Self {
            changes: Vec::new(),
            details: Vec::new(),
            free: state.free.len(),
            end: SlotId::try_from(state.slots.len())
                .expect("fewer than 2^32 objects fit in memory"),
        }
    }
    pub(super) fn put(&mut self, state: &State<T>, hash: u64, new: Arc<T>) {
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
    pub(super) fn remove(&mut self, state: &State<T>, slot: SlotId, last: Option<Arc<T>>) {
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
pub(super) fn is_same<T: CacheObject>(a: &T, b: &T) -> bool {
    let version = a.resource_version();
    !version.is_empty() && version == b.resource_version() && a.uid() == b.uid()
}

impl<T: CacheObject> SharedState<T> {
    /// No object.
    pub(super) fn new() -> Self {
        Self {
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
        }
    }
    pub(super) fn hash(&self, namespace: &str, name: &str) -> u64 {
        self.hasher.hash_one((namespace, name))
    }
    /// The object with this namespace and name.
    pub(in crate::cache) fn get(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        let hash = self.hash(namespace, name);
        let state = self.state.read();
        let slot = state.find(hash, namespace, name)?;
        state.object(slot).cloned()
    }
    /// Adds an index and fills it; nothing if the store has it.
    pub(in crate::cache) fn add_index<I: Index<T>>(&self) {
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
    pub(super) fn apply(&self, plan: Plan<T>, completes: Completes, report: &mut Vec<Change<T>>) {
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
        observed: Observation::Inferred,
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
                observed: Observation::Seen,
            },
            None => inferred(old),
        }),
        (None, None) => {}
    }
}
