//! A controller that was started.

use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout_at};
use tracing::error;

use super::super::queue::WorkQueue;
use super::super::source::EventSubscription;
use super::metrics::ControllerMetrics;
use super::worker::Worker;
use crate::cache::BehindError;
use crate::metrics::{Collect, Registry, Samples};

/// A key that becomes ready within this time keeps a controller from being idle: retries of a few failures do, the
/// periodic work of most controllers does not.
const QUIET: Duration = Duration::from_secs(1);

/// The time between two resyncs because of sources that lag: these have more to do by each.
const RESYNC_PAUSE: Duration = Duration::from_secs(10);

/// A controller has not finished its work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the controller was not idle within {limit:?}: {reason}")]
pub struct NotIdle {
    /// How long it was waited for.
    pub limit: Duration,
    /// What was left.
    pub reason: String,
}

/// What a controller is told of a source.
pub(super) struct SourceSignals {
    /// Set when the source has shown the objects that existed at first.
    pub(super) synced: watch::Sender<bool>,
    /// Notified when the source has skipped states of objects; of all sources.
    pub(super) lagged: Arc<Notify>,
}

/// A source whose events are delivered.
pub(super) struct Source {
    subscription: Box<dyn EventSubscription>,
    synced: watch::Receiver<bool>,
}

impl Source {
    pub(super) fn start(
        lagged: &Arc<Notify>,
        subscribe: impl FnOnce(SourceSignals) -> Box<dyn EventSubscription>,
    ) -> Self {
        let (sender, synced) = watch::channel(false);
        let signals = SourceSignals {
            synced: sender,
            lagged: Arc::clone(lagged),
        };
        Self {
            subscription: subscribe(signals),
            synced,
        }
    }
}

/// Waits until the value is true, for ever if it cannot become so.
async fn wait_true(mut flag: watch::Receiver<bool>) {
    if flag.wait_for(|is_true| *is_true).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Lets all sources show their objects again when one of them has skipped some: a key that was reconciled by a state that is
/// gone is found in no other way.
async fn resync_lagging(sources: Arc<[Source]>, lagged: Arc<Notify>) {
    loop {
        lagged.notified().await;
        for source in &*sources {
            source.subscription.resync();
        }
        sleep(RESYNC_PAUSE).await;
    }
}

/// A controller at work. Dropping it drops calls in the middle; [`shutdown`](Self::shutdown) lets them end.
#[must_use = "dropping it stops the controller"]
pub struct RunningController<K: Clone + Eq + Hash> {
    worker: Arc<Worker<K>>,
    sources: Arc<[Source]>,
    synced: watch::Receiver<bool>,
    /// The tasks that do not end by themselves.
    watching: [AbortHandle; 2],
    tasks: JoinSet<()>,
}

impl<K> RunningController<K>
where
    K: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static,
{
    /// Spawns the workers, which wait for the subscriptions.
    pub(super) fn spawn(
        worker: Worker<K>,
        workers: usize,
        sources: Vec<Source>,
        lagged: Arc<Notify>,
    ) -> Self {
        let worker = Arc::new(worker);
        let (set_synced, synced) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let waits: Vec<_> = sources.iter().map(|source| source.synced.clone()).collect();
        let syncing = tasks.spawn(async move {
            for synced in waits {
                wait_true(synced).await;
            }
            set_synced.send_replace(true);
        });
        let sources: Arc<[Source]> = sources.into();
        let resyncing = tasks.spawn(resync_lagging(Arc::clone(&sources), lagged));
        for _ in 0..workers {
            let (worker, mut synced) = (Arc::clone(&worker), synced.clone());
            tasks.spawn(async move {
                // Fails only if the wait is aborted, by `shutdown`.
                if synced.wait_for(|is_synced| *is_synced).await.is_ok() {
                    worker.run().await;
                }
            });
        }
        Self {
            worker,
            sources,
            synced,
            watching: [syncing, resyncing],
            tasks,
        }
    }

    /// The queue, for keys that no source asks for.
    pub fn queue(&self) -> &WorkQueue<K> {
        &self.worker.queue
    }

    /// Waits until all sources have shown the objects that existed at first.
    pub async fn synced(&self) {
        wait_true(self.synced.clone()).await;
    }

    /// Waits until the sources are synced, no call goes on, and no key becomes ready within a second: what tests wait
    /// for. Changes that a source has not shown yet are not awaited, nor are retries that are further away.
    pub async fn wait_idle(&self) {
        self.synced().await;
        self.queue().wait_idle(QUIET).await;
    }

    /// Waits until nothing is left to do: no call goes on, no key becomes ready within a second, and the sources have shown
    /// everything that their servers have, also what the last calls wrote. For tests, with informers over a server that
    /// no one else writes to.
    ///
    /// # Errors
    /// If that is not so after this time.
    pub async fn run_until_idle(&self, limit: Duration) -> Result<(), NotIdle> {
        let end = Instant::now() + limit;
        let mut reason = None;
        let waiting = async {
            loop {
                self.wait_idle().await;
                let adds = self.queue().metrics().adds;
                // Then nothing is written while the sources catch up, unless a key is added.
                if !self.queue().is_idle_for(QUIET) {
                    continue;
                }
                reason = self.catch_up(end).await.err();
                let is_quiet = self.queue().is_idle_for(QUIET);
                if reason.is_none() && is_quiet && self.queue().metrics().adds == adds {
                    return;
                }
            }
        };
        if timeout_at(end, waiting).await.is_ok() {
            return Ok(());
        }
        let waiting = self.queue().metrics().depth;
        let reason = reason.map_or_else(
            || format!("{} calls go on, {waiting} keys wait", self.metrics().active),
            |behind| behind.to_string(),
        );
        Err(NotIdle { limit, reason })
    }

    async fn catch_up(&self, end: Instant) -> Result<(), BehindError> {
        for source in &*self.sources {
            let left = end.saturating_duration_since(Instant::now());
            // A little earlier, so that the reason is known.
            source.subscription.catch_up(left.mul_f64(0.9)).await?;
        }
        Ok(())
    }

    /// The metrics of the calls; those of the queue are [`WorkQueue::metrics`].
    pub fn metrics(&self) -> ControllerMetrics {
        self.worker.metrics.get()
    }

    /// Adds the metrics of the calls and of the queue to a registry, with the name of the controller, as long as it runs.
    pub fn register_metrics(&self, registry: &Registry) {
        let name = &self.worker.name;
        self.queue().register_metrics(registry, name);
        registry.register(Collector(Arc::downgrade(&self.worker)));
    }

    /// Stops: ends the subscriptions, drops the keys that wait, tells the calls to end, and waits for them. Those that
    /// go on for the grace period are dropped. Afterwards no handler and no call runs, and no task is left.
    pub async fn shutdown(mut self) {
        for source in &*self.sources {
            source.subscription.stop().await;
        }
        self.watching.iter().for_each(AbortHandle::abort);
        self.worker.queue.shutdown();
        self.worker.cancel.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(failure) = ended
                && failure.is_panic()
            {
                error!(controller = %self.worker.name, "a worker panicked: {failure}");
            }
        }
    }
}

/// Reports the metrics of a controller without keeping it.
struct Collector<K: Clone + Eq + Hash>(Weak<Worker<K>>);

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Collect for Collector<K> {
    fn collect(&self, samples: &mut Samples) {
        if let Some(worker) = self.0.upgrade() {
            worker.metrics.get().collect(samples, &worker.name);
        }
    }
    fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl<K: Clone + Eq + Hash> fmt::Debug for RunningController<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.worker.name;
        f.debug_tuple("RunningController").field(name).finish()
    }
}
