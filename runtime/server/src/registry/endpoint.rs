//! One resource in one version: the operations that http calls.

use std::sync::Arc;

use apiloom_meta::codec::Format;
use apiloom_meta::patch::Patch;
use apiloom_meta::schema::Schema;
use apiloom_meta::{ApiError, Object, ResourceDef, StatusDetails};
use futures_util::stream::BoxStream;

use super::{CreateOptions, DeleteOptions, FieldValidation, GetOptions, ListOptions, PatchOptions, RequestContext, UpdateOptions};

/// One resource in one version. Objects go in and come out in this version, with apiVersion, kind and resourceVersion.
#[derive(Debug)]
pub struct Endpoint {}

/// A list of objects.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// The objects, in key order.
    pub items: Vec<Object>,
    /// The state the list shows.
    pub resource_version: String,
    /// Token for the next page; empty at the end.
    pub continue_token: String,
    /// How many follow, when known and nothing was selected.
    pub remaining_item_count: Option<i64>,
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
    pub object: Arc<Object>,
}

/// Events in order. An `Err` is sent as an ERROR event and ends the stream.
pub type WatchEvents = BoxStream<'static, Result<WatchEvent, ApiError>>;

impl Endpoint {
    /// What the kind declares.
    pub fn def(&self) -> &ResourceDef {
        todo!()
    }
    /// The schema of this version, `apiVersion`, `kind` and metadata included.
    pub fn schema(&self) -> &Arc<Schema> {
        todo!()
    }
    /// The version objects are stored in (for `storageVersionHash`).
    pub fn storage_version(&self) -> &str {
        todo!()
    }
    /// The text of the deprecation warning of this version at this release, if one is due.
    pub fn deprecation_warning(&self) -> Option<&str> {
        todo!()
    }
    /// Decodes a body: apiVersion and kind defaulted and checked, unknown and duplicate fields as asked.
    ///
    /// # Errors
    /// BadRequest with the texts of the API.
    pub fn decode(&self, _ctx: &RequestContext, _body: &[u8], _format: Format, _validation: FieldValidation) -> Result<Object, ApiError> {
        todo!()
    }
    /// Creates an object; gives it as stored. `namespace` is the URL's, `None` for cluster-scoped kinds.
    ///
    /// # Errors
    /// The errors of the API's create.
    pub async fn create(&self, _ctx: &RequestContext, _namespace: Option<&str>, _object: Object, _options: &CreateOptions) -> Result<Object, ApiError> {
        todo!()
    }
    /// One object.
    ///
    /// # Errors
    /// NotFound, Timeout for a resourceVersion in the future.
    pub async fn get(&self, _ctx: &RequestContext, _namespace: Option<&str>, _name: &str, _options: &GetOptions) -> Result<Object, ApiError> {
        todo!()
    }
    /// Objects of a namespace, or of all of them (`None`).
    ///
    /// # Errors
    /// BadRequest for selectors and tokens, Expired, Timeout.
    pub async fn list(&self, _ctx: &RequestContext, _namespace: Option<&str>, _options: &ListOptions) -> Result<Listed, ApiError> {
        todo!()
    }
    /// Changes to objects of a namespace, or of all of them. Errors before the first event keep HTTP semantics; later
    /// ones are items of the stream.
    ///
    /// # Errors
    /// BadRequest for selectors, internal text for an unparsable resourceVersion.
    pub async fn watch(&self, _ctx: &RequestContext, _namespace: Option<&str>, _options: &ListOptions) -> Result<WatchEvents, ApiError> {
        todo!()
    }
    /// Replaces an object, or its status with `subresource == "status"`; `true` when it was created.
    ///
    /// # Errors
    /// The errors of the API's update.
    pub async fn update(&self, _ctx: &RequestContext, _namespace: Option<&str>, _name: &str, _subresource: &str, _object: Object, _options: &UpdateOptions) -> Result<(Object, bool), ApiError> {
        todo!()
    }
    /// Patches an object or its status; re-applied to the fresh object on a race.
    ///
    /// # Errors
    /// The errors of the API's patch.
    pub async fn patch(&self, _ctx: &RequestContext, _namespace: Option<&str>, _name: &str, _subresource: &str, _patch: &Patch, _options: &PatchOptions) -> Result<Object, ApiError> {
        todo!()
    }
    /// Deletes an object, or begins to.
    ///
    /// # Errors
    /// NotFound, Conflict for preconditions, what admission says.
    pub async fn delete(&self, _ctx: &RequestContext, _namespace: Option<&str>, _name: &str, _options: &DeleteOptions) -> Result<Deleted, ApiError> {
        todo!()
    }
    /// Deletes every selected object; gives the list as it was.
    ///
    /// # Errors
    /// The first error other than NotFound; some objects may be gone then.
    pub async fn delete_collection(&self, _ctx: &RequestContext, _namespace: Option<&str>, _list: &ListOptions, _options: &DeleteOptions) -> Result<Listed, ApiError> {
        todo!()
    }
}
