//! APIServices, a part of a server: makes those of the versions that this server serves, looks at the servers of the others, and publishes all of
//! them for requests.
//!
//! Every server over a store does so by itself. It writes with the resourceVersion that it read, so that of several servers one
//! succeeds. The labels, conditions and messages are those of kube-aggregator.

mod addresses;
mod ask;
mod check;
mod documents;
mod flags;
mod local;
mod metrics;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use apiloom_client::metrics::Registry as MetricRegistry;
use apiloom_http::AddedSource;
use apiloom_http::documents::health::Check;
use apiloom_http::sources::aggregation::{
    Aggregation, DocumentRoom, LocalService, Priority, ProxyIdentity, RemoteDocuments,
    RemoteServer, RemoteTarget, Service, UnreachableNotices,
};
use apiloom_kinds::apiregistration::v1::APIService;
use apiloom_meta::{ApiError, Resource as _};
use apiloom_registry::{Document, Endpoint, Registry};
use apiloom_server::host::{ControllerHost, Follower, Requests, UnreadableLog, Update, read_all};
use apiloom_server::server::TlsFiles;
use apiloom_server::{Builder, Capability, Part, ServerError};
use async_trait::async_trait;
use clap::{ArgMatches, Args as _, Command, Error, FromArgMatches as _};
use futures_util::future::select_all;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::addresses::ResolvedAddresses;
use self::check::{Outcome, Subject};
use self::flags::ProxyClientFlags;
use self::local::{Local, is_available};
use self::metrics::AvailabilityMetrics;

/// The manager of fields that the controller writes.
const NAME: &str = "apiservice-controller";

/// Time between two looks at a server that is available.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// Time before the second look at a server that is not available. Each later one takes twice as long, up to the usual interval.
const FIRST_RETRY: Duration = Duration::from_millis(500);

/// The part: a server with it serves APIService, and forwards requests for the versions of other servers.
#[derive(Clone, Debug)]
pub struct ApiServices {
    /// The client certificate of this server for the servers to which it forwards requests: by it these know that it has
    /// authenticated the users that it names. Read again when it changes. Default none.
    pub proxy_client: Option<TlsFiles>,
    /// Time between two reads of discovery and OpenAPI of a server behind an APIService; they are also read when the APIService
    /// changes, and when the server is available again. Default 1 minute.
    pub documents_interval: Duration,
}

impl Default for ApiServices {
    fn default() -> Self {
        Self {
            proxy_client: None,
            documents_interval: Duration::from_secs(60),
        }
    }
}

impl Part for ApiServices {
    fn name(&self) -> &'static str {
        "aggregator"
    }

    fn add_flags(&self, command: Command) -> Command {
        ProxyClientFlags::augment_args(command)
    }

    fn read_flags(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.proxy_client = ProxyClientFlags::from_arg_matches(matches)?.files()?;
        Ok(())
    }

    fn register(self: Box<Self>, builder: Builder) -> Builder {
        builder.capability(move |context| {
            let files = self.proxy_client;
            let identity = files.map(|files| (files.certificate, files.private_key));
            let addresses = Arc::new(ResolvedAddresses(Arc::clone(&context.services)));
            let interval = self.documents_interval;
            let (aggregation, unreachable) =
                Aggregation::new(addresses, ProxyIdentity::new(identity), interval);
            Aggregator {
                aggregation: Arc::new(aggregation),
                unreachable: Mutex::new(Some(unreachable)),
            }
        })
    }
}

/// The versions that other servers serve.
#[derive(Debug)]
struct Aggregator {
    aggregation: Arc<Aggregation>,
    /// The notices of servers that requests did not reach, for the controller.
    unreachable: Mutex<Option<UnreachableNotices>>,
}

#[async_trait]
impl Capability for Aggregator {
    fn is_of_first(&self) -> bool {
        true
    }

    async fn start(&self, registry: &Arc<Registry>) -> Result<(), ServerError> {
        let read = self.aggregation.identity().read().await;
        read.map_err(|(path, reason)| ServerError::File { path, reason })?;
        let published = publish_stored(registry, &self.aggregation).await;
        published.map_err(|error| ServerError::Storage(error.message))
    }

