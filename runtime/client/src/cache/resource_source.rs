//! `ResourceSource`: lists and watches the objects of a [`ResourceClient`], for an informer.

use std::future::ready;
use std::sync::Arc;

use apiloom_meta::kind::verbs;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};

use super::object::ObjectKey;
use super::source::{
    ListItem, ListPage, ListRequest, ListWatch, SourceError, SourceErrorKind, Undecodable,
    WatchItem, WatchRequest, WatchStream,
};
use super::strip::{LAST_APPLIED, MANAGED_FIELDS, Strip, StrippedObject};
use crate::client::{
    self, ApiObject, ListOptions, ResourceClient, Scope, VersionMatch, WatchEvent,
};
use crate::error::Error;

/// The objects of a client that selectors select, without the fields that are not cached.
///
/// ```no_run
/// use apiloom_client::cache::{Informer, ResourceSource, Strip};
/// # use apiloom_client::{Client, Kind, NamespacedKind};
/// # fn example<Flunder: Kind + NamespacedKind + apiloom_client::verbs::All>(client: Client) {
/// let source = ResourceSource::new(&client.namespaced::<Flunder>("default"))
///     .labels("app=web")
///     .strip(Strip::MANAGED_FIELDS | Strip::LAST_APPLIED);
/// let flunders = Informer::builder(source).name("flunders").build();
/// # }
/// ```
pub struct ResourceSource<K, S> {
    client: ResourceClient<K, S>,
    options: ListOptions,
    strip: Strip,
}

impl<K: ApiObject, S: Scope> ResourceSource<K, S> {
    /// All objects of a client, without managedFields.
    pub fn new(client: &ResourceClient<K, S>) -> Self
    where
        K: verbs::List + verbs::Watch,
    {
        Self {
            client: client.clone(),
            options: ListOptions::default(),
            strip: Strip::default(),
        }
    }
    /// Selects by labels: a text or a `LabelQuery`.
    #[must_use]
    pub fn labels(mut self, selector: impl std::fmt::Display) -> Self {
        self.options = self.options.labels(selector);
        self
    }
    /// Selects by fields: a text or a `FieldSelector`.
    #[must_use]
    pub fn fields(mut self, selector: impl std::fmt::Display) -> Self {
        self.options = self.options.fields(selector);
        self
    }
    /// The fields that are left out; by default [`Strip::MANAGED_FIELDS`].
    #[must_use]
    pub fn strip(mut self, strip: Strip) -> Self {
        self.strip = strip;
        self
    }

    /// The source with the type that decodes without the fields that are left out.
    fn typed<const STRIP: u8>(&self) -> StrippedSource<K, S, STRIP> {
        StrippedSource {
            client: self.client.decode_as(),
            options: self.options.clone(),
        }
    }
    fn source(&self) -> Arc<dyn ListWatch<K>> {
        const BOTH: u8 = MANAGED_FIELDS | LAST_APPLIED;
        match self.strip.bits() {
            MANAGED_FIELDS => Arc::new(self.typed::<MANAGED_FIELDS>()),
            LAST_APPLIED => Arc::new(self.typed::<LAST_APPLIED>()),
            BOTH => Arc::new(self.typed::<BOTH>()),
            _ => Arc::new(self.typed::<0>()),
        }
    }
}

impl<K: ApiObject, S: Scope> ListWatch<K> for ResourceSource<K, S> {
    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<ListPage<K>, SourceError>> {
        let source = self.source();
        async move { source.list(request).await }.boxed()
    }
    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<WatchStream<K>, SourceError>> {
        let source = self.source();
        async move { source.watch(request).await }.boxed()
    }
    fn max_list_bytes(&self) -> usize {
        self.client.max_list_bytes()
    }
}

/// A source of objects without the fields that are left out.
struct StrippedSource<K, S, const STRIP: u8> {
    client: ResourceClient<StrippedObject<K, STRIP>, S>,
    options: ListOptions,
}

