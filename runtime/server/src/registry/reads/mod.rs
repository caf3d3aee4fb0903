//! Get, list and watch of an endpoint: [`Reads`].

pub(super) mod cached;
pub(super) mod continue_token;
pub(super) mod event;
pub(super) mod field_values;
pub(super) mod get;
mod lifetime;
pub(super) mod list;
pub(super) mod lister;
pub(super) mod page_counts;
pub(super) mod selection;
pub(super) mod stored;
pub(super) mod unreadable;
pub(super) mod view;
pub(super) mod watch;
pub(super) mod watch_events;

use std::sync::Arc;

use apiloom_meta::ApiError;
use futures_util::TryFutureExt as _;

use self::list::ListResult;
use self::stored::StoredReads;
use self::watch_events::WatchEvents;
use crate::registry::objects::document::Document;
use crate::registry::objects::versioned_resource::VersionedResource;
use crate::registry::options::{GetOptions, ListOptions, RequestContext};

/// Get, list and watch of one resource in one version. Objects are returned in this version, with apiVersion, kind and
/// resourceVersion.
#[derive(Debug)]
pub struct Reads(Arc<StoredReads>);

impl Reads {
    pub(super) fn new(resource: Arc<VersionedResource>) -> Self {
        Self(Arc::new(StoredReads::new(resource)))
    }

    /// Reads one object.
    ///
    /// # Errors
    /// NotFound; Timeout for a future resourceVersion.
    pub fn get(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        name: &str,
        options: &GetOptions,
    ) -> impl Future<Output = Result<Document, ApiError>> + Send {
        self.0.get(ctx, namespace, name, options)
    }

    /// Lists the objects of a namespace, or of all namespaces (`None`).
    ///
    /// # Errors
    /// BadRequest for invalid selectors and tokens, Expired for a compacted revision, Timeout for a future one.
    pub fn list(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> impl Future<Output = Result<ListResult, ApiError>> + Send {
        self.0.list(ctx, namespace, options)
    }

    /// Watches the objects of a namespace, or of all namespaces. Errors before the first event are errors of the
    /// request; later ones are ERROR events of the stream. Without `timeout_seconds` the stream ends after a random
    /// time of 30 to 60 minutes.
    ///
    /// # Errors
    /// BadRequest for invalid selectors; a 500 without a reason for a malformed resourceVersion.
    pub fn watch(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> impl Future<Output = Result<WatchEvents, ApiError>> + Send {
        let opened = self.0.watch(ctx, namespace, options);
        opened.map_ok(WatchEvents::from)
    }

    /// The reads of a store; `None` for others.
    pub(crate) fn stored(&self) -> Option<&Arc<StoredReads>> {
        Some(&self.0)
    }
}
