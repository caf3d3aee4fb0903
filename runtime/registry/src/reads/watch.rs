//! watch: initial events for the existing objects, if requested, then an event for every change, filtered by the
//! selectors.
//!
//! Invariant of a stream: after the initial events revisions only increase, no event is missing or sent twice, and a
//! bookmark has a revision up to which all events were sent.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use apiloom_meta::ApiError;
use apiloom_storage::cache::{
    Change, Cursor, CursorEnd, Fill, Interest, Item, OutsideWindow, WatchCache,
};
use apiloom_storage::{
    Entry, Event, ListRequest, Revision, StorageError, WatchItem, WatchStart, WatchStream,
};
use futures_util::StreamExt as _;
use tokio::time::Instant;

use super::cached::{self, Freshness};
use super::event::{WatchEvent, WatchEventKind, bookmark, event};
use super::lifetime::{Due, Lifetime};
use super::selection::Selection;
use super::stored::StoredReads;
use super::unreadable::{FailedObject, UnreadableObjects};
use super::view::View;
use crate::error;
use crate::objects::cached_object::{CachedObject, State};
use crate::objects::document::Document;
use crate::objects::normalizer::CacheNormalizer;
use crate::objects::readers::{Objects, Reader, TooSlow};
use crate::options::{ListOptions, RequestContext};

/// Maximum number of changes taken from the cache at once, which is all that a watcher that does not read keeps in
/// memory.
const TAKEN_AT_ONCE: usize = 32;

/// A watch that is to be opened.
struct WantedWatch<'a> {
    /// Prefix of the keys, or the key of the one object.
    prefix: &'a str,
    selection: &'a Selection,
    options: &'a ListOptions,
    /// The revision after which changes are sent; 0 for any.
    version: u64,
    /// Whether the present objects are sent first.
    initial: bool,
}

