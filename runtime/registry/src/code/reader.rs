//! Readers: users' code for get, list and watch of kinds without a store.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use apiloom_meta::kind::Verb;
use apiloom_meta::{ApiError, GroupResource, Object, Resource};
use async_trait::async_trait;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _};

use crate::objects::code::{CodeEventStream, CodeList, ObjectEvent, Read, encoded};
use crate::options::{ListOptions, RequestContext};

/// Get, list and watch of one version of a kind without a store (`store = code`), such as search results, metrics or rows of
/// a database.
///
/// The server does the rest, as for stored kinds: tables, label and field selectors, pages, initial events and bookmarks of
/// watches, discovery, OpenAPI, authorization and metrics. Requests have their deadlines, after which the futures are
/// dropped. `namespace` is `None` for kinds of the cluster, and for a list or a watch of all namespaces.
///
/// ```
/// # use apiloom_meta::kind::Verb;
/// # use apiloom_meta::{ApiError, GroupResource, ObjectMeta};
/// # use apiloom_registry::{ListOptions, ObjectList, Reader, RequestContext};
/// # use async_trait::async_trait;
/// # #[apiloom_macros::resource(group = "example.com", version = "v1", cluster, crate = apiloom_meta)]
/// # struct Tenant {
/// #     metadata: ObjectMeta,
/// # }
/// /// The tenants of another system.
/// struct Tenants(Vec<Tenant>);
///
/// #[async_trait]
/// impl Reader<Tenant> for Tenants {
///     const VERBS: &'static [Verb] = &[Verb::Get, Verb::List];
///
///     async fn get(
///         &self,
///         _: &RequestContext,
///         _: Option<&str>,
///         name: &str,
///     ) -> Result<Tenant, ApiError> {
///         let found = self.0.iter().find(|tenant| tenant.metadata.name.as_deref() == Some(name));
///         let resource = GroupResource::new("example.com", "tenants");
///         found.cloned().ok_or_else(|| ApiError::not_found(&resource, name))
///     }
///
///     async fn list(
///         &self,
///         _: &RequestContext,
///         _: Option<&str>,
///         _: &ListOptions,
///     ) -> Result<ObjectList<Tenant>, ApiError> {
///         Ok(ObjectList::new(self.0.clone(), "1"))
///     }
/// }
/// ```
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not read objects of `{K}`",
    note = "write `#[async_trait] impl Reader<{K}> for {Self}`"
)]
pub trait Reader<K: Resource>: Send + Sync + 'static {
    /// The verbs that it answers, of get, list and watch. The definition of the kind has the same ones (`verbs(only = [..])`),
    /// or the server does not start; so discovery lists them. A watch needs a list.
    const VERBS: &'static [Verb];

    /// Whether [`Reader::list`] cuts pages, by the `limit` and the `continue_token` of its options; a list without a limit is
    /// complete. Default no: the server calls it without them, and cuts pages in the order of namespaces and names. Later pages
    /// then show the state that is present when they are read.
    const CUTS_PAGES: bool = false;

    /// Reads one object, with its name and namespace in the metadata.
    ///
    /// # Errors
    /// The error for the client, NotFound if there is no such object. Default MethodNotAllowed.
    async fn get(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<K, ApiError> {
        let _ = (ctx, namespace, name);
        Err(unsupported::<K>(Verb::Get))
    }

    /// Lists objects. The selectors of the options and the namespace are hints by which it may return fewer: the server
    /// leaves out all that was not asked for.
    ///
    /// # Errors
    /// The error for the client. Default MethodNotAllowed.
    async fn list(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<ObjectList<K>, ApiError> {
        let _ = (ctx, namespace, options);
        Err(unsupported::<K>(Verb::List))
    }

    /// Follows the changes after the `resource_version` of the options, which is that of a list or of an event; if it is empty,
    /// the changes from now on. Each change has a resourceVersion of its own, which its object has in the metadata. The
    /// selectors and the namespace are hints, as for a list. Objects that exist already are no changes: where a client asked
    /// for them, the server lists them first.
    ///
    /// The stream may end at any time, for instance if it cannot keep up: clients resume. An error of it, which clients are
    /// told, is its end.
    ///
    /// # Errors
    /// The error for the client, Expired if changes after that resourceVersion are no longer known. Default MethodNotAllowed.
    async fn watch(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<ObjectEvents<K>, ApiError> {
        let _ = (ctx, namespace, options);
        Err(unsupported::<K>(Verb::Watch))
    }
}

/// MethodNotAllowed, as of a resource of kube-apiserver whose storage does not have the verb.
pub(super) fn unsupported<K: Resource>(verb: Verb) -> ApiError {
    let resource = GroupResource::new(K::GROUP, K::PLURAL);
    ApiError::method_not_supported(&resource, verb.as_str())
}

/// A list by code, complete or one page.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ObjectList<K> {
    /// The objects, each with its name in the metadata, and its namespace.
    pub items: Vec<K>,
    /// resourceVersion of the state that the list shows, from which a watch goes on; empty if there is none.
    pub resource_version: String,
    /// Token for the next page, if the code cuts pages; empty on the last page.
    pub continue_token: String,
    /// Number of objects on the following pages, if the code cuts pages; `None` if it is unknown.
    pub remaining_item_count: Option<i64>,
}

impl<K> ObjectList<K> {
    /// A complete list of a state with this resourceVersion.
    pub fn new(items: Vec<K>, resource_version: impl Into<String>) -> Self {
        Self {
            items,
            resource_version: resource_version.into(),
            continue_token: String::new(),
            remaining_item_count: None,
        }
    }

    /// The same as a page before others.
    #[must_use]
    pub fn with_next(self, continue_token: impl Into<String>, remaining: Option<i64>) -> Self {
        Self {
            continue_token: continue_token.into(),
            remaining_item_count: remaining,
            ..self
        }
    }
}

/// The events of a watch by code.
pub struct ObjectEvents<K>(BoxStream<'static, Result<ObjectEvent<K>, ApiError>>);

impl<K> ObjectEvents<K> {
    /// The events of a stream. It is polled only while the client reads.
    pub fn new(
        stream: impl Stream<Item = Result<ObjectEvent<K>, ApiError>> + Send + 'static,
    ) -> Self {
        Self(stream.boxed())
    }
}

impl<K> Stream for ObjectEvents<K> {
    type Item = Result<ObjectEvent<K>, ApiError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(cx)
    }
}

impl<K> fmt::Debug for ObjectEvents<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectEvents").finish_non_exhaustive()
    }
}

