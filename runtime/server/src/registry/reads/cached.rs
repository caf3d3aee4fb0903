//! Reads from the watch cache: which state, which objects of it, in which version.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use apiloom_meta::ApiError;
use apiloom_meta::selector::{FieldSelector, LabelQuery};
use apiloom_storage::cache::{Fill, INDEX_GROUP, Item, OutsideWindow, Snapshot, WatchCache};
use apiloom_storage::{Revision, StorageError};

use super::Reads;
use super::selection::Selection;
use crate::registry::error;
use crate::registry::objects::cached_object::{CachedObject, State, object};
use crate::registry::objects::converted::{convert, try_once};
use crate::registry::objects::document::{Document, Encoded};
use crate::registry::objects::served::Served;
use crate::registry::options::{ListOptions, RequestContext};

/// How long a read waits for the cache to have a state, as upstream does.
const CATCH_UP: Duration = Duration::from_secs(3);

/// Which state a read wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Everything that was acknowledged before the read.
    Present,
    /// This revision or a later one; 0 for the present state of the cache.
    AtLeast(u64),
    /// Exactly this one.
    Exactly(Revision),
}

impl Wanted {
    /// What a get or a watch asks for by its resourceVersion, which is `version` as a number.
    pub(crate) fn by(resource_version: &str, version: u64) -> Self {
        match resource_version.is_empty() {
            true => Self::Present,
            false => Self::AtLeast(version),
        }
    }
}

impl Reads {
    /// What the options select.
    ///
    /// # Errors
    /// See [`Selection::new`].
    pub(crate) async fn selection(
        &self,
        ctx: &RequestContext,
        options: &ListOptions,
    ) -> Result<Selection, ApiError> {
        let (labels, fields) = (&options.label_selector, &options.field_selector);
        let compile = || Selection::new(self.resource.version(), labels, fields);
        self.resource
            .read_query(ctx, text_bytes(labels, fields), compile)
            .await
    }