/// A version as a parameter; the empty one is left out.
fn parameter(version: String) -> Option<String> {
    Some(version).filter(|version| !version.is_empty())
}

impl<K: ApiObject, S: Scope, const STRIP: u8> StrippedSource<K, S, STRIP> {
    /// The error of a request.
    fn error(&self, error: Error) -> SourceError {
        let is_refused = error.code() == Some(406) && self.client.is_metadata();
        let mut error = source_error(error);
        if is_refused {
            let (resource, refusal) = (self.client.resource().group_resource(), &error.message);
            error.message = format!(
                "the server does not send the metadata of {resource} alone (406: {refusal}); a dynamic or typed \
                 informer reads whole objects"
            );
        }
        error
    }
}

impl<K: ApiObject, S: Scope, const STRIP: u8> ListWatch<K> for StrippedSource<K, S, STRIP> {
    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<ListPage<K>, SourceError>> {
        let options = ListOptions {
            limit: request.limit,
            continue_token: request.continue_token,
            resource_version: parameter(request.resource_version),
            ..self.options.clone()
        };
        // The reflector has a backoff of its own.
        let list = self.client.list().options(&options);
        let list = list.keep_undecodable().without_retry();
        async move {
            let most = self.client.max_list_bytes();
            let mut room = most;
            let list = list.page_within(&options, &mut room).await;
            let list = list.map_err(|error| self.error(error))?;
            let resource_version = list.resource_version().to_owned();
            let continue_token = list.continue_token().map(str::to_owned);
            let objects = list.items.into_iter();
            let objects = objects.map(|object| ListItem::Object(object.0));
            let others = list.undecodable.into_iter();
            let others = others.map(|object| ListItem::Undecodable(undecodable(object)));
            Ok(ListPage {
                items: objects.chain(others).collect(),
                resource_version,
                continue_token,
                bytes: most - room,
            })
        }
        .boxed()
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<WatchStream<K>, SourceError>> {
        let initial = request.initial_events.then_some(true);
        let options = ListOptions {
            resource_version: parameter(request.resource_version),
            resource_version_match: initial.map(|_| VersionMatch::NotOlderThan),
            timeout: Some(request.timeout),
            bookmarks: true,
            send_initial_events: initial,
            ..self.options.clone()
        };
        let watch = self.client.watch().options(&options);
        async move {
            let stream = watch.await.map_err(|error| self.error(error))?;
            // A server that does not end a watch in time gets another request, which is no failure.
            let stream = stream.take_while(|item| ready(!matches!(item, Err(Error::Timeout(_)))));
            let stream = stream.map(|item| item.map(watch_item).map_err(source_error));
            Ok(stream.boxed())
        }
        .boxed()
    }
}

fn watch_item<K, const STRIP: u8>(event: WatchEvent<StrippedObject<K, STRIP>>) -> WatchItem<K> {
    match event {
        WatchEvent::Added(object) => WatchItem::Added(object.0),
        WatchEvent::Modified(object) => WatchItem::Modified(object.0),
        WatchEvent::Deleted(object) => WatchItem::Deleted(object.0),
        WatchEvent::Bookmark(bookmark) => WatchItem::Bookmark {
            resource_version: bookmark.resource_version,
            ends_initial_events: bookmark.ends_initial_events,
        },
        WatchEvent::Undecodable(object) => WatchItem::Undecodable(undecodable(*object)),
    }
}

fn undecodable(object: client::Undecodable) -> Undecodable {
    let has_name = !object.name.is_empty();
    Undecodable {
        key: has_name.then(|| ObjectKey::new(&object.namespace, &object.name)),
        resource_version: parameter(object.resource_version),
        error: object.error.to_string(),
    }
}

fn source_error(error: Error) -> SourceError {
    let kind = match &error {
        Error::Api(status) => return SourceError::from_status(status),
        // Nothing was sent: the path or a selector is malformed.
        Error::Request(_) => SourceErrorKind::Refused,
        _ => SourceErrorKind::Transport,
    };
    SourceError::new(kind, error.to_string())
}
