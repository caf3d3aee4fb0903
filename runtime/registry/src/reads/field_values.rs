//! Values of selectable fields of cached objects in a version that is not stored, so that lists by such a field do not
//! convert every object each time. Filled by lists; cleared when lists do not use it for some time.

use std::collections::HashMap;
use std::sync::Arc;

use apiloom_storage::cache::Item;
use parking_lot::Mutex;

use crate::objects::cached_object::{CachedObject, StateId};

/// Number of checks in a row without use after which the values are cleared.
pub(crate) const UNUSED_LOOKS: u32 = 300;

/// Maximum size of an object's values, in bytes; an object with more is converted by each list. The values are copies.
const MOST_BYTES: usize = 1024;

/// Minimum growth of the map between two sweeps for released states.
const WORTH_A_LOOK: usize = 1024;

/// Values of the selectable fields, in the order of their declaration.
type Values = Arc<[Box<str>]>;

/// Values by the state of the object.
#[derive(Debug, Default)]
pub(crate) struct FieldValues(Mutex<ValueTable>);

#[derive(Debug, Default)]
struct ValueTable {
    /// By the address of the state, which is not used again while the `StateId` is kept.
    values: HashMap<usize, (StateId, Values)>,
    /// Size of the map at which released states are removed.
    full: usize,
    /// Number of checks in a row that found the values unused.
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

    /// Adds the values of a state, taken from its conversion.
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

    /// Clears the values if they were not used for some time; called at intervals.
    pub(crate) fn forget_unused(&self) {
        let mut known = self.0.lock();
        known.unused = known.unused.saturating_add(1);
        if known.unused > UNUSED_LOOKS && known.values.capacity() > 0 {
            *known = ValueTable::default();
        }
    }

    /// Number of states whose values are known.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.lock().values.len()
    }
}

fn address(item: &Arc<Item<CachedObject>>) -> usize {
    Arc::as_ptr(item).addr()
}
