//! Watches: each has a place in the history and reads on from there, so a slow one keeps nothing for itself.

use std::time::Duration;

use apiloom::storage::{Revision, StorageError, WatchItem, WatchStream};
use futures_util::{StreamExt as _, stream};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::{JsonLines, closed};

/// How long a watch without changes of its own waits before it tells how far the store has moved.
const PROGRESS: Duration = Duration::from_secs(1);

/// What wakes watches.
#[derive(Debug)]
pub(crate) struct Signals {
    moved: watch::Sender<()>,
    requested: watch::Sender<()>,
}

impl Default for Signals {
    fn default() -> Self {
        Self {
            moved: watch::Sender::new(()),
            requested: watch::Sender::new(()),
        }
    }
}

impl Signals {
    /// The store has changed, or is closed.
    pub(crate) fn moved(&self) {
        self.moved.send_replace(());
    }
    pub(crate) fn request_progress(&self) {
        self.requested.send_replace(());
    }
    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.moved.subscribe()
    }
}

/// The place of a watch in the history.
pub(crate) struct Cursor {
    store: JsonLines,
    prefix: String,
    /// Everything up to here is delivered.
    after: Revision,
    /// What the last progress told; `None` before the first.
    told: Option<Revision>,
    told_at: Instant,
    requested: watch::Receiver<()>,
    moved: watch::Receiver<()>,
}

/// What a watch does next.
enum Next {
    Deliver(WatchItem),
    Fail(StorageError),
    /// Nothing yet; with a time if there is progress to tell by then.
    Wait(Option<Instant>),
}

impl Cursor {
    pub(crate) fn new(store: JsonLines, prefix: &str, after: Revision) -> Self {
        let requested = store.0.signals.requested.subscribe();
        let moved = store.0.signals.subscribe();
        Self {
            store,
            prefix: prefix.to_owned(),
            after,
            told: None,
            told_at: Instant::now(),
            requested,
            moved,
        }
    }

    pub(crate) fn into_stream(self) -> WatchStream {
        // `None` after an error, which ends the watch.
        stream::unfold(Some(self), |cursor| async move {
            let mut cursor = cursor?;
            match cursor.next().await {
                Ok(item) => Some((Ok(item), Some(cursor))),
                Err(error) => Some((Err(error), None)),
            }
        })
        .boxed()
    }

    async fn next(&mut self) -> Result<WatchItem, StorageError> {
        let mut requested = false;
        loop {
            // What changes from here on wakes the wait below.
            self.moved.mark_unchanged();
            let by = match self.step(requested) {
                Next::Deliver(item) => return Ok(item),
                Next::Fail(error) => return Err(error),
                Next::Wait(by) => by,
            };
            let time = async {
                match by {
                    Some(by) => tokio::time::sleep_until(by).await,
                    None => std::future::pending().await,
                }
            };
            // The senders live as long as the store, which this cursor holds.
            tokio::select! {
                _ = self.moved.changed() => {}
                _ = self.requested.changed() => requested = true,
                () = time => {}
            }
        }
    }

    fn step(&mut self, requested: bool) -> Next {
        let state = self.store.0.state();
        if let Err(error) = state.check_kept(self.after) {
            return Next::Fail(error);
        }
        let mut changes = state.after(self.after).iter();
        if let Some(event) = changes.find(|event| event.key.starts_with(&self.prefix)) {
            self.after = event.revision;
            return Next::Deliver(WatchItem::Event(event.clone()));
        }
        if state.closed {
            return Next::Fail(closed());
        }
        let revision = state.revision;
        // A watch from the future has nothing to tell before that.
        if revision < self.after {
            return Next::Wait(None);
        }
        self.after = revision;
        let is_due = self.told.is_none() || requested || self.told_at.elapsed() >= PROGRESS;
        if self.told == Some(revision) && !requested {
            return Next::Wait(None);
        }
        if !is_due {
            return Next::Wait(Some(self.told_at + PROGRESS));
        }
        self.told = Some(revision);
        self.told_at = Instant::now();
        Next::Deliver(WatchItem::Progress(revision))
    }
}
