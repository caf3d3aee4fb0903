//! One served resource in one version: its reads, its writes, and the signal that ends its watches.

mod bodies;
mod delete_collection;
mod first_encodings;
mod subresource;
mod unreadable;

use std::any::Any;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use apiloom_meta::kind::{SmolStr, SubresourceDef, Verb};
use apiloom_meta::schema::Schema;
use apiloom_meta::{ApiError, ResourceDef};
use apiloom_storage::cache::EncodingKey;
use bytes::Bytes;
use tokio::sync::watch;

use self::first_encodings::FirstEncodings;
use self::subresource::Handler;
pub use self::subresource::SubresourceAnswer;
pub use self::subresource::{
    CreateSubresource, GetSubresource, Subresource, SubresourceRequest, SubresourceVerbs,
    UpdateSubresource, subresource_verbs,
};
pub(crate) use self::subresource::{GivenHandlers, body_definitions};

use crate::large::{LARGE_BYTES, LargeDocuments};
use crate::objects::document::Document;
use crate::objects::kind::Kind;
use crate::objects::kind_cache::{CacheTask, KindCache};
use crate::objects::kind_version::VersionIndex;
use crate::objects::version_schema::VersionSchema;
use crate::objects::versioned_resource::VersionedResource;
use crate::reads::Reads;
use crate::reads::event::WatchEvent;
use crate::writes::Writes;
use crate::writes::settings::WriteSettings;

/// Which patches are accepted, apart from those of server-side apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchFormats {
    /// JSON patches, merge patches and strategic merge patches.
    All,
    /// JSON patches and merge patches.
    WithoutStrategic,
    /// The same, with the refusal of a handler for all others.
    InHandler,
}

/// One served resource in one version.
pub struct Endpoint {
    resource: Arc<VersionedResource>,
    reads: Reads,
    writes: Arc<Writes>,
    /// The subresources with bodies of another kind, or with code of their own.
    bodies: Vec<Bodies>,
    /// The values of the handlers of subresources with `connect`.
    connecters: Vec<(SmolStr, Arc<dyn Any + Send + Sync>)>,
    deprecation_warning: Option<String>,
    first_encodings: FirstEncodings,
    /// Number of concurrent deletes of a deletecollection.
    delete_collection_workers: NonZeroUsize,
    /// Unique id of the endpoint in this process.
    pub id: EndpointId,
    /// Keeps the task of the cache running.
    _cache_task: Option<Arc<CacheTask>>,
    /// True once the endpoint is no longer served. Made when it is first needed: most kinds have no watch of a client.
    ended: OnceLock<watch::Sender<bool>>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("resource", &self.resource)
            .field("bodies", &self.bodies)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// A subresource with bodies of its own: a Scale, or what a handler takes and gives.
#[derive(Debug)]
struct Bodies {
    subresource: SmolStr,
    /// `None` for the object itself.
    input: Option<Arc<Endpoint>>,
    /// `None` for the object itself, and for a Status.
    output: Option<Arc<Endpoint>>,
    handler: Option<Handler>,
}

/// Id of an endpoint; unique in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EndpointId(u64);

impl EndpointId {
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// State that all endpoints of a registry share.
#[derive(Clone, Debug)]
pub(super) struct EndpointContext {
    pub(super) writes: Arc<WriteSettings>,
    /// Capacity for large documents.
    pub(super) large: LargeDocuments,
    delete_collection_workers: NonZeroUsize,
    /// The program's handlers of subresources.
    pub(super) handlers: Arc<GivenHandlers>,
    /// The kind of the bodies of the subresource `scale`.
    pub(super) scale: Option<Arc<ResourceDef>>,
}

impl EndpointContext {
    pub(super) fn new(
        writes: WriteSettings,
        delete_collection_workers: NonZeroUsize,
        handlers: GivenHandlers,
        scale: Option<Arc<ResourceDef>>,
    ) -> Self {
        Self {
            writes: Arc::new(writes),
            large: LargeDocuments::new(),
            delete_collection_workers,
            handlers: Arc::new(handlers),
            scale,
        }
    }
}

impl Endpoint {
    /// An endpoint for one version of a kind. Without a cache, reads go to the store.
    pub(super) fn new(
        kind: Arc<Kind>,
        version: VersionIndex,
        shared: &EndpointContext,
        cache: Option<KindCache>,
        deprecation_warning: Option<String>,
    ) -> Self {
        let (cache, task) = cache.map(|of| (of.cache, of.task)).unzip();
        let large = kind.versions.large_documents(&shared.large);
        let resource = Arc::new(VersionedResource {
            kind,
            version,
            cache,
            large,
        });
        let bodies: Vec<Bodies> = resource
            .def()
            .subresources
            .iter()
            .filter_map(|sub| Self::bodies_of_subresource(sub, &resource, shared))
            .collect();
        let connecters = resource.def().subresources.iter();
        let connecters = connecters.filter(|sub| sub.connects);
        let connecters = connecters
            .filter_map(|sub| {
                let value = shared.handlers.value_of(sub.handler.as_ref()?);
                Some((sub.name.clone(), value))
            })
            .collect();
        let mut scales = bodies.iter().filter(|bodies| bodies.handler.is_none());
        let writes = scales.find_map(|scale| Some(Arc::clone(&scale.input.as_ref()?.writes)));
        Self {
            reads: Reads::new(Arc::clone(&resource)),
            writes: Arc::new(Writes::new(
                Arc::clone(&resource),
                Arc::clone(&shared.writes),
                writes,
            )),
            resource,
            bodies,
            connecters,
            deprecation_warning,
            first_encodings: FirstEncodings::default(),
            delete_collection_workers: shared.delete_collection_workers,
            id: EndpointId::next(),
            _cache_task: task,
            ended: OnceLock::new(),
        }
    }

