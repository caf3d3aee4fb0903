//! `InformerFactory`: the informers of a program. Those of the same objects are one.

mod feeds;
mod source;
#[cfg(test)]
mod tests;

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use apiloom_meta::kind::{ClusterKind, NamespacedKind, verbs};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use parking_lot::Mutex;

use super::informer::{Informer, InformerBuilder, SyncError};
use super::resource_source::ResourceSource;
use super::strip::Strip;
use crate::client::{
    AllNamespaces, ApiObject, Client, Cluster, Kind, Namespaced, ResourceClient, Scope,
};
use crate::metrics::Registry;
pub(super) use feeds::metadata;
use feeds::{Derive, Feeds, Identity};
use source::FactorySource;

/// An informer, without the type of its objects.
pub(super) trait AnyInformer: Any + Send + Sync {
    fn start(&self);
    fn wait_for_sync(&self, limit: Duration) -> BoxFuture<'_, Result<(), SyncError>>;
    fn shutdown(&self) -> BoxFuture<'_, ()>;
    fn register_metrics(&self, registry: &Registry);
}

impl<K: ApiObject> AnyInformer for Informer<K> {
    fn start(&self) {
        Informer::start(self);
    }
    fn wait_for_sync(&self, limit: Duration) -> BoxFuture<'_, Result<(), SyncError>> {
        Informer::wait_for_sync(self, limit).boxed()
    }
    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Informer::shutdown(self).boxed()
    }
    fn register_metrics(&self, registry: &Registry) {
        Informer::register_metrics(self, registry);
    }
}

fn downcast<K: ApiObject>(informer: &Arc<dyn AnyInformer>) -> Option<Informer<K>> {
    let informer: &dyn Any = &**informer;
    informer.downcast_ref::<Informer<K>>().cloned()
}

/// The caches that have no complete state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncErrors(
    /// One error for each of them.
    pub Vec<SyncError>,
);

impl fmt::Display for SyncErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SyncErrors {}

/// The informers that a factory shares with those that were made of it.
struct SharedInformers {
    client: Client,
    informers: Mutex<HashMap<Identity, Arc<dyn AnyInformer>>>,
}

/// Makes the informers of a program and starts them together. Two informers of the same objects (type, resource,
/// namespace, selectors, fields that are left out) share one cache and one watch.
///
/// Informers of other types of the same objects have a cache each, and one watch where one of them has all that the others show
/// when these are started: a typed informer takes its objects from the dynamic one, and that of metadata from the dynamic or a
/// typed one. The cache of the other one is read from then on, and is one with default settings: what
/// [`InformerFactory::informer_with`] makes may leave out objects or change them. If it is shut down before them, they ask the
/// server. Informers of two Rust types have a watch each if there is no dynamic one.
///
/// The methods that narrow the objects make another factory, which shares the informers with this one; so does a clone. Factories
/// that were made by `new` have informers of their own, and each can be shut down without the other. If they were made of one
/// [`Client`] or its clones, their informers of the same objects share the cache and the watch, which end when the last of
/// these informers was shut down or dropped, started or not. Handlers and subscribers are told of nothing before their own
/// informer is started. Not shared are the informers with other settings, and those of a client that was made of another one:
/// with other headers, or over a wrapped transport.
///
/// ```no_run
/// use std::time::Duration;
/// use apiloom_client::cache::InformerFactory;
/// # use apiloom_client::{Client, ClusterKind, Kind, NamespacedKind, verbs};
/// # async fn example<Flunder: Kind + NamespacedKind + verbs::All, Fischer: Kind + ClusterKind + verbs::All>(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let factory = InformerFactory::new(&client);
/// let flunders = factory.namespace("prod").labels("app=web").informer::<Flunder>();
/// let fischers = factory.cluster_informer::<Fischer>();
/// factory.start();
/// factory.wait_for_sync(Duration::from_secs(30)).await?;
/// println!("{} flunders, {} fischers", flunders.lister().len(), fischers.lister().len());
/// factory.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct InformerFactory {
    shared: Arc<SharedInformers>,
    namespace: Option<String>,
    labels: String,
    fields: String,
    strip: Strip,
}

impl InformerFactory {
    /// A factory for all objects of a server, without managedFields.
    pub fn new(client: &Client) -> Self {
        Self {
            shared: Arc::new(SharedInformers {
                client: client.clone(),
                informers: Mutex::new(HashMap::new()),
            }),
            namespace: None,
            labels: String::new(),
            fields: String::new(),
            strip: Strip::default(),
        }
    }
    /// Only objects of one namespace. Kinds without namespaces are not affected.
    #[must_use]
    pub fn namespace(&self, namespace: impl Into<String>) -> Self {
        Self {
            namespace: Some(namespace.into()),
            ..self.clone()
        }
    }
    /// Only objects that a label selector selects: a text or a `LabelQuery`.
    #[must_use]
    pub fn labels(&self, selector: impl fmt::Display) -> Self {
        Self {
            labels: selector.to_string(),
            ..self.clone()
        }
    }
    /// Only objects that a field selector selects: a text or a `FieldSelector`.
    #[must_use]
    pub fn fields(&self, selector: impl fmt::Display) -> Self {
        Self {
            fields: selector.to_string(),
            ..self.clone()
        }
    }
    /// Leaves out these fields; by default [`Strip::MANAGED_FIELDS`].
    #[must_use]
    pub fn strip(&self, strip: Strip) -> Self {
        Self {
            strip,
            ..self.clone()
        }
    }

