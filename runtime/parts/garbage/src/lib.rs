//! The garbage collector: deletes objects whose owners are gone, and carries out foreground and orphaning deletions.
//!
//! Every served kind that can be listed, watched and deleted is followed (`feeds`). The graph of owner references
//! (`graph`) says which objects a change concerns, and `collector` decides about each by its state in the store.
//!
//! The rules are those of the garbage collector of kube-controller-manager.

mod collector;
mod events;
mod feeds;
mod progress;
mod unreadable;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use apiloom_client::metrics::Registry;
use apiloom_http::documents::health::{Check, Probe};
use async_trait::async_trait;
use tokio::task::JoinSet;

use self::collector::Collector;
use self::feeds::Feeds;
use self::unreadable::UnreadableKinds;
use crate::server::Config;
use crate::server::capability::Capability;
use crate::server::controllers::config::GARBAGE_COLLECTOR;
use crate::server::controllers::host::ControllerHost;
use crate::server::controllers::requests::Requests;

/// The manager of fields that the collector writes.
const NAME: &str = "garbage-collector";

/// The name of its queue in metrics: that of kube-controller-manager has two, one of which is for orphans.
const QUEUE: &str = "garbage_collector";

/// Longest wait for complete lists of all kinds before objects are judged: until then each dependent whose owner was not
/// listed yet costs a request for it.
const FIRST_LISTS: Duration = Duration::from_secs(30);

/// Time between looks for kinds that are given up because they cannot be read.
const LOOK: Duration = Duration::from_secs(1);

/// Failures in a row of one object after which the error is logged.
const WORTH_A_WARNING: u32 = 5;

/// The garbage collector, unless the configuration leaves it out.
pub(super) fn part(config: &Config) -> Option<Arc<dyn Capability>> {
    if !config.controllers.names.garbage_collector {
        return None;
    }
    Some(Arc::new(GarbageCollector {
        workers: config.controllers.gc_workers,
        unreadable: UnreadableKinds::default(),
    }))
}

/// The garbage collector of a server.
#[derive(Debug)]
struct GarbageCollector {
    workers: NonZeroUsize,
    /// The kinds without which it goes on.
    unreadable: UnreadableKinds,
}

#[async_trait]
impl Capability for GarbageCollector {
    /// The check of the kinds without which it goes on; with the name of the controller, as in kube-controller-manager.
    fn checks(&self) -> Vec<Check> {
        let unreadable = self.unreadable.clone();
        let check = Check::new(GARBAGE_COLLECTOR, move || unreadable.check());
        vec![check.on(&[Probe::Healthz]).advisory()]
    }

    fn elected(&self) -> Option<&'static str> {
        Some(GARBAGE_COLLECTOR)
    }

    async fn lead(&self, host: ControllerHost) {
        let metrics = &host.metrics.registry;
        run(host.requests(NAME), self.workers, metrics, &self.unreadable).await;
    }
}

/// Runs the collector; never returns.
async fn run(
    requests: Requests,
    workers: NonZeroUsize,
    metrics: &Registry,
    unreadable: &UnreadableKinds,
) {
    let registry = Arc::clone(requests.registry());
    let collector = Arc::new(Collector::new(requests));
    collector.queue().register_metrics(metrics, QUEUE);
    let mut generations = registry.generations();
    let mut feeds = Feeds::new(Arc::clone(&collector), metrics.clone());
    feeds.follow(&registry.catalog());
    // A kind that cannot be listed must not stop the others.
    let _ = tokio::time::timeout(FIRST_LISTS, feeds.complete()).await;
    let mut tasks = JoinSet::new();
    for _ in 0..workers.get() {
        tasks.spawn(work(Arc::clone(&collector)));
    }
    // When this server no longer leads, it says nothing about kinds.
    let mut reported = unreadable.report();
    loop {
        tokio::select! {
            changed = generations.changed() => {
                // The registry outlives its controllers.
                if changed.is_err() {
                    return;
                }
                feeds.follow(&registry.catalog());
                collector.resume();
            }
            () = tokio::time::sleep(LOOK) => {}
        }
        for kind in reported.update(feeds.given_up()) {
            collector.events().kind_left_out(&kind);
        }
    }
}

/// Does the work of the queue.
async fn work(collector: Arc<Collector>) {
    while let Some(item) = collector.queue().next().await {
        match collector.process(*item.key()).await {
            Ok(()) => item.succeed(),
            Err(error) => {
                let work = item.key();
                if item.failures() == WORTH_A_WARNING {
                    tracing::warn!(%error, ?work, "the garbage collector cannot do its work");
                } else {
                    tracing::debug!(%error, ?work, "to be tried again");
                }
                item.retry();
            }
        }
    }
}