impl StoredReads {
    /// Watches the objects of a namespace, or of all namespaces. Errors before the first event are errors of the
    /// request; later ones are ERROR events of the stream. Without `timeout_seconds` the stream ends after a random
    /// time of 30 to 60 minutes.
    ///
    /// # Errors
    /// BadRequest for invalid selectors; a 500 without a reason for a malformed resourceVersion.
    pub async fn watch(
        self: &Arc<Self>,
        ctx: &RequestContext,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<StoredEvents, ApiError> {
        let selection = Selection::of(&self.resource, ctx, options).await?;
        let version = error::version_option(&options.resource_version)?;
        let prefix = match selection
            .name()
            .map(|name| self.resource.kind.keys.key(namespace, name))
        {
            // Longer names begin with this one too; the selector excludes them.
            Some(Ok(key)) => key,
            _ => self.resource.kind.keys.prefix(namespace),
        };
        self.check_watchable().await?;
        let initial = options.send_initial_events.unwrap_or(version == 0);
        let lifetime = Lifetime::new(options.timeout_seconds, options.allow_watch_bookmarks);
        let cached = match &self.resource.cache {
            Some(cache) => {
                let wanted = WantedWatch {
                    prefix: &prefix,
                    selection: &selection,
                    options,
                    version,
                    initial,
                };
                self.open_cached(cache, &wanted).await
            }
            None => Ok(None),
        };
        let opened = match cached {
            Ok(Some(opened)) => Ok(opened),
            Err(error) => Err(error),
            Ok(None) if initial => {
                self.open_with_objects(&prefix, version, options.allow_watch_bookmarks)
                    .await
            }
            Ok(None) => self.open_after(&prefix, version).await,
        };
        Ok(StoredEvents {
            reads: Arc::clone(self),
            selection,
            lifetime,
            unreadable: None,
            opened: opened.map_err(Some),
        })
    }

    /// Opens a watch on the watch cache; `None` if its window does not go back to the revision.
    async fn open_cached(
        &self,
        cache: &Arc<WatchCache<CacheNormalizer>>,
        wanted: &WantedWatch<'_>,
    ) -> Result<Option<OpenWatch>, ApiError> {
        let WantedWatch {
            prefix,
            selection,
            options,
            version,
            initial,
        } = *wanted;
        let wanted = Freshness::by(&options.resource_version, version);
        let interest = self.interest(prefix, selection);
        if version > 0 && !initial {
            let cursor = match cache.watch(interest, Some(Revision(version))) {
                Ok(cursor) => cursor,
                Err(outside) => return not_in_window(outside),
            };
            let from = Revision(version);
            let known = from <= cache.snapshot().revision();
            return Ok(Some(OpenWatch {
                delivered: if known { from } else { Revision(0) },
                ..OpenWatch::new(InitialEvents::None, Changes::cached(cursor), from)
            }));
        }
        if self.state(cache, wanted, "watch").await?.is_none() {
            return Ok(None);
        }
        let replaced = cache.replaced_bytes();
        let (state, cursor) = match cache.watch_with_state(interest, None) {
            Ok(opened) => opened,
            Err(outside) => return not_in_window(outside),
        };
        let from = state.revision();
        let objects = if initial {
            InitialEvents::of_state(self, state, selection, prefix, replaced)
        } else {
            InitialEvents::None
        };
        Ok(Some(OpenWatch {
            end_bookmark: (initial && options.allow_watch_bookmarks).then_some(from),
            ..OpenWatch::new(objects, Changes::cached(cursor), from)
        }))
    }

    /// The changes for which the cache wakes a watch.
    fn interest(&self, prefix: &str, selection: &Selection) -> Interest {
        if !prefix.ends_with('/') {
            return Interest::Key(prefix.into());
        }
        let below = (prefix != self.resource.kind.keys.of_all()).then(|| prefix.into());
        match (self.watched_index(selection), below) {
            (Some((index, value)), below) => Interest::Indexed {
                index,
                value: value.into(),
                below,
            },
            (None, Some(prefix)) => Interest::Below(prefix),
            (None, None) => Interest::Everything,
        }
    }

    /// Opens a watch on the store with initial events.
    async fn open_with_objects(
        &self,
        prefix: &str,
        at_least: u64,
        bookmarks: bool,
    ) -> Result<OpenWatch, ApiError> {
        let request = ListRequest {
            prefix: prefix.to_owned(),
            ..ListRequest::default()
        };
        let page = self
            .resource
            .kind
            .store
            .list(request)
            .await
            .map_err(|e| self.resource.kind.error(e, "watch"))?;
        if page.revision.0 < at_least {
            return Err(error::too_large(at_least, page.revision));
        }
        let changes = self.changes(prefix, page.revision).await?;
        let initial = InitialEvents::Stored(page.entries.into());
        Ok(OpenWatch {
            end_bookmark: bookmarks.then_some(page.revision),
            ..OpenWatch::new(initial, Changes::Stored(changes), page.revision)
        })
    }

    /// Opens a watch on the store after a revision; after the present one for 0.
    async fn open_after(&self, prefix: &str, version: u64) -> Result<OpenWatch, ApiError> {
        let current = self
            .resource
            .kind
            .store
            .current_revision()
            .await
            .map_err(|e| self.resource.kind.error(e, "watch"))?;
        let from = if version == 0 {
            current
        } else {
            Revision(version)
        };
        let changes = self.changes(prefix, from).await?;
        // With a start in the future, no bookmark is possible yet.
        let delivered = if from <= current { from } else { Revision(0) };
        Ok(OpenWatch {
            delivered,
            ..OpenWatch::new(InitialEvents::None, Changes::Stored(changes), from)
        })
    }

    async fn changes(&self, prefix: &str, after: Revision) -> Result<WatchStream, ApiError> {
        self.resource
            .kind
            .store
            .watch(prefix, WatchStart::After(after))
            .await
            .map_err(|error| match error {
                StorageError::Compacted {
                    requested,
                    compacted,
                } => error::expired_watch(requested, compacted),
                StorageError::Restored { seen, current } => error::expired_watch(seen, current),
                other => self.resource.kind.error(other, "watch"),
            })
    }
}

/// The result for a start revision outside the window of the cache: read from the store, unless the cache has just
/// been disconnected from it.
fn not_in_window(outside: OutsideWindow) -> Result<Option<OpenWatch>, ApiError> {
    match outside {
        OutsideWindow::NotFilled => Err(error::initializing(Duration::ZERO)),
        OutsideWindow::TooOld { .. } | OutsideWindow::Future { .. } => Ok(None),
    }
}

/// Position of an open watch: initial events, then changes.
struct OpenWatch {
    initial: InitialEvents,
    /// Revision of the bookmark that ends the initial events; `None` once it was sent.
    end_bookmark: Option<Revision>,
    changes: Changes,
    /// Only changes after this revision are sent.
    from: Revision,
    /// All changes up to this revision were sent.
    delivered: Revision,
    /// Revision of the last change that was sent; greater than `delivered` as long as changes of the same revision may
    /// follow.
    sent: Revision,
    /// Event that is being converted asynchronously, kept so that it is not lost if the caller drops the future.
    unsent: Option<PendingEvent>,
    /// Whether a bookmark is due as soon as all changes up to `sent` are delivered.
    owes_bookmark: bool,
    /// Whether the next change is waited for, and none is converted.
    is_idle: Arc<AtomicBool>,
}

impl OpenWatch {
    fn new(initial: InitialEvents, changes: Changes, from: Revision) -> Self {
        Self {
            initial,
            end_bookmark: None,
            changes,
            from,
            delivered: from,
            sent: Revision(0),
            unsent: None,
            owes_bookmark: false,
            is_idle: Arc::default(),
        }
    }

