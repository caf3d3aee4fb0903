//! Objects in a version that is not stored: many watchers look at the same one, which is converted once.

use std::sync::Arc;

use apiloom_meta::ApiError;
use apiloom_storage::cache::Item;

use super::cached_object::{CachedObject, StateId, item_bytes};
use crate::recent::Recent;

/// Objects in a version that is not stored, as they were converted lately, for all watchers.
#[derive(Debug, Default)]
pub(crate) struct RecentConversions(Recent<Made>);

#[derive(Debug)]
struct Made {
    of: StateId,
    converted: Arc<Item<CachedObject>>,
}

impl RecentConversions {
    /// The object in that version, converted now unless it was lately.
    ///
    /// # Errors
    /// Of the conversion.
    pub(crate) fn get(
        &self,
        item: &Arc<Item<CachedObject>>,
        convert: impl FnOnce() -> Result<Arc<Item<CachedObject>>, ApiError>,
    ) -> Result<Arc<Item<CachedObject>>, ApiError> {
        let same = |made: &Made| made.of.is_of(item).then(|| Arc::clone(&made.converted));
        if let Some(known) = self.0.find(same) {
            return Ok(known);
        }
        let converted = convert()?;
        let made = Made {
            of: StateId::of(item),
            converted: Arc::clone(&converted),
        };
        self.0.keep(made, item_bytes(&converted));
        Ok(converted)
    }
}
