//! Bytes with revisions: the [`Storage`] trait, its backends and their conformance suite.
//!
//! This crate knows nothing about objects. The invariant: every write gets one revision from one counter, and an
//! acknowledged write is seen by every later read and watch, also after a restart.
//!
//! The feature `etcd` adds the etcd backend, for several servers over one store. The feature `testing` adds
//! `conformance`, the suite that tests any backend. [`Layer`] makes wrappers around a store.

mod storage;

pub mod cache;

mod embedded;
#[cfg(feature = "etcd")]
mod etcd;
mod memory;

#[cfg(any(test, feature = "testing"))]
pub mod conformance;
#[cfg(any(test, feature = "testing"))]
mod paired;

mod beginning;
mod feed;
mod keys;
mod layer;
mod op;
mod retention;

pub use embedded::{CheckReport, Embedded, EmbeddedConfig, MoveError, MoveReport, OpenError};
#[cfg(feature = "etcd")]
pub use etcd::{ConnectError, Etcd, EtcdConfig, EtcdTls};
pub use layer::Layer;
pub use memory::Memory;
#[cfg(any(test, feature = "testing"))]
pub use paired::Paired;
pub use retention::Retention;
pub use storage::{
    Entry, Event, EventKind, Key, ListRequest, Page, Revision, Storage, StorageError, WatchItem,
    WatchStart, WatchStream,
};
