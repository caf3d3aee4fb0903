//! Reading: one object, or a list of them.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;

use apiloom_meta::ListMeta;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::object::ApiObject;
use super::options::{ListOptions, VersionMatch};
use super::request::{RawRequest, decode, decode_error};
use crate::error::{DecodeError, Error};

/// The read of one object; awaiting it sends it.
#[derive(Debug)]
#[must_use = "a request is sent when it is awaited"]
pub struct GetRequest<K> {
    pub(super) request: RawRequest,
    pub(super) kind: String,
    pub(super) object: PhantomData<fn() -> K>,
}

impl<K: DeserializeOwned + Send + 'static> GetRequest<K> {
    /// Accepts a state as old as this: `0` for any that the server has in memory. Default: the present one.
    pub fn resource_version(mut self, version: impl AsRef<str>) -> Self {
        self.request = self.request.query("resourceVersion", version);
        self
    }

    /// Awaits the object, or `None` if it does not exist.
    ///
    /// # Errors
    /// All others.
    pub async fn optional(self) -> Result<Option<K>, Error> {
        match self.await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl<K: DeserializeOwned + Send + 'static> IntoFuture for GetRequest<K> {
    type Output = Result<K, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let path = self.request.shown_path();
            let bytes = self.request.bytes().await?;
            decode(&bytes, &path, &self.kind)
        })
    }
}

/// A list of objects, or one page of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectList<K> {
    /// The resourceVersion of the list, and the token for the next page.
    pub metadata: ListMeta,
    /// The objects.
    pub items: Vec<K>,
    /// The objects that could not be decoded; empty unless [`ListRequest::keep_undecodable`] was called.
    pub undecodable: Vec<Undecodable>,
}

impl<K> ObjectList<K> {
    /// The resourceVersion of the list, from which a watch misses nothing; empty if the server sent none.
    pub fn resource_version(&self) -> &str {
        let version = self.metadata.resource_version.as_deref();
        version.unwrap_or_default()
    }

    /// The token for the next page; `None` after the last one.
    pub fn continue_token(&self) -> Option<&str> {
        let token = self.metadata.continue_token.as_deref();
        token.filter(|token| !token.is_empty())
    }
}

/// An object that is not of the expected form, with what could be read of it. What could not be read is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecodable {
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// Uid of the object.
    pub uid: String,
    /// The resourceVersion of the object.
    pub resource_version: String,
    /// The problem.
    pub error: DecodeError,
}

/// A list of objects; awaiting it sends it and gives one answer: all objects, or a page if there is a limit.
///
/// [`ListRequest::all`] and [`ListRequest::stream`] read all pages.
#[derive(Debug)]
#[must_use = "a request is sent when it is awaited"]
pub struct ListRequest<K> {
    /// The request without options.
    pub(super) make: ListSource,
    pub(super) options: ListOptions,
    pub(super) keeps_undecodable: bool,
    pub(super) is_retried: bool,
    pub(super) object: PhantomData<fn() -> K>,
}

/// Makes the requests of the pages of one list.
#[derive(Clone, Debug)]
pub(super) struct ListSource {
    pub(super) client: super::builder::Client,
    pub(super) path: Result<String, String>,
    pub(super) kind: String,
    pub(super) accept: Option<&'static str>,
}

impl ListSource {
    /// A GET of the collection.
    pub(super) fn request(&self) -> RawRequest {
        let path = self.path.clone().map_err(Error::Request);
        let request = RawRequest::new(self.client.clone(), http::Method::GET, path);
        let request = request.max_list_bytes(self.client.settings().max_list_bytes);
        match self.accept {
            Some(accept) => request.accept(accept),
            None => request,
        }
    }
}

impl<K: ApiObject> ListRequest<K> {
    /// Sets all options.
    pub fn options(mut self, options: &ListOptions) -> Self {
        self.options = options.clone();
        self
    }

    /// Selects by labels: a text or a `LabelQuery`.
    pub fn labels(mut self, selector: impl fmt::Display) -> Self {
        self.options.label_selector = selector.to_string();
        self
    }

    /// Selects by fields: a text or a `FieldSelector`.
    pub fn fields(mut self, selector: impl fmt::Display) -> Self {
        self.options.field_selector = selector.to_string();
        self
    }

    /// Most objects of one answer.
    pub fn limit(mut self, limit: u32) -> Self {
        self.options.limit = Some(limit);
        self
    }

    /// Continues where another answer ended.
    pub fn continue_from(mut self, token: impl Into<String>) -> Self {
        self.options.continue_token = Some(token.into());
        self
    }

    /// Asks for a state: `0` for any that the server has in memory. Default: the present one.
    pub fn resource_version(mut self, version: impl Into<String>) -> Self {
        self.options.resource_version = Some(version.into());
        self
    }

    /// How the resourceVersion is meant.
    pub fn version_match(mut self, version_match: VersionMatch) -> Self {
        self.options.resource_version_match = Some(version_match);
        self
    }

    /// Objects that cannot be decoded are put into [`ObjectList::undecodable`]. Default: the first one is an error of the
    /// whole list.
    pub fn keep_undecodable(mut self) -> Self {
        self.keeps_undecodable = true;
        self
    }

