//! Controllers: a work queue, workers that reconcile its keys, leader election, finalizers and events.
//!
//! What talks to a server does so by a small trait, which is implemented for clients and informers.

mod cancel;
mod election;
mod events;
mod finalizer;
mod guard;
mod keys;
mod owner;
mod queue;
mod reconcile;
mod source;

pub use cancel::Cancel;
pub use election::{
    ClientLease, ElectionConfig, ElectionConfigError, ElectionError, GuardedTransport,
    LeaderElector, Leadership, Lease, LeaseError, LeaseSpec, LeaseStore, NotLeader, WriteGuard,
};
pub use events::{
    ClientEvents, Event, EventError, EventSeries, EventSink, EventType, NewEvent, ObjectReference,
    Recorder, RecorderMetrics,
};
pub use finalizer::Finalized;
pub use guard::{CacheVersion, WriteRecorder};
pub use owner::{OwnerError, controller_key, controller_of, is_controlled_by, set_controller};
pub use queue::{Backoff, Priority, QueueMetrics, WorkItem, WorkQueue, WorkQueueConfig};
pub use reconcile::{
    Action, Context, Controller, ControllerMetrics, Enqueue, NotIdle, Owner, ReconcileError,
    Request, RunningController,
};
pub use source::{EventHandler, EventSource, EventSubscription};
