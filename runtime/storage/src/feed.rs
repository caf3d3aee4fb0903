//! The watchers of one store.
//!
//! A store publishes each change once, after it is committed and before it is acknowledged. A watcher first replays
//! history, then takes changes from its queue. The queue is bounded; a watcher whose queue overflows goes back to
//! replaying history from its position. So the memory of each watcher is bounded, and none misses or repeats a change.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::{self, StreamExt};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::{Event, Revision, StorageError, WatchItem, WatchStart, WatchStream};

/// The queue holds changes until the watcher's task is scheduled, not for a stuck client.
const QUEUE_EVENTS: usize = 1_024;
const QUEUE_BYTES: usize = 4 << 20;

/// How often a watcher gets a progress item while the store has changes only outside its prefix.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// One change as a store publishes it.
#[derive(Debug)]
pub(crate) enum Change {
    /// With everything that a watcher needs.
    Loaded(Arc<Event>),
    /// There was no watcher, or the previous value could not be read: watchers read the change from history.
    InHistory {
        /// The key that changed.
        key: String,
    },
}

impl Change {
    fn key(&self) -> &str {
        match self {
            Change::Loaded(event) => &event.key,
            Change::InHistory { key } => key,
        }
    }
}

/// A page of history, oldest first.
#[derive(Debug)]
pub(crate) struct Replay {
    /// The changes below the prefix.
    pub(crate) events: Vec<Event>,
    /// The revision up to which history was read: always greater than the start.
    pub(crate) reached: Revision,
}

/// The source of changes for watchers that are behind.
#[async_trait]
pub(crate) trait History: Send + Sync + 'static {
    /// Some of the changes below `prefix` with `after < revision <= upto`. Both revisions exist already.
    async fn replay(
        &self,
        prefix: &str,
        after: Revision,
        upto: Revision,
    ) -> Result<Replay, StorageError>;
}

/// The shared side, to which the store publishes.
pub(crate) struct Feed {
    /// Taken last of all locks and held only to push changes.
    inner: Mutex<Inner>,
}

struct Inner {
    published: Revision,
    closed: bool,
    next_seat: u64,
    seats: BTreeMap<u64, Seat>,
}

/// The feed's state of one watcher.
struct Seat {
    prefix: Arc<str>,
    /// Whether every change after the last [`Feed::take`] is in the queue. If not, the queue is empty.
    live: bool,
    queue: VecDeque<Arc<Event>>,
    bytes: usize,
    progress_wanted: bool,
    /// Why the watch has ended, if it has.
    ended: Option<Box<StorageError>>,
    wake: Arc<Notify>,
}

impl Seat {
    fn push(&mut self, change: &Change) {
        match change {
            Change::Loaded(event)
                if self.live && self.queue.len() < QUEUE_EVENTS && self.bytes < QUEUE_BYTES =>
            {
                self.bytes += weight(event);
                self.queue.push_back(Arc::clone(event));
            }
            _ => self.fall_behind(),
        }
    }

    /// Clears the queue: from here on the watcher reads history.
    fn fall_behind(&mut self) {
        self.live = false;
        self.queue.clear();
        self.bytes = 0;
    }
}

fn weight(event: &Event) -> usize {
    event.key.len()
        + event.value.len()
        + event.previous.as_ref().map_or(0, |(value, _)| value.len())
}

/// What [`Feed::take`] gives a watcher.
struct Batch {
    events: VecDeque<Arc<Event>>,
    published: Revision,
    /// History up to `published` must be replayed first; the queue continues from there.
    replay: bool,
    progress_wanted: bool,
    closed: bool,
    ended: Option<StorageError>,
}

impl Feed {
    pub(crate) fn new(published: Revision) -> Arc<Self> {
        let inner = Inner {
            published,
            closed: false,
            next_seat: 0,
            seats: BTreeMap::new(),
        };
        Arc::new(Self {
            inner: Mutex::new(inner),
        })
    }

