//! The watch that follows a list: changes go into the store in batches.

use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};

use super::session::{Session, WATCH_SECONDS, response};
use crate::cache::object::{CacheObject, ObjectKey};
use crate::cache::source::{SourceError, SourceErrorKind, Undecodable, WatchItem, WatchStream};
use crate::cache::store::Delta;

/// Time after the end that a watch was asked for, or after its last item, after which it is taken for broken.
pub(super) const IDLE_MARGIN: Duration = Duration::from_secs(30);
/// A watch that ends sooner counts as a failure.
const SHORT_WATCH: Duration = Duration::from_secs(1);

/// Largest number of items of one batch.
const BATCH: usize = 1000;

/// Changes that are ready, to be applied together.
struct Batch<T> {
    deltas: Vec<Delta<T>>,
    /// How the stream ended, if it did.
    end: Option<Result<(), SourceError>>,
}

/// A watch that was opened here, or by a streaming list.
struct Watch<T> {
    stream: WatchStream<T>,
    start: Instant,
    /// Longest time between two items.
    idle_limit: Duration,
    /// Whether the server may still send the present state, whose versions are not in order: a watch from no version
    /// begins so.
    is_initial: bool,
}

impl<T: CacheObject> Session<T> {
    /// Follows the changes, over as many watches as the server needs, until the state must be read again.
    pub(super) async fn follow(&mut self, stream: Option<WatchStream<T>>) {
        let longest = Duration::from_secs(WATCH_SECONDS.end);
        let mut next = stream.map(|stream| Watch {
            stream,
            start: Instant::now(),
            idle_limit: longest + IDLE_MARGIN,
            is_initial: false,
        });
        loop {
            let watch = match next.take() {
                Some(watch) => Ok(watch),
                None => self.open_watch().await,
            };
            let result = match watch {
                Ok(watch) => {
                    self.hub.set_live();
                    self.read(watch).await
                }
                Err(error) => Err(error),
            };
            let Err(error) = result else {
                if self.position.seen.is_none() {
                    // Nothing says what another watch would continue.
                    return;
                }
                continue;
            };
            match error.kind {
                SourceErrorKind::Expired => {
                    // The list may begin at once: its version is as new as the one that expired.
                    tracing::debug!(cache = self.hub.name(), %error, "a watch expired");
                    self.backoff.wait_if_repeated().await;
                    return;
                }
                SourceErrorKind::TooLargeResourceVersion => {
                    self.position.is_refused = true;
                    self.backoff.wait_if_repeated().await;
                    return;
                }
                SourceErrorKind::Unavailable | SourceErrorKind::Transport => {
                    self.fail(error).await;
                    if self.position.seen.is_none() {
                        return;
                    }
                }
                SourceErrorKind::Refused => {
                    self.fail(error).await;
                    return;
                }
            }
        }
    }

    async fn open_watch(&mut self) -> Result<Watch<T>, SourceError> {
        let request = self.watch_request();
        let idle_limit = request.timeout + IDLE_MARGIN;
        let is_initial = request.resource_version.is_empty();
        let stream = response(self.source.watch(request)).await?;
        self.hub.counts().count_watch();
        Ok(Watch {
            stream,
            start: Instant::now(),
            idle_limit,
            is_initial,
        })
    }

    /// Applies the changes of one watch until it ends. It may be continued at once if the result is `Ok`.
    async fn read(&mut self, mut watch: Watch<T>) -> Result<(), SourceError> {
        loop {
            let Ok(first) = timeout(watch.idle_limit, watch.stream.next()).await else {
                // The connection may be dead without a sign of it.
                tracing::debug!(
                    cache = self.hub.name(),
                    "a watch was silent for too long and is opened again"
                );
                return Ok(());
            };
            let mut batch = Batch {
                deltas: Vec::new(),
                end: None,
            };
            self.take(&mut watch, &mut batch, first);
            let rest = if batch.end.is_none() { BATCH - 1 } else { 0 };
            for _ in 0..rest {
                let Some(next) = watch.stream.next().now_or_never() else {
                    break;
                };
                self.take(&mut watch, &mut batch, next);
                if batch.end.is_some() {
                    break;
                }
            }
            let version = self.position.seen.clone().filter(|_| !watch.is_initial);
            self.hub.apply(batch.deltas, version);
            match batch.end {
                Some(Ok(())) if watch.start.elapsed() < SHORT_WATCH => {
                    return Err(SourceError::new(
                        SourceErrorKind::Transport,
                        "the server ended a watch within a second",
                    ));
                }
                Some(result) => return result,
                None => {}
            }
            // A stream that always has an item would keep the other tasks of this thread waiting.
            yield_now().await;
        }
    }

    /// Adds the next item of a watch to a batch.
    fn take(
        &mut self,
        watch: &mut Watch<T>,
        batch: &mut Batch<T>,
        next: Option<Result<WatchItem<T>, SourceError>>,
    ) {
        let item = match next {
            Some(Ok(item)) => item,
            Some(Err(error)) => {
                batch.end = Some(Err(error));
                return;
            }
            None => {
                batch.end = Some(Ok(()));
                return;
            }
        };
        watch.is_initial &= matches!(item, WatchItem::Added(_));
        let is_initial = watch.is_initial;
        match item {
            WatchItem::Added(object) | WatchItem::Modified(object) => {
                self.advance(object.resource_version(), is_initial);
                let key = ObjectKey::of(&object);
                match self.decoder.transform(object) {
                    Ok(object) => {
                        self.decoder.accept(&object);
                        batch.deltas.push(Delta::Put(object));
                    }
                    Err(error) => {
                        self.decoder.reject(error);
                        batch.deltas.push(Delta::Forget(key));
                    }
                }
            }
            WatchItem::Deleted(object) => {
                self.advance(object.resource_version(), is_initial);
                self.decoder.accept(&object);
                let key = ObjectKey::of(&object);
                batch.deltas.push(match self.decoder.transform(object) {
                    Ok(object) => Delta::Delete(object),
                    // It is gone in any case; its last state is the one that was cached.
                    Err(_) => Delta::Forget(key),
                });
            }
            WatchItem::Bookmark {
                resource_version, ..
            } => self.advance(&resource_version, is_initial),
            WatchItem::Undecodable(object) => {
                self.advance_to(&object, is_initial);
                if let Some(key) = &object.key {
                    batch.deltas.push(Delta::Forget(key.clone()));
                }
                self.decoder.reject(object);
            }
        }
    }

    fn advance(&mut self, version: &str, is_initial: bool) {
        if !is_initial {
            self.position.advance(version);
        }
    }
    fn advance_to(&mut self, object: &Undecodable, is_initial: bool) {
        if let Some(version) = &object.resource_version {
            self.advance(version, is_initial);
        }
    }
}