    /// The bodies and the code of a subresource; `None` if requests for it send and receive the object itself, without
    /// code.
    fn bodies_of_subresource(
        sub: &SubresourceDef,
        parent: &Arc<VersionedResource>,
        shared: &EndpointContext,
    ) -> Option<Bodies> {
        let endpoint = |def: ResourceDef| {
            let is_other = def.gvk() != parent.def().gvk();
            is_other.then(|| {
                let kind = Kind::of_bodies(def, &parent.kind);
                Arc::new(Self::of_bodies(kind, parent, shared))
            })
        };
        if sub.scale_paths().is_some() {
            // A kind with scales is refused where these have no kind.
            let scale = endpoint(ResourceDef::clone(shared.scale.as_deref()?));
            return Some(Bodies {
                subresource: sub.name.clone(),
                input: scale.clone(),
                output: scale,
                handler: None,
            });
        }
        let handler = Handler::of(sub, &shared.handlers)?;
        let input = endpoint(handler.input());
        let output = if sub.input == sub.output {
            input.clone()
        } else {
            handler.output().and_then(endpoint)
        };
        Some(Bodies {
            subresource: sub.name.clone(),
            input,
            output,
            handler: Some(handler),
        })
    }

    /// The bodies of a subresource of `parent`, which are decoded and shown like objects, but not served.
    fn of_bodies(kind: Kind, parent: &Arc<VersionedResource>, shared: &EndpointContext) -> Self {
        let resource = Arc::new(VersionedResource {
            kind: Arc::new(kind),
            version: 0,
            cache: None,
            large: shared.large.clone(),
        });
        let settings = Arc::clone(&shared.writes);
        Self {
            reads: Reads::new(Arc::clone(&resource)),
            writes: Arc::new(Writes::of_bodies(
                Arc::clone(&resource),
                Arc::clone(parent),
                settings,
            )),
            resource,
            bodies: Vec::new(),
            connecters: Vec::new(),
            deprecation_warning: None,
            first_encodings: FirstEncodings::default(),
            delete_collection_workers: shared.delete_collection_workers,
            id: EndpointId::next(),
            _cache_task: None,
            ended: OnceLock::new(),
        }
    }

    /// Which patches a subresource, or the object itself, accepts.
    pub fn patch_formats(&self, subresource: &str) -> PatchFormats {
        let def = self.def();
        let is_scale = def.dialect.merges_scale && self.writes.is_scale(subresource);
        if def.strategic_merge_patch || is_scale {
            PatchFormats::All
        } else if def.dialect.negotiates_in_handler {
            PatchFormats::InHandler
        } else {
            PatchFormats::WithoutStrategic
        }
    }

    /// Get, list and watch.
    pub fn reads(&self) -> &Reads {
        &self.reads
    }
    /// Create, update, patch and delete.
    pub fn writes(&self) -> &Writes {
        &self.writes
    }
    /// The key under which the store has an object. Without a namespace for kinds of the cluster.
    ///
    /// # Errors
    /// A namespace or a name that cannot be part of a key.
    pub fn storage_key(&self, namespace: Option<&str>, name: &str) -> Result<String, ApiError> {
        self.resource.kind.keys.key(namespace, name)
    }
    /// The kind in this version, with its cache.
    pub fn resource(&self) -> &VersionedResource {
        &self.resource
    }