    /// Sends each request at most once, for callers with a backoff of their own.
    pub fn without_retry(mut self) -> Self {
        self.is_retried = false;
        self
    }

    /// One answer.
    pub(super) async fn page(&self, options: &ListOptions) -> Result<ObjectList<K>, Error> {
        let mut room = self.make.client.settings().max_list_bytes;
        self.page_within(options, &mut room).await
    }

    /// One answer of at most `room` bytes, which becomes smaller by those of the answer.
    pub(crate) async fn page_within(
        &self,
        options: &ListOptions,
        room: &mut usize,
    ) -> Result<ObjectList<K>, Error> {
        let mut request = options.add_to(self.make.request()).max_list_bytes(*room);
        if !self.is_retried {
            request = request.without_retry();
        }
        let path = request.shown_path();
        let bytes = request.bytes().await?;
        *room = room.saturating_sub(bytes.len());
        decode_list(&bytes, &path, &self.make.kind, self.keeps_undecodable)
    }
}

impl<K: ApiObject> IntoFuture for ListRequest<K> {
    type Output = Result<ObjectList<K>, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.page(&self.options).await })
    }
}

#[derive(Deserialize)]
struct Page<T> {
    #[serde(default)]
    metadata: ListMeta,
    // Servers in Go write null for a list without items.
    items: Option<Vec<T>>,
}

/// Decodes a list. It is decoded item by item only after an item could not be decoded.
pub(super) fn decode_list<K: ApiObject>(
    bytes: &[u8],
    path: &str,
    kind: &str,
    keeps_undecodable: bool,
) -> Result<ObjectList<K>, Error> {
    let error = match decode::<Page<K>>(bytes, path, kind) {
        Ok(page) => {
            return Ok(ObjectList {
                metadata: page.metadata,
                items: page.items.unwrap_or_default(),
                undecodable: Vec::new(),
            });
        }
        Err(error @ Error::Decode(_)) => error,
        Err(other) => return Err(other),
    };
    #[derive(Deserialize)]
    struct RawPage<'a> {
        #[serde(default)]
        metadata: ListMeta,
        #[serde(borrow)]
        items: Option<Vec<&'a RawValue>>,
    }
    let Ok(page) = serde_json::from_slice::<RawPage<'_>>(bytes) else {
        return Err(error);
    };
    let mut list = ObjectList {
        metadata: page.metadata,
        items: Vec::new(),
        undecodable: Vec::new(),
    };
    for item in page.items.unwrap_or_default() {
        let json = item.get().as_bytes();
        match serde_json::from_slice(json) {
            Ok(object) => list.items.push(object),
            Err(problem) => {
                let found = undecodable(&problem, json, path, kind);
                if !keeps_undecodable {
                    return Err(Error::Decode(Box::new(found.error)));
                }
                list.undecodable.push(found);
            }
        }
    }
    Ok(list)
}

/// What can be read of an object that cannot be decoded.
pub(super) fn undecodable(
    error: &serde_json::Error,
    json: &[u8],
    path: &str,
    kind: &str,
) -> Undecodable {
    let identity = Identity::of(json);
    let mut error = decode_error(error, json, path, kind);
    error.name = match (&*identity.namespace, &*identity.name) {
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    Undecodable {
        namespace: identity.namespace,
        name: identity.name,
        uid: identity.uid,
        resource_version: identity.resource_version,
        error,
    }
}

/// The metadata by which an object is found, read without its other fields.
#[derive(Default)]
pub(super) struct Identity {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) resource_version: String,
    /// Whether it has the annotation that ends the initial events of a watch.
    pub(super) ends_initial_events: bool,
}

impl Identity {
    pub(super) fn of(json: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Outer<'a> {
            #[serde(borrow)]
            metadata: Option<&'a RawValue>,
        }
        // Each field by itself: one of a wrong type does not hide the others.
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Fields<'a> {
            #[serde(borrow)]
            namespace: Option<&'a RawValue>,
            #[serde(borrow)]
            name: Option<&'a RawValue>,
            #[serde(borrow)]
            uid: Option<&'a RawValue>,
            #[serde(borrow)]
            resource_version: Option<&'a RawValue>,
            #[serde(borrow)]
            annotations: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct Annotations {
            #[serde(rename = "k8s.io/initial-events-end")]
            initial_events_end: Option<String>,
        }
        let outer = serde_json::from_slice::<Outer<'_>>(json).ok();
        let metadata = outer.and_then(|outer| outer.metadata);
        let fields = metadata.and_then(|raw| serde_json::from_str::<Fields<'_>>(raw.get()).ok());
        let Some(fields) = fields else {
            return Self::default();
        };
        let text = |raw: Option<&RawValue>| {
            let text = raw.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
            text.unwrap_or_default()
        };
        let annotations = fields
            .annotations
            .and_then(|raw| serde_json::from_str::<Annotations>(raw.get()).ok());
        let end = annotations.and_then(|annotations| annotations.initial_events_end);
        Self {
            namespace: text(fields.namespace),
            name: text(fields.name),
            uid: text(fields.uid),
            resource_version: text(fields.resource_version),
            ends_initial_events: end.as_deref() == Some("true"),
        }
    }
}