    /// The informer of a namespaced kind, in the namespace of this factory or in all.
    pub fn informer<K: Kind + NamespacedKind + verbs::List + verbs::Watch>(&self) -> Informer<K> {
        match &self.namespace {
            Some(namespace) => self.make(Namespaced::new(namespace)),
            None => self.make(AllNamespaces),
        }
    }
    /// As [`InformerFactory::informer`], with other settings. They take effect if this call makes the informer: an
    /// existing one keeps its own.
    pub fn informer_with<K: Kind + NamespacedKind + verbs::List + verbs::Watch>(
        &self,
        configure: impl FnOnce(InformerBuilder<K>) -> InformerBuilder<K>,
    ) -> Informer<K> {
        match &self.namespace {
            Some(namespace) => self.make_with(Namespaced::new(namespace), configure),
            None => self.make_with(AllNamespaces, configure),
        }
    }
    /// The informer of a kind without namespaces.
    pub fn cluster_informer<K: Kind + ClusterKind + verbs::List + verbs::Watch>(
        &self,
    ) -> Informer<K> {
        self.make(Cluster)
    }

    fn make<K: Kind + verbs::List + verbs::Watch, S: Scope>(&self, scope: S) -> Informer<K> {
        let client = self.shared.client.resource(K::api_resource(), scope);
        self.make_of(&client, feeds::of_json)
    }
    fn make_with<K: Kind + verbs::List + verbs::Watch, S: Scope>(
        &self,
        scope: S,
        configure: impl FnOnce(InformerBuilder<K>) -> InformerBuilder<K>,
    ) -> Informer<K> {
        let client = self.shared.client.resource(K::api_resource(), scope);
        let identity = self.identity(&client);
        self.known(&identity).unwrap_or_else(|| {
            // Without the lock: the program's code may ask for other informers.
            let informer = configure(self.builder(&client, feeds::of_json)).build();
            self.keep(identity, informer)
        })
    }

    fn identity<K: ApiObject, S: Scope>(&self, client: &ResourceClient<K, S>) -> Identity {
        Identity {
            object: TypeId::of::<K>(),
            resource: client.resource().clone(),
            namespace: client.scope().namespace().map(str::to_owned),
            labels: self.labels.clone(),
            fields: self.fields.clone(),
            strip: self.strip,
        }
    }

    /// Begins an informer of what a client reads.
    fn builder<K: ApiObject + verbs::List + verbs::Watch, S: Scope>(
        &self,
        client: &ResourceClient<K, S>,
        derive: Derive<K>,
    ) -> InformerBuilder<K> {
        let (feeds, identity) = (self.feeds(), self.identity(client));
        let name = client.resource().group_resource().to_string();
        let server = ResourceSource::new(client)
            .labels(&self.labels)
            .fields(&self.fields)
            .strip(self.strip);
        let traits = feeds.server().clone();
        let source = FactorySource::new(server, move || feeds.fuller(&identity, derive));
        Informer::builder(source).name(name).server(traits)
    }

    /// The informer of what a client reads, with default settings.
    pub(super) fn make_of<K: ApiObject + verbs::List + verbs::Watch, S: Scope>(
        &self,
        client: &ResourceClient<K, S>,
        derive: Derive<K>,
    ) -> Informer<K> {
        let identity = self.identity(client);
        self.known(&identity).unwrap_or_else(|| {
            let feeds = self.feeds();
            let informer = feeds.informer(&identity, || self.builder(client, derive));
            self.keep(identity, informer)
        })
    }

    fn keep<K: ApiObject>(&self, identity: Identity, informer: Informer<K>) -> Informer<K> {
        let mut informers = self.shared.informers.lock();
        let known = informers
            .entry(identity)
            .or_insert_with(|| Arc::new(informer.clone()));
        // Another call may have been first.
        downcast(known).unwrap_or(informer)
    }

    /// The caches that factories of the same client share.
    fn feeds(&self) -> Arc<Feeds> {
        self.shared.client.shared()
    }
    pub(super) fn client(&self) -> &Client {
        &self.shared.client
    }
    /// The namespace that it is limited to.
    pub(super) fn only_namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    fn known<K: ApiObject>(&self, identity: &Identity) -> Option<Informer<K>> {
        downcast(self.shared.informers.lock().get(identity)?)
    }

    fn informers(&self) -> Vec<Arc<dyn AnyInformer>> {
        let informers = self.shared.informers.lock();
        informers.values().cloned().collect()
    }
    /// Starts the informers that were made so far. One that is made later needs another call, or a start of its own.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn start(&self) {
        for informer in self.informers() {
            informer.start();
        }
    }
    /// Waits until all informers that were made so far have a complete state.
    ///
    /// # Errors
    /// If some have none after this time, or were not started: one error for each, with its last failure.
    pub async fn wait_for_sync(&self, limit: Duration) -> Result<(), SyncErrors> {
        let informers = self.informers();
        let waits = informers
            .iter()
            .map(|informer| informer.wait_for_sync(limit));
        let results = join_all(waits).await;
        let mut errors: Vec<SyncError> = results.into_iter().filter_map(Result::err).collect();
        errors.sort_by_key(ToString::to_string);
        if errors.is_empty() {
            return Ok(());
        }
        Err(SyncErrors(errors))
    }
    /// Adds the metrics of all informers that were made so far to a registry.
    pub fn register_metrics(&self, registry: &Registry) {
        for informer in self.informers() {
            informer.register_metrics(registry);
        }
    }
    /// Shuts all informers down; see [`Informer::shutdown`].
    pub async fn shutdown(&self) {
        let informers = self.informers();
        join_all(informers.iter().map(|informer| informer.shutdown())).await;
    }
}

impl fmt::Debug for InformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerFactory")
            .field("namespace", &self.namespace)
            .field("labels", &self.labels)
            .field("fields", &self.fields)
            .field("strip", &self.strip)
            .finish_non_exhaustive()
    }
}
