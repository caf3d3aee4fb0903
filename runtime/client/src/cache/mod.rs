//! Local copies of resources that a server keeps up to date by list and watch.
//!
//! A [`Store`] holds the objects of one resource and their indexes; a [`Lister`] reads it without waiting.
//!
//! # Inside
//!
//! - `Store` has the objects in slots, their indexes, and the resourceVersion that they show, all of which change in one
//!   critical section; its one writer passes batches of changes, or a new list as a `Relist`, which keeps only the
//!   differences. `Lister` reads it. Key functions of users run outside of the lock that readers take.
//! - `ListWatch` (`source.rs`) is what a reflector needs of a server. Its errors have kinds; `Reflector` decides by the kind
//!   alone: read the state again (`list.rs`, `stream.rs`), continue the watch (`watch.rs`), or wait (`backoff.rs`). The tests
//!   are scripts of requests and answers (`reflector/script.rs`), in paused time.
//! - `Hub` changes the store and the queues of all subscribers in one step, so a subscriber may join at any time. A `Queue`
//!   combines the events of each object, so its length is limited by the number of objects, or also by a bound if the
//!   subscriber wants every event; the queue of `keys.rs` has keys alone. No user code runs with the hub locked.
//!   `Informer` starts and stops all of it.
//! - `ResourceSource` implements `ListWatch` for a `ResourceClient`; fields that are not cached are skipped while decoding
//!   (`strip.rs`). `InformerFactory` has one informer for the same type, resource, namespace, selectors and skipped fields;
//!   `untyped.rs` has those of resources that are known at run time. An `Informer` is a user of a `Feed` (`feed.rs`), which has the
//!   hub and the reflector. Equal informers of the factories of one client, or of its clones, use one feed: the client keeps weak
//!   references to them (`factory/feeds.rs`), and the last user ends its feed. Each user has its own group of listeners in the hub,
//!   which is told of nothing before this informer is started, and is closed by its shutdown alone. Informers that were made with
//!   settings of the program, and clients with other headers or another transport, have feeds of their own. A feed reads a
//!   `FactorySource`: the server, or another feed that has all of its objects with more fields (`derived.rs`), which it does not keep
//!   from ending: JSON before Rust types before metadata.
//!   They share one watch, and each has a store of its own. JSON made of a Rust type would lack the fields that the type does not
//!   know and have those that it fills in, so it is not what the server stores. Rust types made of JSON at each read would cost a
//!   decode each, and no two reads, indexes or events would share an `Arc`. Objects take memory once if a program uses one form.
//! - `metrics` knows nothing of caches and controllers: each of them registers a `Collect` that holds a weak reference, and is
//!   asked when a program reads the text.
//! - `runtime/client/tests/cache_model` runs informers against a server with faults, thousands of schedules in paused time, and
//!   counts that each fault occurred.

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
pub use store::{Change, Delta, Observation, Store};
pub use strip::Strip;
pub use subscriber::{Lag, SubscriberMetrics};
pub use subscription::{Handler, Subscription};
pub use untyped::{DynamicInformer, MetadataInformer};
