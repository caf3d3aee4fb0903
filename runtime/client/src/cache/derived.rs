//! `DerivedFrom`: the objects of another informer as a type that shows less of them, without a list or watch of its own.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use tokio::sync::watch;
use tokio::time::timeout;

use super::event::Event;
use super::feed::Feed;
use super::hub::CacheState;
use super::informer::Informer;
use super::object::ObjectKey;
use super::resource_version::ResourceVersion;
use super::source::{
    ListItem, ListPage, ListRequest, ListWatch, SourceError, SourceErrorKind, Undecodable,
    WatchItem, WatchRequest, WatchStream,
};
use super::subscription::Subscription;
use crate::client::ApiObject;

/// How long a request waits for the first state of the informer, before its failure is reported.
const SYNC_LIMIT: Duration = Duration::from_secs(10);

/// Time between two bookmarks while nothing changes: as those of servers, they show that the watch lives.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

/// Lists and watches the objects of a feed, which is started when it is asked.
pub(super) struct DerivedFrom<K: ApiObject>(Informer<K>);

/// Objects that come from another informer.
pub(super) trait DerivedSource<T>: ListWatch<T> {
    /// Whether the other informers were shut down: nothing comes from it any more.
    fn is_stopped(&self) -> bool;
}

impl<K: ApiObject, T: ApiObject> DerivedSource<T> for DerivedFrom<K> {
    fn is_stopped(&self) -> bool {
        self.0.feed().has_ended()
    }
}

impl<K: ApiObject> DerivedFrom<K> {
    pub(super) fn new(feed: Arc<Feed<K>>) -> Self {
        Self(Informer::reader(feed))
    }

    /// Waits until the informer has a complete state, or a failure.
    async fn synced(&self) -> Result<(), SourceError> {
        let Self(informer) = self;
        informer.start();
        let mut state = informer.watch_state();
        tokio::select! {
            biased;
            synced = informer.wait_for_sync(SYNC_LIMIT) => synced.map_err(|error| failure(&error)),
            error = failed(&mut state) => Err(error),
        }
    }

    /// Waits until the informer shows a state that is not older than this version: empty or `0` for any.
    async fn reached(&self, version: &str) -> Result<(), SourceError> {
        let Some(version) = ResourceVersion::new(version) else {
            return Ok(());
        };
        let reached = self.0.lister().wait_for(&version, SYNC_LIMIT).await;
        reached.map_err(|error| failure(&error))
    }

    fn version(&self) -> String {
        let version = self.0.lister().resource_version();
        version
            .map(|version| version.to_string())
            .unwrap_or_default()
    }
}

/// Waits for a failure of an informer.
async fn failed(state: &mut watch::Receiver<CacheState>) -> SourceError {
    loop {
        if let CacheState::Degraded { error, .. } = &*state.borrow_and_update() {
            // The server has refused a request of the other informer, and none of this one.
            let kind = SourceErrorKind::Unavailable;
            return SourceError {
                kind,
                ..error.clone()
            };
        }
        if state.changed().await.is_err() {
            // The informer is gone, which the wait for its state notices.
            std::future::pending::<()>().await;
        }
    }
}

fn failure(error: &dyn fmt::Display) -> SourceError {
    SourceError::new(SourceErrorKind::Transport, error.to_string())
}

/// An object as the other type.
fn convert<K: ApiObject, T: ApiObject>(object: &K) -> Result<T, Undecodable> {
    let json = serde_json::to_vec(object);
    let converted = json.and_then(|json| serde_json::from_slice(&json));
    converted.map_err(|error| Undecodable {
        key: Some(ObjectKey::of(object)),
        resource_version: Some(object.resource_version().to_owned()),
        error: error.to_string(),
    })
}

fn watch_item<K: ApiObject, T: ApiObject>(object: &K, item: fn(T) -> WatchItem<T>) -> WatchItem<T> {
    convert(object).map_or_else(WatchItem::Undecodable, item)
}

/// The events of a subscription as a watch with initial events.
struct DerivedWatch<K: ApiObject> {
    subscription: Subscription<K>,
    /// The state that the bookmarks have.
    version: String,
}

impl<K: ApiObject> DerivedWatch<K> {
    /// `None` when the informer was shut down.
    async fn next<T: ApiObject>(&mut self) -> Option<WatchItem<T>> {
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

    fn bookmark<T>(&self, ends_initial_events: bool) -> WatchItem<T> {
        WatchItem::Bookmark {
            resource_version: self.version.clone(),
            ends_initial_events,
        }
    }
}

impl<K: ApiObject, T: ApiObject> ListWatch<T> for DerivedFrom<K> {
    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<ListPage<T>, SourceError>> {
        async move {
            self.synced().await?;
            self.reached(&request.resource_version).await?;
            if request.resource_version.is_empty() {
                // The most recent state, which the informer may not show yet.
                let behind = self.0.wait_for_server(SYNC_LIMIT).await;
                behind.map_err(|error| failure(&error))?;
            }
            let (objects, version) = self.0.lister().snapshot();
            let items = objects.iter().map(|object| {
                convert(&**object).map_or_else(ListItem::Undecodable, ListItem::Object)
            });
            Ok(ListPage {
                items: items.collect(),
                resource_version: version
                    .map(|version| version.to_string())
                    .unwrap_or_default(),
                continue_token: None,
                bytes: 0,
            })
        }
        .boxed()
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<WatchStream<T>, SourceError>> {
        async move {
            self.synced().await?;
            if !request.initial_events {
                // What has changed since an earlier version is not kept: all is read again, which costs no request.
                let problem = "the state is read again from another informer";
                return Err(SourceError::new(SourceErrorKind::Expired, problem));
            }
            self.reached(&request.resource_version).await?;
            // Before the subscription, which may begin with a later state.
            let version = self.version();
            let derived = DerivedWatch {
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
    fn always_streams(&self) -> bool {
        true
    }
}
