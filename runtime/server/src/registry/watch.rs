//! watch: the present objects, if wanted, and then every change, as the selectors see it.
//!
//! The invariant of a stream: after the initial events revisions only grow, nothing is left out or sent twice, and a
//! bookmark names a revision up to which everything was sent.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use apiloom_meta::{ApiError, Object};
use apiloom_storage::{
    Entry, Event, EventKind, ListRequest, Revision, StorageError, WatchItem, WatchStart,
    WatchStream,
};
use futures_util::{StreamExt as _, stream};
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep_until};

use super::endpoint::{Endpoint, WatchEvent, WatchEventKind, WatchEvents};
use super::kind::{Kind, VersionIndex};
use super::selection::Selection;
use super::{ListOptions, RequestContext, error};

/// How often a quiet stream says how far it is.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);

/// How long before its end a stream says how far it came, so that the client resumes from there.
const BEFORE_END: Duration = Duration::from_secs(2);

/// The shortest life of a stream whose client named none; the longest is twice that, so that clients do not return all
/// at once.
const MIN_LIFE_SECONDS: u64 = 1800;

/// A year: what asks for longer gets as much, because clocks do not count without end.
const MAX_LIFE_SECONDS: u64 = 31_536_000;

/// The annotation of the bookmark that ends the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

impl Endpoint {
    /// Changes to objects of a namespace, or of all of them. Errors before the first event keep HTTP semantics; later
    /// ones are items of the stream. The stream ends by itself after `timeout_seconds`, or a random half to whole hour.
    ///
    /// # Errors
    /// BadRequest for selectors, internal text for an unparsable resourceVersion.
    pub async fn watch(
        &self,
        _ctx: &RequestContext,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<WatchEvents, ApiError> {
        let selection = Selection::new(
            self.version(),
            &options.label_selector,
            &options.field_selector,
        )?;
        let version = error::version_option(&options.resource_version)?;
        let prefix = match selection.name().map(|name| self.kind.key(namespace, name)) {
            // Longer names begin with this one too; the selector leaves them out.
            Some(Ok(key)) => key,
            _ => self.kind.prefix(namespace),
        };
        let initial = options.send_initial_events.unwrap_or(version == 0);
        let lifetime = Lifetime::new(options.timeout_seconds, options.allow_watch_bookmarks);
        let opened = if initial {
            self.open_with_objects(&prefix, version, options.allow_watch_bookmarks)
                .await
        } else {
            self.open_after(&prefix, version).await
        };
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => return Ok(stream::once(async { Err(error) }).boxed()),
        };
        let watcher = Watcher {
            kind: Arc::clone(&self.kind),
            version: self.version,
            selection,
            lifetime,
            opened,
            ended: false,
        };
        Ok(stream::unfold(watcher, |mut watcher| async {
            watcher.next().await.map(|item| (item, watcher))
        })
        .boxed())
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
            .kind
            .store
            .list(request)
            .await
            .map_err(|e| self.kind.error(e, "watch"))?;
        if page.revision.0 < at_least {
            return Err(error::too_large(at_least, page.revision));
        }
        let changes = self.changes(prefix, page.revision).await?;
        let end_bookmark = bookmarks.then_some(page.revision);
        Ok(Opened {
            initial: page.entries.into(),
            end_bookmark,
            changes,
            from: page.revision,
            delivered: page.revision,
        })
    }

    /// Every change after a revision; after the present one for 0.
    async fn open_after(&self, prefix: &str, version: u64) -> Result<Opened, ApiError> {
        let current = self
            .kind
            .store
            .current_revision()
            .await
            .map_err(|e| self.kind.error(e, "watch"))?;
        let from = if version == 0 {
            current
        } else {
            Revision(version)
        };
        let changes = self.changes(prefix, from).await?;
        // Of a start in the future nothing is known yet, so there is nothing to bookmark.
        let delivered = if from <= current { from } else { Revision(0) };
        Ok(Opened {
            initial: VecDeque::new(),
            end_bookmark: None,
            changes,
            from,
            delivered,
        })
    }

    async fn changes(&self, prefix: &str, after: Revision) -> Result<WatchStream, ApiError> {
        self.kind
            .store
            .watch(prefix, WatchStart::After(after))
            .await
            .map_err(|error| match error {
                StorageError::Compacted {
                    requested,
                    compacted,
                } => error::expired_watch(requested, compacted),
                other => self.kind.error(other, "watch"),
            })
    }
}

/// When a stream sends bookmarks and when it ends.
struct Lifetime {
    end: Instant,
    /// `None` when the client wants no bookmarks, or the stream ends before the next is due.
    next_bookmark: Option<Instant>,
    bookmarks: bool,
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
            next_bookmark: None,
            bookmarks,
        };
        lifetime.schedule(now);
        lifetime
    }

    /// Plans the bookmark after `now`: about a minute later, or shortly before the end if that comes first.
    fn schedule(&mut self, now: Instant) {
        let jitter = Duration::from_millis(random_below(1000));
        let last = self.end.checked_sub(BEFORE_END).filter(|last| *last > now);
        self.next_bookmark = last
            .filter(|_| self.bookmarks)
            .map(|last| last.min(now + BOOKMARK_PERIOD + jitter));
    }
}

/// A number below `bound`, which is at least 1; good enough to spread load.
fn random_below(bound: u64) -> u64 {
    let (high, _) = uuid::Uuid::new_v4().as_u64_pair();
    (high >> 16) % bound
}

