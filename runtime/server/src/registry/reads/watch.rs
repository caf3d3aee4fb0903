//! watch: the present objects, if wanted, and then every change, as the selectors see it.
//!
//! The invariant of a stream: after the initial events revisions only grow, nothing is left out or sent twice, and a
//! bookmark names a revision up to which everything was sent.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use apiloom_meta::{ApiError, Object};
use apiloom_storage::cache::{
    Change, Cursor, CursorEnd, Fill, Interest, Item, OutsideWindow, WatchCache,
};
use apiloom_storage::{
    Entry, Event, ListRequest, Revision, StorageError, WatchItem, WatchStart, WatchStream,
};
use futures_util::StreamExt as _;
use serde_json::{Map, Value};
use tokio::time::{Instant, Sleep, sleep_until};

use super::Reads;
use super::cached::{self, Wanted};
use super::event::{WatchEvent, WatchEventKind};
use super::selection::Selection;
use super::view::{View, event};
use crate::registry::error;
use crate::registry::objects::cached_object::{CachedObject, State};
use crate::registry::objects::document::Document;
use crate::registry::objects::readers::{Objects, Reader, TooSlow};
use crate::registry::objects::served::Served;
use crate::registry::options::{ListOptions, RequestContext};

/// How often a quiet stream says how far it is.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);

/// How long before its end a stream says how far it came, so that the client resumes from there.
const BEFORE_END: Duration = Duration::from_secs(2);

/// The shortest life of a stream whose client named none; the longest is twice that, so that clients do not return all
/// at once.
const MIN_LIFE_SECONDS: u64 = 1800;

/// A year: what asks for longer gets as much, because clocks do not count without end.
const MAX_LIFE_SECONDS: u64 = 31_536_000;

/// How many changes are taken from the cache at a time. A watcher that does not read keeps no more alive than these.
const TAKEN_AT_ONCE: usize = 32;

/// The annotation of the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

