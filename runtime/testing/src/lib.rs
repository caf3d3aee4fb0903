//! Servers for tests: each test has a server of its own, in the same process and in memory.
//!
//! A [`TestServer`] is the real server. Its filters, validation, managedFields, watch caches and watches are those of
//! production. Only the store is in memory, and requests come without a socket. [`Control`] adds what tests need: a
//! record of all requests, faults, broken watches, compaction, a stale watch cache, and a clock that the test moves.
//!
//! Not covered, unless a test turns it on: the garbage collector and the deletion of namespaces. Controllers of other
//! programs, such as those of kube-controller-manager, do not run at all.
//!
//! # Inside
//!
//! A `TestServer` is `Server::start` over `Memory`, so a test meets the filters, rules and watch caches of production.
//!
//! - `transport.rs` is the way of all requests of clients: it records them, and answers those with a fault. Faults that a client could
//!   not tell from those of a network or of a busy server are there. `store.rs` is the layer over the store that holds its watches back,
//!   so that the watch caches themselves are stale.
//! - Time has two clocks. `ManualClock` dates writes and expires keys (`Builder::clock`, `Memory::with_manual_time`); deadlines and waits
//!   are tokio's, which a test can pause. There are no threads.
//! - Generated `fake.rs` is two calls: the server runs until the last of its clients and its control is dropped.

mod action;
mod builder;
mod clock;
mod control;
mod error;
mod fault;
mod fixture;
mod port;
mod running;
mod seed;
mod server;
mod shared;
mod store;
mod transport;
mod watches;

pub use action::Action;
pub use builder::TestServerBuilder;
pub use clock::TestClock;
pub use control::{Control, PausedWatchCache, Revisions};
pub use error::TestError;
pub use fault::{Fault, FaultBuilder, FaultHandle};
#[cfg(feature = "paused-time")]
pub use fixture::run_paused;
pub use fixture::{Fixture, run, unwrap_built};
pub use port::TestPort;
pub use server::TestServer;
pub use transport::TestTransport;