    fn checks(&self) -> Vec<Check> {
        if self.aggregation.is_registered() {
            return Vec::new();
        }
        let aggregation = Arc::clone(&self.aggregation);
        let is_registered = move || {
            if aggregation.is_registered() {
                Ok(())
            } else {
                Err("not all APIServices of this server are available".to_owned())
            }
        };
        vec![Check::new("autoregister-completion", is_registered)]
    }

    fn source(&self) -> Option<AddedSource> {
        Some(self.aggregation.source())
    }

    /// Waits until the server has made the APIServices of its compiled versions.
    async fn ready(&self, _: &Registry) -> Result<(), ServerError> {
        self.aggregation.registered().await;
        Ok(())
    }

    async fn run(&self, host: ControllerHost) {
        let Some(unreachable) = self.unreachable.lock().take() else {
            return;
        };
        let aggregation = (Arc::clone(&self.aggregation), unreachable);
        let (requests, next) = (host.requests(NAME), host.next_registries.clone());
        run(requests, next, aggregation, &host.metrics.registry).await;
    }
}

/// The endpoint of APIServices, if the server has them.
fn endpoint(registry: &Registry) -> Option<Arc<Endpoint>> {
    registry.endpoint(APIService::GROUP, APIService::VERSION, APIService::PLURAL)
}

/// Publishes the stored APIServices before the server is ready, with the conditions that they had. A server without the kind
/// has nothing to register.
///
/// # Errors
/// If they cannot be read.
async fn publish_stored(
    registry: &Arc<Registry>,
    aggregation: &Aggregation,
) -> Result<(), ApiError> {
    let Some(endpoint) = endpoint(registry) else {
        aggregation.set_registered();
        return Ok(());
    };
    let (objects, problem) = read_all(endpoint, read).await?;
    UnreadableLog::default().note(APIService::KIND, problem.as_deref());
    let mut entries = Entries::default();
    for object in objects {
        entries.set(object, aggregation);
    }
    entries.publish(aggregation);
    Ok(())
}

/// Reads an APIService, by its name.
fn read(endpoint: &Endpoint, document: &Document) -> Option<(String, APIService)> {
    let json = document.json(endpoint.schema());
    let object = serde_json::from_slice(json.whole());
    let object: APIService = object
        .inspect_err(|error| tracing::warn!(%error, "an APIService cannot be read"))
        .ok()?;
    Some((object.metadata.name.clone().unwrap_or_default(), object))
}

/// Runs the controller; never returns while the server has APIServices.
async fn run(
    requests: Requests,
    next: Vec<Arc<Registry>>,
    (aggregation, unreachable): (Arc<Aggregation>, UnreachableNotices),
    metrics: &MetricRegistry,
) {
    let Some(endpoint) = endpoint(requests.registry()) else {
        return;
    };
    let mut controller = Controller {
        local: Local::new(next),
        entries: Entries::default(),
        checks: JoinSet::new(),
        metrics: AvailabilityMetrics::new(metrics),
        unreadable: UnreadableLog::default(),
        requests,
        aggregation,
    };
    let follower = Follower::new(endpoint, read);
    controller.follow(follower, unreachable).await;
}

/// An APIService as it was last seen, and what is known of its server.
struct Entry {
    object: APIService,
    server: Option<Arc<RemoteServer>>,
    documents: RemoteDocuments,
    /// When the documents were read.
    read_at: Option<Instant>,
    /// When to look at the server again.
    check_at: Instant,
    /// How often in succession it was not available, or its documents could not be read.
    failures: u32,
    in_check: bool,
}

/// The APIServices by name.
#[derive(Default)]
struct Entries(BTreeMap<String, Entry>);

/// The controller of APIServices: follows the stored ones, and publishes them for requests.
struct Controller {
    requests: Requests,
    aggregation: Arc<Aggregation>,
    entries: Entries,
    local: Local,
    checks: JoinSet<Outcome>,
    metrics: AvailabilityMetrics,
    unreadable: UnreadableLog,
}

impl Entries {
    /// The room for the documents of an APIService beside those of all others.
    fn room_for_documents(&self, name: &str) -> DocumentRoom {
        let others = self.0.iter().filter(|(other, _)| other.as_str() != name);
        others.fold(documents::room(), |room, (_, entry)| {
            room.beside(&entry.documents)
        })
    }

