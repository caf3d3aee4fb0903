//! Controllers: a work queue, workers that reconcile its keys, leader election, finalizers and events.
//!
//! What talks to a server does so by a small trait, which is implemented for clients and informers.
//!
//! # Inside
//!
//! - `queue/state.rs` is the work queue as plain data that is told the time; `queue/shared.rs` adds the lock and the waiting. A
//!   key that is ready is ordered by the time at which it reaches the highest priority, so ageing moves nothing. A test
//!   compares the state with a model.
//! - `source.rs` is what a controller needs of an informer, and has it for `cache::Informer`. `reconcile` has the controller:
//!   workers are tasks, which wait until all sources are synced; a call is told to end by a `CancellationToken`, and dropped if it goes
//!   on. Shutdown goes from the events to the calls: subscriptions, queue, calls, tasks.
//! - A call may read any state that its cache shows, so each state is mapped to keys, by an event whose new state it is and one
//!   whose old state it is: events of an object are not combined for a controller. Those that wait beside the newest ones have a
//!   bound. A source that had to combine some says `Event::Lagged`, and then all sources show all their objects again.
//! - `guard.rs` puts off a key until the cache of a resource shows what the last call of the key wrote there. All doubts,
//!   and 10 s, let the key pass. A client of a call (`Context::client`) reports its writes by `Client::on_write`.
//! - `election` holds a Lease, read and written by the trait `LeaseStore`; `election/client.rs` has it for a `Client`, and the
//!   guard of writes as a layer over its transport. The head of `election.rs` says why there is one leader at a time;
//!   `simulation.rs` looks for two, over a network that delays and loses messages and with processes that stop. The guard of
//!   a leader is data and a clock: it closes without any task having to run. A guarded transport asks it whenever a write is
//!   continued, and its connection before each piece of the body; `revocable.rs` closes sockets that are
//!   open when it closes, those over HTTP/2 with their connection if bytes wait in it (`transport/http/tunnel.rs`). `tests/tests/controller` freezes leaders and kills them.
//! - `events` records without waiting: a bounded queue, a correlator that is told the time (`correlator.rs`: what repeats and what
//!   is limited), and a task that writes to an `EventSink`.
//! - `finalizer.rs` changes lists of finalizers only by JSON patches that test what they replace; `owner.rs` has owner
//!   references.

mod election;
mod events;
mod finalizer;
mod guard;
mod keys;
mod owner;
mod queue;
mod reconcile;
mod source;

pub use election::{
    ClientLease, ElectionConfig, ElectionConfigError, ElectionError, GuardedTransport,
    LeaderElector, Leadership, Lease, LeaseError, LeaseSpec, LeaseStore, NotLeader, WriteGuard,
};
pub use events::{
    ClientEvents, Event, EventError, EventSeries, EventSink, EventType, NewEvent, ObjectReference,
    Recorder, RecorderMetrics,
};
pub use finalizer::FinalizerOutcome;
pub use guard::{CacheVersion, WriteRecorder};
pub use owner::{OwnerError, controller_key, controller_of, is_controlled_by, set_controller};
pub use queue::{Backoff, Priority, QueueMetrics, WorkItem, WorkQueue, WorkQueueConfig};
pub use reconcile::{
    Action, Context, Controller, ControllerMetrics, Enqueue, NotIdle, Owner, ReconcileError,
    Request, RunningController,
};
pub use source::{EventHandler, EventSource, EventSubscription};
pub use tokio_util::sync::CancellationToken;