    /// Whether some changes of a revision were sent, but not all, so that a bookmark must wait.
    fn is_within_revision(&self) -> bool {
        self.delivered < self.sent
    }
}

/// An event that was taken but not sent yet.
#[derive(Clone)]
enum PendingEvent {
    Initial(Arc<Item<CachedObject>>),
    Cached(Arc<Change<CachedObject>>, Revision),
    Stored(Event),
}

/// The initial events that are not sent yet.
enum InitialEvents {
    None,
    Stored(VecDeque<Entry>),
    Cached(Reader),
    /// The client was too slow; the watch ends.
    CutOff,
}

impl InitialEvents {
    /// Objects of a snapshot that may be selected, read from it while they are sent.
    fn of_state(
        reads: &StoredReads,
        state: State,
        selection: &Selection,
        prefix: &str,
        replaced: u64,
    ) -> Self {
        let objects = if !prefix.ends_with('/') {
            Objects::Selected(state.get(prefix).cloned().into_iter().collect())
        } else if reads.index_of(selection).is_some() {
            let found = cached::candidates(reads, &state, selection, prefix, "");
            Objects::Selected(found.cloned().collect())
        } else {
            Objects::Range {
                state,
                prefix: prefix.to_owned(),
                start: String::new(),
            }
        };
        Self::Cached(reads.resource.kind.readers.read(objects, replaced))
    }
}

/// Source of the changes: the store or the watch cache.
enum Changes {
    Stored(WatchStream),
    Cached {
        cursor: Box<Cursor<CacheNormalizer>>,
        /// Changes that the cursor returned and that are not sent yet.
        taken: VecDeque<Arc<Change<CachedObject>>>,
        /// Revision up to which all changes were taken.
        reached: Revision,
    },
}

impl Changes {
    fn cached(cursor: Cursor<CacheNormalizer>) -> Self {
        Self::Cached {
            cursor: Box::new(cursor),
            taken: VecDeque::new(),
            reached: Revision(0),
        }
    }

    /// Waits for the next change.
    async fn next(&mut self) -> Next {
        match self {
            Self::Stored(changes) => match changes.next().await {
                Some(Ok(item)) => Next::Stored(item),
                Some(Err(error)) => Next::Failed(error),
                None => Next::End,
            },
            Self::Cached {
                cursor,
                taken,
                reached,
            } => loop {
                if let Some(change) = taken.pop_front() {
                    // A revision may have several changes.
                    let delivered = match taken.front() {
                        None => *reached,
                        Some(next) => Revision(next.revision.0 - 1),
                    };
                    return Next::Cached(change, delivered);
                }
                cursor.changed().await;
                match cursor.take(TAKEN_AT_ONCE, taken) {
                    Ok(upto) => *reached = upto,
                    // The stream of a slow watcher ends without an error; the client resumes from its last event.
                    Err(CursorEnd::Lagged) => return Next::End,
                    Err(CursorEnd::Lost) => return lost(cursor, *reached),
                }
            },
        }
    }

    /// Whether the next change may be available without waiting. The cache is read in batches; for the store this is
    /// unknown without a request.
    fn is_ready(&self) -> bool {
        match self {
            Self::Stored(_) => true,
            Self::Cached { taken, .. } => !taken.is_empty(),
        }
    }