    /// Notes the present state of an APIService.
    fn set(&mut self, object: APIService, aggregation: &Aggregation) {
        let Some(name) = object.metadata.name.clone() else {
            return;
        };
        let known = self.0.get_mut(&name);
        if let Some(known) = known
            && known.object.spec == object.spec
            && known.object.metadata.uid == object.metadata.uid
        {
            known.object = object;
            return;
        }
        let target = target_of(&object);
        let server = target.map(|target| {
            let known = self.0.values().filter_map(|entry| entry.server.as_ref());
            let mut same = known.filter(|server| *server.target() == target);
            let same = same.next().cloned();
            same.unwrap_or_else(|| Arc::new(aggregation.server(target)))
        });
        let before = self.0.remove(&name);
        let before = before.filter(|before| before.server == server);
        let in_check = before.as_ref().is_some_and(|before| {
            before.in_check && before.object.metadata.uid == object.metadata.uid
        });
        let entry = Entry {
            object,
            server,
            documents: before.map_or_else(Default::default, |before| before.documents),
            // They are read again.
            read_at: None,
            check_at: Instant::now(),
            failures: 0,
            in_check,
        };
        self.0.insert(name, entry);
    }

    /// Tells requests what is known.
    fn publish(&self, aggregation: &Aggregation) {
        let (mut services, mut local) = (Vec::new(), Vec::new());
        for (name, entry) in &self.0 {
            let spec = &entry.object.spec;
            let group = spec.group.clone().unwrap_or_default();
            let version = spec.version.clone().unwrap_or_default();
            let priority = Priority {
                group: spec.group_priority_minimum,
                version: spec.version_priority,
            };
            match entry.server.clone() {
                None => local.push(LocalService {
                    group,
                    version,
                    priority,
                    is_automanaged: entry.object.metadata.labels.get(local::LABEL).is_some(),
                }),
                Some(server) => services.push(Service {
                    name: name.clone(),
                    group,
                    version,
                    priority,
                    server,
                    is_available: is_available(&entry.object),
                    documents: entry.documents.clone(),
                }),
            }
        }
        aggregation.publish(services, local);
    }
}

/// Waits until one of the catalogs changes.
async fn any_changed(generations: &mut [watch::Receiver<u64>]) {
    // An error means that a registry is gone, and this task ends with it.
    let changes = generations.iter_mut().map(|one| Box::pin(one.changed()));
    let _ = select_all(changes).await;
}

/// The server of an APIService; `None` for this one.
fn target_of(object: &APIService) -> Option<RemoteTarget> {
    let spec = &object.spec;
    let service = spec.service.as_ref()?;
    Some(RemoteTarget {
        namespace: service.namespace.clone().unwrap_or_default(),
        name: service.name.clone().unwrap_or_default(),
        port: u16::try_from(service.port).unwrap_or_default(),
        authorities: spec.ca_bundle.clone().unwrap_or_default(),
        accepts_any_certificate: spec.insecure_skip_tls_verify == Some(true),
    })
}

impl Controller {
    /// Follows the APIServices.
    async fn follow(
        &mut self,
        mut follower: Follower<String, APIService>,
        mut unreachable: UnreachableNotices,
    ) {
        let registries = std::iter::once(self.requests.registry()).chain(self.local.next());
        let mut generations: Vec<_> = registries.map(|of| of.generations()).collect();
        loop {
            let at = self.next_look().filter(|_| follower.is_complete());
            tokio::select! {
                biased;
                update = follower.next() => {
                    self.take(update);
                    if follower.is_ready() {
                        continue;
                    }
                }
                Some(outcome) = self.checks.join_next(), if !self.checks.is_empty() => {
                    if let Ok(outcome) = outcome {
                        self.finish(outcome);
                    }
                }
                () = any_changed(&mut generations) => self.local.look_now(),
                Some(name) = unreachable.recv() => self.look_soon(&name),
                () = tokio::time::sleep_until(at.unwrap_or_else(Instant::now)), if at.is_some() => {}
            }
            if follower.is_complete() {
                self.unreadable
                    .note(APIService::KIND, follower.unreadable());
                self.entries.publish(&self.aggregation);
                let entries = self.entries.0.iter();
                self.metrics
                    .set(entries.map(|(name, entry)| (name.as_str(), is_available(&entry.object))));
                self.start_checks();
                let objects = self.entries.0.iter();
                let objects = objects.map(|(name, entry)| (name.as_str(), &entry.object));
                self.local.update(&self.requests, objects.collect()).await;
                // The start does not wait for those.
                for name in follower.unreadable_names() {
                    self.local.leave_out(name);
                }
                if self.local.is_complete() {
                    self.aggregation.set_registered();
                }
            }
        }
    }

