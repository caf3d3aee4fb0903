//! Get, list and watch of an endpoint: [`Reads`], over the watch cache or the store (`stored.rs` and the files of the verbs), or by
//! code of the program (`by_code.rs`).

mod by_code;
pub(super) mod cached;
mod code_events;
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
use futures_util::future::Either;

use self::by_code::CodeReads;
use self::list::ListResult;
use self::stored::StoredReads;
use self::watch_events::WatchEvents;
use crate::objects::document::Document;
use crate::objects::versioned_resource::VersionedResource;
use crate::options::{GetOptions, ListOptions, RequestContext};

/// Get, list and watch of one resource in one version. Objects are returned in this version, with apiVersion, kind and
/// resourceVersion.
#[derive(Debug)]
pub struct Reads(ReadSource);

/// Where objects are read from, decided once. The futures of the store are in no box, which most requests would pay for.
#[derive(Debug)]
enum ReadSource {
    Stored(Arc<StoredReads>),
    Code(CodeReads),
}

impl Reads {
    /// The reads of a resource: by the code of its kind, if it has some, else from the store.
    pub(super) fn new(resource: Arc<VersionedResource>) -> Self {
        Self(match resource.reader().cloned() {
            Some(code) => ReadSource::Code(CodeReads::new(resource, code)),
            None => ReadSource::Stored(Arc::new(StoredReads::new(resource))),
        })
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
        match &self.0 {
            ReadSource::Stored(reads) => Either::Left(reads.get(ctx, namespace, name, options)),
            ReadSource::Code(reads) => Either::Right(Box::pin(reads.get(ctx, namespace, name))),
        }
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
        match &self.0 {
            ReadSource::Stored(reads) => Either::Left(reads.list(ctx, namespace, options)),
            ReadSource::Code(reads) => Either::Right(Box::pin(reads.list(ctx, namespace, options))),
        }
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
        match &self.0 {
            ReadSource::Stored(reads) => {
                let opened = reads.watch(ctx, namespace, options);
                Either::Left(opened.map_ok(WatchEvents::from))
            }
            ReadSource::Code(reads) => {
                let opened = reads.watch(ctx, namespace, options);
                Either::Right(Box::pin(opened.map_ok(WatchEvents::from)))
            }
        }
    }

    /// The reads of a store; `None` for code.
    pub fn stored(&self) -> Option<&Arc<StoredReads>> {
        match &self.0 {
            ReadSource::Stored(reads) => Some(reads),
            ReadSource::Code(_) => None,
        }
    }
}
