//! One resource in one version: the operations that http calls, each in the file of its verb.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use apiloom_meta::kind::Scope;
use apiloom_meta::schema::Schema;
use apiloom_meta::{ApiError, GroupVersionKind, Object, ResourceDef, StatusDetails};
use apiloom_storage::cache::WatchCache;
use apiloom_storage::{Revision, StorageError};
use arc_swap::ArcSwap;
use tokio::sync::watch;

use crate::registry::large::LargeDocuments;
use crate::registry::objects::document::Document;
use crate::registry::objects::items::Items;
use crate::registry::objects::json::Json;
use crate::registry::objects::kind::Kind;
use crate::registry::objects::kind_cache::{CacheTask, KindCache};
use crate::registry::objects::kind_version::{KindVersion, VersionIndex};
use crate::registry::objects::prepared::Prepared;
use crate::registry::objects::served::Served;
use crate::registry::options::RequestContext;
use crate::registry::reads::field_values::FieldValues;
use crate::registry::reads::remaining::Remaining;
use crate::registry::rules::admission::Chain;

/// One resource in one version. Objects go in and come out in this version, with apiVersion, kind and resourceVersion.
#[derive(Debug)]
pub struct Endpoint {
    pub(super) kind: Arc<Kind>,
    pub(super) version: VersionIndex,
    pub(super) shared: Arc<Shared>,
    pub(super) deprecation_warning: Option<String>,
    /// What tells this endpoint from every other one of the process.
    pub(crate) id: EndpointId,
    /// `None` when reads go to storage.
    pub(super) cache: Option<Arc<WatchCache<Served>>>,
    /// Keeps the task of the cache running.
    _cache_task: Option<Arc<CacheTask>>,
    /// Becomes true when the endpoint is no longer served.
    ended: watch::Sender<bool>,
    /// How much was left behind the pages given lately.
    pub(super) remaining: Remaining,
    /// What lists by a selectable field ask for, when this version is not stored.
    pub(super) field_values: FieldValues,
}

/// The number of an endpoint; none is used twice in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EndpointId(u64);

impl EndpointId {
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// What every endpoint of a registry uses.
pub(super) struct Shared {
    /// The admission plugins.
    pub(super) chain: Chain,
    /// The source of generated name suffixes.
    pub(super) names: Box<dyn Fn() -> String + Send + Sync>,
    /// Room for large documents.
    pub(super) large: LargeDocuments,
    /// The most bytes of an object as it is stored.
    pub(super) max_object_bytes: usize,
    /// Every registered kind in every version, for the texts about bodies of another kind.
    pub(super) registered: ArcSwap<Vec<GroupVersionKind>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("chain", &self.chain)
            .finish_non_exhaustive()
    }
}

/// A list of objects.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// The objects, in key order.
    pub items: Items,
    /// The state the list shows.
    pub resource_version: String,
    /// Token for the next page; empty at the end.
    pub continue_token: String,
    /// How many follow, when known and nothing was selected.
    pub remaining_item_count: Option<i64>,
}

/// An object as a write left it.
#[derive(Clone, Debug)]
pub struct Written {
    /// The object.
    pub object: Object,
    /// The same as JSON, when it was made for the store already.
    pub json: Option<Json<'static>>,
}

impl Deref for Written {
    type Target = Object;

    fn deref(&self) -> &Object {
        &self.object
    }
}

impl From<Object> for Written {
    fn from(object: Object) -> Self {
        Self { object, json: None }
    }
}

/// What a delete did.
#[derive(Clone, Debug)]
pub enum Deleted {
    /// The object is gone (or would be, in a dry run); answered with a Status that carries these details.
    Gone(StatusDetails),
    /// The object is gone and its kind answers with its last state (namespaces).
    Returned(Object),
    /// The object stays for its finalizers or its grace period; this is its state.
    Pending(Object),
}

/// Type of a watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the API's own")]
pub enum WatchEventKind {
    Added,
    Modified,
    Deleted,
    Bookmark,
}

/// One event of a watch.
#[derive(Clone, Debug)]
pub struct WatchEvent {
    /// Its type.
    pub kind: WatchEventKind,
    /// The object; for a bookmark only metadata.resourceVersion, and the annotation
    /// `k8s.io/initial-events-end` on the one that ends the initial events.
    pub object: Document,
}

impl Endpoint {
    /// A version of a kind. Without a cache, reads go to storage.
    pub(super) fn new(
        kind: Arc<Kind>,
        version: VersionIndex,
        shared: Arc<Shared>,
        cache: Option<KindCache>,
        deprecation_warning: Option<String>,
    ) -> Self {
        let (cache, task) = cache.map(|of| (of.cache, of.task)).unzip();
        Self {
            kind,
            version,
            shared,
            deprecation_warning,
            id: EndpointId::next(),
            cache,
            _cache_task: task,
            ended: watch::Sender::new(false),
            remaining: Remaining::default(),
            field_values: FieldValues::default(),
        }
    }

