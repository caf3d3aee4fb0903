//! One resource in one version: the state that its reads and writes share.

use std::sync::Arc;

use apiloom_meta::field::go_quote;
use apiloom_meta::schema::Schema;
use apiloom_meta::{ApiError, GroupKind, GroupResource, Object, ResourceDef};
use apiloom_storage::cache::WatchCache;

use super::code::{Read, Write};
use super::kind::Kind;
use super::kind_version::{KindVersion, VersionIndex};
use super::normalizer::CacheNormalizer;
use crate::large::LargeDocuments;
use crate::options::RequestContext;

/// One resource in one version.
#[derive(Debug)]
pub struct VersionedResource {
    pub kind: Arc<Kind>,
    pub(crate) version: VersionIndex,
    /// The watch cache; `None` if reads go to the store.
    pub cache: Option<Arc<WatchCache<CacheNormalizer>>>,
    pub(crate) large: LargeDocuments,
}

impl VersionedResource {
    pub(crate) fn version(&self) -> &KindVersion {
        &self.kind.versions[self.version]
    }
    pub(crate) fn def(&self) -> &ResourceDef {
        &self.version().def
    }
    /// The group and resource of requests.
    pub fn group_resource(&self) -> &GroupResource {
        &self.version().resource
    }
    /// The group and kind of requests.
    pub(crate) fn group_kind(&self) -> &GroupKind {
        &self.version().group_kind
    }
    pub(crate) fn schema(&self) -> &Arc<Schema> {
        self.version().schema()
    }

    /// Whether requests can name objects of it: in the store, or by code. Reviews, which are only created, and the bodies of
    /// subresources have none.
    pub fn has_objects(&self) -> bool {
        self.def().has_store || self.reader().is_some()
    }

    /// The code that reads the objects of a kind without a store.
    pub(crate) fn reader(&self) -> Option<&Arc<dyn Read>> {
        self.version().code.reader.as_ref()
    }

    /// The code that writes the objects of a kind without a store.
    pub(crate) fn writer(&self) -> Option<&Arc<dyn Write>> {
        self.version().code.writer.as_ref()
    }

    /// NotFound for an object of this resource.
    pub(crate) fn not_found(&self, name: &str) -> ApiError {
        ApiError::not_found(self.group_resource(), name)
    }

    /// Sets apiVersion and kind. Those of a body were checked when it was decoded; other callers may leave them out. They stay as
    /// they are where validation refuses others.
    pub(crate) fn set_type(&self, object: &mut Object) {
        let is_typed = !object.kind().is_empty() && !object.api_version().is_empty();
        if is_typed && self.def().dialect.validates_type {
            return;
        }
        object.set_type(&self.version().api_version, &self.def().kind);
    }

    /// The error `Flunder in version "v1" cannot be handled as a Flunder: WHY`. What kube-apiserver decodes an unstructured object
    /// into is of the kind that the object says.
    pub(crate) fn cannot_handle(&self, kind: &str, version: &str, why: &str) -> ApiError {
        let def = self.def();
        let expected = if def.dialect.is_unstructured {
            kind
        } else {
            &*def.kind
        };
        ApiError::bad_request(format!(
            "{kind} in version {} cannot be handled as a {expected}: {why}",
            go_quote(version)
        ))
    }

    /// The same error for an object of this kind and version.
    pub(crate) fn unusable(&self, why: &str) -> ApiError {
        let def = self.def();
        self.cannot_handle(&def.kind, &def.version, why)
    }

    /// Reserves capacity for a document of this size; see [`LargeDocuments::reserve_for`].
    pub async fn reserve(&self, ctx: &RequestContext, bytes: usize) {
        self.large.reserve_for(ctx, bytes).await;
    }

    /// See [`LargeDocuments::read_query`]. A request with a large document has its capacity already.
    pub async fn read_query<T>(
        &self,
        ctx: &RequestContext,
        bytes: usize,
        read: impl FnOnce() -> T,
    ) -> T {
        if ctx.is_large() {
            return read();
        }
        self.large.read_query(bytes, read).await
    }
}