    /// Revision up to which no change is left to send, if it is known without a request to the store.
    fn reached(&mut self) -> Option<Revision> {
        match self {
            Self::Stored(_) => None,
            Self::Cached { cursor, taken, .. } if taken.is_empty() => cursor.idle_at(),
            Self::Cached { .. } => None,
        }
    }
}

/// Ends a stream whose cache cannot continue it, with an error that makes the client list again. Its events may be of
/// a store that was replaced, and then resuming from their revision could wait for ever.
fn lost(cursor: &Cursor<CacheNormalizer>, reached: Revision) -> Next {
    match &cursor.fill() {
        Fill::Behind(error @ StorageError::Corrupt(_))
        | Fill::Pending {
            error: Some(error @ StorageError::Corrupt(_)),
            ..
        } => Next::Failed(error.clone()),
        Fill::Following | Fill::Behind(_) | Fill::Pending { .. } => {
            Next::Failed(StorageError::Compacted {
                requested: reached,
                compacted: cursor.oldest(),
            })
        }
    }
}

/// The events of a watch, in order. An `Err` is sent as an ERROR event and is the last item.
pub struct StoredEvents {
    reads: Arc<StoredReads>,
    selection: Selection,
    lifetime: Lifetime,
    /// The objects that are left out because they cannot be read; `None` if the first one ends the watch.
    unreadable: Option<UnreadableObjects>,
    /// The open watch; once it has ended, `Err` with the error that is still to be sent, or `None`.
    opened: Result<OpenWatch, Option<ApiError>>,
}

impl fmt::Debug for StoredEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredEvents")
            .field("kind", self.reads.resource.group_kind())
            .finish_non_exhaustive()
    }
}

/// Next step of a stream.
enum Next {
    Stored(WatchItem),
    /// A change, and the revision up to which all changes are delivered once it is sent.
    Cached(Arc<Change<CachedObject>>, Revision),
    Failed(StorageError),
    Bookmark,
    End,
}

impl StoredEvents {
    /// Leaves out objects that cannot be read, in place of an end with the error of the first one.
    pub fn without_unreadable(mut self) -> Self {
        self.unreadable = Some(UnreadableObjects::default());
        self
    }

    /// Why an object was left out; `None` if none is.
    pub fn unreadable(&self) -> Option<&str> {
        self.unreadable.as_ref()?.problem()
    }

    /// The names of objects that were left out.
    pub fn unreadable_names(&self) -> impl Iterator<Item = &str> {
        self.unreadable.iter().flat_map(UnreadableObjects::names)
    }

    /// Waits for the next event. Cancel-safe: dropping the future loses no event.
    pub async fn next(&mut self) -> Option<Result<WatchEvent, ApiError>> {
        let opened = match &mut self.opened {
            Ok(opened) => opened,
            Err(error) => return error.take().map(Err),
        };
        let watcher = Watcher {
            reads: &self.reads,
            selection: &self.selection,
            lifetime: &mut self.lifetime,
            unreadable: self.unreadable.as_mut(),
            opened,
        };
        let item = watcher.next().await;
        if !matches!(item, Some(Ok(_))) {
            self.opened = Err(None);
        }
        item
    }

    /// The revision up to which all events were returned, as far as it is known without a request to the store; `None`
    /// during the initial events, and after the end.
    pub fn delivered(&mut self) -> Option<Revision> {
        let opened = self.opened.as_mut().ok()?;
        let is_initial = !matches!(opened.initial, InitialEvents::None);
        if is_initial || opened.end_bookmark.is_some() || opened.unsent.is_some() {
            return None;
        }
        if let Some(reached) = opened.changes.reached() {
            opened.delivered = opened.delivered.max(reached);
        }
        Some(opened.delivered)
    }

    /// Whether [`StoredEvents::next`] only waits for a change. Otherwise its future should not be dropped: an asynchronous
    /// conversion would begin again, and one that takes long would never end. False after the end.
    pub fn idle(&self) -> Arc<AtomicBool> {
        let opened = self.opened.as_ref();
        opened.map_or_else(|_| Arc::default(), |opened| Arc::clone(&opened.is_idle))
    }

