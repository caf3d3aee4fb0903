//! The code of a kind without a store, type-erased: [`Read`] and [`Write`].

use std::sync::Arc;

use apiloom_meta::kind::{Resource, Verb};
use apiloom_meta::{ApiError, Object};
use async_trait::async_trait;
use futures_util::stream::BoxStream;

use crate::options::{CreateOptions, DeleteOptions, ListOptions, RequestContext, UpdateOptions};

/// The code of one version of a kind; empty for a kind with a store.
#[derive(Clone, Default)]
pub(crate) struct KindCode {
    pub(crate) reader: Option<Arc<dyn Read>>,
    pub(crate) writer: Option<Arc<dyn Write>>,
}

/// A type-erased [`Reader`](crate::Reader).
#[async_trait]
pub(crate) trait Read: Send + Sync {
    /// See [`Reader::VERBS`](crate::Reader::VERBS).
    fn verbs(&self) -> &'static [Verb];
    /// See [`Reader::CUTS_PAGES`](crate::Reader::CUTS_PAGES).
    fn cuts_pages(&self) -> bool;
    /// See [`Reader::get`](crate::Reader::get).
    async fn get(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Object, ApiError>;
    /// See [`Reader::list`](crate::Reader::list).
    async fn list(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<CodeList, ApiError>;
    /// See [`Reader::watch`](crate::Reader::watch).
    async fn watch(
        &self,
        ctx: &RequestContext,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<CodeEventStream, ApiError>;
}

/// A type-erased [`Writer`](crate::Writer) or [`Handler`](crate::Handler).
#[async_trait]
pub(crate) trait Write: Send + Sync {
    /// See [`Writer::VERBS`](crate::Writer::VERBS).
    fn verbs(&self) -> &'static [Verb];
    /// See [`Writer::create`](crate::Writer::create).
    async fn create(
        &self,
        ctx: &RequestContext,
        object: &Object,
        options: &CreateOptions,
    ) -> Result<Object, ApiError>;
    /// See [`Writer::update`](crate::Writer::update).
    async fn update(
        &self,
        ctx: &RequestContext,
        old: &Object,
        new: &Object,
        options: &UpdateOptions,
    ) -> Result<Object, ApiError>;
    /// See [`Writer::delete`](crate::Writer::delete).
    async fn delete(
        &self,
        ctx: &RequestContext,
        object: &Object,
        options: &DeleteOptions,
    ) -> Result<Option<Object>, ApiError>;
}

/// A list of the code. Objects are encoded one by one, so that only the typed ones are in memory together.
pub(crate) struct CodeList {
    pub(crate) items: Box<dyn Iterator<Item = Result<Object, ApiError>> + Send>,
    pub(crate) resource_version: String,
    pub(crate) continue_token: String,
    pub(crate) remaining_item_count: Option<i64>,
}

/// The events of a watch of the code.
pub(crate) type CodeEventStream = BoxStream<'static, Result<ObjectEvent<Object>, ApiError>>;

/// A change of an object that code tells to watches. The objects have the resourceVersion of the change in their metadata,
/// `old` excepted.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectEvent<K> {
    /// The object is new.
    Added(K),
    /// The object has changed. A watch with selectors shows the change of an object that it selects no more as a deletion,
    /// and so on.
    Modified {
        /// The object before the change.
        old: K,
        /// The object after the change.
        new: K,
    },
    /// The object is gone; this was its last state.
    Deleted(K),
    /// Nothing has changed up to this resourceVersion: watches can resume from it.
    Bookmark(String),
}

impl<K> ObjectEvent<K> {
    /// The same event of converted objects.
    ///
    /// # Errors
    /// Those of the conversion.
    pub(crate) fn try_map<T, E>(
        self,
        mut convert: impl FnMut(K) -> Result<T, E>,
    ) -> Result<ObjectEvent<T>, E> {
        Ok(match self {
            Self::Added(new) => ObjectEvent::Added(convert(new)?),
            Self::Modified { old, new } => ObjectEvent::Modified {
                old: convert(old)?,
                new: convert(new)?,
            },
            Self::Deleted(old) => ObjectEvent::Deleted(convert(old)?),
            Self::Bookmark(version) => ObjectEvent::Bookmark(version),
        })
    }
}

/// An object of the code's type as a document, still without apiVersion and kind.
///
/// # Errors
/// InternalError if it is no JSON object.
pub(crate) fn encoded<K: Resource>(typed: &K) -> Result<Object, ApiError> {
    let value = serde_json::to_value(typed);
    let value = value.map_err(|error| ApiError::internal(error.to_string()))?;
    Object::from_value(value)
        .ok_or_else(|| ApiError::internal("the answer of the code is not an object"))
}

/// A document as an object of the code's type.
///
/// # Errors
/// BadRequest if the type does not have what the document has.
pub(crate) fn decoded<K: Resource>(object: &Object) -> Result<K, ApiError> {
    let typed = object.to_typed::<K>();
    typed.map_err(|error| ApiError::bad_request(error.to_string()))
}
