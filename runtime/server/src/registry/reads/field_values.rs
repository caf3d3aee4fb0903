//! The values of selectable fields of cached objects in a version that is not stored, so that lists by such a field need
//! not convert every object each time. Built by the first list, kept while lists ask for them, and then dropped.

use std::collections::HashMap;
use std::sync::Arc;

use apiloom_storage::cache::Item;
use parking_lot::Mutex;

use crate::registry::objects::cached_object::{CachedObject, StateId};

/// Values are dropped when so many looks at them in a row found that they were not asked for.
pub(crate) const UNUSED_LOOKS: u32 = 300;

/// An object whose values have more bytes is converted each time: values are copies beside the object.
const MOST_BYTES: usize = 1024;

/// States that are gone are looked for when there are so many more than after the last time, at least.
const WORTH_A_LOOK: usize = 1024;

/// The values of the selectable fields, in the order of their declaration.
type Values = Arc<[Box<str>]>;

/// The values by the state of an object that they are of.
#[derive(Debug, Default)]
pub(crate) struct FieldValues(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// By the address of the state, which is no other's as long as its identity is kept beside it.
    values: HashMap<usize, (StateId, Values)>,
    /// The size at which states that are gone are looked for.
    full: usize,
    /// How many looks in a row found that the values were not used.
    unused: u32,
}

impl FieldValues {
    /// The values of a state of an object, if they are known.
    pub(crate) fn get(&self, item: &Arc<Item<CachedObject>>) -> Option<Values> {
        let mut known = self.0.lock();
        known.unused = 0;
        let (_, values) = known.values.get(&address(item))?;
        Some(Arc::clone(values))
    }

    /// Keeps the values of a state, which were read from it in the other version.
    pub(crate) fn keep(&self, item: &Arc<Item<CachedObject>>, converted: &CachedObject) {
        let values = converted.fields();
        if values.iter().map(|value| value.len()).sum::<usize>() > MOST_BYTES {
            return;
        }
        let mut known = self.0.lock();
        if known.values.len() >= known.full.max(WORTH_A_LOOK) {
            known.values.retain(|_, (state, _)| state.is_alive());
            known.full = known.values.len() + (known.values.len() / 2).max(WORTH_A_LOOK);
        }
        let values = (StateId::of(item), values.into());
        known.values.insert(address(item), values);
    }

    /// Drops the values when they were not used for long; to be called at intervals.
    pub(crate) fn forget_unused(&self) {
        let mut known = self.0.lock();
        known.unused = known.unused.saturating_add(1);
        if known.unused > UNUSED_LOOKS && known.values.capacity() > 0 {
            *known = Known::default();
        }
    }

    /// Of how many states the values are known.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.lock().values.len()
    }
}

fn address(item: &Arc<Item<CachedObject>>) -> usize {
    Arc::as_ptr(item).addr()
}
