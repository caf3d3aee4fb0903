//! The feeds of all kinds: which of them run.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use apiloom_client::metrics::Registry;
use apiloom_meta::{GroupResource, ResourceDef};
use apiloom_registry::{Catalog, Endpoint, EndpointId};
use apiloom_server::host::feed::{self, Counts, FeedReports, Reporter};
use apiloom_server::host::is_followed;
use apiloom_storage::{Revision, Storage};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use super::collector::{Collector, FeedSink};
use super::progress::Position;
use super::unreadable::UnreadableKind;

/// The beginning of the names of feeds in metrics.
const FOLLOWER: &str = "garbage-collector";

/// The revision for which it is waited, of one store.
type AwaitedRevision = Arc<watch::Sender<Revision>>;

/// A running feed.
struct Feed {
    task: AbortHandle,
    position: Position,
    def: Arc<ResourceDef>,
}

/// The feeds of all kinds.
pub(super) struct Feeds {
    collector: Arc<Collector>,
    metrics: Registry,
    running: HashMap<EndpointId, Feed>,
    /// The revision of each store for which it is waited.
    wanted: Vec<(Arc<dyn Storage>, AwaitedRevision)>,
    tasks: JoinSet<()>,
}

impl Feeds {
    pub(super) fn new(collector: Arc<Collector>, metrics: Registry) -> Self {
        Self {
            collector,
            metrics,
            running: HashMap::new(),
            wanted: Vec::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Follows the kinds of a catalog, and no others.
    pub(super) fn follow(&mut self, catalog: &Catalog) {
        let endpoints = collectible(catalog);
        while self.tasks.try_join_next().is_some() {}
        let is_served = |id: &EndpointId| endpoints.iter().any(|endpoint| endpoint.id == *id);
        let ended = self.running.extract_if(|id, _| !is_served(id));
        for (id, feed) in ended.collect::<Vec<_>>() {
            feed.task.abort();
            let is_of_kind = |endpoint: &Arc<Endpoint>| {
                let def = endpoint.def();
                def.group == feed.def.group && def.kind == feed.def.kind
            };
            let has_left = !endpoints.iter().any(is_of_kind);
            let kind = has_left.then_some((&*feed.def.group, &*feed.def.kind));
            self.collector.end_feed(id, kind);
        }
        for endpoint in endpoints {
            let id = endpoint.id;
            if self.running.contains_key(&id) {
                continue;
            }
            self.collector.begin_feed(id);
            let feed = self.start(endpoint);
            self.running.insert(id, feed);
        }
        let positions = self.running.values().map(|feed| feed.position.clone());
        self.collector.progress().set_feeds(positions.collect());
    }

    fn start(&mut self, endpoint: Arc<Endpoint>) -> Feed {
        let progress = FeedReports::default();
        let reported = progress.reader();
        let store = &endpoint.resource().kind.store;
        let wanted = self.wanted_of(store);
        let resource = endpoint.resource().group_resource();
        let reporter = Reporter {
            progress,
            wanted: wanted.subscribe(),
            counts: Counts::register(&self.metrics, format!("{FOLLOWER}/{resource}")),
        };
        let position = Position {
            store: Arc::clone(store),
            progress: reported,
            wanted,
        };
        let def = Arc::clone(endpoint.shared_def());
        let sink = Arc::new(FeedSink::new(Arc::clone(&self.collector), endpoint.id));
        let task = self.tasks.spawn(feed::follow(endpoint, sink, reporter));
        Feed {
            task,
            position,
            def,
        }
    }

    /// The revision for which it is waited, which the feeds of a store share.
    fn wanted_of(&mut self, store: &Arc<dyn Storage>) -> AwaitedRevision {
        let mut known = self.wanted.iter();
        if let Some((_, wanted)) = known.find(|(known, _)| Arc::ptr_eq(known, store)) {
            return Arc::clone(wanted);
        }
        let wanted = Arc::new(watch::Sender::default());
        self.wanted.push((Arc::clone(store), Arc::clone(&wanted)));
        wanted
    }

    /// The kinds that others no longer wait for, because they cannot be read.
    pub(super) fn given_up(&self) -> BTreeMap<GroupResource, UnreadableKind> {
        let given_up = self.running.values().filter_map(|feed| {
            let progress = &feed.position.progress;
            let problem = progress
                .problem()
                .filter(|_| progress.now().is_given_up())?;
            let def = Arc::clone(&feed.def);
            Some((def.group_resource(), UnreadableKind { def, problem }))
        });
        given_up.collect()
    }

    /// Waits until all objects of all kinds are known.
    pub(super) async fn complete(&self) {
        for feed in self.running.values() {
            let progress = &feed.position.progress;
            // The feed of a kind that is not served any more ends without.
            let _ = progress.wait_for(|progress| progress.is_complete).await;
        }
    }
}

/// An endpoint of each kind that is followed: that of the version in which it is stored, if it is served, so that nothing
/// is converted.
fn collectible(catalog: &Catalog) -> Vec<Arc<Endpoint>> {
    let mut chosen: Vec<Arc<Endpoint>> = Vec::new();
    for endpoint in catalog.endpoints() {
        let def = endpoint.def();
        if !is_followed(def) {
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