    /// Ends the watches of the endpoint: it is no longer served.
    pub(super) fn end(&self) {
        self.ended.send_replace(true);
    }

    /// Becomes true when the endpoint is no longer served.
    pub(crate) fn ended(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }

    /// What the kind declares.
    pub fn def(&self) -> &ResourceDef {
        &self.version().def
    }
    /// Whether every server serves the kind.
    pub(crate) fn is_own(&self) -> bool {
        self.kind.is_own
    }
    /// The schema of this version, `apiVersion`, `kind` and metadata included.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.version().schema
    }
    /// The version objects are stored in (for `storageVersionHash`).
    pub fn storage_version(&self) -> &str {
        &self.kind.versions[self.kind.storage_version].def.version
    }
    /// Every version of the kind with its schema, in order of registration, served or not.
    pub(crate) fn versions(&self) -> impl Iterator<Item = (&ResourceDef, &Arc<Schema>)> {
        self.kind
            .versions
            .iter()
            .map(|version| (&version.def, &version.schema))
    }
    /// The text of the deprecation warning of this version at this release, if one is due.
    pub fn deprecation_warning(&self) -> Option<&str> {
        self.deprecation_warning.as_deref()
    }
    /// Makes room for a document of this size; see [`LargeDocuments::reserve_for`].
    pub(crate) async fn reserve(&self, ctx: &RequestContext, bytes: usize) {
        self.shared.large.reserve_for(ctx, bytes).await;
    }

    /// See [`LargeDocuments::read_query`]. A request with a large document has its room already.
    pub(crate) async fn read_query<T>(
        &self,
        ctx: &RequestContext,
        bytes: usize,
        read: impl FnOnce() -> T,
    ) -> T {
        if ctx.is_large() {
            return read();
        }
        self.shared.large.read_query(bytes, read).await
    }

    pub(super) fn version(&self) -> &KindVersion {
        &self.kind.versions[self.version]
    }

    /// Writes apiVersion and kind; [`Endpoint::decode`] checked them, other callers need not know them.
    pub(super) fn set_type(&self, object: &mut Object) {
        object.set_type(&self.version().api_version, &self.def().kind);
    }

    /// Checks the namespace of a body against the URL's and fills it in. A cluster-scoped kind has none, also when
    /// the body names one.
    pub(super) fn match_namespace(
        &self,
        object: &mut Object,
        namespace: Option<&str>,
    ) -> Result<(), ApiError> {
        if self.kind.scope == Scope::Cluster {
            object.set_meta_str("namespace", "");
            return Ok(());
        }
        let namespace = namespace.unwrap_or_default();
        if object.namespace().is_empty() {
            object.set_meta_str("namespace", namespace);
            return Ok(());
        }
        if object.namespace() == namespace {
            return Ok(());
        }
        Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ))
    }

    /// NotFound for an object of this resource.
    pub(super) fn not_found(&self, name: &str) -> ApiError {
        ApiError::not_found(&self.kind.resource, name)
    }

    /// Writes an object where nothing is, or over the `expected` revision, and lets the watch cache have it too.
    pub(super) async fn store(
        &self,
        key: &str,
        prepared: &Arc<Prepared>,
        expected: Option<Revision>,
    ) -> Result<Revision, StorageError> {
        let kind = &self.kind;
        if self.cache.is_some() {
            kind.handed.put(key, Arc::clone(prepared));
        }
        let bytes = prepared.stored.clone();
        let written = match expected {
            None => kind.store_create(key, bytes).await,
            Some(expected) => kind.store_update(key, expected, bytes).await,
        };
        if written.is_err() {
            kind.handed.forget(key, prepared);
        }
        written
    }

    /// The object as a client sees it after a write: what a read of the written bytes would give.
    pub(super) fn written(
        &self,
        key: &str,
        prepared: &Prepared,
        revision: Revision,
        mut object: Object,
    ) -> Result<Written, ApiError> {
        if self.version == self.kind.storage_version {
            object.set_meta_str("resourceVersion", &revision.to_string());
            let json = Some(prepared.served(revision));
            return Ok(Written { object, json });
        }
        let object = self
            .kind
            .read(key, &prepared.stored, revision, self.version)?;
        Ok(object.into())
    }

    /// Shows the warnings of the kind's rules about a written object.
    pub(super) fn warn(&self, ctx: &RequestContext, object: &Object) {
        let Some((version, strategy)) = self.kind.strategy(self.version) else {
            return;
        };
        let texts = if version == self.version {
            strategy.warnings(ctx, object)
        } else {
            // It was converted there to be judged.
            match self.kind.convert(object.clone(), self.version, version) {
                Ok(converted) => strategy.warnings(ctx, &converted),
                Err(_) => return,
            }
        };
        texts.into_iter().for_each(|text| ctx.warn(text));
    }
}
