//! `MetadataOf`: the metadata of objects that another informer has, without a list or watch of its own.

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use tokio::time::timeout;

use super::event::Event;
use super::informer::Informer;
use super::object::ObjectKey;
use super::source::{
    ListItem, ListPage, ListRequest, ListWatch, SourceError, SourceErrorKind, Undecodable,
    WatchItem, WatchRequest, WatchStream,
};
use super::subscription::Subscription;
use crate::client::ApiObject;
use crate::dynamic::PartialObjectMetadata;

/// How long a request waits for the first state of the informer, before its failure is reported.
const SYNC_LIMIT: Duration = Duration::from_secs(10);

/// Time between two bookmarks while nothing changes: as those of servers, they show that the watch lives.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

/// Lists and watches the metadata of the objects of an informer, which is started when it is asked.
pub(super) struct MetadataOf<K: ApiObject>(pub(super) Informer<K>);

impl<K: ApiObject> MetadataOf<K> {
    /// Waits until the informer has a complete state.
    async fn synced(&self) -> Result<(), SourceError> {
        let Self(informer) = self;
        informer.start();
        let synced = informer.wait_for_sync(SYNC_LIMIT).await;
        synced.map_err(|error| failure(&error))
    }

    fn version(&self) -> String {
        let version = self.0.lister().resource_version();
        version
            .map(|version| version.to_string())
            .unwrap_or_default()
    }
}

fn failure(error: &dyn fmt::Display) -> SourceError {
    SourceError::new(SourceErrorKind::Transport, error.to_string())
}

/// The metadata of an object.
fn metadata<K: ApiObject>(object: &K) -> Result<PartialObjectMetadata, Undecodable> {
    let json = serde_json::to_vec(object);
    let metadata = json.and_then(|json| serde_json::from_slice(&json));
    metadata.map_err(|error| undecodable(object, &error))
}

fn undecodable<K: ApiObject>(object: &K, error: &dyn fmt::Display) -> Undecodable {
    Undecodable {
        key: Some(ObjectKey::new(object.namespace(), object.name())),
        resource_version: Some(object.resource_version().to_owned()),
        error: format!("its metadata cannot be taken from another informer: {error}"),
    }
}

fn watch_item<K: ApiObject>(
    object: &K,
    item: fn(PartialObjectMetadata) -> WatchItem<PartialObjectMetadata>,
) -> WatchItem<PartialObjectMetadata> {
    metadata(object).map_or_else(WatchItem::Undecodable, item)
}

/// The events of a subscription as a watch with initial events.
struct Derived<K: ApiObject> {
    subscription: Subscription<K>,
    /// The state that the bookmarks have.
    version: String,
}

impl<K: ApiObject> Derived<K> {
    /// `None` when the informer was shut down.
    async fn next(&mut self) -> Option<WatchItem<PartialObjectMetadata>> {
        loop {
            let Ok(event) = timeout(BOOKMARK_INTERVAL, self.subscription.next()).await else {
                return Some(self.bookmark(false));
            };
            match event? {
                Event::Added { object, .. } => {
                    return Some(watch_item(&*object, WatchItem::Added));
                }
                Event::Updated { new, .. } => {
                    return Some(watch_item(&*new, WatchItem::Modified));
                }
                Event::Deleted { last, .. } => {
                    return Some(watch_item(&*last, WatchItem::Deleted));
                }
                Event::Synced => return Some(self.bookmark(true)),
                Event::Resync { .. } | Event::Lagged { .. } => {}
            }
        }
    }

    fn bookmark(&self, ends_initial_events: bool) -> WatchItem<PartialObjectMetadata> {
        WatchItem::Bookmark {
            resource_version: self.version.clone(),
            ends_initial_events,
        }
    }
}

impl<K: ApiObject> ListWatch<PartialObjectMetadata> for MetadataOf<K> {
    fn list(
        &self,
        request: ListRequest,
    ) -> BoxFuture<'_, Result<ListPage<PartialObjectMetadata>, SourceError>> {
        async move {
            self.synced().await?;
            if request.resource_version.is_empty() {
                // The most recent state, which the informer may not show yet.
                let behind = self.0.wait_for_server(SYNC_LIMIT).await;
                behind.map_err(|error| failure(&error))?;
            }
            let (objects, version) = self.0.lister().snapshot();
            let items = objects.iter().map(|object| {
                metadata(&**object).map_or_else(ListItem::Undecodable, ListItem::Object)
            });
            Ok(ListPage {
                items: items.collect(),
                resource_version: version
                    .map(|version| version.to_string())
                    .unwrap_or_default(),
                continue_token: None,
            })
        }
        .boxed()
    }

    fn watch(
        &self,
        request: WatchRequest,
    ) -> BoxFuture<'_, Result<WatchStream<PartialObjectMetadata>, SourceError>> {
        async move {
            self.synced().await?;
            if !request.initial_events {
                // What has changed since an earlier version is not kept: all is read again, which costs no request.
                let problem = "the state is read again from another informer";
                return Err(SourceError::new(SourceErrorKind::Expired, problem));
            }
            // Before the subscription, which may begin with a later state.
            let version = self.version();
            let derived = Derived {
                subscription: self.0.subscribe(),
                version,
            };
            let items = stream::unfold(derived, |mut derived| async {
                let item = derived.next().await?;
                Some((Ok(item), derived))
            });
            Ok(items.boxed())
        }
        .boxed()
    }
}
