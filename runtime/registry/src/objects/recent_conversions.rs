//! Recent conversions of objects to a version that is not stored, shared by all watchers of that version.

use std::sync::Arc;

use apiloom_meta::ApiError;
use apiloom_storage::cache::Item;
use tokio::sync::OnceCell;

use super::cached_object::{CachedObject, StateId, item_bytes};
use crate::recent::Recent;

/// Recent conversions of objects to one version.
#[derive(Debug, Default)]
pub(crate) struct RecentConversions {
    finished: Recent<FinishedConversion>,
    /// Asynchronous conversions, pending or finished.
    pending: Recent<PendingConversion>,
}

#[derive(Debug)]
struct FinishedConversion {
    of: StateId,
    converted: Arc<Item<CachedObject>>,
}

#[derive(Debug)]
struct PendingConversion {
    of: StateId,
    converted: Arc<OnceCell<Arc<Item<CachedObject>>>>,
}

impl RecentConversions {
    /// The converted object: a recent conversion of the same state, else a new one.
    ///
    /// # Errors
    /// The error of the conversion.
    pub(crate) fn get(
        &self,
        item: &Arc<Item<CachedObject>>,
        convert: impl FnOnce() -> Result<Arc<Item<CachedObject>>, ApiError>,
    ) -> Result<Arc<Item<CachedObject>>, ApiError> {
        let same =
            |made: &FinishedConversion| made.of.is_of(item).then(|| Arc::clone(&made.converted));
        if let Some(known) = self.finished.find(same) {
            return Ok(known);
        }
        let converted = convert()?;
        let made = FinishedConversion {
            of: StateId::of(item),
            converted: Arc::clone(&converted),
        };
        self.finished.keep(made, item_bytes(&converted));
        Ok(converted)
    }

    /// As [`RecentConversions::get`], with an asynchronous conversion. Concurrent calls for the same object share one.
    ///
    /// # Errors
    /// The error of the conversion; the next call tries again.
    pub(crate) async fn get_or_await(
        &self,
        item: &Arc<Item<CachedObject>>,
        convert: impl Future<Output = Result<Arc<Item<CachedObject>>, ApiError>>,
    ) -> Result<Arc<Item<CachedObject>>, ApiError> {
        let same = |awaited: &PendingConversion| {
            awaited
                .of
                .is_of(item)
                .then(|| Arc::clone(&awaited.converted))
        };
        let cell = self.pending.find(same).unwrap_or_else(|| {
            let converted = Arc::default();
            let awaited = PendingConversion {
                of: StateId::of(item),
                converted: Arc::clone(&converted),
            };
            // The converted object is about as large as its source.
            self.pending.keep(awaited, item_bytes(item));
            converted
        });
        cell.get_or_try_init(|| convert).await.cloned()
    }
}
