//! The deletion of namespaces, a part of a server: deletes the content of namespaces that are being deleted, then finalizes them.
//!
//! The rules, conditions and messages are those of the namespace controller of kube-controller-manager.

mod conditions;

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use apiloom_client::controller::{Backoff, WorkQueue, WorkQueueConfig};
use apiloom_client::dynamic::PartialObjectMetadata;
use apiloom_client::metrics::Registry;
use apiloom_kinds::core::v1::Namespace;
use apiloom_meta::kind::{Scope, SmolStr, Verb};
use apiloom_meta::{GroupResource, ListMeta, Resource as _};
use apiloom_registry::Endpoint;
use apiloom_server::host::feed::{self, Counts, Reporter, Sink};
use apiloom_server::host::{
    ControllerHost, ObservedObject, RequestError, Requests, ServedKind, Uid,
};
use apiloom_server::{Builder, Capability, Part};
use async_trait::async_trait;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches as _};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::conditions::Content;

/// The name of the controller in `--controllers`, in its lease and as the manager of the fields that it writes, that of
/// kube-controller-manager.
pub const CONTROLLER: &str = "namespace-controller";

/// The name of its queue in metrics, that of kube-controller-manager.
const QUEUE: &str = "namespace";

/// The finalizer of this controller, in the spec of namespaces.
const KUBERNETES: &str = "kubernetes";

/// Time until a namespace that still has objects is looked at again. The longest is that of kube-controller-manager.
const LOOK_AGAIN: Backoff = Backoff {
    base: Duration::from_millis(50),
    max: Duration::from_secs(8),
};

/// Time for which a namespace is not finalized after its deletion was observed, as in kube-controller-manager: requests on
/// their way and other servers may not know of it yet.
const LATE_CREATES: Duration = Duration::from_secs(5);

/// Number of objects in a page of a list.
const PAGE: usize = 500;

/// The part: a server with it deletes the content of deleted namespaces.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Controller flags")]
pub struct NamespaceDeletion {
    /// Number of namespaces whose content is deleted at the same time.
    #[arg(
        id = "concurrent-namespace-syncs",
        long = "concurrent-namespace-syncs",
        value_name = "NUMBER",
        default_value_t = Self::default().workers
    )]
    pub workers: NonZeroUsize,
}

/// The default of kube-controller-manager: 10 workers.
impl Default for NamespaceDeletion {
    fn default() -> Self {
        Self {
            workers: const { NonZeroUsize::new(10).unwrap() },
        }
    }
}

impl Part for NamespaceDeletion {
    fn name(&self) -> &'static str {
        "namespaces"
    }

    fn controller(&self) -> Option<(&'static str, &'static str)> {
        Some((CONTROLLER, "deletes the content of deleted namespaces"))
    }

    fn add_flags(&self, command: Command) -> Command {
        let workers = self.workers.to_string();
        let command = Self::augment_args(command);
        command.mut_arg("concurrent-namespace-syncs", |flag| {
            flag.default_value(workers)
        })
    }

    fn read_flags(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.update_from_arg_matches(matches)
    }

    fn register(self: Box<Self>, builder: Builder) -> Builder {
        builder.capability(|_| *self)
    }
}

#[async_trait]
impl Capability for NamespaceDeletion {
    fn elected(&self) -> Option<&'static str> {
        Some(CONTROLLER)
    }

    async fn lead(&self, host: ControllerHost) {
        // The controller is the manager of the fields that it writes, by its name.
        run(
            host.requests(CONTROLLER),
            self.workers,
            &host.metrics.registry,
        )
        .await;
    }
}

