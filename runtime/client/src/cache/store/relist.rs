//! A new list of all objects, compared with the store page by page (mark and sweep).
//!
//! Objects that did not change are marked and dropped at once, so an unchanged list needs the memory of one page. Only
//! differences are kept, and applied in one step at the end: readers see the old set or the new one.

use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::state::{Change, Completes, Plan, SharedState, is_same};
use crate::cache::index::SlotId;
use crate::cache::object::{CacheObject, ObjectKey};
use crate::cache::resource_version::ResourceVersion;

/// A list in progress. The store must not be changed before it is finished; dropping it discards it.
pub(in crate::cache) struct Relist<T> {
    shared: Arc<SharedState<T>>,
    /// One bit for each slot whose object is as it was.
    unchanged: Vec<u64>,
    /// Objects that are new or different, each with the hash of its key; `None` if it was removed again.
    staged: Vec<(u64, Option<Arc<T>>)>,
    /// Places in `staged`.
    by_key: HashTable<usize>,
}

fn has_key(object: &impl CacheObject, namespace: &str, name: &str) -> bool {
    object.namespace() == namespace && object.name() == name
}

impl<T: CacheObject> Relist<T> {
    /// A list without objects yet.
    pub(super) fn new(shared: Arc<SharedState<T>>) -> Self {
        Self {
            shared,
            unchanged: Vec::new(),
            staged: Vec::new(),
            by_key: HashTable::new(),
        }
    }

    fn set_unchanged(&mut self, slot: SlotId, unchanged: bool) {
        let (word, bit) = (slot as usize / 64, 1_u64 << (slot % 64));
        if self.unchanged.len() <= word {
            self.unchanged.resize(word + 1, 0);
        }
        if unchanged {
            self.unchanged[word] |= bit;
        } else {
            self.unchanged[word] &= !bit;
        }
    }
    fn is_unchanged(&self, slot: SlotId) -> bool {
        let word = self.unchanged.get(slot as usize / 64).copied();
        word.unwrap_or_default() & (1_u64 << (slot % 64)) != 0
    }

    /// Whether the store has this state of the object, so that [`Relist::put`] only marks it.
    pub(in crate::cache) fn is_stored(&self, object: &T) -> bool {
        let stored = self.shared.get(object.namespace(), object.name());
        stored.is_some_and(|stored| is_same(&*stored, object))
    }

    /// Adds an object of the list. The later one of two with the same key replaces the earlier one.
    pub(in crate::cache) fn put(&mut self, object: T) {
        let hash = self.shared.hash(object.namespace(), object.name());
        let stored = {
            let state = self.shared.state.read();
            let slot = state.find(hash, object.namespace(), object.name());
            slot.and_then(|slot| Some((slot, is_same(&**state.object(slot)?, &object))))
        };
        if let Some((slot, is_unchanged)) = stored {
            self.set_unchanged(slot, is_unchanged);
            if is_unchanged {
                self.unstage(hash, object.namespace(), object.name());
                return;
            }
        }
        let staged = &self.staged;
        let is_equal = |place: &usize| {
            let other = staged[*place].1.as_ref();
            other.is_some_and(|other| has_key(&**other, object.namespace(), object.name()))
        };
        match self.by_key.entry(hash, is_equal, |place| staged[*place].0) {
            Entry::Occupied(entry) => self.staged[*entry.get()].1 = Some(Arc::new(object)),
            Entry::Vacant(entry) => {
                entry.insert(staged.len());
                self.staged.push((hash, Some(Arc::new(object))));
            }
        }
    }

    /// Takes an object out of the list again.
    pub(in crate::cache) fn remove(&mut self, key: &ObjectKey) {
        let (namespace, name) = (&*key.namespace, &*key.name);
        let hash = self.shared.hash(namespace, name);
        let slot = self.shared.state.read().find(hash, namespace, name);
        if let Some(slot) = slot {
            self.set_unchanged(slot, false);
        }
        self.unstage(hash, namespace, name);
    }

    fn unstage(&mut self, hash: u64, namespace: &str, name: &str) {
        let staged = &mut self.staged;
        let is_equal = |place: &usize| {
            let object = staged[*place].1.as_ref();
            object.is_some_and(|object| has_key(&**object, namespace, name))
        };
        if let Ok(entry) = self.by_key.find_entry(hash, is_equal) {
            let (place, _) = entry.remove();
            staged[place].1 = None;
        }
    }

    /// Makes the store what the list says, in one step, and returns the differences: deletions first.
    pub(super) fn finish(self, resource_version: Option<ResourceVersion>) -> Vec<Change<T>> {
        let shared = Arc::clone(&self.shared);
        let _changes = shared.changes.lock();
        let plan = {
            let state = shared.state.read();
            let mut plan = Plan::new(&state);
            let mut is_staged = vec![0_u64; state.slots().div_ceil(64)];
            for object in self.staged.iter().filter_map(|(_, object)| object.as_ref()) {
                let hash = shared.hash(object.namespace(), object.name());
                if let Some(slot) = state.find(hash, object.namespace(), object.name()) {
                    is_staged[slot as usize / 64] |= 1 << (slot % 64);
                }
            }
            let end = SlotId::try_from(state.slots()).unwrap_or(SlotId::MAX);
            for slot in 0..end {
                let is_staged = is_staged[slot as usize / 64] & (1 << (slot % 64)) != 0;
                if !self.is_unchanged(slot) && !is_staged {
                    plan.remove(&state, slot, None);
                }
            }
            for (hash, object) in self.staged {
                if let Some(object) = object {
                    plan.put(&state, hash, object);
                }
            }
            plan
        };
        let mut report = Vec::new();
        shared.apply(plan, Completes::List(resource_version), &mut report);
        report
    }
}
