//! Reads from the watch cache: the snapshot, the selected objects, their version.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use apiloom_meta::ApiError;
use apiloom_storage::cache::{
    CacheProgress, Fill, INDEX_GROUP, Item, OutsideWindow, Snapshot, WatchCache,
};
use apiloom_storage::{Revision, StorageError};

use super::selection::Selection;
use super::stored::StoredReads;
use crate::error;
use crate::objects::cached_object::{CachedObject, State, object};
use crate::objects::converted::{check_convertible, convert};
use crate::objects::document::{Document, EncodedObject};
use crate::objects::kind_cache::CATCH_UP;
use crate::objects::normalizer::CacheNormalizer;

/// The state that a read requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// The latest state: includes every write acknowledged before the read.
    Latest,
    /// This revision or a later one; with 0 the present state of the cache.
    AtLeast(u64),
    /// Exactly this revision.
    Exactly(Revision),
}

impl Freshness {
    /// The state for the resourceVersion of a get or a watch; `version` is its number.
    pub(crate) fn by(resource_version: &str, version: u64) -> Self {
        if resource_version.is_empty() {
            Self::Latest
        } else {
            Self::AtLeast(version)
        }
    }
}

impl StoredReads {
    /// The snapshot for a read; `None` if the store must be read instead.
    ///
    /// # Errors
    /// Timeout if the cache does not reach the revision; the store's error if its current revision cannot be read.
    pub(crate) async fn state(
        &self,
        cache: &WatchCache<CacheNormalizer>,
        wanted: Freshness,
        operation: &str,
    ) -> Result<Option<State>, ApiError> {
        if !cache.is_filled() {
            return Ok(None);
        }
        match wanted {
            Freshness::Latest => {
                let came = cache.wait_for_present(CATCH_UP).await;
                let came = came.map_err(|e| self.resource.kind.error(e, operation))?;
                Ok(came.then(|| cache.snapshot()))
            }
            Freshness::AtLeast(revision) => {
                self.reach(cache, revision).await?;
                Ok(Some(cache.snapshot()))
            }
            Freshness::Exactly(revision) => {
                self.reach(cache, revision.0).await?;
                cache.check_kept(revision).await;
                match cache.snapshot_at(revision) {
                    Ok(state) => Ok(Some(state)),
                    Err(OutsideWindow::TooOld { .. } | OutsideWindow::NotFilled) => Ok(None),
                    Err(OutsideWindow::Future { requested, current }) => {
                        Err(error::too_large(requested.0, current))
                    }
                }
            }
        }
    }

    /// Fails while the cache is being filled; for reads that would scan the store.
    ///
    /// # Errors
    /// TooManyRequests.
    pub(crate) fn check_filled(&self) -> Result<(), ApiError> {
        let Some(cache) = &self.resource.cache else {
            return Ok(());
        };
        match cache.fill() {
            Fill::Following | Fill::Behind(_) => Ok(()),
            // Waiting does not help if stored data is damaged; the read from the store returns the error.
            Fill::Pending {
                error: Some(StorageError::Corrupt(_)),
                ..
            } => Ok(()),
            Fill::Pending { since, .. } => Err(error::initializing(since.elapsed())),
        }
    }

    /// Waits until the cache is filled, or the store has failed.
    pub async fn filled(&self) {
        let Some(cache) = &self.resource.cache else {
            return;
        };
        let is_decided =
            |progress: &CacheProgress| !matches!(progress.fill, Fill::Pending { error: None, .. });
        // Fails when the cache ends, which the read after it tells.
        let _ = cache.progress().wait_for(is_decided).await;
    }

