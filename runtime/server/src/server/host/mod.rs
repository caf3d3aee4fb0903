//! What the host gives to the controllers of parts: requests, watches, elections, and the metadata of objects as they change.
//!
//! They send requests to the server as its other clients do, through its [`Loopback`], and read metadata from its watch
//! caches. Of several servers over one store, the one that holds the lease of a controller runs it.
//!
//! # Inside
//!
//! - `follower.rs` follows the objects of a kind for all that do: the collector, the deletion of namespaces, the definitions, the
//!   APIServices and the installation of definitions. `feed.rs` follows the metadata of a kind with it, and `parts/garbage/graph.rs` makes the
//!   graph of owner references from that: plain data that says what is to be looked at. `parts/garbage/collector.rs` decides by the state
//!   in the store, with that as the precondition of each write.
//! - What follows from the absence of dependents (the end of a foreground deletion, the start of orphaning) waits until every feed
//!   has reported all that was in its store by then (`parts/garbage/progress.rs`: one round for all that wait at the same time; while
//!   feeds are late, one worker waits and the others go on).
//! - An object that cannot be read (of a version that left its definition, damaged) is left out of the watches of all controllers
//!   (`registry/reads/unreadable.rs`): the others of its kind are followed. What follows from the absence of dependents waits 30 s for
//!   such an object, and for a kind whose watch fails (a webhook that converts nothing), then goes on without them, as the collector of
//!   Kubernetes does at once; a store or a cache that is slow is waited for. `parts/garbage/unreadable.rs` tells the check
//!   `/healthz/garbage-collector-controller`, which fails no probe, and an event names the definition. The definition of such
//!   objects is deleted with them by their keys (`registry/endpoint/unreadable.rs`); a namespace with one says so in its conditions and stays.
//! - Foreground deletions in a circle are found by the graph one second after the last one began, and no longer block each other;
//!   those of Kubernetes wait for ever.
//! - Kinds whose deletion has no rules for dependents (Events) are not followed.
//! - An object that depends on the kinds that are served (its owner's kind is unknown, or a kind lacks a verb) is put off until the
//!   catalog changes, not retried. Kinds without `get` are read by a list of one name, those without `patch` are replaced. A kind
//!   with neither `patch` nor `update` keeps its finalizers and references: its foreground and orphaning deletions, and orphaning
//!   deletions of its objects' owners, do not end.
//! - What they count is in a registry of the client crate (queues, requests, leadership, feeds as informers), whose text `http/observation/metrics` puts behind that of
//!   the server.
//! - Of several servers over a shared store, each controller has a lease of its own, because servers may run different ones. The work of
//!   a leader that was killed waits less than 15 s (`ELECTION` of `server/controllers.rs`, and the times of `servers.rs`); a server that does not stand yet follows the lease.
//! - Each of these servers keeps a record of its kinds and controllers there (`servers.rs`: 12 s, renewed every 4 s; it stays after
//!   a stop, so that a restart is no gap). A server does not stand for the election of a controller, and gives its lease up, while
//!   another one that runs it serves all its kinds and more; and the leader ends no deletion that depends on the absence of
//!   objects while any server serves a kind that it does not. What no server serves is not known: when
//!   all servers of a newer release are gone, the objects of their new kinds are kept out of everything, and those whose owners
//!   were deleted or orphaned meanwhile are collected when the kinds are served again.

mod controller_host;
pub mod feed;
mod follower;
mod lease;
mod observed_object;
mod readable;
mod requests;
mod servers;
mod uid;

pub use self::controller_host::{ControllerHost, ControllerMetrics};
pub use self::follower::{Follower, Read, Update};
pub(super) use self::lease::StoredLease;
pub use self::observed_object::{Finalizer, ObservedObject, Place, Reference};
pub use self::readable::{UnreadableLog, read_all};
pub use self::requests::{RequestError, Requests, ServedKind, Target, is_followed};
pub(super) use self::servers::Servers;
pub use self::servers::{OtherServers, SharedStore};
pub use self::uid::Uid;