    /// The newest published revision.
    pub(crate) fn published(&self) -> Revision {
        self.inner.lock().published
    }

    /// Whether there is a watcher: if not, previous values need not be loaded.
    pub(crate) fn is_watched(&self) -> bool {
        !self.inner.lock().seats.is_empty()
    }

    /// Publishes changes in order of revision; `upto` is the revision of the last.
    pub(crate) fn publish(&self, changes: &[Change], upto: Revision) {
        let mut inner = self.inner.lock();
        inner.published = upto;
        for seat in inner.seats.values_mut() {
            let mut touched = false;
            for change in changes {
                if change.key().starts_with(&*seat.prefix) {
                    seat.push(change);
                    touched = true;
                }
            }
            if touched {
                seat.wake.notify_one();
            }
        }
    }

    /// Publishes that the store is at `upto` without the changes up to it: every watcher reads them from history.
    #[cfg(feature = "etcd")]
    pub(crate) fn skip_to(&self, upto: Revision) {
        let mut inner = self.inner.lock();
        inner.published = upto;
        for seat in inner.seats.values_mut() {
            seat.fall_behind();
            seat.wake.notify_one();
        }
    }

    /// Ends every watch with an error; new ones begin at `upto`, which may be less than the last published revision.
    #[cfg(feature = "etcd")]
    pub(crate) fn begin_anew(&self, upto: Revision, error: &StorageError) {
        let mut inner = self.inner.lock();
        inner.published = upto;
        for seat in inner.seats.values_mut() {
            seat.fall_behind();
            seat.ended.get_or_insert_with(|| Box::new(error.clone()));
            seat.wake.notify_one();
        }
    }

    /// Makes every watcher report its progress.
    pub(crate) fn request_progress(&self) {
        for seat in self.inner.lock().seats.values_mut() {
            seat.progress_wanted = true;
            seat.wake.notify_one();
        }
    }

    /// Ends every watch after it has delivered its remaining changes.
    pub(crate) fn close(&self) {
        let mut inner = self.inner.lock();
        inner.closed = true;
        inner.seats.values().for_each(|seat| seat.wake.notify_one());
    }

    /// A watch over this feed and the history before it. The caller has checked that the start is kept.
    pub(crate) fn watch<H: History>(
        self: &Arc<Self>,
        prefix: &str,
        start: WatchStart,
        history: Arc<H>,
    ) -> WatchStream {
        let wake = Arc::new(Notify::new());
        let prefix: Arc<str> = prefix.into();
        let mut inner = self.inner.lock();
        let (cursor, live) = match start {
            WatchStart::Now => (inner.published, true),
            WatchStart::After(revision) => (revision, revision >= inner.published),
        };
        let id = inner.next_seat;
        inner.next_seat += 1;
        let seat = Seat {
            prefix: Arc::clone(&prefix),
            live,
            queue: VecDeque::new(),
            bytes: 0,
            progress_wanted: true,
            ended: None,
            wake: Arc::clone(&wake),
        };
        inner.seats.insert(id, seat);
        drop(inner);
        let watcher = Watcher {
            feed: Arc::clone(self),
            seat: id,
            wake,
            history,
            prefix,
            cursor,
            replay_to: None,
            ready: VecDeque::new(),
            progress_wanted: false,
            reported: Revision(0),
            reported_at: Instant::now(),
            ended: false,
        };
        stream::unfold(watcher, |mut watcher| async move {
            Some((watcher.next().await?, watcher))
        })
        .boxed()
    }

    fn take(&self, seat: u64) -> Batch {
        let mut inner = self.inner.lock();
        let (published, closed) = (inner.published, inner.closed);
        let seat = inner
            .seats
            .get_mut(&seat)
            .expect("a seat lives as long as its watcher");
        seat.bytes = 0;
        Batch {
            events: std::mem::take(&mut seat.queue),
            published,
            replay: !std::mem::replace(&mut seat.live, true),
            progress_wanted: std::mem::take(&mut seat.progress_wanted),
            closed,
            ended: seat.ended.as_deref().cloned(),
        }
    }

