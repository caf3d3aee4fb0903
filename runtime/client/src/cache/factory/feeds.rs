//! `Feeds`: the caches that the factories of one client share.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::source::Fuller;
use crate::cache::derived::{DerivedFrom, DerivedSource};
use crate::cache::feed::Feed;
use crate::cache::informer::{Informer, InformerBuilder};
use crate::cache::reflector::ServerTraits;
use crate::cache::strip::Strip;
use crate::client::{ApiObject, ApiResource};
use crate::dynamic::{DynamicObject, PartialObjectMetadata};

/// What makes two informers the same.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    /// The type that objects are decoded as.
    pub(super) object: TypeId,
    pub(super) resource: ApiResource,
    pub(super) namespace: Option<String>,
    pub(super) labels: String,
    pub(super) fields: String,
    pub(super) strip: Strip,
}

/// A feed, without the type of its objects.
pub(in crate::cache) trait AnyFeed: Any + Send + Sync {
    fn has_ended(&self) -> bool;
    /// The metadata of its objects, for an informer.
    fn metadata(self: Arc<Self>) -> Arc<dyn DerivedSource<PartialObjectMetadata>>;
}

impl<K: ApiObject> AnyFeed for Feed<K> {
    fn has_ended(&self) -> bool {
        Feed::has_ended(self)
    }
    fn metadata(self: Arc<Self>) -> Arc<dyn DerivedSource<PartialObjectMetadata>> {
        Arc::new(DerivedFrom::new(self))
    }
}

fn downcast<K: ApiObject>(feed: Arc<dyn AnyFeed>) -> Option<Arc<Feed<K>>> {
    let feed: Arc<dyn Any + Send + Sync> = feed;
    feed.downcast().ok()
}

/// Takes the objects of a feed as another type; `None` if they may lack some of its fields.
pub(in crate::cache) type Derive<T> = fn(Arc<dyn AnyFeed>) -> Fuller<T>;

/// Objects of a Rust type have less fields than JSON has.
pub(super) fn of_json<T: ApiObject>(feed: Arc<dyn AnyFeed>) -> Fuller<T> {
    let feed = downcast::<DynamicObject>(feed)?;
    Some(Arc::new(DerivedFrom::new(feed)))
}

/// All objects have metadata.
pub(in crate::cache) fn metadata(feed: Arc<dyn AnyFeed>) -> Fuller<PartialObjectMetadata> {
    Some(feed.metadata())
}

/// The feeds of informers with default settings, as long as informers use them, and what is known of the server.
#[derive(Default)]
pub(super) struct Feeds {
    server: ServerTraits,
    feeds: Mutex<HashMap<Identity, Weak<dyn AnyFeed>>>,
}

impl Feeds {
    pub(super) fn server(&self) -> &ServerTraits {
        &self.server
    }

    /// An informer with the feed of the equal ones, or with one that is built.
    pub(super) fn informer<K: ApiObject>(
        self: &Arc<Self>,
        identity: &Identity,
        builder: impl FnOnce() -> InformerBuilder<K>,
    ) -> Informer<K> {
        let mut feeds = self.feeds.lock();
        let known = feeds.get(identity).and_then(Weak::upgrade);
        if let Some(informer) = known.and_then(downcast).and_then(Informer::join) {
            return informer;
        }
        let (this, ended) = (Arc::downgrade(self), identity.clone());
        let on_end = move || {
            if let Some(this) = this.upgrade() {
                this.forget_ended(&ended);
            }
        };
        let informer = builder().on_end(on_end).build();
        let feed: Arc<dyn AnyFeed> = Arc::<Feed<K>>::clone(informer.feed());
        feeds.insert(identity.clone(), Arc::downgrade(&feed));
        informer
    }

    /// Removes a feed that has ended; another one may have taken its place.
    fn forget_ended(&self, identity: &Identity) {
        let mut feeds = self.feeds.lock();
        let feed = feeds.get(identity).map(Weak::upgrade);
        if feed.is_some_and(|feed| feed.is_none_or(|feed| feed.has_ended())) {
            feeds.remove(identity);
        }
    }

    /// The objects of an informer, from a feed that shows the same with more of their fields, if there is one.
    pub(super) fn fuller<T>(&self, identity: &Identity, derive: Derive<T>) -> Fuller<T> {
        let feeds = self.feeds.lock();
        let shows_same = |other: &Identity| {
            let object = other.object;
            let same = Identity {
                object,
                ..identity.clone()
            };
            object != identity.object && *other == same
        };
        let same = feeds.iter().filter(|(other, _)| shows_same(other));
        let same = same.filter_map(|(other, feed)| Some((other, feed.upgrade()?)));
        let is_json = |(other, _): &(&Identity, Arc<dyn AnyFeed>)| {
            other.object == TypeId::of::<DynamicObject>()
        };
        let (_, fullest) = same.max_by_key(is_json)?;
        derive(fullest)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.feeds.lock().len()
    }
}