    /// The state that a read wants; `None` when the store has to be asked.
    ///
    /// # Errors
    /// Timeout for a state that does not come, and what the store says when it cannot say where it is.
    pub(crate) async fn state(
        &self,
        cache: &WatchCache<Served>,
        wanted: Wanted,
        operation: &str,
    ) -> Result<Option<State>, ApiError> {
        if !cache.is_filled() {
            return Ok(None);
        }
        match wanted {
            Wanted::Present => {
                let came = cache.wait_for_present(CATCH_UP).await;
                let came = came.map_err(|e| self.resource.kind.error(e, operation))?;
                Ok(came.then(|| cache.snapshot()))
            }
            Wanted::AtLeast(revision) => {
                self.reach(cache, revision).await?;
                Ok(Some(cache.snapshot()))
            }
            Wanted::Exactly(revision) => {
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

    /// Refuses what the store should not be asked for while the cache is being filled: everything that scans it.
    ///
    /// # Errors
    /// TooManyRequests.
    pub(crate) fn check_filled(&self) -> Result<(), ApiError> {
        let Some(cache) = &self.resource.cache else {
            return Ok(());
        };
        match &*cache.fill().borrow() {
            Fill::Following | Fill::Behind(_) => Ok(()),
            // Waiting mends no damage; the store itself says what is wrong.
            Fill::Pending {
                error: Some(StorageError::Corrupt(_)),
                ..
            } => Ok(()),
            Fill::Pending { since, .. } => Err(error::initializing(since.elapsed())),
        }
    }

    /// Refuses a watch that would be told of nothing: while the cache is not filled, and when it has lost the store for
    /// longer than reads wait for it.
    ///
    /// # Errors
    /// TooManyRequests, and what keeps the cache from the store.
    pub(crate) async fn check_watchable(&self) -> Result<(), ApiError> {
        let Some(cache) = &self.resource.cache else {
            return Ok(());
        };
        let mut fill = cache.fill();
        let is_decided = |fill: &Fill| !matches!(fill, Fill::Behind(StorageError::Unavailable(_)));
        if !is_decided(&fill.borrow()) {
            let _ = tokio::time::timeout(CATCH_UP, fill.wait_for(is_decided)).await;
        }
        match &*fill.borrow() {
            Fill::Following => Ok(()),
            Fill::Behind(error)
            | Fill::Pending {
                error: Some(error @ StorageError::Corrupt(_)),
                ..
            } => Err(self.resource.kind.error(error.clone(), "watch")),
            Fill::Pending { since, .. } => Err(error::initializing(since.elapsed())),
        }
    }

    /// Waits for a revision that a client has seen somewhere.
    async fn reach(&self, cache: &WatchCache<Served>, revision: u64) -> Result<(), ApiError> {
        match cache.reach(Revision(revision), CATCH_UP).await {
            true => Ok(()),
            false => Err(error::too_large(revision, cache.snapshot().revision())),
        }
    }

    /// An object of the cache in the version of the reads, if it is selected.
    ///
    /// # Errors
    /// InternalError for stored bytes that are no object, and of conversion.
    pub(crate) fn select(
        &self,
        item: &Arc<Item<CachedObject>>,
        selection: &Selection,
    ) -> Result<Option<Document>, ApiError> {
        if self.is_left_out(item, selection) {
            return Ok(None);
        }
        if self.is_stored() {
            return self.select_converted(item, None, selection);
        }
        let by_field = !selection.is_of_metadata();
        if by_field
            && let Some(values) = self.field_values.get(item)
            && !selection.matches_fields(&item.key, object(item)?, &values)
        {
            return Ok(None);
        }
        let converted = convert(&self.resource.kind, item, self.resource.version)?;
        if by_field {
            self.field_values.keep(item, object(&converted)?);
        }
        self.select_converted(&converted, None, selection)
    }

    /// Whether objects of the cache have to be converted asynchronously for this endpoint.
    pub(crate) fn is_awaited(&self) -> bool {
        let kind = &self.resource.kind;
        kind.is_asynchronous() && (!self.is_stored() || kind.holds_others.load(Ordering::Acquire))
    }

    /// An object of the cache in this endpoint's version, which may be converted asynchronously, if it is selected. It shows
    /// the revision `shown` in place of its own.
    ///
    /// # Errors
    /// As [`Endpoint::select`].
    pub(crate) async fn select_in(
        &self,
        item: &Arc<Item<CachedObject>>,
        shown: Option<Revision>,
        selection: &Selection,
    ) -> Result<Option<Document>, ApiError> {
        if self.is_left_out(item, selection) {
            return Ok(None);
        }
        let item = self
            .resource
            .kind
            .item_in(item, self.resource.version)
            .await?;
        self.select_converted(&item, shown, selection)
    }

    /// Whether an object is not selected by what it has alike in every version. It need not be convertible then.
    pub(crate) fn is_left_out(
        &self,
        item: &Arc<Item<CachedObject>>,
        selection: &Selection,
    ) -> bool {
        let object = item.object.as_ref();
        (!self.is_stored() || self.resource.kind.is_asynchronous())
            && selection.is_of_metadata()
            && object.is_ok_and(|object| !selection.matches_cached(&item.key, object))
    }

    /// The same of a changed object, which many watchers look at: it is converted once for all of them, and shows the
    /// revision of the change.
    ///
    /// # Errors
    /// As [`Reads::select`].
    pub(crate) fn select_changed(
        &self,
        item: &Arc<Item<CachedObject>>,
        shown: Revision,
        selection: &Selection,
    ) -> Result<Option<Document>, ApiError> {
        if self.is_left_out(item, selection) {
            return Ok(None);
        }
        let item = match self.is_stored() {
            true => item,
            false => &self.resource.kind.converted(item, self.resource.version)?,
        };
        self.select_converted(item, Some(shown), selection)
    }

    pub(crate) fn select_converted(
        &self,
        item: &Arc<Item<CachedObject>>,
        shown: Option<Revision>,
        selection: &Selection,
    ) -> Result<Option<Document>, ApiError> {
        match selection.matches_cached(&item.key, object(item)?) {
            true => Ok(Some(Document::Encoded(Encoded::new(item, shown)?))),
            false => Ok(None),
        }
    }

    /// Whether an object of the cache is selected, and can be sent in the version of the reads.
    ///
    /// # Errors
    /// As [`Reads::select`].
    pub(crate) fn is_selected(
        &self,
        item: &Arc<Item<CachedObject>>,
        selection: &Selection,
    ) -> Result<bool, ApiError> {
        if !self.is_stored() && !selection.is_of_metadata() {
            // Values are known of what could be converted: nothing is in the way of sending it.
            return match self.field_values.get(item) {
                Some(values) => Ok(selection.matches_fields(&item.key, object(item)?, &values)),
                None => self.select(item, selection).map(|found| found.is_some()),
            };
        }
        let selected = selection.matches_cached(&item.key, object(item)?);
        if selected {
            try_once(&self.resource.kind, item, self.resource.version)?;
        }
        Ok(selected)
    }

    /// The index of the cache that finds what is selected, and the value to look for, if there is one.
    pub(crate) fn index_of<'a>(&self, selection: &'a Selection) -> Option<(u16, &'a str)> {
        // The index holds the fields of the version that is stored.
        self.watched_index(selection).filter(|_| self.is_stored())
    }

    /// The same of changes: what a watch waits for in a version that is not stored is computed while it waits.
    pub(crate) fn watched_index<'a>(&self, selection: &'a Selection) -> Option<(u16, &'a str)> {
        // The version of each object decides which fields are in the index, and the conversion is left to the watchers.
        let (number, value) = selection
            .indexed()
            .filter(|_| !self.resource.kind.is_asynchronous())?;
        let first = self.resource.kind.first_index(self.resource.version)?;
        (number < INDEX_GROUP).then_some((first + number, value))
    }

    /// Cuts off the readers of this kind that keep too much alive.
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
            tracing::warn!(resource = %self.resource.kind.resource, cut_off, "clients that read too slowly are cut off");
        }
    }

    pub(crate) fn is_stored(&self) -> bool {
        self.resource.version == self.resource.kind.storage_version
    }
}

/// About how long the text of these selectors is.
fn text_bytes(labels: &LabelQuery, fields: &FieldSelector) -> usize {
    // An operator and a comma.
    const BETWEEN: usize = 2;
    let labels = labels.requirements().iter().map(|requirement| {
        let values = requirement.values().iter().map(|value| value.len() + 1);
        requirement.key().len() + BETWEEN + values.sum::<usize>()
    });
    let fields = fields.requirements().iter();
    let fields = fields.map(|term| term.field.len() + BETWEEN + term.value.len());
    labels.chain(fields).sum()
}

/// The objects that may be selected, in ascending order of their keys, from a key on. An index is used where one
/// applies.
pub(crate) fn candidates<'a>(
    reads: &Reads,
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
