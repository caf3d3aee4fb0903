//! Converts changes to the events of one watch: in the version of its resource, filtered by its selectors.

use std::sync::Arc;

use apiloom_meta::{ApiError, Object};
use apiloom_storage::cache::{Change, Item};
use apiloom_storage::{Event, EventKind, Revision};

use super::event::{WatchEvent, WatchEventKind, event, transition};
use super::selection::Selection;
use super::stored::StoredReads;
use crate::objects::cached_object::CachedObject;
use crate::objects::document::Document;
use crate::objects::key::namespace_and_name;

/// Version and selectors of a watch, applied to changes.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) reads: &'a StoredReads,
    pub(super) selection: &'a Selection,
}

impl View<'_> {
    /// The event for a change; `None` if the watch selects neither the old nor the new state. A change of what is
    /// selected makes an event Added or Deleted.
    pub(super) async fn event(self, change: &Event) -> Result<Option<WatchEvent>, ApiError> {
        // A stored value under another name may be undecodable.
        let (_, name) = namespace_and_name(&change.key);
        if self.selection.name().is_some_and(|wanted| wanted != name) {
            return Ok(None);
        }
        let new = match change.kind {
            EventKind::Deleted => None,
            EventKind::Created | EventKind::Updated => {
                Some(self.read(change, &change.value).await?)
            }
        };
        let new = new.filter(|object| self.selection.matches(object));
        let old = match &change.previous {
            // Without selectors the old state was selected; only a deletion shows it.
            Some(_) if self.selection.is_everything() && new.is_some() => {
                return Ok(new.map(|object| event(WatchEventKind::Modified, object.into())));
            }
            Some((bytes, _)) => Some(self.read(change, bytes).await?)
                .filter(|object| self.selection.matches(object)),
            None => None,
        };
        Ok(transition(old.map(Document::from), new.map(Document::from)))
    }

    /// As [`View::event`], for a change of the cache.
    pub(super) async fn event_of_cached(
        self,
        change: &Change<CachedObject>,
    ) -> Result<Option<WatchEvent>, ApiError> {
        if self.reads.is_awaited() {
            // The state of a conversion is large, and there is a future of this function for each watch.
            return Box::pin(self.converted_event(change)).await;
        }
        let state = |item: &Option<Arc<Item<CachedObject>>>| match item {
            Some(item) => self
                .reads
                .select_changed(item, change.revision, self.selection),
            None => Ok(None),
        };
        let new = state(&change.new)?;
        if self.shows_modified(change, new.as_ref()) {
            return Ok(new.map(|new| event(WatchEventKind::Modified, new)));
        }
        Ok(transition(state(&change.old)?, new))
    }

    /// As [`View::event_of_cached`], for a kind that may need asynchronous conversion.
    async fn converted_event(
        self,
        change: &Change<CachedObject>,
    ) -> Result<Option<WatchEvent>, ApiError> {
        let new = self.converted(change.new.as_ref(), change.revision).await?;
        if self.shows_modified(change, new.as_ref()) {
            return Ok(new.map(|new| event(WatchEventKind::Modified, new)));
        }
        let old = self.converted(change.old.as_ref(), change.revision).await?;
        Ok(transition(old, new))
    }

    /// Whether the old state need not be looked at: without selectors it was selected.
    fn shows_modified(self, change: &Change<CachedObject>, new: Option<&Document>) -> bool {
        change.old.is_some() && new.is_some() && self.selection.is_everything()
    }

    /// The old or new state of a changed object, if it is selected, with the resourceVersion of the change.
    async fn converted(
        self,
        item: Option<&Arc<Item<CachedObject>>>,
        shown: Revision,
    ) -> Result<Option<Document>, ApiError> {
        let (reads, selection) = (self.reads, self.selection);
        match item {
            Some(item) => reads.select_in(item, Some(shown), selection).await,
            None => Ok(None),
        }
    }

    /// Decodes the old or new state of a changed object, with the resourceVersion of the change.
    async fn read(self, change: &Event, bytes: &[u8]) -> Result<Object, ApiError> {
        let kind = &self.reads.resource.kind;
        kind.read_in(
            &change.key,
            bytes,
            change.revision,
            self.reads.resource.version,
        )
        .await
    }
}