/// A watch of the store and what is sent before its changes.
struct Opened {
    initial: VecDeque<Entry>,
    /// The bookmark that ends the initial events, while it is to be sent.
    end_bookmark: Option<Revision>,
    changes: WatchStream,
    /// Only changes after this are sent.
    from: Revision,
    /// Everything up to this was sent.
    delivered: Revision,
}

struct Watcher {
    kind: Arc<Kind>,
    version: VersionIndex,
    selection: Selection,
    lifetime: Lifetime,
    opened: Opened,
    ended: bool,
}

/// What happens next to a stream.
enum Next {
    Change(Option<Result<WatchItem, StorageError>>),
    Bookmark,
    End,
}

impl Watcher {
    async fn next(&mut self) -> Option<Result<WatchEvent, ApiError>> {
        if self.ended {
            return None;
        }
        let item = self.next_item().await;
        self.ended = !matches!(item, Some(Ok(_)));
        item
    }

    async fn next_item(&mut self) -> Option<Result<WatchEvent, ApiError>> {
        while let Some(entry) = self.opened.initial.pop_front() {
            match self.kind.read_entry(&entry, self.version) {
                Ok(object) if self.selection.matches(&object) => {
                    return Some(Ok(event(WatchEventKind::Added, object)));
                }
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
        }
        if let Some(revision) = self.opened.end_bookmark.take() {
            return Some(Ok(self.bookmark(revision, true)));
        }
        loop {
            match self.wait().await {
                Next::End => return None,
                Next::Bookmark => {
                    self.lifetime.schedule(Instant::now());
                    if self.opened.delivered > Revision(0)
                        && self.opened.delivered >= self.opened.from
                    {
                        return Some(Ok(self.bookmark(self.opened.delivered, false)));
                    }
                }
                // A slow watcher is not told why its stream ends; it resumes from what it saw last.
                Next::Change(None | Some(Err(StorageError::Lagged))) => return None,
                Next::Change(Some(Err(StorageError::Compacted {
                    requested,
                    compacted,
                }))) => {
                    return Some(Err(error::expired_watch(requested, compacted)));
                }
                Next::Change(Some(Err(error))) => {
                    return Some(Err(self.kind.error(error, "watch")));
                }
                Next::Change(Some(Ok(WatchItem::Progress(revision)))) => {
                    self.opened.delivered = self.opened.delivered.max(revision);
                }
                Next::Change(Some(Ok(WatchItem::Event(change)))) => {
                    self.opened.delivered = self.opened.delivered.max(change.revision);
                    match self.seen(&change) {
                        Ok(Some(event)) => return Some(Ok(event)),
                        Ok(None) => {}
                        Err(error) => return Some(Err(error)),
                    }
                }
            }
        }
    }

    async fn wait(&mut self) -> Next {
        let next_bookmark = self.lifetime.next_bookmark;
        let bookmark = async {
            match next_bookmark {
                Some(at) => sleep_until(at).await,
                None => pending().await,
            }
        };
        // In this order: a stream of changes that the selectors leave out must not keep the client from hearing how far
        // it is.
        tokio::select! {
            biased;
            () = sleep_until(self.lifetime.end) => Next::End,
            () = bookmark => Next::Bookmark,
            change = self.opened.changes.next() => Next::Change(change),
        }
    }

    /// A change as the selectors see it: it may bring an object into view or take it out.
    fn seen(&self, change: &Event) -> Result<Option<WatchEvent>, ApiError> {
        let new = match change.kind {
            EventKind::Deleted => None,
            EventKind::Created | EventKind::Updated => Some(self.read(change, &change.value)?),
        };
        let new = new.filter(|object| self.selection.matches(object));
        let old = match &change.previous {
            // Without selectors everything was in view; only a deletion shows the previous state.
            Some(_) if self.selection.is_everything() && new.is_some() => {
                return Ok(new.map(|object| event(WatchEventKind::Modified, object)));
            }
            Some((bytes, _)) => {
                Some(self.read(change, bytes)?).filter(|object| self.selection.matches(object))
            }
            None => None,
        };
        Ok(match (old, new) {
            (None, Some(new)) => Some(event(WatchEventKind::Added, new)),
            (Some(_), Some(new)) => Some(event(WatchEventKind::Modified, new)),
            (Some(old), None) => Some(event(WatchEventKind::Deleted, old)),
            (None, None) => None,
        })
    }

    /// A state of the changed object; its resourceVersion is the change's, of the previous state too.
    fn read(&self, change: &Event, bytes: &[u8]) -> Result<Object, ApiError> {
        self.kind
            .read(&change.key, bytes, change.revision, self.version)
    }

    fn bookmark(&self, revision: Revision, ends_initial_events: bool) -> WatchEvent {
        let version = &self.kind.versions[self.version];
        let mut object = Object::default();
        object.set_type(&version.api_version, version.def.kind);
        object.set_meta_str("resourceVersion", &revision.to_string());
        if ends_initial_events {
            let annotations =
                Map::from_iter([(INITIAL_EVENTS_END.to_owned(), Value::from("true"))]);
            object
                .meta_mut()
                .insert("annotations".to_owned(), Value::Object(annotations));
        }
        event(WatchEventKind::Bookmark, object)
    }
}

fn event(kind: WatchEventKind, object: Object) -> WatchEvent {
    WatchEvent {
        kind,
        object: Arc::new(object),
    }
}
