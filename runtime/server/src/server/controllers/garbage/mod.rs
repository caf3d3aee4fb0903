//! The garbage collector: deletes objects whose owners are gone, and carries out foreground and orphaning deletions.
//!
//! Every served kind that can be listed, watched and deleted is followed (`feed`). The graph of owner references
//! (`graph`) says which objects a change concerns, and `collector` decides about each by its state in the store.
//!
//! The rules are those of the garbage collector of kube-controller-manager.

mod collector;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use apiloom_meta::kind::Verb;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use self::collector::Collector;
use super::feed::{self, Sink};
use super::requests::Requests;
use crate::registry::{Catalog, Endpoint, EndpointId};

/// The manager of fields that the collector writes.
pub(super) const NAME: &str = "garbage-collector";

/// Longest wait for complete lists of all kinds before objects are judged: until then each dependent whose owner was not
/// listed yet costs a request for it.
const FIRST_LISTS: Duration = Duration::from_secs(30);

/// Failures in a row of one object after which the error is logged.
const WORTH_A_WARNING: u32 = 5;

/// Runs the collector; never returns.
pub(super) async fn run(requests: Requests, workers: NonZeroUsize) {
    let registry = Arc::clone(requests.registry());
    let collector = Arc::new(Collector::new(requests));
    let mut generations = registry.generations();
    let mut feeds = Feeds {
        collector: Arc::clone(&collector),
        running: HashMap::new(),
        tasks: JoinSet::new(),
    };
    feeds.follow(&registry.catalog());
    // A kind that cannot be listed must not stop the others.
    let _ = tokio::time::timeout(FIRST_LISTS, feeds.synced()).await;
    let mut tasks = JoinSet::new();
    for _ in 0..workers.get() {
        tasks.spawn(work(Arc::clone(&collector)));
    }
    loop {
        // The registry outlives its controllers.
        let Ok(()) = generations.changed().await else {
            return;
        };
        feeds.follow(&registry.catalog());
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

/// A running feed.
struct Feed {
    task: AbortHandle,
    synced: watch::Receiver<bool>,
}

/// The feeds of all kinds.
struct Feeds {
    collector: Arc<Collector>,
    running: HashMap<EndpointId, Feed>,
    tasks: JoinSet<()>,
}

impl Feeds {
    /// Follows the kinds of a catalog, and no others.
    fn follow(&mut self, catalog: &Catalog) {
        let endpoints = collectible(catalog);
        while self.tasks.try_join_next().is_some() {}
        self.running.retain(|id, feed| {
            let stays = endpoints.iter().any(|endpoint| endpoint.id == *id);
            if !stays {
                feed.task.abort();
            }
            stays
        });
        for endpoint in endpoints {
            let id = endpoint.id;
            if self.running.contains_key(&id) {
                continue;
            }
            let (sender, synced) = watch::channel(false);
            let task = feed::follow(endpoint, self.sink(), sender);
            let task = self.tasks.spawn(task);
            self.running.insert(id, Feed { task, synced });
        }
        let synced = self.running.values().map(|feed| feed.synced.clone());
        self.collector.set_feeds(synced.collect());
    }

    fn sink(&self) -> Arc<dyn Sink> {
        Arc::new(Arc::clone(&self.collector))
    }

    /// Waits until all objects of all kinds are known.
    async fn synced(&self) {
        for feed in self.running.values() {
            // The feed of a kind that is not served any more ends without.
            let _ = feed.synced.clone().wait_for(|synced| *synced).await;
        }
    }
}

/// An endpoint of each kind that can be listed, watched and deleted: that of the version in which it is stored, if it is
/// served, so that nothing is converted.
fn collectible(catalog: &Catalog) -> Vec<Arc<Endpoint>> {
    let mut chosen: Vec<Arc<Endpoint>> = Vec::new();
    for endpoint in catalog.endpoints() {
        let def = endpoint.def();
        let can = |verb: Verb| def.verbs.contains(&verb);
        if !(can(Verb::List) && can(Verb::Watch) && can(Verb::Delete)) {
            continue;
        }
        let kind = &endpoint.resource().kind;
        let known = chosen
            .iter_mut()
            .find(|known| Arc::ptr_eq(&known.resource().kind, kind));
        match known {
            Some(known) if def.version == endpoint.storage_version() => {
                *known = Arc::clone(endpoint);
            }
            Some(_) => {}
            None => chosen.push(Arc::clone(endpoint)),
        }
    }
    chosen
}