/// Runs the controller; never returns while the server serves namespaces.
async fn run(requests: Requests, workers: NonZeroUsize, metrics: &Registry) {
    let registry = requests.registry();
    let Some(endpoint) = registry.endpoint(Namespace::GROUP, Namespace::VERSION, Namespace::PLURAL)
    else {
        // The lease is kept: without a wait it would be taken and given up all the time.
        return std::future::pending().await;
    };
    let controller = Arc::new(NamespaceController {
        requests,
        endpoint: Arc::clone(&endpoint),
        deleted: Mutex::default(),
        queue: WorkQueue::with_config(WorkQueueConfig {
            backoff: LOOK_AGAIN,
            ..WorkQueueConfig::default()
        }),
    });
    controller.queue.register_metrics(metrics, QUEUE);
    let mut tasks = JoinSet::new();
    for _ in 0..workers.get() {
        tasks.spawn(work(Arc::clone(&controller)));
    }
    let sink: Arc<dyn Sink> = controller;
    let counts = Counts::register(metrics, format!("{CONTROLLER}/{}", Namespace::PLURAL));
    feed::follow(endpoint, sink, Reporter::unread(counts)).await;
}

async fn work(controller: Arc<NamespaceController>) {
    while let Some(item) = controller.queue.next().await {
        match controller.process(item.key()).await {
            Ok(State::Done) => item.succeed(),
            Ok(State::ContentRemains) => item.retry(),
            Ok(State::MayGrow(rest)) => item.requeue_after(rest),
            Err(error) => {
                tracing::debug!(%error, namespace = %item.key(), "to be tried again");
                item.retry();
            }
        }
    }
}

/// The namespace controller: deletes the content of namespaces, then finalizes them.
struct NamespaceController {
    requests: Requests,
    /// That of namespaces.
    endpoint: Arc<Endpoint>,
    /// When the deletions of the namespaces that exist were observed: not their own times, which another server's clock said.
    deleted: Mutex<HashMap<Uid, Instant>>,
    queue: WorkQueue<SmolStr>,
}

impl Sink for NamespaceController {
    fn observe(&self, object: ObservedObject) {
        if !object.is_deleting {
            // After a restore of the store, its deletion may be undone.
            self.deleted.lock().remove(&object.uid);
            return;
        }
        let mut deleted = self.deleted.lock();
        deleted.entry(object.uid).or_insert_with(Instant::now);
        drop(deleted);
        self.queue.add(object.place.name);
    }
    fn remove(&self, uid: Uid) {
        self.deleted.lock().remove(&uid);
    }
    fn complete(&self, _group: &str, _kind: &str, listed: &HashSet<Uid>) {
        self.deleted.lock().retain(|uid, _| listed.contains(uid));
    }
}

enum State {
    Done,
    ContentRemains,
    /// There is no content, but there may be some for this time.
    MayGrow(Duration),
}

/// A page of a list, metadata only.
#[derive(Deserialize)]
struct Page {
    metadata: ListMeta,
    items: Vec<PartialObjectMetadata>,
}

impl NamespaceController {
    async fn process(&self, name: &str) -> Result<State, RequestError> {
        let path = format!("/api/v1/namespaces/{name}");
        let Some(mut namespace) = self.requests.get::<Namespace>(&path).await? else {
            return Ok(State::Done);
        };
        let is_ours = |finalizer: &String| finalizer == KUBERNETES;
        let is_to_be_finalized = namespace.metadata.deletion_timestamp.is_some()
            && namespace.spec.finalizers.iter().any(is_ours);
        if !is_to_be_finalized {
            return Ok(State::Done);
        }
        let uid = Uid::of(namespace.metadata.uid.as_deref().unwrap_or_default());
        // One whose deletion was not observed: the event is on the way.
        let Some(deleted) = self.deleted.lock().get(&uid).copied() else {
            return Ok(State::Done);
        };
        // A create that was admitted before the deletion may be stored after the look at the content.
        let rest = LATE_CREATES.saturating_sub(deleted.elapsed());
        let content = self.delete_content(name).await;
        let now = self.endpoint.writes().now();
        if conditions::set(&mut namespace.status, &content, now) {
            let status = format!("{path}/status");
            let Some(written) = self.requests.put(&status, &namespace).await? else {
                return Ok(State::Done);
            };
            namespace = written;
        }
        if let Some(error) = content.failures.into_iter().next() {
            return Err(error.1);
        }
        if !content.remaining.is_empty() {
            return Ok(State::ContentRemains);
        }
        if !rest.is_zero() {
            return Ok(State::MayGrow(rest));
        }
        self.requests.check_serves_all().await?;
        namespace
            .spec
            .finalizers
            .retain(|finalizer| !is_ours(finalizer));
        let finalize = format!("{path}/finalize");
        self.requests.put(&finalize, &namespace).await?;
        Ok(State::Done)
    }

