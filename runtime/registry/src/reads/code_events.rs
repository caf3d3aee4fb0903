//! The events of a watch by code: those of the objects that exist already, if they were asked for, then the changes that the
//! code tells, as far as the watch selects them.

use std::fmt;
use std::sync::Arc;
use std::vec;

use apiloom_meta::{ApiError, Object};
use futures_util::StreamExt as _;
use tokio::time::Instant;

use super::event::{WatchEvent, WatchEventKind, bookmark, event, transition};
use super::lifetime::{Due, Lifetime};
use super::selection::Selection;
use crate::objects::code::{CodeEventStream, ObjectEvent};
use crate::objects::document::Document;
use crate::objects::versioned_resource::VersionedResource;
use crate::options::ListOptions;

/// The beginning of a watch.
pub(super) struct OpenWatch {
    /// The objects that exist already, if the client asked for them.
    pub(super) initial: Option<Vec<Document>>,
    /// resourceVersion up to which the client knows all changes after them; empty if it is unknown.
    pub(super) delivered: String,
    pub(super) changes: CodeEventStream,
}

/// The events of a watch by code, in order.
pub(crate) struct CodeEvents {
    resource: Arc<VersionedResource>,
    /// Prefix of the keys of the watched objects.
    prefix: String,
    selection: Selection,
    lifetime: Lifetime,
    has_bookmarks: bool,
    initial: vec::IntoIter<Document>,
    /// Whether a bookmark is still to end the initial events.
    owes_bookmark: bool,
    /// resourceVersion up to which all events were returned; empty if it is unknown.
    delivered: String,
    /// `None` after the end.
    changes: Option<CodeEventStream>,
}

impl fmt::Debug for CodeEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodeEvents")
            .field("kind", self.resource.group_kind())
            .finish_non_exhaustive()
    }
}

impl CodeEvents {
    pub(super) fn new(
        resource: Arc<VersionedResource>,
        prefix: String,
        selection: Selection,
        options: &ListOptions,
        opened: OpenWatch,
    ) -> Self {
        let has_bookmarks = options.allow_watch_bookmarks;
        Self {
            resource,
            prefix,
            selection,
            lifetime: Lifetime::new(options.timeout_seconds, has_bookmarks),
            has_bookmarks,
            owes_bookmark: has_bookmarks && opened.initial.is_some(),
            initial: opened.initial.unwrap_or_default().into_iter(),
            delivered: opened.delivered,
            changes: Some(opened.changes),
        }
    }

    /// Waits for the next event. Cancel-safe: dropping the future loses no event.
    pub(crate) async fn next(&mut self) -> Option<Result<WatchEvent, ApiError>> {
        if let Some(object) = self.initial.next() {
            return Some(Ok(event(WatchEventKind::Added, object)));
        }
        if std::mem::take(&mut self.owes_bookmark) {
            return Some(Ok(bookmark(&self.resource, &self.delivered, true)));
        }
        loop {
            // A stream whose events are all left out yields, too.
            tokio::task::coop::consume_budget().await;
            let changes = self.changes.as_mut()?;
            // Bookmarks first: a stream of changes that the selectors exclude must not starve them.
            let change = tokio::select! {
                biased;
                due = self.lifetime.due() => match due {
                    Due::Bookmark => {
                        self.lifetime.schedule(Instant::now());
                        if self.delivered.is_empty() {
                            continue;
                        }
                        return Some(Ok(bookmark(&self.resource, &self.delivered, false)));
                    }
                    Due::End => None,
                },
                change = changes.next() => change,
            };
            let seen = change.map(|change| change.and_then(|change| self.seen(change)));
            match seen {
                Some(Ok(None)) => {}
                Some(Ok(Some(event))) => return Some(Ok(event)),
                // The stream of the code is dropped at its end, and after an error.
                Some(Err(error)) => {
                    self.changes = None;
                    return Some(Err(error));
                }
                None => {
                    self.changes = None;
                    return None;
                }
            }
        }
    }

    /// Whether an event may be available without waiting: of the code's stream this is unknown without a poll.
    pub(crate) fn is_ready(&self) -> bool {
        self.changes.is_some()
    }

    /// The event that the client sees of a change; `None` if the watch selects neither state of the object.
    fn seen(&mut self, change: ObjectEvent<Object>) -> Result<Option<WatchEvent>, ApiError> {
        let (old, new) = match change {
            ObjectEvent::Added(new) => (None, Some(new)),
            ObjectEvent::Modified { old, new } => (Some(old), Some(new)),
            ObjectEvent::Deleted(old) => (Some(old), None),
            ObjectEvent::Bookmark(version) if version.is_empty() => return Ok(None),
            ObjectEvent::Bookmark(version) => {
                self.delivered = version;
                let shown = self.has_bookmarks;
                return Ok(shown.then(|| bookmark(&self.resource, &self.delivered, false)));
            }
        };
        let changed = new.as_ref().or(old.as_ref());
        let version = changed.map_or("", Object::resource_version).to_owned();
        let new = self.selected(new)?;
        let mut old = self.selected(old)?;
        if let Some(old) = &mut old {
            old.set_meta_str("resourceVersion", &version);
        }
        if !version.is_empty() {
            self.delivered = version;
        }
        Ok(transition(old.map(Document::from), new.map(Document::from)))
    }

    /// An object of the code, if the watch selects it.
    ///
    /// # Errors
    /// InternalError if it has no place.
    fn selected(&self, object: Option<Object>) -> Result<Option<Object>, ApiError> {
        let Some(mut object) = object else {
            return Ok(None);
        };
        let key = self.resource.identify(&mut object)?;
        let is_selected = key.starts_with(&self.prefix) && self.selection.matches(&object);
        Ok(is_selected.then_some(object))
    }
}
