//! Bytes with revisions: the [`Storage`] trait, its backends and their conformance suite.
//!
//! This crate knows nothing about objects.
//!
//! The feature `etcd` adds the etcd backend, for several servers over one store. The feature `testing` adds
//! `conformance`, the suite that tests any backend. [`Layer`] makes wrappers around a store.
//!
//! # Invariants
//!
//! - Every write gets one revision from one counter. An acknowledged write is seen by every later read and watch, also
//!   after a restart.
//! - The embedded store serves only verified data: rows by their checksums, objects against the log, the end of the log
//!   against a mark beside it. `runtime/storage/tests` checks this with damaged files, killed processes and power cuts.
//! - Watch events of one key are never reordered, duplicated or skipped without an error that ends the stream.
//! - The watch cache is written by one task, and its snapshots are states that the store had. Readers take no lock that the
//!   writer holds while it works; a watcher is a cursor in the ring of changes and keeps alive only the events that it is
//!   about to send.
//! - The memory of history is limited completely: old states, the changes themselves, their entries in the ring, and what was
//!   encoded of them for watchers, which is dropped first and after some seconds. The caches
//!   of a server share one budget, and a cache above its share is trimmed first. The memory of slow readers has its own
//!   limit: `registry/objects/readers.rs` tracks the readers that hold a state, and ends the oldest one when it is exceeded.
//! - A cache that is not filled does not answer. Requests that the store can bear meanwhile go to the store, others get
//!   429. A watch that would receive no events is refused or ends: no stream stays open over a cache that cannot continue.
//! - The watch cache does not hold past states: an exact revision inside the window is made by undoing the changes since
//!   then, and kept for the next page. Reads before the window go to the store, which keeps more.
//! - All watchers of a server share one watch of etcd below the prefix, which is reopened at the last revision that it
//!   delivered; watchers that are behind read etcd's history. In an etcd whose progress responses may overtake changes
//!   (before 3.4.31 and 3.5.13) all keys are watched: every revision is a change of some key, so the changes show the
//!   progress.

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
pub use paired::PairedStore;
pub use retention::Retention;
pub use storage::{
    Entry, Event, EventKind, Key, ListRequest, Page, Revision, Storage, StorageError, WatchItem,
    WatchStart, WatchStream,
};
