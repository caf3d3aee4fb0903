//! Local copies of resources that a server keeps up to date by list and watch.
//!
//! A [`Store`] holds the objects of one resource and their indexes; a [`Lister`] reads it without waiting.

mod backoff;
mod event;
mod factory;
mod hub;
mod index;
mod informer;
mod lister;
mod object;
mod queue;
mod reflector;
mod resource_source;
mod resource_version;
mod source;
mod store;
mod strip;
mod subscription;
#[cfg(test)]
mod test_object;

pub use event::Event;
pub use factory::{InformerFactory, SyncErrors};
pub use hub::{CacheError, CacheState};
pub use index::{ByLabel, ByNamespace, ByOwner, Index, LabelKey};
pub use informer::{Informer, InformerBuilder, SyncError};
pub use lister::{Lister, NamespaceLister, WaitError};
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
pub use subscription::{Handler, Subscription};