    /// Why a watch has ended, if it has.
    fn ended(&self, seat: u64) -> Option<StorageError> {
        self.inner
            .lock()
            .seats
            .get(&seat)?
            .ended
            .as_deref()
            .cloned()
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.inner.lock();
        f.debug_struct("Feed")
            .field("published", &inner.published)
            .field("watchers", &inner.seats.len())
            .finish()
    }
}

/// One watch: a cursor over history, then over its queue.
struct Watcher<H> {
    feed: Arc<Feed>,
    seat: u64,
    wake: Arc<Notify>,
    history: Arc<H>,
    prefix: Arc<str>,
    /// Every change up to here is delivered or in `ready`; changes in the queue up to here are skipped.
    cursor: Revision,
    /// History must be read up to here before the queue.
    replay_to: Option<Revision>,
    ready: VecDeque<Arc<Event>>,
    progress_wanted: bool,
    reported: Revision,
    reported_at: Instant,
    ended: bool,
}

impl<H: History> Watcher<H> {
    async fn next(&mut self) -> Option<Result<WatchItem, StorageError>> {
        while !self.ended {
            if let Some(event) = self.ready.pop_front() {
                self.reported = event.revision;
                return Some(Ok(WatchItem::Event(Arc::unwrap_or_clone(event))));
            }
            if let Some(upto) = self.replay_to {
                if let Err(error) = self.replay(upto).await {
                    return self.end(error);
                }
                continue;
            }
            let taken = self.feed.take(self.seat);
            if let Some(error) = taken.ended {
                return self.end(error);
            }
            let published = taken.published;
            self.progress_wanted |= taken.progress_wanted;
            if taken.replay && published > self.cursor {
                self.replay_to = Some(published);
            } else if !taken.events.is_empty() || published > self.cursor {
                self.ready = taken
                    .events
                    .into_iter()
                    .filter(|event| event.revision > self.cursor)
                    .collect();
                self.cursor = self.cursor.max(published);
            } else if taken.closed {
                return self.end(StorageError::Unavailable("the store is closed".into()));
            } else if published >= self.cursor && self.progress_is_due(published) {
                self.progress_wanted = false;
                self.reported = published;
                self.reported_at = Instant::now();
                return Some(Ok(WatchItem::Progress(published)));
            } else {
                // The loop checks again after a notification and after a timeout.
                let _ = tokio::time::timeout(self.idle_time(), self.wake.notified()).await;
            }
        }
        None
    }

    async fn replay(&mut self, upto: Revision) -> Result<(), StorageError> {
        if self.cursor >= upto {
            self.replay_to = None;
            return Ok(());
        }
        let page = self.history.replay(&self.prefix, self.cursor, upto).await;
        // The store may have been replaced during the read, which then returned changes of the new one.
        if let Some(error) = self.feed.ended(self.seat) {
            return Err(error);
        }
        let page = page?;
        self.cursor = page.reached;
        self.ready = page.events.into_iter().map(Arc::new).collect();
        Ok(())
    }

    fn end(&mut self, error: StorageError) -> Option<Result<WatchItem, StorageError>> {
        self.ended = true;
        Some(Err(error))
    }

    fn progress_is_due(&self, published: Revision) -> bool {
        self.progress_wanted
            || (published > self.reported && self.reported_at.elapsed() >= PROGRESS_INTERVAL)
    }

    fn idle_time(&self) -> Duration {
        match PROGRESS_INTERVAL.saturating_sub(self.reported_at.elapsed()) {
            Duration::ZERO => PROGRESS_INTERVAL,
            left => left,
        }
    }
}

impl<H> Drop for Watcher<H> {
    fn drop(&mut self) {
        self.feed.inner.lock().seats.remove(&self.seat);
    }
}