    /// Deletes the objects of all kinds in a namespace, and counts what is left.
    async fn delete_content(&self, namespace: &str) -> Content {
        let mut content = Content::default();
        for resource in self.resources() {
            match self.delete_objects(namespace, &resource).await {
                Ok(left) => {
                    if left.count > 0 {
                        content.remaining.insert(resource.name, left.count);
                    }
                    for (finalizer, count) in &left.content.finalizers {
                        content.count_finalizer(finalizer, *count);
                    }
                    content.more_finalizers += left.content.more_finalizers;
                }
                Err(error) => content.failures.push((resource.name, error)),
            }
        }
        content
    }

    /// The resources with objects in namespaces that can be deleted; each kind once.
    fn resources(&self) -> Vec<Deletable> {
        let catalog = self.requests.registry().catalog();
        let mut kinds: Vec<&GroupResource> = Vec::new();
        let mut resources = Vec::new();
        for endpoint in catalog.endpoints() {
            let def = endpoint.def();
            let can = |verb: Verb| def.verbs.contains(&verb);
            let stored = endpoint.resource().group_resource();
            let is_wanted = def.scope == Scope::Namespaced && can(Verb::Delete) && can(Verb::List);
            if is_wanted && !kinds.contains(&stored) {
                kinds.push(stored);
                resources.push(Deletable {
                    name: def.group_resource(),
                    served: ServedKind::new(def),
                    has_collection: can(Verb::DeleteCollection),
                });
            }
        }
        resources
    }

    async fn delete_objects(
        &self,
        namespace: &str,
        resource: &Deletable,
    ) -> Result<Left, RequestError> {
        let collection = resource.served.collection(namespace)?;
        if self.left(&collection, None).await?.count == 0 {
            return Ok(Left::default());
        }
        let background = || json!({"propagationPolicy": "Background"});
        let mut is_deleted = false;
        if resource.has_collection {
            match self.requests.delete(&collection, background()).await {
                Ok(_) => is_deleted = true,
                Err(error) if error.is_not_allowed() => {}
                Err(error) => return Err(error),
            }
        }
        let each = (!is_deleted).then_some((resource, namespace));
        if each.is_some() {
            self.left(&collection, each).await?;
        }
        self.left(&collection, None).await
    }

    /// Counts the objects of a collection; deletes each if that is asked for.
    async fn left(
        &self,
        collection: &str,
        delete: Option<(&Deletable, &str)>,
    ) -> Result<Left, RequestError> {
        let mut left = Left::default();
        let mut next = String::new();
        loop {
            let page = self.requests.list::<Page>(collection, PAGE, &next).await?;
            let Some(page) = page else {
                return Ok(left);
            };
            for item in page.items {
                left.count += 1;
                for finalizer in &item.metadata.finalizers {
                    left.content.count_finalizer(finalizer, 1);
                }
                if let (Some((resource, namespace)), Some(name)) = (delete, &item.metadata.name) {
                    let path = resource.served.object(namespace, name)?;
                    let options = json!({"propagationPolicy": "Background", "preconditions": {"uid": item.metadata.uid}});
                    match self.requests.delete(&path, options).await {
                        // It was deleted and made again.
                        Err(error) if error.is_conflict() => {}
                        done => drop(done?),
                    }
                }
            }
            next = page.metadata.continue_token.unwrap_or_default();
            if next.is_empty() {
                return Ok(left);
            }
        }
    }
}

/// A resource whose objects are in namespaces.
struct Deletable {
    name: GroupResource,
    served: ServedKind,
    has_collection: bool,
}

/// What is left of a resource.
#[derive(Default)]
struct Left {
    count: usize,
    /// The finalizers of its objects.
    content: Content,
}