    /// Notes what the follower tells.
    fn take(&mut self, update: Update<String, APIService>) {
        match update {
            Update::Added(object) | Update::Modified(object) => {
                self.local.look_now();
                self.entries.set(object, &self.aggregation);
            }
            Update::Deleted(name) => {
                self.local.look_now();
                self.entries.0.remove(&name);
            }
            Update::Complete(listed) => {
                self.entries.0.retain(|name, _| listed.contains(name));
                let names = self.entries.0.keys().cloned();
                self.local.begin(names.collect());
            }
            Update::Ended(Some(error)) => tracing::warn!(%error, "cannot follow APIServices"),
            Update::Begun | Update::Alive | Update::Ended(None) => {}
        }
    }

    /// When something is to be done without an event.
    fn next_look(&self) -> Option<Instant> {
        let entries = self.entries.0.values();
        let checks = entries.filter(|entry| entry.needs_checks() && !entry.in_check);
        let checks = checks.map(|entry| entry.check_at);
        checks.chain(self.local.next_look()).min()
    }

    /// Looks at a server that a request did not reach, unless it is known not to be available: then it is looked at again soon.
    fn look_soon(&mut self, name: &str) {
        if let Some(entry) = self.entries.0.get_mut(name)
            && is_available(&entry.object)
        {
            entry.check_at = Instant::now();
        }
    }

    fn start_checks(&mut self) {
        let now = Instant::now();
        for (name, entry) in &mut self.entries.0 {
            if entry.in_check || !entry.needs_checks() || entry.check_at > now {
                continue;
            }
            entry.in_check = true;
            let interval = self.aggregation.documents_interval();
            let are_old = |read: Instant| now.duration_since(read) >= interval;
            let subject = Subject {
                name: name.clone(),
                uid: entry.object.metadata.uid.clone(),
                spec: entry.object.spec.clone(),
                server: entry.server.clone(),
                documents: entry.documents.clone(),
                reads_documents: entry.read_at.is_none_or(are_old) || entry.documents.is_stale,
            };
            let aggregation = Arc::clone(&self.aggregation);
            self.checks
                .spawn(check::run(self.requests.clone(), aggregation, subject));
        }
    }

    /// Notes what a look at a server found.
    fn finish(&mut self, outcome: Outcome) {
        if let Some(reason) = outcome.failed {
            self.metrics.failed(&outcome.name, reason);
        }
        let room = self.entries.room_for_documents(&outcome.name);
        let Some(entry) = self.entries.0.get_mut(&outcome.name) else {
            return;
        };
        // It may be another APIService of that name, or with another server.
        if entry.object.metadata.uid != outcome.uid || entry.server != outcome.server {
            return;
        }
        entry.in_check = false;
        if outcome.is_refused {
            self.local.leave_out(&outcome.name);
        }
        let now = Instant::now();
        if let Some(documents) = outcome.documents {
            entry.documents = documents.within(room);
            entry.read_at = outcome.has_documents.then_some(now);
        }
        // It was changed since the look began.
        if entry.object.spec != outcome.spec {
            entry.read_at = None;
            entry.check_at = now;
            return;
        }
        if outcome.is_available && outcome.has_documents {
            entry.failures = 0;
            let interval = self.aggregation.documents_interval();
            entry.check_at = now + CHECK_INTERVAL.min(interval);
        } else {
            let wait = FIRST_RETRY.saturating_mul(1 << entry.failures.min(16));
            entry.failures = entry.failures.saturating_add(1);
            entry.check_at = now + wait.min(CHECK_INTERVAL);
        }
    }
}

impl Entry {
    /// Whether there is a server to look at, or the condition of a version of this server is not right.
    fn needs_checks(&self) -> bool {
        self.server.is_some() || !local::is_local_condition(&self.object)
    }
}
