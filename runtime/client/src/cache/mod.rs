//! Local copies of resources that a server keeps up to date by list and watch.
//!
//! A [`Store`] holds the objects of one resource and their indexes; a [`Lister`] reads it without waiting.

mod backoff;
mod catch_up;
mod derived;
mod event;
mod factory;
mod feed;
mod hub;
mod index;
mod informer;
mod keys;
mod lister;
mod metrics;
mod object;
mod queue;
mod reflector;
mod resource_source;
mod resource_version;
mod source;
mod store;
mod strip;
mod subscriber;
mod subscription;
#[cfg(test)]
mod test_object;
#[cfg(test)]
pub(crate) mod test_support;
mod untyped;

pub use catch_up::BehindError;
pub use event::Event;
pub use factory::{InformerFactory, SyncErrors};
pub use hub::{CacheError, CacheState};
pub use index::{ByLabel, ByNamespace, ByOwner, Index, LabelKey};
pub(crate) use informer::WeakInformer;
pub use informer::{Informer, InformerBuilder, SyncError};
pub use keys::{KeyEvent, KeySubscription};
pub use lister::{Lister, NamespaceLister, WaitError};
pub use metrics::InformerMetrics;
pub use object::{CacheObject, ObjectKey};
pub use reflector::ServerTraits;
pub use resource_source::ResourceSource;
pub use resource_version::ResourceVersion;
pub use source::{
    ListItem, ListPage, ListRequest, ListWatch, SourceError, SourceErrorKind, Undecodable,
    WatchItem, WatchRequest, WatchStream,
};
pub use store::{Change, Delta, Observed, Store};
pub use strip::Strip;
pub use subscriber::{Lag, SubscriberMetrics};
pub use subscription::{Handler, Subscription};
pub use untyped::{DynamicInformer, MetadataInformer};
