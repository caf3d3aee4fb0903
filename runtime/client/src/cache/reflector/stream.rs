//! A streaming list: a watch that sends the whole state first, marks its end with a bookmark, and goes on with changes.

use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::{Instant, timeout};

use super::session::{Session, response};
use crate::cache::object::{CacheObject, ObjectKey};
use crate::cache::source::{ListItem, SourceError, SourceErrorKind, WatchItem, WatchStream};

/// Time without an item of the state after which a warning is logged.
const WARN_AFTER: Duration = Duration::from_secs(10);
/// Time without an item of the state after which the server is taken for one that has no streaming lists.
const IDLE_LIMIT: Duration = Duration::from_secs(30);
/// Longest time of the whole state; changes may come all the time, from a server that sends no bookmark.
const TOTAL_LIMIT: Duration = Duration::from_secs(180);

impl<T: CacheObject> Session<T> {
    /// Reads the whole state into the store; the result is the stream, which goes on with the changes.
    pub(super) async fn stream_list(&mut self) -> Result<WatchStream<T>, SourceError> {
        match self.try_stream_list().await {
            // Once more, for the most recent state, which every server has.
            Err(error) if self.is_of_version(&error) => self.try_stream_list().await,
            result => result,
        }
    }

    async fn try_stream_list(&mut self) -> Result<WatchStream<T>, SourceError> {
        let mut request = self.watch_request();
        request.resource_version = self.position.of_stream();
        request.initial_events = true;
        let mut stream = response(self.source.watch(request)).await?;
        self.hub.counts().count_watch();
        // What was collected before a failure is dropped with this.
        let mut relist = self.begin_list();
        let start = Instant::now();
        let mut last = start;
        let mut has_warned = false;
        loop {
            let limit = if has_warned { IDLE_LIMIT } else { WARN_AFTER };
            let end = (last + limit).min(start + TOTAL_LIMIT);
            let Ok(item) =
                timeout(end.saturating_duration_since(Instant::now()), stream.next()).await
            else {
                if has_warned || start.elapsed() >= TOTAL_LIMIT {
                    return Err(without_bookmark());
                }
                tracing::warn!(
                    cache = self.hub.name(),
                    "a streaming list has sent nothing for 10 s, and not yet its end"
                );
                has_warned = true;
                continue;
            };
            match item.unwrap_or_else(|| Err(ended()))? {
                WatchItem::Added(object) => {
                    last = Instant::now();
                    self.add(&mut relist, ListItem::Object(object));
                }
                WatchItem::Modified(object) => self.add(&mut relist, ListItem::Object(object)),
                WatchItem::Undecodable(object) => {
                    self.add(&mut relist, ListItem::Undecodable(object));
                }
                WatchItem::Deleted(object) => relist.remove(&ObjectKey::of(&object)),
                WatchItem::Bookmark {
                    resource_version,
                    ends_initial_events: true,
                } => {
                    self.finish_list(relist, &resource_version);
                    return Ok(stream);
                }
                WatchItem::Bookmark { .. } => {}
            }
            // Items that are ready are read without waiting, so a time limit needs a look at the clock.
            if start.elapsed() >= TOTAL_LIMIT {
                return Err(too_long());
            }
        }
    }
}

fn ended() -> SourceError {
    SourceError::new(
        SourceErrorKind::Transport,
        "a streaming list ended before its last initial event",
    )
}

/// There are too many objects for the time, which says nothing of other resources of the server.
fn too_long() -> SourceError {
    SourceError {
        code: Some(504),
        ..without_bookmark()
    }
}

/// The server ignores `sendInitialEvents`, or never sends the bookmark.
fn without_bookmark() -> SourceError {
    SourceError::new(
        SourceErrorKind::Refused,
        "a streaming list did not mark the end of its initial events",
    )
}
