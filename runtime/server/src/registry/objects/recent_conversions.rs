//! Objects in a version that is not stored: many watchers look at the same one, which is converted once.

use std::sync::Arc;

use apiloom_meta::ApiError;
use apiloom_storage::cache::Item;
use tokio::sync::OnceCell;

use super::cached_object::{CachedObject, StateId, item_bytes};
use crate::recent::Recent;

/// Objects in a version that is not stored, as they were converted lately, for all watchers.
#[derive(Debug, Default)]
pub(crate) struct RecentConversions {
    made: Recent<Made>,
    /// Conversions that are awaited, or were.
    awaited: Recent<Awaited>,
}

#[derive(Debug)]
struct Made {
    of: StateId,
    converted: Arc<Item<CachedObject>>,
}

#[derive(Debug)]
struct Awaited {
    of: StateId,
    converted: Arc<OnceCell<Arc<Item<CachedObject>>>>,
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
        if let Some(known) = self.made.find(same) {
            return Ok(known);
        }
        let converted = convert()?;
        let made = Made {
            of: StateId::of(item),
            converted: Arc::clone(&converted),
        };
        self.made.keep(made, item_bytes(&converted));
        Ok(converted)
    }

    /// The same of a conversion that is awaited: one for all who want the same object meanwhile.
    ///
    /// # Errors
    /// Of the conversion. It is tried again by the next one who wants the object.
    pub(crate) async fn get_later(
        &self,
        item: &Arc<Item<CachedObject>>,
        convert: impl Future<Output = Result<Arc<Item<CachedObject>>, ApiError>>,
    ) -> Result<Arc<Item<CachedObject>>, ApiError> {
        let same = |awaited: &Awaited| {
            awaited
                .of
                .is_of(item)
                .then(|| Arc::clone(&awaited.converted))
        };
        let cell = self.awaited.find(same).unwrap_or_else(|| {
            let converted = Arc::default();
            let awaited = Awaited {
                of: StateId::of(item),
                converted: Arc::clone(&converted),
            };
            // About as large as what it is made of.
            self.awaited.keep(awaited, item_bytes(item));
            converted
        });
        cell.get_or_try_init(|| convert).await.cloned()
    }
}
