//! Watches with a defect.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use apiloom_storage::{
    Event, EventKind, Memory, Revision, Storage, StorageError, WatchItem, WatchStart, WatchStream,
};
use futures_util::{StreamExt, stream};

use super::{Defect, Notes};

/// More changes than a watcher's bounded channel holds.
const ROOM: u64 = 1_000;

type Item = Result<WatchItem, StorageError>;

struct Bent {
    changes: WatchStream,
    defect: Defect,
    start: WatchStart,
    /// The revision of the store when the watch began.
    begun: Revision,
    prefix: String,
    store: Arc<Memory>,
    notes: Arc<Notes>,
    events: u64,
    progresses: u64,
    ready: VecDeque<Item>,
    held: Option<Event>,
}

/// Applies a defect to a watch.
pub(super) fn bend(
    changes: WatchStream,
    defect: Defect,
    start: WatchStart,
    begun: Revision,
    prefix: String,
    store: Arc<Memory>,
    notes: Arc<Notes>,
) -> WatchStream {
    let mut ready = VecDeque::new();
    if defect == Defect::ProgressTooEarly {
        ready.push_back(Ok(WatchItem::Progress(begun)));
    }
    let bent = Bent {
        changes,
        defect,
        start,
        begun,
        prefix,
        store,
        notes,
        events: 0,
        progresses: 0,
        ready,
        held: None,
    };
    stream::unfold(
        bent,
        |mut bent| async move { Some((bent.next().await?, bent)) },
    )
    .boxed()
}

impl Bent {
    async fn next(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(item);
            }
            if self.defect == Defect::DropsAllWatchersWithOne
                && self.notes.watcher_was_dropped.load(Ordering::SeqCst)
            {
                return None;
            }
            match self.changes.next().await? {
                Ok(WatchItem::Event(event)) => self.event(event).await,
                Ok(WatchItem::Progress(revision)) => self.progress(revision),
                Err(StorageError::Compacted { compacted, .. })
                    if self.defect == Defect::DropsSlowSilently =>
                {
                    let start = WatchStart::After(compacted);
                    self.changes = self.store.watch(&self.prefix, start).await.ok()?;
                }
                Err(error) => self.ready.push_back(Err(error)),
            }
        }
    }

    async fn event(&mut self, mut event: Event) {
        self.events += 1;
        let is_lost = match self.defect {
            Defect::LosesEvents => self.events.is_multiple_of(3),
            Defect::LosesFirstEvent => {
                self.events == 1 && matches!(self.start, WatchStart::After(_))
            }
            Defect::LosesBetweenHistoryAndPresent => event.revision.0 == self.begun.0 + 1,
            Defect::DropsSlowSilently => {
                let current = self.store.current_revision().await.unwrap_or_default();
                event.revision.0 + ROOM < current.0
            }
            Defect::ExpiresSilently => {
                event.kind == EventKind::Deleted
                    && !self.notes.removals.lock().contains(&event.revision)
            }
            _ => false,
        };
        if is_lost {
            return;
        }
        match self.defect {
            Defect::ForgetsPrevious => event.previous = None,
            Defect::ConfusesKinds if event.kind == EventKind::Updated => {
                event.kind = EventKind::Created;
            }
            Defect::RepeatsEvents => self.push(event.clone()),
            Defect::ReordersEvents => {
                let Some(held) = self.held.take() else {
                    self.held = Some(event);
                    return;
                };
                self.push(event);
                event = held;
            }
            _ => {}
        }
        self.push(event);
    }

    fn progress(&mut self, revision: Revision) {
        if let Some(held) = self.held.take() {
            self.push(held);
        }
        self.progresses += 1;
        let is_lost = match self.defect {
            Defect::NoProgress => true,
            Defect::ProgressOnce => self.progresses > 1,
            _ => false,
        };
        if !is_lost {
            self.ready.push_back(Ok(WatchItem::Progress(revision)));
        }
    }

    fn push(&mut self, event: Event) {
        self.ready.push_back(Ok(WatchItem::Event(event)));
    }
}

impl Drop for Bent {
    fn drop(&mut self) {
        self.notes.watcher_was_dropped.store(true, Ordering::SeqCst);
    }
}