/// Adapter from a typed reader to documents.
pub(crate) struct TypedReader<K, R> {
    reader: R,
    kind: PhantomData<fn() -> K>,
}

impl<K, R> TypedReader<K, R> {
    pub(crate) fn new(reader: R) -> Self {
        Self {
            reader,
            kind: PhantomData,
        }
    }
}

#[async_trait]
impl<K: Resource, R: Reader<K>> Read for TypedReader<K, R> {
    fn verbs(&self) -> &'static [Verb] {
        R::VERBS
    }

    fn cuts_pages(&self) -> bool {
        R::CUTS_PAGES
    }

    async fn get(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Object, ApiError> {
        encoded(&self.reader.get(ctx, namespace, name).await?)
    }

    async fn list(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<CodeList, ApiError> {
        let listed = self.reader.list(ctx, namespace, options).await?;
        Ok(CodeList {
            items: Box::new(listed.items.into_iter().map(|item| encoded(&item))),
            resource_version: listed.resource_version,
            continue_token: listed.continue_token,
            remaining_item_count: listed.remaining_item_count,
        })
    }

    async fn watch(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<CodeEventStream, ApiError> {
        let events = self.reader.watch(ctx, namespace, options).await?;
        let events = events.map(|event| event?.try_map(|object| encoded(&object)));
        Ok(events.boxed())
    }
}