    /// Fails for a watch that could receive no events: while the cache is not filled, and if it has been disconnected
    /// from the store for longer than reads wait for it.
    ///
    /// # Errors
    /// TooManyRequests while the cache is being filled; the store's error if it is disconnected.
    pub(crate) async fn check_watchable(&self) -> Result<(), ApiError> {
        let Some(cache) = &self.resource.cache else {
            return Ok(());
        };
        let mut progress = cache.progress();
        let is_decided = |progress: &CacheProgress| {
            !matches!(progress.fill, Fill::Behind(StorageError::Unavailable(_)))
        };
        if !is_decided(&progress.borrow()) {
            let _ = tokio::time::timeout(CATCH_UP, progress.wait_for(is_decided)).await;
        }
        match &progress.borrow().fill {
            Fill::Following => Ok(()),
            Fill::Behind(error)
            | Fill::Pending {
                error: Some(error @ StorageError::Corrupt(_)),
                ..
            } => Err(self.resource.kind.error(error.clone(), "watch")),
            Fill::Pending { since, .. } => Err(error::initializing(since.elapsed())),
        }
    }

    /// Waits until the cache has reached a revision.
    async fn reach(
        &self,
        cache: &WatchCache<CacheNormalizer>,
        revision: u64,
    ) -> Result<(), ApiError> {
        if cache.reach(Revision(revision), CATCH_UP).await {
            Ok(())
        } else {
            Err(error::too_large(revision, cache.snapshot().revision()))
        }
    }

    /// An object of the cache in the version of these reads, if it is selected.
    ///
    /// # Errors
    /// InternalError for a stored value that cannot be decoded; the error of the conversion.
    pub(crate) fn select(
        &self,
        item: &Arc<Item<CachedObject>>,
        selection: &Selection,
    ) -> Result<Option<Document>, ApiError> {
        if self.is_left_out(item, selection) {
            return Ok(None);
        }
        if self.is_shown_as_held(item) {
            return self.select_converted(item, None, selection);
        }
        let by_field = !selection.is_of_metadata();
        if by_field
            && let Some(values) = self.field_values.get(item)
            && !selection.matches_fields(&item.key, object(item)?, &values)
        {
            return Ok(None);
        }
        let converted = convert(&self.resource.kind.versions, item, self.resource.version)?;
        if by_field {
            self.field_values.keep(item, object(&converted)?);
        }
        self.select_converted(&converted, None, selection)
    }

    /// Whether objects of the cache may need asynchronous conversion for these reads.
    pub(crate) fn is_awaited(&self) -> bool {
        let kind = &self.resource.kind;
        kind.versions.is_asynchronous()
            && (!self.is_stored() || kind.has_other_versions.load(Ordering::Acquire))
    }

    /// As [`StoredReads::select`], for objects that may need asynchronous conversion; the object shows the revision `shown`
    /// in place of its own.
    ///
    /// # Errors
    /// As [`StoredReads::select`].
    pub(crate) async fn select_in(
        &self,
        item: &Arc<Item<CachedObject>>,
        shown: Option<Revision>,
        selection: &Selection,
    ) -> Result<Option<Document>, ApiError> {
        if self.is_left_out(item, selection) {
            return Ok(None);
        }
        let versions = &self.resource.kind.versions;
        let item = versions.item_in(item, self.resource.version).await?;
        self.select_converted(&item, shown, selection)
    }

    /// Whether an object is excluded by its metadata alone, so that it need not be converted. Of the metadata an asynchronous
    /// converter may change the labels.
    pub(crate) fn is_left_out(
        &self,
        item: &Arc<Item<CachedObject>>,
        selection: &Selection,
    ) -> bool {
        if self.is_shown_as_held(item) || !selection.is_of_metadata() {
            return false;
        }
        if self.resource.kind.versions.is_asynchronous() {
            return !selection.matches_key(&item.key);
        }
        let object = item.object.as_ref();
        object.is_ok_and(|object| !selection.matches_cached(&item.key, object))
    }

    /// Whether the cache holds an object in the version of these reads; not if it cannot be read.
    fn is_shown_as_held(&self, item: &Item<CachedObject>) -> bool {
        let object = item.object.as_ref();
        object.is_ok_and(|object| object.version_index() == self.resource.version)
    }

