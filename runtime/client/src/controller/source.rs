//! The events from which a controller gets its keys.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::error;

use crate::cache::{BehindError, CacheObject, Event, Informer, WeakInformer};

/// Takes events. It must return soon, and must not block.
pub type EventHandler<T> = Box<dyn Fn(Event<T>) + Send + Sync>;

/// A source of events, such as an [`Informer`].
pub trait EventSource: Send + Sync {
    /// The type of the objects.
    type Object: Send + Sync + 'static;

    /// Begins to call `handler`: with each object that exists, as added and initial, with [`Event::Synced`], and then with
    /// each change. Calls for one object are in the order of its changes. Called in a tokio runtime.
    ///
    /// A controller may have read any state of an object from a cache, and its keys follow from these states: a source that
    /// skips one calls the handler with [`Event::Lagged`] afterwards, so that all objects are asked for again.
    fn subscribe(&self, handler: EventHandler<Self::Object>) -> Box<dyn EventSubscription>;
}

/// Calls of a handler that a source makes. Dropping it ends them soon, [`stop`](Self::stop) at once.
pub trait EventSubscription: Send + Sync {
    /// Ends the calls: there is none after the future is ready.
    fn stop(&self) -> BoxFuture<'_, ()>;

    /// Calls the handler with all objects again soon, as [`Event::Resync`]. By default it is not called, for sources that
    /// skip nothing.
    fn resync(&self) {}

    /// Waits until the handler was called for everything that the source's server has now. For tests; by default the
    /// source is taken as up to date.
    ///
    /// # Errors
    /// If that is not so after this time.
    fn catch_up(&self, limit: Duration) -> BoxFuture<'_, Result<(), BehindError>> {
        let _ = limit;
        std::future::ready(Ok(())).boxed()
    }
}

/// More events in a row would keep other tasks of the same thread from running.
const MAX_IN_A_ROW: usize = 128;

/// So many states of objects wait for a handler beside the newest ones. A handler that is slower lags.
const MAX_STATES: usize = 10_000;

impl<T: CacheObject> EventSource for Informer<T> {
    type Object = T;

    fn subscribe(&self, handler: EventHandler<T>) -> Box<dyn EventSubscription> {
        let mut subscription = Informer::subscribe(self).every_event_beside_newest(MAX_STATES);
        let resync = Arc::new(Notify::new());
        let (cancel, ended) = (CancellationToken::new(), CancellationToken::new());
        let running = ended.clone().drop_guard();
        let (ask, mut asked) = mpsc::unbounded_channel::<oneshot::Sender<()>>();
        tokio::spawn({
            let (cancel, resync) = (cancel.clone(), Arc::clone(&resync));
            async move {
                let _running = running;
                for number in 1_usize.. {
                    let event = tokio::select! {
                        biased;
                        () = cancel.cancelled() => break,
                        () = resync.notified() => {
                            subscription.resync_now();
                            continue;
                        }
                        event = subscription.next() => event,
                        // Behind the events: the answer says that there is none.
                        Some(answer) = asked.recv() => {
                            // The caller may not wait for it any more.
                            let _ = answer.send(());
                            continue;
                        }
                    };
                    let Some(event) = event else {
                        break;
                    };
                    if catch_unwind(AssertUnwindSafe(|| handler(event))).is_err() {
                        error!("a controller's mapping of events to keys panicked");
                    }
                    if number.is_multiple_of(MAX_IN_A_ROW) {
                        tokio::task::yield_now().await;
                    }
                }
            }
        });
        let informer = self.downgrade();
        Box::new(InformerSubscription {
            informer,
            cancel,
            ended,
            ask,
            resync,
        })
    }
}

/// The task that reads the events of an informer.
struct InformerSubscription<T: CacheObject> {
    informer: WeakInformer<T>,
    cancel: CancellationToken,
    /// Cancelled when the task has ended.
    ended: CancellationToken,
    /// Asks the task to answer when there is no event.
    ask: mpsc::UnboundedSender<oneshot::Sender<()>>,
    /// Asks the task for a resync.
    resync: Arc<Notify>,
}

impl<T: CacheObject> EventSubscription for InformerSubscription<T> {
    fn resync(&self) {
        self.resync.notify_one();
    }

    fn catch_up(&self, limit: Duration) -> BoxFuture<'_, Result<(), BehindError>> {
        async move {
            let Some(informer) = self.informer.upgrade() else {
                return Ok(());
            };
            informer.wait_for_server(limit).await?;
            let (answer, answered) = oneshot::channel();
            // Both fail only if the task has ended: then no event follows.
            if self.ask.send(answer).is_ok() {
                let _ = answered.await;
            }
            Ok(())
        }
        .boxed()
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        async {
            self.cancel.cancel();
            self.ended.cancelled().await;
        }
        .boxed()
    }
}

impl<T: CacheObject> Drop for InformerSubscription<T> {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}
