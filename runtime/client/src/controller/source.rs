//! The events from which a controller gets its keys.

use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::future::{BoxFuture, FutureExt as _};
use tokio::sync::watch;
use tracing::error;

use super::cancel::Cancel;
use crate::cache::{CacheObject, Event, Informer};

/// Takes events. It must return soon, and must not block.
pub type EventHandler<T> = Box<dyn Fn(Event<T>) + Send + Sync>;

/// A source of events, such as an [`Informer`].
pub trait EventSource: Send + Sync {
    /// The type of the objects.
    type Object: Send + Sync + 'static;

    /// Begins to call `handler`: with each object that exists, as added and initial, with [`Event::Synced`], and then with
    /// each change. Calls for one object are in the order of its changes. Called in a tokio runtime.
    fn subscribe(&self, handler: EventHandler<Self::Object>) -> Box<dyn EventSubscription>;
}

/// Calls of a handler that a source makes. Dropping it ends them soon, [`stop`](Self::stop) at once.
pub trait EventSubscription: Send + Sync {
    /// Ends the calls: there is none after the future is ready.
    fn stop(&self) -> BoxFuture<'_, ()>;
}

/// More events in a row would keep other tasks of the same thread from running.
const MAX_IN_A_ROW: usize = 128;

impl<T: CacheObject> EventSource for Informer<T> {
    type Object = T;

    fn subscribe(&self, handler: EventHandler<T>) -> Box<dyn EventSubscription> {
        let mut subscription = Informer::subscribe(self);
        let cancel = Cancel::new();
        let (running, ended) = watch::channel(());
        tokio::spawn({
            let cancel = cancel.clone();
            async move {
                let _running = running;
                for number in 1_usize.. {
                    let event = tokio::select! {
                        biased;
                        () = cancel.cancelled() => break,
                        event = subscription.next() => event,
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
        Box::new(InformerSubscription { cancel, ended })
    }
}

/// The task that reads the events of an informer.
struct InformerSubscription {
    cancel: Cancel,
    /// Fails when the task has ended.
    ended: watch::Receiver<()>,
}

impl EventSubscription for InformerSubscription {
    fn stop(&self) -> BoxFuture<'_, ()> {
        async {
            self.cancel.cancel();
            let mut ended = self.ended.clone();
            while ended.changed().await.is_ok() {}
        }
        .boxed()
    }
}

impl Drop for InformerSubscription {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}