    /// As [`StoredReads::select`], for a changed object: watchers share its conversion, and it shows the revision of the
    /// change.
    ///
    /// # Errors
    /// As [`StoredReads::select`].
    pub(crate) fn select_changed(
        &self,
        item: &Arc<Item<CachedObject>>,
        shown: Revision,
        selection: &Selection,
    ) -> Result<Option<Document>, ApiError> {
        if self.is_left_out(item, selection) {
            return Ok(None);
        }
        let versions = &self.resource.kind.versions;
        let item = &versions.converted(item, self.resource.version)?;
        self.select_converted(item, Some(shown), selection)
    }

    pub(crate) fn select_converted(
        &self,
        item: &Arc<Item<CachedObject>>,
        shown: Option<Revision>,
        selection: &Selection,
    ) -> Result<Option<Document>, ApiError> {
        if selection.matches_cached(&item.key, object(item)?) {
            Ok(Some(Document::Encoded(EncodedObject::new(item, shown)?)))
        } else {
            Ok(None)
        }
    }

    /// Whether an object of the cache is selected, and can be converted to the version of these reads.
    ///
    /// # Errors
    /// As [`StoredReads::select`].
    pub(crate) fn is_selected(
        &self,
        item: &Arc<Item<CachedObject>>,
        selection: &Selection,
    ) -> Result<bool, ApiError> {
        if !self.is_shown_as_held(item) && !selection.is_of_metadata() {
            // An object whose values are known was converted before, so it can be sent.
            return match self.field_values.get(item) {
                Some(values) => Ok(selection.matches_fields(&item.key, object(item)?, &values)),
                None => self.select(item, selection).map(|found| found.is_some()),
            };
        }
        let selected = selection.matches_cached(&item.key, object(item)?);
        if selected {
            check_convertible(&self.resource.kind.versions, item, self.resource.version)?;
        }
        Ok(selected)
    }

    /// The index and the value to look up in it, for lists; `None` if no index applies.
    pub(crate) fn index_of<'a>(&self, selection: &'a Selection) -> Option<(u16, &'a str)> {
        // The index of lists has the fields of the storage version only.
        self.watched_index(selection).filter(|_| self.is_stored())
    }

    /// The index and the value for a watch. For a version that is not stored, the cache computes the values of changes
    /// for waiting watches.
    pub(crate) fn watched_index<'a>(&self, selection: &'a Selection) -> Option<(u16, &'a str)> {
        // Cached objects may have different versions, and the index has the values of each in its own.
        let versions = &self.resource.kind.versions;
        let indexed = selection.indexed();
        let (number, value) = indexed.filter(|_| versions.has_common_fields())?;
        let first = versions.first_index(self.resource.version)?;
        (number < INDEX_GROUP).then_some((first + number, value))
    }

    /// Cuts off the readers of this kind that keep too much memory in use.
    pub(crate) fn cut_off_slow_readers(&self) {
        let Some(cache) = &self.resource.cache else {
            return;
        };
        let present = cache.size().object_bytes as u64;
        let cut_off = self
            .resource
            .kind
            .readers
            .cut_off(cache.replaced_bytes(), present);
        if cut_off > 0 {
            tracing::warn!(resource = %self.resource.kind.resource, cut_off, "terminated responses to clients that read too slowly");
        }
    }

    pub(crate) fn is_stored(&self) -> bool {
        self.resource.version == self.resource.kind.versions.stored
    }
}

/// The objects that may be selected, in ascending order of their keys, from a start key; from an index if one applies.
pub(crate) fn candidates<'a>(
    reads: &StoredReads,
    state: &'a Snapshot<CachedObject>,
    selection: &Selection,
    prefix: &'a str,
    start: &'a str,
) -> Box<dyn Iterator<Item = &'a Arc<Item<CachedObject>>> + Send + 'a> {
    match reads.index_of(selection) {
        Some((index, value)) => Box::new(state.indexed_below(index, value, prefix, start)),
        None => Box::new(state.range(prefix, start)),
    }
}