impl Reads {
    /// Changes to objects of a namespace, or of all of them. Errors before the first event keep HTTP semantics; later
    /// ones are items of the stream. The stream ends by itself after `timeout_seconds`, or a random half to whole hour.
    ///
    /// # Errors
    /// BadRequest for selectors, internal text for an unparsable resourceVersion.
    pub async fn watch(
        self: &Arc<Self>,
        ctx: &RequestContext,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<WatchEvents, ApiError> {
        let selection = self.selection(ctx, options).await?;
        let version = error::version_option(&options.resource_version)?;
        let prefix = match selection
            .name()
            .map(|name| self.resource.kind.key(namespace, name))
        {
            // Longer names begin with this one too; the selector leaves them out.
            Some(Ok(key)) => key,
            _ => self.resource.kind.prefix(namespace),
        };
        self.check_watchable().await?;
        let initial = options.send_initial_events.unwrap_or(version == 0);
        let lifetime = Lifetime::new(options.timeout_seconds, options.allow_watch_bookmarks);
        let cached = match &self.resource.cache {
            Some(cache) => {
                self.open_cached(cache, &prefix, &selection, options, version, initial)
                    .await
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
        Ok(WatchEvents {
            reads: Arc::clone(self),
            selection,
            lifetime,
            opened: opened.map_err(Some),
        })
    }

    /// The same from the watch cache; `None` when its window does not reach back so far.
    async fn open_cached(
        &self,
        cache: &Arc<WatchCache<Served>>,
        prefix: &str,
        selection: &Selection,
        options: &ListOptions,
        version: u64,
        initial: bool,
    ) -> Result<Option<Opened>, ApiError> {
        let wanted = Wanted::by(&options.resource_version, version);
        let interest = self.interest(prefix, selection);
        if version > 0 && !initial {
            let cursor = match cache.watch(interest, Some(Revision(version))) {
                Ok(cursor) => cursor,
                Err(outside) => return not_in_window(outside),
            };
            let from = Revision(version);
            let known = from <= cache.snapshot().revision();
            return Ok(Some(Opened {
                delivered: if known { from } else { Revision(0) },
                ..Opened::new(Initial::None, Changes::cached(cursor), from)
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
        let objects = match initial {
            true => Initial::of_state(self, state, selection, prefix, replaced),
            false => Initial::None,
        };
        Ok(Some(Opened {
            end_bookmark: (initial && options.allow_watch_bookmarks).then_some(from),
            ..Opened::new(objects, Changes::cached(cursor), from)
        }))
    }

    /// Which changes a watch has to be woken for.
    fn interest(&self, prefix: &str, selection: &Selection) -> Interest {
        if !prefix.ends_with('/') {
            return Interest::Key(prefix.into());
        }
        let below = (prefix != self.resource.kind.prefix(None)).then(|| prefix.into());
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

    /// The present objects, then every change to them.
    async fn open_with_objects(
        &self,
        prefix: &str,
        at_least: u64,
        bookmarks: bool,
    ) -> Result<Opened, ApiError> {
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
        let initial = Initial::Stored(page.entries.into());
        Ok(Opened {
            end_bookmark: bookmarks.then_some(page.revision),
            ..Opened::new(initial, Changes::Stored(changes), page.revision)
        })
    }

    /// Every change after a revision; after the present one for 0.
    async fn open_after(&self, prefix: &str, version: u64) -> Result<Opened, ApiError> {
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
        // Of a start in the future nothing is known yet, so there is nothing to bookmark.
        let delivered = if from <= current { from } else { Revision(0) };
        Ok(Opened {
            delivered,
            ..Opened::new(Initial::None, Changes::Stored(changes), from)
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

/// What to do about a start that is not in the window of the cache: the store is asked, unless the cache has just lost it.
fn not_in_window(outside: OutsideWindow) -> Result<Option<Opened>, ApiError> {
    match outside {
        OutsideWindow::NotFilled => Err(error::initializing(Duration::ZERO)),
        OutsideWindow::TooOld { .. } | OutsideWindow::Future { .. } => Ok(None),
    }
}

/// When a stream sends bookmarks and when it ends.
struct Lifetime {
    end: Instant,
    bookmarks: bool,
    /// For the next bookmark, or for the end. One for the whole life: most often it is only looked at.
    timer: Pin<Box<Sleep>>,
}

impl Lifetime {
    fn new(timeout_seconds: Option<u64>, bookmarks: bool) -> Self {
        let seconds = match timeout_seconds {
            Some(seconds) if seconds > 0 => seconds,
            _ => MIN_LIFE_SECONDS + random_below(MIN_LIFE_SECONDS),
        };
        let now = Instant::now();
        let end = now + Duration::from_secs(seconds.min(MAX_LIFE_SECONDS));
        let mut lifetime = Self {
            end,
            bookmarks,
            timer: Box::pin(sleep_until(end)),
        };
        lifetime.schedule(now);
        lifetime
    }

    /// Plans the bookmark after `now`: about a minute later, or shortly before the end if that comes first. None when the
    /// client wants none, or the stream ends before.
    fn schedule(&mut self, now: Instant) {
        let jitter = Duration::from_millis(random_below(1000));
        let last = self.end.checked_sub(BEFORE_END).filter(|last| *last > now);
        let bookmark = last
            .filter(|_| self.bookmarks)
            .map(|last| last.min(now + BOOKMARK_PERIOD + jitter));
        self.timer.as_mut().reset(bookmark.unwrap_or(self.end));
    }

    /// Waits for the next bookmark or for the end.
    async fn due(&mut self) -> Next {
        self.timer.as_mut().await;
        match self.timer.deadline() < self.end {
            true => Next::Bookmark,
            false => Next::End,
        }
    }
}

/// A number below `bound`, which is at least 1; good enough to spread load.
fn random_below(bound: u64) -> u64 {
    let (high, _) = uuid::Uuid::new_v4().as_u64_pair();
    (high >> 16) % bound
}

/// What a watch sends: first the present objects, then changes.
struct Opened {
    initial: Initial,
    /// The bookmark that ends the initial events, while it is to be sent.
    end_bookmark: Option<Revision>,
    changes: Changes,
    /// Only changes after this are sent.
    from: Revision,
    /// Everything up to this was sent.
    delivered: Revision,
    /// The revision of the last change that was sent. More than what was delivered as long as changes of the same revision
    /// may follow.
    sent: Revision,
    /// What was taken and is being converted asynchronously: a wait that is given up meanwhile loses nothing.
    unsent: Option<Unsent>,
    /// A bookmark is to be sent as soon as everything up to what was sent is delivered.
    owes_bookmark: bool,
}

impl Opened {
    fn new(initial: Initial, changes: Changes, from: Revision) -> Self {
        Self {
            initial,
            end_bookmark: None,
            changes,
            from,
            delivered: from,
            sent: Revision(0),
            unsent: None,
            owes_bookmark: false,
        }
    }

    /// Whether a bookmark would say less than the events before it did.
    fn is_within_revision(&self) -> bool {
        self.delivered < self.sent
    }
}

/// What is to be sent next, again if it was not.
#[derive(Clone)]
enum Unsent {
    Initial(Arc<Item<CachedObject>>),
    Cached(Arc<Change<CachedObject>>, Revision),
    Stored(Event),
}

/// The objects that were there when the watch began, while they are to be sent.
enum Initial {
    None,
    Stored(VecDeque<Entry>),
    Cached(Reader),
    /// The client was too slow, so that the watch ends.
    CutOff,
}

impl Initial {
    /// The objects of a state that may be selected, taken from it while they are sent.
    fn of_state(
        reads: &Reads,
        state: State,
        selection: &Selection,
        prefix: &str,
        replaced: u64,
    ) -> Self {
        let objects = if !prefix.ends_with('/') {
            Objects::Chosen(state.get(prefix).cloned().into_iter().collect())
        } else if reads.index_of(selection).is_some() {
            let found = cached::candidates(reads, &state, selection, prefix, "");
            Objects::Chosen(found.cloned().collect())
        } else {
            Objects::Below {
                state,
                prefix: prefix.to_owned(),
                start: String::new(),
            }
        };
        Self::Cached(reads.resource.kind.readers.read(objects, replaced))
    }
}

/// Where changes come from.
enum Changes {
    Stored(WatchStream),
    Cached {
        cursor: Box<Cursor<Served>>,
        /// What the cursor gave and was not sent.
        taken: VecDeque<Arc<Change<CachedObject>>>,
        /// Up to where everything was taken.
        reached: Revision,
    },
}

impl Changes {
    fn cached(cursor: Cursor<Served>) -> Self {
        Self::Cached {
            cursor: Box::new(cursor),
            taken: VecDeque::new(),
            reached: Revision(0),
        }
    }

    /// The next change; waits for it.
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
                    // One revision may have several changes.
                    let delivered = match taken.front() {
                        None => *reached,
                        Some(next) => Revision(next.revision.0 - 1),
                    };
                    return Next::Cached(change, delivered);
                }
                let mut batch = Vec::new();
                match cursor.take(TAKEN_AT_ONCE, &mut batch) {
                    Ok(upto) => *reached = upto,
                    // The watcher is not told why its stream ends; it resumes from what it saw last.
                    Err(CursorEnd::Lagged) => return Next::End,
                    Err(CursorEnd::Lost) => return lost(cursor, *reached),
                }
                taken.extend(batch);
                if taken.is_empty() {
                    cursor.changed().await;
                }
            },
        }
    }

    /// Whether it is worth asking for the next change without waiting. What the cache has is taken in batches; what the
    /// store has is not known without asking.
    fn is_ready(&self) -> bool {
        match self {
            Self::Stored(_) => true,
            Self::Cached { taken, .. } => !taken.is_empty(),
        }
    }

    /// Up to where nothing is left to send, as far as is known without asking the store.
    fn reached(&mut self) -> Option<Revision> {
        match self {
            Self::Stored(_) => None,
            Self::Cached { cursor, taken, .. } if taken.is_empty() => cursor.idle_at(),
            Self::Cached { .. } => None,
        }
    }
}

/// The end of a stream whose cache cannot go on with it: the client is to list anew. What it saw may be of a store that is
/// gone, and then it would resume in the future and wait for what never comes.
fn lost(cursor: &Cursor<Served>, reached: Revision) -> Next {
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

/// The events of a watch, in order. An `Err` is sent as an ERROR event and ends them.
pub struct WatchEvents {
    reads: Arc<Reads>,
    selection: Selection,
    lifetime: Lifetime,
    /// What is left to send; the error that is, or `None`, at the end.
    opened: Result<Opened, Option<ApiError>>,
}

impl fmt::Debug for WatchEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchEvents")
            .field("kind", &self.reads.resource.kind.group_kind)
            .finish_non_exhaustive()
    }
}

/// What happens next to a stream.
enum Next {
    Stored(WatchItem),
    /// A change, and up to where everything was delivered once it is sent.
    Cached(Arc<Change<CachedObject>>, Revision),
    Failed(StorageError),
    Bookmark,
    End,
}

impl WatchEvents {
    /// The next event; waits for it. Nothing is lost when the wait is given up.
    pub async fn next(&mut self) -> Option<Result<WatchEvent, ApiError>> {
        let opened = match &mut self.opened {
            Ok(opened) => opened,
            Err(error) => return error.take().map(Err),
        };
        let watcher = Watcher {
            reads: &self.reads,
            selection: &self.selection,
            lifetime: &mut self.lifetime,
            opened,
        };
        let item = watcher.next().await;
        if !matches!(item, Some(Ok(_))) {
            self.opened = Err(None);
        }
        item
    }

    /// Whether there may be an event that need not be waited for.
    pub fn is_ready(&self) -> bool {
        self.opened.as_ref().is_ok_and(|opened| {
            let is_initial = !matches!(opened.initial, Initial::None);
            let has_more = is_initial || opened.end_bookmark.is_some() || opened.changes.is_ready();
            // A conversion is not begun for an event that is not waited for.
            has_more && !self.reads.is_awaited()
        })
    }
}

/// A watch that has not ended, while it looks for its next event.
struct Watcher<'a> {
    reads: &'a Arc<Reads>,
    selection: &'a Selection,
    lifetime: &'a mut Lifetime,
    opened: &'a mut Opened,
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
                Err(error) => return Some(Err(error)),
            }
        }
        if matches!(self.opened.initial, Initial::CutOff) {
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
            let next = match self.opened.unsent.take() {
                Some(Unsent::Cached(change, delivered)) => Next::Cached(change, delivered),
                Some(Unsent::Stored(change)) => Next::Stored(WatchItem::Event(change)),
                Some(Unsent::Initial(_)) | None => self.wait().await,
            };
            let is_awaited = self.reads.is_awaited();
            let seen = match next {
                // A slow watcher is not told why its stream ends; it resumes from what it saw last.
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
                        // One that cannot be asked tells it by itself, or ends the watch.
                        let _ = self.reads.resource.kind.store.request_progress().await;
                    }
                    continue;
                }
                Next::Stored(WatchItem::Progress(revision)) => {
                    self.opened.delivered = self.opened.delivered.max(revision);
                    continue;
                }
                Next::Stored(WatchItem::Event(change)) => {
                    // Other changes of the same revision may follow.
                    let before = Revision(change.revision.0.saturating_sub(1));
                    self.opened.delivered = self.opened.delivered.max(before);
                    revision = change.revision;
                    if is_awaited {
                        self.opened.unsent = Some(Unsent::Stored(change.clone()));
                    }
                    self.view().event(&change).await
                }
                Next::Cached(change, delivered) => {
                    self.opened.delivered = self.opened.delivered.max(delivered);
                    revision = change.revision;
                    if is_awaited {
                        self.opened.unsent = Some(Unsent::Cached(Arc::clone(&change), delivered));
                    }
                    let seen = self.view().event_of_cached(&change).await;
                    seen.map(|event| {
                        event.map(|event| WatchEvent {
                            change: Some(change),
                            ..event
                        })
                    })
                }
            };
            self.opened.unsent = None;
            match seen {
                Ok(Some(event)) => {
                    self.opened.sent = revision;
                    return Some(Ok(event));
                }
                Ok(None) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// The next object that was there when the watch began, if it is selected; `None` when there is none left.
    async fn next_initial(&mut self) -> Option<Result<Option<Document>, ApiError>> {
        let reads = self.reads;
        let unsent = match &self.opened.unsent {
            Some(Unsent::Initial(item)) => Some(Arc::clone(item)),
            _ => None,
        };
        let next = match &mut self.opened.initial {
            Initial::None | Initial::CutOff => return None,
            Initial::Stored(entries) => match entries.front() {
                Some(entry) => {
                    let object = reads
                        .resource
                        .kind
                        .entry_in(entry, reads.resource.version)
                        .await;
                    entries.pop_front();
                    Some(object.map(|object| {
                        let selected = self.selection.matches(&object);
                        selected.then(|| object.into())
                    }))
                }
                None => None,
            },
            Initial::Cached(reader) => match unsent.map(Ok).or_else(|| reader.take()) {
                Some(Ok(item)) if reads.is_awaited() => {
                    self.opened.unsent = Some(Unsent::Initial(Arc::clone(&item)));
                    let selected = reads.select_in(&item, None, self.selection).await;
                    self.opened.unsent = None;
                    Some(selected)
                }
                Some(Ok(item)) => Some(reads.select(&item, self.selection)),
                // As a watcher that is behind the changes: it is not told why, and begins anew.
                Some(Err(TooSlow)) => {
                    self.opened.initial = Initial::CutOff;
                    return None;
                }
                None => None,
            },
        };
        match next {
            Some(_) => reads.resource.kind.reads.initial_event(),
            None => self.opened.initial = Initial::None,
        }
        next
    }

    fn view(&self) -> View<'_> {
        View {
            reads: self.reads,
            selection: self.selection,
        }
    }

    async fn wait(&mut self) -> Next {
        // In this order: a stream of changes that the selectors leave out must not keep the client from hearing how far
        // it is.
        tokio::select! {
            biased;
            due = self.lifetime.due() => due,
            next = self.opened.changes.next() => next,
        }
    }

    fn bookmark(&self, revision: Revision, ends_initial_events: bool) -> WatchEvent {
        let version = self.reads.resource.version();
        let mut object = Object::default();
        object.set_type(&version.api_version, &version.def.kind);
        object.set_meta_str("resourceVersion", &revision.to_string());
        if ends_initial_events {
            let annotations =
                Map::from_iter([(INITIAL_EVENTS_END.to_owned(), Value::from("true"))]);
            object
                .meta_mut()
                .insert("annotations".to_owned(), Value::Object(annotations));
        }
        event(WatchEventKind::Bookmark, object.into())
    }
}

/// Lets others have the thread after a bounded number of objects, however many of them the selectors leave out. Called
/// before the next one is taken: a wait that is given up here loses nothing.
async fn take_turns() {
    tokio::task::coop::consume_budget().await;
}