    /// Whether an event may be available without waiting.
    pub fn is_ready(&self) -> bool {
        self.opened.as_ref().is_ok_and(|opened| {
            let is_initial = !matches!(opened.initial, InitialEvents::None);
            let has_more = is_initial || opened.end_bookmark.is_some() || opened.changes.is_ready();
            // An asynchronous conversion would have to wait.
            has_more && !self.reads.is_awaited()
        })
    }
}

/// A watch that has not ended, while it looks for its next event.
struct Watcher<'a> {
    reads: &'a Arc<StoredReads>,
    selection: &'a Selection,
    lifetime: &'a mut Lifetime,
    unreadable: Option<&'a mut UnreadableObjects>,
    opened: &'a mut OpenWatch,
}

impl Watcher<'_> {
    async fn next(mut self) -> Option<Result<WatchEvent, ApiError>> {
        loop {
            take_turns().await;
            let Some(document) = self.next_initial().await else {
                break;
            };
            match document {
                Ok(None) => {}
                Ok(Some(object)) => return Some(Ok(event(WatchEventKind::Added, object))),
                Err(failed) => {
                    if let Some(error) = self.error_of(failed) {
                        return Some(Err(error));
                    }
                }
            }
        }
        if matches!(self.opened.initial, InitialEvents::CutOff) {
            return None;
        }
        if let Some(revision) = self.opened.end_bookmark.take() {
            return Some(Ok(self.bookmark(revision, true)));
        }
        loop {
            if self.opened.owes_bookmark && !self.opened.is_within_revision() {
                self.opened.owes_bookmark = false;
                return Some(Ok(self.bookmark(self.opened.delivered, false)));
            }
            take_turns().await;
            let revision;
            let next = self.wait().await;
            let is_awaited = self.reads.is_awaited();
            let seen = match next {
                // The stream of a slow watcher ends without an error; the client resumes from its last event.
                Next::End | Next::Failed(StorageError::Lagged) => return None,
                Next::Failed(StorageError::Compacted {
                    requested,
                    compacted,
                })
                | Next::Failed(StorageError::Restored {
                    seen: requested,
                    current: compacted,
                }) => return Some(Err(error::expired_watch(requested, compacted))),
                Next::Failed(error) => {
                    return Some(Err(self.reads.resource.kind.error(error, "watch")));
                }
                Next::Bookmark => {
                    self.lifetime.schedule(Instant::now());
                    if let Some(reached) = self.opened.changes.reached() {
                        self.opened.delivered = self.opened.delivered.max(reached);
                    }
                    self.opened.owes_bookmark = self.opened.delivered > Revision(0)
                        && self.opened.delivered >= self.opened.from;
                    if self.opened.owes_bookmark && self.opened.is_within_revision() {
                        // Errors are ignored: the watch of the store reports them.
                        let _ = self.reads.resource.kind.store.request_progress().await;
                    }
                    continue;
                }
                Next::Stored(WatchItem::Progress(revision)) => {
                    self.opened.delivered = self.opened.delivered.max(revision);
                    continue;
                }
                // By reference: a copy would enlarge this future.
                Next::Stored(WatchItem::Event(ref change)) => {
                    // Other changes of the same revision may follow.
                    let before = Revision(change.revision.0.saturating_sub(1));
                    self.opened.delivered = self.opened.delivered.max(before);
                    revision = change.revision;
                    self.forget_unreadable(&change.key);
                    if is_awaited {
                        self.opened.unsent = Some(PendingEvent::Stored(change.clone()));
                    }
                    let seen = self.view().event(change).await;
                    seen.map_err(|error| FailedObject::stored(change, error, is_awaited))
                }
                Next::Cached(change, delivered) => {
                    self.opened.delivered = self.opened.delivered.max(delivered);
                    revision = change.revision;
                    self.forget_unreadable(&change.key);
                    if is_awaited {
                        self.opened.unsent =
                            Some(PendingEvent::Cached(Arc::clone(&change), delivered));
                    }
                    match self.view().event_of_cached(&change).await {
                        Ok(event) => Ok(event.map(|event| WatchEvent {
                            change: Some(change),
                            ..event
                        })),
                        Err(error) => Err(FailedObject::cached(&change, error, is_awaited)),
                    }
                }
            };
            self.opened.unsent = None;
            match seen {
                Ok(Some(event)) => {
                    self.opened.sent = revision;
                    return Some(Ok(event));
                }
                Ok(None) => {}
                Err(failed) => {
                    if let Some(error) = self.error_of(failed) {
                        return Some(Err(error));
                    }
                }
            }
        }
    }

    /// The next initial event, if its object is selected; `None` at the end.
    async fn next_initial(&mut self) -> Option<Result<Option<Document>, FailedObject>> {
        let reads = self.reads;
        let unsent = match &self.opened.unsent {
            Some(PendingEvent::Initial(item)) => Some(Arc::clone(item)),
            _ => None,
        };
        let next = match &mut self.opened.initial {
            InitialEvents::None | InitialEvents::CutOff => return None,
            InitialEvents::Stored(entries) => match entries.front() {
                Some(entry) => {
                    let object = reads
                        .resource
                        .kind
                        .entry_in(entry, reads.resource.version)
                        .await;
                    let entry = entries.pop_front()?;
                    let is_awaited = reads.resource.kind.versions.is_asynchronous();
                    let failed = |error| FailedObject::present(&entry.key, error, !is_awaited);
                    Some(object.map_err(failed).map(|object| {
                        let selected = self.selection.matches(&object);
                        selected.then(|| object.into())
                    }))
                }
                None => None,
            },
            InitialEvents::Cached(reader) => match unsent.map(Ok).or_else(|| reader.take()) {
                Some(Ok(item)) if reads.is_awaited() => {
                    self.opened.unsent = Some(PendingEvent::Initial(Arc::clone(&item)));
                    let selected = reads.select_in(&item, None, self.selection).await;
                    self.opened.unsent = None;
                    let is_lasting = item.object.is_err();
                    let failed = |error| FailedObject::present(&item.key, error, is_lasting);
                    Some(selected.map_err(failed))
                }
                Some(Ok(item)) => {
                    let failed = |error| FailedObject::present(&item.key, error, true);
                    Some(reads.select(&item, self.selection).map_err(failed))
                }
                // As for a slow watcher: the stream ends without an error, and the client lists again.
                Some(Err(TooSlow)) => {
                    self.opened.initial = InitialEvents::CutOff;
                    return None;
                }
                None => None,
            },
        };
        match next {
            Some(_) => reads.resource.kind.reads.initial_event(),
            None => self.opened.initial = InitialEvents::None,
        }
        next
    }

    /// Notes an object that cannot be read, if the watch goes on without it; else returns the error.
    fn error_of(&mut self, failed: FailedObject) -> Option<ApiError> {
        match &mut self.unreadable {
            Some(unreadable) if failed.is_lasting => {
                unreadable.note(failed);
                None
            }
            _ => Some(failed.error),
        }
    }

    fn forget_unreadable(&mut self, key: &str) {
        if let Some(unreadable) = &mut self.unreadable {
            unreadable.forget(key);
        }
    }

    fn view(&self) -> View<'_> {
        View {
            reads: self.reads,
            selection: self.selection,
        }
    }

    /// The change that was taken and not sent yet, else the next one.
    async fn wait(&mut self) -> Next {
        match self.opened.unsent.take() {
            Some(PendingEvent::Cached(change, delivered)) => {
                return Next::Cached(change, delivered);
            }
            Some(PendingEvent::Stored(change)) => return Next::Stored(WatchItem::Event(change)),
            Some(PendingEvent::Initial(_)) | None => {}
        }
        self.opened.is_idle.store(true, Ordering::Relaxed);
        // Bookmarks first: a stream of changes that the selectors exclude must not starve them.
        let next = tokio::select! {
            biased;
            due = self.lifetime.due() => match due {
                Due::Bookmark => Next::Bookmark,
                Due::End => Next::End,
            },
            next = self.opened.changes.next() => next,
        };
        self.opened.is_idle.store(false, Ordering::Relaxed);
        next
    }

    fn bookmark(&self, revision: Revision, ends_initial_events: bool) -> WatchEvent {
        let resource = &self.reads.resource;
        bookmark(resource, &revision.to_string(), ends_initial_events)
    }
}

/// Yields after a bounded number of objects, even if the selectors exclude all of them. Called before the next one is
/// taken, so that dropping the future here loses no event.
async fn take_turns() {
    tokio::task::coop::consume_budget().await;
}
