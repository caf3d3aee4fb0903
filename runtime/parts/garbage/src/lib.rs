//! The garbage collector, a part of a server: deletes objects whose owners are gone, and carries out foreground and orphaning deletions.
//!
//! Every served kind that can be listed, watched and deleted is followed (`feeds`). The graph of owner references
//! (`graph`) says which objects a change concerns, and `collector` decides about each by its state in the store.
//!
//! The rules are those of the garbage collector of kube-controller-manager.

mod collector;
mod events;
mod feeds;
mod graph;
mod progress;
mod unreadable;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use apiloom_client::metrics::Registry;
use apiloom_http::documents::health::{Check, Probe};
use apiloom_server::host::{ControllerHost, Requests};
use apiloom_server::{Builder, Capability, Part};
use async_trait::async_trait;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches as _};
use tokio::task::JoinSet;

use self::collector::Collector;
use self::feeds::Feeds;
use self::unreadable::UnreadableKinds;

/// The name of the garbage collector in `--controllers`, in its lease and in its health check, that of kube-controller-manager.
pub const CONTROLLER: &str = "garbage-collector-controller";

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

/// The part: a server with it deletes objects whose owners are gone.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Controller flags")]
pub struct GarbageCollection {
    /// Number of objects that the garbage collector works on at the same time.
    #[arg(
        id = "concurrent-gc-syncs",
        long = "concurrent-gc-syncs",
        value_name = "NUMBER",
        default_value_t = Self::default().workers
    )]
    pub workers: NonZeroUsize,
}

/// The default of kube-controller-manager: 20 workers.
impl Default for GarbageCollection {
    fn default() -> Self {
        Self {
            workers: const { NonZeroUsize::new(20).unwrap() },
        }
    }
}

impl Part for GarbageCollection {
    fn name(&self) -> &'static str {
        "garbage-collector"
    }

    fn controller(&self) -> Option<(&'static str, &'static str)> {
        Some((CONTROLLER, "deletes the dependents of deleted objects"))
    }

    fn add_flags(&self, command: Command) -> Command {
        let workers = self.workers.to_string();
        let command = Self::augment_args(command);
        command.mut_arg("concurrent-gc-syncs", |flag| flag.default_value(workers))
    }

    fn read_flags(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.update_from_arg_matches(matches)
    }

    fn register(self: Box<Self>, builder: Builder) -> Builder {
        builder.capability(move |_| GarbageCollector {
            workers: self.workers,
            unreadable: UnreadableKinds::default(),
        })
    }
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
        let check = Check::new(CONTROLLER, move || unreadable.check());
        vec![check.on(&[Probe::Healthz]).advisory()]
    }

    fn elected(&self) -> Option<&'static str> {
        Some(CONTROLLER)
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