    /// The encoding of an event by `make`, shared by the watchers of this endpoint with the same `number`. That of a
    /// change is kept with the change for `max_age`, that of an initial event for half a second. `None` for an event
    /// that is not from the watch cache.
    pub fn encoding(
        &self,
        event: &WatchEvent,
        number: u64,
        max_age: Option<Duration>,
        make: impl FnOnce() -> Vec<u8>,
    ) -> Option<Bytes> {
        let Some(change) = &event.change else {
            let Document::Encoded(object) = &event.object else {
                return None;
            };
            return Some(self.first_encodings.get(object, number, make));
        };
        let cache = self.resource.cache.as_ref()?;
        let key = EncodingKey(self.id.0, number);
        Some(cache.encoding(change, key, max_age, make))
    }

    /// Ends the watches of the endpoint, since it is no longer served.
    pub(super) fn end(&self) {
        self.ended
            .get_or_init(watch::Sender::default)
            .send_replace(true);
    }

    /// A channel that becomes true when the endpoint is no longer served.
    pub fn ended(&self) -> watch::Receiver<bool> {
        self.ended.get_or_init(watch::Sender::default).subscribe()
    }

    /// Whether the endpoint is no longer served.
    pub fn has_ended(&self) -> bool {
        self.ended.get().is_some_and(|ended| *ended.borrow())
    }

    /// The definition of the kind in this version.
    pub fn def(&self) -> &ResourceDef {
        self.resource.def()
    }
    /// The same, to share it.
    pub fn shared_def(&self) -> &Arc<ResourceDef> {
        &self.resource.version().def
    }
    /// Whether this is a kind that every apiloom server has.
    pub fn is_own(&self) -> bool {
        self.resource.kind.is_own
    }
    /// Whether no objects are created any more, since the definition of the kind is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.resource.kind.is_terminating.load(Ordering::Acquire)
    }
    /// The schema of this version, including `apiVersion`, `kind` and metadata.
    #[inline]
    pub fn schema(&self) -> &Arc<Schema> {
        self.resource.version().schema()
    }
    /// Fails if the schema of this version cannot be used; makes it if this was not done yet.
    pub fn check_schema(&self) -> Result<(), ApiError> {
        self.resource.version().version_schema.check()
    }
    /// Whether the schemas that a request with this verb needs are made, or so small that the request can make them. Otherwise
    /// [`Registry::prepare`](crate::Registry::prepare) makes them first.
    pub fn is_prepared(&self, verb: Verb) -> bool {
        self.bytes_to_make(verb) < LARGE_BYTES
    }
    /// The bytes of which schemas are to be made for a request with this verb: that of this version, with its rules if the written object is
    /// validated, and that of the stored version.
    pub(crate) fn bytes_to_make(&self, verb: Verb) -> usize {
        let (own, stored) = self.needed_schemas();
        let own = own.bytes_to_make(validates(verb));
        own.saturating_add(stored.map_or(0, |stored| stored.bytes_to_make(false)))
    }
    /// The schema of this version, and that of the stored one if it is another.
    fn needed_schemas(&self) -> (&VersionSchema, Option<&VersionSchema>) {
        let own = &self.resource.version().version_schema;
        let stored = &self.resource.kind.versions.stored_version().version_schema;
        let is_other = !Arc::ptr_eq(own, stored);
        (own, is_other.then_some(&**stored))
    }
    /// Makes the schemas that a request with this verb needs.
    pub(crate) fn make_schemas(&self, verb: Verb) {
        let (own, stored) = self.needed_schemas();
        own.make(validates(verb));
        if let Some(stored) = stored {
            stored.make(false);
        }
    }
    /// The schema of this version, made when it is first needed.
    pub fn version_schema(&self) -> &Arc<VersionSchema> {
        &self.resource.version().version_schema
    }
    /// The `apiVersion` in which objects are stored (for `storageVersionHash`).
    pub fn storage_version(&self) -> &str {
        &self.resource.kind.versions.stored_version().def.version
    }
    /// All versions of the kind with their schemas, in order of registration, whether served or not.
    pub fn versions(&self) -> impl Iterator<Item = (&Arc<ResourceDef>, &Arc<VersionSchema>)> {
        let versions = self.resource.kind.versions.all.iter();
        versions.map(|version| (&version.def, &version.version_schema))
    }
    /// The text of the deprecation warning for this version, if it is deprecated in the server's release.
    pub fn deprecation_warning(&self) -> Option<&str> {
        self.deprecation_warning.as_deref()
    }
}

/// Whether a request with this verb writes an object that is validated: a delete needs no rules.
fn validates(verb: Verb) -> bool {
    matches!(verb, Verb::Create | Verb::Update | Verb::Patch)
}
